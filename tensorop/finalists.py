"""What the trials say of the variants that a library may carry, by problem and VLEN, and the choice that follows."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from tensorop import choice, forms, search
from tensorop.choice import UNTRIED, Also, Measured
from tensorop.measure import statistics
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Kind, Outcome
from tensorop.model.winner import Leaf, Tree, Winners
from tensorop.problems import features
from tensorop.search import Ground, variants
from tensorop.target import merit
from tensorop.tuner import dispatch
from tensorop.tuner.dispatch import Row

LESS = 0.005  # a form for one VLEN must take this share off what its variant serves there, for it is a second kernel
FAULTS = frozenset({Kind.WRONG, Kind.GUARD, Kind.CRASH, Kind.ILLEGAL, Kind.IMPOSSIBLE})  # of a variant


@dataclass(frozen=True)
class Refused(Exception):
    """A variant that passed its trials and failed in the library. number: as the library counts; outcome: how."""

    dtype: str
    number: int
    outcome: Outcome


def winners(ground: Ground, dtype: str, kernels: Mapping[str, Kernel], problems: tuple[Problem, ...]) -> Winners:
    """One dtype's variants, with a tree for each VLEN by the trials of the search.

    Where the search was stopped before any blocking was tried, the best micro-kernel with the platform's defaults.
    """
    trials = list(variants(ground, dtype, kernels))
    if not trials:
        return Winners(dtype, (Variant(next(iter(kernels.values()))),), (Tree(Leaf(0)),))
    known = {vlen: known_rows(ground, problems, trials, vlen) for vlen in ground.target.configurations}
    return chosen(ground, dtype, tuple(finished.trial.variant for finished in trials), known)


def chosen(
    ground: Ground,
    dtype: str,
    variants: tuple[Variant, ...],
    known: Mapping[int, Sequence[tuple[Problem, Row]]],
    judged: bool = False,
    direct: Variant | None = None,
) -> Winners:
    """All of these variants, with a tree for each VLEN of `known`: what they cost there on some problems, the direct
    one last, infinite where one was not tried. judged: with the regret on shapes left out, which takes some seconds."""
    measured = {
        vlen: [
            Measured(problem, tuple(cost if math.isfinite(cost) else None for cost in row.costs))
            for problem, row in pairs
        ]
        for vlen, pairs in known.items()
    }
    also = {vlen: others(ground, dtype, variants, vlen) for vlen in known} if judged else {}
    return choice.winners(ground.operator, ground.target.platform, dtype, variants, measured, also, judged, direct)


def others(ground: Ground, dtype: str, variants: tuple[Variant, ...], vlen: int) -> list[Also]:
    """All other blockings that the search tried, with what they cost."""
    mine = {variant.id for variant in variants}
    by_label = {p.label: p for p in (*search.problems(ground, dtype), *search.large_problems(ground, dtype))}
    found = []
    for finished in search.tried(ground, dtype, search.kernels(ground, dtype)):
        variant = finished.trial.variant
        told = {by_label[p]: merit(s, vlen) for p, s in finished.score.per_problem.items() if p in by_label}
        if told and variant.id not in mine:
            found.append(Also(variant, tuple(told), tuple(told.values())))
    return found


def with_forms(ground: Ground, given: Winners, kernels: Mapping[str, Kernel], problems: tuple[Problem, ...]) -> Winners:
    """The same variants with those of their forms for single VLENs (the trials of `forms.search`) that win."""
    mine = {variant.id for variant in given.variants}
    trials = [finished for finished in variants(ground, given.dtype, kernels) if finished.trial.variant.id in mine]
    if not trials:  # stopped before any blocking was tried
        return given
    rows: dict[int, list[tuple[Problem, Row]]] = {}
    kept: dict[int, list[int]] = {}
    for vlen in ground.target.configurations:
        tried = [forms.trial(ground, given.dtype, finished.trial.variant, vlen) for finished in trials]
        for_any = _rows(ground, problems, trials, vlen)
        kept[vlen] = gaining(for_any, _rows(ground, problems, over(trials, tried), vlen))
        taken = [form if number in kept[vlen] else None for number, form in enumerate(tried)]
        rows[vlen] = known_rows(ground, problems, over(trials, taken), vlen)
    written = [
        replace(finished.trial.variant, forms=tuple(vlen for vlen in kept if number in kept[vlen]))
        for number, finished in enumerate(trials)
    ]
    return chosen(ground, given.dtype, tuple(written), rows)


def gaining(for_any: Sequence[Row], in_form: Sequence[Row]) -> list[int]:
    """Variants whose forms pay: their problems, where all forms are to be had, cost less by them. Rows are of the same
    problems, with the costs of the variants and of their forms (the variant's where there is none)."""
    tree = dispatch.grow(in_form)
    sent: dict[int, list[float]] = {}
    for before, row in zip(for_any, in_form, strict=True):
        number = dispatch.decide(tree, row.features)
        sent.setdefault(number, []).append(row.costs[number] / before.costs[number])
    return sorted(number for number, ratios in sent.items() if statistics.geomean(ratios) < 1 - LESS)


def over(trials: Sequence[Finished], tried: Sequence[Finished | None]) -> list[Finished]:
    """The trials with the forms' figures in place of theirs; problems a form was not tried on keep the variant's."""
    return [
        trial
        if form is None
        else replace(
            trial, score=replace(trial.score, per_problem={**trial.score.per_problem, **form.score.per_problem})
        )
        for trial, form in zip(trials, tried, strict=True)
    ]


def _rows(ground: Ground, problems: tuple[Problem, ...], trials: list[Finished], vlen: int) -> list[Row]:
    """A row for each problem that a trial knows; a variant that was not tried on it must not be sent it."""
    found = []
    for _, row in known_rows(ground, problems, trials, vlen):
        dear = UNTRIED * max(cost for cost in row.costs if math.isfinite(cost))
        found.append(Row(row.features, tuple(min(cost, dear) for cost in row.costs)))
    return found


def known_rows(
    ground: Ground, problems: tuple[Problem, ...], trials: list[Finished], vlen: int
) -> list[tuple[Problem, Row]]:
    """Each problem that a trial knows, with what it costs in each of them at a VLEN; infinite in one that was not
    tried on it."""
    found = []
    for problem in problems:
        samples = [trial.score.per_problem.get(problem.label) for trial in trials]
        costs = tuple(math.inf if s is None else merit(s, vlen) for s in samples)
        if any(map(math.isfinite, costs)):
            found.append((problem, Row(features(ground.operator, problem), costs)))
    return found
