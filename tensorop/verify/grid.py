"""Runs a grid of cases on a target and judges every reply, to the first failure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tensorop.model.call import Access, Call, CallOutput, Reply
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed, Verdict
from tensorop.verify.subject import Subject

BATCH = 256  # calls a process: few enough to stop early, enough to make its start cheap

# Streams of the seed, so that grids, inputs and VLENs are independent of each other.
_SIZES, _INPUTS, _REPEAT, _SAME_INPUTS, _AGAIN = 0, 1, 2, 5, 7

AGAIN = 1  # call of a process that is made again with other numbers in one place
LEAST = 8  # elements of such a call's inputs
MOST = 2e5  # flops of one
REPEATS = 3  # equal calls with several threads

Grid = Callable[[int, Seed], Sequence[Case]]  # VLEN in bits, seed -> cases


def quick(operator: Operator, dtype: str, tiles: Mapping[int, Mapping[str, int]]) -> Grid:
    """The operator's grid for every candidate. tiles: VLEN in bits -> sizes in elements, as the operator names them."""
    return lambda vlen, seed: operator.reference.quick_grid(dtype, tiles[vlen], seed.stream(_SIZES, vlen))


def dealt(operator: Operator, dtype: str, tiles: Mapping[int, Mapping[str, int]]) -> Grid:
    """One such grid for all VLENs together, whose cases they take in turn."""
    return in_turn(
        lambda vlen, seed: operator.reference.quick_grid(dtype, tiles[vlen], seed.stream(_SIZES)), list(tiles)
    )


def in_turn(grid: Grid, vlens: Sequence[int]) -> Grid:
    """A grid's cases, of which there are as many at every VLEN, taken by the VLENs (bits) in turn."""
    return lambda vlen, seed: grid(vlen, seed)[vlens.index(vlen) :: len(vlens)]


def verify(operator: Operator, subject: Subject, grid: Grid, vlens: Sequence[int], seed: Seed) -> tuple[Verdict, ...]:
    """One verdict a VLEN (bits; 0 where the target has one width only), ending with the first that fails.

    Raises JobError, MissingTool and BoardError as `Subject.execute` does.
    """
    verdicts: list[Verdict] = []
    for vlen in vlens:
        verdicts.append(check(operator.reference, subject, grid(vlen, seed), vlen, seed))
        if not verdicts[-1].ok:
            break
    return tuple(verdicts)


def outcome(verdicts: Sequence[Verdict]) -> Outcome:
    """The first failure, or that all passed."""
    failed = next((v.outcome for v in verdicts if not v.ok), None)
    return failed or Outcome(Kind.OK, "verify")


def check(reference: Contract, subject: Subject, cases: Sequence[Case], vlen: int, seed: Seed) -> Verdict:
    """Calls and judges each case with inputs of its own; the message names case, VLEN and seed of the first failure."""
    threads, answers = subject.guest.threads, subject.answers
    if not cases:  # whoever has tried nothing has found nothing right
        nothing = Outcome(Kind.REFUSED, "verify", "the grid has no case, so nothing was verified")
        return Verdict(nothing, vlen, 0, str(seed), 0.0, threads)
    worst = 0.0
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        path = (_INPUTS, vlen) if answers is None else (_SAME_INPUTS,)
        streams = [seed.stream(*path, start + i) for i in range(len(batch))]
        calls = [
            (i, subject.call(reference, case, rng, vlen))
            for i, (case, rng) in enumerate(zip(batch, streams, strict=True))
        ]
        if answers is None:
            calls = _with_changed(batch, calls, reference, seed.stream(_AGAIN, vlen, start))
        replies = subject.execute([call for _, call in calls], vlen)
        before = -1
        for (i, given), reply in zip(calls, replies, strict=True):
            case, found = batch[i], reply.outcome
            if found.ok:
                if answers is None:
                    judged = reference.judge(case.problem, given, reply.outputs)
                else:
                    judged = answers.judge(case.problem, given, CallOutput(reply.outputs))
                worst, found = max(worst, judged.worst), judged
            if not found.ok:
                place = f"case {start + i + 1} of {len(cases)}, {case.label}"
                place += ", called again with one element changed" if i == before else ""
                place += (f", VLEN {vlen}" if vlen else "") + (f", {threads} threads" if threads > 1 else "")
                message = f"{found.message} ({place}, seed {seed})"
                failed = Outcome(found.kind, "verify", message, found.log)
                return Verdict(failed, vlen, start + i + 1, str(seed), worst, threads, case=case)
            before = i
    return Verdict(Outcome(Kind.OK, "verify"), vlen, len(cases), str(seed), worst, threads)


