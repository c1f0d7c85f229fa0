"""How a search came to its best, trial by trial: against its own trials in random order, and against the bound."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tensorop.measure import statistics
from tensorop.model.trial import Finished, Samples

NEAR = 0.95  # of the best: how soon a search came there is told
_FEWEST = 5  # trials below which an order says nothing


def random_order(ended: Sequence[Finished]) -> list[float | None]:
    """After each number of trials, the best that the same trials have in random order: the expected logarithm, over
    all orders in which one has passed by then. The trials are those that the tuner chose, which are better than points
    drawn from the whole space: what is shown is the least that the order of asking gained."""
    ranked = sorted((f for f in ended if _cost(f) is not None), key=lambda f: f.rank)
    logs = np.log([f.score.cost or math.nan for f in ranked])
    count, below = len(ended), len(ended) - 1 - np.arange(len(ranked))  # how many trials are worse than each
    found: list[float | None] = []
    for drawn in range(1, count + 1):
        # the chance that each is the best of those drawn: of the first, drawn/count, of the next what is left of that
        chances = drawn / count * np.cumprod([1.0, *(below[:-1] - drawn + 1).clip(0) / below[:-1]])[: len(logs)]
        total = float(chances.sum())
        found.append(float(np.exp(chances @ logs / total)) if total else None)
    return found


def near_best(ended: Sequence[Finished], best: Finished | None) -> dict[str, float] | None:
    """After how many trials the search first had one within 5 % of its best, measured on as many problems, and after
    how many its trials in random order have one on average."""
    if best is None or not best.score.cost:
        return None
    most = best.score.cost / NEAR
    alike = [
        (cost := _cost(f)) is not None and cost <= most and len(f.score.per_problem) == len(best.score.per_problem)
        for f in ended
    ]
    return {"search": alike.index(True) + 1, "random": round((len(ended) + 1) / (sum(alike) + 1), 1)}


def halts(ended: Sequence[Finished]) -> list[dict[str, Any]]:
    """For each halt of a race, and for the whole: how many trials that passed came there and ended there, the bars that
    the last of them met, and Kendall's tau of the order there and on all problems, over trials that were measured on
    all (None where they are fewer than five)."""
    raced = [f for f in ended if f.trial.race and f.outcome.ok]
    counts = Counter(len(f.score.per_problem) for f in raced)
    whole = [f.score.per_problem for f in raced if len(f.score.per_problem) == max(counts)]
    out: list[dict[str, Any]] = []
    for problems in sorted({*counts, *(rung.problems for f in raced for rung in f.trial.race)}):
        bars = [dict(rung.bars) for f in raced for rung in f.trial.race if rung.problems == problems and rung.bars]
        came = sum(n for at, n in counts.items() if at >= problems)
        told = {"problems": problems, "came": came, "ended": counts[problems], "bars": bars[-1] if bars else {}}
        tau = None
        if len(whole) >= _FEWEST and problems < max(counts):
            from scipy.stats import kendalltau  # half of what any command would take to start

            tau = float(kendalltau([_mean(w, problems) for w in whole], [_mean(w) for w in whole]).statistic)
        out.append({**told, "tau": tau if tau is not None and math.isfinite(tau) else None, "compared": len(whole)})
    return out


def _mean(figures: Mapping[str, Samples], first: int | None = None) -> float:
    return statistics.geomean(samples.value for samples in list(figures.values())[:first])


def _cost(finished: Finished) -> float | None:
    return finished.score.cost if finished.outcome.ok else None
