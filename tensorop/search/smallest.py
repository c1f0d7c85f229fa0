"""What serves the smallest problems: one template, without packing, blocks or choice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tensorop.model.kernel import Kernel, Variant
from tensorop.model.trial import Stage
from tensorop.render import instantiate
from tensorop.search import trials
from tensorop.search.arms import Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.space import seeds

CLOSE = 1.05  # times the least cost: trials of a few ms on a clock tell no less apart


def plan(task: Task) -> Plan | None:
    """The template on its suite and the job's own smallest shapes, in every layout; None where there is none."""
    template = task.direct
    if template is None:
        return None
    space = instantiate.micro_space(task.target.platform, template, task.dtype)
    first = seeds.named((*task.sure, *task.hints(template)), template, space)
    arm = Arm(Kernel(template, task.dtype), space, first, 1)
    return Plan([arm], task.small_problems, task.budget(Stage.SMALLEST))


def winner(task: Task) -> Variant | None:
    """Of those of that search that are hardly dearer than the cheapest the one that is least bad on any of the
    problems, against the best there; None where there was nothing to try or nothing passed."""
    if task.direct is None:
        return None
    passed = trials.passed(task, Stage.SMALLEST, [Kernel(task.direct, task.dtype).id])
    costs = [{p: s.value for p, s in f.score.per_problem.items()} for f in passed]
    whole = [(f.score.cost, number) for number, f in enumerate(passed) if f.score.cost is not None]
    if not whole:
        return None
    close = [(worst(costs, number), cost, number) for cost, number in whole if cost <= CLOSE * min(whole)[0]]
    return passed[min(close)[2]].trial.variant


def worst(costs: Sequence[Mapping[str, float]], number: int) -> float:
    """How many times the least cost of all one of them takes where it does worst. costs: each one's, by problem."""
    own = costs[number]
    return max((cost / min(other.get(p, cost) for other in costs) for p, cost in own.items()), default=1.0)


PASS = Pass(Stage.SMALLEST, 0.05, plan=plan)
