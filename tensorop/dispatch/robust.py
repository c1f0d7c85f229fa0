"""Chooses among close variants by a board model's uncertainties: its alternatives and its assumed constants.

The search minimises the cost at the model's best fit. Among variants that are close there, the dispatch takes the one
whose cost under its worst alternative is least. Constants that alone would change the choice are noted in the journal,
for the report.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from tensorop.dispatch import evidence
from tensorop.dispatch.choice import CostRow, CostsByVlen
from tensorop.dispatch.inside import LibraryBench
from tensorop.measure import statistics
from tensorop.measure.request import Purpose
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.model.winner import Winners
from tensorop.search.task import Pass, Task
from tensorop.trial.calls import measured_call, warming_calls

NOTE = "constants"  # journal note
CLOSE = 1.03  # variants up to this factor over the least cost are close
GAIN = 0.01  # share of the cost; a smaller gain does not make another choice better


@dataclass(frozen=True)
class CloseVariants:
    """Close variants on one problem at a VLEN (bits).

    cycles: a row a variant: at the best fit, then with each constant at its low and at its high end
    under: a row a variant: under each alternative of the model
    """

    vlen: int
    problem: str
    variants: Sequence[int]
    cycles: Sequence[Sequence[float]]
    under: Sequence[Sequence[float]] = ()

    @property
    def given_up(self) -> float:
        """Share of the best fit's cost that the choice gives up for a better worst alternative."""
        return 1 - min(of_one[0] for of_one in self.cycles) / self.cycles[self.chosen][0]

    @property
    def chosen(self) -> int:
        """Index of the chosen one among the close variants."""
        costs = worst_costs(self.cycles, self.under)
        return costs.index(min(costs))


def measure_close_variants(task: Task, library: Path, given: Winners) -> None:
    """Counts close variants under the model's alternatives and constants; writes the results into the journal.

    library: holds exactly these variants, on the target
    """
    if len(given.all) < 2 or _noted(task, given) is not None:
        return
    assumed = task.target.assumed
    assert assumed is not None
    of_search = {problem.label for problem in (*task.problems, *task.final_problems)}
    costs = evidence.load_costs(task, given).items()
    own = {vlen: [one for one in measured if one.problem.label in of_search] for vlen, measured in costs}
    contests = _counted(task, LibraryBench(task, library, given), own)
    data = [asdict(contest) | {"chosen": contest.chosen, "given_up": contest.given_up} for contest in contests]
    evidence.note(task, given, NOTE, constants=assumed.constants, contests=data, alternatives=assumed.alternatives)


def weighed(task: Task, given: Winners, of_variants: CostsByVlen) -> CostsByVlen:
    """The rows, those with close variants as `weigh` makes them."""
    by_place = {(contest.vlen, contest.problem): contest for contest in _noted(task, given) or ()}
    return {
        vlen: [weigh(one, by_place.get((vlen, one.problem.label))) for one in measured]
        for vlen, measured in of_variants.items()
    }


def weigh(measured: CostRow, contest: CloseVariants | None) -> CostRow:
    """The row with close variants' costs in the ratio of their worst alternatives, at most CLOSE times the best."""
    if contest is None:
        return measured
    costs = worst_costs(contest.cycles, contest.under)
    pairs = zip(contest.variants, costs, strict=True)
    moved = {number: measured.best * min(CLOSE, cost / min(costs)) for number, cost in pairs}
    return replace(measured, costs=tuple(moved.get(number, cost) for number, cost in enumerate(measured.costs)))


def summary(task: Task) -> str:
    """A line for the user: how many choices no constant changes, and which constants change the others."""
    noted = [data for name, data in task.journal.history.notes if name == NOTE and data["dtype"] == task.dtype]
    contests = noted[-1]["contests"] if noted else []
    changed = [overturned(contest["cycles"], noted[-1]["constants"], contest["chosen"]) for contest in contests]
    names = sorted({name for found in changed for name in found})
    steady = sum(not found for found in changed)
    by = f"; others change by {', '.join(names)}" if names else ""
    line = f"{task.dtype}: of {len(contests)} close choices no assumed constant changes {steady}{by}"
    dearer = [contest["given_up"] for contest in contests if contest["given_up"] > 0]
    if not dearer or not noted[-1]["alternatives"]:
        return line
    more = f"costs up to {max(dearer):.1%} more at the best fit"
    return f"{line}; in {len(dearer)} the one taken, whose worst alternative is best, {more}"


