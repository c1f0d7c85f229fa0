"""What is verified: a program on a target, and how it is called."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tensorop.model.call import Call, Reply
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.problem import Problem
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Check, Entry
from tensorop.runners.session import Guest
from tensorop.verify.answers import Answers


def no_workspace(problem: Problem, vlen: int) -> int:
    """For kernels that bring their own memory, or need none."""
    return 0


@dataclass(frozen=True)
class Subject:
    """A harness with a candidate linked in, or one that opens `libraries`."""

    runner: Runner
    program: Path
    guest: Guest = field(default_factory=Guest)
    entry: Entry = field(default_factory=Entry)
    workspace: Callable[[Problem, int], int] = no_workspace  # elements that a call needs at a VLEN (bits)
    compute: str = ""  # the workspace's number format; empty: the dtype's own
    timeout_s: float = 20.0  # for each call
    more: tuple[int, ...] = ()  # dims that follow the operator's own in every call
    made: dict[tuple[int, int], Call] | None = None  # by ids of cases and VLEN: calls, for whoever holds these cases
    answers: Answers | None = None  # of large problems: their inputs are the same at every VLEN, the oracle asked once

    def call(self, reference: Contract, case: Case, rng: np.random.Generator, vlen: int) -> Call:
        """A case's call at a VLEN (bits), with inputs of its own."""
        if self.made is not None and (known := self.made.get((id(case), vlen))) is not None:
            return known
        space = self.workspace(case.problem, vlen)
        words = (case.distribution, case.placement, space, self.compute, case.start)
        call = reference.call(case.problem, rng, *words)
        if self.made is not None:
            self.made[id(case), vlen] = call
        return call

    def execute(self, calls: Sequence[Call], vlen: int) -> list[Reply]:
        """One process for all calls, a fresh one after each that died; replies in order.

        Raises JobError when a library cannot be bound, MissingTool and BoardError as the runner does.
        """
        requests = [Check(replace(call, dims=(*call.dims, *self.more)), self.entry) for call in calls]
        guest = replace(self.guest, vlen=vlen or None)
        return session.run(self.runner, self.program, requests, timeout_s=self.timeout_s, guest=guest, give_up_after=1)
