"""Forecasts a job's time, part by part, from earlier jobs on this machine, else from rates of another machine.

A part's time is proportional to its size: dtypes, VLENs, problems, their flops, and a fixed cost for each problem. A
search takes its budget, or longer: the first trials of its first two stages run regardless of the budget.
"""

from __future__ import annotations

import dataclasses
import json
import os
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tensorop import paths
from tensorop.author import offline
from tensorop.events import Done, Event, Phase, Trying
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.search_events import SearchEnded
from tensorop.model.trial import Stage
from tensorop.search.task import NEW, SHORTLISTED, Pass
from tensorop.space.problems import for_search, sketch, within, work
from tensorop.target import Target
from tensorop.warm import start
from tensorop.warm.reading import WarmSource

KEPT = 5  # recorded jobs for each part
CORES = 2  # of the machine that gave `Budgets.part_seconds`
SEARCH, LIBRARY, COMPARISON = "search", "library", "comparison and report"
_PHASES = {"tools": "set-up", "negative controls": "set-up", "comparison": COMPARISON, "publication": COMPARISON}


@dataclass(frozen=True)
class Forecast:
    """The predicted time of a job."""

    kind: str  # jobs of one kind share their recorded times
    seconds: Mapping[str, float]  # by part, in order
    sizes: Mapping[str, float]  # of parts, and of a trial of each of the first two stages
    phases: Mapping[str, str]  # phase -> part

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
    searched = sketch(operator, for_search(operator, first, (*job.shapes, *probes), budgets), budgets)
    compared = within(operator, first, job.shapes, budgets.compared_flops)
    sizes = {
        "set-up": dtypes * len(target.verify_vlens),
        SEARCH: 0.0,
        LIBRARY: dtypes * (1 + vlens),
        "verification": dtypes * (len(target.verify_vlens) + 0.5),
        COMPARISON: dtypes * (1 + units([work(operator, first, shape) for shape in compared], "compared")),
    }
    seconds = {part: rates.get(part, 0.0) * size for part, size in sizes.items()}
    trial = budgets.fixed_units["trial"] + units([*map(operator.reference.work, searched)], "problem")
    micro, blocking = rates["micro"], rates["blocking"] * trial
    if job.budget_s is None:
        seconds[SEARCH] = (job.trials or 0) * (micro + blocking) / 2
    else:
        templates = len(offline.files(operator.folder, operator.added))
        named = max(start.surely(sources, job, operator, target.platform, dtype) for dtype in job.dtypes)
        least: dict[str, float] = {
            Stage.MICRO: dtypes * max(named, templates) * micro,
            Stage.BLOCKING: dtypes * max(named, min(SHORTLISTED, templates + NEW)) * blocking,
        }
        own = sum(one.share for one in passes if one.own_budget and one.wanted(target))
        shares = {one.name: one.share for one in passes if one.plan and not one.own_budget}
        left = job.budget_s * (1 - own)
        each = left / sum(shares.values())
        # later stages make do with what these leave
        micro_and_blocking = sum(max(each * shares.get(name, 0.0), trials) for name, trials in least.items())
        seconds[SEARCH] = job.budget_s * own + max(left, micro_and_blocking)
    phases = {one.name: SEARCH if one.own_budget else LIBRARY for one in passes if one.measure}
    return Forecast(kind, seconds, {**sizes, "micro": 1.0, "blocking": trial}, {**_PHASES, **phases})


def watched(events: Generator[Event, None, None], plan: Forecast) -> Generator[Event, None, None]:
    """The same events, with the predicted seconds in phases; the time of each part is recorded at the end."""
    took: defaultdict[str, float] = defaultdict(float)  # seconds by part
    trials: Counter[str] = Counter()  # by stage
    part, since = "", time.monotonic()
    try:
        for event in events:
            now = time.monotonic()
            took[part], since = took[part] + now - since, now
            if isinstance(event, Phase):
                before, part = part, plan.phases.get(event.name, event.name)
                if part not in (before, SEARCH):
                    event = dataclasses.replace(event, seconds=plan.seconds.get(part))
            elif isinstance(event, Trying):
                part = SEARCH
                if isinstance(event.event, SearchEnded):
                    took[event.stage] += event.event.seconds
                    trials[event.stage] += event.event.trials
            elif isinstance(event, Done) and not event.early:
                _remember(plan, {name: seconds / (trials[name] or 1) for name, seconds in took.items()})
            yield event
    finally:
        events.close()


def _file() -> Path:
    return paths.cache_dir("forecast") / "rates.json"


def _remembered() -> dict[str, dict[str, list[float]]]:
    try:
        found = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(plan: Forecast, took: Mapping[str, float]) -> None:
    """Records times. took: seconds of a part, and of one trial of a stage.

    The set-up is left out, since it takes longer if it downloads tools.
    """
    known = _remembered()
    of_kind = known.setdefault(plan.kind, {})
    for name, seconds in took.items():
        if plan.sizes.get(name) and name != "set-up":
            of_kind[name] = [*of_kind.get(name, []), seconds / plan.sizes[name]][-KEPT:]
    part_file = _file().with_suffix(f".{os.getpid()}")
    part_file.write_text(json.dumps(known, indent=1))
    part_file.replace(_file())


def about(seconds: float) -> str:
    """A duration as text: `45 s`, `4.5 min`, `12 min`."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{seconds / 60:.0f} min"
