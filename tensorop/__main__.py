"""`python -m tensorop` is the same as `tensorop`."""

from tensorop.cli.entry import main

main()
