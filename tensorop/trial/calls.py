"""What candidates are measured on: the problem of a micro-kernel alone, the inputs of a call, and calls before it.

A tunable may be any number, and the work of rendering, of inputs and of the oracle grows with it: a point is held
against bounds before anything is done for it.
"""

from __future__ import annotations

import math

from tensorop.model.call import Call, Placement
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.target import Target

WARMED = 1e7  # flops up to which a modelled call is preceded by another; larger ones fill the caches several times over
_TWICE = 1e6  # flops up to which by two: the first call of a library asks the processor, the second goes another way
MAX_TILE = 1 << 20  # the product of its sides; twice that of the largest in use, on vectors of 1024 bits
MAX_WORK = 4e9  # arithmetic operations of the problem that a micro-kernel is measured on: seconds of the oracle's time


def warming_calls(flops: float, most: float = WARMED) -> int:
    """How many calls precede a modelled one of so many flops, so that it finds its data and code in the caches."""
    return 2 if flops <= _TWICE else int(flops <= most)


def micro_problem(operator: Operator, platform: Platform, variant: Variant, vlen: int) -> Problem:
    """The first stage's problem of a variant at a VLEN (bits; 0: the platform's first)."""
    dtype = variant.kernel.dtype
    full = instantiate.defaults(operator, platform, dtype, variant.point)
    names = {
        **instantiate.facts(platform, dtype, full),
        **full,
        **variant.template.read_facts,
        "lanes": platform.lanes(dtype, full, vlen),
    }
    dims = {name: evaluate(text, names) for name, text in operator.micro.items()}
    return operator.reference.problem(dtype, dims, operator.micro_layout)


def measured_call(operator: Operator, problem: Problem, seed: Seed, workspace: int) -> Call:
    """The call that is measured: normal inputs, operands page-aligned at their start."""
    return operator.reference.call(problem, seed.stream(2), "normal", Placement.START, workspace)


def tile_refusal(operator: Operator, target: Target, variant: Variant) -> Outcome | None:
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


def work_refusal(operator: Operator, problem: Problem) -> Outcome | None:
    """The refusal of a micro-kernel's problem without elements or with too many operations."""
    if min(map(int, problem.dims.values())) < 1:
        return Outcome(Kind.REFUSED, "bounds", f"it would be measured on {problem.label}, which is empty")
    work = float(operator.reference.work(problem))
    if work > MAX_WORK:
        message = f"it would be measured on {problem.label}, {work:.1e} operations; at most {MAX_WORK:.0e} are done"
        return Outcome(Kind.REFUSED, "bounds", message)
    return None
