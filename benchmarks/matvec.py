"""Times matrix by vector and by a few vectors beside a loop that only reads the matrix, and cubes beside multiply-adds.

    python -m benchmarks.matvec DIR [--dtype f32] [--sides 256x256 4096x8192] [--few 1 2 4 8] [--cubes 512 1024]

DIR is a finished product. Each row is a product of few rows (few x columns x rows of the matrix) or of few columns,
with the matrix as it is or transposed. The library, the loop (benchmarks/matvec.c, compiled with the platform's flags)
and OpenBLAS are timed in turns on one thread; the shortest round of each counts, and OpenBLAS's fastest function. GB/s
are the matrix's bytes over our time; the columns `loop` and `openblas` are their time over ours. For a cube the loop
makes its multiply-adds in registers.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop.commands import libraries, opened
from tensorop.commands.contest import Contest
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.errors import JobError, TensoropError
from tensorop.measure import statistics
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.kernel import Source
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.model.winner import by_operator, trees_of
from tensorop.package.library import SharedLibrary, compile_member, shared_library
from tensorop.render import adapting
from tensorop.report import choices
from tensorop.runners.protocol import Entry
from tensorop.space import problems
from tensorop.target import Target
from tensorop.toolchain import tool

LOOP = "matvec.c"
SIDES = ("64x64", "256x256", "512x512", "1024x1024", "4096x8192")  # rows x columns
SIZE = {"f32": 4, "f64": 8}
PLAIN, B_TRANSPOSED, A_TRANSPOSED = 0, 1, 2  # numbers of the operator's layouts


@dataclass(frozen=True)
class Line:
    """One product. matrix: bytes; speed: GB/s; the others are ratios of costs to ours."""

    kind: str
    problem: Problem
    matrix: int
    speed: float
    loop: float
    openblas: float
    served: str

    def __str__(self) -> str:
        kib = f"{self.matrix / 1024:.0f}"
        ratios = f"{self.loop:6.2f}  {self.openblas:8.2f}"
        return f"{self.problem.label:<32} {self.kind:<20} {kib:>7} {self.speed:7.1f} {ratios}  {self.served}"


def read_loop(platform: Platform) -> LibraryUnderTest:
    """The loop as a shared library with the names of CBLAS. Raises JobError."""
    source = Source(((LOOP, (Path(__file__).parent / LOOP).read_text(encoding="utf-8")),))
    member = compile_member(source, platform, "read.o")
    names = SharedLibrary("libread.so", "libread.so", ("cblas_sgemm", "cblas_dgemm"))
    made = member if isinstance(member, Outcome) else shared_library([member], platform, names)
    return LibraryUnderTest("read", tool.required(made, LOOP).path, "cblas")


def products(
    sides: Sequence[str], few: Sequence[int], cubes: Sequence[int]
) -> Iterator[tuple[str, tuple[int, int, int], int]]:
    """(kind, shape, layout) of each product. The stored matrix has `rows` lines of `columns`."""
    for side in cubes:
        yield "cubes", (side, side, side), PLAIN
    for text in sides:
        rows, columns = map(int, text.split("x"))
        for count in few:
            yield "rows, B", (count, columns, rows), PLAIN
            yield "rows, B transposed", (count, rows, columns), B_TRANSPOSED
            yield "columns, A", (rows, count, columns), PLAIN
            yield "columns, A transposed", (columns, count, rows), A_TRANSPOSED


class Timed:
    """A product beside the loop and OpenBLAS."""

    def __init__(self, folder: Path) -> None:
        self.found = opened.open_product(folder)
        self.target: Target = self.found.reach()
        if self.target.deterministic:
            raise JobError(
                f"{folder} is for a board model, which reads no memory", hint="use a product for this machine"
            )
        self.read = read_loop(self.found.platform)
        self.manifest = by_operator(json.loads((folder / opened.SHARE / "manifest.json").read_text(encoding="utf-8")))

    def lines(self, dtype: str, wanted: Sequence[tuple[str, tuple[int, int, int], int]]) -> Iterator[Line]:
        operator, target = self.found.operator, self.target
        program = adapting.program(self.found.platform, operator).path
        openblas = libraries.bring("openblas", target, (dtype,), 1)
        contest = Contest(
            operator, target, program, libraries.ours(operator, self.found.library, 1), (openblas,), 1, True
        )
        contest.open(dtype)
        for kind, shape, layout in wanted:
            yield self._line(contest, kind, problems.of(operator, dtype, shape, layout))

    def _line(self, contest: Contest, kind: str, problem: Problem) -> Line:
        theirs = contest.functions(contest.baselines[0], problem)
        who = [contest.ours, self.read, *theirs]
        request = MeasureRequest(
            contest.program,
            [contest.call(problem)],
            [Entry(number) for number in range(len(who))],
            Purpose.FINAL,
            self.target.vlens[0],
            empty=contest.short(problem),
            guest=contest.guest(who, problem.dtype, self.target.vlens[0]),
        )
        measured = self.target.measure(request)
        if isinstance(measured, Outcome):
            raise JobError(f"{problem.label}: {measured.message}")
        mine, read, *others = [min(one.rounds) for one in measured]  # other programs only add to times
        size = problem.sizes
        matrix = max(size["m"], size["n"]) * size["k"] * SIZE[problem.dtype]
        return Line(kind, problem, matrix, matrix / mine, read / mine, min(others) / mine, self._served(problem))

    def _served(self, problem: Problem) -> str:
        winners = self.manifest[self.found.operator.name]["dtypes"][problem.dtype]
        number = choices.variant_of(self.found.operator, problem, trees_of(winners)[0], winners)
        return f"{number} {winners['variants'][number]['template']}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--dtype", nargs="+", choices=SIZE, default=[*SIZE])
    parser.add_argument(
        "--sides", nargs="+", default=SIDES, help="stored matrices, rows x columns (default: %(default)s)"
    )
    parser.add_argument(
        "--few", nargs="*", type=int, default=[1, 2, 4, 8], help="rows or columns (default: %(default)s)"
    )
    parser.add_argument("--cubes", nargs="*", type=int, default=[], help="sides of cubes (default: none)")
    given = parser.parse_args()
    try:
        timed = Timed(given.folder)
        print(f"{'product':<32} {'kind':<20} {'KiB':>7} {'GB/s':>7} {'loop':>6}  {'openblas':>8}  variant")
        by_kind: dict[str, list[Line]] = defaultdict(list)
        for dtype in given.dtype:
            for line in timed.lines(dtype, [*products(given.sides, given.few, given.cubes)]):
                by_kind[line.kind].append(line)
                print(line, flush=True)
    except TensoropError as error:
        print(error.shown, file=sys.stderr)
        return 1
    for kind, lines in by_kind.items():
        for name in ("loop", "openblas"):
            least = min(lines, key=lambda line: getattr(line, name))
            mean = statistics.geomean(getattr(line, name) for line in lines)
            lowest = f"lowest {getattr(least, name):.2f} at {least.problem.label}"
            print(f"{kind}, of {name}: {mean:.2f} in geometric mean, {lowest}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
