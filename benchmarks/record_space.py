"""Records a space exhaustively: what each legal point costs, for `tensorop tuners bench`.

    python benchmarks/record_space.py PLATFORM FILE.jsonl.gz [--template outer] [--dtype f32]           micro-kernels
    python benchmarks/record_space.py PLATFORM FILE.jsonl.gz --kernel mr_vectors=4,nr=4 --shape 96x96x512    blockings

Micro-kernels are measured alone, on packed operands, as a search's first stage does, but many in one program of which
only the whole tile is built, and without verification: what is recorded is cost. Blockings are those of one kernel, on
one problem. A run that was killed goes on where it was (FILE.part). Under a board model the same command gives the same
file. A clock measures every point `--sweeps` times, one sweep over all points after the other, so that the noise is
known; give `--prepare` first, which builds all there is and measures nothing, then keep the machine quiet.
"""

from __future__ import annotations

import argparse
import json
import platform as machine
import statistics
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path

from tensorop import __version__
from tensorop.author import offline
from tensorop.backends import reach
from tensorop.measure import clock
from tensorop.measure.request import Measurement, MeasureRequest
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.kernel import Artifact, Kernel, KernelTemplate, Source, Variant
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.render import instantiate, render
from tensorop.runners.protocol import Entry
from tensorop.space import problems, recorded
from tensorop.space.recorded import RecordedSpace
from tensorop.specs import operators, platforms
from tensorop.target import Target
from tensorop.trial.calls import measured_call, micro_problem

PACE = clock.Pace(rounds=5, warm_ns=300_000, min_ns=300_000, max_ns=100_000_000)
TOGETHER = {"micro": 64, "blocking": 16}  # points of one process; a run that goes on begins at such a chunk
OK = Outcome(Kind.OK, "measure")

HEAD = """#include "call.h"
#include <stddef.h>
#include <stdint.h>
"""
KERNEL = """
static void {name}(size_t m, size_t k, const {compute} *a, size_t lda, const {compute} *b, size_t sb,
    {element} alpha, {element} beta, {element} *c, size_t ldc)
{{
    (void)sb, (void)lda;
    {ident}_tile_{v}x{nr}(m, k, a, {lda}, b, {rsb}, {csb}, alpha, beta, c, ldc);
}}
"""
CALL = """
typedef void (*kernel)(size_t, size_t, const {compute} *, size_t, const {compute} *, size_t, {element}, {element},
    {element} *, size_t);
static const struct {{ kernel run; size_t rows, nr; }} volatile kernels[] = {{
{table}
}};

void tensorop_candidate_1(const struct tensorop_call *call)
{{
    const size_t m = (size_t)call->dim[0], n = (size_t)call->dim[1], k = (size_t)call->dim[2];
    const size_t which = (size_t)call->dim[3];
    const kernel run = kernels[which].run;
    const size_t rows = kernels[which].rows, nr = kernels[which].nr, ldc = (size_t)call->ld[2];
    const {compute} *a = call->buffer[0], *b = call->buffer[1];
    {element} *c = call->buffer[2];
    for (size_t j = 0; j < n; j += nr)
        for (size_t i = 0; i < m; i += rows ? rows : m)
            run(rows ? rows : m, k, a + i * k, rows ? k : m, b + j * k, k, 1, 0, c + j * ldc + i, ldc);
}}
"""


@dataclass(frozen=True)
class Setting:
    """What is recorded of which template where."""

    operator: Operator
    target: Target
    template: KernelTemplate
    dtype: str
    work: Path
    seed: Seed

    @cached_property
    def inputs(self) -> dict[str, Call]:
        return {}

    def call(self, problem: object, dims: tuple[int, ...], workspace: int = 0) -> Call:
        label = problem.label  # type: ignore[attr-defined]
        if label not in self.inputs:
            self.inputs[label] = measured_call(self.operator, problem, self.seed, 0)  # type: ignore[arg-type]
        call = self.inputs[label]
        scratch = NUMBERS[self.dtype].poison(workspace, self.seed.stream(2)) if workspace else None
        free = (Buffer("workspace", Access.SCRATCH, scratch),) if scratch is not None else ()
        return replace(call, dims=(*call.dims, *dims), buffers=(*call.buffers, *free))


