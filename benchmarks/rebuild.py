"""Holds a finished product against the one this checkout makes of the same winners: a rebuild of the tool changes no
figure.

    python benchmarks/rebuild.py DIR... [--dtype f32,f64] [--jobs 2] [--code-only] [--limit FLOPS]

The winners (templates, points, trees) are read from the manifest and rendered, built and staged by this checkout. Then

- the machine code of every object is compared: the bytes of its sections of code and constants, and what a linker
  changes in them, without the names that it changes them to and without the provenance card;
- under a board model both libraries are counted again on each shape of the product's comparison, at each VLEN. Modelled
  cycles and instructions must be the same, and those that the comparison printed;
- on a clock both libraries are timed in one process, round by round. The geometric mean of the old one's time over the
  new one's must be within 0.99 and 1.01.

Prints a line a dtype and a Markdown table at the end; the exit status is 1 where something differs.
"""

from __future__ import annotations

import argparse
import dataclasses
import io
import itertools
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile

from tensorop.author import offline
from tensorop.backends import reach
from tensorop.commands import bench, libraries, opened
from tensorop.commands.contest import Contest
from tensorop.commands.contest import row as row_of
from tensorop.errors import TensoropError
from tensorop.measure import statistics
from tensorop.model.bench import Ratio, Row
from tensorop.model.winner import Winners, by_operator, trees_of
from tensorop.package import card, product, publish
from tensorop.package.sources import OperatorPart
from tensorop.render import adapting, instantiate
from tensorop.space import problems
from tensorop.target import Target
from tensorop.toolchain.finished import archive_members

LOW, HIGH = 0.99, 1.01  # the geometric mean on a clock
_ALLOCATED = 2  # SHF_ALLOC
_CARD = card.MARKER.strip().encode()


@dataclass(frozen=True)
class Result:
    """One dtype: objects that differ of all, shapes (at a VLEN) that differ of all; ratio: on a clock, old over new;
    bits: whether the libraries are the same to the bit, which they need not be."""

    platform: str
    dtype: str
    variants: int
    objects: tuple[int, int]
    shapes: tuple[int, int] = (0, 0)
    bits: bool = False
    ratio: Ratio | None = None

    @property
    def same(self) -> bool:
        return not self.objects[0] and not self.shapes[0] and (self.ratio is None or LOW <= self.ratio.value <= HIGH)


def compare(folder: Path, dtypes: Sequence[str], jobs: int, limit: float, code_only: bool) -> Iterator[Result]:
    """A result for each dtype that the product holds."""
    found = opened.open_product(folder)
    held = [dtype for dtype in found.dtypes if not dtypes or dtype in dtypes]
    manifest = json.loads((folder / opened.SHARE / "manifest.json").read_text(encoding="utf-8"))
    of = by_operator(manifest)[found.operator.name]
    given = [winners(found, dtype, of_dtype) for dtype, of_dtype in of["dtypes"].items()]
    made = product.product(found.platform, [OperatorPart(found.operator, given, of["facts"])], jobs=jobs)
    differing, objects = machine_code(folder, made)
    built = {name: data for name, data in made.files.items() if name.startswith("lib/lib")}
    bits = all((folder / name).is_file() and (folder / name).read_bytes() == data for name, data in built.items())
    with tempfile.TemporaryDirectory(prefix="tensorop-rebuild-") as place:
        # names of one length: where a library lies moves a guest's stack
        old, new = Path(place, "old", "lib"), Path(place, "new", "lib")
        staged = publish.stage(made, Path(place, "product"))
        shutil.copytree(folder / "lib", old, symlinks=True)
        shutil.copytree(staged.folder / "lib", new, symlinks=True)
        target = reach(found.platform, None)
        told = json.loads((folder / opened.SHARE / "bench.json").read_text(encoding="utf-8"))["results"]
        for dtype in held:
            count = len(of["dtypes"][dtype]["variants"])
            result = Result(found.platform.name, dtype, count, (differing, objects), bits=bits)
            rows = [row for row in told if row["dtype"] == dtype and _flops(found, row) <= limit]
            if code_only:
                yield result
            elif not target.deterministic:
                yield dataclasses.replace(result, ratio=timed(found, target, old, new, rows))
            else:
                off = [name for name, same in counted(found, target, old, new, rows, jobs) if not same]
                print(*(f"{dtype} differs: {name}" for name in off), sep="\n", end="\n" if off else "")
                every = len(rows) * len(target.vlens)
                yield dataclasses.replace(result, shapes=(len(off), every))


