"""Under a model: the blockings that did best, on some of the problems too large for every trial."""

from __future__ import annotations

from tensorop.model.budget import Budget
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.trial import Stage
from tensorop.render import instantiate
from tensorop.search import trials
from tensorop.search.arms import FACTOR, Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.trial import selection
from tensorop.trial.trial import FIRST_S

MOST = 10  # candidates
SAYS_LITTLE = 1e7  # flops below which a problem's cost says little of a larger one's


def plan(task: Task) -> Plan | None:
    """Those that do best together on the larger problems of the search; none serves all of them."""
    if not task.large_problems:
        return None
    kernels = trials.kernels(task)
    chosen = _best(task, kernels)
    arms = []
    for kernel in kernels.values():
        if first := [variant.blocking for variant in chosen if variant.kernel.id == kernel.id]:
            arms.append(Arm(kernel, instantiate.blocking_space(task.operator, task.target.platform, kernel), first))
    share = task.budget(Stage.LARGE)
    slowest = max((sum(f.seconds.values()) for f in trials.passed(task, Stage.BLOCKING, kernels)), default=0.0)
    budget = Budget(share.seconds, min(len(chosen), share.trials or len(chosen)))
    first_s = max(FIRST_S, share.seconds or 0.0, FACTOR * slowest)  # each is meant to take a tenth of the share
    return Plan(arms, task.large_problems, budget, only_first=True, first_s=first_s)


def _best(task: Task, kernels: dict[str, Kernel]) -> list[Variant]:
    telling = {p.label for p in task.problems if task.operator.reference.work(p) >= SAYS_LITTLE}
    tried = {f.trial.variant.id: f for f in trials.passed(task, Stage.BLOCKING, kernels)}
    costs = {
        name: {(p, v): s.at(v) for p, s in f.score.per_problem.items() if p in telling for v in task.target.vlens}
        for name, f in tried.items()
    }
    chosen = selection.choose({name: of_one for name, of_one in costs.items() if of_one}, least=MOST, most=MOST)
    return [tried[name].trial.variant for name in chosen]


PASS = Pass(Stage.LARGE, 0.2, plan=plan)
