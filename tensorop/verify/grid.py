"""Runs a grid of cases on a target and checks every reply, up to the first failure."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from tensorop.model.call import Access, Call, CallOutput, Reply
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed, Verdict
from tensorop.verify.answers import MEASURED
from tensorop.verify.subject import Subject, execute_together

BATCH = 256  # calls in one process: few enough to stop early, enough to make its start cheap

# Streams of the seed: grids, inputs and VLENs have independent draws.
_SIZES, _INPUTS, _REPEAT, _AGAIN = 0, 1, 2, 7

AGAIN = 1  # calls of a process that are repeated with one element changed
LEAST = 8  # elements of each input of such a call
MOST = 2e5  # flops of such a call
REPEATS = 3  # repetitions of a call with several threads

Grid = Callable[[int, Seed], Sequence[Case]]  # VLEN in bits, seed -> cases


def quick(operator: Operator, dtype: str, tiles: Mapping[int, Mapping[str, int]]) -> Grid:
    """The operator's quick grid. tiles: VLEN in bits -> the tile's sizes in elements, by the operator's names."""
    return lambda vlen, seed: operator.reference.quick_grid(dtype, tiles[vlen], seed.stream(_SIZES, vlen))


def dealt(operator: Operator, dtype: str, tiles: Mapping[int, Mapping[str, int]]) -> Grid:
    """One quick grid for all VLENs, dealt out to them in turn."""
    return in_turn(
        lambda vlen, seed: operator.reference.quick_grid(dtype, tiles[vlen], seed.stream(_SIZES)), list(tiles)
    )


def in_turn(grid: Grid, vlens: Sequence[int]) -> Grid:
    """Deals a grid's cases to the VLENs (bits) in turn; the grid has equally many cases at each."""
    return lambda vlen, seed: grid(vlen, seed)[vlens.index(vlen) :: len(vlens)]


def verify(operator: Operator, subject: Subject, grid: Grid, vlens: Sequence[int], seed: Seed) -> tuple[Verdict, ...]:
    """One verdict for each VLEN (bits; 0 if the target has one width), up to the first failure.

    Raises JobError, MissingTool and BoardError as `Subject.execute` does.
    """
    verdicts: list[Verdict] = []
    for vlen in vlens:
        verdicts.append(check(operator.reference, subject, grid(vlen, seed), vlen, seed))
        if not verdicts[-1].ok:
            break
    return tuple(verdicts)


def outcome(verdicts: Sequence[Verdict]) -> Outcome:
    """The first failure; OK if all passed."""
    failed = next((v.outcome for v in verdicts if not v.ok), None)
    return failed or Outcome(Kind.OK, "verify")


def check(reference: Contract, subject: Subject, cases: Sequence[Case], vlen: int, seed: Seed) -> Verdict:
    """Runs and checks each case with inputs of its own. The message has case, VLEN and seed of the first failure."""
    return joined(check_batch(reference, subject, cases, batch, vlen, seed) for batch in batches(len(cases)))


def batches(count: int, most: int = BATCH) -> list[range]:
    """The numbers of `count` cases in parts of at most `most`, each for one process; an empty part for no case."""
    return [range(start, min(start + most, count)) for start in range(0, max(count, 1), most)]


def check_batch(
    reference: Contract, subject: Subject, cases: Sequence[Case], batch: range, vlen: int, seed: Seed
) -> Verdict:
    """As `check`, of the cases with these numbers. Batches are independent of each other."""
    calls = _calls(reference, subject, cases, batch, vlen, seed)
    replies = subject.execute([subject.sent(cases[i].problem, call) for i, call in calls], vlen)
    verdict = _judged(reference, subject, cases, calls, replies, vlen, seed)
    return replace(verdict, cases=len(batch) if verdict.ok else verdict.cases - batch.start)


def joined(verdicts: Iterable[Verdict]) -> Verdict:
    """One verdict of several parts in order, up to the first failure."""
    whole: Verdict | None = None
    for verdict in verdicts:
        if whole is not None:
            cases, errors = whole.cases + verdict.cases, whole.errors + verdict.errors
            verdict = replace(verdict, cases=cases, errors=errors)
        whole = verdict
        if not whole.ok:
            break
    assert whole is not None
    return whole


def _passed(cases: Sequence[Case]) -> Outcome:
    """The outcome of a grid without a failure; an empty grid verifies nothing."""
    nothing = Outcome(Kind.REFUSED, "verify", "the grid has no case, so nothing was verified")
    return Outcome(Kind.OK, "verify") if cases else nothing


