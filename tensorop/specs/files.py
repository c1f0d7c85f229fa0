"""Files of others and those that users write with an editor, read: regular ones alone, so many bytes at most, and
without waiting for anybody.

A FIFO that nobody writes to waits for ever, a device never ends, and a file can be larger than memory. Each of these is
an OSError here, whose `strerror` says what was expected: whoever reads a file says so in the sentence it has for files
that cannot be read. Of text, a byte-order mark is taken away, and UTF-16 is named.
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

# Bytes of a file, by kind: many times as many as those that are known have.
TEXT = 4 << 20  # a template, C, Python of a plug-in, a recorded reply
JSON = 32 << 20  # a manifest, a comparison, what kits measured
LINES = 16 << 20  # winners, a kit's results, a recorded space unpacked
JOURNAL = 512 << 20
LINE = 16 << 20  # of a journal
LIBRARY = 32 << 20

_KINDS = (
    (stat.S_ISDIR, "folder"),
    (stat.S_ISFIFO, "FIFO"),
    (stat.S_ISSOCK, "socket"),
    (stat.S_ISCHR, "device"),
    (stat.S_ISBLK, "device"),
)


class Unfit(OSError):
    """A file that is not read; as text it is its `strerror`."""

    def __str__(self) -> str:
        return str(self.strerror)


def opened(path: Path, most: int) -> io.FileIO:
    """A regular file, open for reading, of `most` bytes or fewer now. Raises OSError."""
    _require(path, os.stat(path), most)
    file = io.FileIO(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    try:
        _require(path, os.fstat(file.fileno()), most)
    except BaseException:
        file.close()
        raise
    return file


def require(path: Path, most: int) -> None:
    """Raises OSError for what is no regular file of `most` bytes or fewer."""
    opened(path, most).close()


def read(path: Path, most: int) -> bytes:
    """A file's bytes. Raises OSError."""
    with opened(path, most) as file:
        data = bytearray()
        while len(data) <= most and (piece := file.read(min(1 << 20, most + 1 - len(data)))):
            data += piece
    if len(data) > most:  # it grew, or is one of /proc
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
    """A file's text without a byte-order mark, each line's end as `\\n`. Raises SpecError."""
    try:
        found = plain(path, most).decode("utf-8")
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise SpecError(f"{path}: not UTF-8 text: {error.reason} at byte {error.start}") from None
    return found.replace("\r\n", "\n").replace("\r", "\n") if "\r" in found else found


def unpacked(data: bytes, most: int) -> bytes:
    """What gzip packed. Raises OSError, EOFError, zlib.error for what is none, ValueError for more than `most`
    bytes."""
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
