"""With several threads: correct still, and the same bits every time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from tensorop.model.call import Reply
from tensorop.model.case import Case
from tensorop.model.operator import Operator
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed, Verdict
from tensorop.verify.grid import check
from tensorop.verify.subject import Subject

# A stream of the seed of its own, beside those of the grids.
_REPEAT = 2
REPEATS = 3


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
