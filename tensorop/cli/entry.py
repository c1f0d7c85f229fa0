"""The start of the command: shows a line at once, since its imports take a moment."""

from __future__ import annotations

import sys


def main() -> None:
    """Shows `starting` on a terminal while modules load, then calls `tensorop.cli.main.main`."""
    seen = sys.stderr.isatty()
    try:
        if seen:
            sys.stderr.write(f"tensorop {' '.join(word for word in sys.argv[1:2] if word.isprintable())}: starting")
            sys.stderr.flush()
        from tensorop.cli import main as command  # most of the start-up time
    except KeyboardInterrupt:
        sys.stderr.write("\ninterrupted\n")
        sys.exit(130)
    finally:
        if seen:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
    command.main()
