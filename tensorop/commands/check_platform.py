"""`platforms check`: checks the claims of a platform file, one line each.

Always: the file, its primitives, compiler flags, a program on the target, VLENs, emulator and board model.
With a board model: micro-benchmarks, compared with published figures.
On a board: the same programs, timed by its clock, and a calibration of the board model.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop import backends, subpackages
from tensorop.commands import microbench
from tensorop.commands.microbench import PreparedBenchmark
from tensorop.errors import JobError, TensoropError
from tensorop.model.kernel import Artifact
from tensorop.model.microbench import MicrobenchPoint, Modelled, Question
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.provision import qemu as provision_qemu
from tensorop.runners import facts
from tensorop.runners.base import Runner
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.specs import board as board_spec
from tensorop.specs import microbench as microbench_spec
from tensorop.specs.board import BoardModel
from tensorop.toolchain import programs
from tensorop.toolchain.programs import identify_program

# A share of the modelled cycles: loop ends and region marks cost a little, in the model and in the published loops.
TOLERANCE = 0.03


@dataclass(frozen=True)
class Line:
    """The result of one check."""

    ok: bool
    about: str  # the checked part
    message: str  # the finding
    note: bool = False  # for information only: neither passed nor failed
    kind: str = ""  # a plural for similar checks: those that passed are shown as one line

    def __str__(self) -> str:
        return f"{self._mark} {self.about}: {self.message}"

    def summary(self, count: int) -> str:
        """The line for `count` passed checks of this kind."""
        return f"{self._mark} {count} {self.kind}"

    @property
    def _mark(self) -> str:
        return "    " if self.note else "ok  " if self.ok else "FAIL"


@dataclass(frozen=True)
class UnderModel:
    """A platform with its board model and micro-benchmarks."""

    platform: Platform
    model: BoardModel
    emulator: Qemu  # counts the benchmarks' instructions
    benches: Sequence[PreparedBenchmark]
    vlen: int  # bits; the benchmarks are built for it

    def counted(self) -> Iterator[tuple[PreparedBenchmark, tuple[float, ...]]]:
        return microbench.model(self.benches, self.emulator, self.model, self.vlen)

    def questions(self) -> tuple[Question, ...]:
        return microbench.questions(self.benches, self.emulator, self.model, self.vlen)


def check(
    platform: Platform,
    runner: str | None = None,
    plugins: tuple[Path, ...] = (),
    folder: Path = Path(),
    only: Sequence[str] = (),
) -> Iterator[Line]:
    """Checks the claims of a platform, on its own runner or on `runner`. Every other failure is a line that is not ok.

    runner: with ssh://host, the assumed constants of the board model are fitted on that board and written to
    calibration-NAME.yaml in `folder`.
    only: names of micro-benchmarks; empty: all
    Raises UsageError for an unknown runner, BoardError if a board does not answer or is not the declared core.
    """
    yield Line(True, "file", " < ".join(platform.lineage))
    sizes = {
        one.name: len({name for of in one.types.values() for name in of.primitives}) for one in platform.primitives
    }
    yield Line(True, "primitives", ", ".join(f"{name} ({size})" for name, size in sizes.items()))
    try:
        candidate = _candidate(platform)
    except TensoropError as error:
        yield Line(False, "compiler", str(error))
        return
    yield Line(True, "compiler", " ".join((*platform.compiler.arch_flags, *platform.compiler.flags)))
    found, address = backends.chosen(runner or platform.runner, plugins)
    platform, target, core = found.meet(platform, address)
    if core is not None:
        yield Line(True, "board", f"{core.label}, kernel {core.kernel}, {core.cores} cores, {core.clock_mhz:.0f} MHz")
    yield from _runs(platform, target, candidate)
    if platform.board is None:
        yield Line(True, "board model", "none", note=True)
        return
    try:
        model = board_spec.load(platform.board, f"platform '{platform.name}'")
        emulator = Qemu(platform.arch, platform.qemu_cpu)
        provision_qemu.qemu(platform.arch)
    except TensoropError as error:
        yield Line(False, "board model", str(error))
        return
    known = "calibrated" if model.calibrated else f"not calibrated, {len(model.unknowns())} assumed constants"
    yield Line(True, "board model", f"{model.name} version {model.version}, {known}; {caches_of(platform)}")
    vlen = platform.vlens[0]
    benches = microbench.prepare(platform, vlen, only)
    if not benches:
        yield Line(True, "micro-benchmarks", f"none for {platform.arch}", note=True)
        return
    under = UnderModel(platform, model, emulator, benches, vlen)
    if core is None:
        yield from _published(under, plugins)
    else:
        board_part = subpackages.require("calibration", "board", "fitting a board model to a board")
        yield from board_part.on_board(under, target, core, folder)


def _candidate(platform: Platform) -> Artifact:
    made = programs.sample_program(platform)
    if isinstance(made, Outcome):
        raise JobError(f"{made.message}\n{made.log}".rstrip())
    return made


def caches_of(platform: Platform) -> str:
    """The cache levels that a platform's board model has, and those that it lacks."""
    others = platform.unmodelled_caches
    beyond = f"; {', '.join(others)} and DRAM as one level beyond" if others else ""
    return f"caches {', '.join(platform.modelled_caches)}{beyond}"


