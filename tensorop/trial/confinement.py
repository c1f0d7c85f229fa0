"""Decides whether untrusted kernels may run on a target: only in a jail, or with the user's consent."""

from __future__ import annotations

from tensorop.author import offline
from tensorop.errors import JobError, UsageError
from tensorop.model.job import Job
from tensorop.model.trial import Outcome
from tensorop.runners import session
from tensorop.runners.session import Guest
from tensorop.target import Target
from tensorop.toolchain import programs


def missing(target: Target) -> tuple[str, ...]:
    """The protections that a process on the target lacks, found by starting one; empty if its jail is complete.

    Raises JobError, MissingTool and BoardError when none can be built or started.
    """
    program = programs.sample_program(target.platform)
    if isinstance(program, Outcome):
        raise JobError(
            f"no kernel can be built: {program.message}", hint="run `tensorop doctor` to test compiler and tools"
        )
    greeting = session.hello(target.guests, program.path, guest=Guest(vlen=target.vlens[0] or None))
    return target.weaknesses(greeting)


def require(job: Job, target: Target) -> str:
    """A remark for the user. Raises UsageError if the job may run untrusted kernels and the jail is missing."""
    if job.author == offline.AUTHOR or target.simulated:
        return ""
    return confined(target, f"--author {job.author} runs kernels that a model wrote", job.unsafe)


def confined(target: Target, what: str, unsafe: bool) -> str:
    """Empty if the target confines its processes; a remark if it does not and the user accepts that (`unsafe`).

    what: sentence for the UsageError if the user does not accept it. Raises what `missing` raises.
    """
    lacks = missing(target)
    if not lacks:
        return ""
    reasons = "; ".join(lacks)
    if not unsafe:
        raise UsageError(
            f"{what}, and this target cannot sandbox untrusted code: {reasons}",
            hint="use a target that can (`tensorop doctor --platform NAME` tells you), or add --unsafe to run it "
            "with all your rights",
        )
    return f"--unsafe: {reasons}; untrusted kernels run with all your rights"
