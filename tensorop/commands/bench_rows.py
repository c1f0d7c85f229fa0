"""Rows of a comparison: by a board model each library alone at each VLEN, by a clock each baseline beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorop.commands.contest import Contest, layout, unmeasured
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.measure import statistics
from tensorop.measure.request import Measurement, MeasureRequest, Purpose
from tensorop.model.bench import OURS, AtVlen, Ratio, Row, verdict
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome, Samples
from tensorop.runners.protocol import Entry
from tensorop.trial.calls import warming_calls

# Above this a call under the plug-in lasts longer than it takes to fill the caches: no warming call before it.
_WARMED = 2e8

Pair = tuple[Measurement, Measurement]  # ours and a baseline


def row(contest: Contest, problem: Problem) -> Row:
    """Everybody's figures on a problem; a baseline that is wrong at a VLEN has no ratio there, and none over all VLENs.

    Raises JobError where ours is wrong, and NoFigure where it has no figure.
    """
    measured = _Measured(contest, problem)
    measured.measure()
    return measured.row()


class _Measured:
    """What libraries cost on one problem, by VLEN."""

    def __init__(self, contest: Contest, problem: Problem) -> None:
        self.contest, self.problem, self.flops = contest, problem, contest.flops(problem)
        self.vlens, self.counted = contest.target.vlens, contest.target.deterministic
        self.call = contest.call(problem)
        self.judged = contest.judge(problem, self.call)
        self.ours: dict[int, Measurement] = {}
        self.pairs: dict[str, dict[int, Pair]] = {}  # by baseline
        self.verdicts: dict[str, dict[int, str]] = {OURS: {}}

    def measure(self) -> None:
        """Counts ours first; a clock has it beside each baseline, so that what slows one slows both."""
        for vlen in self.vlens if self.counted else ():
            self._alone(vlen)
        for baseline in self.contest.taking_part(self.problem):
            for vlen in self.vlens:
                self._beside(baseline, vlen)
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
        who = (baseline,) if self.counted else (self.contest.ours, baseline)
        found = self._ask(who, vlen, self.contest.judged_by if self.counted else "")
        if isinstance(found, Outcome):
            self.contest.leave_out(baseline, self.problem, found, vlen)
            return
        if not self.counted:
            self._take(found[0], vlen)
        judged = self.contest.believed(self.problem, found[-1].samples, found[-1].verdict, vlen)
        self.verdicts.setdefault(baseline.name, {})[vlen] = verdict(judged)
        if judged.ok:
            mine = self.ours[vlen] if self.counted else found[0]
            self.pairs.setdefault(baseline.name, {})[vlen] = mine, found[-1]
        else:
            self.contest.leave_out(baseline, self.problem, judged, vlen)

    def _take(self, mine: Measurement, vlen: int) -> None:
        """Our own figure, once it is known to be right."""
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
        peak = self.contest.peak.get(self.problem.dtype)
        beside = [pair for of in self.pairs.values() for pair in of.values()]
        return Row(
            op=self.contest.operator.name,
            dtype=self.problem.dtype,
            dims=self.problem.sizes,
            written=self.problem.shape,
            layout=layout(self.problem),
            ours=speed,
            ratios={name: _ratio(list(of.values())) for name, of in self.pairs.items() if len(of) == len(at)},
            spread=high / mean - low / mean,
            counters=one_width.counters,
            baseline_counters=one_width.baseline_counters,
            by_vlen=at if len(at) > 1 else {},
            verdicts={name: self._first_wrong(found) for name, found in self.verdicts.items()},
            noisy=not all(mine.steady for mine in (*self.ours.values(), *(pair[0] for pair in beside))),
            peak_share=speed / (peak * self.contest.threads) if peak else None,
            empty_ns={} if self.counted else one_width.empty_cycles,
            empty_cycles=one_width.empty_cycles if self.counted else {},
        )

    def _at(self, vlen: int) -> AtVlen:
        mine = self.ours[vlen]
        pairs = {name: of[vlen] for name, of in self.pairs.items() if vlen in of}
        sides = {OURS: mine, **{name: other for name, (_, other) in pairs.items()}}
        return AtVlen(
            self.flops / mine.samples.value,
            {name: _ratio([pair]) for name, pair in pairs.items()},
            counters_per_kflop(mine.samples, self.flops),
            {name: counters_per_kflop(other.samples, self.flops) for name, (_, other) in pairs.items()},
            {name: found[vlen] for name, found in self.verdicts.items() if vlen in found},
            {name: one.empty for name, one in sides.items() if one.empty is not None},
        )

    def _first_wrong(self, by_vlen: Mapping[int, str]) -> str:
        wrong = next(((vlen, said) for vlen, said in by_vlen.items() if said != "ok"), None)
        if wrong is None:
            return "ok"
        label = self._label(wrong[0])
        return f"{label}: {wrong[1]}" if label else wrong[1]


def counters_per_kflop(samples: Samples, flops: float) -> dict[str, float]:
    """Instructions, cache misses and modelled cycles for 1000 flops; nothing where a clock measured."""
    if not samples.counters:
        return {}
    kept = {n: x for n, x in samples.counters.items() if n == "instructions" or n.startswith("misses.")}
    return {name: 1e3 * value / flops for name, value in {**kept, "cycles": samples.value}.items()}


def _ratio(pairs: Sequence[Pair]) -> Ratio:
    """By a clock the quartiles of paired rounds. By a model the geometric mean of the VLENs' ratios, and its range over
    the choices of assumed constants: a choice holds for both sides and every VLEN at once, an alternative of the model
    too; figures without choices have no range."""
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
