"""How a library chooses: a cost model of each variant, fitted to all that was measured, distilled into a tree.

The tree is grown on problems all over the operator's range, whose costs the models predict, and on those that were
measured. How far it is off is found by leaving shapes out: models and tree are made anew without them, and what that
tree would choose for them is held against what was measured.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tensorop.dispatch import costmodel, costs
from tensorop.dispatch.costmodel import CostSamples, Fitted, Matrix, PoolKey
from tensorop.dispatch.shapes import SEED, Draw, chosen_for, drawn
from tensorop.dispatch.tree import TreeRow, decide, distil, grow
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.space.problems import features

TRAIN_SHAPES = 14000  # in each layout, that the tree is grown on
CV_SHAPES = 1500  # in each layout, while measured shapes are left out
SHAPES_PER_MEASURED = 120  # at most, of either
CV_PARTS = 5  # shapes are left out in so many parts
MEASURED_WEIGHT = 3.0  # of a measured problem, against one that a model predicts
FLAG_DISTANCE = 3.0  # octaves between problems whose yes-or-no features differ
MIN_GAIN = 2e-5  # a split must save this much over all problems, in their mean, in natural logarithm of cost
DIRECT_SHAPES = 200  # in each layout, that the direct variant is judged on
DIRECT_LOSS = 0.03  # natural logarithm: what a choice costs small products anyhow
UNTRIED_FACTOR = 4.0  # times the worst cost known: what a variant is taken to cost where nobody tried it
TREES_AT_ONCE = 2  # arrays are most of their work
UNCERTAINTY_WEIGHT = 0.3  # standard deviations added to a prediction: of two variants that look alike, the known one

_DRAWING = threading.Lock()


@dataclass(frozen=True)
class CostRow:
    """A problem, and what each variant cost there; None for one that was not tried."""

    problem: Problem
    costs: tuple[float | None, ...]

    @property
    def best(self) -> float:
        return min(cost for cost in self.costs if cost is not None)

    def of(self, count: int) -> CostRow:
        """Of so many of the variants alone."""
        return replace(self, costs=self.costs[:count])


CostsByVlen = Mapping[int, Sequence[CostRow]]


@dataclass(frozen=True)
class Also:
    """Another blocking that the search tried: its micro-kernel's models learn from it."""

    variant: Variant
    problems: tuple[Problem, ...]
    costs: tuple[float, ...]


