"""`bench`: the product's library against the libraries a user would pick instead, on the same target."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tensorop import problems
from tensorop.build import harness, peak
from tensorop.commands import contenders, opened
from tensorop.commands.contenders import Contender
from tensorop.errors import BoardError, JobError, TensoropError, UsageError
from tensorop.measure import bandwidth, clock, machine, modelled, statistics
from tensorop.measure import peak as measured_peak
from tensorop.model.bench import AtVlen, BaselineInfo, Bench, Ratio, Row
from tensorop.model.call import Call, Placement
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Seed
from tensorop.runners import session
from tensorop.runners.protocol import Check, Entry
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.target import FINAL_PACE, SEARCH_PACE, Target, reach

DEFAULT_AGAINST = ("openblas",)
# Multiplications of the oracle that a check may cost; of larger results some rows are looked at.
_CHECKED = 2e7
# Flops up to which results are checked under an emulator, where a call takes seconds.
_CHECKED_EMULATED = 1e8
# Above this a call under the plug-in lasts longer than it takes to fill the caches: no warming call before it.
_WARMED = 2e8
_SECONDS_PER_FLOP = 1 / 2e6  # of the slowest emulated call, for deadlines

Tell = Callable[[Row], None]


def bench(
    path: Path,
    against: Sequence[str] = DEFAULT_AGAINST,
    shapes: Sequence[Sequence[int]] | None = None,
    dtypes: Sequence[str] | None = None,
    threads: int = 1,
    runner: str | None = None,
    layout: int = 0,
    final: bool = True,
    *,
    suite: str = "quick",
    plugins: tuple[Path, ...] = (),
    offline: bool | None = None,
    jobs: int = 2,
    tell: Tell = lambda row: None,
) -> Bench:
    """Compares a product (its folder or its library) with baselines, problem by problem.

    shapes: dims in the operator's order, the operator's `suite` by default (with its `-clock` companion where a clock
    measures); layout: number of the operator's layout; final: slowly and exactly; tell: is given each row as it comes.
    Raises UsageError (no product there, an unknown baseline), JobError (our library does not load, is wrong, or no row
    could be measured; a target that cannot be reached).
    """
    found = opened.open_product(path, plugins)
    target = reach(found.platform, runner)
    wanted = tuple(tuple(s) for s in shapes) if shapes is not None else suite_of(found.operator, suite, target)
    missing = [dtype for dtype in dtypes or () if dtype not in found.dtypes]
    result = compare(
        found.operator,
        target,
        found.library,
        dtypes=[dtype for dtype in dtypes or found.dtypes if dtype in found.dtypes],
        shapes=wanted,
        against=against,
        threads=threads,
        layout=layout,
        final=final,
        offline=offline,
        jobs=jobs,
        tell=tell,
    )
    lacking = {dtype: f"the library holds {', '.join(found.dtypes)}" for dtype in missing}
    return dataclasses.replace(result, absent={**lacking, **result.absent})


def suite_of(operator: Operator, suite: str, target: Target) -> tuple[tuple[int, ...], ...]:
    """A suite's shapes on a target: those that only a clock can afford are in `<suite>-clock`."""
    more = operator.suites.get(f"{suite}-clock", ()) if target.model is None else ()
    return (*operator.suites[suite], *more)


