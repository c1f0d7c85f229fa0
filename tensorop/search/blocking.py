"""Block sizes and packing for the micro-kernels that go on, on whole problems."""

from __future__ import annotations

import math
from dataclasses import replace

from tensorop.errors import JobError
from tensorop.model.trial import Stage
from tensorop.render import instantiate, prior
from tensorop.search import trials
from tensorop.search.arms import Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.space import seeds


def plan(task: Task) -> Plan:
    """First what is known of a kernel's blocking, or what is expected of it."""
    operator, platform = task.operator, task.target.platform
    arms: list[Arm] = []
    kinds: set[tuple[int | str, ...]] = set()  # of each the best kernel is exempt: what it is for, cheap problems hide
    for kernel in trials.kernels(task).values():
        try:
            space = instantiate.blocking_space(operator, platform, kernel)
        except JobError:  # a tile that no blocking fits has lost
            continue
        named = seeds.blockings(task.sure, kernel.template, kernel.configuration, space)
        second = sum(arm.kernel.template == kernel.template for arm in arms) % 2 == 1
        first = named or seeds.around(prior.blocking(operator, platform, kernel), space, nothing_first=second)
        least = len(named) or 1
        if not named and not arms:  # of the best of all both ends of packing, and what is expected beside
            begun = seeds.around(prior.blocking(operator, platform, kernel, beside=True), space)
            ends = list(dict.fromkeys([*first[:2], *begun[:1]]))
            first, least = list(dict.fromkeys([*ends, *first])), len(ends)
        kind = (kernel.template.name, *seeds.unseen(kernel.template, kernel.configuration))
        arms.append(Arm(kernel, space, first, least, named or first[: least * (kind not in kinds)]))
        kinds.add(kind)
    own = [Stage.BLOCKING] if task.large_problems else [Stage.BLOCKING, Stage.LARGE]
    budget = task.budget(*own)
    if budget.trials is not None and task.direct is not None:  # each stage has one, all together no more
        others = [task.budget(name) for name in task.sharing if name not in own]
        rest = (task.budget(*task.sharing).trials or 1) - sum(other.trials or 0 for other in others)
        budget = replace(budget, trials=max(1, min(budget.trials, rest)))
    if not math.isfinite(task.target.budgets.flops_per_unit):  # every problem takes a clock as long
        return Plan(arms, task.problems, budget)
    cheapest_first = tuple(sorted(task.problems, key=operator.reference.work))
    return Plan(arms, cheapest_first, budget, race=True)


PASS = Pass(Stage.BLOCKING, 0.42, plan=plan)
