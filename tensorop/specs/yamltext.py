"""Parses untrusted YAML to plain data: mappings, lists, strings, numbers, true, false, null.

The work is linear in the length of the text. Size, depth and expansion of aliases are bounded. Faults raise SpecError
with the line. Numbers are finite and within 64 bits. Tags are refused. `2024-01-01` and `12:30` are strings. Keys are
strings or integers, and each occurs once.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

import yaml

from tensorop.errors import SpecError

MAX_TEXT = 1 << 20  # characters
MAX_DEPTH = 32
MAX_NODES = 200_000  # after expansion of aliases
MAX_INTEGER = 1 << 63

# libyaml's loader is ten times as fast; without it, reading all platform files takes seconds.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS: dict[str, bool | None] = {
    **{form: None for word in ("", "~", "null") for form in (word, word.title(), word.upper())},
    **{form: True for word in ("yes", "true", "on") for form in (word, word.title(), word.upper())},
    **{form: False for word in ("no", "false", "off") for form in (word, word.title(), word.upper())},
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0b[01_]+)")
_REAL = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)"
    r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_MERGE = "<<"


def parse(text: str, origin: str, *, aliases: bool = True) -> dict[str, object]:
    """The mapping in a text. Raises SpecError with origin and line. aliases: whether `*name` is allowed"""
    if len(text) > MAX_TEXT:
        raise SpecError(f"{origin}: the YAML has {len(text)} characters; at most {MAX_TEXT} are allowed")
    try:
        data = _Reader(text, origin, aliases).document()
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None:  # libyaml has own bounds and reads ahead: check ours up to there first
            with contextlib.suppress(yaml.YAMLError):
                _Reader(text[: mark.index], origin, aliases).document()
        problem = getattr(error, "problem", None) or str(error).splitlines()[0]
        line = f", line {mark.line + 1}" if mark is not None else ""
        raise SpecError(f"{origin}{line}: not readable as YAML: {problem}") from None
    except UnicodeEncodeError as error:
        number = text.count("\n", 0, error.start) + 1
        raise SpecError(f"{origin}, line {number}: not readable as YAML: invalid Unicode (a lone surrogate)") from None
    if not isinstance(data, dict):
        raise SpecError(f"{origin}: expected a mapping of keys, got {type(data).__name__}")
    return data


class _Reader:
    """Builds the data of a text and checks the bounds. The recursion is at most MAX_DEPTH deep."""

    def __init__(self, text: str, origin: str, aliases: bool) -> None:
        self._events: Iterator[Any] = yaml.parse(text, Loader=_Loader)
        self._origin = origin
        self._aliases = aliases
        # name -> (value, number of nodes); None while its value is being read
        self._anchors: dict[str, tuple[Any, int] | None] = {}
        self._nodes = 0  # nodes so far, with aliases expanded
        self._depth = 0

    def document(self) -> Any:
        data, documents = None, 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise self._refused(event, "a second document begins here; expected one")
                data = self._node(next(self._events))
        return data

    def _node(self, event: Any) -> Any:
        if self._nodes >= MAX_NODES:
            raise self._refused(event, f"more than {MAX_NODES} values, including those that aliases repeat")
        if isinstance(event, yaml.AliasEvent):
            value, nodes = self._repeated(event)
            self._nodes += nodes
            return value
        if event.tag is not None:
            raise self._refused(event, f"the tag {event.tag!r:.60} is not allowed; no tags are")
        if event.anchor in self._anchors:
            raise self._refused(event, f"the anchor '{event.anchor}' appears twice")
        before = self._nodes
        self._nodes += 1
        if event.anchor:
            self._anchors[event.anchor] = None
        if isinstance(event, yaml.ScalarEvent):
            value = self._scalar(event) if event.implicit[0] else event.value
        else:
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise self._refused(event, f"nested more than {MAX_DEPTH} deep")
            is_list = isinstance(event, yaml.SequenceStartEvent)
            value = [self._node(inner) for inner in self._inside()] if is_list else self._mapping()
            self._depth -= 1
        if event.anchor:
            self._anchors[event.anchor] = value, self._nodes - before
        return value

    def _inside(self) -> Iterator[Any]:
        """The first events of a list's or mapping's parts, up to its end."""
        for event in self._events:
            if isinstance(event, yaml.CollectionEndEvent):
                return
            yield event

    def _mapping(self) -> dict[Any, Any]:
        """A mapping. A duplicate key is an error."""
        own: dict[Any, Any] = {}
        merged: dict[Any, Any] = {}
        for event in self._inside():
            if isinstance(event, yaml.ScalarEvent) and event.implicit[0] and event.value == _MERGE:
                value = self._node(next(self._events))
                parts = value if isinstance(value, list) else [value]
                if not all(isinstance(part, dict) for part in parts):
                    raise self._refused(event, f"expected a mapping, or a list of mappings, behind '{_MERGE}'")
                for part in reversed(parts):
                    merged |= part
                continue
            key = self._node(event)
            if not isinstance(key, str | int) or isinstance(key, bool):
                raise self._refused(event, f"expected a word or an integer as key, got {key!r:.60}")
            if key in own:
                raise self._refused(event, f"key '{key}' appears twice")
            own[key] = self._node(next(self._events))
        return {**merged, **own}

    def _repeated(self, event: Any) -> tuple[Any, int]:
        """The value of an alias, and its number of nodes."""
        if not self._aliases:
            raise self._refused(event, "anchors are not allowed here")
        name = event.anchor
        if name not in self._anchors:
            raise self._refused(event, f"'*{name}' refers to nothing: there is no '&{name}' above it")
        if (found := self._anchors[name]) is None:
            raise self._refused(event, f"'{name}' contains itself")
        return found

    def _scalar(self, event: Any) -> Any:
        """The value of a scalar without quotes."""
        word, digits = event.value, event.value.replace("_", "").lower()
        if word in _WORDS:
            return _WORDS[word]
        if word == _MERGE:
            raise self._refused(event, f"'{_MERGE}' is allowed only as a key")
        value: int | float
        try:
            if _INTEGER.fullmatch(word):
                if len(digits) > 66:
                    raise self._refused(event, f"an integer of {len(digits)} digits")
                value = int(digits, {"0x": 16, "0b": 2}.get(digits.lstrip("+-")[:2], 10))
                if not -MAX_INTEGER <= value < MAX_INTEGER:
                    raise self._refused(event, f"{word} does not fit in 64 bits")
            elif _REAL.fullmatch(word):
                value = math.nan if digits.endswith(("inf", "nan")) else float(digits)
                if not math.isfinite(value):
                    raise self._refused(event, f"expected a finite number, got {word:.40}")
            else:
                return word
        except ValueError:
            raise self._refused(event, f"expected a number, got '{word:.40}'") from None
        return value

    def _refused(self, event: Any, what: str) -> SpecError:
        return SpecError(f"{self._origin}, line {event.start_mark.line + 1}: {what}")
