"""A running comparison: the library, its baselines, the target, the processes that hold them, and the rows.

Under a board model, the calls of each library are counted separately at each VLEN. With a clock, our library and a
baseline are timed in turns.
"""

from __future__ import annotations

import functools
import hashlib
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop.commands.libraries import LibraryUnderTest
from tensorop.errors import BoardError, JobError, NoFigure, TensoropError
from tensorop.measure import call_path, statistics
from tensorop.measure import peak as measured_peak
from tensorop.measure.request import Measurement, MeasureRequest, Purpose
from tensorop.model.bench import BEST, OURS, AtVlen, Ratio, Row, verdict
from tensorop.model.call import Call, CallOutput
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Judgement, Seed
from tensorop.runners import session
from tensorop.runners.protocol import Entry
from tensorop.runners.session import Guest
from tensorop.space import problems
from tensorop.target import Target
from tensorop.toolchain import programs
from tensorop.trial.calls import measured_call, warming_calls
from tensorop.trial.roof import Roof
from tensorop.verify.answers import Answers

# Flops up to which the overhead of a call, outside the library's function, is measured and subtracted: nanoseconds of
# a call that takes microseconds.
SHORT = 1e6
# Flops above which a call under the plug-in needs no warming call before it, since it lasts longer than filling the
# caches.
_WARMED = 2e8


