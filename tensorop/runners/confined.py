"""Starts programs on a target. Every program is confined, whatever code it contains.

Callers choose no protection. The process itself closes the jail of native/jail.h (the harness and the programs beside
it), or QEMU's plug-in closes it around the process. The parent sets the limits below.
"""

from __future__ import annotations

from pathlib import Path

from tensorop.runners import process
from tensorop.runners.base import Launch, Need, Runner
from tensorop.runners.process import SILENT, Ended, Limits, Talk

_SPARE_S = 60  # processor time beyond the deadlines: start-up, unpacking operands


def run(
    runner: Runner, launch: Launch, *, timeout_s: float, calls: int = 1, talk: Talk = SILENT, cwd: Path | None = None
) -> Ended:
    """Runs a program on the target until it ends. Errors as `process.run`.

    calls: how often `timeout_s` may pass; it scales the limit of processor time.
    """
    threads = process.PROCESSORS if Need.THREADS in launch.needs else 1
    cpu_s = int(threads * timeout_s * (1 + calls)) + _SPARE_S
    return process.run(
        runner.command(launch),
        timeout_s=timeout_s,
        talk=talk,
        environment=runner.environment(launch.environment),
        cwd=cwd,
        limits=Limits(cpu_s=cpu_s),
    )
