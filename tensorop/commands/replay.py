"""`tuners bench`: compares search strategies on recorded spaces, whose trials are read from a file."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from tensorop import paths
from tensorop.errors import JobError, SpecError, UsageError
from tensorop.model.bench import Span
from tensorop.model.point import Point
from tensorop.space import recorded, strategy
from tensorop.space.recorded import RecordedSpace

NEARNESS = {"95%": 0.95, "99%": 0.99}  # shares of the best point's speed
SEEDS = 50
YARDSTICK = "random"
CHANCE = 200  # searches of the yardstick at least: they take no time, and its median decides which spaces are hard
HARD = 30  # a space is hard, and in the mean, if the yardstick needs so many trials in median
MOST = 500  # trials of a search at most; a search that needs more counts as this many
TIMED = (900, 1000)  # `ask` and `tell` are timed for trials after the first and up to the second of these
RESAMPLED = 2000  # draws of the bootstrap
INTERVAL = (0.025, 0.975)  # quantiles of the bootstrap's figures

Trials = dict[str, NDArray[np.float64]]  # trials that a strategy needed, by space: [seed, nearness]


@dataclass(frozen=True)
class TunerRow:
    """The results of a strategy on all spaces. Nearness to the best is `95%` or `99%`."""

    tuner: str
    trials: Mapping[str, Mapping[str, Span]]  # by space and nearness: median over the seeds
    # By nearness: the yardstick's trials divided by this strategy's, geometric mean over the hard spaces.
    over: Mapping[str, Span | None]
    ask_ms: float | None  # mean time of `ask` and `tell` in the TIMED trials; None if no space has so many points


@dataclass(frozen=True)
class TunersBench:
    seeds: int
    batch: int  # points that are requested before their costs are given
    spaces: Mapping[str, Mapping[str, object]]  # by name: the record's head, its points, and the points near the best
    hard: Mapping[str, Sequence[str]]  # by nearness: the spaces in the geometric means
    rows: Sequence[TunerRow]

    def to_json(self) -> dict[str, object]:
        return asdict(self)


def shipped() -> tuple[Path, ...]:
    """The recorded spaces of the package, sorted by name."""
    return tuple(sorted((paths.builtin_dir("tuners") / "spaces").glob(f"*{recorded.SUFFIX}")))


def compare(
    tuners: Sequence[str],
    files: Sequence[Path],
    seeds: int = SEEDS,
    plugins: tuple[Path, ...] = (),
    jobs: int = 1,
    tell: Callable[[str], None] = lambda text: None,
    batch: int = 1,
) -> TunersBench:
    """Runs each strategy on each space with each seed, until it tries a point within 1 % of the best speed.

    A strategy is asked for `batch` points before it gets their costs. Trials count in the order of the points.
    The yardstick is always included. A file that is not a recorded space is skipped with a line to `tell`; if all
    are, the last file's SpecError is raised. Raises UsageError for an unknown strategy or one whose library is
    missing, JobError for a strategy that breaks its contract.
    """
    names = tuple(dict.fromkeys((YARDSTICK, *tuners)))
    spaces = _readable(files, tell)
    for name in names:  # a missing library is an error before anything is measured
        strategy.load(name, plugins).make(next(iter(spaces.values())).space, 0)
    largest = max(spaces, key=lambda file: (spaces[file].space.size, str(file)))
    timed = names if spaces[largest].space.size >= TIMED[1] else ()
    took: dict[str, Trials] = {name: {} for name in names}
    repeats = dict.fromkeys(names, seeds) | {YARDSTICK: max(seeds, CHANCE)}
    with ProcessPoolExecutor(jobs) as pool:
        slow = {name: pool.submit(asking, name, largest, plugins, batch) for name in timed}
        runs = [
            (name, space.name, pool.map(functools.partial(trials, name, file, plugins, batch=batch), range(count)))
            for file, space in spaces.items()
            for name, count in repeats.items()
        ]
        for name, space_name, each in runs:
            took[name][space_name] = np.array(list(each))
            middle = np.median(took[name][space_name], axis=0)
            tell(f"{space_name}: {name} {' '.join(f'{trials:g}' for trials in middle)}")
        ask_ms = {name: future.result() for name, future in slow.items()}
    hard = {
        label: [space for space, of in took[YARDSTICK].items() if np.median(of[:, at]) >= HARD]
        for at, label in enumerate(NEARNESS)
    }
    return TunersBench(
        seeds=seeds,
        batch=batch,
        spaces={one.name: {**one.about, "points": one.space.size, "near": _near(one)} for one in spaces.values()},
        hard=hard,
        rows=[
            TunerRow(name, _medians(of), _over(of, took[YARDSTICK], hard), ask_ms.get(name))
            for name, of in took.items()
        ],
    )


def _readable(files: Sequence[Path], tell: Callable[[str], None]) -> dict[Path, RecordedSpace]:
    spaces: dict[Path, RecordedSpace] = {}
    for number, file in enumerate(files, 1):
        try:
            spaces[file] = recorded.read(file)
        except SpecError as error:
            if number == len(files) and not spaces:
                raise
            tell(f"skipped: {error}")
    if not spaces:
        raise UsageError("there is no recorded search space to use", hint="use --space FILE, or install tensorop again")
    return spaces


def trials(tuner: str, file: Path, plugins: tuple[Path, ...], seed: int, batch: int = 1) -> tuple[int, ...]:
    """For each nearness, the trials until a strategy reached it; `MOST` if it needed more or gave up."""
    space = _read(file)
    bars = [space.best / near for near in NEARNESS.values()]
    took: list[int] = []
    for number, cost, _ in _searched(tuner, space, plugins, seed, MOST, batch):
        while len(took) < len(bars) and cost is not None and cost <= bars[len(took)]:
            took.append(number)
        if len(took) == len(bars):
            break
    return (*took, *[MOST] * (len(bars) - len(took)))


def asking(tuner: str, file: Path, plugins: tuple[Path, ...], batch: int = 1) -> float:
    """Mean time of `ask` and `tell` per point in the TIMED trials, in milliseconds, on one thread."""
    first, last = TIMED
    each = [took for number, _, took in _searched(tuner, _read(file), plugins, 0, last, batch) if number > first]
    return 1e3 * math.fsum(each) / max(1, len(each))


def _searched(
    tuner: str, space: RecordedSpace, plugins: tuple[Path, ...], seed: int, most: int, batch: int
) -> Iterator[tuple[int, float | None, float]]:
    """For each trial: its number, its cost, and the seconds that `ask` and `tell` took.

    Raises JobError if a strategy asks for a point twice or for a point that is not legal.
    """
    search = strategy.load(tuner, plugins).make(space.space, seed)
    seen: set[Point] = set()
    with threadpool_limits(1):
        while len(seen) < most:
            began = time.thread_time()
            points = search.ask(min(batch, most - len(seen)))
            asked = time.thread_time() - began
            if not points:
                return
            first = len(seen) + 1
            for number, point in enumerate(points, first):
                if point in seen or point not in space.space:
                    wrong = "a second time" if point in seen else "which is not legal"
                    raise JobError(
                        f"tuner {tuner} proposed the configuration {point} {wrong} (trial {number} in {space.name}, "
                        f"seed {seed})",
                        hint="a tuner must propose each legal configuration once; run "
                        + paths.command("tuners", "check", tuner, plugins=plugins),
                    )
                seen.add(point)
            for number, point in enumerate(points, first):
                cost = space.cost(point)
                began = time.thread_time()
                search.tell(point, cost)
                yield number, cost, asked / len(points) + time.thread_time() - began


@functools.lru_cache(maxsize=64)
def _read(file: Path) -> RecordedSpace:
    return recorded.read(file)


def _near(space: RecordedSpace) -> dict[str, int]:
    costs = [cost for cost in space.costs if cost is not None]
    return {label: sum(cost <= space.best / near for cost in costs) for label, near in NEARNESS.items()}


def _resampled(took: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.float64]:
    """Medians of seeds drawn with replacement, as many as there are. Shape: [draw, nearness]."""
    drawn = rng.integers(0, len(took), (RESAMPLED, len(took)))
    return np.median(took[drawn], axis=1)


def _interval(value: float, drawn: NDArray[np.float64]) -> Span:
    low, high = np.quantile(drawn, INTERVAL)
    return Span(value, float(low), float(high))


def _medians(took: Trials) -> dict[str, dict[str, Span]]:
    rng = np.random.default_rng(0)
    out: dict[str, dict[str, Span]] = {}
    for space, of in took.items():
        drawn, medians = _resampled(of, rng), np.median(of, axis=0)
        out[space] = {label: _interval(float(medians[at]), drawn[:, at]) for at, label in enumerate(NEARNESS)}
    return out


def _over(took: Trials, chance: Trials, hard: Mapping[str, Sequence[str]]) -> dict[str, Span | None]:
    """By nearness: the yardstick's trials divided by the strategy's. The bootstrap draws the seeds of both."""
    rng = np.random.default_rng(1)
    out: dict[str, Span | None] = {}
    for at, (label, names) in enumerate(hard.items()):
        logs, drawn = [], np.zeros(RESAMPLED)
        for name in names:
            own, other = took[name][:, [at]], chance[name][:, [at]]
            logs.append(math.log(np.median(other) / np.median(own)))
            drawn += np.log(_resampled(other, rng) / _resampled(own, rng))[:, 0] / len(names)
        out[label] = _interval(math.exp(np.mean(logs)), np.exp(drawn)) if logs else None
    return out