class Micro:
    """Micro-kernels alone, `TOGETHER` of them in one program."""

    kind, entry = "micro", Entry(1)

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        self.built: dict[int, Artifact] = {}  # by a chunk's first point
        self.space = instantiate.micro_space(setting.target.platform, setting.template, setting.dtype)

    def variant(self, index: int) -> Variant:
        return Variant(Kernel(self.setting.template, self.setting.dtype, self.space.at(index)))

    def program(self, chunk: Sequence[int]) -> Artifact | Outcome:
        return self.setting.target.build(Source((("candidate.c", self.source(chunk)),)), self.setting.work, 900.0)

    def source(self, chunk: Sequence[int]) -> str:
        operator, platform, template = self.setting.operator, self.setting.target.platform, self.setting.template
        said: dict[str, None] = {}
        texts, table = [], []
        for number, index in enumerate(chunk):
            variant = instantiate.as_built(operator, platform, self.variant(index))
            names, primitives = instantiate.kernel_context(operator, platform, variant)
            full = instantiate.template_names(operator, platform, variant)
            said |= dict.fromkeys(f"#include <{header}>" for header in full["headers"])
            said[full["support"]] = None
            callables = instantiate.callables(primitives)
            arities = {name: len(spec.args) for name, spec in callables.items() if name != instantiate.LANES}
            names |= {"ident": f"k{number}", "full_tile": True}
            (text,) = render.kernel_texts(operator.templates, template.text, instantiate.KERNEL, [names], arities)
            texts.append(render.expand(text, callables))
            rows, streams = template.reads["a"] == "rows", template.reads["a"] == "stream"
            mr, nr = names["mr_vectors"], names["nr"]
            ways = {"rsb": "1", "csb": "sb"} if rows else {"rsb": str(nr), "csb": "1"}
            lda = "lda" if rows or streams else f"{mr} * ({full['lanes']})"
            texts.append(KERNEL.format(name=f"run_{number}", ident=f"k{number}", v=1 if streams else mr, nr=nr, lda=lda,
                                       compute=full["compute"], element=full["element"], **ways))  # fmt: skip
            table.append(f"    {{run_{number}, {mr if rows else 0}, {nr}}},")
        call = CALL.format(compute=full["compute"], element=full["element"], table="\n".join(table))
        return "\n".join([HEAD, *said, *texts, call])

    def calls(self, chunk: Sequence[int], at: int) -> list[Call]:
        setting = self.setting
        each = (micro_problem(setting.operator, setting.target.platform, self.variant(index), at) for index in chunk)
        return [setting.call(problem, (number,)) for number, problem in enumerate(each)]

    def works(self) -> list[float]:
        setting, at = self.setting, self.setting.target.vlens[0]
        each = (
            micro_problem(setting.operator, setting.target.platform, self.variant(i), at)
            for i in range(self.space.size)
        )
        return [float(setting.operator.reference.work(problem)) for problem in each]

    def warm(self, chunk: Sequence[int]) -> list[int]:
        return [1] * len(chunk)

    def chunks(self) -> list[list[int]]:
        size, support = TOGETHER[self.kind], {}
        for index in range(self.space.size):  # texts of primitives may depend on settings: one of each in a program
            full = self.setting.target.platform.primitives_of(self.setting.dtype, self.space.at(index))
            support.setdefault(full.support, []).append(index)
        return [group[i : i + size] for group in support.values() for i in range(0, len(group), size)]