@dataclass(frozen=True)
class Contest:
    """A library and its baselines on a target."""

    operator: Operator
    target: Target
    program: Path  # the harness that opens libraries
    ours: LibraryUnderTest
    baselines: tuple[LibraryUnderTest, ...]
    threads: int
    final: bool  # the slow and exact measurement
    absent: dict[str, str] = field(default_factory=dict)  # reasons for missing figures; filled while measuring
    peak: dict[str, float] = field(default_factory=dict)  # GFLOP/s of one core by dtype; filled by `find_peak`
    seed: Seed = field(default_factory=Seed.draw)
    known: Answers | None = None  # to measured calls of the seed

    def find_peak(self, dtype: str) -> None:
        """Measures the FMA peak of one core in GFLOP/s. A peak that cannot be measured gets a reason in `absent`."""
        try:
            program = programs.peak_program(self.target.platform, dtype)
            self.peak[dtype] = measured_peak.fma_peak(program, self.target.runner, dtype, fresh=True)
        except TensoropError as error:
            self.absent[f"FMA peak {dtype}"] = str(error).replace("\n", "; ")

    def peak_share(self, dtype: str, speed: float) -> float | None:
        """Our speed as a share of the peak of the cores in use, which is measured again if the share is not credible;
        None if it is unknown."""
        if speed > statistics.CREDIBLE * self.threads * self.peak.get(dtype, speed):
            self.find_peak(dtype)
        return speed / (self.peak[dtype] * self.threads) if dtype in self.peak else None

    def flops(self, problem: Problem) -> float:
        return float(self.operator.reference.work(problem))

    def short(self, problem: Problem) -> bool:
        """True if the overhead of a call is subtracted.

        An operator's own baseline over a library does part of its work there, so nothing is subtracted beside it.
        """
        own = any(baseline.api in self.operator.baselines for baseline in self.baselines)
        return self.flops(problem) <= SHORT and not own

    def call(self, problem: Problem) -> Call:
        """A call as candidates are measured: normally distributed inputs, page-aligned operands.

        With a clock the call has two sets of operands.
        """
        reference = self.operator.reference
        call = measured_call(self.operator, problem, self.seed, 0)
        as_measured = reference.counted if self.target.deterministic else reference.alternated
        return as_measured(problem, call, self.seed.stream(4))

    def guest(self, who: Sequence[LibraryUnderTest], dtype: str, vlen: int) -> Guest:
        """A process that holds these libraries at a VLEN (bits; 0 if the target has a fixed width)."""
        merged: dict[str, str] = {}
        for tested in who:
            for key, value in tested.environment(self.target.runner, vlen, dtype):
                merged[key] = f"{merged[key]}:{value}" if key == "LD_LIBRARY_PATH" and key in merged else value
        libraries = tuple(tested.library(self.target.runner, dtype) for tested in who)
        environment = tuple(sorted(merged.items()))
        return Guest(vlen=vlen or None, libraries=libraries, environment=environment, threads=self.threads)

    def open(self, dtype: str) -> None:
        """Loads each library for a dtype; a baseline that does not load or lacks the dtype gets a reason in `absent`.

        Raises JobError if our own library does not load.
        """
        vlen = self.target.vlens[0]
        for who in (self.ours, *self.baselines, *itertools.chain(*map(self.routines, self.baselines))):
            if f"{who.name} {dtype}" in self.absent:
                continue
            try:
                session.hello(self.target.runner, self.program, guest=self.guest((who,), dtype, vlen))
            except BoardError:
                raise
            except JobError as error:
                if who is self.ours:
                    raise
                # the file's folder is of no use to readers of a record
                self.absent[f"{who.title} {dtype}"] = error.message.replace(f"{who.path.parent}/", "")

    def taking_part(self, problem: Problem) -> list[LibraryUnderTest]:
        """The baselines that have the problem's dtype (found by `open`) and compute the problem themselves."""
        out = []
        for baseline in self.baselines:
            if f"{baseline.name} {problem.dtype}" in self.absent:
                continue
            if baseline.most_flops is None or self.flops(problem) <= baseline.most_flops:
                out.append(baseline)
                continue
            why = f"products of more than {baseline.most_flops:g} flop it hands on to another library"
            self.absent[f"{baseline.name} {problem.label}"] = why
        return out

    def routines(self, baseline: LibraryUnderTest) -> list[LibraryUnderTest]:
        """The operator's routines that a baseline's library has by its interface."""
        routines = self.operator.routines.items()
        return [replace(baseline, api=name, function=name) for name, of in routines if of.interface == baseline.api]

    def functions(self, baseline: LibraryUnderTest, problem: Problem) -> list[LibraryUnderTest]:
        """A baseline once for each of its functions that compute a problem (found by `open`)."""
        serving = [name for name, of in self.operator.routines.items() if of.serves(problem.sizes)]
        if not serving:
            return [baseline]
        found = [replace(baseline, function=self.operator.name)]
        found += [one for one in self.routines(baseline) if one.function in serving]
        return [one for one in found if f"{one.title} {problem.dtype}" not in self.absent]

    def judge(self, problem: Problem, call: Call) -> Callable[[Sequence[CallOutput]], Judgement]:
        """A judge for the outputs of calls of this problem, with one evaluation of the oracle for all outputs."""
        answers = self.known or Answers(self.operator.reference)
        return lambda left: answers.judge_all(problem, call, left)

    @functools.cached_property
    def roof(self) -> Roof:
        """The roof of the machine with all its features: a baseline may use more than the product's platform."""
        return Roof(self.target.widest())

    def believed(self, problem: Problem, samples: Samples, judged: Outcome, vlen: int = 0) -> Outcome:
        """The outcome of a measured call: that of its results, or IMPOSSIBLE if it is faster than the roof."""
        impossible = self.roof.impossible(self.operator, problem, samples, vlen, self.threads) if judged.ok else None
        return impossible or judged

    @functools.cached_property
    def judged_by(self) -> str:
        """The hash of the operator's Python. A verdict depends on the reference and the call, and on nothing else."""
        texts = (file.read_bytes() for file in sorted(self.operator.folder.glob("*.py")))
        return hashlib.sha256(b"".join(texts)).hexdigest()

    def require(self, problem: Problem, judged: Outcome, vlen: int) -> None:
        """Raises JobError if our own library computes a wrong result or is faster than possible."""
        if judged.ok:
            return
        width = f" at {self.target.label(vlen)}" if vlen and len(self.target.vlens) > 1 else ""
        fault = "is faster than possible" if judged.kind is Kind.IMPOSSIBLE else "computes a wrong result"
        raise JobError(
            f"benchmark rejected: {self.ours.path} {fault}{width}: {judged.message or judged.kind.value}",
            hint=f"run `tensorop verify {self.ours.path}`",
        )

    def leave_out(self, baseline: LibraryUnderTest, problem: Problem, why: Outcome, vlen: int = 0) -> None:
        """Records why a baseline has no ratio at a problem, at one VLEN or, if the target has only one, at all."""
        width = f" {self.target.label(vlen)}" if vlen and len(self.target.vlens) > 1 else ""
        self.absent[f"{baseline.title} {problem.label}{width}"] = f"{why.kind.value}: {why.message}"


def unmeasured(outcome: Outcome, what: str) -> JobError:
    """The error if our own library could not be measured; NoFigure if the library is not at fault."""
    innocent = outcome.kind in (Kind.TIMEOUT, Kind.NOISY, Kind.LOST)
    return (NoFigure if innocent else JobError)(f"{what}: {outcome.message}")


Pair = tuple[Measurement, Measurement]  # ours and a baseline


def row(contest: Contest, problem: Problem) -> Row:
    """Measures all libraries on a problem.

    A baseline that computes a wrong result at a VLEN has no ratio there, and none over all VLENs. Raises JobError if
    our own library computes a wrong result, NoFigure if it could not be measured.
    """
    measured = _Measured(contest, problem)
    measured.measure()
    return measured.row()


