"""The variants measured against each other inside the library, on shapes that no suite names.

Random ones first, by all variants: they show what choosing costs where nobody looked. Then those on which the models of
the variants disagree, by the variants that may be best there. On a clock before both every problem of the search, side
by side. What was measured goes to the journal, batch by batch, and from there into the choice.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tensorop.dispatch import choice, evidence
from tensorop.dispatch.choice import Also, Candidates, CostRow
from tensorop.dispatch.costmodel import Matrix
from tensorop.dispatch.inside import LibraryBench, Probe
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
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
    if len(given.all) > 1 and not list(evidence.notes(task, given)):
        small = [problem for problem in task.small_problems if choice.chosen_for(task.operator, problem)]
        tried = [Probe(problem) for problem in dict.fromkeys([*task.problems, *small])]
        _write(task, given, LibraryBench(task, library, given).rows(tried), 0.0, done=False)


def probe(task: Task, library: Path, given: Winners) -> None:
    """Batches until the share of the budget is used, one at least; what an earlier process measured counts."""
    notes = list(evidence.notes(task, given))
    if len(given.all) < 2 or (notes and notes[-1]["done"]):
        return
    inside = LibraryBench(task, library, given)
    spent = sum(data["seconds"] for data in notes)
    budget = task.share(PASS.share)
    done = False
    while not done:
        notes = list(evidence.notes(task, given))
        left = None if budget.trials is None else budget.trials - _probed(notes)
        begun = time.monotonic()
        wanted = _wanted(task, given, len(notes), _size(task, given, budget.seconds, left))
        rows = inside.rows(wanted)
        took = time.monotonic() - begun
        spent += took
        # another batch would take as long
        out_of_time = budget.seconds is not None and spent + took / 2 > budget.seconds
        done = not wanted or out_of_time or (left is not None and len(wanted) >= left)
        _write(task, given, rows, took, done, len(wanted))


def _write(task: Task, given: Winners, rows: list[dict[str, Any]], seconds: float, done: bool, asked: int = 0) -> None:
    told = {"dtype": given.dtype, "variants": evidence.identity(given), "rows": rows}
    task.journal.note(evidence.NOTE, told | {"seconds": round(seconds, 3), "done": done, "asked": asked})


def _probed(notes: Sequence[Mapping[str, Any]]) -> int:
    """Shapes that earlier batches asked for; the first comparison of the search's problems is none."""
    return sum(data.get("asked", 0) for data in notes)


def _size(task: Task, given: Winners, seconds: float | None, left: int | None) -> int:
    """Shapes of a batch: fewer where even the first one would take longer than its share, at least one."""
    most = BATCH if left is None else max(1, min(BATCH, left))
    side_by_side = task.job.jobs if task.target.side_by_side else 1
    each = task.target.budgets.random_probe_s * len(given.all) * len(task.target.vlens) / side_by_side
    if seconds is None or not each:
        return most
    return min(most, max(RANDOM_SHAPES, int(seconds / each)))


def _wanted(task: Task, given: Winners, number: int, count: int) -> list[Probe]:
    """The shapes of a batch; the same for the same journal."""
    measured = any(data["rows"] for data in evidence.notes(task, given))
    telling = _telling(task, given, number, count - RANDOM_SHAPES) if measured and count > RANDOM_SHAPES else []
    return [*_random(task, number, count - len(telling)), *telling]


def _random(task: Task, number: int, count: int) -> list[Probe]:
    """Log-uniform shapes that can be afforded, in layouts by turns."""
    return at_random(task.operator, task.dtype, task.target.budgets.random_probe_flops, number, count)


def at_random(operator: Operator, dtype: str, most: float, number: int, count: int) -> list[Probe]:
    """The same of at most so many flops; others for another number."""
    each = choice.drawn(operator, dtype, count, number + 1, LONGEST_SIDE, most)
    by_layout = [each[i * count : (i + 1) * count] for i in range(len(operator.layouts))]
    return [Probe(by_layout[i % len(by_layout)][i]) for i in range(count)]


def _telling(task: Task, given: Winners, number: int, count: int) -> list[Probe]:
    """Shapes on which the choice by the models may cost most, for what it costs to measure them."""
    known_at = {
        vlen: (measured, evidence.others(task, given.variants, vlen))
        for vlen, measured in evidence.load_costs(task, given).items()
    }
    return telling(task.operator, task.target.platform, given, known_at, task.target.budgets.probe_flops, number, count)


def telling(
    operator: Operator,
    platform: Platform,
    given: Winners,
    known_at: Mapping[int, tuple[Sequence[CostRow], Sequence[Also]]],
    most: float,
    number: int,
    count: int,
) -> list[Probe]:
    """The same of what is known at each VLEN, of shapes of `most` flops; others for another number."""
    scores: Matrix | None = None
    wins: Matrix | None = None
    candidates: choice.Field | None = None
    direct = None if given.direct is None else len(given.variants)
    for vlen, (measured, also) in known_at.items():
        subject = Candidates(operator, platform, given.dtype, given.all, vlen, direct)
        if not measured or not operator.costs.terms:
            continue
        models = choice.fit_data(subject, measured, also).fitted()
        candidates = choice.field(subject, CANDIDATE_SHAPES, seed=number + 1, longest=LONGEST_SIDE)
        expected, best = _thrown(*candidates.predicted(models))
        scores = expected if scores is None else scores + expected
        wins = best if wins is None else np.maximum(wins, best)
    if scores is None or wins is None or candidates is None:
        return []
    works = np.array([float(operator.reference.work(p)) for p in candidates.problems])
    may_win = wins >= MIN_WINS
    paid = works / most * may_win.sum(axis=1) / may_win.shape[1]
    worth = np.where(works <= most, scores / (BASE_COST + paid), -1.0)
    chosen: list[int] = []
    for place in np.argsort(-np.round(worth, 6), kind="stable"):
        if worth[place] < 0 or len(chosen) == count:
            break
        distances = np.linalg.norm(candidates.places[chosen] - candidates.places[place], axis=1)
        if not chosen or distances.min() >= MIN_DISTANCE:
            chosen.append(int(place))
    return [Probe(candidates.problems[p], tuple(map(int, np.flatnonzero(may_win[p])))) for p in chosen]


def _thrown(means: Matrix, spreads: Matrix) -> tuple[Matrix, Matrix]:
    """(what the choice by the means costs over the best, a logarithm, in the mean over draws of the models' errors; by
    variant, in how many of them it is the best or, by the means, the choice)."""
    rng = np.random.default_rng(choice.SEED)
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