class Blocking:
    """Blockings of one kernel on one problem, those that one build serves in one program."""

    kind, entry = "blocking", Entry(0)

    def __init__(self, setting: Setting, point: Point, shape: tuple[int, ...], layout: int) -> None:
        self.setting = setting
        self.built: dict[int, Artifact] = {}
        self.kernel = Kernel(setting.template, setting.dtype, point)
        self.space = instantiate.blocking_space(setting.operator, setting.target.platform, self.kernel)
        self.problem = problems.of(setting.operator, setting.dtype, shape, layout)
        self.texts: dict[str, Artifact | Outcome] = {}

    def variant(self, index: int) -> Variant:
        return Variant(self.kernel, self.space.at(index))

    def program(self, chunk: Sequence[int]) -> Artifact | Outcome:
        from tensorop.render.texts import Texts

        operator, target = self.setting.operator, self.setting.target
        variant = instantiate.as_built(operator, target.platform, self.variant(chunk[0]))
        if variant.id not in self.texts:
            text = Texts().kernel(operator, target.platform, variant)
            source = (
                text if isinstance(text, Outcome) else instantiate.candidate(operator, target.platform, variant, text)
            )
            built = source if isinstance(source, Outcome) else target.build(source, self.setting.work, 300.0)
            self.texts[variant.id] = built
        return self.texts[variant.id]

    def calls(self, chunk: Sequence[int], at: int) -> list[Call]:
        operator, platform, dtype = self.setting.operator, self.setting.target.platform, self.setting.dtype
        made = []
        for index in chunk:
            full = instantiate.defaults(operator, platform, dtype, self.variant(index).point)
            lanes = platform.lanes(dtype, full, at)
            room = operator.reference.workspace(self.problem, full, lanes, platform.formats(dtype).group)
            made.append(self.setting.call(self.problem, tuple(int(full[name]) for name in operator.runtime), room))
        return made

    def works(self) -> list[float]:
        return [float(self.setting.operator.reference.work(self.problem))] * self.space.size

    def warm(self, chunk: Sequence[int]) -> list[int]:
        return [0] * len(chunk)  # each finds the caches as the one before it left them

    def chunks(self) -> list[list[int]]:
        size, groups = TOGETHER[self.kind], {}
        operator, platform = self.setting.operator, self.setting.target.platform
        for index in range(self.space.size):
            groups.setdefault(instantiate.as_built(operator, platform, self.variant(index)).id, []).append(index)
        return [group[i : i + size] for group in groups.values() for i in range(0, len(group), size)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platform")
    parser.add_argument("file", type=Path)
    parser.add_argument("--operator", default="gemm")
    parser.add_argument("--template", default="outer")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--kernel", help="of this configuration record the blockings; the nearest legal one is taken")
    parser.add_argument("--shape", help="the problem of blockings")
    parser.add_argument("--layout", type=int, default=0)
    parser.add_argument("--sweeps", type=int, default=9, help="how often a clock measures all points")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--work", type=Path, default=Path("build/spaces"))
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    operator = operators.load(given.operator, ())
    target = reach(platforms.load(given.platform, ()), None, ())
    template = next(
        t for t in offline.templates(operator.folder, operator.name, operator.added) if t.name == given.template
    )
    work = given.work.absolute()
    work.mkdir(parents=True, exist_ok=True)
    setting = Setting(operator, target, template, given.dtype, work, Seed.draw(1))
    what: Micro | Blocking = Micro(setting)
    if given.kernel:
        part = {name: int(value) for name, value in (one.split("=") for one in given.kernel.split(","))}
        what = Blocking(setting, what.space.nearest(part), operator.shapes.of(given.shape), given.layout)
    record(what, given)


def record(what: Micro | Blocking, given: argparse.Namespace) -> None:
    """Measures what the file's beginning lacks, then writes it whole."""
    setting, began = what.setting, time.monotonic()
    chunks = what.chunks()
    print(f"{what.space.size} legal points in {len(chunks)} programs' chunks", file=sys.stderr)
    sweeps = 1 if setting.target.deterministic else given.sweeps
    part = given.file.with_name(given.file.name + ".part")
    done: dict[tuple[int, int], list[float | None]] = {}
    for line in part.read_text().splitlines() if part.exists() else ():
        row = json.loads(line)
        done[row["sweep"], row["chunk"]] = row["costs"]
    prepared = given.file.with_name(given.file.name + ".programs")
    if given.prepare:
        with ThreadPoolExecutor(given.jobs) as pool:
            built = list(pool.map(what.program, chunks))
        paths = {chunk[0]: str(one.path) for chunk, one in zip(chunks, built, strict=True) if isinstance(one, Artifact)}
        prepared.write_text(json.dumps(paths))
        print(f"built: {len(paths)} of {len(built)}", file=sys.stderr)
        return
    known = json.loads(prepared.read_text()) if prepared.exists() else {}
    what.built.update({int(first): Artifact(Path(path), "", ()) for first, path in known.items()})
    todo = [(sweep, number) for sweep in range(sweeps) for number in range(len(chunks)) if (sweep, number) not in done]
    with part.open("a") as out, ThreadPoolExecutor(given.jobs) as pool:
        for (sweep, number), costs in zip(todo, pool.map(lambda at: measured(what, chunks[at[1]]), todo), strict=True):
            done[sweep, number] = costs
            out.write(json.dumps({"sweep": sweep, "chunk": number, "costs": costs}) + "\n")
            out.flush()
            print(f"{len(done)} of {sweeps * len(chunks)}, {time.monotonic() - began:.0f} s", file=sys.stderr)
    each: dict[int, list[float | None]] = {}
    for (_, number), costs in sorted(done.items()):
        for index, cost in zip(chunks[number], costs, strict=True):
            each.setdefault(index, []).append(cost)
    figures = [each[index] for index in range(what.space.size)]
    works = what.works()  # a tile's problem is as large as the tile: what a search is told is cost for work
    costs = tuple(
        None if None in one else _rounded(1000 * statistics.median(one) / work)  # type: ignore[type-var]
        for one, work in zip(figures, works, strict=True)
    )
    spread = tuple(0.0 if None in one or len(one) < 4 else _spread(one) for one in figures)  # type: ignore[arg-type]
    recorded.write(given.file, RecordedSpace(given.file.name, what.space, about(what, given, sweeps), costs, spread))
    part.unlink()
    prepared.unlink(missing_ok=True)
    failed = sum(cost is None for cost in costs)
    print(f"{given.file}: {len(costs)} points, {failed} failed, {time.monotonic() - began:.0f} s", file=sys.stderr)


def about(what: Micro | Blocking, given: argparse.Namespace, sweeps: int) -> dict[str, object]:
    setting, target = what.setting, what.setting.target
    on = {"problem": what.problem.label, "kernel": str(what.kernel)} if isinstance(what, Blocking) else {}
    vlen = {"vlen": target.vlens[0]} if target.vlens[0] else {}
    clocked = {} if target.deterministic else {"machine": machine.processor() or machine.machine(), "sweeps": sweeps}
    return {
        "platform": given.platform, "operator": given.operator, "dtype": given.dtype, "template": setting.template.name,
        "stage": what.kind, **on, **vlen, "unit": f"{target.unit}/kflop", "measured_by": target.measured_by, **clocked,
        "verified": False, "tool": __version__,
        **({} if target.deterministic else {"recorded": datetime.now(UTC).strftime("%Y-%m-%d")}),
    }  # fmt: skip


def measured(what: Micro | Blocking, chunk: Sequence[int]) -> list[float | None]:
    """The chunk's costs; one that fails is measured in halves, so that what ends its process ends no other's."""
    program = what.built.get(chunk[0]) or what.program(chunk)
    if isinstance(program, Outcome):
        found: Sequence[Measurement] | Outcome = program
    else:
        target = what.setting.target
        at = target.vlens[0]
        calls = what.calls(chunk, at)
        if target.deterministic:
            request = MeasureRequest(
                program.path, [calls[0], *calls], [what.entry], vlen=at, warm=[0, *what.warm(chunk)], timeout_s=300.0
            )
            found = target.measure(request)
            found = found if isinstance(found, Outcome) else found[1:]  # nothing was before the first
        else:
            found = clock.measure(target.runner, MeasureRequest(program.path, calls, [what.entry]), PACE)
    if not isinstance(found, Outcome):
        return [_rounded(one.samples.value) for one in found]
    print(f"points {chunk[0]}..{chunk[-1]}: {found.message} {found.log[-300:]}", file=sys.stderr)
    if len(chunk) == 1:
        return [None]
    half = len(chunk) // 2
    return [*measured(what, chunk[:half]), *measured(what, chunk[half:])]


def _rounded(cost: float) -> float:
    return float(f"{cost:.6g}")


def _spread(costs: Sequence[float]) -> float:
    low, middle, high = statistics.quantiles(costs, n=4)
    return round((high - low) / middle, 4)


if __name__ == "__main__":
    main()
