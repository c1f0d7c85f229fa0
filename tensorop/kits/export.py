"""A product to its tuning kit: controls, what is verified, what is timed, and the program that does it."""

from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tensorop import __version__, paths
from tensorop.dispatch import choice, probing, served
from tensorop.dispatch.inside import Probe
from tensorop.errors import JobError, UsageError
from tensorop.kits import held as holding
from tensorop.kits import plan, program
from tensorop.kits.held import Held
from tensorop.kits.plan import Planned, Step
from tensorop.model.architecture import architecture
from tensorop.model.budget import CLOCK
from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.shape import Shape
from tensorop.model.verdict import Seed
from tensorop.model.winner import Winners
from tensorop.render import words
from tensorop.runners.protocol import Check, Entry, Time
from tensorop.space import problems
from tensorop.verify import controls
from tensorop.verify.controls import Control

ROUNDS, WARM_NS, MIN_NS, MAX_NS = 15, 2_000_000, 1_000_000, 1_000_000_000
HALVES = 1 << 16  # elements of an output up to which timed calls alternate between two sets of operands
PROBES = 24
_PLAN, _MANIFEST, _RUN, _README, _SUMS = "plan.bin", "manifest.json", "run-kit", "README", "SHA256SUMS"
_OWN = {"kit", _PLAN, "plan.txt", _MANIFEST, _RUN, _README, _SUMS}
_ONE_VLEN = "vlens"  # what a control needs that shows its fault at some VLENs alone


@dataclass(frozen=True)
class Made:
    """steps: by kind, how many; size: bytes of the folder."""

    folder: Path
    packed: Path
    kit: str
    steps: Mapping[str, int]
    size: int

    def to_json(self) -> dict[str, Any]:
        told = {"folder": str(self.folder), "packed": str(self.packed), "kit": self.kit}
        return {**told, "steps": dict(self.steps), "bytes": self.size}


def export(
    held: Held,
    out: Path,
    *,
    shapes: Sequence[Shape] = (),
    probes: int = PROBES,
    jobs: int = 2,
    seed: Seed | None = None,
) -> Made:
    """Writes the folder `out` and `out`.tar.gz. shapes: that are timed, by default the usual suite; probes: how many
    more there are for the dispatch, of each dtype.

    Raises UsageError where `out` is something else than a kit, JobError where it cannot be built.
    """
    free(out)
    held.opened.require_fit()  # a kit is linked with it and runs elsewhere
    operator, platform = held.operator, held.opened.platform
    seed = seed or Seed.draw()
    found = controls.controls(operator)
    wanted = [
        (control, w.dtype)
        for w in held.winners
        for control in found
        if control.applies(platform, w.dtype) and _ONE_VLEN not in control.needs
    ]
    dtypes = [w.dtype for w in held.winners]
    executable = program.build(operator, platform, held.archive, dtypes, wanted, jobs).path.read_bytes()
    steps = [step for w in held.winners for step in _steps(held, w, shapes, probes, wanted, seed, jobs)]
    # what cannot be refused or verified is not timed
    steps.sort(key=lambda step: step.kind)
    least = platform.fixed_vlen or min(platform.verify_vlens, default=0) if platform.arch == "riscv64" else 0
    head = plan.Head(platform.arch, held.digest, platform.name, dtypes, least)
    data = plan.Writer(operator.reference, head).write(steps, "")
    kit = hashlib.sha256(hashlib.sha256(executable).digest() + hashlib.sha256(data).digest()).hexdigest()
    data = data[: plan.KIT_AT] + kit.encode() + data[plan.KIT_AT + len(kit) :]
    counts = {name: sum(step.kind == kind for step in steps) for kind, name in enumerate(plan.KINDS)}
    manifest = {
        "schema": 1,
        "kit": kit,
        "product": held.digest,
        "operator": operator.name,
        "platform": {"name": platform.name, "arch": platform.arch, "least_vlen": least},
        "tool": {"name": "tensorop", "version": __version__},
        "compiler": held.told["compiler"],
        "dtypes": dtypes,
        "steps": counts,
        "times": [step.of for step in steps if step.kind == plan.TIME],
    }
    files = {"kit": executable, _PLAN: data, _MANIFEST: (json.dumps(manifest, indent=1) + "\n").encode()}
    own = paths.native_dir() / "kit"
    names = dict.fromkeys(word.lower() for word in (platform.arch, *architecture(platform.arch).spellings))
    script = (own / "run-kit.sh").read_text().replace("@ARCH@", " ".join(names))
    files[_RUN] = script.replace("@PLATFORM@", words.in_build_file(platform.name)).encode()
    files[_README] = (own / "README").read_bytes()
    return written(out, files, kit, counts)


