"""The subject of a verification: a program on a target, and how to call it."""

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
    """No workspace, for kernels that allocate their own memory or need none."""
    return 0


@dataclass(frozen=True)
class Subject:
    """A harness program with a candidate linked in, or one that opens the guest's libraries."""

    runner: Runner
    program: Path
    guest: Guest = field(default_factory=Guest)
    entry: Entry = field(default_factory=Entry)
    workspace: Callable[[Problem, int], int] = no_workspace  # (problem, VLEN in bits) -> elements of workspace
    compute: str = ""  # number format of the workspace; empty: the call's dtype
    timeout_s: float = 20.0  # for each call
    more: tuple[int, ...] = ()  # run-time parameters, which follow the operator's dims in every call
    panels: Callable[[Problem, Call], Call] | None = None  # makes packed operands of a kernel alone, if they differ
    made: dict[tuple[int, int], Call] | None = None  # (id of a case, VLEN) -> its call, while the case is kept
    answers: Answers | None = None  # for measured problems: they have the inputs of measured calls, at every VLEN

    def call(self, reference: Contract, case: Case, rng: np.random.Generator, vlen: int) -> Call:
        """The call of a case at a VLEN (bits), with random inputs."""
        if self.made is not None and (known := self.made.get((id(case), vlen))) is not None:
            return known
        space = self.workspace(case.problem, vlen)
        words = (case.distribution, case.placement, space, self.compute, case.start)
        call = reference.call(case.problem, rng, *words)
        if self.made is not None:
            self.made[id(case), vlen] = call
        return call

    def sent(self, problem: Problem, call: Call) -> Call:
        """The call as the program gets it; outputs are judged by the operands of `call`."""
        return call if self.panels is None else self.panels(problem, call)

    def execute(self, calls: Sequence[Call], vlen: int) -> list[Reply]:
        """Runs all calls in one process, and in a new one after each crash; replies in order.

        Raises JobError when a library cannot be bound, MissingTool and BoardError as the runner does.
        """
        guest = replace(self.guest, vlen=vlen or None)
        asked = self.requests(calls)
        return session.run(self.runner, self.program, asked, timeout_s=self.timeout_s, guest=guest, give_up_after=1)

    def requests(self, calls: Sequence[Call]) -> list[Check]:
        """The calls of this entry, with its run-time parameters."""
        return [Check(replace(call, dims=(*call.dims, *self.more)), self.entry) for call in calls]


def execute_together(subjects: Sequence[Subject], calls: Sequence[Sequence[Call]], vlen: int) -> list[list[Reply]]:
    """Runs the calls of several entries of one program in one process; replies in order, for each subject.

    After a crash the rest of that subject's calls is not run, and the next subjects' run in a new process. Raises as
    `Subject.execute`.
    """
    requests = [subject.requests(own) for subject, own in zip(subjects, calls, strict=True)]
    parts = [number for number, own in enumerate(requests) for _ in own]
    first = subjects[0]
    guest, asked = replace(first.guest, vlen=vlen or None), [request for own in requests for request in own]
    replies = session.run(first.runner, first.program, asked, timeout_s=first.timeout_s, guest=guest, parts=parts)
    found: list[list[Reply]] = [[] for _ in subjects]
    for number, reply in zip(parts, replies, strict=True):
        found[number].append(reply)
    return found
