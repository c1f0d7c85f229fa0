"""The one way in which a program starts on a target: whatever code is in it, it runs confined.

No caller says how. A process has the jail of native/jail.h, which it closes itself (the harness and the programs beside
it) or QEMU's plug-in closes around it, and the limits below, which the parent sets.
"""

from __future__ import annotations

from pathlib import Path

from tensorop.runners import process
from tensorop.runners.base import Launch, Need, Runner
from tensorop.runners.process import SILENT, Ended, Limits, Talk

_SPARE_S = 60  # processor time beside what the deadline allows: start-up, unpacking operands


def run(
    runner: Runner, launch: Launch, *, timeout_s: float, calls: int = 1, talk: Talk = SILENT, cwd: Path | None = None
) -> Ended:
    """Runs a program on the target to its end; as `process.run`.

    calls: how often `timeout_s` may pass, for the limit on processor time.
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
