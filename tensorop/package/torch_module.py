"""Modules that register operators of PyTorch, which a process does once."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import ModuleType

from tensorop.provision import baseline
from tensorop.specs import pymodule


@cache
def load(path: Path) -> ModuleType:
    """The module of a file. Raises MissingTool without PyTorch."""
    baseline.TORCH.bring()
    return pymodule.load(path, f"_tensorop_{path.parent.name}_torch")
