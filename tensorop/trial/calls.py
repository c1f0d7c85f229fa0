"""What candidates are measured on: the problem of a micro-kernel alone, the inputs of a call, and calls before it."""

from __future__ import annotations

from tensorop.model.call import Call, Placement
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed
from tensorop.render import instantiate

WARMED = 1e7  # flops up to which a modelled call is preceded by another; larger ones fill the caches several times over
_TWICE = 1e6  # flops up to which by two: the first call of a library asks the processor, the second goes another way


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
