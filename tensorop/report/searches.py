"""Summaries of a run's searches from its journal: each trial's cost, the best so far, failures, and templates."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tensorop.errors import TensoropError
from tensorop.model.kernel import KernelTemplate, Variant
from tensorop.model.platform import Platform
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Stage
from tensorop.render import instantiate
from tensorop.store.history import History

_COST_UNITS = {"ns": "ns per 1000 flop", "modelled-cycles": "modelled cycles per 1000 flop"}


@dataclass(frozen=True)
class Run:
    """The whole run."""

    facts: Mapping[str, object]  # the job's options
    processes: int
    seconds: float
    trials: int
    passed: int


@dataclass(frozen=True)
class TrialOf:
    """The variant of a trial."""

    id: str
    kernel: str
    template: str
    point: Mapping[str, int | str]
    vlen: int  # the kernel's; 0: any


@dataclass(frozen=True)
class Tried(TrialOf):
    kind: str  # of its outcome
    cost: float | None  # None for a failure
    best: float | None  # the lowest cost so far


@dataclass(frozen=True)
class SearchSummary:
    """One stage of one dtype."""

    stage: str
    dtype: str
    round: int
    unit: str  # of costs, as text
    cost_unit: str
    seconds: float
    kinds: Mapping[str, int]  # trials by outcome
    problems: Mapping[int, int]  # passed trials, by their number of measured problems
    best: Tried | None
    trials: Sequence[Tried]
    bound: float | None = None  # the cost of multiply-adds at peak speed; None if unknown
    steps: Mapping[str, float] = field(default_factory=dict)  # seconds of all trials by step; several run at once
    a_minute: float = 0.0  # trials
    random_order: Sequence[float | None] = ()  # the best so far after each trial, if these trials came in random order


@dataclass(frozen=True)
class FailedTrial(TrialOf):
    dtype: str
    message: str


@dataclass(frozen=True)
class Failures:
    """The failures of one kind in one stage of the pipeline."""

    kind: str
    where: str
    count: int
    example: FailedTrial  # the first


@dataclass(frozen=True)
class TemplateUse:
    """A template of the run. Trials and costs are those of its micro-kernel alone."""

    name: str
    author: str
    parent: str  # name of the template that it was made from; empty: none
    strategy: str
    tunables: Mapping[str, Sequence[int | str]]
    trials: int
    passed: int
    best: Mapping[str, float]  # cost, by dtype
    untried: str = ""  # why it has no trials of its micro-kernel alone


def run(history: History, ended: Sequence[Finished]) -> Run:
    return Run(
        facts=dict(history.facts),
        processes=history.sessions,
        seconds=round(history.seconds, 1),
        trials=len(ended),
        passed=sum(f.outcome.ok for f in ended),
    )


def search(history: History, group: Group) -> SearchSummary:
    stage, dtype, round_ = group
    ended = history.ended(group)
    best: tuple[Finished, Tried] | None = None
    trials = []
    for finished in ended:
        cost = finished.score.cost if finished.outcome.ok else None
        better = cost is not None and (best is None or finished.rank < best[0].rank)
        least = cost if better else best[1].cost if best else None
        trials.append(Tried(*_of(finished.trial.variant), finished.outcome.kind.value, cost, least))
        if better:
            best = finished, trials[-1]
    passed = Counter(len(finished.score.per_problem) for finished in ended if finished.outcome.ok)
    steps: Counter[str] = Counter()
    for finished in ended:
        steps.update(finished.seconds)
    spent = history.spent(group)
    units = sorted({samples.unit for finished in ended for samples in finished.score.per_problem.values()})
    return SearchSummary(
        stage=stage.value,
        dtype=dtype,
        round=round_,
        unit=", ".join(_COST_UNITS.get(unit, unit) for unit in units),
        cost_unit=", ".join(units),
        seconds=round(spent, 1),
        steps={step: round(seconds, 1) for step, seconds in steps.items()},
        a_minute=60 * len(ended) / spent if spent else 0.0,
        kinds=dict(Counter(tried.kind for tried in trials)),
        problems=dict(sorted(passed.items(), reverse=True)),
        best=best[1] if best else None,
        trials=trials,
        random_order=random_order(ended),
    )


def random_order(ended: Sequence[Finished]) -> list[float | None]:
    """After each number of trials, the best that the same trials have in random order.

    It is the expected logarithm, over all orders in which one has passed by then. A tuner chose these trials, which are
    better than points of the whole space, so a curve shows the least that the order of asking gained.
    """
    ranked = sorted((f for f in ended if f.outcome.ok and f.score.cost is not None), key=lambda f: f.rank)
    logs = np.log([f.score.cost or math.nan for f in ranked])
    count, below = len(ended), len(ended) - 1 - np.arange(len(ranked))  # how many trials are worse than each
    found: list[float | None] = []
    for drawn in range(1, count + 1):
        # the chance that each is the best of those drawn: of the first, drawn/count, of the next what is left of that
        chances = drawn / count * np.cumprod([1.0, *(below[:-1] - drawn + 1).clip(0) / below[:-1]])[: len(logs)]
        total = float(chances.sum())
        found.append(float(np.exp(chances @ logs / total)) if total else None)
    return found


def _of(variant: Variant) -> tuple[str, str, str, dict[str, int | str], int]:
    """The fields of TrialOf."""
    kernel = variant.kernel
    return variant.id, kernel.id, kernel.template.name, dict(variant.point), kernel.vlen


def failures(ended: Sequence[Finished]) -> list[Failures]:
    """Failures by kind and place, the most frequent first."""
    failed = [finished for finished in ended if not finished.outcome.ok]
    counts = Counter((finished.outcome.kind, finished.outcome.where) for finished in failed)
    out = []
    for (kind, where), count in counts.most_common():
        first = next(f for f in failed if (f.outcome.kind, f.outcome.where) == (kind, where))
        example = FailedTrial(*_of(first.trial.variant), first.trial.dtype, first.outcome.message)
        out.append(Failures(kind.value, where, count, example))
    return out


def untried(platform: Platform, template: KernelTemplate, dtypes: Sequence[str], ended: Sequence[Finished]) -> str:
    """Why a template has no trials of its micro-kernel alone."""
    stages = {f.trial.stage.value for f in ended if f.trial.variant.template.digest == template.digest}
    if stages:
        return f"tried in the stage {' and '.join(sorted(stages))} only"
    if template.model:
        return "the model of the GPU chose none of its kernels"
    reasons = {}
    for dtype in dtypes:
        if missing := instantiate.missing_primitives(platform, template, dtype):
            reasons[dtype] = f"{platform.name} lacks the primitive{'s' * (len(missing) > 1)} {', '.join(missing)}"
        else:
            try:
                instantiate.micro_space(platform, template, dtype)
            except TensoropError as error:
                reasons[dtype] = error.message
    return "; ".join(f"{dtype}: {why}" for dtype, why in reasons.items()) or "the search ended before its first trial"


def templates(history: History, ended: Sequence[Finished]) -> list[TemplateUse]:
    out = []
    names = {digest: template.name for digest, template in history.templates.items()}
    for template in history.templates.values():
        alone = [f for f in ended if f.trial.stage in (Stage.MICRO, Stage.KERNELS)]
        mine = [f for f in alone if f.trial.variant.template.digest == template.digest]
        costs: dict[str, list[float]] = {}
        for finished in mine:
            if finished.outcome.ok and finished.score.cost is not None:
                costs.setdefault(finished.trial.dtype, []).append(finished.score.cost)
        out.append(
            TemplateUse(
                name=template.name,
                author=template.author,
                parent=names.get(template.parent, template.parent),
                strategy=template.strategy.strip(),
                tunables={name: list(values) for name, values in template.tunables.items()},
                trials=len(mine),
                passed=sum(f.outcome.ok for f in mine),
                best={dtype: min(found) for dtype, found in costs.items()},
            )
        )
    return out
