"""Static archives, read: the objects in one."""

from __future__ import annotations

from collections.abc import Iterator

_MAGIC = b"!<arch>\n"
_HEADER = 60


def members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of an archive in GNU's format; nothing for another file. Raises ValueError for a damaged one."""
    if not data.startswith(_MAGIC):
        return
    at, names = len(_MAGIC), b""
    while at + _HEADER <= len(data):
        field, size = data[at : at + 16].rstrip(), int(data[at + 48 : at + 58])
        if size < 0:
            raise ValueError(f"a member of {size} bytes")
        content = data[at + _HEADER : at + _HEADER + size]
        at += _HEADER + size + size % 2
        if field == b"//":
            names = content
        elif field not in (b"/", b"/SYM64/"):
            text = names[int(field[1:]) :].split(b"/\n")[0] if field.startswith(b"/") else field.rstrip(b"/")
            yield text.decode(errors="replace"), content