class _Measured:
    """The costs of all libraries on one problem, by VLEN."""

    def __init__(self, contest: Contest, problem: Problem) -> None:
        self.contest, self.problem, self.flops = contest, problem, contest.flops(problem)
        self.vlens, self.counted = contest.target.vlens, contest.target.deterministic
        self.call = contest.call(problem)
        self.judged = contest.judge(problem, self.call)
        self.ours: dict[int, Measurement] = {}
        self.pairs: dict[str, dict[int, Pair]] = {}  # by baseline
        self.called: dict[str, dict[int, str]] = {}  # the baseline's function, where it has several; BEST's baseline
        self.served: dict[tuple[str, int], LibraryUnderTest] = {}  # by baseline and VLEN: it with this function
        self.verdicts: dict[str, dict[int, str]] = {OURS: {}}

    def measure(self) -> None:
        """Counts our own library first. A clock times it in turns with each baseline, so that noise hits both."""
        for vlen in self.vlens if self.counted else ():
            self._alone(vlen)
        for baseline in self.contest.taking_part(self.problem):
            for vlen in self.vlens:
                self._beside(baseline, vlen)
        for vlen in self.vlens if len(self.contest.baselines) > 1 else ():
            self._best(vlen)
        for vlen in self.vlens:
            if vlen not in self.ours:
                self._alone(vlen)

    def _alone(self, vlen: int) -> None:
        found = self._ask((self.contest.ours,), vlen)
        if isinstance(found, Outcome):
            place = f" at {label}" if (label := self._label(vlen)) else ""
            raise unmeasured(found, f"{self.problem.label} cannot be measured{place}")
        self._take(found[0], vlen)

    def _beside(self, baseline: LibraryUnderTest, vlen: int) -> None:
        """Measures each function of a baseline that computes the problem; the fastest right one is the baseline."""
        functions = self.contest.functions(baseline, self.problem)
        right = {one.function: pair for one in functions if (pair := self._paired(one, vlen))}
        if right:
            called = fastest(right)
            self.pairs.setdefault(baseline.name, {})[vlen] = right[called]
            self.served[baseline.name, vlen] = next(one for one in functions if one.function == called)
            self.verdicts[baseline.name][vlen] = "ok"
            if called:
                self.called.setdefault(baseline.name, {})[vlen] = called

    def _best(self, vlen: int) -> None:
        """Keeps the fastest right baseline as BEST. A clock times it again: the least of noisy ratios is too low."""
        right = {name: of[vlen] for name, of in self.pairs.items() if vlen in of}
        if right:
            name = fastest(right)
            pair = right[name] if self.counted else self._paired(self.served[name, vlen], vlen)
            if pair:
                self.pairs.setdefault(BEST, {})[vlen] = pair
                self.called.setdefault(BEST, {})[vlen] = name

    def _paired(self, baseline: LibraryUnderTest, vlen: int) -> Pair | None:
        """Ours and a baseline; None if the baseline is wrong or could not be measured."""
        who = (baseline,) if self.counted else (self.contest.ours, baseline)
        found = self._ask(who, vlen, self.contest.judged_by if self.counted else "")
        if isinstance(found, Outcome):
            self.contest.leave_out(baseline, self.problem, found, vlen)
            return None
        if not self.counted:
            self._take(found[0], vlen)
        judged = self.contest.believed(self.problem, found[-1].samples, found[-1].verdict, vlen)
        self.verdicts.setdefault(baseline.name, {})[vlen] = verdict(judged)
        if judged.ok:
            return (self.ours[vlen] if self.counted else found[0]), found[-1]
        self.contest.leave_out(baseline, self.problem, judged, vlen)
        return None

    def _take(self, mine: Measurement, vlen: int) -> None:
        """Keeps our own figure, the first at each VLEN. Raises JobError as `Contest.require`."""
        judged = self.contest.believed(self.problem, mine.samples, mine.verdict, vlen)
        self.contest.require(self.problem, judged, vlen)
        self.verdicts[OURS][vlen] = verdict(judged)
        self.ours.setdefault(vlen, mine)

    def _ask(
        self, who: Sequence[LibraryUnderTest], vlen: int, judged_by: str = ""
    ) -> tuple[Measurement, ...] | Outcome:
        contest, target = self.contest, self.contest.target
        guest = contest.guest(who, self.problem.dtype, vlen)
        request = MeasureRequest(
            contest.program,
            [self.call],
            [Entry(number) for number in range(len(who))],
            Purpose.FINAL if contest.final else Purpose.COMPARISON,
            vlen,
            [warming_calls(self.flops, _WARMED)],
            lambda _, left: self.judged(left),
            contest.short(self.problem),
            judged_by,
            replace(guest, cpu=target.runner.processor if contest.threads == 1 else -1),
        )
        if self.counted:
            request = replace(request, timeout_s=target.budgets.deadline(self.flops))
        return target.measure(request)

    def _label(self, vlen: int) -> str:
        return self.contest.target.label(vlen) if self.counted else ""

    def row(self) -> Row:
        ours = [one.samples for one in self.ours.values()]
        mean = statistics.geomean(samples.value for samples in ours)
        speed = self.flops / mean
        high, low = (statistics.geomean(getattr(samples, end) for samples in ours) for end in ("high", "low"))
        at = {vlen: self._at(vlen) for vlen in self.ours}
        first = at[self.vlens[0]]
        one_width = AtVlen(first.ours, {}) if len(at) > 1 else first
        beside = [pair for of in self.pairs.values() for pair in of.values()]
        return Row(
            op=self.contest.operator.name,
            dtype=self.problem.dtype,
            dims=self.problem.sizes,
            written=self.problem.shape,
            layout=problems.written(self.problem.options),
            ours=speed,
            ratios={name: _ratio(list(of.values())) for name, of in self.pairs.items() if len(of) == len(at)},
            spread=high / mean - low / mean,
            counters=one_width.counters,
            baseline_counters=one_width.baseline_counters,
            by_vlen=at if len(at) > 1 else {},
            verdicts={name: self._first_wrong(found) for name, found in self.verdicts.items()},
            noisy=not all(mine.steady for mine in (*self.ours.values(), *(pair[0] for pair in beside))),
            peak_share=self.contest.peak_share(self.problem.dtype, speed),
            empty_ns={} if self.counted else one_width.empty_cycles,
            empty_cycles=one_width.empty_cycles if self.counted else {},
            called={name: ", ".join(dict.fromkeys(of.values())) for name, of in self.called.items()},
            path_instructions=one_width.path_instructions,
        )

    def _at(self, vlen: int) -> AtVlen:
        mine = self.ours[vlen]
        pairs = {name: of[vlen] for name, of in self.pairs.items() if vlen in of}
        theirs = {name: other for name, (_, other) in pairs.items() if name != BEST}
        return AtVlen(
            self.flops / mine.samples.value,
            {name: _ratio([pair]) for name, pair in pairs.items()},
            counters_per_kflop(mine.samples, self.flops),
            {name: counters_per_kflop(other.samples, self.flops) for name, other in theirs.items()},
            {name: found[vlen] for name, found in self.verdicts.items() if vlen in found},
            {name: one.empty for name, one in {OURS: mine, **theirs}.items() if one.empty is not None},
            {name: of[vlen] for name, of in self.called.items() if vlen in of},
            self._path(vlen),
        )

    def _path(self, vlen: int) -> int | None:
        """The instructions of our function around its work; None for long calls, several threads and boards."""
        contest = self.contest
        if self.flops > call_path.FLOPS or contest.threads > 1:
            return None
        guest = contest.guest((contest.ours,), self.problem.dtype, vlen)
        request = MeasureRequest(contest.program, [self.call], vlen=vlen, guest=guest)
        return call_path.instructions(contest.target.runner, request)

    def _first_wrong(self, by_vlen: Mapping[int, str]) -> str:
        wrong = next(((vlen, outcome) for vlen, outcome in by_vlen.items() if outcome != "ok"), None)
        if wrong is None:
            return "ok"
        label = self._label(wrong[0])
        return f"{label}: {wrong[1]}" if label else wrong[1]