def winners(found: opened.Opened, dtype: str, told: Mapping[str, Any]) -> Winners:
    """What a manifest says of a dtype. Raises SystemExit for a template that this checkout does not ship."""
    folder, added = found.operator.folder, found.operator.added
    shipped = {template.name: template for template in offline.templates(folder, found.operator.name, added)}
    if (direct := offline.direct(folder, found.operator.name)) is not None:
        shipped[direct.name] = direct
    variants = []
    for variant in told["variants"]:
        if variant["template"] not in shipped:
            raise SystemExit(f"template '{variant['template']}' is not shipped here")
        made = instantiate.variant(found.operator, shipped[variant["template"]], dtype, variant["point"])
        variants.append(dataclasses.replace(made, specialisations=tuple(variant.get("specialisations", ()))))
    trees = trees_of(told)
    if "direct" not in told:
        return Winners(dtype, tuple(variants), trees)
    return Winners(dtype, tuple(variants[:-1]), trees, variants[-1], told["direct"]["most_flops"])


def machine_code(folder: Path, made: product.Product) -> tuple[int, int]:
    """How many objects of the static archives differ, of how many; prints their names."""
    off, count = 0, 0
    for name in sorted(name for name in made.files if name.endswith(".a")):
        old, new = ([(of, code(data)) for of, data in archive_members(text)] for text in _both(folder, made, name))
        count += len(new)
        for (was, before), (now, after) in itertools.zip_longest(old, new, fillvalue=("nothing", [])):
            if before != after:
                off += 1
                print(f"differs: {name}, {was} and {now}")
    return off, count


def _both(folder: Path, made: product.Product, name: str) -> tuple[bytes, bytes]:
    path = folder / name
    return path.read_bytes() if path.is_file() else b"!<arch>\n", made.files[name]


def code(data: bytes) -> list[tuple[bytes, list[tuple[int, int, int]]]]:
    """Of an object: each section that is loaded, but the card's, and where and how a linker changes it."""
    elf = ELFFile(io.BytesIO(data))
    changes: dict[int, list[tuple[int, int, int]]] = {}
    for section in elf.iter_sections("SHT_RELA"):
        changes[section["sh_info"]] = [
            (one["r_offset"], one["r_info_type"], one["r_addend"]) for one in section.iter_relocations()
        ]
    loaded = [(i, s) for i, s in enumerate(elf.iter_sections()) if s["sh_flags"] & _ALLOCATED and s["sh_size"]]
    kept = [(i, s.data()) for i, s in loaded if s["sh_type"] == "SHT_PROGBITS"]
    return [(text, changes.get(i, [])) for i, text in kept if _CARD not in text]


def counted(
    found: opened.Opened, target: Target, old: Path, new: Path, told: Sequence[Mapping[str, Any]], jobs: int
) -> Iterator[tuple[str, bool]]:
    """Each shape at each VLEN, with cycles and instructions per 1000 flop of the old library's record, the old and the
    new library; and whether they are the same."""
    for layout, rows in _by_layout(found, told):
        shapes = [_shape(found, row) for row in rows]
        both = [
            bench.compare(
                found.operator,
                target,
                folder / found.library.name,
                bench.BenchRequest([rows[0]["dtype"]], shapes, layout=layout, final=False, jobs=jobs),
            )
            for folder in (old, new)
        ]
        for record, before, after in zip(rows, both[0].rows, both[1].rows, strict=True):
            written = {int(v): at["per_kflop"]["ours"] for v, at in record.get("by_vlen", {}).items()}
            written = written or {0: record["per_kflop"]["ours"]}
            for vlen, figures in _figures(after).items():
                three = (_pair(written[vlen]), _figures(before)[vlen], figures)
                shown = ", ".join(f"{cycles:.4f} {instructions:.4f}" for cycles, instructions in three)
                yield f"{after.shape} VLEN {vlen}, cycles and instructions: {shown}", len(set(three)) == 1