@dataclass(frozen=True)
class Candidates:
    """The variants of an operator in one dtype on a platform, among which a library chooses at a VLEN."""

    operator: Operator
    platform: Platform
    dtype: str
    variants: tuple[Variant, ...]
    vlen: int = 0  # bits; 0: the platform's first
    direct: int | None = None  # the number of the direct one, which is the last
    # made so far, without their terms: the same at every VLEN
    fields: dict[tuple[Draw, int | None], Field] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, operator: Operator, platform: Platform, given: Winners, vlen: int = 0) -> Candidates:
        direct = None if given.direct is None else len(given.variants)
        return cls(operator, platform, given.dtype, given.all, vlen, direct)

    def barred(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Problems x variants: what is never chosen there, the direct one beyond what it may serve."""
        found = np.zeros((len(next(iter(columns.values()))), len(self.variants)), dtype=bool)
        if self.direct is not None:
            found[:, self.direct] = ~costs.may_serve(self.operator, self.platform, self.dtype, columns)
        return found

    def guarded(
        self, root: Leaf | Split, losses: Matrix, columns: Mapping[str, NDArray[Any]], barred: NDArray[np.bool_]
    ) -> Leaf | Split:
        """The tree, grown on these problems, that calls the direct variant only where it may serve."""
        if self.direct is None:
            return root
        test = costs.serves_condition(self.operator, self.platform, self.dtype)
        return costs.guarded(root, test, self.direct, losses, barred[:, self.direct], columns)

    def terms(self, variant: Variant, columns: Mapping[str, NDArray[Any]]) -> Matrix:
        """Problems x terms. columns: the problems' features."""
        return costs.terms(self.operator, self.platform, self.dtype, variant, columns, self.vlen)

    def columns(self, problems: Sequence[Problem]) -> dict[str, NDArray[Any]]:
        """By feature, its value of each problem; integers of any size."""
        seen = [features(self.operator, problem) for problem in problems]
        return {name: np.array([of_one[name] for of_one in seen]) for name in seen[0]}

    def places(self, columns: Mapping[str, NDArray[Any]]) -> Matrix:
        """Coordinates in octaves, of the features that are no expressions of others."""
        own = self.operator.seen
        made = [np.log2(np.maximum(columns[name].astype(np.float64), 1.0)) for name in own]
        flags = [FLAG_DISTANCE * (columns[name] == 0).astype(np.float64) for name in own]
        return np.stack([*made, *flags], axis=1)

    def pool(self, variant: Variant) -> PoolKey:
        return PoolKey(variant.kernel.id, variant.template.digest)


@dataclass(frozen=True)
class FitData:
    """Samples ready to be fitted, all or without some of the shapes."""

    candidates: Candidates
    measured: tuple[CostRow, ...]
    terms: tuple[Matrix, ...]  # by variant: of each measured problem
    barred: NDArray[np.bool_]
    places: Matrix
    also: tuple[tuple[CostSamples, PoolKey, tuple[int, ...]], ...]  # with the part of each problem
    parts: tuple[int, ...]  # of each measured problem, for leaving out

    def fitted(self, without: int | None = None) -> list[Fitted]:
        samples = []
        for number, terms in enumerate(self.terms):
            rows = [
                row
                for row, measured in enumerate(self.measured)
                if measured.costs[number] is not None and self.parts[row] != without
            ]
            costs = np.array([self.measured[row].costs[number] for row in rows], dtype=np.float64)
            samples.append(CostSamples(terms[rows], self.places[rows], costs))
        more = []
        for one, pool, parts in self.also:
            kept = [row for row, part in enumerate(parts) if part != without]
            more.append((CostSamples(one.terms[kept], one.places[kept], one.costs[kept]), pool))
        return costmodel.fit(samples, [self.candidates.pool(v) for v in self.candidates.variants], more)


@dataclass(frozen=True)
class Field:
    """Problems that a tree is grown on: terms by variant, coordinates, features."""

    problems: tuple[Problem, ...]
    terms: tuple[Matrix, ...]
    places: Matrix
    columns: Mapping[str, NDArray[Any]]
    barred: NDArray[np.bool_]

    def predicted(self, models: Sequence[Fitted]) -> tuple[Matrix, Matrix]:
        """Problems x variants: natural logarithms of costs, and their standard deviations."""
        means, spreads = costmodel.predict(models, self.terms, self.places)
        return _dear(means, self.barred), np.where(self.barred, 0.0, spreads)


def fit_data(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also] = ()) -> FitData:
    """Everything that was measured, as samples."""
    problems = [one.problem for one in measured]
    part = _parts([*problems, *(p for other in also for p in other.problems)])
    columns = candidates.columns(problems)
    others = []
    for other in also:
        seen = candidates.columns(other.problems)
        samples = CostSamples(candidates.terms(other.variant, seen), candidates.places(seen), np.array(other.costs))
        others.append((samples, candidates.pool(other.variant), tuple(part[p.pairs] for p in other.problems)))
    return FitData(
        candidates,
        tuple(measured),
        tuple(candidates.terms(variant, columns) for variant in candidates.variants),
        candidates.barred(columns),
        candidates.places(columns),
        tuple(others),
        tuple(part[p.pairs] for p in problems),
    )


def _parts(problems: Sequence[Problem]) -> dict[Any, int]:
    """A shape's layouts are left out together."""
    shapes = sorted({problem.pairs for problem in problems})
    order = np.random.default_rng(SEED).permutation(len(shapes))
    return {shape: int(place) % CV_PARTS for shape, place in zip(shapes, order, strict=True)}


