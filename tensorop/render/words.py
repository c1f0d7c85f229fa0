"""Encodes text from outside for C, CMake and pkg-config files, so that it is readable there but never code.

Names of boards, labels, strategies and versions come from result files, manifests and models. `encoded` encodes every
text of a context, except the C of tensorop, its templates and primitive sets.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tensorop.errors import SpecError

# Entries of contexts that are C: names, types and code without text from outside.
_CODE_TEXT = """
element vector storage compute compute_vector storage_vector predicate lanes headers support kernel text features model
card_literal label_literal primitives
"""
_CODE = frozenset(_CODE_TEXT.split())
# Characters that end a comment or a literal, or begin another one.
_C = re.compile(r"[^\x20-\x7e]|[\"\\]|/\*|\*/|//")
_BUILD = re.compile(r"[^\x20-\x7e]|[\"'\\`$@#;<>|&()\[\]{}=]")
_WORD = re.compile(r"[A-Za-z0-9_.+-]{0,64}")


def in_c(text: str) -> str:
    """The text as part of a comment or string literal of C, on one line, without trigraphs."""
    return re.sub(r"\?\?+", "?", _C.sub("?", text))


def in_build_file(text: str) -> str:
    """The text as part of a comment, a quoted argument or a value in files of CMake and pkg-config.

    It is also safe in double quotes of a shell.
    """
    return _BUILD.sub("?", text)


def identifier(text: str) -> str:
    """The text as part of an identifier or a file name."""
    return re.sub(r"\W", "_", text, flags=re.ASCII)


def encoded(context: Mapping[str, object]) -> dict[str, object]:
    """A context for C templates, with `in_c` applied to its texts from outside."""
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