def compare(
    operator: Operator,
    target: Target,
    library: Path,
    *,
    dtypes: Sequence[str],
    shapes: Sequence[tuple[int, ...]],
    against: Sequence[str] = DEFAULT_AGAINST,
    threads: int = 1,
    layout: int = 0,
    final: bool = True,
    offline: bool | None = None,
    jobs: int = 2,
    tell: Tell = lambda row: None,
) -> Bench:
    """The comparison itself, for a library that need not lie in a product. Parameters and errors as `bench`."""
    if not 0 <= layout < len(operator.layouts):
        raise UsageError(f"layout {layout} does not exist: {operator.name} has {len(operator.layouts)}")
    contenders.check_names(against)
    platform = target.platform
    program = harness.dynamic_program(platform.arch, operator.folder / "adapter.c").path
    absent: dict[str, str] = {}
    if target.model is not None and threads > 1:
        absent[f"{threads} threads"] = "a board model is of one core; `tensorop verify` checks several for correctness"
        threads = 1
    found: dict[str, tuple[Contender, BaselineInfo]] = {}
    for name in dict.fromkeys(against):
        try:
            contender = contenders.bring(name, platform, target.vlens, threads, offline)
            found[name] = contender, contenders.describe(contender, target.runner, platform.arch, target.vlens)
        except BoardError:
            raise
        except JobError as error:
            absent[name] = str(error).replace("\n", "; ")
    contest = _Contest(
        operator,
        target,
        program,
        contenders.ours(library, threads),
        tuple(contender for contender, _ in found.values()),
        threads,
        final,
        absent,
        {},
    )
    rows: list[Row] = []
    for dtype in dtypes:
        if target.model is None:
            contest.find_peak(dtype)
        for row in contest.rows([problems.of(operator, dtype, shape, layout) for shape in shapes], jobs):
            rows.append(row)
            tell(row)
    if not rows:
        raise JobError("no row could be measured", hint="ask for dtypes and shapes the library has")
    return Bench(
        platform=platform.name,
        threads=threads,
        unit="GFLOP/s" if target.model is None else "flop/modelled-cycle",
        model=None if target.model is None else _model(target, final),
        baselines={name: info for name, (_, info) in found.items()},
        absent=absent,
        rows=tuple(rows),
        machine=_machine() if target.runner.name == "native" else target.described,
        peak=contest.peak,
    )


def _machine() -> Mapping[str, object]:
    """State of this machine; bandwidth: bytes a nanosecond to and from memory."""
    return {**dataclasses.asdict(machine.record()), "bandwidth": bandwidth.copy_bandwidth()}


def _model(target: Target, interval: bool) -> Mapping[str, object]:
    """interval: whether ranges over the assumed constants were computed, or the best fit alone."""
    model = target.model
    assert model is not None
    return {"name": model.name, "version": model.version, "calibrated": model.calibrated, "interval": interval}


