"""The one way in which a program starts on a target: whatever code is in it, it runs confined.

No caller says how. A process has the jail of native/jail.h, which it closes itself (the harness and the programs beside
it) or QEMU's plug-in closes around it, and the limits below, which the parent sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from tensorop.runners import process
from tensorop.runners.base import Launch, Need, Runner
from tensorop.runners.process import Ended, Limits

_SPARE_S = 60  # processor time beside what the deadline allows: start-up, unpacking operands


def run(
    runner: Runner,
    launch: Launch,
    *,
    timeout_s: float,
    memory: int | None = Limits.memory,
    calls: int = 1,
    stdin: Iterable[bytes | memoryview] = (),
    consume: Callable[[bytes], bool] | None = None,
    started: Callable[[int], object] | None = None,
    cwd: Path | None = None,
    stdout_cap: int = 1 << 20,
) -> Ended:
    """Runs a program on the target to its end; as `process.run`.

    memory: address space in bytes; calls: how often `timeout_s` may pass, for the limit on processor time.
    """
    threads = process.PROCESSORS if Need.THREADS in launch.needs else 1
    cpu_s = int(threads * timeout_s * (1 + calls)) + _SPARE_S
    return process.run(
        runner.command(launch),
        timeout_s=timeout_s,
        stdin=stdin,
        consume=consume,
        started=started,
        environment=runner.environment(launch.environment),
        cwd=cwd,
        limits=Limits(memory=memory, cpu_s=cpu_s),
        stdout_cap=stdout_cap,
    )
