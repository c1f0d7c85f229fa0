"""Forecasts a job's time, part by part, from earlier jobs on this machine, else from rates of another machine.

A part's time is proportional to its size: dtypes, VLENs, problems, their flops, and a fixed cost for each problem. A
search takes its budget, or longer: the first trials of its first two stages run regardless of the budget.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tensorop import paths
from tensorop.author import offline
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.trial import Stage
from tensorop.search.task import NEW, SHORTLISTED, Pass
from tensorop.space.problems import for_search, sketch, within, work
from tensorop.specs import products
from tensorop.target import Target
from tensorop.warm import start
from tensorop.warm.reading import WarmSource

KEPT = 5  # recorded jobs for each part
CORES = 2  # of the machine that gave `Budgets.part_seconds`
SET_UP, SEARCH, LIBRARY, COMPARISON = "set-up", "search", "library", "comparison and report"
_PHASES = {"tools": SET_UP, "negative controls": SET_UP, "comparison": COMPARISON, "publication": COMPARISON}


@dataclass(frozen=True)
class Forecast:
    """The predicted time of a job."""

    kind: str  # jobs of one kind share their recorded times
    seconds: Mapping[str, float]  # by part, in order
    sizes: Mapping[str, float]  # of parts, and of a trial of each of the first two stages
    phases: Mapping[str, str]  # phase -> part
    # stage of the search -> (dtypes, or "" for all at once; seconds of its budget; seconds of its first trials)
    stages: Mapping[str, tuple[tuple[str, ...], float, float]]

    def part(self, phase: str) -> str:
        """The part to which a phase belongs."""
        stage = phase.partition(" ")[0] in self.stages
        return self.phases.get(phase, SEARCH if stage else phase)

    def __str__(self) -> str:
        parts = ", ".join(f"{about(seconds)} {part}" for part, seconds in self.seconds.items())
        return f"about {about(sum(self.seconds.values()))} in total: {parts}"


def forecast(
    job: Job, operator: Operator, target: Target, passes: Sequence[Pass], sources: Sequence[WarmSource] = ()
) -> Forecast | None:
    """The forecast of a job; None if the target has no rates, e.g. for simulated costs.

    sources: of the configurations that the search starts with
    """
    budgets, dtypes, first, vlens = target.budgets, len(job.dtypes), job.dtypes[0], len(target.vlens)
    if not budgets.part_seconds:
        return None
    kind = f"{target.name} {target.platform.arch} {target.unit}"
    pace = CORES / min(job.jobs, os.cpu_count() or 1) if target.side_by_side else 1.0
    rates = {name: rate * pace for name, rate in budgets.part_seconds.items()}
    rates |= {name: median(seen) for name, seen in _remembered().get(kind, {}).items() if seen}

    def units(flops: Sequence[float], each: str) -> float:
        return vlens * (len(flops) * budgets.fixed_units[each] + sum(flops) / budgets.flops_per_unit)

    probes = operator.probes if job.suite in operator.suites else ()
    found = for_search(operator, first, (*job.shapes_of(first), *probes), budgets, job.listed)
    searched = sketch(operator, found, budgets)
    product = products.load(operator)
    routines, tunables = len(product.routines), 0 if job.no_search else len(product.tunables)
    compared = within(operator, first, job.shapes_of(first), budgets.compared_flops)
    sizes = {
        SET_UP: dtypes * len(target.verify_vlens),
        SEARCH: 0.0,
        LIBRARY: dtypes * (1 + vlens),
        "tunables": dtypes * tunables * (1 + vlens),
        "verification": dtypes * (len(target.verify_vlens) + 0.5),
        "routines": dtypes * routines * (len(target.verify_vlens) + 1) if routines > 1 else 0.0,
        COMPARISON: dtypes * (1 + units([work(operator, first, shape) for shape in compared], "compared")),
    }
    seconds = {part: rates.get(part, 0.0) * size for part, size in sizes.items() if size or part == SEARCH}
    trial = budgets.fixed_units["trial"] + units([*map(operator.reference.work, searched)], "problem")
    micro, blocking = rates["micro"], rates["blocking"] * trial
    own = {one.name: one.share_on(target) for one in passes if one.own_budget and one.wanted(target)}
    shares = {one.name: one.share for one in passes if one.plan and not one.own_budget}
    if job.budget_s is None or job.no_search:
        seconds[SEARCH] = (job.trials or 0) * (micro + blocking) / 2
        limits = {name: (0.0, seconds[SEARCH] * share / sum(shares.values())) for name, share in shares.items()}
    else:
        templates = len(offline.files(operator.folder, operator.added))
        named = max(start.surely(sources, job, operator, target.platform, dtype) for dtype in job.dtypes)
        least: dict[str, float] = {
            Stage.MICRO: dtypes * max(named, templates) * micro,
            Stage.BLOCKING: dtypes * max(named, min(SHORTLISTED, templates + NEW)) * blocking,
        }
        left = job.budget_s * (1 - sum(own.values()))
        each = left / sum(shares.values())
        # later stages make do with what these leave
        micro_and_blocking = sum(max(each * shares.get(name, 0.0), trials) for name, trials in least.items())
        seconds[SEARCH] = job.budget_s * sum(own.values()) + max(left, micro_and_blocking)
        others = sum(share for name, share in shares.items() if name not in least)
        later = max(0.0, left - micro_and_blocking) / others if others else 0.0
        limits = {name: (each * s, least[name]) if name in least else (later * s, 0.0) for name, s in shares.items()}
        limits |= {name: (job.budget_s * share, 0.0) for name, share in own.items()}
    if job.no_search:
        del seconds[SEARCH]
        limits = {}
    planned = {one.name for one in passes if one.plan}
    stages = {name: (job.dtypes if name in planned else ("",), *limit) for name, limit in limits.items()}
    phases = {one.name: SEARCH if one.own_budget else LIBRARY for one in passes if one.measure}
    return Forecast(kind, seconds, {**sizes, "micro": 1.0, "blocking": trial}, {**_PHASES, **phases}, stages)


def _file() -> Path:
    return paths.cache_dir("forecast") / "rates.json"


def _remembered() -> dict[str, dict[str, list[float]]]:
    try:
        found = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def remember(plan: Forecast, took: Mapping[str, float]) -> None:
    """Records times. took: seconds of a part, and of one trial of a stage.

    The set-up is left out, since it takes longer if it downloads tools.
    """
    known = _remembered()
    of_kind = known.setdefault(plan.kind, {})
    for name, seconds in took.items():
        if plan.sizes.get(name) and name != SET_UP:
            of_kind[name] = [*of_kind.get(name, []), seconds / plan.sizes[name]][-KEPT:]
    part_file = _file().with_suffix(f".{os.getpid()}")
    part_file.write_text(json.dumps(known, indent=1))
    part_file.replace(_file())


def about(seconds: float) -> str:
    """A duration as text: `45 s`, `4.5 min`, `12 min`."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{seconds / 60:.0f} min"
