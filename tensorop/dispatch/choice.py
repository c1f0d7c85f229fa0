"""How a library chooses: a cost model of each variant, fitted to all that was measured, distilled into a tree.

The tree is grown on problems all over the operator's range, whose costs the models predict, and on those that were
measured. How far it is off is found by leaving shapes out: models and tree are made anew without them, and what that
tree would choose for them is held against what was measured.
"""

from __future__ import annotations

import dataclasses
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tensorop.dispatch import costmodel, costs, served
from tensorop.dispatch.costmodel import CostSamples, Fitted, Matrix, PoolKey
from tensorop.dispatch.tree import TreeRow, decide, distil, grow
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.space.problems import features, of

LONGEST_SIDE = 4096  # of the problems that the tree is grown on
TRAIN_SHAPES = 14000  # in each layout, that the tree is grown on
CV_SHAPES = 1500  # in each layout, while measured shapes are left out
SHAPES_PER_MEASURED = 120  # at most, of either
SEED = 20240229
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


@dataclass(frozen=True)
class Also:
    """Another blocking that the search tried: its micro-kernel's models learn from it."""

    variant: Variant
    problems: tuple[Problem, ...]
    costs: tuple[float, ...]


@dataclass(frozen=True)
class Candidates:
    """Whose choice is made: an operator's variants of one dtype on a platform, at a VLEN (bits; 0: the first).

    direct: the number of the direct one among them
    fields: made so far, without their terms: the same at every VLEN
    """

    operator: Operator
    platform: Platform
    dtype: str
    variants: tuple[Variant, ...]
    vlen: int = 0
    direct: int | None = None
    fields: dict[tuple[object, ...], Field] = dataclasses.field(default_factory=dict, compare=False, repr=False)

    def barred(self, columns: Mapping[str, NDArray[Any]]) -> NDArray[np.bool_]:
        """Problems x variants: what is never chosen there, the direct one beyond what it may serve."""
        found = np.zeros((len(next(iter(columns.values()))), len(self.variants)), dtype=bool)
        if self.direct is not None:
            found[:, self.direct] = ~served.over(self.operator, self.platform, self.dtype, columns)
        return found

    def guarded(
        self, root: Leaf | Split, losses: Matrix, columns: Mapping[str, NDArray[Any]], barred: NDArray[np.bool_]
    ) -> Leaf | Split:
        """The tree, grown on these problems, that calls the direct variant only where it may serve."""
        if self.direct is None:
            return root
        test = served.condition(self.operator, self.platform, self.dtype)
        return served.guarded(root, test, self.direct, losses, barred[:, self.direct], columns)

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
            told = np.array([self.measured[row].costs[number] for row in rows], dtype=np.float64)
            samples.append(CostSamples(terms[rows], self.places[rows], told))
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
        told = CostSamples(candidates.terms(other.variant, seen), candidates.places(seen), np.array(other.costs))
        others.append((told, candidates.pool(other.variant), tuple(part[p.pairs] for p in other.problems)))
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


def field(
    candidates: Candidates,
    count: int,
    seed: int = SEED,
    longest: int = LONGEST_SIDE,
    most: float = math.inf,
    least: float = 0.0,
) -> Field:
    """Problems as `drawn`; the same for the same seed."""
    by = (count, seed, longest, most, least, candidates.direct)
    with _DRAWING:
        if by not in candidates.fields:
            problems = drawn(candidates.operator, candidates.dtype, count, seed, longest, most, least)
            columns = candidates.columns(problems)
            candidates.fields[by] = Field(problems, (), candidates.places(columns), columns, candidates.barred(columns))
    found = candidates.fields[by]
    return replace(found, terms=tuple(candidates.terms(variant, found.columns) for variant in candidates.variants))


def drawn(
    operator: Operator, dtype: str, count: int, seed: int, longest: int, most: float = math.inf, least: float = 0.0
) -> tuple[Problem, ...]:
    """`count` log-uniform shapes in each layout, none that is always served without a choice or has more flops than
    `most` or no more than `least`."""
    rng = np.random.default_rng(seed)
    sides = _sides(rng, len(operator.dims), math.log(longest), 1 if operator.shapes.drawn else 256)
    always = operator.direct.always if operator.direct else -math.inf
    if most <= max(always, least):
        raise ValueError(f"no shape has at most {most:g} flops and more than {max(always, least):g}")
    found: list[Problem] = []
    for layout in range(len(operator.layouts)):
        of_layout: list[Problem] = []
        while len(of_layout) < count:
            shape = operator.shapes.drawn_from(next(sides), rng)
            if operator.shapes.wrong(shape):
                continue
            problem = of(operator, dtype, shape, layout)
            if max(always, least) < float(operator.reference.work(problem)) <= most:
                of_layout.append(problem)
        found += of_layout
    return tuple(found)


