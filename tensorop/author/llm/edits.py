"""Edits of a known text in an answer: search and replace blocks, applied exactly or refused."""

from __future__ import annotations

import re

from tensorop.errors import SpecError

_BEGIN, _MIDDLE, _END = "<<<<<<< SEARCH", "=======", ">>>>>>> REPLACE"
_SHOWN = 80  # characters of a text in a message


def edited(answer: str, current: str) -> str | None:
    """The text `current` after the edits of an answer, in their order; None if the answer has no edit.

    Raises SpecError for a block without its end, and for one whose text is not in `current` exactly once.
    """
    lines = re.split(r"\r?\n", answer)
    found = None
    number = 0
    while number < len(lines):
        if lines[number].strip() != _BEGIN:
            number += 1
            continue
        middle, end = _next(lines, _MIDDLE, number), _next(lines, _END, number)
        if middle is None or end is None or middle > end:
            raise SpecError(f"an edit in the answer begins with '{_BEGIN}' and lacks '{_MIDDLE}' or '{_END}'")
        text = current if found is None else found
        found = _replaced(text, "\n".join(lines[number + 1 : middle]), "\n".join(lines[middle + 1 : end]))
        number = end + 1
    return found


def _next(lines: list[str], mark: str, after: int) -> int | None:
    return next((number for number in range(after + 1, len(lines)) if lines[number].strip() == mark), None)


def _replaced(text: str, search: str, by: str) -> str:
    if not search.strip():
        raise SpecError("an edit in the answer searches for an empty text")
    if (count := text.count(search)) != 1:
        where = "is not in the template" if count == 0 else f"is {count} times in the template"
        raise SpecError(f"an edit in the answer does not apply: its text {where}: {search.strip()[:_SHOWN]!r}")
    return text.replace(search, by)
