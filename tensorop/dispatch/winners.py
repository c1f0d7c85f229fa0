"""A dtype's winners: first by its trials, then by all measurements, and again without a template that failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tensorop.dispatch import choice, evidence, robust, single_vlen
from tensorop.dispatch.choice import Candidates
from tensorop.dispatch.evidence import RefusedVariant
from tensorop.dispatch.tree import decide
from tensorop.model.operator import Operator
from tensorop.model.trial import Stage
from tensorop.model.verdict import Verdict
from tensorop.model.winner import Leaf, Split, Winners
from tensorop.search.stages import direct_winner
from tensorop.search.task import Task
from tensorop.space import problems


def first(task: Task, refused: Collection[str] = ()) -> Winners | None:
    """Winners by the trials alone, for the library in which probes are measured; None if no kernel passed.

    refused: names of templates to leave out
    """
    kernels = {name: k for name, k in task.shortlist.items() if k.template.name not in refused}
    if not kernels:
        return None
    found = evidence.by_trials(task, kernels)
    if Stage.SINGLE_VLEN in task.operator.stages and single_vlen.wanted(task.target):
        found = single_vlen.formed(task, found, kernels)
    return replace(found, direct=direct_winner(task))


def finals(tasks: Mapping[str, Task], given: Sequence[Winners]) -> list[Winners]:
    """Each dtype's variants with trees fitted to all measurements, and their cross-validated regret."""
    return [final(tasks[of_dtype.dtype], of_dtype) for of_dtype in given]


def final(task: Task, given: Winners) -> Winners:
    """The same variants with trees fitted to all measurements, and their cross-validated regret."""
    if len(given.all) < 2:
        return given
    rows = robust.weighed(task, given, evidence.load_costs(task, given))
    also = {vlen: evidence.others(task, given.variants, vlen) for vlen in rows}
    return choice.winners(Candidates.of(task.operator, task.target.platform, given), rows, also)


def culprit(operator: Operator, found: list[Winners], verdict: Verdict) -> RefusedVariant | None:
    """The variant that computed the failed case; None where the verdict does not name it."""
    winners = next((w for w in found if w.dtype == verdict.dtype), None)
    if winners is None or verdict.case is None:
        return None
    problem = verdict.case.problem
    number = int(problem.options.get("variant", -1))  # a case that forced a variant
    if number < 0 and winners.direct is not None and operator.reference.work(problem) <= winners.unasked:
        number = len(winners.variants)
    if number < 0:
        trees = [tree for tree in winners.trees if tree.vlen <= verdict.vlen] or list(winners.trees[:1])
        number = decide(trees[-1].root, problems.features(operator, problem))
    return RefusedVariant(winners.dtype, number, verdict.outcome)


def without(task: Task, given: Winners, number: int, before: set[str]) -> Winners | None:
    """The winners without the template of a refused variant; None if none is left. A direct variant is removed alone.

    before: templates that were refused; this one is added
    """
    falls_alone = number >= len(given.variants)
    if not falls_alone:
        before.add(given.variants[number].template.name)
    chosen = first(task, before)
    return None if chosen is None else replace(chosen, direct=None if falls_alone else given.direct)


def carried(given: Winners) -> Winners:
    """The winners without variants, and specialisations for a VLEN, that no tree uses."""
    direct = len(given.variants)  # the direct variant stays, after the others
    used_at = {tree.vlen: _used(tree.root) - {direct} for tree in given.trees}
    used = sorted(set().union(*used_at.values()))
    place = {number: new for new, number in enumerate([*used, direct])}
    variants = []
    for number in used:
        specialisations = given.variants[number].specialisations
        kept = tuple(vlen for vlen in specialisations if number in used_at.get(vlen, used_at.get(0, ())))
        variants.append(replace(given.variants[number], specialisations=kept))
    trees = tuple(replace(tree, root=_renumbered(tree.root, place)) for tree in given.trees)
    return replace(given, variants=tuple(variants), trees=trees)


def _used(node: Leaf | Split) -> set[int]:
    return {node.variant} if isinstance(node, Leaf) else _used(node.low) | _used(node.high)


def _renumbered(node: Leaf | Split, place: Mapping[int, int]) -> Leaf | Split:
    if isinstance(node, Leaf):
        return Leaf(place[node.variant])
    return replace(node, low=_renumbered(node.low, place), high=_renumbered(node.high, place))
