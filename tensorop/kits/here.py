"""Where the device that a product is for is in this machine: its kit is run here, and its dispatch made by that."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tensorop import settings
from tensorop.commands import opened
from tensorop.errors import JobError
from tensorop.events import Done, Event, Note, Phase
from tensorop.kits import device
from tensorop.kits.export import PROBES
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.process import children, scratch
from tensorop.process.stopping import StopRequest
from tensorop.target import Asked

_START_S, _STEP_S = 300.0, 60.0  # at most; a step takes about a second
_STAYS = "the product stays as the model chose"


def measured(job: Job, operator: Operator, name: str, events: Iterator[Event], stop: StopRequest) -> Iterator[Event]:
    """The events of a job that measures nothing, then those of measuring on the GPU `name`; `Done` last.

    Raises JobError where the library is wrong there.
    """
    for event in events:
        if not isinstance(event, Done):
            yield event
            continue
        with scratch.folder("kit") as folder:
            yield from _by_kit(job, operator, name, event, folder / "kit", stop)


def run(folder: Path, steps: int) -> subprocess.CompletedProcess[str]:
    """A kit's program; `result.jsonl` is beside its folder then. Status 1: the library is wrong, which that says."""
    there = {**settings.scrubbed_environment(), "OUT": str(folder.with_name("result.jsonl"))}
    seconds = _START_S + steps * _STEP_S
    try:
        return children.run([str(folder / "run-kit")], cwd=folder, env=there, timeout=seconds)
    except subprocess.TimeoutExpired:
        return subprocess.CompletedProcess([], -signal.SIGKILL, "", f"{steps} steps took more than {seconds:.0f} s")


def _by_kit(job: Job, operator: Operator, name: str, done: Done, folder: Path, stop: StopRequest) -> Iterator[Event]:
    of, ended = device.read(opened.open_product(job.out, job.plugins)), None
    shapes = () if job.suite == operator.usual else job.shapes  # nobody named any
    with stop.may_end(f"stopping: {_STAYS}"):
        steps = device.export(of, folder, Asked(shapes, PROBES)).steps
        yield Phase("measuring", f"on {name}: {steps['control']} controls, {steps['verify']} verifications, "
                    f"{steps['time']} problems; some minutes, Ctrl-C leaves it out")  # fmt: skip
        ended = run(folder, sum(steps.values()))
    if ended is None or ended.returncode not in (0, 1):
        said = "it was stopped" if ended is None else (ended.stderr.strip() or "no word").splitlines()[-1]
        yield Note(f"measuring on {name} ended: {said}; {_STAYS}")
        yield done
        return
    with stop.shield("the product is being put in place"):
        try:
            found = device.retune(of, folder.with_name("result.jsonl"))
        except JobError as error:
            raise JobError(f"{job.out} must not be used on {name}: {error.message}", hint=error.hint) from None
    for dtype, told in found.told.items():
        after, before = told["regret"]["after"], told["regret"]["before"]
        yield Note(f"{dtype}: choosing costs {after:.1%} on shapes left out ({before:.1%} by the model alone)")
    if found.against:
        yield Note(f"{found.against['fastest']:.2f} of cuBLASLt's best by the fastest kernels, in the geometric mean")
    yield replace(done, notes=(f"{found.said}: {found.rows} problems",))
