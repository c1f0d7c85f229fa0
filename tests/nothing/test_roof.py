"""Bounds of a cost on a busy machine: the highest reading counts, and it is read again before a verdict."""

from __future__ import annotations

import io
from collections.abc import Sequence

import pytest
from rich.console import Console

from tensorop.backends.null import Backend, Nowhere
from tensorop.cli.progress import _Bar
from tensorop.measure import statistics
from tensorop.model.trial import Kind, Samples
from tensorop.space.problems import of
from tensorop.specs import platforms
from tensorop.trial import roof
from tests.nothing.test_display import tried
from tests.support.operators import gemm


class Busy(Backend):
    """A machine whose readings are given; the last of them stays."""

    readings: Sequence[float] = ()

    def reading(self) -> float:
        now = self.readings[0]
        object.__setattr__(self, "readings", self.readings[1:] or self.readings)
        return float(now)


class BusyMemory(Busy):
    def last_cache(self) -> int:
        return 1 << 20

    def bandwidth(self) -> float:
        return self.reading()


class BusyCore(Busy):
    def peak(self, dtype: str, vlen: int, fresh: bool = False) -> float:
        return self.reading()


def target(kind: type[Busy], *readings: float) -> Busy:
    found = kind(platforms.load("generic"), Nowhere())
    object.__setattr__(found, "readings", readings)
    return found


@pytest.mark.parametrize("kind", [BusyMemory, BusyCore])
@pytest.mark.parametrize(
    ("readings", "possible"), [((10, 2), True), ((5, 2, 10), True), ((5, 2, 3, 10, 1), True), ((5, 2, 1), False)]
)
def test_a_verdict_follows_the_highest_of_several_readings(
    kind: type[Busy], readings: tuple[float, ...], possible: bool
) -> None:
    operator = gemm()
    problem = of(operator, "f32", (1, 4096, 4096))
    most = operator.reference.work(problem) if kind is BusyCore else operator.reference.traffic(problem)
    found = roof.Roof(target(kind, *readings)).impossible(operator, problem, Samples("ns", most / 8, 0, 0))
    assert (found is None) is possible
    assert found is None or found.kind is Kind.IMPOSSIBLE


def test_a_share_that_is_not_credible_measures_the_peak_again() -> None:
    assert roof.Roof(target(BusyCore, 50, 70)).share("f32", 0, 60) == pytest.approx(60 / 70)
    assert roof.Roof(target(BusyCore, 50, 70)).share("f32", 0, 51) == pytest.approx(51 / 50)
    assert roof.Roof(target(BusyCore, 50, 40)).share("f32", 0, 60) == pytest.approx(60 / 50)
    assert roof.Roof(target(BusyCore, 50, 70)).bound("f32", (0,), cost=1e3 / 60) == pytest.approx(1e3 / 70)
    assert roof.Roof(target(BusyCore, 50, 70)).bound("f32", (0,), cost=1e3 / 40) == pytest.approx(1e3 / 50)


def test_a_share_that_is_not_credible_is_no_figure() -> None:
    assert statistics.of_peak(0.62, " of peak") == "62% of peak"
    assert statistics.of_peak(1.02) == "102%"
    assert statistics.of_peak(1.19, " of peak") == "clock unsteady"
    view = _Bar(Console(file=io.StringIO(), width=80, force_terminal=True), lambda: 0.0)
    for event in tried([200.0, 84.0], 100.0):
        view.show(event)
    assert "2 tried  clock unsteady" in view.line().plain