def _noted(task: Task, given: Winners) -> list[CloseVariants] | None:
    """Results for the same variants in the journal; the same journal rebuilds the same library."""
    assumed = task.target.assumed
    for data in reversed(list(evidence.notes(task, given, NOTE))):
        if assumed is not None and data.get("alternatives") == list(assumed.alternatives):
            names = ("vlen", "problem", "variants", "cycles", "under")
            return [CloseVariants(*(found[name] for name in names)) for found in data["contests"]]
    return None


def _counted(task: Task, inside: LibraryBench, of_variants: CostsByVlen) -> list[CloseVariants]:
    """Counts the closest variants first, within the share of the budget; skips a variant that cannot be counted."""
    limit = task.share(PASS.share).seconds
    until = None if limit is None else time.monotonic() + limit
    wanted: list[tuple[float, int, int, Problem, list[int]]] = []
    for vlen, measured in of_variants.items():
        for one in measured:
            costs = {number: cost for number, cost in enumerate(one.costs) if cost is not None}
            close = [number for number, cost in costs.items() if cost <= CLOSE * one.best]
            if len(close) > 1:
                wanted.append((sorted(costs.values())[1] / one.best, len(wanted), vlen, one.problem, close))

    def contest(item: tuple[float, int, int, Problem, list[int]]) -> CloseVariants | None:
        _, _, vlen, problem, close = item
        if until is not None and time.monotonic() > until:
            return None
        counted = {number: _cycles(task, inside, problem, vlen, number) for number in close}
        by_variant = {number: cycles for number, cycles in counted.items() if cycles is not None}
        if len(by_variant) < 2:
            return None
        cycles, under = zip(*by_variant.values(), strict=True)
        return CloseVariants(vlen, problem.label, tuple(by_variant), cycles, under)

    with ThreadPoolExecutor(max(1, task.job.jobs)) as pool:
        found = pool.map(contest, sorted(wanted, key=lambda item: item[:2]))
        return [contest for contest in found if contest is not None]


def _cycles(
    task: Task, inside: LibraryBench, problem: Problem, vlen: int, number: int
) -> tuple[tuple[float, ...], tuple[float, ...]] | None:
    """A variant's cycles: (at the best fit and each constant's two ends, under each alternative)."""
    warm = warming_calls(float(task.operator.reference.work(problem)))
    call = measured_call(task.operator, problem, task.seed, 0)
    request = replace(inside.request(vlen, [call], (number,)), purpose=Purpose.RANGES, warm=[warm])
    counted = task.target.measure(request)
    if isinstance(counted, Outcome):
        return None
    samples = counted[0].samples
    return samples.scenario_costs or (samples.value,), tuple(samples.alternative_costs.values())


def mean_costs(cycles: Sequence[Sequence[float]]) -> list[float]:
    """Each candidate's geometric mean over the constants' values. cycles: candidates x values."""
    return [statistics.geomean(of_one) for of_one in cycles]


def worst_costs(cycles: Sequence[Sequence[float]], under: Sequence[Sequence[float]]) -> list[float]:
    """Each candidate's cycles under its worst alternative; without alternatives, its mean over the constants' values.

    cycles: candidates x values of constants; under: candidates x alternatives
    """
    return [max(of_one) for of_one in under] if all(under) else mean_costs(cycles)


def overturned(cycles: Sequence[Sequence[float]], constants: Sequence[str], chosen: int) -> dict[str, float]:
    """Constants that alone make another candidate better than the chosen one, with the gain relative to the best fit.

    cycles: a row a candidate: the best fit, then each of `constants` at its low and at its high end
    """
    found: dict[str, float] = {}
    given = 1 - min(of_one[0] for of_one in cycles) / cycles[chosen][0]
    for number, name in enumerate(constants):
        for choice in (1 + 2 * number, 2 + 2 * number):
            gain = 1 - min(of_one[choice] for of_one in cycles) / cycles[chosen][choice] - given
            if gain > max(GAIN, found.get(name, 0.0)):
                found[name] = gain
    return found


PASS = Pass(
    "robust",
    0.1,
    "measuring close variants over the ranges of the model's assumed constants",
    wanted=lambda target: target.assumed is not None,
    measure=measure_close_variants,
    summary=summary,
)
