"""Winners chosen again, when one that passed its trials turns out to be wrong in the library."""

from __future__ import annotations

from dataclasses import replace

from tensorop import finalists, problems, search
from tensorop.finalists import Refused
from tensorop.model.verdict import Verdict
from tensorop.model.winner import Winners
from tensorop.search import Ground
from tensorop.tuner import dispatch


def of_verdict(ground: Ground, found: list[Winners], verdict: Verdict) -> Refused | None:
    """Which variant computed the case that failed; None where a verdict does not say it."""
    winners = next((w for w in found if w.dtype == verdict.dtype), None)
    if winners is None or verdict.case is None:
        return None
    return Refused(winners.dtype, _serving(ground, winners, verdict), verdict.outcome)


def _serving(ground: Ground, winners: Winners, verdict: Verdict) -> int:
    assert verdict.case is not None
    problem, reference = verdict.case.problem, ground.operator.reference
    forced = int(problem.options.get("variant", -1))
    if forced >= 0:
        return forced
    if winners.direct is not None and reference.work(problem) <= winners.unasked:
        return len(winners.variants)
    known = [tree for tree in winners.trees if tree.vlen <= verdict.vlen] or list(winners.trees[:1])
    return dispatch.decide(known[-1].root, problems.features(ground.operator, problem))


def without(
    ground: Ground, found: list[Winners], refused: Refused, before: dict[str, set[str]]
) -> tuple[list[Winners], str] | None:
    """The winners without the draft of a refused variant, and its name; None where nothing is left of any dtype.

    before: by dtype the drafts that were refused, to which this one is added. The direct way falls alone.
    """
    again, name = [], ""
    for winners in found:
        if winners.dtype != refused.dtype:
            again.append(winners)
            continue
        name = winners.all[refused.number].draft.name
        direct = winners.direct
        if refused.number >= len(winners.variants):
            direct = None
        else:
            before.setdefault(winners.dtype, set()).add(name)
        chosen = _chosen(ground, winners.dtype, before.get(winners.dtype, set()))
        if chosen is not None:
            again.append(replace(chosen, direct=direct))
    return (again, name) if again else None


def _chosen(ground: Ground, dtype: str, refused: set[str]) -> Winners | None:
    kernels = {name: k for name, k in search.kernels(ground, dtype).items() if k.draft.name not in refused}
    if not kernels:
        return None
    tried = (*search.problems(ground, dtype), *search.large_problems(ground, dtype))
    winners = finalists.winners(ground, dtype, kernels, tried)
    return finalists.with_forms(ground, winners, kernels, tried) if search.single_vlens(ground.target) else winners
