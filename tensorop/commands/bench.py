"""`bench`: compares a product's library with the libraries that a user would pick instead, on the same target."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from tensorop.commands import contest as comparing
from tensorop.commands import libraries
from tensorop.commands.contest import Contest
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.commands.opened import Opened
from tensorop.errors import BoardError, JobError, NoFigure
from tensorop.model.bench import BaselineInfo, Bench, Row
from tensorop.model.listed import NO_FILES, Listed
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.verdict import Seed
from tensorop.render import adapting
from tensorop.space import problems
from tensorop.target import Assumed, Target
from tensorop.verify.answers import Answers

Tell = Callable[[Row], None]


@dataclass(frozen=True)
class BenchRequest:
    """The dtypes, shapes, baselines and settings of a comparison."""

    dtypes: Sequence[str] | None = None  # None: all dtypes of the library
    shapes: Sequence[Sequence[int]] | None = None  # sizes in the operator's order; None: `suite_of` its usual suite
    against: Sequence[str] = ()  # baselines, none of which may be absent; empty: those usual ones that are there
    threads: int = 1
    layout: int = 0  # number of the operator's layout
    final: bool = True  # the slow and exact measurement
    offline: bool | None = None
    jobs: int = 2  # problems in parallel, on a deterministic target
    seed: Seed | None = None  # of the operands; None: a new one
    answers: Answers | None = None  # to measured calls of the seed
    more: Sequence[str] = ()  # baselines beside those of `against`
    listed: Listed = NO_FILES  # calls of files among the shapes


def bench(
    found: Opened, target: Target, request: BenchRequest = BenchRequest(), tell: Tell = lambda row: None
) -> Bench:
    """Compares a product's library with baselines, problem by problem. tell: called with each finished row.

    Raises UsageError (the library has none of the dtypes, a baseline is unknown) and JobError (a baseline of `against`
    is absent, our library does not load or computes a wrong result, or no row could be measured).
    """
    wanted = found.dtypes if request.dtypes is None else tuple(request.dtypes)
    held = [dtype for dtype in wanted if dtype in found.dtypes]
    if not held:
        found.only(wanted)
    result = compare(found.operator, target, found.library, replace(request, dtypes=held), tell)
    lacking = {dtype: f"the library holds {', '.join(found.dtypes)}" for dtype in wanted if dtype not in held}
    return replace(result, absent={**lacking, **result.absent})


def suite_of(operator: Operator, suite: str, target: Target) -> tuple[tuple[int, ...], ...]:
    """A suite's shapes on a target. A clock also measures `<suite>-clock`, which is too slow under an emulator."""
    more = operator.suites.get(f"{suite}-clock", ()) if target.budgets.clock_probes else ()
    return (*operator.suites[suite], *more)


def compare(
    operator: Operator, target: Target, library: Path, request: BenchRequest, tell: Tell = lambda row: None
) -> Bench:
    """Compares a library, in a product or not, with baselines. Raises the errors of `bench`."""
    dtypes, threads, layout = request.dtypes or (), request.threads, problems.require_layout(operator, request.layout)
    of_suite = suite_of(operator, operator.usual, target) if request.shapes is None else request.shapes
    shapes = tuple(map(tuple, of_suite))
    against = tuple(dict.fromkeys((*(request.against or operator.against), *request.more)))
    for name in against:
        libraries.check_known(name, own=operator.baselines)
    platform = target.platform
    program = adapting.program(platform, operator).path
    absent: dict[str, str] = {}
    if target.deterministic and threads > 1:
        absent[f"{threads} threads"] = "a board model has one core; `tensorop verify` checks several for correctness"
        threads = 1
    found: dict[str, tuple[LibraryUnderTest, BaselineInfo]] = {}
    for name in against:
        try:
            tested = libraries.bring(name, target, dtypes, threads, request.offline, operator.baselines)
            found[name] = tested, libraries.describe(tested, target.runner, platform.arch)
        except BoardError:
            raise
        except JobError as error:
            if request.against:
                raise JobError(f"cannot compare with {name}: {error.message}", hint=error.hint) from None
            absent[name] = str(error).replace("\n", "; ")
    contest = Contest(
        operator,
        target,
        program,
        libraries.ours(operator, library, threads),
        tuple(tested for tested, _ in found.values()),
        threads,
        request.final,
        absent,
        seed=request.seed or Seed.draw(),
        known=request.answers,
    )
    rows: list[Row] = []
    unsteady: dict[str, str] = {}
    for dtype in dtypes:
        contest.open(dtype)
        if not target.deterministic:
            contest.find_peak(dtype)
        wanted = problems.asked(operator, dtype, shapes, request.listed, layout)
        shares = _shares(operator, dtype, wanted, request)
        for row in _rows(contest, wanted, request.jobs, unsteady):
            row = replace(row, time_share=shares.get((row.shape, row.layout)))
            rows.append(row)
            tell(row)
    absent |= unsteady
    if not rows and unsteady:
        last = list(unsteady.values())[-1]
        raise NoFigure(f"no shape could be measured: {last}", hint="try again on an idle machine")
    if not rows:
        raise JobError(
            "no shape could be measured with this library", hint="use dtypes and shapes that the library supports"
        )
    return Bench(
        platform=platform.name,
        threads=threads,
        unit=target.speed,
        model=_model(target.assumed, request.final) if target.assumed else None,
        baselines={name: info for name, (_, info) in found.items()},
        absent=absent,
        rows=tuple(replace(row, peak_share=contest.peak_share(row.dtype, row.ours)) for row in rows),
        machine=target.described(),
        peak=contest.peak,
    )


def _shares(
    operator: Operator, dtype: str, wanted: Sequence[Problem], request: BenchRequest
) -> dict[tuple[str, str], float]:
    """Shape and layout as texts -> part of the time in the files; empty without files."""
    listed, types = request.listed, {*(request.dtypes or ()), *request.listed.dtypes} - {""}
    whole = sum(listed.time(one) for one in types)
    return {
        (problem.shape, problems.written(problem.options)): weight / whole
        for problem in wanted
        if (weight := listed.weight(operator.shapes.of(problem.sizes), dtype, problem.options))
    }


def _model(assumed: Assumed, interval: bool) -> Mapping[str, object]:
    """interval: True if ranges over the assumed constants were computed; False: only the best fit."""
    return {"name": assumed.name, "version": assumed.version, "interval": interval, **assumed.record}


def _rows(contest: Contest, wanted: Sequence[Problem], jobs: int, unsteady: dict[str, str]) -> Iterator[Row]:
    """Rows in the order of `wanted`, measured in parallel on a deterministic target.

    unsteady: filled with problems that a clock could not measure, and the reason.
    """
    if not contest.target.deterministic:
        for problem in wanted:
            try:
                yield comparing.row(contest, problem)
            except NoFigure as error:
                unsteady[problem.label] = error.message
        return
    with ThreadPoolExecutor(max(1, jobs)) as pool:
        longest_first = sorted(dict.fromkeys(wanted), key=contest.flops, reverse=True)  # so that workers end together
        futures = {problem: pool.submit(comparing.row, contest, problem) for problem in longest_first}
        try:
            yield from (futures[problem].result() for problem in wanted)
        finally:
            for future in futures.values():
                future.cancel()
