"""Where the command starts: says so at once, for what it needs takes a moment to load."""

from __future__ import annotations

import sys


def main() -> None:
    """Shows a sign of life at a terminal, then is `tensorop.cli.main.main`."""
    seen = sys.stderr.isatty()
    try:
        if seen:
            sys.stderr.write(f"tensorop {' '.join(word for word in sys.argv[1:2] if word.isprintable())}: starting")
            sys.stderr.flush()
        from tensorop.cli import main as command  # most of what takes its time
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        sys.exit(130)
    finally:
        if seen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
    command.main()
