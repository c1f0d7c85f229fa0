"""The speeds of baselines in the calls in which `judge` measures a kernel."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from tensorop.commands import contest, libraries
from tensorop.commands.contest import Contest
from tensorop.errors import BoardError, JobError
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed
from tensorop.render import adapting
from tensorop.target import Target

Speeds = dict[tuple[str, int], dict[str, float]]  # (shape, VLEN in bits or 0) -> baseline -> flops per unit of cost


def speeds(
    operator: Operator, target: Target, measured: Sequence[Problem], seed: Seed
) -> tuple[Speeds, tuple[str, ...]]:
    """The operator's usual baselines on problems of one dtype, with one thread; remarks on those without speeds.

    Raises BoardError.
    """
    program, dtype = adapting.program(target.platform, operator).path, measured[0].dtype
    found: Speeds = defaultdict(dict)
    remarks: list[str] = []
    for name in operator.against:
        try:
            tested = libraries.bring(name, target, (dtype,), 1, own=operator.baselines)
            alone = Contest(operator, target, program, tested, (), 1, final=False, seed=seed)
            alone.open(dtype)
            rows = [contest.row(alone, problem) for problem in measured]
        except BoardError:
            raise
        except JobError as error:
            remarks.append(f"{name} is not compared: {error.message}")
            continue
        for row in rows:
            for vlen in target.vlens:
                found[row.written, vlen][name] = row.by_vlen[vlen].ours if row.by_vlen else row.ours
    return found, tuple(remarks)
