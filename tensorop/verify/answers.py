"""Checks the outputs of measured calls; the oracle computes each problem and set of operands once."""

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

MEASURED = 2  # the stream of a seed that gives the inputs of measured calls


@dataclass(frozen=True)
class Answers:
    """Expected outputs of the measured calls of one seed, which have the same inputs wherever they are measured.

    reference: the operator's oracle
    """

    reference: Contract
    _limits: dict[tuple[str, bool], Any] = field(default_factory=dict, compare=False, repr=False)
    _locks: dict[tuple[str, bool], threading.Lock] = field(default_factory=dict, compare=False, repr=False)

    def judge(self, problem: Problem, call: Call, left: CallOutput) -> Judgement:
        """Compares every element of the batches' outputs with the oracle, for the operands of their last call."""
        given = call.operands(left.second)
        key = problem.label, left.second
        with self._locks.setdefault(key, threading.Lock()):  # other threads compute other problems meanwhile
            if key not in self._limits:
                self._limits[key] = self.reference.limits(problem, given)
        found = self.reference.judge(problem, given, left.outputs, within=self._limits[key])
        return found if found.ok else replace(found, where="measure", message=f"{found.message}, in a timed call")

    def judge_all(self, problem: Problem, call: Call, left: Sequence[CallOutput]) -> Judgement:
        """The first wrong verdict, or the last one."""
        judged = Judgement(Kind.OK, "measure")
        for result in left:
            judged = self.judge(problem, call, result)
            if not judged.ok:
                break
        return judged


def consistent(left: tuple[CallOutput, ...]) -> Outcome:
    """Whether each set of operands gave the same result in a single call and in all batches, without NaN.

    This is for calls whose operands the oracle does not read.
    """
    for second in (False, True):
        results = [of.outputs for of in left if of.second is second]
        if len(results) > 1:
            return Outcome(Kind.WRONG, "measure", "a call gave another result than other calls on the same operands")
        if any(not _numbers(outputs) for outputs in results):
            return Outcome(Kind.WRONG, "measure", "a call did not write all of its output")
    return Outcome(Kind.OK, "measure")


def _numbers(outputs: Outputs) -> bool:
    return all(data.dtype.kind != "f" or not np.isnan(data).any() for data in outputs.values())
