"""What blockings cost before they are tried: the prior of a search of blockings.

A driver decides about each blocking what it does (`decisions`), so the work of one that was never built is known. Until
trials have passed, each unit of work counts as TYPICAL. Then the coefficients are fitted to the trials of all kernels,
and to those of each kernel.
"""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tensorop.costs import model as cost_model
from tensorop.costs.terms import of_blockings, quantities
from tensorop.measure.samples import objective
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished
from tensorop.render import instantiate
from tensorop.space import Space
from tensorop.space.problems import classes

# Multiples of what multiplying a vector costs: medians of the coefficients that were fitted to blockings in ten
# searches, by the clocks of three machines and under a board model; 0 where most fits have none.
TYPICAL = {
    "call": 90.0, "multiplies": 1.0, "loads": 0.8, "broadcasts": 0.1, "reads_apart": 0.4, "tiles": 15.0, "updates": 3.2,
    "copied": 4.0, "runs": 2.7, "transposed": 0.5, "gathered": 1.0, "blocks": 50.0, "other": 0.0, "steps": 0.0,
    "waits_2": 0.0, "waits_4": 2.5, "waits_8": 0.2,
    "beyond_l1": 0.03, "beyond_whole_l2": 0.05, "beyond_whole_l3": 0.2,
}  # fmt: skip
MOST = 1500  # blockings of a kernel that are compared; of more, so many are drawn
STEPS = 8  # fits while the number of trials doubles

Matrix = NDArray[np.float64]
Terms = NDArray[np.float32]


@dataclass(frozen=True)
class _Table:
    """A kernel's blockings and their work."""

    points: Sequence[Point]
    terms: Terms
    works: Sequence[int]


