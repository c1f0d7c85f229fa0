"""Does the order of a search's cheap measurements agree with the whole suite's? Kendall's tau, by recorded trials.

    python benchmarks/fidelities.py tau [FILE ...]
    python benchmarks/fidelities.py record PLATFORM FILE [--count N] [--dtype f32] [--seed S] [--jobs N] [--seconds S]

`tau` reads what is recorded in benchmarks/fidelities/ unless files are named, and prints for each cheap measurement how
it orders the points, against all problems at all VLENs. `record` draws random kernels, spread evenly over the
templates, and takes of each kind so many that passed: `kernel`, with the blocking that a search begins with, measured
alone on packed operands too; `blocking`, with a random one. It verifies them as a search does. A run that was ended
goes on where it was (FILE.part), and one that finds enough there writes the file; under a board model the same command
gives the same file.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import __version__
from tensorop.author import offline
from tensorop.backends import reach
from tensorop.errors import JobError
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Score, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate, prior
from tensorop.space import Space, problems, seeds
from tensorop.specs import operators, platforms
from tensorop.target import Target
from tensorop.trial import race
from tensorop.trial.trial import Evaluator, Prepared

HERE = Path(__file__).parent / "fidelities"
OPERATOR, SUITE = "gemm", "quick"
KINDS = ("kernel", "blocking")
AT_ONCE = 8  # draws between looks at how many passed


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
    other.add_argument("files", nargs="*", type=Path)
    other.set_defaults(run=lambda given: print("\n\n".join(map(told, given.files or sorted(HERE.glob("*.gz"))))))
    given = parser.parse_args()
    given.run(given)


@dataclass(frozen=True)
class Drawing:
    """Points of each kind, by their numbers. found: the problems, the cheapest first."""

    operator: Operator
    target: Target
    dtype: str
    seed: int
    found: Sequence[Problem]
    spaces: Sequence[tuple[KernelTemplate, Space]]
    alone: Evaluator
    whole: Evaluator

    def point(self, kind: str, number: int) -> Variant:
        rng = random.Random(f"{self.seed} {kind} {number}")
        while True:
            template, points = rng.choice(self.spaces)
            kernel = Kernel(template, self.dtype, points.at(rng.randrange(points.size)))
            try:
                space = instantiate.blocking_space(self.operator, self.target.platform, kernel)
            except JobError:  # no blocking fits its tile
                continue
            if kind == "blocking":
                return Variant(kernel, space.at(rng.randrange(space.size)))
            return Variant(kernel, seeds.around(prior.blocking(self.operator, self.target.platform, kernel), space)[0])

    def row(self, kind: str, number: int) -> dict[str, Any]:
        """What the file has of a point; without costs where it failed."""
        variant = self.point(kind, number)
        row: dict[str, Any] = {"kind": kind, "number": number, "template": variant.template.name}
        row |= {"kernel": dict(variant.kernel.configuration), "blocking": dict(variant.blocking)}
        if kind == "kernel":
            alone = measured(self.alone, Trial(variant.id, 0, Stage.MICRO, Variant(variant.kernel)))
            if alone is None or alone.cost is None:
                return row
            row["alone"] = rounded(alone.cost)
        figures = measured(self.whole, Trial(variant.id, 0, Stage.BLOCKING, variant))
        if figures is not None:
            at = self.target.vlens
            row["costs"] = [[rounded(figures.per_problem[p.label].at(vlen)) for vlen in at] for p in self.found]
        return row


def measured(evaluator: Evaluator, trial: Trial) -> Score | None:
    made = evaluator.prepare(trial)
    ended = evaluator.measure(trial, made) if isinstance(made, Prepared) else made
    return ended.score if ended.outcome.ok else None


def rounded(cost: float) -> float:
    return float(f"{cost:.6g}")


def record(given: argparse.Namespace) -> None:
    """Measures points until so many of each kind passed, then writes the file whole; or until the time is up."""
    operator = operators.load(OPERATOR, ())
    target = reach(platforms.load(given.platform, ()), None, ())
    shapes = tuple(dict.fromkeys((*map(tuple, operator.suites[SUITE]), *operator.probes)))
    found = problems.for_search(operator, given.dtype, shapes, target.budgets)
    found = tuple(sorted(found, key=operator.reference.work))
    spaces = [
        (template, instantiate.micro_space(target.platform, template, given.dtype))
        for template in offline.templates(operator.folder, operator.name, operator.added)
        if not instantiate.missing_primitives(target.platform, template, given.dtype)
    ]
    until, part = time.monotonic() + given.seconds, given.file.with_name(given.file.name + ".part")
    lines = part.read_text(encoding="utf-8").splitlines() if part.exists() else []
    rows = [json.loads(line) for line in lines]
    with tempfile.TemporaryDirectory() as work, part.open("a", encoding="utf-8") as out:
        seed = Seed.draw(given.seed)
        whole = Evaluator(operator, target, StageRun(given.dtype, Stage.BLOCKING, found, seed), Path(work))
        alone = Evaluator(operator, target, StageRun(given.dtype, Stage.MICRO, (), seed), Path(work))
        drawing = Drawing(operator, target, given.dtype, given.seed, found, spaces, alone, whole)
        with ThreadPoolExecutor(given.jobs) as pool:
            while (missing := tuple(lacking(rows, given.count))) and time.monotonic() < until:
                for row in pool.map(lambda one: drawing.row(*one), missing):
                    rows.append(row)
                    out.write(json.dumps(row) + "\n")
                    out.flush()
    if missing:
        return
    head = {"platform": given.platform, "operator": OPERATOR, "dtype": given.dtype, "suite": SUITE, "tool": __version__,
            "measured_by": target.measured_by, "seed": given.seed, "vlens": list(target.vlens),
            "work": {p.label: operator.reference.work(p) for p in found}}  # fmt: skip
    rows.sort(key=lambda row: (row["kind"], row["number"]))
    kept = [row for kind in KINDS for row in passed(rows, kind)[: given.count]]
    given.file.write_bytes(gzip.compress("".join(json.dumps(one) + "\n" for one in [head, *kept]).encode(), mtime=0))
    part.unlink()


def lacking(rows: Sequence[dict[str, Any]], count: int) -> Iterator[tuple[str, int]]:
    """The next points to draw, a few of each kind."""
    for kind in KINDS:
        drawn = {row["number"] for row in rows if row["kind"] == kind}
        if (few := min(AT_ONCE, count - len(passed(rows, kind)))) > 0:
            free = (number for number in range(len(drawn) + few) if number not in drawn)
            yield from ((kind, next(free)) for _ in range(few))


def passed(rows: Sequence[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [row for row in rows if row["kind"] == kind and "costs" in row]


def told(file: Path) -> str:
    """The table of a recorded file."""
    head, *rows = map(json.loads, gzip.decompress(file.read_bytes()).decode().splitlines())
    works, kernels, blockings = list(head["work"].values()), *(passed(rows, kind) for kind in KINDS)
    halts = race.halts(works)
    lines = [
        f"{head['platform']}, {head['operator']} {head['dtype']}, suite {head['suite']} and probes: {len(works)} "
        f"problems, VLEN {', '.join(map(str, head['vlens']))}; {head['measured_by']}",
        "measured                       of the work  points  tau    within a template  of the better half",
        line("kernels alone", 0.0, kernels, works, [math.log(row["alone"]) for row in kernels]),
    ]
    for count in halts:
        share = sum(works[:count]) / sum(works)
        for what, of in (("kernels", kernels), ("blockings", blockings)):
            part = [cost(row, works[:count]) for row in of]
            lines.append(line(f"{what}, {count} cheapest problems", share, of, works, part))
    return "\n".join(lines)


def line(what: str, share: float, rows: Sequence[dict[str, Any]], works: Sequence[float], part: Sequence[float]) -> str:
    whole, templates = [cost(row, works) for row in rows], [row["template"] for row in rows]
    better = sorted(range(len(rows)), key=whole.__getitem__)[: len(rows) // 2]
    half = tau([part[i] for i in better], [whole[i] for i in better])
    found = f"{tau(part, whole):.3f}  {tau(part, whole, templates):17.3f}  {half:.3f}"
    return f"{what:30s} {share:11.1%}  {len(rows):6d}  {found}"


def cost(row: dict[str, Any], works: Sequence[float]) -> float:
    """The logarithm of a point's cost for an operation in geometric mean, over the first problems, of all VLENs."""
    first = zip(row["costs"], works, strict=False)
    each = [math.log(value / work) for values, work in first for value in values]
    return math.fsum(each) / len(each)


def tau(one: Sequence[float], other: Sequence[float], groups: Sequence[str] | None = None) -> float:
    """Kendall's tau-b of two rankings of the same things; of pairs of one group where these are given."""
    same = [0, 0]
    both = pairs = 0
    for i in range(len(one)):
        for j in range(i):
            if groups is not None and groups[i] != groups[j]:
                continue
            a, b = one[i] - one[j], other[i] - other[j]
            pairs += 1
            same[0] += a == 0
            same[1] += b == 0
            both += (a * b > 0) - (a * b < 0)
    scale = math.sqrt((pairs - same[0]) * (pairs - same[1]))
    return both / scale if scale else 0.0


if __name__ == "__main__":
    main()
