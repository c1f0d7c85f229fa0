"""Draws shapes that no search has seen, as many of each class of problems.

    tensorop bench DIR --shapes $(python -m benchmarks.drawn gemm --count 40 --seed 1)

With `--against openblas,onednn,mkl,blis,libxsmm --format json`, this is a record against the best of five libraries
(benchmarks/records.py). Sides are log-uniform from 1 to 2048, or as operator.yaml has them `drawn`. Shapes of the
operator's suites and probes, which searches measure, are drawn again.
"""

from __future__ import annotations

import argparse
import math
import random
import sys
from collections import defaultdict
from collections.abc import Iterator

import numpy as np

from benchmarks.unseen import LONGEST
from tensorop.errors import TensoropError, UsageError
from tensorop.model.operator import Operator
from tensorop.model.shape import Shape
from tensorop.space import problems
from tensorop.specs import operators

TRIES = 10_000  # shapes drawn before a class counts as empty


def drawn(operator: Operator, seed: int, count: int) -> list[Shape]:
    """The shapes, class by class. Raises UsageError if the operator names no classes, or if no shape is of a class."""
    names = [*operator.classes]
    if not names:
        raise UsageError(f"operator '{operator.name}' has no `classes`", hint="name shapes with --shapes")
    wanted = {name: len(range(at, count, len(names))) for at, name in enumerate(names)}
    found: dict[str, dict[Shape, None]] = defaultdict(dict)
    for shape in _legal(operator, seed):
        problem = problems.of(operator, operator.dtypes[0], shape)
        name = problems.classes(operator, [problem])[problem.label]
        if len(found[name]) < wanted.get(name, 0):
            found[name][shape] = None
        if all(len(found[name]) == number for name, number in wanted.items()):
            return [shape for name in names for shape in found[name]]
    lacking = ", ".join(name for name, number in wanted.items() if len(found[name]) < number)
    raise UsageError(f"too few of {TRIES} drawn shapes are of class {lacking}", hint="draw fewer with --count")


def _legal(operator: Operator, seed: int) -> Iterator[Shape]:
    """Legal shapes that no suite and no probe has."""
    rng, chosen = random.Random(seed), np.random.default_rng(seed)
    seen = {*operator.probes, *operator.clock_probes}.union(*operator.suites.values())
    for _ in range(TRIES):
        sides = [round(math.exp(rng.uniform(0, math.log(LONGEST)))) for _ in operator.dims]
        shape = operator.shapes.drawn_from(sides, chosen)
        if shape not in seen and not operator.shapes.wrong(shape):
            yield shape


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("operator", help="e.g. gemm")
    parser.add_argument("--count", type=int, default=40, help="shapes of all classes (default: %(default)s)")
    parser.add_argument("--seed", type=int, required=True, help="e.g. 1")
    given = parser.parse_args()
    try:
        operator = operators.load(given.operator)
        print(",".join(operator.shapes.text(shape) for shape in drawn(operator, given.seed, given.count)))
    except TensoropError as error:
        print(error.shown, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
