"""How long a job takes, part by part: by what earlier jobs took on this machine, else by what is shipped for another
core and how fast this one is beside it.

A part's time is taken as proportional to its size: trials, problems, dtypes, VLENs, floating-point operations. What is
done once however little there is to compute (a trial's build, an emulator's start) has a size too, so that a job of
small problems says something of one of large ones. A search takes its budget, or as long as the trials that it makes
whatever the budget is: each stage's, and each template's and known winner's.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from tensorop import paths
from tensorop.author import offline
from tensorop.events import Done, Event, Phase, Trying
from tensorop.model.architecture import host_arch
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.provision import baseline, libc, qemu
from tensorop.search.loop import EndReason, SearchEnded
from tensorop.search.task import Pass
from tensorop.search.trials import KERNELS, OTHERS
from tensorop.space.problems import for_search, large, within, work
from tensorop.target import Target
from tensorop.warm import journals, start
from tensorop.warm.winners import WarmSource

KEPT = 5  # jobs that are remembered of each part
FETCH_S = 15.0  # for each piece that is not in the cache
SEARCH = "search"  # its stages and the probes share the budget
PARTS = {
    "tools": "set-up",
    "negative controls": "set-up",
    "library": "library",
    "side-by-side": "library",
    "probes": SEARCH,
    "robust": "library",
    "verification": "verification",
    "comparison": "comparison",
    "publication": "report",
}
# Of the work that `Budgets.part_seconds` are seconds of: on two cores of an AMD EPYC (Zen 3, 2.45 GHz).
BZIP2_S = 0.0095
CORES = 2


@dataclass(frozen=True)
class Forecast:
    """seconds: by part, in their order. sizes: of parts, and of the first stages' trials. kind: what is remembered
    together; fetched: whether everything a job needs was there; side_by_side: processes that really run at once."""

    kind: str
    seconds: Mapping[str, float]
    sizes: Mapping[str, float]
    fetched: bool
    side_by_side: float

    @property
    def total(self) -> float:
        return sum(self.seconds.values())

    def __str__(self) -> str:
        parts = ", ".join(f"{about(seconds)} {part}" for part, seconds in self.seconds.items())
        return f"about {about(self.total)} in all: {parts}"


def forecast(
    job: Job, operator: Operator, target: Target, passes: Sequence[Pass], sources: Sequence[WarmSource] | None = None
) -> Forecast | None:
    """None where nobody knows: a runner that pretends. sources: the job's warm seed_configurations where they have been
    read."""
    if not target.budgets.part_seconds:
        return None
    kind = f"{target.name} {target.platform.arch} {target.unit}"
    pace = slower() * (CORES / side_by_side(job.jobs) if target.side_by_side else 1.0)
    shipped = {name: rate * pace for name, rate in target.budgets.part_seconds.items()}
    rates = {**shipped, **{name: median(seen) for name, seen in _remembered(kind).items() if seen}}
    known = journals.read(job)[0] if sources is None else sources
    named = max(start.surely(known, job, operator, target.platform, dtype) for dtype in job.dtypes)
    sizes = _sizes(job, operator, target, passes, named)
    missing = 0 if job.offline else sum(not path.exists() for path in _pieces(target.platform.arch))
    seconds = {part: rates[part] * sizes[part] for part in dict.fromkeys(PARTS.values()) if part != SEARCH}
    ordered = {
        "set-up": seconds["set-up"] + missing * FETCH_S,
        "search": len(job.dtypes)
        * _search(job, target, passes, {name: rates[name] * sizes[name] for name in rates if name in sizes}, sizes),
        **{part: seconds[part] for part in ("library", "verification")},
        "comparison and report": seconds["comparison"] + seconds["report"],
    }
    return Forecast(kind, ordered, sizes, missing == 0, side_by_side(job.jobs) * 0.85 if target.side_by_side else 1.0)


def _search(
    job: Job, target: Target, passes: Sequence[Pass], trial: Mapping[str, float], sizes: Mapping[str, float]
) -> float:
    """Seconds of one dtype's search. trial: seconds of one, by stage."""
    if job.budget_s is None or job.trials is not None:
        return (job.trials or 0) / len(job.dtypes) * (trial["micro"] + trial["blocking"]) / 2
    budget = job.budget_s / len(job.dtypes)
    apart = {one.name: one.share for one in passes if one.own_budget and one.wanted(target)}
    shares = {one.name: one.share for one in passes if one.plan and not one.own_budget}
    if not sizes["large trials"]:
        shares["blocking"] += shares.pop("large", 0.0)
    each = {name: share * (1.0 - sum(apart.values())) / sum(shares.values()) for name, share in shares.items()} | apart
    spent = 0.0
    for one in passes:
        if trials := sizes.get(f"{one.name} trials"):
            spent += max(trials * trial[one.name], min(each[one.name] * budget, budget - spent))
    return spent + apart.get("probes", 0.0) * budget


