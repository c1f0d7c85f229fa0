"""Does the order of a search's cheap measurements agree with the whole suite's? Kendall's tau, by recorded trials.

    python benchmarks/fidelities.py record PLATFORM FILE [--count N] [--dtype f32] [--seed S] [--seconds S]
    python benchmarks/fidelities.py tau FILE [FILE ...]

`record` draws blockings of random kernels, spread evenly over the templates, and appends a line for each that passed:
its cost on each problem at each VLEN. `tau` prints for the first problems, from the cheapest on, their share of the
work and how the geometric mean over them orders the recorded blockings, against that over all problems.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from tensorop.author import offline
from tensorop.backends import reach
from tensorop.errors import JobError
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.trial import Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.trial.trial import Evaluator, Prepared

OPERATOR, SUITE = "gemm", "quick"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("record")
    one.add_argument("platform")
    one.add_argument("file", type=Path)
    one.add_argument("--count", type=int, default=200)
    one.add_argument("--dtype", default="f32")
    one.add_argument("--seed", type=int, default=0)
    one.add_argument("--jobs", type=int, default=2)
    one.add_argument("--seconds", type=float, default=math.inf)
    one.set_defaults(run=record)
    other = commands.add_parser("tau")
    other.add_argument("files", nargs="+", type=Path)
    other.set_defaults(run=tell)
    given = parser.parse_args()
    given.run(given)


def record(given: argparse.Namespace) -> None:
    """Measures blockings until there are so many or the time is up."""
    operator = operators.load(OPERATOR, ())
    target = reach(platforms.load(given.platform, ()), None, ())
    shapes = tuple(dict.fromkeys((*map(tuple, operator.suites[SUITE]), *operator.probes)))
    found = problems.for_search(operator, given.dtype, shapes, target.means)
    rng, until = random.Random(given.seed), time.monotonic() + given.seconds
    with tempfile.TemporaryDirectory() as work, given.file.open("a", encoding="utf-8") as out:
        seed = Seed.draw(given.seed)
        evaluator = Evaluator(operator, target, given.dtype, Stage.BLOCKING, found, seed, Path(work))
        spaces = [
            (template, instantiate.micro_space(target.platform, template, given.dtype))
            for template in offline.templates(operator.folder, operator.name, operator.added)
            if not instantiate.missing_primitives(target.platform, template, given.dtype)
        ]

        def drawn() -> Variant:
            while True:
                template, points = rng.choice(spaces)
                kernel = Kernel(template, given.dtype, points.at(rng.randrange(points.size)))
                try:
                    space = instantiate.blocking_space(operator, target.platform, kernel)
                except JobError:  # no blocking fits its tile
                    continue
                return Variant(kernel, space.at(rng.randrange(space.size)))

        def measured(variant: Variant) -> dict[str, Any] | None:
            if time.monotonic() > until:
                return None
            trial = Trial(variant.id, 0, Stage.BLOCKING, variant)
            made = evaluator.prepare(trial)
            ended = evaluator.measure(trial, made) if isinstance(made, Prepared) else made
            if not ended.outcome.ok:
                return None
            costs = {
                label: {str(vlen): samples.at(vlen) for vlen in target.configurations}
                for label, samples in ended.score.per_problem.items()
            }
            works = {p.label: operator.reference.work(p) for p in found}
            return {"platform": given.platform, "variant": variant.id, "template": variant.template.name,
                    "kernel": dict(variant.kernel.configuration), "blocking": dict(variant.blocking),
                    "work": works, "costs": costs}  # fmt: skip

        with ThreadPoolExecutor(given.jobs) as pool:
            for row in pool.map(measured, [drawn() for _ in range(given.count)]):
                if row is not None:
                    out.write(json.dumps(row) + "\n")
                    out.flush()


def tell(given: argparse.Namespace) -> None:
    """Prints the table."""
    rows = [json.loads(line) for file in given.files for line in file.read_text(encoding="utf-8").splitlines()]
    works = rows[0]["work"]
    labels = sorted(works, key=works.__getitem__)
    whole = [cost(row, labels) for row in rows]
    total = sum(works.values())
    print(f"{len(rows)} blockings, {len(labels)} problems")
    print("problems  of the work  tau   tau of the better half")
    better = sorted(range(len(rows)), key=whole.__getitem__)[: len(rows) // 2]
    for count in range(1, len(labels) + 1):
        part = [cost(row, labels[:count]) for row in rows]
        share = sum(works[label] for label in labels[:count]) / total
        half = tau([part[i] for i in better], [whole[i] for i in better])
        print(f"{count:8d}  {share:10.1%}  {tau(part, whole):.3f}  {half:.3f}")


def cost(row: dict[str, Any], labels: Sequence[str]) -> float:
    """The geometric mean of a recorded blocking's cost for an operation, over problems and VLENs; as its logarithm."""
    each = [math.log(value / row["work"][label]) for label in labels for value in row["costs"][label].values()]
    return math.fsum(each) / len(each)


def tau(one: Sequence[float], other: Sequence[float]) -> float:
    """Kendall's tau-b of two rankings of the same things."""
    same = [0, 0]
    both = pairs = 0
    for i in range(len(one)):
        for j in range(i):
            a, b = one[i] - one[j], other[i] - other[j]
            pairs += 1
            same[0] += a == 0
            same[1] += b == 0
            both += (a * b > 0) - (a * b < 0)
    scale = math.sqrt((pairs - same[0]) * (pairs - same[1]))
    return both / scale if scale else 0.0


if __name__ == "__main__":
    main()
