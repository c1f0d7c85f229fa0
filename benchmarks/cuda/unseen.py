"""Judges the choice of a GPU product on drawn problems. Its kit times them; no search saw them.

    tensorop export DIR --probes 0 --shapes $(python -m benchmarks.cuda.unseen draw --seed 1)
    python -m benchmarks.cuda.unseen judge RESULT.jsonl [...]

Sides are log-uniform, the first from 1 and the others from 16, up to 16384; a problem has at most 3e11 multiply-adds.
Sides are multiples of 8, with --unaligned odd. For each layout of each file, `judge` prints how many times faster than
the fastest of cuBLASLt's answers the chosen kernel is and the fastest kernel that the library carries, and the regret:
the time of the chosen kernel over that of the fastest one, less 1.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any

from tensorop.cuda.kit import LARGEST
from tensorop.errors import TensoropError
from tensorop.kits import result, rows
from tensorop.model.operator import Operator
from tensorop.specs import operators

MOST = 14  # doublings of a side


def drawn(operator: Operator, seed: int, count: int, aligned: bool) -> Iterator[tuple[int, ...]]:
    """Shapes by their sizes; the same for every product."""
    rng = random.Random(seed)
    while count:
        sides = [round(2 ** rng.uniform(4 if at else 0, MOST)) for at, _ in enumerate(operator.dims)]
        shape = tuple(-(-side // 8) * 8 if aligned else side | 1 for side in sides)
        if math.prod(shape) <= LARGEST and not operator.shapes.wrong(shape):
            yield shape
            count -= 1


@dataclass(frozen=True)
class UnseenTiming:
    """The fastest times of a problem, in us. baseline: None without one"""

    dtype: str
    layout: str
    text: str
    chosen: float
    carried: float
    baseline: float | None


def timings(found: Iterable[rows.KitRow]) -> Iterator[UnseenTiming]:
    """Those of problems that the chosen kernel was timed on."""
    for row in found:
        if not isinstance(row, rows.TimedOnDevice):
            continue
        us = [(arm, median(arm.us)) for arm in row.arms if arm.us]
        own = {arm.variant: time for arm, time in us if arm.variant is not None}
        baseline = [time for arm, time in us if arm.answer]
        if row.chosen in own:
            layout = "".join("NT"[int(value)] for value in reversed(row.of.options.values()))
            text = "x".join(str(size) for size in row.of.dims.values())
            times = own[row.chosen], min(own.values()), min(baseline, default=None)
            yield UnseenTiming(row.of.dtype, layout, text, *times)


def lines(found: Sequence[UnseenTiming]) -> Iterator[str]:
    """A table: a row for each type and layout."""
    each: dict[tuple[str, str], list[UnseenTiming]] = defaultdict(list)
    for one in found:
        each[one.dtype, one.layout].append(one)
    yield "| type | layout | problems | chosen | lowest | fastest carried | regret |"
    yield "|---|---|---|---|---|---|---|"
    for (dtype, layout), these in sorted(each.items()):
        compared = [(one, one.baseline) for one in these if one.baseline is not None]
        regret = geometric_mean([one.chosen / one.carried for one in these]) - 1
        cells = ["-"] * 3
        if compared:
            lowest, at = min((baseline / one.chosen, one.text) for one, baseline in compared)
            chosen = geometric_mean([baseline / one.chosen for one, baseline in compared])
            carried = geometric_mean([baseline / one.carried for one, baseline in compared])
            cells = [f"{chosen:.2f}", f"{lowest:.2f} ({at})", f"{carried:.2f}"]
        yield f"| {' | '.join((dtype, layout, str(len(these)), *cells, f'{regret:.1%}'))} |"


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    draw = commands.add_parser("draw", help="print shapes for --shapes")
    draw.add_argument("--operator", default="gemm", help="(default: %(default)s)")
    draw.add_argument("--count", type=int, default=15, help="(default: %(default)s)")
    draw.add_argument("--seed", type=int, required=True, help="e.g. 1")
    draw.add_argument("--unaligned", action="store_true", help="draw odd sides")
    judge = commands.add_parser("judge", help="print a table of each file of results")
    judge.add_argument("files", nargs="+", type=Path, metavar="RESULT.jsonl")
    given: Any = parser.parse_args(words)
    try:
        if given.command == "draw":
            operator = operators.load(given.operator)
            shapes = drawn(operator, given.seed, given.count, not given.unaligned)
            print(",".join(operator.shapes.text(shape) for shape in shapes))
            return 0
        for file in given.files:
            print(f"{file}:")
            print(*lines([*timings(result.typed(file).rows)]), sep="\n")
    except TensoropError as error:
        print(error.shown, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