def side_by_side(jobs: int) -> int:
    """Processes that really run at once."""
    return min(jobs, os.cpu_count() or 1)


def slower() -> float:
    """How many times the seconds of `part_seconds` a core of this machine takes for such work: by bzip2, which is
    branches and integers as a compiler and an emulator are, and the same C everywhere. 1 where this Python has none."""
    try:
        import bz2
    except ImportError:
        return 1.0
    text = b"".join(hashlib.sha256(bytes([i % 256, i // 256])).hexdigest().encode() for i in range(2000))

    def once() -> float:
        begun = time.thread_time()
        bz2.compress(text)
        return time.thread_time() - begun

    return min(once() for _ in range(7)) / BZIP2_S


def _sizes(job: Job, operator: Operator, target: Target, passes: Sequence[Pass], named: int) -> dict[str, float]:
    """Of parts, of one trial of each stage, and how many trials of it a dtype gets whatever its budget. named: known
    variants that are tried however little time there is."""
    dtypes, vlens, checked = len(job.dtypes), len(target.vlens), len(target.verify_vlens)
    templates = len(offline.files(operator.folder, operator.added))
    probes = operator.probes if job.suite in operator.suites else ()
    budgets, fixed, first = target.budgets, target.budgets.fixed_units, job.dtypes[0]
    searched = for_search(operator, first, (*job.shapes, *probes), budgets)
    shares = {one.name: one.share for one in passes if one.wanted(target)}
    beyond = large(operator, first, job.shapes, budgets, shares.get("large", 0.0) * (job.budget_s or 0.0) / dtypes)
    smallest = operator.suites[operator.direct.suite] if operator.direct else ()
    direct = for_search(operator, first, smallest, budgets)
    compared = within(operator, first, job.shapes, budgets.compared_flops)
    batch = float(side_by_side(job.jobs)) if target.side_by_side else 1.0  # trials that are begun together

    def measured(problems: Sequence[Problem], vlens: int = vlens) -> float:
        flops = sum(float(operator.reference.work(problem)) for problem in problems)
        return fixed["trial"] + vlens * (len(problems) * fixed["problem"] + flops / budgets.flops_per_unit)

    heavy = sum(work(operator, first, shape) for shape in compared)
    return {
        "set-up": dtypes * checked,
        "library": dtypes * (1 + vlens),
        "verification": dtypes * (checked + 0.5),
        "report": dtypes,
        "comparison": dtypes * vlens * (len(compared) * fixed["compared"] + heavy / budgets.flops_per_unit),
        "micro": 1.0,
        "blocking": measured(searched),
        "large": measured(beyond),
        "single-vlen": measured(searched, 1),
        "smallest": measured(direct),
        "micro trials": float(max(named, templates)),
        "blocking trials": float(max(named, min(KERNELS, templates + OTHERS))),
        "large trials": batch if beyond and "large" in shares else 0.0,
        "single-vlen trials": batch if "single-vlen" in shares else 0.0,
        "smallest trials": batch if smallest and "smallest" in shares else 0.0,
    }


def _pieces(arch: str) -> list[Path]:
    there = [libc.entry(arch).folder, baseline.baseline("openblas", arch).entry.folder]
    return there if arch == host_arch() else [*there, qemu.sysroot_entry(arch).folder]


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


def watched(events: Generator[Event, None, None], plan: Forecast) -> Generator[Event, None, None]:
    """The same events, the phases with the seconds they will take; what each part took is remembered in the end."""
    watch = _Watch(plan)
    try:
        for event in events:
            yield watch.see(event)
    finally:
        events.close()


class _Watch:
    """Seconds by part as they would be on a quiet machine: never more than the processors' own time says."""

    def __init__(self, plan: Forecast) -> None:
        self.plan = plan
        self.part = ""
        self.began = (time.monotonic(), _processor_time())
        self.took: dict[str, float] = {}
        self.stages: dict[str, list[float]] = {}

    def see(self, event: Event) -> Event:
        if isinstance(event, Trying) and isinstance(event.event, SearchEnded):
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

    def _stage(self, stage: str, ended: SearchEnded) -> None:
        if ended.trials and ended.reason is not EndReason.INTERRUPTED:
            wall, processor = time.monotonic() - self.began[0], _processor_time() - self.began[1]
            quiet = min(1.0, processor / self.plan.side_by_side / max(wall, 1e-9))
            self.stages.setdefault(stage, []).append(quiet * ended.seconds / ended.trials / self.plan.sizes[stage])

    def _close(self) -> None:
        now = (time.monotonic(), _processor_time())
        if self.part:
            seconds = min(now[0] - self.began[0], (now[1] - self.began[1]) / self.plan.side_by_side)
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
