"""Measures the candidate variants inside the library, on shapes outside the suites.

The first batch has random shapes and all variants; it shows the regret on unseen shapes. Later batches have shapes on
which the cost models disagree, with the variants that may be best there. On a clock, every problem of the search is
measured side by side before both. Each batch is written to the journal, from where the choice reads it.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tensorop.costs.model import Matrix
from tensorop.dispatch import choice, evidence
from tensorop.dispatch.choice import Also, Candidates, CostRow
from tensorop.dispatch.evidence import Batch
from tensorop.dispatch.inside import LibraryBench, Probe
from tensorop.dispatch.shapes import SEED, Draw, chosen_for, drawn
from tensorop.model.operator import Operator
from tensorop.model.winner import Winners
from tensorop.search.task import Pass, Task
from tensorop.trial import selection

BATCH = 24  # shapes in a batch, between two fits of the models
RANDOM_SHAPES = 6  # random shapes in a later batch; in the first all are random
CANDIDATE_SHAPES = 150  # candidate shapes in each layout, from which a batch is chosen
LONGEST_SIDE = 2048  # longest side of a candidate shape
BASE_COST = 0.05  # fixed cost of measuring a shape, relative to the largest one's work
MIN_DISTANCE = 0.7  # octaves between the shapes of a batch
ERROR_DRAWS = 32  # random draws of the models' errors, for the expected regret
MIN_WINS = 2  # a variant is measured if it is best in at least so many draws


def compare(task: Task, library: Path, given: Winners) -> None:
    """Measures all variants side by side on the problems of the search and on small ones.

    This is for targets whose separate measurements are not comparable.

    library: holds exactly these variants, on the target
    """
    if len(given.all) > 1 and not evidence.batches(task, given):
        small = [problem for problem in task.small_problems if chosen_for(task.operator, problem)]
        tried = [Probe(problem) for problem in dict.fromkeys([*task.problems, *small])]
        evidence.keep(task, given, Batch(LibraryBench(task, library, given).rows(tried, task.answers), 0.0))


def probe(task: Task, library: Path, given: Winners) -> None:
    """Measures batches until their share of the budget is used, at least one. Batches of an earlier process count."""
    measured = evidence.batches(task, given)
    if len(given.all) < 2 or (measured and measured[-1].done):
        return
    bench = LibraryBench(task, library, given)
    few = _worth_probing(task, given, measured)
    spent = sum(batch.seconds for batch in measured)
    budget = task.share(PASS.share_on(task.target))
    done = False
    while not done:
        left = None if budget.trials is None else budget.trials - sum(batch.asked for batch in measured)
        begun = time.monotonic()
        size = _size(task, len(few) or len(given.all), budget.seconds, left)
        wanted = _wanted(task, given, measured, size, few)
        rows = bench.rows(wanted)
        took = time.monotonic() - begun
        spent += took
        # the next batch would take as long
        out_of_time = budget.seconds is not None and spent + took / 2 > budget.seconds
        done = not wanted or out_of_time or (left is not None and len(wanted) >= left)
        measured.append(Batch(rows, took, done, len(wanted)))
        evidence.keep(task, given, measured[-1])


def _worth_probing(task: Task, given: Winners, measured: Sequence[Batch]) -> tuple[int, ...]:
    """The numbers of the variants that do best together where all were measured side by side; all without such rows."""
    rows = measured[0].costs if measured and not task.target.side_by_side else {}
    costs: dict[str, dict[tuple[str, int], float]] = {str(number): {} for number in range(len(given.all))}
    for vlen, of_vlen in rows.items():
        for row in of_vlen:
            for number, cost in enumerate(row.costs):
                if cost is not None:
                    costs[str(number)][row.problem.label, vlen] = cost
    if not any(costs.values()):
        return ()
    return tuple(sorted(int(name) for name in selection.choose({name: row for name, row in costs.items() if row})))


def _size(task: Task, variants: int, seconds: float | None, left: int | None) -> int:
    """Number of shapes in a batch, at least one; fewer if a full batch would exceed its share of the time."""
    most = BATCH if left is None else max(1, min(BATCH, left))
    side_by_side = task.job.jobs if task.target.side_by_side else 1
    each = task.target.budgets.random_probe_s * variants * len(task.target.vlens) / side_by_side
    if seconds is None or not each:
        return most
    return min(most, max(RANDOM_SHAPES, int(seconds / each)))


def _wanted(task: Task, given: Winners, measured: Sequence[Batch], count: int, few: tuple[int, ...]) -> list[Probe]:
    """The probes of a batch; the same journal gives the same probes. few: variants to measure on random shapes"""
    operator, budgets, number = task.operator, task.target.budgets, len(measured)
    found: list[Probe] = []
    if count > RANDOM_SHAPES and any(batch.costs for batch in measured):
        costs = evidence.load_costs(task, given, measured)
        known_at = {vlen: (rows, evidence.others(task, given.variants, vlen)) for vlen, rows in costs.items()}
        candidates = Candidates.of(operator, task.target.platform, given)
        found = telling(candidates, known_at, budgets.probe_flops, number, count - RANDOM_SHAPES)
    drawn_shapes = at_random(operator, task.dtype, budgets.random_probe_flops, number, count - len(found))
    return [*(replace(one, variants=few) for one in drawn_shapes), *found]


def at_random(operator: Operator, dtype: str, most: float, number: int, count: int) -> list[Probe]:
    """Log-uniform shapes of at most `most` flops, in alternating layouts; `number` seeds the draw."""
    each = drawn(operator, dtype, Draw(count, number + 1, LONGEST_SIDE, most))
    by_layout = [each[i * count : (i + 1) * count] for i in range(len(operator.layouts))]
    return [Probe(by_layout[i % len(by_layout)][i]) for i in range(count)]


def telling(
    candidates: Candidates,
    known_at: Mapping[int, tuple[Sequence[CostRow], Sequence[Also]]],
    most: float,
    number: int,
    count: int,
) -> list[Probe]:
    """Shapes with the highest expected regret for the time that they take to measure.

    most: flops of a shape; number: seeds the draw
    """
    operator = candidates.operator
    scores: Matrix | None = None
    wins: Matrix | None = None
    field: choice.Field | None = None
    for vlen, (measured, also) in known_at.items():
        at_vlen = replace(candidates, vlen=vlen)
        if not measured:
            continue
        models = choice.fit_data(at_vlen, measured, also).fitted()
        field = choice.field(at_vlen, Draw(CANDIDATE_SHAPES, number + 1, LONGEST_SIDE))
        expected, best = _thrown(*field.predicted(models))
        scores = expected if scores is None else scores + expected
        wins = best if wins is None else np.maximum(wins, best)
    if scores is None or wins is None or field is None:
        return []
    works = np.array([float(operator.reference.work(p)) for p in field.problems])
    may_win = wins >= MIN_WINS
    paid = works / most * may_win.sum(axis=1) / may_win.shape[1]
    worth = np.where(works <= most, scores / (BASE_COST + paid), -1.0)
    chosen: list[int] = []
    for place in np.argsort(-np.round(worth, 6), kind="stable"):
        if worth[place] < 0 or len(chosen) == count:
            break
        distances = np.linalg.norm(field.places[chosen] - field.places[place], axis=1)
        if not chosen or distances.min() >= MIN_DISTANCE:
            chosen.append(int(place))
    return [Probe(field.problems[p], tuple(map(int, np.flatnonzero(may_win[p])))) for p in chosen]


def _thrown(means: Matrix, spreads: Matrix) -> tuple[Matrix, Matrix]:
    """Expected regret of the choice (natural logarithm), and how often each variant is best or chosen.

    Both are means over random draws of the models' errors.
    """
    rng = np.random.default_rng(SEED)
    rows, chosen = np.arange(len(means)), means.argmin(axis=1)
    total, wins = np.zeros(len(means)), np.zeros(means.shape)
    wins[rows, chosen] = ERROR_DRAWS
    for _ in range(ERROR_DRAWS):
        drawn = means + spreads * rng.standard_normal(means.shape)
        total += drawn[rows, chosen] - drawn.min(axis=1)
        wins[rows, drawn.argmin(axis=1)] += 1
    return total / ERROR_DRAWS, wins


SIDE_BY_SIDE = Pass(
    "side-by-side",
    0.15,
    "measuring the variants against each other inside the library",
    own_budget=True,
    wanted=lambda target: not target.side_by_side,
    measure=compare,
)
PASS = Pass(
    "probes",
    0.3,
    "measuring the variants on random shapes, and on shapes where the best variant is uncertain",
    own_budget=True,
    wanted=lambda target: not target.simulated,
    share_by_clock=0.15,  # each variant was measured on all problems before
    measure=probe,
)
