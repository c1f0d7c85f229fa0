"""Racing: a trial is measured on its cheapest problems first, and on the others only if it is among the best.

Trials of one kernel template race each other. A race has halts, at shares of the whole work. At a halt, a trial goes on
if it is in the best third of the earlier trials that reached it. Each VLEN contributes its best in equal parts, so that
a variant for one VLEN alone is kept. An exempt trial, and the first of a template, goes on unless it is far behind the
trials of all templates. The tuner gets an extrapolated cost for a dropped trial: its cost so far, times the ratio of
complete trials' whole cost to their cost at that halt.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from tensorop.measure import statistics
from tensorop.model.trial import Finished, Rung, Samples

HALTS = (0.01, 0.06)  # halts, as shares of the work of all problems
PART = 3  # one in so many goes on from a halt, over all VLENs
HOPELESS = 4.0  # an exempt trial is dropped above this factor of the least cost, at every VLEN


def halts(work: Sequence[float]) -> tuple[int, ...]:
    """Numbers of problems after which trials halt. work: flops of each problem, the cheapest first."""
    shares = [sum(work[: i + 1]) / sum(work) for i in range(len(work))]
    counts = (sum(share <= most for share in shares) for most in HALTS)
    return tuple(dict.fromkeys(count for count in counts if 0 < count < len(work)))


def rungs(
    alike: Sequence[Finished], ended: Sequence[Finished], exempt: bool, work: Mapping[str, float], vlens: Sequence[int]
) -> tuple[Rung, ...]:
    """The halts of the next trial, with the cost that it must reach at each.

    There is no cost to reach until a trial was measured on all problems.

    alike: trials of the same template; ended: all trials
    exempt: drop the trial only if it is HOPELESS; holds for all until a trial of the template was measured completely
    work: problem -> flops, in the order of measurement
    """
    passed, whole = _passed(alike, work)
    if exempt or not whole:
        exempt = True
        passed, whole = _passed(ended, work)
    if not whole:  # it halts all the same, so that later counts find the caches in the same state
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
    """Costs of trials that passed, and of those among them that were measured on all problems."""
    passed = [finished.score.per_problem for finished in ended if finished.outcome.ok]
    return passed, [found for found in passed if len(found) == len(work)]


def goes_on(rung: Rung, found: Mapping[str, Samples], work: Mapping[str, float]) -> bool:
    """Whether a trial with these costs is measured on further problems."""
    return not rung.bars or any(cost(found, work, vlen) <= bar for vlen, bar in rung.bars)


def cost(found: Mapping[str, Samples], work: Mapping[str, float], vlen: int) -> float:
    """Geometric mean of the cost for 1000 operations, at a VLEN."""
    return statistics.geomean(1e3 * samples.at(vlen) / work[name] for name, samples in found.items())


def _mean(found: Mapping[str, Samples], work: Mapping[str, float]) -> float:
    return statistics.geomean(1e3 * samples.value / work[name] for name, samples in found.items())


def score(found: Mapping[str, Samples], work: Mapping[str, float], rung: Rung | None = None) -> float:
    """The cost for the tuner. rung: the halt at which the trial was dropped."""
    return _mean(found, work) * (rung.beyond if rung else 1.0)
