"""Files that are none: what a path may lead to in place of a regular file of a few bytes, and what commands make of it.

As a program: runs commands of the command line one after the other, each with 10 s and together with a bounded address
space, and says how each ended. argv: the bytes; stdin: a list of their words, as JSON.
"""

from __future__ import annotations

import gzip
import json
import os
import resource
import signal
import socket
import sys
from pathlib import Path

SECONDS = 20


def place(kind: str, path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink() or path.exists():
        path.unlink()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "20 GB":
        with path.open("wb") as file:
            file.truncate(20 << 30)
    elif kind == "folder":
        path.mkdir()
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as one:
            here = os.open(path.parent, os.O_RDONLY)  # a socket's address is short
            one.bind(f"/proc/self/fd/{here}/{path.name}")
            os.close(here)
    elif kind == "link to nothing":
        path.symlink_to("nothing there")
    elif kind == "packed zeros":
        path.write_bytes(gzip.compress(bytes(1 << 20)) * 2048)
    return path


KINDS = ("pipe", "device", "20 GB", "folder", "socket", "link to nothing", "packed zeros")


def _late(*_: object) -> None:
    raise TimeoutError("its time is up")


def main() -> None:
    import click

    from tensorop.cli.main import cli
    from tensorop.errors import TensoropError

    now = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (now + int(sys.argv[1]),) * 2)
    signal.signal(signal.SIGALRM, _late)
    ended = []
    for words in json.load(sys.stdin):
        signal.alarm(SECONDS)
        try:
            cli.main(words, standalone_mode=False)
            said = "passed"
        except TensoropError as error:
            said = f"error: {error.message}"
        except click.ClickException as error:
            said = f"error: {error.format_message()}"
        except SystemExit as error:
            said = f"exit {error.code}"
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        signal.alarm(0)
        ended.append(said)
    sys.stderr.write(json.dumps(ended))


if __name__ == "__main__":
    main()
