"""Reads `device/counted.yaml` of an operator: what a counted kernel costs, and the problem on which it is counted."""

from __future__ import annotations

from tensorop.model.operator import Operator
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File


class CostModelFile(File):
    model: dict[str, str]  # expressions over counts, a kernel's numbers and the call
    problem: dict[str, str]  # dim -> expression over a kernel's numbers, `steps` and `counters`: one block computes it


def cost_model(operator: Operator) -> CostModelFile:
    """Raises SpecError for an operator without the file."""
    path = operator.folder / "device" / "counted.yaml"
    return yamlfile.validate(CostModelFile, yamlfile.read(path), str(path))
