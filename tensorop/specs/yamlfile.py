"""Reads YAML files and validates them with schemas."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import PydanticKnownError

from tensorop.errors import SpecError
from tensorop.specs import files
from tensorop.specs.jsontext import is_schema
from tensorop.specs.yamltext import parse

T = TypeVar("T")


class Record(BaseModel):
    """The base of all parts of files: unknown keys and other types are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _integer(found: object) -> object:
    """True and 1.0 equal 1 and would be taken for it."""
    if not is_schema(found, 1):
        raise PydanticKnownError("literal_error", {"expected": "1"})
    return found


class File(Record):
    """The base of all whole files."""

    schema_: Annotated[Literal[1], BeforeValidator(_integer)] = Field(alias="schema")


def shared(part: BaseModel, kind: type) -> dict[str, Any]:
    """Values of a part of a file for those fields of a record that have the same names."""
    return {one.name: getattr(part, one.name) for one in fields(kind) if one.name in type(part).model_fields}


def over(own: Mapping[str, object], below: Mapping[str, object], parts: Iterable[str]) -> dict[str, object]:
    """A file's keys over those of the file that it inherits from. parts: keys whose values are merged key by key"""
    out = {**below, **own}
    for key in parts:
        value, under = own.get(key), below.get(key)
        if isinstance(value, dict) and isinstance(under, dict):
            out[key] = {**under, **value}
    return out


def dump(data: dict[str, object]) -> str:
    """A mapping as YAML, keys in their order."""
    text: str = yaml.safe_dump(data, sort_keys=False, allow_unicode=True, width=120, default_flow_style=None)
    return text


def read(path: Path) -> dict[str, object]:
    """The mapping in a file."""
    return parse(files.text(path, files.TEXT), str(path))


_MOST = 20  # faults of a file in one message
_OF_LENGTH = ("too_short", "too_long")
# pydantic's name of a rule -> the expected value, for our messages.
_EXPECTED = {
    "bool_type": "true or false",
    "dataclass_type": "keys with values",
    "dict_type": "keys with values",
    "enum": "{expected}",
    "finite_number": "a finite number",
    "float_parsing": "a number",
    "float_type": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "int_from_float": "an integer",
    "int_parsing": "an integer",
    "int_type": "an integer",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "list_type": "a list",
    "literal_error": "{expected}",
    "model_type": "keys with values",
    "none_required": "nothing",
    "string_pattern_mismatch": "text of the form {pattern}",
    "string_too_long": "at most {max_length} characters",
    "string_too_short": "at least {min_length} characters",
    "string_type": "text",
    "string_unicode": "text without halves of characters",
    "too_long": "at most {max_length} of them",
    "too_short": "at least {min_length} of them",
    "tuple_type": "a list",
}


@cache
def _adapter(schema: Any) -> TypeAdapter[Any]:
    return TypeAdapter(schema)


def validate(schema: type[T], data: Mapping[str, object], origin: str) -> T:
    """Data as a record or a dataclass. Raises SpecError with file, key, expected and actual value."""
    try:
        made: T = _adapter(schema).validate_python(data)  # type: ignore[arg-type]
        return made
    except ValidationError as error:
        found = error.errors()
        inner = {item["loc"][:end] for item in found for end in range(1, len(item["loc"]))}
        # a list's length is wrong because of its refused elements
        faults = [item for item in found if item["type"] not in _OF_LENGTH or item["loc"] not in inner]
        lines = [_explain(schema, item, data, origin) for item in faults[:_MOST]]
        lines += [f"{origin}: {len(faults) - _MOST} faults more"] if len(faults) > _MOST else []
        raise SpecError("\n".join(dict.fromkeys(lines))) from None


def _explain(schema: type, item: Any, data: Any, origin: str) -> str:
    key = ".".join(_path(item["loc"], data))[:200] or "(whole file)"
    kind = item["type"]
    if kind in ("extra_forbidden", "unexpected_keyword_argument"):
        known = _keys(schema, item["loc"][:-1])
        near = difflib.get_close_matches(str(item["loc"][-1]), known, n=1, cutoff=0.6)
        hint = f"did you mean '{near[0]}'? " if near else ""
        return f"{origin}: unknown key '{key}'; {hint}expected one of: {', '.join(sorted(known))}"
    if kind == "missing":
        return f"{origin}: missing key '{key}'"
    if kind == "value_error":  # from `rule`
        message = str(item["ctx"]["error"])
        return f"{origin}: {message}" if not item["loc"] else f"{origin}: key '{key}': {message}"
    expected = _EXPECTED.get(kind, f"what its schema says ({kind})").format(**item.get("ctx", {}))
    return f"{origin}: key '{key}': expected {expected}, got {item['input']!r:.80}"


def _path(loc: tuple[int | str, ...], data: Any) -> Iterator[str]:
    """The place of an error in the file's own keys, without the alternatives of unions that pydantic adds."""
    for number, part in enumerate(loc):
        inside = (isinstance(data, dict) and part in data) or (isinstance(data, list) and isinstance(part, int))
        if inside:
            data = data[part]
        if inside or (number == len(loc) - 1 and isinstance(data, dict)):
            yield str(part)


def _keys(schema: type, path: tuple[int | str, ...]) -> list[str]:
    """The legal keys at a place, as in files (by their alias)."""
    here: Any = schema
    for part in path:
        named = [of[str(part)].annotation for of in _fields(here) if str(part) in of]
        here = named[0] if named else here
    return [field.alias or name for of in _fields(here) for name, field in of.items()]


def _fields(kind: Any) -> Iterator[dict[str, FieldInfo]]:
    """The fields of the record types inside an annotation such as dict[str, X] or X | Y."""
    found = getattr(kind, "__pydantic_fields__", None)
    if found is not None:
        yield found
    else:
        for part in get_args(kind):
            yield from _fields(part)
