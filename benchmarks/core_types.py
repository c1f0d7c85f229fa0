"""Judges and measures every core type of OpenBLAS on a platform, for the `baselines` of its file.

    python benchmarks/core_types.py rvv
    python benchmarks/core_types.py cortex-a76 --dtype f32 --measured 60

A core type that is wrong on one of many shapes and layouts is out for that dtype and VLEN. Those that are right are
measured, one thread, on the shapes of suite `quick` that are not too large for an emulator: all on the small ones, then
those near the best on the larger ones too. Prints a line a core type, dtype and VLEN, the fastest by geometric mean
first, and as YAML what the platform's file should say.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tensorop import errors
from tensorop.backends import reach
from tensorop.clocked import FINAL_PACE
from tensorop.commands import libraries
from tensorop.commands.contest import Contest
from tensorop.commands.libraries import LibraryUnderTest
from tensorop.measure import clock, statistics
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.platform import BaselineChoice
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.render import adapting
from tensorop.runners import session
from tensorop.runners.protocol import Check
from tensorop.space import problems
from tensorop.specs import operators, platforms

VARIABLE = "OPENBLAS_CORETYPE"
# By architecture, as driver/others/dynamic*.c of OpenBLAS 0.3.34 names them; what a build lacks is left out.
NAMES = {
    "riscv64": "RISCV64_GENERIC RISCV64_ZVL128B RISCV64_ZVL256B",
    "aarch64": "ARMV8 CORTEXA53 CORTEXA55 CORTEXA57 CORTEXA72 CORTEXA73 FALKOR THUNDERX THUNDERX2T99 TSV110 EMAG8180 "
    "NEOVERSEN1 NEOVERSEV1 NEOVERSEN2 THUNDERX3T110 VORTEX A64FX ARMV8SVE",
    "x86_64": "Nehalem Sandybridge Haswell Zen SkylakeX Cooperlake SapphireRapids",
}
NEAR = 1.1  # of the fastest on small shapes: who is measured on the larger ones
SMALL = 0.25  # of the most flops that are measured: where the small shapes end
ODD, LONGEST = 30, 200  # further shapes that are judged, and their longest side


@dataclasses.dataclass(frozen=True)
class Result:
    """A core type at a VLEN and dtype. wrong: of `judged` cases, `why` the first; mean: cost over the fastest's."""

    core: str
    vlen: int
    dtype: str
    judged: int
    wrong: int
    why: str
    costs: Mapping[str, float] = dataclasses.field(default_factory=dict)

    @property
    def key(self) -> tuple[int, str]:
        return self.vlen, self.dtype


def as_core(tested: LibraryUnderTest, contest: Contest, core: str) -> LibraryUnderTest:
    """The library told to be this core type."""
    choice = BaselineChoice({VARIABLE: core})
    return dataclasses.replace(tested, choices=dict.fromkeys(tested.choices, choice))


def known(tested: LibraryUnderTest, contest: Contest) -> list[str]:
    """The core types that this build has and this target runs."""
    platform = contest.target.platform
    found = []
    for core in NAMES[platform.arch].split():
        try:
            info = libraries.describe(as_core(tested, contest, core), contest.target.runner, platform.arch)
        except errors.JobError as error:
            print(f"{core}: {error.message}", flush=True)
            continue
        said = info.config.partition(";")[0].removeprefix("core ").partition(" at VLEN")[0]
        if said.lower() == core.lower():
            found.append(core)
        else:
            print(f"{core}: not in this build, which says {said}", flush=True)
    return found


def cases(contest: Contest, dtype: str, most: float) -> list[Problem]:
    """Suites and odd shapes, in every layout of the operator and with its first one's transposes."""
    operator, drawn = contest.operator, random.Random(2)
    suites = [shape for name in ("quick", "tiny") for shape in operator.suites.get(name, ())]
    shapes = [shape for shape in suites if problems.work(operator, dtype, shape) <= most]
    shapes += [tuple(round(LONGEST ** drawn.random()) for _ in operator.dims) for _ in range(ODD)]
    layouts = range(len(operator.layouts))
    return [problems.of(operator, dtype, s, i) for s, i in itertools.product(dict.fromkeys(shapes), layouts)]


def judge(
    contest: Contest, who: LibraryUnderTest, core: str, vlen: int, given: Sequence[tuple[Problem, object]]
) -> Result:
    """One core type at every case, without a board model."""
    calls = [contest.call(problem) for problem, _ in given]
    dtype = given[0][0].dtype
    replies = session.run(
        contest.target.runner,
        contest.program,
        [Check(call) for call in calls],
        guest=contest.guest((who,), dtype, vlen),
        timeout_s=600,
        give_up_after=1,
    )
    said: list[Outcome] = []
    for (problem, expected), call, reply in zip(given, calls, replies, strict=True):
        outcome = reply.outcome
        if outcome.ok:
            outcome = contest.operator.reference.judge(problem, call, reply.outputs, within=expected)
        if not outcome.ok:
            said.append(outcome)
    return Result(core, vlen, dtype, len(given), len(said), said[0].message if said else "")


def cost(contest: Contest, who: LibraryUnderTest, problem: Problem, vlen: int) -> float | str:
    """Modelled cycles or ns of one call, judged; or why there is none."""
    call = contest.call(problem)
    guest = contest.guest((who,), problem.dtype, vlen)
    target, runner = contest.target, contest.target.runner
    request = MeasureRequest(
        contest.program,
        [call],
        purpose=Purpose.COMPARISON,
        vlen=vlen,
        judge=lambda _, left: contest.judge(problem, call)(left),
        guest=dataclasses.replace(guest, cpu=runner.processor if contest.threads == 1 else -1),
    )
    if target.deterministic:
        request = dataclasses.replace(request, timeout_s=600, judged_by=contest.judged_by)
        measured = target.measure(request)
    else:
        measured = clock.measure(runner, request, FINAL_PACE)
    if isinstance(measured, Outcome):
        return measured.message
    return measured[0].samples.value if measured[0].verdict.ok else measured[0].verdict.message


