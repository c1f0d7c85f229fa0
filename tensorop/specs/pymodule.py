"""Loads Python plug-ins by path, and checks their class against its base class, the contract."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Collection
from pathlib import Path
from types import ModuleType
from typing import Any

from tensorop.errors import SpecError, TensoropError, UsageError, of_system
from tensorop.specs import files


def load(path: Path, name: str) -> ModuleType:
    """The module of a file, which may import files beside it: `from .inputs import matrices`.

    name: of the package that the files of this folder are. Raises UsageError if an import is not installed,
    SpecError if the file fails.
    """
    with of_system(SpecError, f"{path} cannot be read"):
        files.require(path, files.TEXT)
    for other in [one for one in sys.modules if one.startswith(f"{name}.")]:
        del sys.modules[other]  # of another folder
    sys.modules[name] = ModuleType(name)
    sys.modules[name].__path__ = [str(path.parent)]
    name = f"{name}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look up their module there
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise UsageError(f"{path}: {error}", hint="install the package that it imports") from error
    except Exception as error:
        fault = f"{type(error).__name__}: {error}"
        raise SpecError(f"{path}{_line(path, error)} fails on import: {fault}") from error
    return module


def derived(path: Path, module: ModuleType, base: Any) -> Any:
    """The module's only class that is derived from `base`. Raises SpecError."""
    kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and kind.__module__ == module.__name__]
    own = [kind for kind in kinds if issubclass(kind, base)]
    if len(own) != 1:
        raise SpecError(f"{path}: expected one class derived from {base.__module__}.{base.__name__}, got {len(own)}")
    return own[0]


def check_methods(path: Path, kind: Any, base: Any, required: Collection[str]) -> None:
    """Raises SpecError if a method cannot be called like the contract's. required: methods that it must define"""
    for name, wanted in inspect.getmembers(base, inspect.isroutine):
        inherited = inspect.getattr_static(kind, name) is inspect.getattr_static(base, name)
        if name.startswith("_") or (inherited and name not in required):
            continue
        found, asked = getattr(kind, name), inspect.signature(wanted)
        got = inspect.signature(found) if callable(found) else repr(found)
        if inherited or not callable(found) or not _takes(found, asked):
            have = "no such method" if inherited else got
            raise SpecError(f"{path}: class '{kind.__name__}': expected the method {name}{asked}, got {have}")


def name_faults(path: Path, kind: Any) -> None:
    """Changes the methods of the class: exceptions other than our own errors become SpecError.

    Its message has file, line and method.
    """
    for name, method in list(vars(kind).items()):
        if inspect.isfunction(method):
            setattr(kind, name, _named(path, name, method))


def _named(path: Path, name: str, method: Any) -> Any:
    @functools.wraps(method)
    def call(*args: Any, **given: Any) -> Any:
        try:
            return method(*args, **given)
        except (TensoropError, MemoryError):
            raise
        except Exception as error:
            fault = f"{type(error).__name__}: {error}"
            raise SpecError(f"{path}{_line(path, error)}: method '{name}': {fault}") from error

    return call


def _line(path: Path, error: Exception) -> str:
    lines = [frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
    return f":{lines[-1]}" if lines else ""


def _takes(found: Any, asked: inspect.Signature) -> bool:
    """Whether a method accepts calls with this signature."""
    own = inspect.signature(found).parameters
    shared = [name for name in own if name in asked.parameters]
    more = [one for name, one in own.items() if name not in asked.parameters and one.default is one.empty]
    return shared == list(asked.parameters) and not more
