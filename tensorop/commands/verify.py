"""`verify`: checks a finished library on its target with the full grid of test calls."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from tensorop.commands.library_paths import LibraryPaths
from tensorop.commands.opened import Opened
from tensorop.model.case import Case
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.verdict import ControlResult, Seed, Verdict
from tensorop.render import adapting, instantiate
from tensorop.runners.protocol import TargetLibrary
from tensorop.runners.session import Guest
from tensorop.specs import epilogue
from tensorop.target import Target
from tensorop.verify import controls, grid
from tensorop.verify.answers import Answers
from tensorop.verify.subject import Subject

_Batch = tuple[float, Callable[[], Verdict]]  # flops of some cases, and what judges them in one process
THREADS = (2, 4)
CALL_TIMEOUT_S = 120.0
LARGE_BATCH = 16  # measured problems of one process


def verify(
    found: Opened,
    target: Target,
    seed: Seed,
    *,
    threads: Sequence[int] = THREADS,
    jobs: int = 2,
    timed: Sequence[Problem] = (),
    answers: Answers | None = None,
    paths: LibraryPaths | None = None,
) -> Iterator[Verdict]:
    """Judges a library on the full grid. Yields, for each dtype, a verdict per VLEN, then one per number of threads.

    A failed verdict is yielded like a passed one.
    timed: measured problems; the library is also judged on them, with its own dispatch, at the VLENs of measurements,
    by `answers` where these are known
    paths: the calls of the kernels' paths are made too
    Then, of a library with epilogues, the same for calls with one.
    Raises UsageError if a file cannot be read, JobError if the library is unsafe to load or does not load.
    """
    found.require_fit()
    yield from _verified(found, target, seed, threads, jobs, timed, answers, paths)
    if (other := _with_epilogue(found)) is not None:
        yield from _verified(other, target, seed, threads, jobs, (), None, None)


def _with_epilogue(found: Opened) -> Opened | None:
    """The library as the operator of its calls with an epilogue; None if it has none."""
    has = found.card["facts"].get("epilogue")
    operator = epilogue.of(found.operator, found.plugins) if has else None
    return None if operator is None else dataclasses.replace(found, operator=operator)


def _verified(
    found: Opened,
    target: Target,
    seed: Seed,
    threads: Sequence[int],
    jobs: int,
    timed: Sequence[Problem],
    answers: Answers | None,
    paths: LibraryPaths | None,
) -> Iterator[Verdict]:
    judge = _Judge(found, target, seed, answers or Answers(found.operator.reference), paths)
    parts: list[tuple[str, list[Future[Verdict]]]] = []
    several: dict[str, Future[list[Verdict]]] = {}
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        try:
            for dtype in found.dtypes:
                several[dtype] = pool.submit(judge.threads, dtype, threads)
                for vlen in target.verify_vlens:
                    batches = [*enumerate(judge.batches(dtype, vlen, timed))]  # while earlier ones are running
                    batches.sort(key=lambda one: -one[1][0])  # the longest first, so that all processors end together
                    running = {i: pool.submit(judged) for i, (_, judged) in batches}
                    parts.append((dtype, [running[i] for i in sorted(running)]))
            for dtype, of_dtype in itertools.groupby(parts, lambda part: part[0]):
                for _, futures in of_dtype:
                    verdict = grid.joined(future.result() for future in futures)
                    yield dataclasses.replace(verdict, dtype=dtype)
                yield from several[dtype].result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def quick(found: Opened, target: Target, seed: Seed, timed: Iterable[Problem] = ()) -> Iterator[Verdict]:
    """Judges a product whose kernels passed before, on the quick grid and on `timed`, with the library's own dispatch.

    Yields a verdict for each dtype and VLEN. Raises the errors of `verify`.
    """
    found.require_fit()
    judge, problems = _Judge(found, target, seed), tuple(timed)
    for dtype in found.dtypes:
        for vlen in target.verify_vlens:
            yield judge.quick(dtype, vlen, problems)
            if (other := _with_epilogue(found)) is not None:
                yield _Judge(other, target, seed).quick(dtype, vlen, ())


def run_controls(found: Opened, target: Target, seed: Seed) -> tuple[ControlResult, ...]:
    """Runs the negative controls of a product's operator on its target.

    Raises JobError if verification gives a wrong verdict on a control, and the errors of `verify`.
    """
    found.require_fit()
    both = (found, _with_epilogue(found))
    runs = (controls.ControlRun(one.operator, found.platform, target.runner, seed) for one in both if one)
    return tuple(result for run in runs for result in run.run(found.dtypes))


@dataclasses.dataclass(frozen=True)
class _Judge:
    opened: Opened
    target: Target
    seed: Seed
    answers: Answers | None = None  # to measured calls of the seed
    paths: LibraryPaths | None = None

    def batches(self, dtype: str, vlen: int, timed: Sequence[Problem] = ()) -> Iterator[_Batch]:
        """The full grid around the first variant's tile, with sizes beyond every variant's blocks, in batches.

        Each variant is also judged on its quick grid, on the edges of its tile and on its kernel's paths, and the
        library on `timed`.
        """
        reference = self.opened.operator.reference
        variants = self._variants(dtype)
        names = self.opened.operator.blocking.values
        blocking = {name: max(int(v[name]) for v in self._blockings(dtype)) for name in names}
        tiles = [self._tile(variant, dtype, vlen) for variant in variants]
        cases: list[Case] = list(
            reference.full_grid(dtype, tiles[0], {**blocking, "variants": len(variants)}, self.seed.stream(0, vlen))
        )
        for number, tile in enumerate(tiles):
            rng = self.seed.stream(3, vlen, number)
            for case in (*reference.quick_grid(dtype, tile, rng), *reference.edge_grid(dtype, tile, rng)):
                cases.append(dataclasses.replace(case, problem=case.problem.with_options(variant=number)))
        more = [Case(problem) for problem in timed if problem.dtype == dtype and vlen in self.target.vlens]
        subject = self._subject(dtype, 1)
        measured = dataclasses.replace(subject, answers=self.answers)
        of_grid = [(subject, cases, batch) for batch in grid.batches(len(cases))]
        of_timed = [(measured, more, batch) for batch in grid.batches(len(more), LARGE_BATCH)] if more else []
        called = [] if self.paths is None else self.paths.cases(dtype, vlen)
        of_paths = [(subject, called, batch) for batch in grid.batches(len(called))] if called else []
        for who, given, batch in (*of_grid, *of_timed, *of_paths):
            judged = functools.partial(grid.check_batch, reference, who, given, batch, vlen, self.seed)
            yield sum(float(reference.work(given[number].problem)) for number in batch), judged

    def quick(self, dtype: str, vlen: int, timed: Sequence[Problem]) -> Verdict:
        """Judges the quick grid around the first variant's tile, then `timed`."""
        reference = self.opened.operator.reference
        tile = self._tile(self._variants(dtype)[0], dtype, vlen)
        cases = [*reference.quick_grid(dtype, tile, self.seed.stream(0, vlen))]
        cases += [Case(problem) for problem in timed if problem.dtype == dtype]
        verdict = grid.check(reference, self._subject(dtype, 1), cases, vlen, self.seed)
        return dataclasses.replace(verdict, dtype=dtype)

    def threads(self, dtype: str, counts: Sequence[int]) -> list[Verdict]:
        """Judges large problems with several threads, at the first VLEN."""
        vlen = self.target.verify_vlens[0]
        tile = self._tile(self._variants(dtype)[0], dtype, vlen)
        cases = self.opened.operator.reference.thread_grid(dtype, tile, self.seed.stream(8, vlen))
        verdicts = grid.verify_threads(
            self.opened.operator, lambda count: self._subject(dtype, count), cases, counts, vlen, self.seed
        )
        return [dataclasses.replace(verdict, dtype=dtype) for verdict in verdicts]

    def _subject(self, dtype: str, threads: int) -> Subject:
        program = adapting.program(self.opened.platform, self.opened.operator).path
        library = TargetLibrary(self.target.runner.place(self.opened.library), "tensorop", dtype)
        guest = Guest(libraries=(library,), threads=threads)
        return Subject(self.target.runner, program, guest, timeout_s=CALL_TIMEOUT_S)

    def _variants(self, dtype: str) -> list[Mapping[str, Any]]:
        return list(self.opened.card["dtypes"][dtype]["variants"])

    def _blockings(self, dtype: str) -> list[Point]:
        operator, platform = self.opened.operator, self.opened.platform
        winners = self.opened.card["dtypes"][dtype]
        blocked = [v for i, v in enumerate(winners["variants"]) if i != winners.get("direct", {}).get("variant")]
        points = [Point.of(variant["point"]) for variant in blocked]
        return [instantiate.defaults(operator, platform, dtype, point) for point in points]

    def _tile(self, variant: Mapping[str, Any], dtype: str, vlen: int) -> dict[str, int]:
        point = Point.of(variant["point"])
        lanes = self.opened.platform.lanes(dtype, point, vlen)
        return self.opened.operator.reference.tile(point, lanes, variant.get("reads", {}))