def measure(
    contest: Contest, tested: LibraryUnderTest, results: Sequence[Result], wanted: Sequence[Problem], jobs: int
) -> list[Result]:
    """The results with the costs of these problems; one that is wrong in a measured call is out."""
    todo = [(result, problem) for result in results for problem in wanted if problem.dtype == result.dtype]

    def one(item: tuple[Result, Problem]) -> float | str:
        result, problem = item
        return cost(contest, as_core(tested, contest, result.core), problem, result.vlen)

    with ThreadPoolExecutor(jobs if contest.target.side_by_side else 1) as pool:
        costs = list(pool.map(one, todo))
    out = []
    for result in results:
        mine = {p.label: c for (r, p), c in zip(todo, costs, strict=True) if r is result}
        wrong = {label: c for label, c in mine.items() if isinstance(c, str)}
        told = result.why or next((f"{label}: {c}" for label, c in wrong.items()), "")
        more = {label: c for label, c in mine.items() if isinstance(c, float)}
        out.append(
            dataclasses.replace(result, wrong=result.wrong + len(wrong), why=told, costs={**result.costs, **more})
        )
    return out


def relative(result: Result, best: Result) -> float:
    """Geometric mean of the costs over those of another, on the problems that both have."""
    both = result.costs.keys() & best.costs.keys()
    return statistics.geomean(result.costs[label] / best.costs[label] for label in sorted(both))


def ranked(results: Sequence[Result]) -> list[Result]:
    """Those that are right, the fastest first."""
    right = [r for r in results if not r.wrong]
    return sorted(right, key=lambda r: relative(r, right[0]) if r.costs else 0.0)


def show(results: Sequence[Result]) -> None:
    """A table a VLEN and dtype, then the platform's lines."""
    print(
        "\n| VLEN | dtype | core type | wrong | cost | measured on | the first wrong |\n|---|---|---|---|---|---|---|"
    )
    lines = []
    for key in dict.fromkeys(r.key for r in results):
        here = [r for r in results if r.key == key]
        order = ranked(here)
        for r in (*order, *(r for r in here if r.wrong)):
            mean = f"{relative(r, order[0]):.3f}" if not r.wrong and r.costs else ""
            shapes = f"{len(r.costs)} shapes" if r.costs else ""
            print(f"| {r.vlen} | {r.dtype} | {r.core} | {r.wrong} of {r.judged} | {mean} | {shapes} | {r.why[:110]} |")
        if order:
            width = f"vlen_min: {r.vlen}, " if len({r.vlen for r in results}) > 1 else ""
            lines.append(f"    - {{{width}dtypes: [{key[1]}], environment: {{{VARIABLE}: {order[0].core}}}}}")
    print("\nbaselines:\n  openblas:\n" + "\n".join(lines))


def contest_of(
    name: str, plugins: tuple[Path, ...], dtypes: Sequence[str], threads: int
) -> tuple[Contest, LibraryUnderTest]:
    """A comparison of OpenBLAS with nobody."""
    platform = platforms.load(name, plugins)
    target = reach(platform, None)
    operator = operators.load("gemm", plugins)
    tested = libraries.bring("openblas", target, dtypes, threads)
    program = adapting.program(target.platform, operator).path
    return Contest(operator, target, program, tested, (), threads, False), tested


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform")
    parser.add_argument("--dtype", default="f32,f64")
    parser.add_argument("--cores", default="", help="these alone, e.g. ARMV8,CORTEXA57")
    parser.add_argument("--judged", type=float, default=60, metavar="MFLOP", help="largest shape judged (%(default)s)")
    parser.add_argument("--measured", type=float, default=60, metavar="MFLOP", help="largest measured (%(default)s)")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1, help="emulators side by side")
    parser.add_argument("--plugins", type=Path, action="append", default=[])
    given = parser.parse_args()
    dtypes = given.dtype.split(",")
    contest, tested = contest_of(given.platform, tuple(given.plugins), dtypes, given.threads)
    cores = [core for core in known(tested, contest) if not given.cores or core in given.cores.split(",")]
    results = []
    for dtype in dtypes:
        asked = [
            (p, contest.operator.reference.limits(p, contest.call(p)))
            for p in cases(contest, dtype, given.judged * 1e6)
        ]
        for core, vlen in itertools.product(cores, contest.target.vlens):
            found = judge(contest, as_core(tested, contest, core), core, vlen, asked)
            print(f"{core} VLEN {vlen} {dtype}: {found.wrong} of {found.judged} wrong {found.why[:110]}", flush=True)
            results.append(found)
    right = [r for r in results if not r.wrong]
    shapes = problems.within(contest.operator, dtypes[0], contest.operator.suites["quick"], given.measured * 1e6)
    every = [problems.of(contest.operator, dtype, shape) for dtype in dtypes for shape in shapes]
    small = [p for p in every if contest.flops(p) <= SMALL * given.measured * 1e6]
    right = measure(contest, tested, right, small, given.jobs)
    best = {key: ranked([r for r in right if r.key == key])[0] for key in {r.key for r in right if not r.wrong}}
    near = [r for r in right if not r.wrong and relative(r, best[r.key]) <= NEAR]
    again = measure(contest, tested, near, [p for p in every if p not in small], given.jobs)
    show([*again, *(r for r in right if r not in near), *(r for r in results if r.wrong)])


if __name__ == "__main__":
    main()
