"""The stages of a search that plan trials, in their order. The stage `single-vlen` is in dispatch/."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorop.author import offline
from tensorop.errors import JobError, TensoropError
from tensorop.model.budget import Budget
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.trial import Stage
from tensorop.render import instantiate
from tensorop.search.arms import FACTOR, FLOOR, Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.space import problems, seeds
from tensorop.trial import race, selection
from tensorop.trial.trial import FIRST_S

CHOICES = 3  # choices of packing and loop order that are tried first for a kernel
CLOSE = 1.05  # direct variants within this factor of the least cost count as equal


def micro(task: Task) -> Plan:
    """Plans micro-kernels alone, on packed operands: one arm for each template, also for later ones.

    The template of the best known winner comes first: the budget may be one trial.
    """
    best = [known.template for known in task.sure[:1]]
    templates = sorted(task.known_templates, key=lambda template: template.name not in best)
    found = [arm for template in templates if (arm := _template_arm(task, template)) is not None]
    return Plan(found, (), task.budget(Stage.MICRO), joining=lambda template: _late_arm(task, template))


def _template_arm(task: Task, template: KernelTemplate) -> Arm | None:
    platform = task.target.platform
    if instantiate.missing_primitives(platform, template, task.dtype):
        return None
    try:
        space, hints = instantiate.micro_space(platform, template, task.dtype), task.hints(template)
    except TensoropError:
        if template.author == offline.AUTHOR:
            raise
        return None  # a language model's template was tried with the first dtype only
    # always tried: winners of earlier searches, else each value of tunables that this stage cannot rank
    due = seeds.named(task.sure, template, space) or seeds.unlike(hints, template, space)
    first = list(dict.fromkeys([*due, *seeds.named(hints, template, space)]))
    return Arm(Kernel(template, task.dtype), space, first, max(1, len(due)))


def _late_arm(task: Task, template: KernelTemplate) -> Arm | None:
    """The arm of a template that comes late; the budget may be spent by then."""
    arm = _template_arm(task, template)
    return arm and replace(arm, least=max(FLOOR, arm.least))


def blocking(task: Task) -> Plan:
    """Plans block sizes and packing for the shortlist, on whole problems.

    Each kernel begins with blockings of earlier searches, or with those that the cost model expects to cost least.
    """
    operator, platform = task.operator, task.target.platform
    by_label = {problem.label: problem for problem in task.sketch}
    work = {label: float(operator.reference.work(problem)) for label, problem in by_label.items()}
    course = race.Course.of(work, problems.classes(operator, task.sketch), task.weights)
    # by the square root, so that a class of few problems is heard too
    weights: dict[str, float] = defaultdict(float)
    for label, name in task.classes.items():
        weights[name] += task.weights.get(label, 1.0)
    every = {name: math.sqrt(weight) for name, weight in weights.items()}
    shares = {name: count / sum(every.values()) for name, count in every.items()}
    planned = tuple(by_label[label] for label in course.work)
    arms: list[Arm] = []
    for kernel in task.shortlist.values():
        try:
            space = instantiate.blocking_space(operator, platform, kernel)
        except JobError:  # no blocking fits its tile
            continue
        first = seeds.blockings(task.sure, kernel, space)
        by_caches = instantiate.starts(operator, platform, kernel, space)
        if first and not arms and not task.target.side_by_side:  # a clock's machine may have other caches than theirs
            first = [*first, *by_caches]
        elif not first:  # the best kernel shows several choices of packing, each other one two
            expected = seeds.of_each_choice(task.expectation.ranked(kernel, space), space)
            if kernel.id == task.in_place:
                first = [*by_caches[-1:], *by_caches[:1]]
            else:
                first = [*by_caches[:1], *expected[:1]] if arms else [*by_caches, *expected[:CHOICES]]
        first = list(dict.fromkeys(first))
        arms.append(Arm(kernel, space, first, len(first)))
    own = [Stage.BLOCKING] if task.final_problems else [Stage.BLOCKING, Stage.FINALISTS]
    budget = task.budget(*own)
    # each stage gets at least one trial, but the sum stays within the budget
    if budget.trials is not None and task.direct is not None:
        others = [task.budget(name) for name in task.sharing if name not in own]
        rest = (task.budget(*task.sharing).trials or 1) - sum(other.trials or 0 for other in others)
        budget = replace(budget, trials=max(1, min(budget.trials, rest)))
    return Plan(arms, planned, budget, race=True, shares=shares, expectation=task.expectation)


def finalists(task: Task) -> Plan | None:
    """Plans the best blockings on the problems that blocking trials left out, and on larger ones.

    The best blocking is tried on all these problems, each other one on those where it may be the fastest.
    """
    if not task.final_problems:
        return None
    tried = {f.trial.variant.id: f for f in task.passed(Stage.BLOCKING, task.shortlist)}
    every = list(tried.values())
    expected = task.expected_costs(every)
    weights = {(label, vlen): weight for label, weight in task.weights.items() for vlen in task.target.vlens}
    names = selection.finalists(every, expected, weights, classes=task.classes)
    chosen = [tried[name].trial.variant for name in names]
    labels = {problem.label for problem in task.final_problems}
    among = {one.id: {at: cost for at, cost in expected[one.id].items() if at[0] in labels} for one in chosen}
    arms = []
    for kernel in {variant.kernel.id: variant.kernel for variant in chosen}.values():  # the best first: time may end
        first = [variant.blocking for variant in chosen if variant.kernel.id == kernel.id]
        arms.append(Arm(kernel, instantiate.blocking_space(task.operator, task.target.platform, kernel), first))
    share = task.budget(Stage.FINALISTS)
    slowest = max((sum(f.seconds.values()) for f in task.passed(Stage.BLOCKING, task.shortlist)), default=0.0)
    budget = Budget(share.seconds, min(len(chosen), share.trials or len(chosen)))
    first_s = max(FIRST_S, share.seconds or 0.0, FACTOR * slowest)  # each is expected to take a tenth of the share
    return Plan(arms, task.final_problems, budget, only_first=True, first_s=first_s, only=selection.worthwhile(among))


def smallest(task: Task) -> Plan | None:
    """Plans the template `direct`, which computes without packing or blocks; None where there is none.

    It is measured on its suite and on the job's smallest shapes, in every layout.
    """
    template = task.direct
    if template is None:
        return None
    space = instantiate.micro_space(task.target.platform, template, task.dtype)
    first = seeds.named((*task.sure, *task.hints(template)), template, space)
    arm = Arm(Kernel(template, task.dtype), space, first, 1)
    return Plan([arm], task.small_problems, task.budget(Stage.SMALLEST))


def direct_winner(task: Task) -> Variant | None:
    """The best direct variant; None if none passed.

    Of those within CLOSE of the cheapest, it is the one whose worst problem is nearest to that problem's best cost.
    """
    if task.direct is None:
        return None
    passed = task.passed(Stage.SMALLEST, [Kernel(task.direct, task.dtype).id])
    costs = [{p: s.value for p, s in f.score.per_problem.items()} for f in passed]
    whole = [(f.score.cost, number) for number, f in enumerate(passed) if f.score.cost is not None]
    if not whole:
        return None
    close = [(_worst(costs, number), cost, number) for cost, number in whole if cost <= CLOSE * min(whole)[0]]
    return passed[min(close)[2]].trial.variant


def _worst(costs: Sequence[Mapping[str, float]], number: int) -> float:
    """Largest ratio of a variant's cost to the problem's least cost. costs: each variant's, by problem."""
    own = costs[number]
    return max((cost / min(other.get(p, cost) for other in costs) for p, cost in own.items()), default=1.0)


MICRO = Pass(Stage.MICRO, 0.30, "trying micro-kernels alone, on packed operands", plan=micro)
BLOCKING = Pass(Stage.BLOCKING, 0.35, "trying cache blocks for the best micro-kernels, in whole calls", plan=blocking)
FINALISTS = Pass(Stage.FINALISTS, 0.23, "measuring the best variants on further problems", plan=finalists)
SMALLEST = Pass(Stage.SMALLEST, 0.12, "trying kernels without packing, for the smallest problems", plan=smallest)
