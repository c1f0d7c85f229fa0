"""Which figures that could not be taken speak against a library, and which of the machine alone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tensorop.commands.contest import Pair, fastest, unmeasured
from tensorop.errors import JobError, NoFigure
from tensorop.measure import statistics
from tensorop.measure.request import Measurement
from tensorop.model.trial import Kind, Outcome


@pytest.mark.parametrize("kind", [Kind.TIMEOUT, Kind.NOISY, Kind.LOST])
def test_a_slow_or_busy_machine_says_nothing_of_the_library(kind: Kind) -> None:
    assert isinstance(unmeasured(Outcome(kind, "measure", "no"), "64x64x64"), NoFigure)


@pytest.mark.parametrize("kind", [Kind.CRASH, Kind.WRONG, Kind.GUARD, Kind.ILLEGAL])
def test_a_fault_in_a_call_does(kind: Kind) -> None:
    error = unmeasured(Outcome(kind, "measure", "no"), "64x64x64")
    assert type(error) is JobError
    assert "64x64x64: no" in error.message


def pair(ours: list[float], theirs: list[float]) -> Pair:
    """Of rounds, or of one figure each under a model."""
    mine, other = (
        Measurement(statistics.summary(rounds), rounds=tuple(rounds) if len(rounds) > 1 else ())
        for rounds in (ours, theirs)
    )
    return mine, other


@pytest.mark.parametrize("rounds", [1, 4])
def test_the_best_has_the_lowest_ratio_and_is_the_first_of_equals(rounds: int) -> None:
    slow, fast, also = (pair([ours] * rounds, [theirs] * rounds) for ours, theirs in ((1, 3), (2, 4), (1, 2)))
    assert fastest({"slow": slow, "fast": fast, "as fast": also}) == "fast"
    assert fastest({"slow": slow, "as fast": also, "fast": fast}) == "as fast"
    assert fastest({"slow": slow}) == "slow"


@given(st.lists(st.floats(1, 2), min_size=1, max_size=32))
def test_rounds_that_decide_do_not_report(rounds: list[float]) -> None:
    deciding, reporting = statistics.halves(rounds)
    if len(rounds) < 3:
        assert deciding == reporting == rounds
    else:
        assert (deciding[:2], reporting[0]) == (rounds[:2], rounds[2])
        assert len(deciding) - len(reporting) in (0, 1, 2)
        assert sorted([*deciding, *reporting]) == sorted(rounds)
