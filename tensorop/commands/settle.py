"""Which of a board model's alternatives a board shows: each by the micro-benchmarks that tell it from the best fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tensorop.commands import microbench
from tensorop.commands.microbench import Bench
from tensorop.model.microbench import Modelled, Question
from tensorop.runners.qemu import Qemu
from tensorop.specs.board import BoardModel
from tensorop.specs.board_scenarios import scenario_values, under

SHOWN, REFUTED, OPEN = "shown", "refuted", "open"
_GAP = 0.05  # ranges nearer than this, on a logarithmic scale, tell nothing
_NEARER = 3.0  # times as near, on a logarithmic scale, must a figure be to one side as to the other


def questions(benches: Sequence[Bench], runner: Qemu, model: BoardModel, vlen: int) -> tuple[Question, ...]:
    """What the benchmarks that settle an alternative take with it and without, over the model's whole ranges.

    Where a range holds what the alternative changes, both sides have it at its own. Raises JobError when one cannot
    be counted.
    """
    choices = scenario_values(model, "interval")
    found = []
    for name, alternative in model.alternatives.items():
        wanted = [bench for bench in benches if bench.benchmark.name in alternative.settled_by]
        own = {key: value for key, value in choices[0].items() if key in alternative.change}
        sides = [[{**choice, **own} for choice in choices], [under(choice, model, name) for choice in choices]]
        counted = (microbench.model(wanted, runner, model, vlen, side) for side in sides)
        for (bench, usual), (_, other) in zip(*counted, strict=True):
            found.append(Question(name, microbench.interval(bench, usual), microbench.interval(bench, other)))
    return tuple(found)


def answer(question: Question, cycles: float) -> str:
    """What a figure says: SHOWN or REFUTED where it is clearly nearer to one side, else OPEN."""
    usual, other = _apart(question.usual, cycles), _apart(question.under, cycles)
    if max(_apart(question.under, question.usual.low), _apart(question.under, question.usual.high)) < _GAP:
        return OPEN
    if usual > _NEARER * other:
        return SHOWN
    return REFUTED if other > _NEARER * usual else OPEN


def verdicts(asked: Iterable[Question], measured: Mapping[str, float]) -> dict[str, str]:
    """Each alternative with a figure: shown when all its figures say so, refuted when one does."""
    answers: dict[str, list[str]] = {}
    for question in asked:
        name = question.usual.benchmark.name
        if name in measured:
            answers.setdefault(question.alternative, []).append(answer(question, measured[name]))
    return {name: _together(said) for name, said in answers.items()}


def _together(said: Sequence[str]) -> str:
    if REFUTED in said:
        return REFUTED
    return SHOWN if all(one == SHOWN for one in said) else OPEN


def _apart(side: Modelled, cycles: float) -> float:
    """Distance of a figure from a range, on a logarithmic scale."""
    return max(math.log(side.low / cycles), math.log(cycles / side.high), 0.0)
