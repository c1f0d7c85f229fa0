"""Verifies a finished library's kernels on every path of their texts, for which each is called alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tensorop.author import offline
from tensorop.model.case import Case
from tensorop.model.kernel import Variant
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.trial.evaluator import EDGE_TILES, ITS_TILES, Evaluator, Prepared
from tensorop.verify import grid

TILES = ("-DTENSOROP_TILES",)  # the direct kernel's tiles have an entry only in a program without its measured one


def verified(evaluate: Evaluator, variant: Variant) -> tuple[Outcome, int]:
    """The verdict on all paths of all tiles of a variant's kernel and of its edge kernel, and the number of calls.

    evaluate: of a stage of blockings. A kernel that another operator lends is called as that operator's.
    """
    lender = evaluate.operator.kernels_of
    if lender is not None:
        evaluate = replace(evaluate, operator=lender)
        own = lender.blocking.values
        blocking = Point.of({name: value for name, value in variant.blocking.items() if name in own})
        variant = replace(variant, blocking=blocking)
    evaluate = evaluate.at(variant)
    prepared = evaluate.build(variant, TILES if variant.template.name == offline.DIRECT else ())
    if not isinstance(prepared, Prepared):
        return prepared.outcome, 0
    vlen = variant.kernel.vlen
    calls = evaluate.path_calls((vlen,) if vlen else evaluate.target.verify_vlens).every(variant)
    count = 0
    for entry, cases in zip((ITS_TILES, EDGE_TILES), calls, strict=False):
        subject = evaluate.tiles(variant, prepared.program, entry)
        found = {vlen: of for vlen, of in cases.items() if of}
        verdicts = grid.verify(evaluate.operator, subject, _given(found), [*found], evaluate.run.seed)
        count += sum(verdict.cases for verdict in verdicts)
        if not (outcome := grid.outcome(verdicts)).ok:
            return outcome, count
    return Outcome(Kind.OK, "verify"), count


def _given(cases: Mapping[int, Sequence[Case]]) -> grid.Grid:
    def at(vlen: int, seed: Seed) -> Sequence[Case]:
        return cases[vlen]

    return at
