"""Which figures that could not be taken speak against a library, and which of the machine alone."""

from __future__ import annotations

import pytest

from tensorop.commands.contest import unmeasured
from tensorop.errors import JobError, NoFigure
from tensorop.model.trial import Kind, Outcome


@pytest.mark.parametrize("kind", [Kind.TIMEOUT, Kind.NOISY, Kind.LOST])
def test_a_slow_or_busy_machine_says_nothing_of_the_library(kind: Kind) -> None:
    assert isinstance(unmeasured(Outcome(kind, "measure", "no"), "64x64x64"), NoFigure)


@pytest.mark.parametrize("kind", [Kind.CRASH, Kind.WRONG, Kind.GUARD, Kind.ILLEGAL])
def test_a_fault_in_a_call_does(kind: Kind) -> None:
    error = unmeasured(Outcome(kind, "measure", "no"), "64x64x64")
    assert type(error) is JobError
    assert "64x64x64: no" in error.message
