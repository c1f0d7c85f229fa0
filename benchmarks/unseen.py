"""Judges a product's dispatch on shapes nobody measured: 60 a seed, of random sides, layouts and dtypes.

    python benchmarks/unseen.py DIR --seed 1 2 3 [--jobs 2] [--limit 2e8] [--ratios] [--json]

Sides are log-uniform from 1 to 2048 or as operator.yaml has them `drawn`, layouts the operator's, dtypes f32 and f64
(those the library holds). Every variant that the search's last stage measured is built from the journal into a
library of its own, carried or not, and forced there. The regret of a shape is the cost of the variant that the
product chooses over the cheapest of all of them; on a clock the cheapest is picked on one half of the rounds and both
are read from the other half, and a shape beyond a bar is measured twice more, of which the median counts. Ratios are
OpenBLAS's cost over ours. Modelled counts are remembered in the user's cache, so that a second run is quick.

The exit status is 1 when a bar is missed.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import hashlib
import json
import math
import os
import random
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from tensorop import paths
from tensorop.author import offline
from tensorop.backends import qemu, reach
from tensorop.clocked import FINAL_PACE
from tensorop.commands import bench, opened
from tensorop.errors import TensoropError
from tensorop.measure import board, clock, statistics
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.call import Call
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Outcome, Stage
from tensorop.model.verdict import Seed
from tensorop.model.winner import Leaf, Tree, Winners, by_operator, trees_of
from tensorop.package import product, publish
from tensorop.package.sources import OperatorPart
from tensorop.render import adapting, instantiate
from tensorop.report import choices
from tensorop.runners.protocol import Entry, TargetLibrary
from tensorop.runners.session import Guest
from tensorop.space import problems
from tensorop.store import journal
from tensorop.store.history import History
from tensorop.trial.calls import measured_call

SHAPES, LONGEST = 60, 2048
DTYPES = ("f32", "f64")
SMALL = 4096  # multiply-adds up to which a shape is held to the bars of tiny ones
NOTE = "dispatch"  # in the journal: what the last stage measured
REGRET, FAR, FAR_SHARE = 0.05, 0.30, 0.98  # geomean; at most FAR on so many of the shapes
FASTER = {"spacemit-k1": 1.9, "avx512": 1.1, "cortex-a53": 1.1}  # than OpenBLAS in f32, in geometric mean
BELOW, BELOW_SHARE, LOWEST = 0.9, 0.02, 0.75  # of OpenBLAS, above SMALL
TINY, TINY_LOWEST = 0.9, 0.7
CHOOSING = 0.02  # of the time: what forcing the variant that was chosen may save, above SMALL
AGAIN = 2  # times more a shape beyond FAR or CHOOSING is measured on a clock; the median counts


@dataclass(frozen=True)
class Case:
    """A drawn shape. layout: number of the operator's; work: flops."""

    seed: int
    shape: tuple[int, ...]
    layout: int
    problem: Problem
    work: float


@dataclass(frozen=True)
class Found:
    """One case at a VLEN (bits; 0 where a clock measured).

    variant, best: numbers among all variants; regret: a share; choosing: the share of the cost that forcing saves;
    costs: of all variants, on a clock the medians
    """

    seed: int
    problem: str
    dtype: str
    vlen: int
    madds: float
    variant: int
    best: int
    regret: float
    choosing: float
    costs: tuple[float, ...] = ()
    ratio: float | None = None
    called: str | None = None  # the baseline's function, where it has several


def draw(found: opened.Opened, seed: int, count: int) -> list[Case]:
    """The cases of a seed; the same whatever the limits are."""
    rng, chosen = random.Random(seed), np.random.default_rng(seed)
    operator, dtypes = found.operator, [dtype for dtype in DTYPES if dtype in found.dtypes]
    cases: list[Case] = []
    while len(cases) < count:
        sides = [round(math.exp(rng.uniform(0, math.log(LONGEST)))) for _ in operator.dims]
        shape = operator.shapes.drawn_from(sides, chosen)
        if operator.shapes.wrong(shape):
            continue
        layout = rng.randrange(len(operator.layouts))
        problem = problems.of(operator, rng.choice(dtypes), shape, layout)
        cases.append(Case(seed, shape, layout, problem, float(operator.reference.work(problem))))
    return cases


