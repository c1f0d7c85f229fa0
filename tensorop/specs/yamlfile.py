"""Reads a YAML file and holds it against its schema; the only importer of yaml beside frontmatter."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError

from tensorop.errors import SpecError

M = TypeVar("M", bound=BaseModel)


class _UniqueKeys(yaml.SafeLoader):
    """A key given twice is a mistake, not the last one wins."""


def _mapping(loader: _UniqueKeys, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
    seen: set[Any] = set()
    for key_node, _ in node.value:
        key = loader.construct_object(key_node, deep=True)  # type: ignore[no-untyped-call]
        if key in seen:
            raise yaml.constructor.ConstructorError(None, None, f"key '{key}' stands twice", key_node.start_mark)
        seen.add(key)
    return yaml.SafeLoader.construct_mapping(loader, node, deep)


_UniqueKeys.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def parse(text: str, origin: str) -> dict[str, Any]:
    """A YAML mapping; raises SpecError naming origin and line."""
    try:
        data = yaml.load(text, Loader=_UniqueKeys)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        raise SpecError(f"{origin}{line}: not readable as YAML: {getattr(error, 'problem', error)}") from None
    if not isinstance(data, dict):
        raise SpecError(f"{origin}: expected a mapping of keys, got {type(data).__name__}")
    return data


def read(path: Path) -> dict[str, Any]:
    """The mapping in a file."""
    try:
        return parse(path.read_text(encoding="utf-8"), str(path))
    except OSError as error:
        raise SpecError(f"{path}: cannot be read: {error.strerror}") from None


def validate(schema: type[M], data: dict[str, Any], origin: str) -> M:
    """Data as a schema's record; raises SpecError with file, key, what was expected and what stood there."""
    try:
        return schema.model_validate(data)
    except ValidationError as error:
        lines = [_explain(schema, item, origin) for item in error.errors()]
        raise SpecError("\n".join(lines)) from None


def _explain(schema: type[BaseModel], item: Any, origin: str) -> str:
    key = ".".join(str(part) for part in item["loc"]) or "(whole file)"
    kind = item["type"]
    if kind == "extra_forbidden":
        known = ", ".join(sorted(schema.model_fields)) if len(item["loc"]) == 1 else "see docs/formats.md"
        return f"{origin}: unknown key '{key}'; expected one of: {known}"
    if kind == "missing":
        return f"{origin}: missing key '{key}'"
    return f"{origin}: key '{key}': {item['msg'][0].lower()}{item['msg'][1:]}, got {item['input']!r:.80}"
