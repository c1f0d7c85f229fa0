"""YAML to plain data, from texts that may be a stranger's: mappings, lists, words, numbers, true, false, null.

Nothing that a text holds costs more than a little work for each of its characters, or raises anything but SpecError
with its line: size, depth and what aliases repeat are bounded, numbers are finite and have 64 bits, no tag and no date
is known (`2024-01-01` and `12:30` are words), keys are words or integers, and none is there twice.
"""

from __future__ import annotations

import contextlib
import math
import re
from typing import Any

import yaml

from tensorop.errors import SpecError

MAX_TEXT = 1 << 20  # characters
MAX_DEPTH = 32
MAX_NODES = 200_000  # with what aliases repeat
MAX_INTEGER = 1 << 63

# libyaml's is ten times as fast: reading every platform's file takes seconds without it.
_Base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_PREFIX = "tag:yaml.org,2002:"
_PLAIN = {
    "null": (r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    "bool": (r"yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF", list("yYnNtTfFoO")),
    "int": (r"[-+]?(?:0|[1-9][0-9_]*|0x[0-9a-fA-F_]+|0b[01_]+)", list("-+0123456789")),
    "float": (
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        list("-+0123456789."),
    ),
    "merge": (r"<<", ["<"]),
}


class _Loader(_Base):  # type: ignore[misc, valid-type]
    """Has the resolvers and constructors below and no other."""

    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}  # noqa: RUF012  PyYAML's own name
    yaml_constructors: dict[str | None, Any] = {}  # noqa: RUF012


def parse(text: str, origin: str, *, aliases: bool = True) -> dict[str, Any]:
    """The mapping in a text. aliases: whether it may have `*name`. Raises SpecError naming origin and line."""
    if len(text) > MAX_TEXT:
        raise SpecError(f"{origin}: {len(text)} characters of YAML; at most {MAX_TEXT} are read")
    try:
        _scan(text, origin, aliases)
        data = yaml.load(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        if mark is not None:
            _limited(text[: mark.index], origin, aliases)
        said = getattr(error, "problem", None) or str(error).splitlines()[0]
        raise _wrong(origin, mark, f"not readable as YAML: {said}") from None
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        raise SpecError(f"{origin}, line {line}: not readable as YAML: half of a character") from None
    if not isinstance(data, dict):
        raise SpecError(f"{origin}: expected a mapping of keys, got {type(data).__name__}")
    return data


def _limited(text: str, origin: str, aliases: bool) -> None:
    """Raises SpecError where a bound of ours is passed before the place at which the parser gave up.

    Parsers have bounds of their own, and read ahead: they give up before the first level is known.
    """
    with contextlib.suppress(yaml.YAMLError):
        _scan(text, origin, aliases)


def _scan(text: str, origin: str, aliases: bool) -> None:
    """Raises SpecError for what must not reach the loader, which calls itself for each level."""
    documents = 0
    sizes = [0]  # nodes below each open node, aliases counted as what they repeat
    names: list[str | None] = []
    anchored: dict[str, int] = {}
    for event in yaml.parse(text, Loader=_Base):
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                raise _wrong(origin, event.start_mark, "a second document begins here; expected one")
        elif isinstance(event, yaml.AliasEvent):
            if not aliases:
                raise _wrong(origin, event.start_mark, "anchors are not allowed here")
            name = str(event.anchor)
            if name not in anchored and name in names:
                raise _wrong(origin, event.start_mark, f"'{name}' holds itself")
            if name not in anchored:
                raise _wrong(origin, event.start_mark, f"'*{name}' stands for nothing: no '&{name}' is above it")
            sizes[-1] += anchored[name]
        elif isinstance(event, yaml.NodeEvent):
            tag = getattr(event, "tag", None)
            if tag is not None:
                raise _wrong(origin, event.start_mark, f"the tag {tag!r:.60} is not known; no tag is")
            if isinstance(event, yaml.ScalarEvent):
                sizes[-1] += 1
                if event.anchor:
                    anchored[event.anchor] = 1
            else:
                sizes.append(1)
                names.append(event.anchor)
        elif isinstance(event, yaml.CollectionEndEvent):
            size, closed = sizes.pop(), names.pop()
            sizes[-1] += size
            if closed:
                anchored[closed] = size
        if len(names) > MAX_DEPTH:
            raise _wrong(origin, event.start_mark, f"nested more than {MAX_DEPTH} deep")
        if sizes[-1] > MAX_NODES:
            raise _wrong(origin, event.start_mark, f"more than {MAX_NODES} values, with what aliases repeat")


def _wrong(origin: str, mark: Any, what: str) -> SpecError:
    line = f", line {mark.line + 1}" if mark is not None else ""
    return SpecError(f"{origin}{line}: {what}")


def _refused(node: yaml.Node, what: str) -> yaml.YAMLError:
    return yaml.constructor.ConstructorError(None, None, what, node.start_mark)


def _integer(loader: Any, node: yaml.ScalarNode) -> int:
    digits = str(node.value).replace("_", "").lower()
    if len(digits) > 66:
        raise _refused(node, f"an integer of {len(digits)} digits")
    sign, bare = (-1 if digits[0] == "-" else 1), digits.lstrip("+-")
    base = {"0x": 16, "0b": 2}.get(bare[:2], 10)
    try:
        value = sign * int(bare, base)
    except ValueError:
        raise _refused(node, f"'{node.value}' is no number") from None
    if not -MAX_INTEGER <= value < MAX_INTEGER:
        raise _refused(node, f"{node.value} is beyond 64 bits")
    return value


def _real(loader: Any, node: yaml.ScalarNode) -> float:
    try:
        value = float(str(node.value).replace("_", ""))
    except ValueError:  # .inf, .nan
        value = math.nan
    if not math.isfinite(value):
        raise _refused(node, f"{node.value[:40]} is no finite number")
    return value


def _mapping(loader: Any, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    """A key given twice is a mistake, not the last one wins."""
    seen: set[Any] = set()
    for key_node, _ in node.value:
        if key_node.tag == f"{_PREFIX}merge":
            continue
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, str | int) or isinstance(key, bool):
            raise _refused(key_node, f"{key!r:.60} is no key; expected a word or an integer")
        if key in seen:
            raise _refused(key_node, f"key '{key}' stands twice")
        seen.add(key)
    return dict(yaml.SafeLoader.construct_mapping(loader, node, True))


def _list(loader: Any, node: yaml.SequenceNode) -> list[Any]:
    return list(loader.construct_sequence(node, deep=True))


def _unknown(loader: Any, node: yaml.Node) -> Any:
    raise _refused(node, f"the tag {node.tag!r:.60} is not known; no tag is")


for _kind, (_text, _first) in _PLAIN.items():
    _Loader.add_implicit_resolver(f"{_PREFIX}{_kind}", re.compile(f"(?:{_text})\\Z"), _first)
for _kind, _construct in (
    ("null", _Loader.construct_yaml_null),
    ("bool", _Loader.construct_yaml_bool),
    ("int", _integer),
    ("float", _real),
    ("str", _Loader.construct_yaml_str),
    ("seq", _list),
    ("map", _mapping),
):
    _Loader.add_constructor(f"{_PREFIX}{_kind}", _construct)
_Loader.add_constructor(None, _unknown)
