"""Fits a board model's assumed constants, within their ranges, to the cycles measured on a board.

Rounds with decreasing steps try each coordinate alone, and then least-squares steps of all coordinates together. All
points of a round are scenarios of one run of the plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tensorop.calibration.constants import EXPLAINED, Calibration
from tensorop.commands import microbench
from tensorop.commands.microbench import PreparedBenchmark
from tensorop.errors import JobError
from tensorop.model.core import Core
from tensorop.model.microbench import ClockedBenchmark
from tensorop.model.platform import Platform
from tensorop.runners.qemu import Qemu
from tensorop.specs.board import BoardModel, Cycles

_LANES = 31  # scenarios in one run, of 32: the first is repeated, since a single scenario gives no list of costs
_STEPS = (1.0, 0.5, 0.5, 0.25, 0.25, 0.12, 0.12, 0.06, 0.03)
_DAMPING = (0.01, 0.1, 1.0)
_SWITCHES = (".present", ".chained", ".shared_ports")  # switches, which are on from 0.5
_MOVES = 0.02  # a constant is determined if its range changes the log of some benchmark's cycles by more than this
_OUTLIER = 1.0  # |log(modelled / measured)| is limited to this in the fit

Vector = NDArray[np.float64]
_Tried = tuple[tuple[int, float], Vector, float]  # (coordinate, its value), log cycles, mean squared error


@dataclass(frozen=True)
class FittedModel:
    """The fitted constants of a model. Residuals are root mean squares of log(modelled / measured)."""

    values: Mapping[str, float]  # by dotted key
    determined: frozenset[str]  # keys on which some benchmark depends
    before: Mapping[str, float]  # benchmark -> modelled cycles for one unit
    after: Mapping[str, float]  # the same after the fit
    residual_before: float  # over the benchmarks that depend on an assumed constant
    residual_after: float
    residual_known: float  # over the other benchmarks

    @property
    def explains(self) -> bool:
        """Whether the fitted model explains this board."""
        return max(self.residual_after, self.residual_known) <= EXPLAINED


def fit(
    benches: Sequence[PreparedBenchmark], measured: Mapping[str, float], runner: Qemu, model: BoardModel, vlen: int
) -> FittedModel:
    """Fits the model. Raises JobError without a measurement or an assumed constant that it depends on.

    measured: benchmark -> cycles for one unit
    """
    used = [bench for bench in benches if bench.benchmark.name in measured]
    if not used or not model.assumed():
        raise JobError(
            "nothing to calibrate: no benchmark gave a result, or the board model has no assumed constants (`assumed: "
            "true`)"
        )
    space = _Space(model)
    goal = np.log([measured[bench.benchmark.name] for bench in used])

    def evaluate(scenarios: Sequence[Mapping[str, float]], of: Sequence[PreparedBenchmark] = used) -> Vector:
        """Logarithms of the cycles; one row for each scenario."""
        parts = []
        for start in range(0, len(scenarios), _LANES):
            chunk = list(scenarios[start : start + _LANES])
            columns = [c for _, c in microbench.model(of, runner, model, vlen, [*chunk, chunk[0]])]
            parts.append(np.log(np.array(columns).T[: len(chunk)]))
        return np.concatenate(parts)

    best = {key: 1.0 if isinstance(item, Cycles) else item.value for key, item in model.assumed().items()}
    at = space.place(best)
    ends = [space.scenario(at, {i: end}) for i in range(space.size) for end in (0.0, 1.0)]
    first = evaluate([best, *ends])
    swing = np.abs(first[1::2] - first[2::2])
    sensitive = np.flatnonzero(swing.max(axis=0) > _MOVES)
    settled = np.flatnonzero(swing.max(axis=0) <= _MOVES)
    known = [i for i in range(space.size) if swing[i].max() > _MOVES]
    before = dict(zip((b.benchmark.name for b in used), np.exp(first[0]).tolist(), strict=True))
    if not len(sensitive):
        raise JobError("nothing to calibrate: no benchmark result depends on an assumed constant of the board model")
    few, aim = [used[i] for i in sensitive], goal[sensitive]

    def misses(rows: Vector) -> Vector:
        return np.minimum(np.abs(rows - aim), _OUTLIER) ** 2

    here = evaluate([space.scenario(at, {})], few)[0]
    cost = float(misses(here[None]).mean())
    for step in _STEPS:
        moves = [(i, x) for i in known for x in space.near(at, i, step)]
        rows = evaluate([space.scenario(at, {i: x}) for i, x in moves], few)
        costs = misses(rows).mean(axis=1)
        tries = space.together(at, here, aim, list(zip(moves, rows, costs, strict=True)))
        together = evaluate([space.scenario(t, {}) for t in tries], few)
        places = [*(_moved(at, i, x) for i, x in moves), *tries]
        all_rows = np.concatenate([rows, together])
        all_costs = misses(all_rows).mean(axis=1)
        winner = int(all_costs.argmin())
        if all_costs[winner] < cost:
            at, here, cost = places[winner], all_rows[winner], float(all_costs[winner])
    values = space.scenario(at, {})
    after_rows = evaluate([values])[0]
    start = float(misses(first[:1][:, sensitive]).mean())
    if start < cost:  # the coordinates cannot represent a best fit in which a group's constants differ
        values, after_rows, cost = best, first[0], start
    return FittedModel(
        values,
        frozenset(key for i in known for key in space.keys[i]),
        before,
        dict(zip((b.benchmark.name for b in used), np.exp(after_rows).tolist(), strict=True)),
        start**0.5,
        cost**0.5,
        float(np.sqrt(np.mean((first[0] - goal)[settled] ** 2))) if len(settled) else 0.0,
    )


@dataclass(frozen=True)
class BoardFigures:
    """The measurements of a board."""

    core: Core
    clocked: Mapping[str, ClockedBenchmark]  # by benchmark
    absent: Mapping[str, str]  # benchmark -> reason why it was not measured
    alternatives: Mapping[str, str]  # alternative of the model -> verdict


def calibration(platform: Platform, model: BoardModel, taken: BoardFigures, found: FittedModel) -> Calibration:
    """The record for the calibration file."""
    core = taken.core
    constants = {}
    for key, item in model.assumed().items():
        was = 1.0 if isinstance(item, Cycles) else item.value
        assert item.low is not None
        assert item.high is not None
        constants[key] = {
            "value": _round(found.values[key] if key in found.determined else was),
            "was": was,
            "low": item.low,
            "high": item.high,
            "determined": key in found.determined,
        }
    figures = {}
    for name, c in taken.clocked.items():
        modelled = {"measured": c.cycles, "before": found.before[name], "after": found.after[name]}
        figures[name] = _rounded({"ns": c.ns, "mhz": c.mhz, "spread": c.spread, **modelled})
    board: dict[str, object] = {"cpu": core.label, "arch": core.arch, "kernel": core.kernel, "libc": core.libc}
    board |= {"cores": core.cores, "vlen": core.vlen, "page": core.page, "clock_mhz": core.clock_mhz}
    board |= {"governor": core.governor, **{f"register {k}": v for k, v in core.identity.items()}}
    first: Mapping[str, str] = next(iter(core.processors.values()), {})
    board |= {f"cpuinfo {key}": text for key, text in first.items() if key not in ("flags", "Features", "bugs")}
    residual = {"before": found.residual_before, "after": found.residual_after, "known": found.residual_known}
    return Calibration.model_validate(
        {
            "schema": 1,
            "platform": platform.name,
            "model": {"name": model.name, "version": model.version},
            "board": board,
            "constants": constants,
            "residual": _rounded(residual),
            "figures": figures,
            "absent": taken.absent,
            "alternatives": taken.alternatives,
        }
    )


class _Space:
    """The space of the fit. Each unknown has a coordinate from 0 (all its constants low) to 1 (all high)."""

    def __init__(self, model: BoardModel) -> None:
        self.items = model.assumed()
        self.keys = tuple(model.unknowns().values())
        self.size = len(self.keys)

    def place(self, values: Mapping[str, float]) -> Vector:
        """The coordinates for these constants; means over the constants of an unknown."""
        return np.array([np.mean([self._share(key, values[key]) for key in keys]) for keys in self.keys])

    def scenario(self, at: Vector, change: Mapping[int, float]) -> dict[str, float]:
        out = {}
        for i, keys in enumerate(self.keys):
            x = float(change.get(i, at[i]))
            for key in keys:
                low, high = self._range(key)
                out[key] = float(x >= 0.5) if self.switch(i) else low + x * (high - low)
        return out

    def switch(self, i: int) -> bool:
        return all(key.endswith(_SWITCHES) for key in self.keys[i])

    def near(self, at: Vector, i: int, step: float) -> tuple[float, ...]:
        """The next values of a coordinate: the other state of a switch, or one step in both directions."""
        if self.switch(i):
            return (float(at[i] < 0.5),)
        return tuple(x for x in {max(at[i] - step, 0.0), min(at[i] + step, 1.0)} if x != at[i])

    def together(self, at: Vector, here: Vector, aim: Vector, tried: Sequence[_Tried]) -> list[Vector]:
        """Points to try: all coordinates at their own best values, then damped least-squares steps."""
        slopes = np.zeros((len(at), len(here)))
        seen = np.zeros(len(at))
        best = at.copy()
        alone = float((np.minimum(np.abs(here - aim), _OUTLIER) ** 2).mean())
        least = np.full(len(at), alone)
        for (i, x), row, cost in tried:
            if not self.switch(i):
                slopes[i] += (row - here) / (x - at[i])
                seen[i] += 1
            if cost < least[i]:
                least[i], best[i] = cost, x
        slopes /= np.maximum(seen, 1)[:, None]
        gap = np.clip(aim - here, -_OUTLIER, _OUTLIER)
        tries = [best]
        normal, right = slopes @ slopes.T, slopes @ gap
        for damping in _DAMPING:
            delta = np.linalg.solve(normal + damping * (np.eye(len(at)) * max(normal.max(), 1e-9)), right)
            for share in (1.0, 0.5):
                tries.append(np.clip(at + share * delta, 0.0, 1.0))
        return tries

    def _range(self, key: str) -> tuple[float, float]:
        low, high = self.items[key].low, self.items[key].high
        assert low is not None
        assert high is not None
        return low, high

    def _share(self, key: str, value: float) -> float:
        low, high = self._range(key)
        return (value - low) / (high - low) if high > low else 0.0


def _moved(at: Vector, i: int, x: float) -> Vector:
    out = at.copy()
    out[i] = x
    return out


def _round(value: float) -> float:
    return float(f"{value:.5g}")


def _rounded(values: Mapping[str, float]) -> dict[str, float]:
    return {name: _round(value) for name, value in values.items()}
