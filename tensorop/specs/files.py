"""Reads untrusted files and files of users: regular files only, up to a maximum size, without blocking.

A FIFO without a writer blocks forever, a device has no end, and a file can be larger than memory. Here these raise
OSError, whose `strerror` states the expected kind or size, so that callers can put it into their message. A byte-order
mark is removed from text, and UTF-16 is an error of its own.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import stat
from pathlib import Path

from tensorop.errors import SpecError

# Maximum size in bytes, by kind of file: a multiple of the largest known ones.
TEXT = 4 << 20  # a template, C, Python of a plug-in, a recorded reply
JSON = 32 << 20  # a manifest, a comparison, results of kits
LINES = 16 << 20  # winners, a kit's results, a decompressed recorded space
JOURNAL = 512 << 20
LINE = 16 << 20  # one line of a journal
LIBRARY = 32 << 20

_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


class Unfit(OSError):
    """A file that must not be read. Its text is its `strerror`."""

    def __str__(self) -> str:
        return str(self.strerror)


def opened(path: Path, most: int) -> io.FileIO:
    """Opens a regular file of at most `most` bytes for reading. Raises OSError."""
    _require(path, os.stat(path), most)
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    try:
        _require(path, os.fstat(file.fileno()), most)
    except BaseException:
        file.close()
        raise
    return file


def require(path: Path, most: int) -> None:
    """Raises OSError unless this is a regular file of at most `most` bytes."""
    opened(path, most).close()


def read(path: Path, most: int) -> bytes:
    """A file's bytes. Raises OSError."""
    with opened(path, most) as file:
        data = bytearray()
        while len(data) <= most and (piece := file.read(min(1 << 20, most + 1 - len(data)))):
            data += piece
    if len(data) > most:  # it grew, or it is in /proc
        raise _larger(path, f"more than {most}", most)
    return bytes(data)


def plain(path: Path, most: int) -> bytes:
    """The bytes of a file of text, without a byte-order mark. Raises OSError, also for UTF-16."""
    found = read(path, most)
    require_narrow(path, found)
    return found.removeprefix(codecs.BOM_UTF8)


def require_narrow(path: Path, found: bytes) -> None:
    """Raises OSError for the first bytes of a file that is UTF-16 text."""
    if found.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unfit(errno.EINVAL, "it is UTF-16 text; save it as UTF-8", str(path))


def text(path: Path, most: int) -> str:
    """A file's text without a byte-order mark, with line ends as `\\n`. Raises SpecError."""
    try:
        found = plain(path, most).decode("utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    return found.replace("\r\n", "\n").replace("\r", "\n") if "\r" in found else found


def unpacked(data: bytes, most: int) -> bytes:
    """Decompresses gzip data. Raises OSError, EOFError or zlib.error for invalid data.

    Raises ValueError for more than `most` bytes.
    """
    with gzip.GzipFile(fileobj=io.BytesIO(data)) as file:
        out = file.read(most + 1)
    if len(out) > most:
        raise ValueError(f"it unpacks to more than {most} bytes")
    return out


def _require(path: Path, found: os.stat_result, most: int) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = next((name for is_one, name in _KINDS if is_one(found.st_mode)), "special file")
        number = errno.EISDIR if kind == "folder" else errno.EINVAL
        raise Unfit(number, f"it is a {kind}, expected a regular file", str(path))
    if found.st_size > most:
        raise _larger(path, str(found.st_size), most)


def _larger(path: Path, size: str, most: int) -> Unfit:
    return Unfit(errno.EFBIG, f"it has {size} bytes, at most {most} are read", str(path))
