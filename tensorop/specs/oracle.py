"""Checks the results of an operator's oracle against the outputs in operator.yaml."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tensorop.errors import SpecError
from tensorop.model.call import Access, Call
from tensorop.model.contract import Contract
from tensorop.model.problem import Problem


def sound(path: Path, expected: Callable[..., Any]) -> Callable[..., Any]:
    """Wraps the method `expected` of a reference.py: an invalid result raises SpecError."""

    def checked(self: Contract, problem: Problem, given: Call) -> Any:
        found = expected(self, problem, given)
        if wrong := _unsound(self, problem, given, found):
            raise SpecError(f"{path}: method 'expected': {wrong} ({problem.label})")
        return found

    return functools.wraps(expected)(checked)


def _unsound(contract: Contract, problem: Problem, given: Call, found: Any) -> str:
    """The fault of a result of the oracle; empty if it is valid."""
    outputs = {buffer.name: buffer.data.size for buffer in given.buffers if buffer.access in (Access.OUT, Access.INOUT)}
    if not isinstance(found, Mapping) or set(found) != set(outputs):
        got = ", ".join(map(str, found)) if isinstance(found, Mapping) else f"{found!r:.80}"
        return f"expected the outputs {', '.join(outputs)} by their names, got {got or 'none'}"
    outputs |= {name: math.prod(one.shape) for name, one in contract.matrices(problem).items() if name in outputs}
    for name, pair in found.items():
        if not isinstance(pair, tuple) or len(pair) != 2 or not all(isinstance(one, np.ndarray) for one in pair):
            return f"output '{name}': expected two arrays, what it must hold and how far from it, got {pair!r:.80}"
        want, bound = pair
        number = contract.operands[name].number(problem.dtype)
        if want.dtype.kind not in "fiu" or bound.dtype.kind not in "fiu":
            return f"output '{name}': expected arrays of numbers, got {want.dtype} and {bound.dtype}"
        if want.dtype.kind == "f" and np.finfo(want.dtype).nmant + 1 < number.precision:
            return f"output '{name}': expected a type as wide as {number.name} or wider, got {want.dtype}"
        if want.shape != bound.shape:
            return f"output '{name}': expected a bound for each element of {want.shape}, got {bound.shape}"
        if type(contract).stored is Contract.stored and want.size != outputs[name]:
            sides = contract.operands[name].sides(contract.known(problem))
            return f"output '{name}': expected an array of shape {sides} as operator.yaml says, got {want.shape}"
        if not ((bound >= 0) | ~np.isfinite(want)).all():
            return f"output '{name}': expected a bound of 0 or more where a number is wanted, got {bound.min()}"
    return ""
