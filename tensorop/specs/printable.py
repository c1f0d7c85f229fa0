"""Makes untrusted texts safe to print: they cannot move the cursor, reverse a line or hide characters.

Strategies, messages of compilers and endpoints, cards and file names may contain terminal escape sequences and Unicode
direction marks, so that a line looks different from its text.
"""

from __future__ import annotations

_KEPT = "\n\t"


def printable(text: str) -> str:
    """The text with unprintable characters escaped as `\\x1b` or `\\u202e`; line ends and tabs stay.

    Among them are Unicode's control and format characters, surrogates and unassigned code points.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in _KEPT else _escaped(c) for c in text)


def one_line(text: str, most: int) -> str:
    """The first `most` characters of a text, printable and on one line."""
    shown = printable(text[:most]).replace("\n", "\\n").replace("\t", "\\t")
    return shown if len(text) <= most else f"{shown}..."


def _escaped(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