def _steps(
    held: Held,
    w: Winners,
    shapes: Sequence[Shape],
    probes: int,
    wanted: Sequence[tuple[Control, str]],
    seed: Seed,
    jobs: int,
) -> Iterator[Step]:
    reference, slot = held.operator.reference, held.operator.reference.variant_flag
    library = [of.dtype for of in held.winners].index(w.dtype)
    known_bad = _control_cases(held, w.dtype, seed)
    for number, (control, dtype) in enumerate(wanted):
        if dtype == w.dtype:
            of = {"dtype": dtype, "control": control.name}
            expects = [kind.value for kind in control.expected]
            yield Step(plan.CONTROL, of, known_bad, plan.FIRST_CONTROL + number, expects=expects)
    for number, variant in enumerate((None, *w.all)):
        tiles = _tiles(held, w.dtype, variant or w.all[0])
        order = list(tiles)
        cases = [
            _checked(reference, case, seed.stream(1, library, number, at, place))
            for at, vlen in enumerate(order)
            for place, case in enumerate(
                reference.quick_grid(w.dtype, tiles[vlen], seed.stream(0, library, number))[at :: len(order)]
            )
        ]
        yield Step(plan.VERIFY, {"dtype": w.dtype, "variant": number - 1}, cases, library, slot, number - 1)
    timed = _timed(held, w, shapes, probes)
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        yield from pool.map(partial(_time, held, w, library, seed), range(len(timed)), timed)


def _tiles(held: Held, dtype: str, variant: Any) -> dict[int, dict[str, int]]:
    platform, reference = held.opened.platform, held.operator.reference
    return {
        vlen: reference.tile(variant.point, platform.lanes(dtype, variant.point, vlen), variant.template.reads)
        for vlen in platform.vlens
    }


def _checked(reference: Any, case: Case, rng: Any) -> Planned:
    call = reference.call(case.problem, rng, case.distribution, case.placement, start=case.start)
    return Planned(case.problem, Check(call), case.label)


def _control_cases(held: Held, dtype: str, seed: Seed) -> list[Planned]:
    """What every control of a dtype is called with: a quick grid, then one timing."""
    operator, reference = held.operator, held.operator.reference
    grid = reference.quick_grid(dtype, reference.CONTROL_TILE, seed.stream(2))
    cases = [_checked(reference, case, seed.stream(3, place)) for place, case in enumerate(grid)]
    shape = operator.shapes.named(operator.shapes.of(reference.CONTROL_SHAPE))
    problem = reference.problem(dtype, shape, operator.layouts[0])
    call = reference.call(problem, seed.stream(4), "normal", Placement.START)
    call = reference.alternated(problem, call, seed.stream(5))
    request = Time(call, (Entry(),), rounds=5, warm_ns=0, min_ns=20_000, keep=True, draw=1)
    return [*cases, Planned(problem, request, f"{problem.label}, timed", drawn=int(seed.stream(6).integers(1 << 62)))]


