"""The BLAS routines of a product, as its templates see them: from the table of routines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorop.blas.routines import LETTERS, Argument, BlasRoutine, Role, routines
from tensorop.errors import SpecError
from tensorop.specs.products import RoutineSpec

_FIRST = {"side": "TENSOROP_LEFT", "trans": "TENSOROP_NO_TRANS"}


def described(of: Mapping[str, RoutineSpec]) -> list[dict[str, Any]]:
    """For each routine its name, sentence, arguments and flags, and how a row-major call becomes a column-major one.

    given: for each argument's number in the column-major call (the layout is number 1) that in the row-major call
    """
    return [_described(_known(name), one) for name, one in of.items()]


def _known(name: str) -> BlasRoutine:
    if name not in routines():
        raise SpecError(f"product.yaml: key 'routines': expected names of tensorop/blas/routines.yaml, got '{name}'")
    return routines()[name]


def _described(routine: BlasRoutine, spec: RoutineSpec) -> dict[str, Any]:
    names = [one.name for one in routine.arguments]
    arguments = {one.name: _argument(routine, one) for one in routine.arguments}
    row = [(word.removeprefix("~"), word.startswith("~")) for word in spec.row_major.split()]
    return {
        "name": routine.name,
        "computes": spec.computes,
        "arguments": list(arguments.values()),
        "flags": [one.name for one in routine.of_role(Role.FLAG)],
        "row": [{**arguments[name], "other": other} for name, other in row],
        "given": [0, 1, *(names.index(name) + 2 for name, _ in row)],
    }


def _argument(routine: BlasRoutine, one: Argument) -> dict[str, Any]:
    kind = "trans" if one.name.startswith("trans") else one.name
    made = {"name": one.name, "role": one.role.value, "kind": kind, "number": routine.number(one.name) + 1}
    if one.role is Role.FLAG:
        made["letters"] = LETTERS[one.name]
    if one.role is Role.OPERAND:
        made["written"] = routine.operands[one.name].written
    if one.role is Role.LEADING:
        of = routine.operands[one.of]
        lines = [part.split()[0] for part in of.sizes.split("|")]
        by = "trans" if of.by.startswith("trans") else of.by
        made["lines"] = f"{of.by} == {_FIRST[by]} ? {lines[0]} : {lines[1]}" if len(lines) > 1 else lines[0]
    return made