@dataclass(frozen=True)
class _Contest:
    """One comparison under way. `absent` and `peak` fill up as it goes on."""

    operator: Operator
    target: Target
    program: Path
    ours: Contender
    baselines: tuple[Contender, ...]
    threads: int
    final: bool
    absent: dict[str, str]
    peak: dict[str, float]
    seed: Seed = field(default_factory=Seed.draw)

    def find_peak(self, dtype: str) -> None:
        try:
            program = peak.peak_program(self.target.platform, dtype)
            self.peak[dtype] = measured_peak.fma_peak(program, self.target.runner, dtype, fresh=True)
        except TensoropError as error:
            self.absent[f"FMA peak {dtype}"] = str(error).replace("\n", "; ")

    def rows(self, wanted: Sequence[Problem], jobs: int) -> Iterator[Row]:
        """In the order asked; side by side where no clock is shared."""
        if not self.target.side_by_side:
            yield from map(self.timed, wanted)
            return
        with ThreadPoolExecutor(max(1, jobs)) as pool:
            futures = [pool.submit(self.modelled, problem) for problem in wanted]
            try:
                for future in futures:
                    yield future.result()
            finally:
                for future in futures:
                    future.cancel()

    # by a clock -----------------------------------------------------------------------------------------------

    def timed(self, problem: Problem) -> Row:
        """Each baseline in a process with ours, round by round, so that what slows one slows both."""
        flops = self._flops(problem)
        call = self._call(problem)
        vlen = self.target.vlens[0]
        self._check(self.ours, problem, call, vlen)
        ours: clock.Timed | None = None
        ratios: dict[str, Ratio] = {}
        noisy = False
        for baseline in self._right(problem, call, vlen):
            found = self._time((self.ours, baseline), problem, call)
            if isinstance(found, Outcome):
                self._leave_out(baseline, problem, found)
                continue
            ratio = found.ratio(0, 1)
            ratios[baseline.name] = Ratio(ratio.median, ratio.low, ratio.high)
            noisy = noisy or not found.steady
            ours = ours or found
        if ours is None:
            alone = self._time((self.ours,), problem, call)
            if isinstance(alone, Outcome):
                raise JobError(f"{problem.label} cannot be measured: {alone.message}")
            ours, noisy = alone, not alone.steady
        samples = ours.samples[0]
        gflops = flops / samples.value
        peak = self.peak.get(problem.dtype)
        return Row(
            op=self.operator.name,
            dtype=problem.dtype,
            dims=_dims(problem),
            layout=_layout(problem),
            ours=gflops,
            ratios=ratios,
            spread=(samples.high - samples.low) / samples.value,
            noisy=noisy,
            peak_share=gflops / (peak * self.threads) if peak else None,
        )

    def _time(self, who: Sequence[Contender], problem: Problem, call: Call) -> clock.Timed | Outcome:
        guest = self._guest(who, problem.dtype, self.target.vlens[0])
        guest = dataclasses.replace(guest, cpu=clock.processor(self.target.runner) if self.threads == 1 else -1)
        return clock.time_entries(
            self.target.runner,
            self.program,
            call,
            [Entry(i) for i in range(len(who))],
            pace=FINAL_PACE if self.final else SEARCH_PACE,
            guest=guest,
            reference=len(who) - 1,
            tolerate=True,
        )

    # by a model -----------------------------------------------------------------------------------------------

    def modelled(self, problem: Problem) -> Row:
        """Each library alone in its process at each VLEN; baselines' figures are remembered."""
        flops = self._flops(problem)
        call = self._call(problem)
        at: dict[int, AtVlen] = {}
        own: dict[int, Samples] = {}
        theirs: dict[str, dict[int, Samples]] = {}
        for vlen in self.target.vlens:
            if flops <= _CHECKED_EMULATED:
                self._check(self.ours, problem, call, vlen)
            mine = self._count(self.ours, problem, call, vlen, keep=False)
            if isinstance(mine, Outcome):
                raise JobError(f"{problem.label} cannot be measured at VLEN {vlen}: {mine.message}")
            own[vlen] = mine
        for baseline in self._right(problem, call, self.target.vlens[0]):
            by_vlen: dict[int, Samples] = {}
            for vlen in self.target.vlens:
                other = self._count(baseline, problem, call, vlen, keep=True)
                if isinstance(other, Outcome):
                    self._leave_out(baseline, problem, other)
                    break
                by_vlen[vlen] = other
            else:
                theirs[baseline.name] = by_vlen
        for vlen, mine in own.items():
            beside = {name: samples[vlen] for name, samples in theirs.items()}
            at[vlen] = AtVlen(
                flops / mine.value,
                {name: _span([mine], [samples]) for name, samples in beside.items()},
                counters_per_kflop(mine, flops),
                {name: counters_per_kflop(samples, flops) for name, samples in beside.items()},
            )
        first = at[self.target.vlens[0]]
        mean = statistics.geomean(s.value for s in own.values())
        return Row(
            op=self.operator.name,
            dtype=problem.dtype,
            dims=_dims(problem),
            layout=_layout(problem),
            ours=flops / mean,
            ratios={name: _span(list(own.values()), list(s.values())) for name, s in theirs.items()},
            spread=statistics.geomean(s.high for s in own.values()) / mean
            - statistics.geomean(s.low for s in own.values()) / mean,
            counters=first.counters if len(at) == 1 else {},
            baseline_counters=first.baseline_counters if len(at) == 1 else {},
            by_vlen=at if len(at) > 1 else {},
        )

    def _count(self, who: Contender, problem: Problem, call: Call, vlen: int, keep: bool) -> Samples | Outcome:
        assert isinstance(self.target.runner, Qemu)
        assert self.target.model is not None
        flops = self._flops(problem)
        found = modelled.count_entries(
            self.target.runner,
            self.program,
            call,
            model=self.target.model,
            vlen=vlen,
            scenarios="interval" if self.final else "best",
            guest=self._guest((who,), problem.dtype, vlen),
            warm=1 if flops <= _WARMED else 0,
            timeout_s=120 + flops * _SECONDS_PER_FLOP,
            keep=keep,
        )
        return found if isinstance(found, Outcome) else found[0]

    # both -----------------------------------------------------------------------------------------------------

    def _flops(self, problem: Problem) -> float:
        return float(self.operator.reference.work(problem))

    def _call(self, problem: Problem) -> Call:
        """Normal inputs, operands page-aligned, as candidates are measured."""
        call: Call = self.operator.reference.call(problem, self.seed.stream(2), "normal", Placement.START)
        return call

    def _guest(self, who: Sequence[Contender], dtype: str, vlen: int) -> Guest:
        merged: dict[str, str] = {}
        for contender in who:
            for key, value in contender.environment(self.target.runner, vlen):
                merged[key] = f"{merged[key]}:{value}" if key == "LD_LIBRARY_PATH" and key in merged else value
        libraries = tuple(contender.library(self.target.runner, dtype) for contender in who)
        return Guest(vlen=vlen or None, libraries=libraries, environment=tuple(sorted(merged.items())), sandbox=False)

    def _judge(self, who: Contender, problem: Problem, call: Call, vlen: int) -> Outcome:
        """One call against the oracle; of a large result a few rows, first and last among them."""
        guest = self._guest((who,), problem.dtype, vlen)
        timeout = 60.0 + self._flops(problem) * (_SECONDS_PER_FLOP if self.target.model else 0)
        (reply,) = session.run(
            self.target.runner, self.program, [Check(call)], guest=guest, timeout_s=timeout, where="verify"
        )
        if not reply.outcome.ok:
            return reply.outcome
        height = int(problem.dims[self.operator.dims[0]])
        several = max(2, int(_CHECKED * 2 * height / max(self._flops(problem), 1)))
        rows = None
        if several < height:
            inner = self.seed.stream(3).integers(0, height, several - 2)
            rows = sorted({0, height - 1, *map(int, inner)})
        judged: Outcome = self.operator.reference.judge(problem, call, reply.outputs, rows)
        return judged

    def _check(self, who: Contender, problem: Problem, call: Call, vlen: int) -> None:
        judged = self._judge(who, problem, call, vlen)
        if not judged.ok:
            raise JobError(
                f"{who.path} is not timed, since it fails: {judged.message or judged.kind.value}",
                hint="tensorop verify LIB shows more",
            )

    def _right(self, problem: Problem, call: Call, vlen: int) -> Iterator[Contender]:
        """The baselines that take part in this problem: loaded, and right in one call where that is affordable."""
        for baseline in self.baselines:
            if f"{baseline.name} {problem.dtype}" in self.absent:
                continue
            try:
                cheap = self.target.model is None or self._flops(problem) <= _CHECKED_EMULATED
                judged = self._judge(baseline, problem, call, vlen) if cheap else Outcome(Kind.OK)
            except BoardError:
                raise
            except JobError as error:  # it has no such function
                self.absent[f"{baseline.name} {problem.dtype}"] = error.message
                continue
            if judged.ok:
                yield baseline
            else:
                self._leave_out(baseline, problem, judged)

    def _leave_out(self, baseline: Contender, problem: Problem, why: Outcome) -> None:
        self.absent[f"{baseline.name} {problem.label}"] = f"{why.kind.value}: {why.message}"


