"""A dtype's winners: by the trials of its search, by all that is known, and again without what turned out wrong."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tensorop.dispatch import choice, evidence, robust, single_vlen
from tensorop.dispatch.evidence import RefusedVariant
from tensorop.dispatch.tree import decide
from tensorop.model.operator import Operator
from tensorop.model.trial import Stage
from tensorop.model.verdict import Verdict
from tensorop.model.winner import Winners
from tensorop.search.stages import direct_winner
from tensorop.search.task import Task
from tensorop.space import problems


def first(task: Task, refused: Collection[str] = ()) -> Winners | None:
    """What the search found, for a library to measure in; None where no kernel passed. refused: names of templates that
    may not be among them."""
    kernels = {name: k for name, k in task.shortlist.items() if k.template.name not in refused}
    if not kernels:
        return None
    found = evidence.by_trials(task, kernels)
    if Stage.SINGLE_VLEN in task.operator.stages and single_vlen.wanted(task.target):
        found = single_vlen.formed(task, found, kernels)
    return replace(found, direct=direct_winner(task))


def final(task: Task, given: Winners) -> Winners:
    """The same variants with trees by all that is known of them, and the regret of these on shapes left out."""
    if len(given.all) < 2:
        return given
    rows = robust.weighed(task, given, evidence.load_costs(task, given))
    also = {vlen: evidence.others(task, given.variants, vlen) for vlen in rows}
    operator, platform = task.operator, task.target.platform
    return choice.winners(operator, platform, task.dtype, given.variants, rows, also, direct=given.direct)


def culprit(operator: Operator, found: list[Winners], verdict: Verdict) -> RefusedVariant | None:
    """Which variant computed the case that failed; None where a verdict does not say it."""
    winners = next((w for w in found if w.dtype == verdict.dtype), None)
    if winners is None or verdict.case is None:
        return None
    problem = verdict.case.problem
    number = int(problem.options.get("variant", -1))  # one that was forced
    if number < 0 and winners.direct is not None and operator.reference.work(problem) <= winners.unasked:
        number = len(winners.variants)
    if number < 0:
        trees = [tree for tree in winners.trees if tree.vlen <= verdict.vlen] or list(winners.trees[:1])
        number = decide(trees[-1].root, problems.features(operator, problem))
    return RefusedVariant(winners.dtype, number, verdict.outcome)


def without(task: Task, given: Winners, number: int, before: set[str]) -> Winners | None:
    """The winners without the template of a refused variant; None where nothing is left. before: the templates that
    were refused, to which this one is added. The direct variant falls alone."""
    falls_alone = number >= len(given.variants)
    if not falls_alone:
        before.add(given.variants[number].template.name)
    chosen = first(task, before)
    return None if chosen is None else replace(chosen, direct=None if falls_alone else given.direct)
