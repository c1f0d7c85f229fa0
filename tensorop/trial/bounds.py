"""What a point of a template asks of renderer and judge, held against bounds before anything is done for it.

A tunable may be any number, and the work of rendering, of inputs and of the oracle grows with it.
"""

from __future__ import annotations

import math

from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate
from tensorop.target import Target

MAX_TILE = 1 << 20  # the product of its sides; twice that of the largest in use, on vectors of 1024 bits
MAX_WORK = 4e9  # arithmetic operations of the problem that a micro-kernel is measured on: seconds of the oracle's time


def check(operator: Operator, target: Target, variant: Variant) -> Outcome | None:
    """The refusal of a variant whose micro-tile is empty or too large, at any VLEN; None for all others.

    Raises what the operator's own `tile` raises for tunables that it does not know.
    """
    point = variant.point
    for vlen in dict.fromkeys((*target.vlens, *target.verify_vlens)):
        sides = instantiate.tile(operator, target.platform, variant.kernel, vlen)
        shown = "x".join(f"{name}={size}" for name, size in sides.items())
        if min(sides.values()) < 1:
            return Outcome(Kind.REFUSED, "bounds", f"its tile at {point} has no elements: {shown}")
        if math.prod(sides.values()) > MAX_TILE:
            return Outcome(
                Kind.REFUSED, "bounds", f"its tile at {point} has sides of more than {MAX_TILE} together: {shown}"
            )
    return None


def affordable(operator: Operator, problem: Problem) -> Outcome | None:
    """The refusal of a micro-kernel's problem without elements or with too many operations."""
    if min(map(int, problem.dims.values())) < 1:
        return Outcome(Kind.REFUSED, "bounds", f"it would be measured on {problem.label}, which is empty")
    work = float(operator.reference.work(problem))
    if work > MAX_WORK:
        said = f"it would be measured on {problem.label}, {work:.1e} operations; at most {MAX_WORK:.0e} are done"
        return Outcome(Kind.REFUSED, "bounds", said)
    return None