def fastest(right: Mapping[str, Pair]) -> str:
    """The name of the pair with the lowest ratio, the first of equals."""
    return min(right, key=lambda name: _ratio([right[name]]).value)


def counters_per_kflop(samples: Samples, flops: float) -> dict[str, float]:
    """Instructions, cache misses and modelled cycles per 1000 flops; empty if a clock measured."""
    if not samples.counters:
        return {}
    kept = {n: x for n, x in samples.counters.items() if n == "instructions" or n.startswith("misses.")}
    return {name: 1e3 * value / flops for name, value in {**kept, "cycles": samples.value}.items()}


def _ratio(pairs: Sequence[Pair]) -> Ratio:
    """The ratio of a baseline's cost to ours, with an interval.

    With a clock: the quartiles of paired rounds. Under a model: the geometric mean over the VLENs, and its range over
    the choices of assumed constants. One choice, or one alternative of the model, applies to both libraries and every
    VLEN at once. Without choices the interval is the value.
    """
    if pairs[0][0].rounds:
        return statistics.ratio(*(one.rounds for one in pairs[0]))
    both = [(mine.samples, other.samples) for mine, other in pairs]
    value = statistics.geomean(b.value / a.value for a, b in both)
    count = min(len(samples.scenario_costs) for pair in both for samples in pair)
    choices = [statistics.geomean(b.scenario_costs[i] / a.scenario_costs[i] for a, b in both) for i in range(count)]
    under = {
        name: statistics.geomean(b.alternative_costs[name] / a.alternative_costs[name] for a, b in both)
        for name in both[0][1].alternative_costs
    }
    return Ratio(value, min(choices, default=value), max(choices, default=value), under)
