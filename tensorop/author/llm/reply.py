"""Finding the template in an answer, in time that grows with its length and no faster."""

from __future__ import annotations

import re
from bisect import bisect_right

_OPENING = re.compile(r"(`{3,}+|~{3,}+)[^`]*+\Z")
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|seed:think)>|\[(/?)THINK\]|◁(/?)think▷")
_FINAL = re.compile(r"<\|channel\|>final(?:[^<]{0,40})<\|message\|>")  # of models that write each part on a channel
_END = re.compile(r"<\|(?:return|end|call)\|>")


def template_text(answer: str) -> str:
    """The last fenced block that starts with a head, else the only block, else the whole answer."""
    text = _spoken(answer).replace("\r\n", "\n")
    blocks = _blocks(text)
    headed = [block for block in blocks if block.lstrip().startswith("---")]
    if headed:
        return headed[-1]
    return blocks[0] if len(blocks) == 1 else text


def _spoken(answer: str) -> str:
    """The answer without what a model says to itself; a thought that does not end stays. One that only ends began with
    the answer, where a server's template opens it."""
    if final := _FINAL.search(answer):
        answer = _END.split(answer[final.end() :], maxsplit=1)[0]
    kept: list[str] = []
    at, begun, last = 0, None, len(answer.rstrip())
    for mark in _THOUGHT.finditer(answer):
        if not any(mark.groups()):
            begun = mark.start() if begun is None else begun
        elif begun is not None:
            kept.append(answer[at:begun])
            at, begun = mark.end(), None
        elif mark.end() < last:
            kept, at = [], mark.end()
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
