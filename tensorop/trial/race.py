"""Racing: every trial is measured on its cheapest problems first, and only those among the best there on further ones.

Trials of one kernel template race each other. A race has halts, by shares of the whole work. Who comes to one goes on
where it is among the best of those that came there before: a third of them goes on, each VLEN's best in equal parts,
for a variant that serves one VLEN alone is not to be lost. What is exempt, since cheap problems may hide what it is
for, goes on unless it is far behind the trials of all templates, and so does the first of a template. What falls out
costs, for the tuner, what its problems say times what those that were measured on all of them cost beyond
theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tensorop.measure import statistics
from tensorop.model.trial import Finished, Rung, Samples

HALTS = (0.01, 0.06)  # of the work of all problems, at most
PART = 3  # one of so many goes on from a halt, of all VLENs together
HOPELESS = 4.0  # times the least cost of all, at every VLEN: what is exempt goes on below


def halts(work: Sequence[float]) -> tuple[int, ...]:
    """After how many problems trials halt. work: of each, the cheapest first."""
    shares = [sum(work[: i + 1]) / sum(work) for i in range(len(work))]
    counts = (sum(share <= most for share in shares) for most in HALTS)
    return tuple(dict.fromkeys(count for count in counts if 0 < count < len(work)))


def rungs(
    alike: Sequence[Finished], ended: Sequence[Finished], exempt: bool, work: Mapping[str, float], vlens: Sequence[int]
) -> tuple[Rung, ...]:
    """What the next trial has to reach, by the trials so far; nothing while none was measured on all problems.

    alike: those of its template, with which it races; ended: all; work: by label, in the order in which they are
    measured; exempt: falls out only where it is HOPELESS, as it does while none alike was measured on all problems.
    """
    passed, whole = _passed(alike, work)
    if exempt or not whole:
        exempt = True
        passed, whole = _passed(ended, work)
    if not whole:  # it halts all the same: what is counted after it finds no other traces of what was before
        return tuple(Rung(count) for count in halts(list(work.values())))
    made = []
    for count in halts(list(work.values())):
        first = list(work)[:count]
        came = [{name: found[name] for name in first} for found in passed if len(found) >= count]
        among = math.ceil(len(came) / (PART * len(vlens))) - 1
        costs = {vlen: sorted(cost(found, work, vlen) for found in came) for vlen in vlens}
        bars = tuple((vlen, HOPELESS * of[0] if exempt else of[among]) for vlen, of in costs.items())
        beyond = [_mean(found, work) / _mean({name: found[name] for name in first}, work) for found in whole]
        made.append(Rung(count, bars, statistics.geomean(beyond)))
    return tuple(made)


def _passed(
    ended: Sequence[Finished], work: Mapping[str, float]
) -> tuple[list[Mapping[str, Samples]], list[Mapping[str, Samples]]]:
    """The figures of those that passed, and of those that were measured on all problems."""
    passed = [finished.score.per_problem for finished in ended if finished.outcome.ok]
    return passed, [found for found in passed if len(found) == len(work)]


def goes_on(rung: Rung, found: Mapping[str, Samples], work: Mapping[str, float]) -> bool:
    """Whether a trial with these figures is measured on further problems."""
    return not rung.bars or any(cost(found, work, vlen) <= bar for vlen, bar in rung.bars)


def cost(found: Mapping[str, Samples], work: Mapping[str, float], vlen: int) -> float:
    """The geometric mean for 1000 operations, at a VLEN."""
    return statistics.geomean(1e3 * samples.at(vlen) / work[name] for name, samples in found.items())


def _mean(found: Mapping[str, Samples], work: Mapping[str, float]) -> float:
    return statistics.geomean(1e3 * samples.value / work[name] for name, samples in found.items())


def score(found: Mapping[str, Samples], work: Mapping[str, float], rung: Rung | None = None) -> float:
    """What the tuner is told of these figures. rung: where the trial fell out."""
    return _mean(found, work) * (rung.beyond if rung else 1.0)
