"""Rows of a comparison by a clock."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from tensorop.commands.contest import Contest, layout, unmeasured
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.measure.clock import Timed
from tensorop.model.bench import OURS, Ratio, Row, verdict
from tensorop.model.call import Call
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.runners.protocol import Entry
from tensorop.target import Run


def row(contest: Contest, problem: Problem) -> Row:
    """Each baseline in a process with ours, round by round, so that what slows one slows both."""
    call = contest.call(problem)
    judge = contest.judge(problem, call)
    vlen = contest.target.configurations[0]
    ours: Timed | None = None
    ratios: dict[str, Ratio] = {}
    empty: dict[str, float] = {}
    verdicts: dict[str, str] = {}
    noisy = False
    for baseline in contest.taking_part(problem):
        found = _time(contest, (contest.ours, baseline), problem, call)
        if isinstance(found, Outcome):
            contest.leave_out(baseline, problem, found)
            continue
        mine, other = (
            contest.believed(problem, samples, judge(left))
            for samples, left in zip(found.samples, found.left, strict=True)
        )
        contest.require(problem, mine, vlen)
        verdicts |= {OURS: verdict(mine), baseline.name: verdict(other)}
        if not other.ok:
            contest.leave_out(baseline, problem, other)
            continue
        ratios[baseline.name] = found.ratio(0, 1)
        empty |= zip(("ours", baseline.name), found.empty, strict=False)
        noisy = noisy or not found.steady
        ours = ours or found
    if ours is None:
        alone = _time(contest, (contest.ours,), problem, call)
        if isinstance(alone, Outcome):
            raise unmeasured(alone, f"{problem.label} cannot be measured")
        mine = contest.believed(problem, alone.samples[0], judge(alone.left[0]))
        contest.require(problem, mine, vlen)
        verdicts[OURS] = verdict(mine)
        ours, noisy = alone, not alone.steady
    samples = ours.samples[0]
    gflops = contest.flops(problem) / samples.value
    peak = contest.peak.get(problem.dtype)
    return Row(
        op=contest.operator.name,
        dtype=problem.dtype,
        dims=problem.sizes,
        written=problem.shape,
        layout=layout(problem),
        ours=gflops,
        ratios=ratios,
        spread=(samples.high - samples.low) / samples.value,
        verdicts=verdicts,
        noisy=noisy,
        peak_share=gflops / (peak * contest.threads) if peak else None,
        empty_ns=empty,
    )


def _time(contest: Contest, who: Sequence[LibraryUnderTest], problem: Problem, call: Call) -> Timed | Outcome:
    guest = contest.guest(who, problem.dtype, contest.target.configurations[0])
    guest = dataclasses.replace(guest, cpu=contest.target.runner.processor if contest.threads == 1 else -1)
    run, entries = Run(contest.program, 0, guest), [Entry(i) for i in range(len(who))]
    return contest.target.timed(run, call, entries, contest.final, contest.short(problem))
