"""The smallest candidate, which doubles numbers: whether anything is built for a target and runs there."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tensorop.build import link, programs
from tensorop.build.compile import candidate_flags
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.kernel import Artifact
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Check
from tensorop.runners.session import Guest


def call(size: int) -> Call:
    """One that doubles so many numbers."""
    x = np.arange(size, dtype=np.float32)
    return Call((size,), buffers=(Buffer("x", Access.IN, x), Buffer("y", Access.OUT, np.zeros_like(x))))


CALL = call(64)


def build(platform: Platform) -> Artifact | Outcome:
    """Its program (native/sample.c), static. Raises as compiler and linker do."""
    return link.candidate(programs.native("sample.c"), platform, candidate_flags(platform))


def wrong(runner: Runner, program: Path, guest: Guest) -> str:
    """What is wrong with its call on a target; "" where nothing is. Raises as `session.run` does."""
    (reply,) = session.run(runner, program, [Check(CALL)], guest=guest)
    right = reply.outcome.ok and np.array_equal(reply.outputs["y"], 2 * CALL.buffers[0].data)
    return "" if right else reply.outcome.message or "wrong result"
