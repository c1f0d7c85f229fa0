"""The sub-packages that tensorop can do without, found by folder; no import statement of the core names one.

    calibration/   constants of a board model from figures of the board     constants.py, board.py
    cluster/       trials on the workers of a Dask cluster                  crew.py
    kits/          tuning kits for machines without tensorop                commands.py, here.py, on_device.py

A part's folder may be absent: then the rest works, and what needs the part says so.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from types import ModuleType

from tensorop import paths
from tensorop.errors import MissingTool


def offered(module: str) -> Iterator[ModuleType]:
    """The modules of this name of all parts that are here."""
    for path in sorted(paths.package_dir().glob(f"*/{module}.py")):
        yield importlib.import_module(f"tensorop.{path.parent.name}.{module}")


def require(part: str, module: str, purpose: str) -> ModuleType:
    """A module of a part. purpose: what the user asked for, for the message. Raises MissingTool without the part."""
    if not (paths.package_dir() / part / f"{module}.py").is_file():
        raise MissingTool(
            f"{purpose} needs the sub-package tensorop.{part}, which is absent here",
            hint="pip install --force-reinstall tensorop-tuner brings it",
        )
    return importlib.import_module(f"tensorop.{part}.{module}")
