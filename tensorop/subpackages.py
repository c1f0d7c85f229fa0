"""Finds the optional sub-packages by folder; no import statement of the core names one.

Without a folder the rest works. A feature that needs the sub-package then fails with one line.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from tensorop import paths
from tensorop.errors import MissingTool

# Folder -> modules that the core asks for. `backend` has a class Backend(Target), `commands` has click COMMANDS.
OFFERS = {
    "calibration": ("board", "constants"),  # constants of a board model, from figures of the board
    "cluster": ("crew",),  # trials on the workers of a Dask cluster
    "cuda": ("backend",),  # products for NVIDIA GPUs
    "kits": ("commands", "here"),  # measuring a product on a machine without tensorop
}
BACKENDS = tuple(folder for folder, modules in OFFERS.items() if "backend" in modules)


def file(folder: str, module: str) -> Path:
    """The path of a sub-package's module; it does not exist if the sub-package is absent."""
    return paths.package_dir() / folder / f"{module}.py"


def offered(module: str) -> Iterator[ModuleType]:
    """The modules of this name in all sub-packages that are present."""
    for folder, modules in OFFERS.items():
        if module in modules and file(folder, module).is_file():
            yield importlib.import_module(f"tensorop.{folder}.{module}")


def require(folder: str, module: str, purpose: str) -> ModuleType:
    """A module of a sub-package. Raises MissingTool if it is absent. purpose: the user's request, for the message."""
    if not file(folder, module).is_file():
        raise MissingTool(
            f"{purpose} needs the sub-package tensorop.{folder}, which is not installed",
            hint="install tensorop again (docs/how-to/install.md)",
        )
    return importlib.import_module(f"tensorop.{folder}.{module}")