def _figures(row: Row) -> dict[int, tuple[float, float]]:
    return {vlen: _pair(at.counters) for vlen, at in row.measured.items()}


def _pair(per_kflop: Mapping[str, float]) -> tuple[float, float]:
    return per_kflop["cycles"], per_kflop["instructions"]


def timed(found: opened.Opened, target: Target, old: Path, new: Path, told: Sequence[Mapping[str, Any]]) -> Ratio:
    """The old library's time over the new one's: geometric means over the shapes of medians and of quartiles."""
    both = [libraries.LibraryUnderTest(path.parent.name, path / found.library.name, "tensorop") for path in (new, old)]
    program = adapting.program(target.platform, found.operator).path
    contest = Contest(found.operator, target, program, both[0], (both[1],), 1, True)
    ratios = []
    for layout, rows in _by_layout(found, told):
        contest.open(rows[0]["dtype"])
        for record in rows:
            problem = problems.of(found.operator, record["dtype"], _shape(found, record), layout)
            ratio = row_of(contest, problem).ratios["old"]
            print(f"  {problem.label}: {ratio.value:.3f} ({ratio.low:.3f} to {ratio.high:.3f})", file=sys.stderr)
            ratios.append(ratio)
    return Ratio(*(statistics.geomean(getattr(r, of) for r in ratios) for of in ("value", "low", "high")))


def _by_layout(
    found: opened.Opened, told: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, list[Mapping[str, Any]]]]:
    names = [problems.written(layout) for layout in found.operator.layouts]
    for name in dict.fromkeys(row["layout"] for row in told):
        yield names.index(name), [row for row in told if row["layout"] == name]


def _shape(found: opened.Opened, row: Mapping[str, Any]) -> tuple[int, ...]:
    return tuple(row[name] for name in found.operator.shapes.names)


def _flops(found: opened.Opened, row: Mapping[str, Any]) -> float:
    return problems.work(found.operator, row["dtype"], _shape(found, row))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("products", nargs="+", type=Path, metavar="DIR")
    parser.add_argument("--dtype", default="", metavar="NAME,...")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--limit", type=float, default=float("inf"), metavar="FLOPS", help="of the largest shape")
    parser.add_argument("--code-only", action="store_true", help="build, and compare the machine code alone")
    given = parser.parse_args()
    wanted = [name for name in given.dtype.split(",") if name]
    results = []
    try:
        for folder in given.products:
            results += compare(folder, wanted, given.jobs, given.limit, given.code_only)
    except TensoropError as error:
        raise SystemExit(str(error)) from None
    print(
        "| platform | dtype | variants | objects | libraries | shapes | old over new |\n|---|---|---|---|---|---|---|"
    )
    for of in results:
        objects = f"{of.objects[1]} the same" if not of.objects[0] else f"{of.objects[0]} of {of.objects[1]} differ"
        shapes = f"{of.shapes[1]} the same" if not of.shapes[0] else f"{of.shapes[0]} of {of.shapes[1]} differ"
        clock = f"{of.ratio.value:.3f} ({of.ratio.low:.3f} to {of.ratio.high:.3f})" if of.ratio else ""
        modelled = "" if of.ratio or not of.shapes[1] else shapes
        bits = "the same bits" if of.bits else "differ"
        print(f"| {of.platform} | {of.dtype} | {of.variants} | {objects} | {bits} | {modelled} | {clock} |")
    return 0 if all(result.same for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
