"""Text from outside where it is filled into C, CMake and pkg-config files: something to read, never code.

Names of boards, labels, strategies and versions come from result files, manifests and models. `encoded` treats every
text of a context so, but those that are C of tensorop, its templates and primitive sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tensorop.errors import SpecError

# The texts of contexts that are C: names, types and code that no text from outside is a part of.
_CODE_TEXT = """
element vector storage compute compute_vector storage_vector predicate lanes headers support kernel text features model
card_literal label_literal primitives
"""
_CODE = frozenset(_CODE_TEXT.split())
# What ends a comment or a literal, or begins another one.
_C = re.compile(r"[^\x20-\x7e]|[\"\\]|/\*|\*/|//")
_BUILD = re.compile(r"[^\x20-\x7e]|[\"'\\`$@#;<>|&()\[\]{}=]")
_WORD = re.compile(r"[A-Za-z0-9_.+-]{0,64}")


def in_c(text: str) -> str:
    """The text as a part of a comment or of a string literal of C, on one line, without trigraphs."""
    return re.sub(r"\?\?+", "?", _C.sub("?", text))


def in_build_file(text: str) -> str:
    """The text as a part of a comment, a quoted argument or a value in files of CMake and pkg-config, and in
    double quotes of a shell."""
    return _BUILD.sub("?", text)


def identifier(text: str) -> str:
    """The text as a part of an identifier or of a file's name."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)


def encoded(context: Mapping[str, object]) -> dict[str, object]:
    """A context of C templates whose texts from outside are as `in_c` leaves them."""
    return {name: value if name in _CODE else _encoded(value) for name, value in context.items()}


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        return in_c(value)
    if isinstance(value, Mapping):
        return encoded(value)
    if isinstance(value, list | tuple):
        return [_encoded(one) for one in value]
    return value


def value(name: str, chosen: int | str) -> int | str:
    """The value of a tunable, which templates write as C: a number or a word. Raises SpecError for anything else."""
    if isinstance(chosen, int) or (isinstance(chosen, str) and _WORD.fullmatch(chosen)):
        return chosen
    raise SpecError(f"tunable '{name}': expected a number or a word, got {chosen!r:.80}")
