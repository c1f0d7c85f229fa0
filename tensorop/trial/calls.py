"""The calls that candidates are measured on, and bounds on their work.

A template's tunable may be any number. Rendering, inputs and the oracle take time that grows with it, so a point is
checked against bounds first.
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
from tensorop.verify.answers import MEASURED

WARMED = 1e7  # flops; a smaller modelled call is preceded by a warming call; larger ones fill the caches themselves
_TWICE = 1e6  # flops; two warming calls precede a smaller one, since a library's first call also detects the processor
MAX_TILE = 1 << 20  # elements; twice the largest tile in use, with vectors of 1024 bits
MAX_WORK = 4e9  # operations of a micro-kernel's problem; the oracle needs seconds for so many


def warming_calls(flops: float, most: float = WARMED) -> int:
    """Number of warming calls before a modelled call of `flops`, so that caches hold its data and code."""
    return 2 if flops <= _TWICE else int(flops <= most)


def micro_problem(operator: Operator, platform: Platform, variant: Variant, vlen: int) -> Problem:
    """The problem on which a micro-kernel is measured alone. vlen: bits; 0: the platform's first."""
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
    """The measured call: normal inputs, operands that start on a page."""
    return operator.reference.call(problem, seed.stream(MEASURED), "normal", Placement.START, workspace)


def tile_refusal(operator: Operator, target: Target, variant: Variant) -> Outcome | None:
    """The refusal of a variant whose micro-tile is empty or too large at any VLEN; else None.

    Raises what the operator's own `tile` raises for unknown tunables.
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
    """The refusal of a micro-kernel's problem that is empty or has too many operations; else None."""
    if min(map(int, problem.dims.values())) < 1:
        return Outcome(Kind.REFUSED, "bounds", f"it would be measured on {problem.label}, which is empty")
    work = float(operator.reference.work(problem))
    if work > MAX_WORK:
        message = f"it would be measured on {problem.label}, {work:.1e} operations; at most {MAX_WORK:.0e} are done"
        return Outcome(Kind.REFUSED, "bounds", message)
    return None
