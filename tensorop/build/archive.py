"""Static archives, read: the objects in one."""

from __future__ import annotations

import re
from collections.abc import Iterator

_MAGIC = b"!<arch>\n"
_HEADER = re.compile(rb"(.{48})(\d{1,10}) *`\n", re.DOTALL)
_INDEX = {b"/": 4, b"/SYM64/": 8}  # bytes of a number


def members(data: bytes) -> Iterator[tuple[str, bytes]]:
    """(name, content) of an archive in GNU's format; nothing for another file. Raises ValueError for a damaged one, and
    where its index, by which linkers find objects, names a place that is no member's."""
    if not data.startswith(_MAGIC):
        return
    at, names, begins, index = len(_MAGIC), b"", set(), set[int]()
    while at < len(data):
        header = _HEADER.fullmatch(data[at : at + 60])
        if header is None or (end := at + 60 + int(header[2])) > len(data):
            raise ValueError(f"expected a member at byte {at}, whole and with its size")
        field, content = header[1][:16].rstrip(), data[at + 60 : end]
        if field == b"//":
            names = content
        elif width := _INDEX.get(field):
            count = int.from_bytes(content[:width], "big")
            places = range(width, min(width * (count + 1), len(content)), width)
            index |= {int.from_bytes(content[place : place + width], "big") for place in places}
        else:
            begins.add(at)
            text = names[int(field[1:]) :].split(b"/\n")[0] if field.startswith(b"/") else field.rstrip(b"/")
            yield text.decode(errors="replace"), content
        at = end + end % 2
    if index - begins:
        raise ValueError(f"its index names byte {min(index - begins)}, where no member begins")
