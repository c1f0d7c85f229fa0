"""Micro-benchmarks of a platform's core: counted under its board model, or timed on a board."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import JobError
from tensorop.measure import clock, modelled, statistics
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.expression import evaluate
from tensorop.model.microbench import Benchmark, ClockedBenchmark, Modelled, Question
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Entry
from tensorop.runners.qemu import Qemu
from tensorop.specs import microbench
from tensorop.specs.board import BoardModel
from tensorop.specs.board_scenarios import scenario_values, under
from tensorop.toolchain import programs

_CLOCK, _BENCH = 0, 1  # numbers of the functions of every program; see bench.h
_ADDITIONS = 64  # cycles of one iteration of the clock function: dependent additions
_CLOCK_ITERATIONS = 500
_LINE, _PAGE = 64, 4096
_PACE = clock.Pace(rounds=11, warm_ns=2_000_000, min_ns=1_000_000, max_ns=3_000_000_000)


@dataclass(frozen=True)
class PreparedBenchmark:
    """A benchmark built for a platform."""

    benchmark: Benchmark
    units: int  # units of the benchmark in one call
    call: Call
    program: Path


def prepare(platform: Platform, vlen: int, only: Sequence[str] = ()) -> tuple[PreparedBenchmark, ...]:
    """Builds the benchmarks of the platform's architecture. Raises JobError, MissingTool.

    vlen: bits; only: names of benchmarks; empty: all
    """
    known = microbench.benchmarks(platform.arch)
    folder = microbench.folder(platform.arch)
    names = {level: cache.size for level, cache in platform.caches.items()} | {"lanes": vlen // 32}
    wanted = [b for b in known if not only or b.name in only]
    with ThreadPoolExecutor(2) as pool:
        sources = tuple(dict.fromkeys(b.source for b in wanted))
        built = pool.map(lambda source: programs.benchmark_program(folder, source, known, platform), sources)
        paths = {source: made.path for source, made in zip(sources, built, strict=True)}
    return tuple(_ready(b, names, programs.benchmark_functions(known, b.source), paths[b.source]) for b in wanted)


def _ready(
    benchmark: Benchmark, names: Mapping[str, int], functions: Sequence[str], program: Path
) -> PreparedBenchmark:
    size = evaluate(benchmark.size, names)
    units = benchmark.iterations * evaluate(benchmark.per, {**names, "bytes": size})
    data = _FILLS[benchmark.fill](size)
    call = Call(
        (benchmark.iterations, size, *(*benchmark.dims, 0, 0)[:2], _CLOCK_ITERATIONS),
        flags=(functions.index(benchmark.function),),
        buffers=(Buffer("memory", Access.INOUT, data),),
    )
    return PreparedBenchmark(benchmark, units, call, program)


def _cycle(size: int, places: NDArray[np.int64]) -> NDArray[np.int64]:
    """One random cycle through places (offsets in bytes, 0 included): each place holds the offset of the next."""
    order = np.random.default_rng(60).permutation(places)
    data = np.zeros(size // 8, np.int64)
    data[order // 8] = np.roll(order, -1)
    return data


def _pages(size: int) -> NDArray[np.int64]:
    pages = np.arange(size // _PAGE, dtype=np.int64)
    return _cycle(size, pages * _PAGE + pages % (_PAGE // _LINE) * _LINE)


_FILLS = {
    "": lambda size: np.zeros(size // 8, np.int64),
    "chase": lambda size: _cycle(size, np.arange(0, size, _LINE, dtype=np.int64)),
    "pages": _pages,
}


def model(
    benches: Sequence[PreparedBenchmark],
    runner: Qemu,
    board: BoardModel,
    vlen: int,
    scenarios: str | Sequence[Mapping[str, float]] = "interval",
) -> Iterator[tuple[PreparedBenchmark, tuple[float, ...]]]:
    """Cycles for one unit of each benchmark, one number per scenario. Raises JobError if a benchmark fails."""
    with ThreadPoolExecutor(2) as pool:
        counted = pool.map(lambda bench: _count(bench, runner, board, vlen, scenarios), benches)
        yield from zip(benches, counted, strict=True)


def _count(
    bench: PreparedBenchmark, runner: Qemu, board: BoardModel, vlen: int, scenarios: str | Sequence[Mapping[str, float]]
) -> tuple[float, ...]:
    request = MeasureRequest(bench.program, [bench.call], (Entry(_BENCH),), Purpose.CHOICE, vlen)
    found = modelled.count(runner, board, request, scenarios)
    if isinstance(found, Outcome):
        raise JobError(f"the micro-benchmark {bench.benchmark.name} failed: {found.message}")
    samples = found[0].samples
    return tuple(cycles / bench.units for cycles in samples.scenario_costs or (samples.value,))


def interval(bench: PreparedBenchmark, cycles: Sequence[float]) -> Modelled:
    """A benchmark's modelled cycles and their range. cycles: one number per choice of constants, the best fit first."""
    return Modelled(bench.benchmark, cycles[0], min(cycles), max(cycles))


def time(benches: Sequence[PreparedBenchmark], runner: Runner) -> Iterator[ClockedBenchmark | Outcome]:
    """Times each benchmark in turns with the clock function, so that a changing frequency affects both.

    Yields an Outcome for a benchmark that cannot be measured. Raises BoardError if a board does not come back.
    """
    for bench in benches:
        entries = (Entry(_CLOCK), Entry(_BENCH))
        timed = clock.measure(runner, MeasureRequest(bench.program, [bench.call], entries, Purpose.CHOICE), _PACE)
        if isinstance(timed, Outcome):
            yield timed
            continue
        cycles = _ADDITIONS * _CLOCK_ITERATIONS
        beside = statistics.quartiles(timed[_CLOCK].rounds)[1]
        low, middle, high = statistics.quartiles(timed[_BENCH].rounds)
        yield ClockedBenchmark(bench.benchmark, middle / bench.units, 1e3 * cycles / beside, (high - low) / middle)


def questions(benches: Sequence[PreparedBenchmark], runner: Qemu, board: BoardModel, vlen: int) -> tuple[Question, ...]:
    """The cycles of the benchmarks that decide an alternative, with the alternative and without it.

    Assumed constants vary over their ranges, except those that the alternative changes: they have its values on one
    side and the best fit on the other. Raises JobError if a benchmark fails.
    """
    choices = scenario_values(board, "interval")
    found = []
    for name, alternative in board.alternatives.items():
        wanted = [bench for bench in benches if bench.benchmark.name in alternative.settled_by]
        own = {key: value for key, value in choices[0].items() if key in alternative.change}
        sides = [[{**choice, **own} for choice in choices], [under(choice, board, name) for choice in choices]]
        counted = (model(wanted, runner, board, vlen, side) for side in sides)
        for (bench, usual), (_, other) in zip(*counted, strict=True):
            found.append(Question(name, interval(bench, usual), interval(bench, other)))
    return tuple(found)
