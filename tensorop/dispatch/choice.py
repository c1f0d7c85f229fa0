"""Makes a library's dispatch tree: fits a cost model to each variant's measurements and distils the models into a tree.

The tree is grown on two kinds of problems: random ones from the operator's whole range, whose costs the models
predict, and the measured ones. The regret comes from cross-validation: models and tree are fitted without a part of the
shapes, and the tree's choices for that part are compared with the measurements.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tensorop.costs import model as cost_model
from tensorop.costs.model import CostSamples, Fitted, Matrix, PoolKey
from tensorop.costs.terms import quantities, term_matrix
from tensorop.dispatch import direct
from tensorop.dispatch.shapes import SEED, Draw, chosen_for, drawn
from tensorop.dispatch.tree import TreeRow, decide, distil, grow
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.space.problems import features

TRAIN_SHAPES = 14000  # shapes in each layout on which the tree is grown
CV_SHAPES = 1500  # shapes in each layout on which a tree of the cross-validation is grown
SHAPES_PER_MEASURED = 120  # most shapes in each layout of either tree, for each measured shape
CV_PARTS = 5  # parts of the cross-validation
MEASURED_WEIGHT = 3.0  # weight of a measured problem; a predicted problem has weight 1
# Of a problem of `--shapes @FILE`, times its weight in the file: a loss of 1 % on one of mean weight is worth a split.
LISTED_WEIGHT = 30.0
FLAG_DISTANCE = 3.0  # octaves between two problems that differ in a yes-or-no feature
MIN_GAIN = 2e-5  # least gain of a split: mean over all problems, natural logarithm of cost
DIRECT_SHAPES = 200  # shapes in each layout on which the direct variant is compared
DIRECT_LOSS = 0.03  # natural logarithm of cost; about what walking the tree costs a small product
UNTRIED_FACTOR = 4.0  # assumed cost of an unmeasured variant, times the worst measured cost
UNCERTAINTY_WEIGHT = 0.3  # standard deviations added to a prediction, so that the better measured variant wins


@dataclass(frozen=True)
class CostRow:
    """A problem and each variant's measured cost; None where a variant was not measured."""

    problem: Problem
    costs: tuple[float | None, ...]

    @property
    def best(self) -> float:
        return min(cost for cost in self.costs if cost is not None)

    def of(self, count: int) -> CostRow:
        """The row of the first `count` variants."""
        return replace(self, costs=self.costs[:count])


CostsByVlen = Mapping[int, Sequence[CostRow]]


@dataclass(frozen=True)
class Also:
    """A blocking that is not in the library; the models of its micro-kernel are fitted to its costs too."""

    variant: Variant
    problems: tuple[Problem, ...]
    costs: tuple[float, ...]


