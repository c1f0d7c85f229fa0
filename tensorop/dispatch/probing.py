"""The variants measured against each other inside the library, on shapes that no suite names.

Random ones first, by all variants: they show what choosing costs where nobody looked. Then those on which the models of
the variants disagree, by the variants that may be best there. On a clock before both every problem of the search, side
by side. What was measured goes to the journal, batch by batch, and from there into the choice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from tensorop.dispatch import choice, evidence
from tensorop.dispatch.choice import Also, Candidates, CostRow
from tensorop.dispatch.costmodel import Matrix
from tensorop.dispatch.evidence import Batch
from tensorop.dispatch.inside import LibraryBench, Probe
from tensorop.dispatch.shapes import SEED, Draw, chosen_for, drawn
from tensorop.model.operator import Operator
from tensorop.model.winner import Winners
from tensorop.search.task import Pass, Task

BATCH = 24  # shapes between two fits
RANDOM_SHAPES = 6  # of them random, but for the first batch, where all are
CANDIDATE_SHAPES = 150  # in each layout, of which the most telling are measured
LONGEST_SIDE = 2048  # of them
BASE_COST = 0.05  # of that work: what a shape costs anyhow
MIN_DISTANCE = 0.7  # octaves between the shapes of a batch
ERROR_DRAWS = 32  # times the models' errors are drawn to see what a choice may cost
MIN_WINS = 2  # of these draws, that a variant must be the best in to be measured


def compare(task: Task, library: Path, given: Winners) -> None:
    """All variants side by side on every problem of the search and on the small ones that are left to the choice, for
    targets that say little of it one by one.

    library: the staged one, which holds exactly these variants.
    """
    if len(given.all) > 1 and not evidence.batches(task, given):
        small = [problem for problem in task.small_problems if chosen_for(task.operator, problem)]
        tried = [Probe(problem) for problem in dict.fromkeys([*task.problems, *small])]
        evidence.keep(task, given, Batch(LibraryBench(task, library, given).rows(tried), 0.0))


def probe(task: Task, library: Path, given: Winners) -> None:
    """Batches until the share of the budget is used, one at least; what an earlier process measured counts."""
    measured = evidence.batches(task, given)
    if len(given.all) < 2 or (measured and measured[-1].done):
        return
    bench = LibraryBench(task, library, given)
    spent = sum(batch.seconds for batch in measured)
    budget = task.share(PASS.share)
    done = False
    while not done:
        left = None if budget.trials is None else budget.trials - sum(batch.asked for batch in measured)
        begun = time.monotonic()
        wanted = _wanted(task, given, measured, _size(task, given, budget.seconds, left))
        rows = bench.rows(wanted)
        took = time.monotonic() - begun
        spent += took
        # another batch would take as long
        out_of_time = budget.seconds is not None and spent + took / 2 > budget.seconds
        done = not wanted or out_of_time or (left is not None and len(wanted) >= left)
        measured.append(Batch(rows, took, done, len(wanted)))
        evidence.keep(task, given, measured[-1])


def _size(task: Task, given: Winners, seconds: float | None, left: int | None) -> int:
    """Shapes of a batch: fewer where even the first one would take longer than its share, at least one."""
    most = BATCH if left is None else max(1, min(BATCH, left))
    side_by_side = task.job.jobs if task.target.side_by_side else 1
    each = task.target.budgets.random_probe_s * len(given.all) * len(task.target.vlens) / side_by_side
    if seconds is None or not each:
        return most
    return min(most, max(RANDOM_SHAPES, int(seconds / each)))


def _wanted(task: Task, given: Winners, measured: Sequence[Batch], count: int) -> list[Probe]:
    """The shapes of a batch; the same for the same journal."""
    operator, budgets, number = task.operator, task.target.budgets, len(measured)
    found: list[Probe] = []
    if count > RANDOM_SHAPES and any(batch.costs for batch in measured):
        costs = evidence.load_costs(task, given, measured)
        known_at = {vlen: (rows, evidence.others(task, given.variants, vlen)) for vlen, rows in costs.items()}
        candidates = Candidates.of(operator, task.target.platform, given)
        found = telling(candidates, known_at, budgets.probe_flops, number, count - RANDOM_SHAPES)
    return [*at_random(operator, task.dtype, budgets.random_probe_flops, number, count - len(found)), *found]


def at_random(operator: Operator, dtype: str, most: float, number: int, count: int) -> list[Probe]:
    """Log-uniform shapes of at most so many flops, in layouts by turns; others for another number."""
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
    """Shapes on which the choice by the models may cost most, for what it costs to measure them, by what is known at
    each VLEN; of `most` flops, and others for another number."""
    operator = candidates.operator
    scores: Matrix | None = None
    wins: Matrix | None = None
    field: choice.Field | None = None
    for vlen, (measured, also) in known_at.items():
        at_vlen = replace(candidates, vlen=vlen)
        if not measured or not operator.costs.terms:
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
    """(what the choice by the means costs over the best, a logarithm, in the mean over draws of the models' errors; by
    variant, in how many of them it is the best or, by the means, the choice)."""
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
    0.0,
    "every variant against every other, inside the library",
    wanted=lambda target: not target.side_by_side,
    measure=compare,
)
PASS = Pass(
    "probes",
    0.35,
    "the variants on random shapes, and where it is open which is best",
    own_budget=True,
    wanted=lambda target: not target.simulated,
    measure=probe,
)
