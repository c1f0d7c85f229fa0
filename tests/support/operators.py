"""The shipped operator and the seeds that tests judge it with."""

from __future__ import annotations

from collections.abc import Callable

from tensorop.model.kernel import Artifact, Source
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.runners.qemu import Qemu
from tensorop.specs import operators
from tensorop.toolchain import compile as compiling


def gemm() -> Operator:
    """templates/gemm, loaded as a job loads it."""
    return operators.load("gemm")


def beside_controls(name: str, text: str) -> Source:
    """A kernel in C with what gemm's controls may include."""
    header = gemm().folder / "controls" / "product.h"
    return Source(((name, text), (header.name, header.read_text()), *gemm().slots.files))


def runner_of(platform: Platform) -> Runner:
    """Where this platform's programs run by default."""
    return Qemu(platform.arch, platform.qemu_cpu, platform.vlens[0]) if platform.runner == "qemu" else Native()


def builder(platform: Platform) -> Callable[[Source, tuple[str, ...]], Artifact | Outcome]:
    """Source to program, as a job builds candidates."""

    def build(source: Source, extra: tuple[str, ...]) -> Artifact | Outcome:
        return compiling.compile_and_link(source, platform, (*compiling.candidate_flags(platform), *extra))

    return build