def counters_per_kflop(samples: Samples, flops: float) -> dict[str, float]:
    """Instructions, cache misses and modelled cycles for 1000 flops."""
    kept = {n: x for n, x in samples.counters.items() if n == "instructions" or n.startswith("misses.")}
    return {name: 1e3 * value / flops for name, value in {**kept, "cycles": samples.value}.items()}


def _span(ours: Sequence[Samples], theirs: Sequence[Samples]) -> Ratio:
    """The geometric mean of the VLENs' ratios, and its range over the choices of assumed constants.

    A choice holds for both sides and every VLEN at once; figures without choices have no range.
    """
    value = statistics.geomean(b.value / a.value for a, b in zip(ours, theirs, strict=True))
    choices = [
        statistics.geomean(b.counters[name] / a.counters[name] for a, b in zip(ours, theirs, strict=True))
        for name in ours[0].counters
        if name.startswith("scenario.") and all(name in s.counters for s in (*ours, *theirs))
    ]
    return Ratio(value, min(choices, default=value), max(choices, default=value))


def _dims(problem: Problem) -> dict[str, int]:
    return {name: int(value) for name, value in problem.dims.items()}


def _layout(problem: Problem) -> str:
    """`row`, with transposes as in `row,tb=1`."""
    words = [str(v) if k == "layout" else f"{k}={v}" for k, v in problem.options.items()]
    return ",".join(words)