@dataclass(frozen=True)
class Candidates:
    """The variants of one operator, dtype and platform from which a library chooses at one VLEN."""

    operator: Operator
    platform: Platform
    dtype: str
    variants: tuple[Variant, ...]
    vlen: int = 0  # bits; 0: the platform's first
    direct: int | None = None  # number of the direct variant, which is the last
    weights: Mapping[str, float] = dataclasses.field(default_factory=dict)  # label -> weight of a problem of a file
    # cache of random problems, without terms: they are the same at every VLEN
    fields: dict[tuple[Draw, int | None], Field] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def of(cls, operator: Operator, platform: Platform, given: Winners, vlen: int = 0) -> Candidates:
        direct = None if given.direct is None else len(given.variants)
        return cls(operator, platform, given.dtype, given.all, vlen, direct)

    def barred(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Problems x variants: True where a variant must not be chosen: the direct one beyond what it may serve."""
        found = np.zeros((len(next(iter(columns.values()))), len(self.variants)), dtype=bool)
        if self.direct is not None:
            found[:, self.direct] = ~direct.may_serve(self.operator, self.platform, self.dtype, columns)
        return found

    def guarded(
        self, root: Leaf | Split, losses: Matrix, columns: Mapping[str, NDArray[Any]], barred: NDArray[np.bool_]
    ) -> Leaf | Split:
        """The tree with a test before each leaf of the direct variant, so that it serves only where it may."""
        if self.direct is None:
            return root
        test = direct.serves_condition(self.operator, self.platform, self.dtype)
        return direct.guarded(root, test, self.direct, losses, barred[:, self.direct], columns)

    def weighed(self, problems: Sequence[Problem]) -> Matrix:
        """The weights of measured problems, problems x 1."""
        listed = (self.weights.get(problem.label) for problem in problems)
        return np.array([[MEASURED_WEIGHT if own is None else LISTED_WEIGHT * own] for own in listed]).reshape(-1, 1)

    def terms(self, variant: Variant, columns: Mapping[str, NDArray[Any]]) -> Matrix:
        """Cost terms of a variant, problems x terms. columns: as `columns` makes them."""
        return term_matrix(self.operator, self.platform, variant, columns, self.vlen)

    def columns(self, problems: Sequence[Problem]) -> dict[str, NDArray[Any]]:
        """As `quantities`."""
        return quantities(self.operator, problems)

    def places(self, columns: Mapping[str, NDArray[Any]]) -> Matrix:
        """Coordinates of the problems in octaves, one for each feature that is not computed from others."""
        own = self.operator.seen
        made = [np.log2(np.maximum(columns[name].astype(np.float64), 1.0)) for name in own]
        flags = [FLAG_DISTANCE * (columns[name] == 0).astype(np.float64) for name in own]
        return np.stack([*made, *flags], axis=1)

    def pool(self, variant: Variant) -> PoolKey:
        return PoolKey(variant.kernel.id, variant.template.digest)


@dataclass(frozen=True)
class FitData:
    """The samples for fitting; `fitted` can leave out one part of the shapes."""

    candidates: Candidates
    measured: tuple[CostRow, ...]
    terms: tuple[Matrix, ...]  # one matrix a variant: measured problems x terms
    barred: NDArray[np.bool_]
    places: Matrix
    also: tuple[tuple[CostSamples, PoolKey, tuple[int, ...]], ...]  # samples, pool, part of each problem
    parts: tuple[int, ...]  # part of each measured problem, for cross-validation

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
        return cost_model.fit(samples, [self.candidates.pool(v) for v in self.candidates.variants], more)


@dataclass(frozen=True)
class Field:
    """Random problems on which a tree is grown: terms by variant, coordinates, features."""

    problems: tuple[Problem, ...]
    terms: tuple[Matrix, ...]
    places: Matrix
    columns: Mapping[str, NDArray[Any]]
    barred: NDArray[np.bool_]

    def predicted(self, models: Sequence[Fitted]) -> tuple[Matrix, Matrix]:
        """Predicted natural logarithms of cost, and their standard deviations; both problems x variants."""
        means, spreads = cost_model.predict(models, self.terms, self.places)
        return _dear(means, self.barred), np.where(self.barred, 0.0, spreads)


def fit_data(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also] = ()) -> FitData:
    """All measurements as samples."""
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
    """Shape -> part of the cross-validation; all layouts of a shape are in one part."""
    shapes = sorted({problem.pairs for problem in problems})
    order = np.random.default_rng(SEED).permutation(len(shapes))
    return {shape: int(place) % CV_PARTS for shape, place in zip(shapes, order, strict=True)}


def field(candidates: Candidates, draw: Draw) -> Field:
    """The problems of `shapes.drawn` with their terms, cached in the candidates."""
    by = draw, candidates.direct
    if by not in candidates.fields:
        problems = drawn(candidates.operator, candidates.dtype, draw)
        columns = candidates.columns(problems)
        candidates.fields[by] = Field(problems, (), candidates.places(columns), columns, candidates.barred(columns))
    found = candidates.fields[by]
    return replace(found, terms=tuple(candidates.terms(variant, found.columns) for variant in candidates.variants))


def tree(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also] = (), judged: bool = True) -> Tree:
    """The tree and its cross-validated regret.

    judged: False for a library that is not delivered: a quick tree of the measured problems alone
    """
    measured = [one for one in measured if chosen_for(candidates.operator, one.problem)] or measured
    if len(candidates.variants) < 2 or not measured:
        return Tree(Leaf(0), 0.0 if len(candidates.variants) < 2 else None)
    if not judged:
        return _of_measured(candidates, measured, judged)
    samples, most = fit_data(candidates, measured, also), SHAPES_PER_MEASURED * len(measured)
    small, large = (field(candidates, Draw(min(count, most))) for count in (CV_SHAPES, TRAIN_SHAPES))
    regret = _left_out(candidates, measured, samples.parts, lambda part: _grown(samples, small, part))
    return Tree(_grown(samples, large, None), regret)


def predicted(
    candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also], known: Mapping[str, Any]
) -> tuple[float | None, ...]:
    """Each variant's cost on a problem by the models that `tree` uses. known: its `quantities`, as columns

    None: the variant must not serve it, or was never measured.
    """
    rows = [one for one in measured if chosen_for(candidates.operator, one.problem)] or measured
    if not rows:
        return (None,) * len(candidates.variants)
    columns = {name: np.array([value]).reshape(1) for name, value in known.items()}
    terms = [candidates.terms(variant, columns) for variant in candidates.variants]
    logs, _ = cost_model.predict(fit_data(candidates, rows, also).fitted(), terms, candidates.places(columns))
    without = [no or all(row.costs[n] is None for row in rows) for n, no in enumerate(candidates.barred(columns)[0])]
    return tuple(None if no else math.exp(log) for log, no in zip(logs[0], without, strict=True))


def row_of(operator: Operator, measured: CostRow) -> TreeRow:
    """The row for growing a tree; a variant that was not measured on the problem gets a prohibitive cost."""
    dear = UNTRIED_FACTOR * max(cost for cost in measured.costs if cost is not None)
    return TreeRow(
        features(operator, measured.problem), tuple(dear if cost is None else cost for cost in measured.costs)
    )


def _of_measured(candidates: Candidates, measured: Sequence[CostRow], judged: bool) -> Tree:
    """A tree of the measured problems alone, without models."""

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
    """Geometric mean of the cross-validated regret, over problems on which all variants were measured.

    None where there is no such problem.

    parts: part of each measured problem; grown: the tree that is grown without a part
    """
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
    """log(cost of the tree's choice / best cost) of a measured problem."""
    row = row_of(candidates.operator, measured)
    return math.log(row.costs[decide(root, row.features)] / measured.best)


def _grown(samples: FitData, over: Field, without: int | None) -> Leaf | Split:
    """The tree of predicted and measured problems, without the part `without`; measured ones weigh more."""
    models = samples.fitted(without)
    means, spreads = over.predicted(models)
    losses = [_over_best(means + UNCERTAINTY_WEIGHT * spreads)]
    columns = {name: [column] for name, column in over.columns.items()}
    rows = [row for row, part in enumerate(samples.parts) if part != without]
    places = samples.places[rows]
    guessed, unsure = cost_model.predict(models, [terms[rows] for terms in samples.terms], places)
    log_costs = guessed + UNCERTAINTY_WEIGHT * unsure
    for place, row in enumerate(rows):
        for number, cost in enumerate(samples.measured[row].costs):
            if cost is not None:
                log_costs[place, number] = math.log(cost)
    log_costs = _dear(log_costs, samples.barred[rows])
    losses.append(samples.candidates.weighed([samples.measured[row].problem for row in rows]) * _over_best(log_costs))
    for name, column in samples.candidates.columns([samples.measured[row].problem for row in rows]).items():
        columns[name].append(column)
    joined = {name: np.concatenate(columns[name]) for name in samples.candidates.operator.features}
    together, barred = np.concatenate(losses), np.concatenate([over.barred, samples.barred[rows]])
    return samples.candidates.guarded(distil(together, joined, gain=MIN_GAIN * len(together)), together, joined, barred)


def _dear(logs: Matrix, barred: NDArray[np.bool_]) -> Matrix:
    """The logarithms of costs, where a barred variant costs more than all others."""
    found: Matrix = np.where(barred, logs.max(axis=1, keepdims=True) + math.log(UNTRIED_FACTOR), logs)
    return found


def _over_best(logs: Matrix) -> Matrix:
    """Losses relative to each problem's best variant; rounded, so that the last bits of a sum change no tree."""
    found: Matrix = np.round(logs - logs.min(axis=1, keepdims=True), 6)
    return found


def winners(
    candidates: Candidates,
    measured: CostsByVlen,
    also: Mapping[int, Sequence[Also]] | None = None,
    judged: bool = True,
) -> Winners:
    """The candidates with one tree for each VLEN of `measured`; a single tree has VLEN 0."""
    operator, direct = candidates.operator, candidates.direct
    variants = candidates.variants[:direct]
    unasked = operator.direct.unasked if direct is not None and operator.direct is not None else 0
    wanted: list[tuple[Candidates, Sequence[CostRow], Sequence[Also]]] = []
    for vlen, rows in sorted(measured.items()):
        here, others = replace(candidates, vlen=vlen), (also or {}).get(vlen, ())
        if direct is not None and all(row.costs[direct] is None for row in rows):  # not measured here
            here, rows = replace(here, variants=variants, direct=None), [row.of(len(variants)) for row in rows]
        elif direct is not None and judged:
            unasked = min(unasked, _unasked(here, rows, others))
        wanted.append((here, rows, others))
    several = len(measured) > 1
    with threadpool_limits(1):  # threads would take longer: most of the work is many short calls
        trees = tuple(replace(tree(*one, judged), vlen=one[0].vlen if several else 0) for one in wanted)
    return Winners(candidates.dtype, variants, trees, None if direct is None else candidates.variants[direct], unasked)


def _unasked(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also]) -> int:
    """Flops up to which the library takes the direct variant without walking the tree.

    The limit is doubled while the models predict that the direct variant is within DIRECT_LOSS of the best.
    """
    direct, operator = candidates.operator.direct, candidates.operator
    assert direct is not None
    assert candidates.direct is not None
    rows = [one for one in measured if chosen_for(operator, one.problem)]
    if not rows:
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
