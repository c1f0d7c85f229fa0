"""Rows of a comparison by a board model, each VLEN by itself and all together."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensorop.commands.contest import Contest, layout, unmeasured
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.measure import statistics
from tensorop.measure.modelled import Counted
from tensorop.model.bench import OURS, AtVlen, Ratio, Row, verdict
from tensorop.model.call import Call, Left, Outputs
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome, Samples
from tensorop.model.verdict import Judgement
from tensorop.target import Run
from tensorop.trial.trial import warming_calls

# Above this a call under the plug-in lasts longer than it takes to fill the caches: no warming call before it.
_WARMED = 2e8


def row(contest: Contest, problem: Problem) -> Row:
    """Each library alone in its process at each VLEN, what its counted call left judged; baselines are remembered.

    A baseline that is wrong at a VLEN has no ratio there, and none over all VLENs.
    """
    flops = contest.flops(problem)
    call = contest.call(problem)
    judged = contest.judge(problem, call)

    def judge(outputs: Outputs) -> Judgement:
        return judged((Left(outputs),))

    own: dict[int, Samples] = {}
    theirs: dict[str, dict[int, Samples]] = {}
    verdicts: dict[str, dict[int, str]] = {OURS: {}}
    empty: dict[str, dict[int, float]] = {}
    for vlen in contest.target.configurations:
        mine = _count(contest, contest.ours, problem, call, judge, vlen)
        if isinstance(mine, Outcome):
            raise unmeasured(mine, f"{problem.label} cannot be measured at {contest.target.label(vlen)}")
        contest.require(problem, contest.believed(problem, mine.samples, mine.verdict, vlen), vlen)
        own[vlen], verdicts[OURS][vlen] = mine.samples, verdict(mine.verdict)
        if mine.empty is not None:
            empty.setdefault(OURS, {})[vlen] = mine.empty
    for baseline in contest.taking_part(problem):
        theirs[baseline.name], verdicts[baseline.name] = {}, {}
        for vlen in contest.target.configurations:
            other = _count(contest, baseline, problem, call, judge, vlen, contest.judged_by)
            if isinstance(other, Outcome):
                contest.leave_out(baseline, problem, other, vlen)
                continue
            verdicts[baseline.name][vlen] = verdict(other.verdict)
            if other.verdict.ok:
                theirs[baseline.name][vlen] = other.samples
                if other.empty is not None:
                    empty.setdefault(baseline.name, {})[vlen] = other.empty
            else:
                contest.leave_out(baseline, problem, other.verdict, vlen)
    at = {vlen: _at(vlen, mine, theirs, verdicts, empty, flops) for vlen, mine in own.items()}
    first = at[contest.target.configurations[0]]
    mean = statistics.geomean(s.value for s in own.values())
    everywhere = {name: samples for name, samples in theirs.items() if len(samples) == len(own)}
    return Row(
        op=contest.operator.name,
        dtype=problem.dtype,
        dims=problem.sizes,
        written=problem.shape,
        layout=layout(problem),
        ours=flops / mean,
        ratios={name: _span(list(own.values()), list(s.values())) for name, s in everywhere.items()},
        spread=statistics.geomean(s.high for s in own.values()) / mean
        - statistics.geomean(s.low for s in own.values()) / mean,
        counters=first.counters if len(at) == 1 else {},
        baseline_counters=first.baseline_counters if len(at) == 1 else {},
        by_vlen=at if len(at) > 1 else {},
        empty_cycles=first.empty_cycles if len(at) == 1 else {},
        verdicts={name: _first_wrong(found) for name, found in verdicts.items() if found},
    )


def _at(
    vlen: int,
    mine: Samples,
    theirs: Mapping[str, Mapping[int, Samples]],
    verdicts: Mapping[str, Mapping[int, str]],
    empty: Mapping[str, Mapping[int, float]],
    flops: float,
) -> AtVlen:
    beside = {name: samples[vlen] for name, samples in theirs.items() if vlen in samples}
    return AtVlen(
        flops / mine.value,
        {name: _span([mine], [samples]) for name, samples in beside.items()},
        counters_per_kflop(mine, flops),
        {name: counters_per_kflop(samples, flops) for name, samples in beside.items()},
        {name: found[vlen] for name, found in verdicts.items() if vlen in found},
        {name: found[vlen] for name, found in empty.items() if vlen in found},
    )


def _first_wrong(by_vlen: Mapping[int, str]) -> str:
    return next((f"VLEN {vlen}: {said}" for vlen, said in by_vlen.items() if said != "ok"), "ok")


def _count(
    contest: Contest,
    who: LibraryUnderTest,
    problem: Problem,
    call: Call,
    judge: Callable[[Outputs], Judgement],
    vlen: int,
    judged_by: str = "",
) -> Counted | Outcome:
    flops = contest.flops(problem)
    guest = contest.guest((who,), problem.dtype, vlen)
    run = Run(contest.program, vlen, guest, contest.target.budgets.deadline(flops))
    return contest.target.counted(
        run, call, judge, contest.final, warming_calls(flops, _WARMED), contest.short(problem), judged_by
    )


def counters_per_kflop(samples: Samples, flops: float) -> dict[str, float]:
    """Instructions, cache misses and modelled cycles for 1000 flops."""
    kept = {n: x for n, x in samples.counters.items() if n == "instructions" or n.startswith("misses.")}
    return {name: 1e3 * value / flops for name, value in {**kept, "cycles": samples.value}.items()}


def _span(ours: Sequence[Samples], theirs: Sequence[Samples]) -> Ratio:
    """The geometric mean of the VLENs' ratios, and its range over the choices of assumed constants.

    A choice holds for both sides and every VLEN at once, an alternative of the model too; figures without choices have
    no range.
    """
    value = statistics.geomean(b.value / a.value for a, b in zip(ours, theirs, strict=True))
    choices = [
        statistics.geomean(b.choices[i] / a.choices[i] for a, b in zip(ours, theirs, strict=True))
        for i in range(min(len(s.choices) for s in (*ours, *theirs)))
    ]
    under = {
        name: statistics.geomean(b.under[name] / a.under[name] for a, b in zip(ours, theirs, strict=True))
        for name in theirs[0].under
    }
    return Ratio(value, min(choices, default=value), max(choices, default=value), under)
