"""How long a job takes, part by part: by what earlier jobs took on this machine, else by what is shipped.

A part's time is taken as proportional to its size: trials, problems, dtypes, VLENs, floating-point operations. What is
done once however little there is to compute (a trial's build, an emulator's start) has a size too, so that a job of
small problems says something of one of large ones.
"""

from __future__ import annotations

import json
import os
import resource
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tensorop import paths
from tensorop.events import Done, Event, Phase, Trying
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.problems import MOST_BENCH, for_search, within, work
from tensorop.provision import libc, openblas, sysroot
from tensorop.provision.targets import host_arch
from tensorop.search import KERNELS, OTHERS, SEEDS
from tensorop.target import Target
from tensorop.tuner.loop import Stop, Stopped

KEPT = 5  # jobs that are remembered of each part
PER = 1e8  # flops that a board model's sizes are in
FETCH_S = 15.0  # for each piece that is not in the cache
REPORT_S = 3.0
SEARCH = "search"  # its stages, and the probes, share the budget
PARTS = {
    "tools": "set-up",
    "negative controls": "set-up",
    "library": "library",
    "dispatch": "library",
    "probes": SEARCH,
    "constants": "library",
    "verification": "verification",
    "comparison": "comparison",
}
STAGES = {"micro-kernel": "micro", "blocking": "blocking", "smallest": "direct"}  # as the display names them
# What a trial of blockings, one of the direct way, a problem of them and one compared are, in what `blocking` and
# `comparison` are measured in: by a clock problems, under a board model 1e8 flop at one VLEN.
FIXED: Mapping[str, Mapping[str, float]] = {
    "ns": {"trial": 35.0, "direct trial": 45.0, "problem": 1.0, "compared": 1.0},
    "modelled-cycles": {"trial": 1.25, "direct trial": 1.5, "problem": 0.02, "compared": 0.03},
}
# Seconds for a unit of each part's size on two cores of 3 GHz, by what measures.
SHIPPED: Mapping[str, Mapping[str, float]] = {
    "ns": {
        "set-up": 1.8,
        "micro": 1.2,
        "blocking": 0.027,
        "library": 3.0,
        "verification": 2.0,
        "comparison": 0.7,
    },
    "modelled-cycles": {
        "set-up": 0.9,
        "micro": 1.4,
        "blocking": 0.8,
        "library": 4.0,
        "verification": 6.0,
        "comparison": 1.5,
    },
}


@dataclass(frozen=True)
class Forecast:
    """seconds: by part, in their order. sizes: of parts, and of the first stages' trials. kind: what is remembered
    together; fetched: whether everything a job needs was there."""

    kind: str
    seconds: Mapping[str, float]
    sizes: Mapping[str, float]
    fetched: bool

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{about(seconds)} {part}" for part, seconds in self.seconds.items())
        return f"about {about(self.total)} in all: {parts}"


def forecast(job: Job, operator: Operator, target: Target) -> Forecast | None:
    """None where nobody knows: a runner that pretends."""
    if target.unit not in SHIPPED:
        return None
    kind = f"{target.runner.name.partition(':')[0]} {target.platform.arch} {target.unit}"
    rates = {**SHIPPED[target.unit], **{name: median(seen) for name, seen in _remembered(kind).items() if seen}}
    sizes = _sizes(job, operator, target)
    missing = 0 if job.offline else sum(not path.exists() for path in _pieces(target.platform.arch))
    seconds = {part: rates[part] * sizes[part] for part in dict.fromkeys(PARTS.values()) if part != SEARCH}
    trial = {"micro": rates["micro"], **{name: sizes[name] * rates["blocking"] for name in ("blocking", "direct")}}
    if job.trials is not None:
        search = job.trials * (trial["micro"] + trial["blocking"]) / 2
    else:
        search = max(job.budget_s or 0.0, sum(sizes[f"{name} trials"] * trial[name] for name in trial))
    ordered = {
        "set-up": seconds["set-up"] + missing * FETCH_S,
        "search": search,
        **{part: seconds[part] for part in ("library", "verification")},
        "comparison and report": seconds["comparison"] + REPORT_S,
    }
    return Forecast(kind, ordered, sizes, missing == 0)