def field(candidates: Candidates, draw: Draw) -> Field:
    """Problems as `shapes.drawn`."""
    by = draw, candidates.direct
    with _DRAWING:
        if by not in candidates.fields:
            problems = drawn(candidates.operator, candidates.dtype, draw)
            columns = candidates.columns(problems)
            candidates.fields[by] = Field(problems, (), candidates.places(columns), columns, candidates.barred(columns))
    found = candidates.fields[by]
    return replace(found, terms=tuple(candidates.terms(variant, found.columns) for variant in candidates.variants))


def tree(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also] = (), judged: bool = True) -> Tree:
    """The tree and its regret on shapes left out; unless `judged` one of the measured problems alone, for what is not
    delivered."""
    measured = [one for one in measured if chosen_for(candidates.operator, one.problem)] or measured
    if len(candidates.variants) < 2 or not measured:
        return Tree(Leaf(0), 0.0 if len(candidates.variants) < 2 else None)
    if not judged or not candidates.operator.costs.terms:
        return _of_measured(candidates, measured, judged)
    samples, most = fit_data(candidates, measured, also), SHAPES_PER_MEASURED * len(measured)
    small = field(candidates, Draw(min(CV_SHAPES, most)))
    regret = _left_out(candidates, measured, samples.parts, lambda part: _grown(samples, small, part))
    return Tree(_grown(samples, field(candidates, Draw(min(TRAIN_SHAPES, most))), None), regret)


def row_of(operator: Operator, measured: CostRow) -> TreeRow:
    """What a tree is grown on; a variant that was not tried on the problem must not be sent it."""
    dear = UNTRIED_FACTOR * max(cost for cost in measured.costs if cost is not None)
    return TreeRow(
        features(operator, measured.problem), tuple(dear if cost is None else cost for cost in measured.costs)
    )


def _of_measured(candidates: Candidates, measured: Sequence[CostRow], judged: bool) -> Tree:
    """Without models: a tree of the measured problems alone."""

    def grown(without: int | None) -> Leaf | Split:
        kept = [one for one, part in zip(measured, parts, strict=True) if part != without]
        rows = [row_of(candidates.operator, one) for one in kept]
        columns = candidates.columns([one.problem for one in kept])
        losses = np.array([[math.log(cost / min(row.costs)) for cost in row.costs] for row in rows])
        return candidates.guarded(grow(rows), losses, columns, candidates.barred(columns))

    of_shape = _parts([one.problem for one in measured])
    parts = tuple(of_shape[one.problem.pairs] for one in measured)
    return Tree(grown(None), _left_out(candidates, measured, parts, grown) if judged else None)


def _left_out(
    candidates: Candidates, measured: Sequence[CostRow], parts: Sequence[int], grown: Callable[[int], Leaf | Split]
) -> float | None:
    """The regret, in geometric mean, of trees grown without a part of the shapes, on those of that part that all
    variants were measured on; None where there are none."""
    losses: list[float] = []
    barred = candidates.barred(candidates.columns([one.problem for one in measured]))
    whole = [
        all(cost is not None or no for cost, no in zip(one.costs, of_one, strict=True))
        for one, of_one in zip(measured, barred, strict=True)
    ]
    for part in range(CV_PARTS):
        out = [row for row, of_row in enumerate(parts) if of_row == part and whole[row]]
        if out and any(of_row != part for of_row in parts):
            root = grown(part)
            losses += [_loss(candidates, root, measured[row]) for row in out]
    return math.expm1(sum(losses) / len(losses)) if losses else None


def _loss(candidates: Candidates, root: Leaf | Split, measured: CostRow) -> float:
    """The logarithm of what the tree's choice costs over the best; what is barred there counts as untried."""
    row = row_of(candidates.operator, measured)
    return math.log(row.costs[decide(root, row.features)] / measured.best)


