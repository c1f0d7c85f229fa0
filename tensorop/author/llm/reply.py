"""Finding the draft in an answer."""

from __future__ import annotations

import re

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n`]*\n(.*?)^\1[ \t]*$", re.DOTALL | re.MULTILINE)


def draft_text(answer: str) -> str:
    """The fenced block that starts with a head, else the only block, else the whole answer."""
    text = re.sub(r"<think>.*?</think>", "", answer, flags=re.DOTALL).replace("\r\n", "\n")
    blocks = [match[2] for match in _FENCE.finditer(text)]
    headed = [block for block in blocks if block.lstrip().startswith("---")]
    if headed:
        return headed[-1]
    return blocks[0] if len(blocks) == 1 else text