def check_together(
    reference: Contract, subjects: Sequence[Subject], cases: Sequence[Sequence[Case]], vlen: int, seed: Seed
) -> tuple[Verdict, ...]:
    """As `check`, of several entries of one program in one process. cases: for each subject."""
    given = zip(subjects, cases, strict=True)
    calls = [_calls(reference, one, own, range(len(own)), vlen, seed) for one, own in given]
    each = zip(subjects, cases, calls, strict=True)
    sent = [[subject.sent(own[i].problem, call) for i, call in given] for subject, own, given in each]
    replies = execute_together(subjects, sent, vlen)
    found = zip(subjects, cases, calls, replies, strict=True)
    return tuple(_judged(reference, *one, vlen, seed) for one in found)


def _calls(
    reference: Contract, subject: Subject, cases: Sequence[Case], numbers: range, vlen: int, seed: Seed
) -> Calls:
    """The calls of the cases with these numbers."""
    if subject.answers is not None:
        return [(i, subject.call(reference, cases[i], seed.stream(MEASURED), vlen)) for i in numbers]
    calls = [(i, subject.call(reference, cases[i], seed.stream(_INPUTS, vlen, i), vlen)) for i in numbers]
    return with_changed(cases, calls, reference, seed.stream(_AGAIN, vlen, numbers.start))


def _judged(
    reference: Contract,
    subject: Subject,
    cases: Sequence[Case],
    calls: Calls,
    replies: Sequence[Reply],
    vlen: int,
    seed: Seed,
) -> Verdict:
    threads, answers = subject.guest.threads, subject.answers
    errors: list[float] = []
    before = -1
    for (i, given), reply in zip(calls, replies, strict=True):
        case, found = cases[i], reply.outcome
        if found.ok:
            if answers is None:
                judged = reference.judge(case.problem, given, reply.outputs)
            else:
                judged = answers.judge(case.problem, given, CallOutput(reply.outputs))
            errors.append(judged.worst)
            found = judged
        if not found.ok:
            place = f"case {i + 1} of {len(cases)}, {case.label}"
            place += ", called again with one element changed" if i == before else ""
            place += (f", VLEN {vlen}" if vlen else "") + (f", {threads} threads" if threads > 1 else "")
            message = f"{found.message} ({place}, seed {seed})"
            failed = Outcome(found.kind, "verify", message, found.log)
            return Verdict(failed, vlen, i + 1, str(seed), tuple(errors), threads, case=case)
        before = i
    return Verdict(_passed(cases), vlen, len(cases), str(seed), tuple(errors), threads)


Calls = list[tuple[int, Call]]  # (number of the case, its call)


def with_changed(cases: Sequence[Case], calls: Calls, reference: Contract, rng: np.random.Generator) -> Calls:
    """The calls; AGAIN of them are repeated at the same addresses with one element of each input changed in turn.

    A kernel that reuses results of an earlier, similar call fails here.
    """
    able = [
        (i, call) for i, call in calls if cases[i].distribution == "normal" and all(map(math.isfinite, call.scalars))
    ]
    able = [(i, call) for i, call in able if _inputs(call) and 0 < reference.work(cases[i].problem) < MOST]
    again: dict[int, Calls] = {}
    for i, call in (able[at] for at in rng.permutation(len(able))):
        made = []
        for place in _inputs(call):
            changed = _changed(call, place, cases[i].problem, reference, rng)
            if changed is not None:
                call = changed
                made.append((i, call))
        if made:
            again[i] = made
        if len(again) == AGAIN:
            break
    return [one for i, call in calls for one in ((i, call), *again.get(i, ()))]


def _inputs(call: Call) -> list[int]:
    """Indices of the read-only buffers; [] if one has fewer than LEAST elements."""
    found = [i for i, buffer in enumerate(call.buffers) if buffer.access is Access.IN and buffer.data.size]
    return found if all(call.buffers[i].data.size >= LEAST for i in found) else []


def _changed(call: Call, place: int, problem: Problem, reference: Contract, rng: np.random.Generator) -> Call | None:
    """The call with one element changed (other sign, or another integer), such that the expected result changes.

    It is neither the first nor the last element. None if a few tries find none, as in an unused input.
    """
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
    """One verdict for each number of threads, up to the first failure; none without cases.

    with_threads: number of threads -> the product that uses them; cases: large enough for all threads
    Each case is checked, then one call is repeated and its outputs compared bit by bit. This finds sums whose order
    depends on timing, and elements that two threads write.
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
    """Compares the bits of repeated calls' outputs."""
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
