"""Decides which alternatives of a board model a board shows, by micro-benchmarks that differ from the best fit."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from tensorop.model.microbench import Modelled, Question

SHOWN, REFUTED, OPEN = "shown", "refuted", "open"
_GAP = 0.05  # minimum distance of the two ranges, on a logarithmic scale
_NEARER = 3.0  # minimum ratio of the distances to the two ranges, on a logarithmic scale


def answer(question: Question, cycles: float) -> str:
    """The verdict of one measurement: SHOWN or REFUTED if it is clearly nearer to one range, else OPEN."""
    usual, other = _apart(question.usual, cycles), _apart(question.under, cycles)
    if max(_apart(question.under, question.usual.low), _apart(question.under, question.usual.high)) < _GAP:
        return OPEN
    if usual > _NEARER * other:
        return SHOWN
    return REFUTED if other > _NEARER * usual else OPEN


def verdicts(asked: Iterable[Question], measured: Mapping[str, float]) -> dict[str, str]:
    """Alternative -> verdict, if measured: SHOWN if all its measurements show it, REFUTED if one refutes it."""
    answers: dict[str, list[str]] = {}
    for question in asked:
        name = question.usual.benchmark.name
        if name in measured:
            answers.setdefault(question.alternative, []).append(answer(question, measured[name]))
    return {name: _together(own) for name, own in answers.items()}


def _together(answers: Sequence[str]) -> str:
    if REFUTED in answers:
        return REFUTED
    return SHOWN if all(one == SHOWN for one in answers) else OPEN


def _apart(side: Modelled, cycles: float) -> float:
    """Distance of cycles from a range, on a logarithmic scale."""
    return max(math.log(side.low / cycles), math.log(cycles / side.high), 0.0)