class Judge:
    """A product beside the library of all variants of its last stage."""

    def __init__(self, found: opened.Opened, folder: Path, place: Path) -> None:
        self.found, self.target = found, reach(found.platform, None)
        manifest = json.loads((folder / opened.SHARE / "manifest.json").read_text(encoding="utf-8"))
        self.manifest = by_operator(manifest)[found.operator.name]
        history = journal.read(folder)
        self.all = {dtype: finalists(found.operator, history, self.manifest, dtype) for dtype in found.dtypes}
        winners = [self._winners(dtype, variants) for dtype, variants in self.all.items()]
        made = product.product(found.platform, [OperatorPart(found.operator, winners)])
        self.whole = publish.publish(publish.stage(made, place), place) / made.library
        self.program = adapting.program(found.platform, found.operator).path
        self.slot = found.operator.reference.variant_flag
        self.seed = Seed.draw(0)

    def _winners(self, dtype: str, variants: Sequence[Variant]) -> Winners:
        if "direct" not in self.manifest["dtypes"][dtype]:
            return Winners(dtype, tuple(variants), self._trees())
        return Winners(dtype, tuple(variants[:-1]), self._trees(), variants[-1])

    def _trees(self) -> tuple[Tree, ...]:
        """One a VLEN, so that variants keep their specialisations; nobody asks them."""
        vlens = self.target.vlens
        return tuple(Tree(Leaf(0), 0.0, vlen) for vlen in vlens) if len(vlens) > 1 else (Tree(Leaf(0)),)

    def judge(self, case: Case) -> list[Found]:
        return (
            [self._modelled(case, vlen) for vlen in self.target.vlens]
            if self.target.deterministic
            else [self._timed(case)]
        )

    def unjudged(self, case: Case) -> list[Found]:
        """The case without its regret."""
        vlens = self.target.vlens if self.target.deterministic else (0,)
        return [self._found(case, vlen, 0, 0, math.nan, math.nan, ()) for vlen in vlens]

    def _chosen(self, case: Case, vlen: int) -> tuple[int, int]:
        """Which variant the product chooses: its number there, and among all."""
        winners = self.manifest["dtypes"][case.problem.dtype]
        trees = trees_of(winners)
        tree = [tree for tree in trees if tree.vlen <= vlen][-1] if len(trees) > 1 else trees[0]
        number = choices.variant_of(self.found.operator, case.problem, tree, winners)
        carried = winners["variants"][number]
        return number, [variant.id for variant in self.all[case.problem.dtype]].index(carried["id"])

    def _forced(self, case: Case) -> range:
        """The variants that may be forced on a case: the direct one, the last, serves only small ones."""
        dtype = case.problem.dtype
        direct = self.manifest["dtypes"][dtype].get("direct")
        small = direct is None or direct.served(self.found.operator, self.found.platform, case.problem)
        return range(len(self.all[dtype]) - (not small))

    def _guest(self, *libraries: Path, dtype: str) -> Guest:
        placed = tuple(TargetLibrary(self.target.runner.place(path), "tensorop", dtype) for path in libraries)
        return Guest(libraries=placed, cpu=self.target.runner.processor)

    def _modelled(self, case: Case, vlen: int) -> Found:
        number, among = self._chosen(case, vlen)
        call = measured_call(self.found.operator, case.problem, self.seed, 0)

        def count(library: Path, variants: Sequence[int], warm: int) -> list[float]:
            return [self._count(library, case, call, vlen, variant, warm) for variant in variants]

        costs = count(self.whole, self._forced(case), 1)
        # the first call chooses, and leaves the caches otherwise than a forced one does: the third is the steady one
        free, forced = count(self.found.library, (-1, number), 2)
        best = min(range(len(costs)), key=costs.__getitem__)
        return self._found(case, vlen, among, best, costs[among] / costs[best] - 1, 1 - forced / free, costs)

    def _count(self, library: Path, case: Case, call: Call, vlen: int, variant: int, warm: int) -> float:
        """Modelled cycles, remembered by everything that goes into them."""
        made_of = (self._model(vlen), _digest(library), _digest(self.program), vlen, case.problem.label, variant, warm)
        kept = paths.cache_dir("unseen") / f"{hashlib.sha256(repr(made_of).encode()).hexdigest()[:24]}.json"
        with contextlib.suppress(OSError, ValueError):
            return float(json.loads(kept.read_text(encoding="utf-8")))
        guest = self._guest(library, dtype=case.problem.dtype)
        entry = Entry(0, (self.slot, variant))
        request = MeasureRequest(self.program, [call], [entry], Purpose.CHOICE, vlen, [warm], guest=guest)
        measured = self.target.measure(replace(request, timeout_s=self.target.budgets.deadline(case.work)))
        if isinstance(measured, Outcome):
            raise SystemExit(f"{case.problem.label}: {measured.message}")
        cycles = measured[0].samples.value
        part = kept.with_suffix(f".{os.getpid()}-{threading.get_ident()}")
        part.write_text(json.dumps(cycles), encoding="utf-8")
        part.replace(kept)
        return cycles

    def _model(self, vlen: int) -> tuple[str, str]:
        """The plug-in as it was built, and what it is told."""
        assert isinstance(self.target, qemu.Backend)
        with tempfile.TemporaryDirectory(prefix="tensorop-unseen-") as folder:
            run = board.prepare(self.target.model, vlen, Path(folder), scenarios="best")
            return run.plugin.name, run.config.read_text(encoding="utf-8")

    def _timed(self, case: Case) -> Found:
        number, among = self._chosen(case, self.target.vlens[0])
        call = measured_call(self.found.operator, case.problem, self.seed, 0)

        def time(library: Path, variants: Sequence[int]) -> list[Sequence[float]]:
            entries = [Entry(0, (self.slot, variant)) for variant in variants]
            guest = self._guest(library, dtype=case.problem.dtype)
            request = MeasureRequest(self.program, [call], entries, Purpose.CHOICE, guest=guest)
            timed = clock.measure(self.target.runner, request, FINAL_PACE)
            if isinstance(timed, Outcome):
                raise SystemExit(f"{case.problem.label}: {timed.message}")
            return [one.rounds for one in timed]

        def judged() -> tuple[int, float, float, list[float]]:
            """(the best, the regret, what forcing saves, all variants' medians)"""
            rounds = time(self.whole, self._forced(case))
            picking = [statistics.quartiles(of_one[::2])[1] for of_one in rounds]
            best = min(range(len(picking)), key=picking.__getitem__)
            regret = statistics.ratio(rounds[best][1::2], rounds[among][1::2]).value - 1
            free, forced = time(self.found.library, (-1, number))
            choosing = 1 - 1 / statistics.ratio(forced, free).value
            return best, regret, choosing, [statistics.quartiles(of_one)[1] for of_one in rounds]

        told = [judged()]
        held = math.prod(case.shape) > SMALL  # to CHOOSING
        if told[0][1] > FAR or (held and told[0][2] > CHOOSING):  # the extremes of many noisy figures are mostly noise
            told += [judged() for _ in range(AGAIN)]
        best, regret, _, costs = sorted(told, key=lambda one: one[1])[len(told) // 2]
        choosing = sorted(one[2] for one in told)[len(told) // 2]
        return self._found(case, 0, among, best, regret, choosing, costs)

    def _found(
        self,
        case: Case,
        vlen: int,
        variant: int,
        best: int,
        regret: float,
        choosing: float,
        costs: Sequence[float],
    ) -> Found:
        madds = float(math.prod(case.shape))
        label, dtype = case.problem.label, case.problem.dtype
        return Found(case.seed, label, dtype, vlen, madds, variant, best, regret, choosing, tuple(costs))

    def ratios(self, cases: Sequence[Case], against: str, jobs: int) -> dict[tuple[str, int], tuple[float, str | None]]:
        """Baseline's cost over ours with its function if it has several, by problem and VLEN; what could not be
        compared is absent, and said so."""
        found: dict[tuple[str, int], tuple[float, str | None]] = {}
        for dtype, layout in sorted({(case.problem.dtype, case.layout) for case in cases}):
            several = [c for c in cases if (c.problem.dtype, c.layout) == (dtype, layout)]
            shapes = list(dict.fromkeys(case.shape for case in several))
            told = bench.compare(
                self.found.operator,
                self.target,
                self.found.library,
                bench.BenchRequest(
                    [dtype], shapes, (against,), layout=layout, final=not self.target.deterministic, jobs=jobs
                ),
            )
            for name, why in told.absent.items():
                print(f"absent: {name}: {why}", file=sys.stderr)
            for row in told.rows:
                problem = problems.of(self.found.operator, dtype, tuple(row.dims.values()), layout)
                by_vlen = row.by_vlen or {self._only_vlen: row}
                found |= {
                    (problem.label, vlen): (at.ratios[against].value, at.called.get(against))
                    for vlen, at in by_vlen.items()
                    if against in at.ratios
                }
        return found

    @property
    def _only_vlen(self) -> int:
        return self.target.vlens[0] if self.target.deterministic else 0


def finalists(operator: Operator, history: History, manifest: Mapping[str, Any], dtype: str) -> list[Variant]:
    """All variants that the search's last stage measured, those that the library carries first, the direct one last."""
    templates = dict(history.templates)
    if (past_choice := offline.direct(operator.folder, operator.name)) is not None:
        templates[past_choice.digest] = past_choice
    winners = manifest["dtypes"][dtype]
    found = []
    for v in winners["variants"]:
        variant = instantiate.variant(operator, templates[v["digest"]], dtype, v["point"])
        found.append(replace(variant, specialisations=tuple(v.get("specialisations", ()))))
    direct = [found.pop(winners["direct"]["variant"])] if "direct" in winners else []
    tried = {f.trial.variant.id: f.trial for f in history.replay() if isinstance(f, Finished) and f.outcome.ok}
    notes = [data for name, data in history.notes if name == NOTE and data["dtype"] == dtype]
    found += [tried[noted["id"]].variant for noted in notes[-1]["variants"]] if notes else []
    if not notes:  # a library whose last stage were trials
        for stage in (Stage.FINALISTS, Stage.BLOCKING):
            of_stage = [t.variant for t in tried.values() if (t.stage, t.dtype) == (stage, dtype)]
            found += of_stage
            if of_stage:
                break
    known = {variant.id: variant for variant in reversed(found) if variant.id not in {v.id for v in direct}}
    return [*reversed(known.values()), *direct]


@functools.lru_cache(maxsize=8)
def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def bars(platform: str, found: Sequence[Found]) -> list[tuple[str, bool]]:
    """What is held against its bar, each with whether it holds."""
    held = []
    regrets = [f.regret for f in found if not math.isnan(f.regret)]
    if regrets:
        mean = statistics.geomean(1 + r for r in regrets) - 1
        near = sum(r <= FAR for r in regrets) / len(regrets)
        held.append((f"regret {mean:.1%} in geomean (at most {REGRET:.0%})", mean <= REGRET))
        text = f"regret at most {FAR:.0%} on {near:.1%} of the shapes (at least {FAR_SHARE:.0%})"
        held.append((text, near >= FAR_SHARE))
    large, small = [f for f in found if f.madds > SMALL], [f for f in found if f.madds <= SMALL]
    if large and regrets:
        worst = max(f.choosing for f in large)
        held.append((f"forcing what was chosen saves at most {worst:.1%} (at most {CHOOSING:.0%})", worst <= CHOOSING))
    f32 = [f.ratio for f in found if f.dtype == "f32" and f.ratio]
    if f32:
        ratio, least = statistics.geomean(f32), FASTER.get(platform, 0.0)
        wanted = f" (at least {least:g})" if least else ""
        held.append((f"f32 {ratio:.2f} of OpenBLAS in geomean{wanted}", ratio >= least))
    ratios = [f.ratio for f in large if f.ratio]
    if ratios:
        below = sum(r < BELOW for r in ratios) / len(ratios)
        text = f"{below:.1%} of the shapes above {SMALL} multiply-adds below {BELOW:g} (at most {BELOW_SHARE:.0%})"
        held.append((text, below <= BELOW_SHARE))
        held.append((f"the lowest of them {min(ratios):.2f} (at least {LOWEST:g})", min(ratios) >= LOWEST))
    tiny = [f.ratio for f in small if f.ratio]
    if tiny:
        mean = statistics.geomean(tiny)
        text = f"{len(tiny)} shapes of at most {SMALL} multiply-adds, empty call included: {mean:.2f} in geomean "
        text += f"(at least {TINY:g}), lowest {min(tiny):.2f} (at least {TINY_LOWEST:g})"
        held.append((text, mean >= TINY and min(tiny) >= TINY_LOWEST))
    return held


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, metavar="DIR")
    parser.add_argument("--seed", "--seeds", dest="seeds", type=int, nargs="+", required=True, help="pooled")
    parser.add_argument("--count", type=int, default=SHAPES, help="shapes a seed (default: %(default)s)")
    parser.add_argument("--limit", type=float, default=math.inf, metavar="FLOPS", help="leave out larger shapes")
    parser.add_argument("--jobs", type=int, default=2, help="counts side by side under a model (default: %(default)s)")
    parser.add_argument("--against", default="openblas", help="a baseline, or none (default: %(default)s)")
    parser.add_argument("--worst", type=int, default=10, help="rows to print (default: %(default)s)")
    parser.add_argument("--ratios", action="store_true", help="no regrets, which take most of the time")
    parser.add_argument("--json", action="store_true", help="print all figures as JSON, for benchmarks/records.py")
    wanted = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory(prefix="tensorop-unseen-") as scratch:
            return _run(wanted, Path(scratch) / "all")
    except TensoropError as error:
        print(error, file=sys.stderr)
        return 2


def _run(wanted: argparse.Namespace, place: Path) -> int:
    found = opened.open_product(wanted.folder)
    judge = Judge(found, wanted.folder, place)
    drawn = [case for seed in wanted.seeds for case in draw(found, seed, wanted.count)]
    cases = [case for case in drawn if case.work <= wanted.limit]
    left_out = len(drawn) - len(cases)
    known = ", ".join(f"{dtype} {len(variants)}" for dtype, variants in judge.all.items())
    about = f"{found.platform.name}: {len(cases)} shapes; variants of the last stage: {known}"
    print(about, file=sys.stderr, flush=True)
    if left_out:
        print(f"left out: {left_out} of {len(drawn)} shapes, of more than {wanted.limit:g} flops", file=sys.stderr)
    judged = judge.unjudged if wanted.ratios else judge.judge
    with ThreadPoolExecutor(max(1, wanted.jobs) if judge.target.side_by_side else 1) as pool:
        shapes = [one for several in pool.map(judged, cases) for one in several]
    if wanted.against != "none":
        ratios = judge.ratios(cases, wanted.against, wanted.jobs)
        pairs = ((f, ratios.get((f.problem, f.vlen), (None, None))) for f in shapes)
        shapes = [replace(f, ratio=ratio, called=called) for f, (ratio, called) in pairs]
    if wanted.json:
        print(json.dumps(_record(wanted, judge, shapes, left_out)))
        return 0
    held = bars(found.platform.name, shapes)
    for text, holds in held:
        print(f"{'holds ' if holds else 'MISSED'}  {text}")
    if not wanted.ratios:
        worst = sorted(shapes, key=lambda f: -f.regret)[: wanted.worst]
        _print_worst(f"worst by regret ({judge.target.unit})", worst)
    compared = [f for f in shapes if f.ratio is not None and f.madds > SMALL]
    if compared:
        _print_worst("lowest against the baseline", sorted(compared, key=lambda f: f.ratio or 0)[: wanted.worst])
    return 0 if all(holds for _, holds in held) else 1


def _record(wanted: argparse.Namespace, judge: Judge, shapes: Sequence[Found], left_out: int) -> dict[str, Any]:
    """What benchmarks/records.py reads."""
    return {
        "platform": judge.found.platform.name,
        "unit": judge.target.unit,
        "baseline": wanted.against,
        "seeds": wanted.seeds,
        "limit": None if math.isinf(wanted.limit) else wanted.limit,
        "left_out": left_out,
        "shapes": [
            {
                "problem": f.problem,
                "dtype": f.dtype,
                "vlen": f.vlen,
                "madds": f.madds,
                "ratio": f.ratio,
                "regret": None if math.isnan(f.regret) else f.regret,
                "called": f.called,
            }
            for f in shapes
        ],
    }


def _print_worst(title: str, rows: Sequence[Found]) -> None:
    print(f"\n{title}")
    for f in rows:
        ratio = "" if f.ratio is None else f"  ratio {f.ratio:.2f}"
        at = f" VLEN {f.vlen}" if f.vlen else ""
        print(f"  {f.problem}{at}: variant {f.variant}, best {f.best}, regret {f.regret:.1%}{ratio}")


if __name__ == "__main__":
    sys.exit(main())