Calls = list[tuple[int, Call]]  # the number of a case in its batch, and a call of it


def _with_changed(batch: Sequence[Case], calls: Calls, reference: Contract, rng: np.random.Generator) -> Calls:
    """The calls, a few of them followed by the same at the same addresses, with one element of each input changed in
    turn: what a kernel keeps of a call says nothing of the next, however much of it is alike."""
    able = [i for i, call in calls if batch[i].distribution == "normal" and all(map(math.isfinite, call.scalars))]
    able = [i for i in able if _inputs(calls[i][1]) and 0 < reference.work(batch[i].problem) < MOST]
    again: dict[int, Calls] = {}
    for i in (able[at] for at in rng.permutation(len(able))):
        call, made = calls[i][1], []
        for place in _inputs(call):
            changed = _changed(call, place, batch[i].problem, reference, rng)
            if changed is not None:
                call = changed
                made.append((i, call))
        if made:
            again[i] = made
        if len(again) == AGAIN:
            break
    return [one for i, call in calls for one in ((i, call), *again.get(i, ()))]


def _inputs(call: Call) -> list[int]:
    """The buffers that are read alone, where all are large enough to have an element that is easily overlooked."""
    found = [i for i, buffer in enumerate(call.buffers) if buffer.access is Access.IN and buffer.data.size]
    return found if all(call.buffers[i].data.size >= LEAST for i in found) else []


def _changed(call: Call, place: int, problem: Problem, reference: Contract, rng: np.random.Generator) -> Call | None:
    """One element has the other sign, or is another integer: neither the first nor the last one, and one that the
    result shows. None where a few tries find none, as in an input that is not used."""
    buffer = call.buffers[place]
    number, before = reference.operands[buffer.name].number(problem.dtype), reference.expected(problem, call)
    for at in rng.integers(1, buffer.data.size - 1, LEAST):
        data = buffer.data.copy()
        value = number.decoded(data[at : at + 1]).astype(np.float64)
        data[at] = number.encoded(value + 37 if number.whole else -value)[0]
        buffers = (*call.buffers[:place], replace(buffer, data=data), *call.buffers[place + 1 :])
        after = reference.expected(problem, replace(call, buffers=buffers))
        with np.errstate(all="ignore"):
            if any(
                (abs(want - before[name][0]) > bound + before[name][1]).any() for name, (want, bound) in after.items()
            ):
                return replace(call, buffers=buffers)
    return None


def verify_threads(
    operator: Operator,
    with_threads: Callable[[int], Subject],
    cases: Sequence[Case],
    counts: Sequence[int],
    vlen: int,
    seed: Seed,
) -> tuple[Verdict, ...]:
    """A verdict for each thread count, ending with the first that fails; none where there is no case to try.

    with_threads: the product, made to use so many; cases: large enough that all of them get work. Each case is judged,
    then one call is repeated and its outputs compared bit by bit: a sum whose order depends on which thread was
    faster, or an element two threads write, gives itself away.
    """
    verdicts: list[Verdict] = []
    for count in counts if cases else ():
        subject = with_threads(count)
        verdict = replace(check(operator.reference, subject, cases, vlen, seed), threads=count)
        for i, case in enumerate(cases if verdict.ok else ()):
            call = subject.call(operator.reference, case, seed.stream(_REPEAT, vlen, i), vlen)
            found = _steady(subject.execute([call] * REPEATS, vlen), case, count, seed)
            if not found.ok:
                verdict = replace(verdict, outcome=found)
                break
        verdicts.append(verdict)
        if not verdict.ok:
            break
    return tuple(verdicts)


def _steady(replies: Sequence[Reply], case: Case, threads: int, seed: Seed) -> Outcome:
    """Whether equal calls left the same bits."""
    for reply in replies:
        if not reply.outcome.ok:
            return reply.outcome
        for name, data in reply.outputs.items():
            first = replies[0].outputs[name]
            differ = np.flatnonzero(first.view(np.uint8) != data.view(np.uint8)) // data.itemsize
            if differ.size:
                message = f"{name} differs between equal calls with {threads} threads, first at element {differ[0]}"
                return Outcome(Kind.WRONG, "verify", f"{message} ({case.label}, seed {seed})")
    return Outcome(Kind.OK, "verify")
