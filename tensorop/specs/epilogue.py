"""An operator's calls with an epilogue on processors: the operator by which libraries with epilogues are verified."""

from __future__ import annotations

from pathlib import Path

from tensorop.model.operator import Operator
from tensorop.specs import operators

NAME = "with_epilogue"  # and the subfolder of the operator's folder


def of(operator: Operator, plugins: tuple[Path, ...] = ()) -> Operator | None:
    """None if its libraries for processors have none."""
    folder = operator.folder / NAME
    served = operator.extension is None and (folder / "operator.yaml").is_file()
    return operators.load(NAME, plugins, folder) if served else None