class Expectation:
    """Expected costs of the blockings of a search. problems: also those that trials do not measure"""

    def __init__(
        self,
        operator: Operator,
        platform: Platform,
        problems: Sequence[Problem],
        vlens: Sequence[int],
    ) -> None:
        self._operator, self._platform, self._vlens = operator, platform, vlens
        self._decides = instantiate.decides(operator)
        self._known = quantities(operator, problems)
        self._labels = [problem.label for problem in problems]
        of_class: dict[str, list[int]] = defaultdict(list)
        named = classes(operator, problems)
        for place, label in enumerate(self._labels * len(vlens)):
            of_class[named[label]].append(place)
        self._columns = list(of_class.values())  # places of each class's problems at all VLENs
        self._tables: dict[str, _Table] = {}
        self._samples: dict[tuple[str, int], tuple[NDArray[np.bool_], Terms, Matrix]] = {}
        self._fits: dict[tuple[str, int], Matrix] = {}

    def best(self, kernel: Kernel, space: Space, ended: Sequence[Finished], seen: Collection[Point]) -> Point | None:
        """The unseen blocking that should lower most the least costs of one class's problems, among all kernels'.

        Classes take turns. Without a trial, or if none should, it is the one of least expected cost. A blocking that
        does the same work as a seen one in every problem counts as seen. None if there is no other, or if the operator
        does not say what its driver decides.

        ended: trials of the search in their order; seen: the kernel's tried blockings, and those under way
        """
        if not self._decides:
            return None
        table = self._table(kernel, space)
        known = {_work(row) for row in self._terms(kernel, list(seen))} if seen else set()
        logs = self._logs(kernel, table, ended)
        lower = np.maximum(0.0, self._least(ended) - logs)
        turn = sum(one.outcome.ok for one in ended) + len(seen)
        of_class = self._columns[turn % len(self._columns)]
        order = np.lexsort((logs[:, of_class].mean(axis=1), -lower[:, of_class].mean(axis=1)))
        return next((table.points[index] for index in order if table.works[index] not in known), None)

    def ranked(self, kernel: Kernel, space: Space) -> list[Point]:
        """The blockings by their expected costs before any trial; of an operator without decisions, the defaults first.

        Of more than MOST blockings, so many are drawn.
        """
        if not self._decides:
            defaults = instantiate.defaults(self._operator, self._platform, kernel.dtype, kernel.configuration)
            part = {name: defaults[name] for name, _ in space.dimensions}
            return [space.at(index) for index in np.argsort(space.distances(part), kind="stable")[:MOST]]
        table = self._table(kernel, space)
        order = np.argsort(self._logs(kernel, table, ()).mean(axis=1), kind="stable")
        return [table.points[index] for index in order]

    def logs(self, variants: Sequence[Variant]) -> Matrix:
        """Logarithms of expected costs before any trial, variants x (VLENs x problems)."""
        with threadpool_limits(1):
            found = [self._terms(one.kernel, [one.blocking]) @ self._coefficients(one.kernel, ()) for one in variants]
        logs: Matrix = np.log(np.concatenate(found))
        return logs

    def unmeasured(self, tried: Finished, ended: Sequence[Finished]) -> dict[tuple[str, int], float]:
        """Expected costs of a trial's variant, by problem and VLEN, where the trial measured none.

        The variant's mean distance from the model is that of what was measured. ended: trials of the search
        """
        if not self._decides:
            return {}
        measured, _, _ = self._sample(tried)
        costs = np.exp(self._corrected(tried, self._coefficients(tried.trial.variant.kernel, ended)))
        places = [(name, vlen) for vlen in self._vlens for name in self._labels]
        return {place: float(costs[i]) for i, place in enumerate(places) if not measured[i]}

    def _table(self, kernel: Kernel, space: Space) -> _Table:
        if kernel.id not in self._tables:
            points = space.sample(random.Random(0), MOST) if space.size > MOST else list(space.points())
            terms = self._terms(kernel, points)
            self._tables[kernel.id] = _Table(points, terms, [_work(row) for row in terms])
        return self._tables[kernel.id]

    def _terms(self, kernel: Kernel, points: Sequence[Point]) -> Terms:
        """Blockings x (VLENs x problems) x kinds of work, in the order of TYPICAL."""
        given = self._operator, self._platform, kernel, points, self._known
        each = [of_blockings(*given, vlen) for vlen in self._vlens]
        none = np.zeros((len(points), len(self._labels)))
        found = np.concatenate([np.stack([of.get(name, none) for name in TYPICAL], axis=2) for of in each], axis=1)
        return found.astype(np.float32)  # some hundred megabytes otherwise

    def _sample(self, finished: Finished) -> tuple[NDArray[np.bool_], Terms, Matrix]:
        """Which VLENs and problems a trial measured, the terms of all, and the costs of those."""
        variant, found = finished.trial.variant, finished.score.per_problem
        key = variant.id, len(found)
        if key not in self._samples:
            rows = [(v, found[p]) if p in found else None for v in self._vlens for p in self._labels]
            costs = [objective(row[1], row[0]) for row in rows if row]
            (terms,) = self._terms(variant.kernel, [variant.blocking])
            measured = np.array([row is not None for row in rows])
            self._samples[key] = measured, terms, np.array(costs)
        return self._samples[key]

    def _logs(self, kernel: Kernel, table: _Table, ended: Sequence[Finished]) -> Matrix:
        """Logarithms of expected costs, blockings x (VLENs x problems)."""
        with threadpool_limits(1):  # sums in one order give the same bits on every machine
            found: Matrix = np.log(table.terms @ self._coefficients(kernel, ended))
            return found

    def _least(self, ended: Sequence[Finished]) -> Matrix:
        """Logarithm of the least cost of each problem at each VLEN so far, expected where no trial measures it.

        Without a trial nothing is lower.
        """
        passed = [one for one in ended if one.outcome.ok]
        if not passed:
            return np.full(len(self._labels) * len(self._vlens), -np.inf)
        least = np.full(len(self._labels) * len(self._vlens), np.inf)
        for measured, _, costs in map(self._sample, passed):
            least[measured] = np.minimum(least[measured], np.log(costs))
        if np.isinf(least).any():
            kernels = {one.trial.variant.kernel.id: one.trial.variant.kernel for one in passed}
            of = {name: self._coefficients(kernel, ended) for name, kernel in kernels.items()}
            expected = [self._corrected(one, of[one.trial.variant.kernel.id]) for one in passed]
            least = np.where(np.isinf(least), np.min(expected, axis=0), least)
        return least

    def _corrected(self, tried: Finished, coefficients: Matrix) -> Matrix:
        """Logarithms of a tried variant's costs, moved by its mean distance from the model."""
        measured, terms, costs = self._sample(tried)
        with threadpool_limits(1):
            logs: Matrix = np.log(terms @ coefficients)
        return logs + float(np.mean(np.log(costs) - logs[measured]))

    def _coefficients(self, kernel: Kernel, ended: Sequence[Finished]) -> Matrix:
        """Cost of a unit of each kind of work: from all trials, and then from those of the kernel."""
        used = ended[: len(ended) - len(ended) % max(1, (1 << len(ended).bit_length()) // (2 * STEPS))]
        passed = [one for one in used if one.outcome.ok]
        usual = self._fit("", passed, len(used), np.array([*TYPICAL.values()]))
        mine = [one for one in passed if one.trial.variant.kernel.id == kernel.id]
        return self._fit(kernel.id, mine, len(used), usual)

    def _fit(self, name: str, trials: Sequence[Finished], used: int, prior: Matrix) -> Matrix:
        """Coefficients of some trials, of which the newest is number `used` at most; fitted once."""
        if (name, used) not in self._fits:
            self._fits[name, used] = prior
            if trials:
                samples = [(terms[measured], costs) for measured, terms, costs in map(self._sample, trials)]
                terms, costs = (np.concatenate(part) for part in zip(*samples, strict=True))
                scale = np.exp(np.mean(np.log(costs) - np.log(terms @ prior)))
                self._fits[name, used] = cost_model.weights(terms, costs, scale * prior)
        return self._fits[name, used]


def _work(terms: Terms) -> int:
    """A key of what a blocking does, from its terms."""
    return hash(terms.tobytes())
