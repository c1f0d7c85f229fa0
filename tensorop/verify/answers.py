"""What measured calls must leave: the oracle is asked once a problem and set of operands, every result compared."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tensorop.model.call import Call, CallOutput, Outputs
from tensorop.model.contract import Contract
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Judgement


@dataclass(frozen=True)
class Answers:
    """reference: the operator's oracle. For calls of one seed, whose operands are known by their problem."""

    reference: Contract
    _limits: dict[tuple[str, bool], Any] = field(default_factory=dict, compare=False, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, compare=False, repr=False)

    def judge(self, problem: Problem, call: Call, left: CallOutput) -> Judgement:
        """Every element of what batches of this call left, on the operands that their last call had."""
        given = call.operands(left.second)
        key = problem.label, left.second
        with self._lock:
            if key not in self._limits:
                self._limits[key] = self.reference.limits(problem, given)
        found = self.reference.judge(problem, given, left.outputs, within=self._limits[key])
        return found if found.ok else replace(found, where="measure", message=f"{found.message}, in a timed call")

    def judge_all(self, problem: Problem, call: Call, left: Sequence[CallOutput]) -> Judgement:
        """The first of several results that is wrong, or the last."""
        judged = Judgement(Kind.OK, "measure")
        for result in left:
            judged = self.judge(problem, call, result)
            if not judged.ok:
                break
        return judged


def consistent(left: tuple[CallOutput, ...]) -> Outcome:
    """Whether each set of operands led to one result alone, of numbers: what a single call makes of an output that
    holds none of its own is what all batches must leave. For calls whose operands no oracle reads."""
    for second in (False, True):
        results = [of.outputs for of in left if of.second is second]
        if len(results) > 1:
            return Outcome(Kind.WRONG, "measure", "a call left something else than others on the same operands")
        if any(not _numbers(outputs) for outputs in results):
            return Outcome(Kind.WRONG, "measure", "a call left part of its output as it was")
    return Outcome(Kind.OK, "measure")


def _numbers(outputs: Outputs) -> bool:
    return all(data.dtype.kind != "f" or not np.isnan(data).any() for data in outputs.values())