def _grown(samples: FitData, over: Field, without: int | None) -> Leaf | Split:
    """The tree of what the models predict and, with more weight, of what was measured, but for a part."""
    models = samples.fitted(without)
    means, spreads = over.predicted(models)
    losses = [_over_best(means + UNCERTAINTY_WEIGHT * spreads)]
    columns = {name: [column] for name, column in over.columns.items()}
    rows = [row for row, part in enumerate(samples.parts) if part != without]
    places = samples.places[rows]
    guessed, unsure = costmodel.predict(models, [terms[rows] for terms in samples.terms], places)
    log_costs = guessed + UNCERTAINTY_WEIGHT * unsure
    for place, row in enumerate(rows):
        for number, cost in enumerate(samples.measured[row].costs):
            if cost is not None:
                log_costs[place, number] = math.log(cost)
    log_costs = _dear(log_costs, samples.barred[rows])
    losses.append(MEASURED_WEIGHT * _over_best(log_costs))
    for name, column in samples.candidates.columns([samples.measured[row].problem for row in rows]).items():
        columns[name].append(column)
    joined = {name: np.concatenate(parts) for name, parts in columns.items()}
    together, barred = np.concatenate(losses), np.concatenate([over.barred, samples.barred[rows]])
    return samples.candidates.guarded(distil(together, joined, gain=MIN_GAIN * len(together)), together, joined, barred)


def _dear(logs: Matrix, barred: NDArray[np.bool_]) -> Matrix:
    """Logarithms of costs in which what is barred costs more than all else."""
    found: Matrix = np.where(barred, logs.max(axis=1, keepdims=True) + math.log(UNTRIED_FACTOR), logs)
    return found


def _over_best(logs: Matrix) -> Matrix:
    """Rounded, so that the last bits of a sum change no tree."""
    found: Matrix = np.round(logs - logs.min(axis=1, keepdims=True), 6)
    return found


def winners(
    candidates: Candidates,
    measured: CostsByVlen,
    also: Mapping[int, Sequence[Also]] | None = None,
    judged: bool = True,
) -> Winners:
    """The candidates with a tree for each VLEN of `measured`; with one VLEN, its tree has no name."""
    operator, direct = candidates.operator, candidates.direct
    variants = candidates.variants[:direct]
    unasked = operator.direct.unasked if direct is not None and operator.direct is not None else 0
    wanted: list[tuple[Candidates, Sequence[CostRow], Sequence[Also]]] = []
    for vlen, rows in sorted(measured.items()):
        here, others = replace(candidates, vlen=vlen), (also or {}).get(vlen, ())
        if direct is not None and all(row.costs[direct] is None for row in rows):  # nothing is known of it
            here, rows = replace(here, variants=variants, direct=None), [row.of(len(variants)) for row in rows]
        elif direct is not None and judged:
            unasked = min(unasked, _unasked(here, rows, others))
        wanted.append((here, rows, others))
    several = len(measured) > 1
    with threadpool_limits(1), ThreadPoolExecutor(TREES_AT_ONCE) as pool:
        found = pool.map(lambda one: tree(one[0], one[1], one[2], judged), wanted)
        trees = tuple(replace(t, vlen=one.vlen if several else 0) for (one, _, _), t in zip(wanted, found, strict=True))
    return Winners(candidates.dtype, variants, trees, None if direct is None else candidates.variants[direct], unasked)


def _unasked(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also]) -> int:
    """Flops up to which the direct variant may serve without a choice: it is hardly worse than the best, by the models,
    on problems of half of them to all of them, and so below."""
    direct, operator = candidates.operator.direct, candidates.operator
    assert direct is not None
    assert candidates.direct is not None
    rows = [one for one in measured if chosen_for(operator, one.problem)]
    if not rows or not operator.costs.terms:
        return direct.always
    found, models = direct.always, fit_data(candidates, rows, also).fitted()
    while found < direct.unasked:
        most = min(2 * found, direct.unasked)
        over = field(candidates, Draw(DIRECT_SHAPES, longest=direct.unasked, most=most, least=found))
        logs, _ = over.predicted(models)
        if float(_over_best(logs)[:, candidates.direct].mean()) > DIRECT_LOSS:
            break
        found = min(2 * found, direct.unasked)
    return found
