"""`python -m tensorop.preload DIR -- PROGRAM` is the same as `tensorop preload DIR -- PROGRAM`."""

import sys

from tensorop.cli.entry import main

if __name__ == "__main__":
    sys.argv.insert(1, "preload")
    main()
