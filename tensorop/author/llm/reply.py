"""Finding the template in an answer, in time that grows with its length and no faster."""

from __future__ import annotations

import re
from bisect import bisect_right

_OPENING = re.compile(r"(`{3,}|~{3,})[^`]*\Z")
_THINK, _THOUGHT = "<think>", "</think>"


def template_text(answer: str) -> str:
    """The last fenced block that starts with a head, else the only block, else the whole answer."""
    text = _spoken(answer).replace("\r\n", "\n")
    blocks = _blocks(text)
    headed = [block for block in blocks if block.lstrip().startswith("---")]
    if headed:
        return headed[-1]
    return blocks[0] if len(blocks) == 1 else text


def _spoken(answer: str) -> str:
    """The answer without what a model says to itself; a thought that does not end stays."""
    kept: list[str] = []
    at = 0
    while (begin := answer.find(_THINK, at)) >= 0 and (end := answer.find(_THOUGHT, begin)) >= 0:
        kept.append(answer[at:begin])
        at = end + len(_THOUGHT)
    return "".join([*kept, answer[at:]])


def _blocks(text: str) -> list[str]:
    """What is between a line that opens a fence and the next line that is that fence alone."""
    lines = text.split("\n")
    closing: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        bare = line.rstrip(" \t")
        if len(bare) > 2 and bare[0] in "`~" and bare == bare[0] * len(bare):
            closing.setdefault(bare, []).append(number)
    blocks: list[str] = []
    number = 0
    while number < len(lines):
        opening = _OPENING.match(lines[number])
        ends = closing.get(opening[1], []) if opening else []
        place = bisect_right(ends, number)
        if place < len(ends):
            blocks.append("".join(f"{line}\n" for line in lines[number + 1 : ends[place]]))
            number = ends[place]
        number += 1
    return blocks
