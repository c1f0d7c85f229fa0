"""Regions of a template: lines `{# region: NAME #}` mark where each begins.

The marks are taken out when a template is parsed, so they change neither what is rendered nor any digest. A region
lasts to the next mark. One may have several parts. Text before the first mark, or without any, is the region `body`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate, RegionMark
from tensorop.model.steering import ALL, BODY, HEAD, REGIONS

_MARK = re.compile(r"[ \t]*\{#-? *region: *([^#\n]*?) *-?#\}[ \t]*\n?")
MOST_MARKS = 64


def parted(body: str, origin: str) -> tuple[str, tuple[RegionMark, ...]]:
    """The text without its marks, and these. Raises SpecError for a mark with another name."""
    kept: list[str] = []
    marks: list[RegionMark] = []
    for line in body.splitlines(keepends=True):
        if (found := _MARK.fullmatch(line)) is None:
            kept.append(line)
            continue
        if found[1] not in REGIONS:
            raise SpecError(f"{origin}: a mark names the region '{found[1][:40]}'; expected {', '.join(REGIONS)}")
        marks.append(RegionMark(found[1], len(kept)))
    if len(marks) > MOST_MARKS:
        raise SpecError(f"{origin}: {len(marks)} marks of regions; at most {MOST_MARKS} are read")
    return "".join(kept), tuple(marks)


def marked(template: KernelTemplate) -> str:
    """The text with its marks."""
    lines = template.text.splitlines(keepends=True)
    for mark in reversed(template.regions):
        lines.insert(mark.line, f"{{# region: {mark.name} #}}\n")
    return "".join(lines)


def parts(template: KernelTemplate) -> Sequence[tuple[str, str]]:
    """Name and text of each part, in order."""
    lines = template.text.splitlines(keepends=True)
    begins = [(BODY, 0), *((mark.name, mark.line) for mark in template.regions)]
    ends = [line for _, line in begins[1:]] + [len(lines)]
    found = [(name, "".join(lines[begin:end])) for (name, begin), end in zip(begins, ends, strict=True)]
    return [(name, text) for name, text in found if name != BODY or text.strip()]


def names(template: KernelTemplate) -> tuple[str, ...]:
    """The regions of a template's text, each once."""
    return tuple(dict.fromkeys(name for name, _ in parts(template)))


def require_only(region: str, before: KernelTemplate, after: KernelTemplate) -> None:
    """Raises SpecError, naming the regions, if a template differs from the one before outside of a region.

    The head may differ with any region: what a region uses stands there. With the region `head` it alone may.
    """
    if region == ALL or (region == BODY and not before.regions):
        return
    kept, now = ([one for one in parts(of) if one[0] != region] for of in (before, after))
    if kept == now:
        return
    old, new = dict.fromkeys(kept), dict.fromkeys(now)
    changed = [name for name, _ in (*(one for one in old if one not in new), *(one for one in new if one not in old))]
    what = ", ".join(dict.fromkeys(changed)) or "the order of regions"
    allowed = "the head" if region == HEAD else f"the region '{region}' and the head"
    raise SpecError(f"the question allows changes in {allowed} alone, and the answer changes {what}")
