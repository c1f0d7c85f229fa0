"""Runs a grid of cases on a target and judges every reply, to the first failure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tensorop.model.call import Left
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.operator import Operator
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed, Verdict
from tensorop.verify.answers import Answers
from tensorop.verify.subject import Subject

BATCH = 256  # calls a process: few enough to stop early, enough to make its start cheap

# Streams of the seed, so that grids, inputs and VLENs are independent of each other.
_SIZES, _INPUTS, _SAME_INPUTS = 0, 1, 5

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


def full(operator: Operator, dtype: str, tiles: Mapping[int, Mapping[str, int]], blocking: Mapping[str, int]) -> Grid:
    """The operator's whole grid, for winners. blocking: as the operator names it."""
    return lambda vlen, seed: operator.reference.full_grid(dtype, tiles[vlen], blocking, seed.stream(_SIZES, vlen))


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


def check(
    reference: Contract,
    subject: Subject,
    cases: Sequence[Case],
    vlen: int,
    seed: Seed,
    threads: int = 1,
    answers: Answers | None = None,
) -> Verdict:
    """Calls and judges each case with inputs of its own; the message names case, VLEN and seed of the first failure.

    answers: of large problems, whose inputs are then the same at every VLEN, so that the oracle is asked once.
    """
    if not cases:  # whoever has tried nothing has found nothing right
        nothing = Outcome(Kind.REFUSED, "verify", "the grid has no case, so nothing was verified")
        return Verdict(nothing, vlen, 0, str(seed), 0.0, threads)
    worst = 0.0
    for start in range(0, len(cases), BATCH):
        batch = cases[start : start + BATCH]
        path = (_INPUTS, vlen) if answers is None else (_SAME_INPUTS,)
        streams = [seed.stream(*path, start + i) for i in range(len(batch))]
        calls = [subject.call(reference, case, rng, vlen) for case, rng in zip(batch, streams, strict=True)]
        replies = subject.execute(calls, vlen)
        for i, (case, given, reply) in enumerate(zip(batch, calls, replies, strict=True)):
            found: Outcome = reply.outcome
            if found.ok:
                if answers is None:
                    judged = reference.judge(case.problem, given, reply.outputs)
                else:
                    judged = answers.judge(case.problem, given, Left(reply.outputs))
                worst, found = max(worst, judged.worst), judged
            if not found.ok:
                place = f"case {start + i + 1} of {len(cases)}, {case.label}"
                place += (f", VLEN {vlen}" if vlen else "") + (f", {threads} threads" if threads > 1 else "")
                message = f"{found.message} ({place}, seed {seed})"
                failed = Outcome(found.kind, "verify", message, found.log)
                return Verdict(failed, vlen, start + i + 1, str(seed), worst, threads, case=case)
    return Verdict(Outcome(Kind.OK, "verify"), vlen, len(cases), str(seed), worst, threads)