def _sizes(job: Job, operator: Operator, target: Target) -> dict[str, float]:
    dtypes, vlens, checked = len(job.dtypes), max(1, len(target.vlens)), max(1, len(target.verify_vlens))
    known = target.platform.starts.get(operator.name, {})
    named = sum(len(known.get(dtype, ())) for dtype in job.dtypes)
    probes = operator.probes if job.suite in operator.suites else ()
    fixed, modelled, first = FIXED[target.unit], target.model is not None, job.dtypes[0]
    searched = for_search(operator, first, (*job.shapes, *probes), target.unit)
    smallest = operator.suites[operator.direct.suite] if operator.direct else ()
    direct = for_search(operator, first, smallest, target.unit)
    compared = within(operator, first, job.shapes, MOST_BENCH[target.unit])

    def measured(problems: Sequence[Problem]) -> float:
        flops = sum(float(operator.reference.work(problem)) for problem in problems)
        return vlens * (len(problems) * fixed["problem"] + (flops / PER if modelled else 0.0))

    heavy = sum(work(operator, first, shape) for shape in compared)
    return {
        "set-up": dtypes * checked,
        "library": dtypes * (1 + vlens),
        "verification": dtypes * (checked + 0.5),
        "comparison": dtypes * vlens * (len(compared) * fixed["compared"] + (heavy / PER if modelled else 0.0)),
        "micro": 1.0,
        "blocking": fixed["trial"] + measured(searched),
        "direct": fixed["direct trial"] + measured(direct),
        "micro trials": float(max(named, SEEDS * dtypes)),
        "blocking trials": float(max(named, min(KERNELS, SEEDS + OTHERS) * dtypes)),
        "direct trials": float(dtypes if smallest else 0),
    }


def _pieces(arch: str) -> list[Path]:
    there = [libc.path(arch), openblas.source(arch).folder()]
    return there if arch == host_arch() else [*there, sysroot.path(arch)]


def _file() -> Path:
    return paths.cache_dir("forecast") / "rates.json"


def _all_remembered() -> dict[str, dict[str, list[float]]]:
    try:
        found = json.loads(_file().read_text())
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _remembered(kind: str) -> dict[str, list[float]]:
    return _all_remembered().get(kind, {})


def watched(events: Generator[Event, None, None], plan: Forecast, jobs: int) -> Generator[Event, None, None]:
    """The same events, the phases with the seconds they will take; what each part took is remembered in the end."""
    watch = _Watch(plan, jobs)
    try:
        for event in events:
            yield watch.see(event)
    finally:
        events.close()


class _Watch:
    """Seconds by part as they would be on a quiet machine: never more than the processors' own time says."""

    def __init__(self, plan: Forecast, jobs: int) -> None:
        self.plan = plan
        self.side_by_side = min(jobs, os.cpu_count() or 1) * 0.85 if "modelled" in plan.kind else 1.0
        self.part = ""
        self.began = (time.monotonic(), _processor_time())
        self.took: dict[str, float] = {}
        self.stages: dict[str, list[float]] = {}

    def see(self, event: Event) -> Event:
        if isinstance(event, Trying) and isinstance(event.event, Stopped):
            self._stage(event.stage, event.event)
        part = PARTS.get(event.name, "") if isinstance(event, Phase) else self.part
        part = SEARCH if isinstance(event, Trying) else part
        if part != self.part:
            self._close()
            self.part = part
        if isinstance(event, Done) and not event.early:
            self._remember()
        if isinstance(event, Phase) and event.name in ("verification", "comparison"):
            name = "comparison and report" if event.name == "comparison" else event.name
            return Phase(event.name, event.detail, self.plan.seconds[name])
        return event

    def _stage(self, stage: str, ended: Stopped) -> None:
        name = STAGES.get(stage)
        if name and ended.trials and ended.reason is not Stop.INTERRUPTED:
            wall, processor = time.monotonic() - self.began[0], _processor_time() - self.began[1]
            quiet = min(1.0, processor / self.side_by_side / max(wall, 1e-9))
            rate = "micro" if name == "micro" else "blocking"
            self.stages.setdefault(rate, []).append(quiet * ended.seconds / ended.trials / self.plan.sizes[name])

    def _close(self) -> None:
        now = (time.monotonic(), _processor_time())
        if self.part:
            seconds = min(now[0] - self.began[0], (now[1] - self.began[1]) / self.side_by_side)
            self.took[self.part] = self.took.get(self.part, 0.0) + seconds
        self.began = now

    def _remember(self) -> None:
        self._close()
        found = {name: median(seen) for name, seen in self.stages.items()}
        for part, seconds in self.took.items():
            if part != SEARCH and (part != "set-up" or self.plan.fetched):
                found[part] = seconds / self.plan.sizes[part]
        known = _all_remembered()
        of_kind = known.setdefault(self.plan.kind, {})
        for name, rate in found.items():
            of_kind[name] = [*of_kind.get(name, []), rate][-KEPT:]
        part_file = _file().with_suffix(f".{os.getpid()}")
        part_file.write_text(json.dumps(known, indent=1))
        part_file.replace(_file())


def _processor_time() -> float:
    """Seconds of all processors for this process and for its children that have ended."""
    own, theirs = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + theirs.ru_utime + theirs.ru_stime


def about(seconds: float) -> str:
    """`45 s`, `4.5 min`, `12 min`."""
    if seconds < 60:
        return f"{max(1, round(seconds))} s"
    return f"{seconds / 60:.1f} min" if seconds < 600 else f"{seconds / 60:.0f} min"
