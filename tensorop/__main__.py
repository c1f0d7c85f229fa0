"""`python -m tensorop` is the same as `tensorop`."""

from tensorop.cli.main import main

main()
