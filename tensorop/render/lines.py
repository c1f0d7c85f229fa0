"""The line of a template that a place in its rendered C comes from, for messages about this place.

A refused template is rendered once more, with a mark before each piece of its text. Marks change what is rendered only
where a template computes with the text of a macro. So the result without its marks must be the C that was refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

from tensorop.render.render import RenderError, environment

_MARK = re.compile("\x01(\\d{1,6})\x02")
_BLOCKS = ("macro", "set")  # what stands in them is a value of the template


def line_at(source: str, text: str, again: Callable[[str], str]) -> Callable[[int], int]:
    """The line of `text`, from 1, that a place in the rendered C comes from; 0 if unknown.

    source: the C; again: renders another text as the template
    """
    return lambda place: next(filter(None, (_line(source, text, again, place, of) for of in (True, False))), 0)


def _line(source: str, text: str, again: Callable[[str], str], place: int, of_blocks: bool) -> int:
    try:
        made = again(f"{_numbered(text, of_blocks)}\x010\x02")
    except (RenderError, ValueError):
        return 0
    line = marks = 0
    for mark in _MARK.finditer(made):
        if mark.start() - marks > place:
            break
        marks += len(mark[0])
        line = int(mark[1])
    return line if _MARK.sub("", made) == source and line <= text.count("\n") + 1 else 0


def _numbered(text: str, of_blocks: bool) -> str:
    """The text with its lines' numbers as marks. of_blocks: also in macros and in `set` blocks.

    A mark stands before a character that is no white space, so that white space is removed as without it.
    Raises ValueError if Jinja2 reads another text, e.g. one with other line ends.
    """
    parts: list[str] = []
    at = blocks = 0
    word = ""  # of the block that is being read; "=" follows a `set` that is none
    for _, kind, value in environment(Path()).lex(text):
        start = text.index(value, at)
        if text[at:start].strip():
            raise ValueError("a token is not where it should be")
        parts.append(text[at:start])
        at = start + len(value)
        match kind:
            case "block_begin":
                word = ""
            case "name" if not word:
                word = value
                blocks -= value.removeprefix("end") in _BLOCKS and value.startswith("end")
            case "operator" if word == "set" and value == "=":
                word = "="
            case "block_end":
                blocks += word in _BLOCKS
                word = "="
        if (of_blocks or not blocks) and kind in ("data", "variable_begin") and not value.startswith("{{-"):
            number = text.count("\n", 0, start) + 1
            lines = value.split("\n")
            value = "\n".join(re.sub(r"(?=\S)", f"\x01{number + i}\x02", one, count=1) for i, one in enumerate(lines))
        parts.append(value)
    return "".join([*parts, text[at:]])