def _runs(platform: Platform, target: Runner, candidate: Artifact) -> Iterator[Line]:
    """Runs a candidate in the harness and reads the core's VLEN, at each VLEN of the platform."""
    identify = identify_program(platform.arch)
    for vlen in sorted({*platform.vlens, *platform.verify_vlens}):
        about = f"VLEN {vlen}"
        try:
            wrong = programs.sample_fault(target, candidate.path, Guest(vlen=vlen))
            found = facts.execute(target, identify.path, vlen).get("vlen", str(vlen))
        except TensoropError as error:
            yield Line(False, about, str(error))
            return
        if wrong:
            yield Line(False, about, f"a test program fails: {wrong}")
        elif int(found) != vlen:
            yield Line(False, about, f"the core has VLEN {found}")
        else:
            yield Line(True, about, f"a test program runs on {target.name}")


def _published(under: UnderModel, plugins: tuple[Path, ...]) -> Iterator[Line]:
    """Compares modelled figures and their intervals with published figures."""
    ghz, vlen = under.model.clock_ghz.value, under.vlen
    points: dict[str, list[MicrobenchPoint]] = {}
    for point in microbench_spec.published(under.model.name, plugins):
        points.setdefault(point.benchmark, []).append(point)
    choices: dict[str, tuple[float, ...]] = {}
    for bench, cycles in under.counted():
        choices[bench.benchmark.name] = cycles
        found = microbench.interval(bench, cycles)
        given = points.get(bench.benchmark.name, [])
        if not given:
            yield Line(True, bench.benchmark.name, span(found), True, "micro-benchmarks without a published figure")
        for point in given:
            yield _beside(found, point, ghz, vlen)
    for asked in under.questions():
        message = f"{span(asked.under)}, {span(asked.usual)} without it; measure {asked.under.benchmark.name} on a "
        message += "board to decide"
        yield Line(True, f"alternative '{asked.alternative}'", message, True, "questions that only a board decides")
    yield from _order(points, choices, {b.benchmark.name: b for b in under.benches})


def span(found: Modelled) -> str:
    return f"{found.best:.2f} modelled cycles/{found.benchmark.unit} ({found.low:.2f} to {found.high:.2f})"


def _beside(found: Modelled, point: MicrobenchPoint, clock_ghz: float, vlen: int) -> Line:
    cycles = point.cycles(found.benchmark, clock_ghz, vlen)
    inside = found.low * (1 - TOLERANCE) <= cycles <= found.high * (1 + TOLERANCE)
    as_given = f" ({point.value:g} {point.unit})" if point.unit != "cycles" else ""
    loose = point.kind == "loose"
    part = loose and found.high < cycles
    where = "inside" if inside else "faster, as a part may be" if part else "outside"
    remark = " for a larger computation" if loose else ""
    message = f"{span(found)}, published {cycles:.2f}{as_given}{remark}, {where}; {point.source}"
    kind = "published figures of larger computations" if loose else "published figures inside the model's range"
    return Line(inside or loose, found.benchmark.name, message, loose, kind)


def _order(
    points: dict[str, list[MicrobenchPoint]],
    choices: dict[str, tuple[float, ...]],
    benches: dict[str, PreparedBenchmark],
) -> Iterator[Line]:
    """Kernels with published speeds must have the published order under every choice of the assumed constants."""
    speeds = {
        name: max(p.value for p in given if p.unit == "GFLOP/s")
        for name, given in points.items()
        if name in choices and any(p.unit == "GFLOP/s" for p in given)
    }
    names = sorted(speeds, key=lambda name: speeds[name])
    for slow, fast in itertools.pairwise(names):
        ratios = [
            a / benches[slow].benchmark.flops / (b / benches[fast].benchmark.flops)
            for a, b in zip(choices[slow], choices[fast], strict=True)
        ]
        right = sum(ratio > 1 for ratio in ratios)
        message = (
            f"{fast} {min(ratios):.2f} to {max(ratios):.2f} times as fast as {slow}, as published in {right} of "
            f"{len(ratios)} choices of constants; published {speeds[fast] / speeds[slow]:.2f}"
        )
        yield Line(right == len(ratios), "order", message)
