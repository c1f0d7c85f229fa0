"""Files that users name, write with an editor or send by mail: their bytes, their text, or why they have none.

Of what is no regular file nothing is read: who opens a FIFO waits for whoever writes into it.
"""

from __future__ import annotations

import codecs
import errno
import os
import stat
from pathlib import Path

from tensorop.errors import SpecError

_KINDS = {
    stat.S_IFIFO: "a FIFO", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket",
    stat.S_IFDIR: "a folder",
}  # fmt: skip
_WIDE = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_SAID = "it is UTF-16 text, expected UTF-8; save it again as that"


def opened(path: Path) -> int:
    """A descriptor to read a regular file by. Raises OSError, whose `strerror` says what else stands there."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    kind = stat.S_IFMT(os.fstat(descriptor).st_mode)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise OSError(errno.EINVAL, f"it is {_KINDS.get(kind, 'no file')}, expected a regular file", str(path))
    return descriptor


def data(path: Path) -> bytes:
    """All of a regular file. Raises OSError as `opened`."""
    with open(opened(path), "rb") as file:
        return file.read()


def plain(path: Path) -> bytes:
    """All of a regular file of text, without a byte-order mark. Raises OSError as `opened`, also for UTF-16."""
    found = data(path)
    require_narrow(path, found)
    return found.removeprefix(codecs.BOM_UTF8)


def require_narrow(path: Path, found: bytes) -> None:
    """Raises OSError for the data of a file that is UTF-16 text."""
    if found.startswith(_WIDE):
        raise OSError(errno.EINVAL, _SAID, str(path))


def text(path: Path, most: int = -1) -> str:
    """A file's text without a byte-order mark, each line's end as \\n, so many characters at most. Raises SpecError."""
    try:
        descriptor = opened(path)
        wide = os.pread(descriptor, 2, 0) in _WIDE
        with open(descriptor, encoding="utf-8-sig", newline=None) as file:
            if wide:
                raise SpecError(f"{path}: {_SAID}")
            return file.read(most)
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