def _timed(held: Held, w: Winners, shapes: Sequence[Shape], count: int) -> list[Probe]:
    """Shapes in the usual layout, and probes: at random, and where what kits measured leaves the choice open."""
    operator, platform = held.operator, held.opened.platform
    own = [problems.of(operator, w.dtype, shape) for shape in shapes or operator.suites[operator.usual]]
    asked = [problem for problem in own if choice.chosen_for(operator, problem)] or own
    if not count:
        return [Probe(problem) for problem in asked]
    kits = holding.kept(held.root)
    known_at: dict[int, Any] = {}
    if kits:  # the next one is for the last one's board
        vlen = int(kits[-1]["machine"]["vlen"])
        same = [kit for kit in kits if holding.board_of(kit) == holding.board_of(kits[-1])]
        known_at[vlen if vlen in platform.vlens else platform.vlens[0]] = holding.measured(operator, w, same), ()
    telling = (
        probing.telling(operator, platform, w, known_at, CLOCK.probe_flops, len(kits), count) if len(w.all) > 1 else []
    )
    random = probing.at_random(operator, w.dtype, CLOCK.random_probe_flops / 4, len(kits), count - len(telling))
    seen = {problem.label for problem in asked}
    return [*map(Probe, asked), *(probe for probe in (*random, *telling) if probe.problem.label not in seen)]


def _time(held: Held, w: Winners, library: int, seed: Seed, number: int, probe: Probe) -> Step:
    reference, problem = held.operator.reference, probe.problem
    small = w.direct is None or served.directly(held.operator, held.opened.platform, problem)
    which = probe.variants or tuple(range(len(w.all) - (not small)))
    call = reference.call(problem, seed.stream(7, library, number), "normal", Placement.START)
    written = max(buffer.data.size for buffer in call.buffers if buffer.access.value in ("out", "inout"))
    if written <= HALVES:
        call = reference.alternated(problem, call, seed.stream(8, library, number))
    entries = tuple(Entry(library, (reference.variant_flag, variant)) for variant in which)
    request = Time(call, entries, ROUNDS, WARM_NS, MIN_NS, MAX_NS, keep=True, draw=1)
    of = {"dtype": w.dtype, "dims": problem.sizes, "options": dict(problem.options), "variants": list(which)}
    drawn = int(seed.stream(9, library, number).integers(1 << 62))
    return Step(plan.TIME, of, [Planned(problem, request, problem.label, drawn)])


def written(out: Path, files: Mapping[str, bytes], kit: str, counts: Mapping[str, int]) -> Made:
    """The folder `out` and `out`.tar.gz, with the digests of its files."""
    packed = out.with_name(f"{out.name}.tar.gz")
    sums = "".join(f"{hashlib.sha256(text).hexdigest()}  {name}\n" for name, text in sorted(files.items()))
    whole = {**files, _SUMS: sums.encode()}
    _write(out, packed, whole)
    return Made(out, packed, kit, counts, sum(map(len, whole.values())))


def free(out: Path) -> None:
    """Only a kit that nothing was measured with may be replaced."""
    if out.exists() and not (out / _MANIFEST).is_file():
        raise UsageError(f"{out} exists and is no kit", hint="give another --out")
    if out.exists() and (others := sorted({path.name for path in out.iterdir()} - _OWN)):
        raise UsageError(
            f"{out} holds {others[0]}, which is no part of a kit",
            hint="import it or move it away, or give another --out",
        )


def _write(out: Path, packed: Path, files: Mapping[str, bytes]) -> None:
    """Beside its place, then there; a kit that was there is replaced."""
    aside = out.with_name(f".{out.name}.part")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir(parents=True)
        for name, data in files.items():
            (aside / name).write_bytes(data)
            (aside / name).chmod(0o755 if name in ("kit", _RUN) else 0o644)
        with tarfile.open(packed, "w:gz", compresslevel=1) as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(f"{out.name}/{name}")
                entry.size, entry.mode = len(data), 0o755 if name in ("kit", _RUN) else 0o644
                archive.addfile(entry, io.BytesIO(data))
        if out.exists():
            shutil.rmtree(out)
        aside.rename(out)
    except OSError as error:
        shutil.rmtree(aside, ignore_errors=True)
        raise JobError(
            f"cannot write the kit to {out}: {error.strerror or error}", hint="free space, or give another --out"
        ) from error
