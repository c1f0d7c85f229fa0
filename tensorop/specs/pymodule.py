"""Python of plug-in folders, loaded by its path."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

from tensorop.errors import SpecError, UsageError


def load(path: Path, name: str) -> ModuleType:
    """The module of a file. Raises UsageError where something it imports is not installed, SpecError where it fails."""
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise SpecError(f"{path} cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    except ImportError as error:
        raise UsageError(f"{path}: {error}", hint="install what it imports, or choose another") from error
    except Exception as error:
        raise SpecError(f"{path} fails while it is loaded: {type(error).__name__}: {error}") from error
    return module