def _sides(rng: np.random.Generator, dims: int, longest: float, block: int) -> Iterator[list[int]]:
    """Log-uniform sides, drawn by the block, which makes the same ones as singly."""
    while True:
        drawn = np.exp(rng.uniform(0, longest, (block, dims)))
        yield from np.maximum(np.rint(drawn), 1).astype(int).tolist()


def chosen_for(operator: Operator, problem: Problem) -> bool:
    """Whether a choice is made for a problem: the direct variant serves the smallest."""
    return operator.direct is None or float(operator.reference.work(problem)) > operator.direct.always


def tree(candidates: Candidates, measured: Sequence[CostRow], also: Sequence[Also] = (), judged: bool = True) -> Tree:
    """The tree and its regret on shapes left out; unless `judged` one of the measured problems alone, for what is not
    delivered."""
    measured = [one for one in measured if chosen_for(candidates.operator, one.problem)] or measured
    if len(candidates.variants) < 2 or not measured:
        return Tree(Leaf(0), 0.0 if len(candidates.variants) < 2 else None)
    if not judged or not candidates.operator.costs.terms:
        return _of_measured(candidates, measured, judged)
    samples, most = fit_data(candidates, measured, also), SHAPES_PER_MEASURED * len(measured)
    small = field(candidates, min(CV_SHAPES, most))
    regret = _left_out(candidates, measured, samples.parts, lambda part: _grown(samples, small, part))
    return Tree(_grown(samples, field(candidates, min(TRAIN_SHAPES, most)), None), regret)


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
    told = guessed + UNCERTAINTY_WEIGHT * unsure
    for place, row in enumerate(rows):
        for number, cost in enumerate(samples.measured[row].costs):
            if cost is not None:
                told[place, number] = math.log(cost)
    told = _dear(told, samples.barred[rows])
    losses.append(MEASURED_WEIGHT * _over_best(told))
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
    operator: Operator,
    platform: Platform,
    dtype: str,
    variants: tuple[Variant, ...],
    measured: Mapping[int, Sequence[CostRow]],
    also: Mapping[int, Sequence[Also]] | None = None,
    judged: bool = True,
    direct: Variant | None = None,
) -> Winners:
    """The variants with a tree for each VLEN of `measured`; with one VLEN, its tree has no name.

    measured, also: with a cost for the direct one too, as the last, where there is one.
    """
    unasked = operator.direct.unasked if direct is not None and operator.direct is not None else 0
    fields: dict[tuple[object, ...], Field] = {}
    wanted: list[tuple[Candidates, Sequence[CostRow], Sequence[Also]]] = []
    for vlen, rows in sorted(measured.items()):
        others = (also or {}).get(vlen, ())
        if direct is not None and any(row.costs[-1] is not None for row in rows):
            candidates = Candidates(operator, platform, dtype, (*variants, direct), vlen, len(variants), fields)
            if judged:
                unasked = min(unasked, _unasked(candidates, rows, others))
        else:  # nothing is known of the direct one
            candidates = Candidates(operator, platform, dtype, variants, vlen, fields=fields)
            rows = [replace(row, costs=row.costs[: len(variants)]) for row in rows]
        wanted.append((candidates, rows, others))
    several = len(measured) > 1
    with threadpool_limits(1), ThreadPoolExecutor(TREES_AT_ONCE) as pool:
        found = pool.map(lambda one: tree(one[0], one[1], one[2], judged), wanted)
        trees = tuple(replace(t, vlen=one.vlen if several else 0) for (one, _, _), t in zip(wanted, found, strict=True))
    return Winners(dtype, variants, trees, direct, unasked)


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
        over = field(candidates, DIRECT_SHAPES, SEED, direct.unasked, min(2 * found, direct.unasked), found).predicted(
            models
        )[0]
        if float(_over_best(over)[:, candidates.direct].mean()) > DIRECT_LOSS:
            break
        found = min(2 * found, direct.unasked)
    return found


def carried(given: Winners) -> Winners:
    """Without the variants that no problem is sent to at any VLEN, and without their specialisations for a VLEN where
    none is."""
    direct = len(given.variants)  # stays, after the others
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
