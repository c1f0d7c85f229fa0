"""A dtype's winners: first by its trials, then by all measurements, and again without a template that failed."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from tensorop.author import offline
from tensorop.dispatch import choice, evidence, known, robust, single_vlen
from tensorop.dispatch.choice import Candidates
from tensorop.dispatch.evidence import RefusedVariant
from tensorop.dispatch.tree import decide
from tensorop.model.listed import NO_FILES
from tensorop.model.operator import Operator
from tensorop.model.trial import Stage
from tensorop.model.verdict import Verdict
from tensorop.model.winner import Leaf, Split, StartPoint, WarmStart, Winners
from tensorop.search.stages import BLOCKING, FINALISTS, MICRO, SMALLEST, direct_winner
from tensorop.search.task import Task
from tensorop.space import problems
from tensorop.store import journal
from tensorop.store.journal import Journal
from tensorop.warm import start


def first(task: Task, refused: Collection[str] = ()) -> Winners | None:
    """Winners by the trials alone, for the library in which probes are measured; None if no kernel passed.

    Without a search, known winners. refused: names of templates to leave out
    """
    if task.job.no_search:
        return (None if refused else _of_journal(task)) or known.winners(task, refused)
    kernels = {name: k for name, k in task.shortlist.items() if k.template.name not in refused}
    if not kernels:
        return None
    found = evidence.by_trials(task, kernels)
    if Stage.SINGLE_VLEN in task.operator.stages and single_vlen.wanted(task.target):
        found = single_vlen.formed(task, found, kernels)
    return replace(found, direct=None if offline.DIRECT in refused else direct_winner(task))


def _of_journal(task: Task) -> Winners | None:
    """The winners by the measurements of another run's journal; None without one, or if a variant is not legal here."""
    path = task.warm.get(task.dtype, WarmStart()).journal
    if path is None:
        return None
    operator, platform, history = task.operator, task.target.platform, journal.load(Path(path))
    templates = {one.name: one for one in (*task.templates, *([task.direct] if task.direct else []))}
    history.trust(templates.values())
    shapes = tuple(operator.shapes.of(text) for text in cast(list[str], history.facts.get("shapes", [])))
    passes = (MICRO, BLOCKING, FINALISTS, SMALLEST)
    job = replace(task.job, no_search=False, shapes=shapes, listed=NO_FILES)
    there = replace(task, job=job, passes=passes, journal=Journal(Path(path), history, -1), warm={})
    given = first(there)
    points = [(StartPoint(one.template.name, one.point), one) for one in given.all] if given else []
    legal = all(start.variant_of(operator, platform, task.dtype, templates, point) == one for point, one in points)
    return final(there, given) if given and legal else None


def finals(tasks: Mapping[str, Task], given: Sequence[Winners]) -> list[Winners]:
    """Each dtype's variants with trees fitted to all measurements, and their cross-validated regret."""
    return [final(tasks[of_dtype.dtype], of_dtype) for of_dtype in given]


def final(task: Task, given: Winners) -> Winners:
    """The same variants with trees fitted to all measurements, and their cross-validated regret."""
    if len(given.all) < 2 or task.job.no_search:
        return given
    rows = robust.weighed(task, given, evidence.load_costs(task, given))
    also = {vlen: evidence.others(task, given.variants, vlen) for vlen in rows}
    candidates = replace(Candidates.of(task.operator, task.target.platform, given), weights=task.weights)
    return choice.winners(candidates, rows, also)


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
    """The winners without the template of a refused variant; None if none is left.

    before: templates that were refused; this one is added
    """
    before.add(given.all[number].template.name)
    return first(task, before)


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
