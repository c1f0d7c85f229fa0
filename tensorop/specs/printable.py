"""Texts of others where people read them: nothing in them moves a cursor, turns a line round or hides.

Strategies, messages of compilers and endpoints, cards and file names may hold escape sequences of terminals and marks
of direction, with which a line shows something else than it says.
"""

from __future__ import annotations

_KEPT = "\n\t"


def printable(text: str) -> str:
    """The text with every character that is not printed (of Unicode: controls, formats, halves of pairs, what has no
    meaning) written as `\\x1b` or `\\u202e`; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else _escaped(c) for c in text)


def one_line(text: str, most: int) -> str:
    """At most so many characters of a text, printable and on one line."""
    shown = printable(text[:most]).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(text) <= most else f"{shown}..."


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
