"""Operators that are another one with a larger product: their file, and their calls from Python."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType

from pydantic import Field

from tensorop.errors import SpecError, UsageError
from tensorop.model.operator import Operator
from tensorop.specs import pymodule, yamlfile
from tensorop.specs.yamlfile import File


class ExtensionSpec(File):
    """The whole file."""

    name: str
    extends: str
    description: str
    dtypes: tuple[str, ...] = Field(min_length=1, strict=False)


def extended(name: str, path: Path, given: Mapping[str, object], load: Callable[[str], Operator]) -> Operator:
    """The operator that a file extends, for some of its dtypes and for CPUs, with the product of the file's folder.

    load: an operator by name. Raises SpecError with file, key and the expected value.
    """
    spec = yamlfile.validate(ExtensionSpec, given, str(path))
    if spec.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}' as the folder is called, got '{spec.name}'")
    if spec.extends == name:
        raise SpecError(f"{path}: key 'extends': expected another operator, got '{name}'")
    try:
        base = load(spec.extends)
    except UsageError as error:
        raise SpecError(f"{path}: key 'extends': {error.message}", hint=error.hint) from error
    if base.extension is not None:
        raise SpecError(f"{path}: key 'extends': expected an operator that extends no other, got '{spec.extends}'")
    if unknown := [dtype for dtype in spec.dtypes if dtype not in base.dtypes]:
        raise SpecError(f"{path}: key 'dtypes': expected some of {', '.join(base.dtypes)}, got '{unknown[0]}'")
    described = replace(base, name=name, description=spec.description, dtypes=spec.dtypes)
    return replace(described, device=None, extension=path.parent)


def calls(operator: Operator) -> ModuleType | None:
    """The binding.py of an extension, with the calls that it adds; None if it has none."""
    path = None if operator.extension is None else operator.extension / "binding.py"
    return None if path is None or not os.path.lexists(path) else _module(path)


@cache
def _module(path: Path) -> ModuleType:
    return pymodule.load(path, f"_tensorop_extension_{path.parent.name}")
