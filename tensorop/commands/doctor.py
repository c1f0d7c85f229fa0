"""`doctor`: lists the tools on this machine and how to get the missing ones, and runs a self-test."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from tensorop import backends
from tensorop.errors import TensoropError
from tensorop.measure import machine
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.provision import check, view
from tensorop.provision.check import Piece
from tensorop.runners import session
from tensorop.runners.session import Guest
from tensorop.specs import leftovers, platforms
from tensorop.target import Target
from tensorop.toolchain import programs

_SEES_ALL = (
    "this kernel has neither user namespaces nor Landlock, so the compiler could read files of this machine; only the "
    "C gate and the list of files that were read protect them"
)


@dataclass(frozen=True)
class SelfTest:
    """One part of the self-test."""

    name: str
    ok: bool
    detail: str  # the finding, or the reason for the failure


@dataclass(frozen=True)
class Health:
    platform: str  # the pieces are for this platform; "": for all
    pieces: tuple[Piece, ...]
    steps: tuple[SelfTest, ...]
    complaints: tuple[str, ...]  # conditions that make native measurements unreliable now
    plugins: tuple[str, ...] = ()  # unused files in plug-in folders

    @property
    def ok(self) -> bool:
        """True if every required piece is present and every step passed."""
        return all(p.status == "ok" or p.optional for p in self.pieces) and all(step.ok for step in self.steps)

    def to_json(self) -> dict[str, object]:
        return {
            "platform": self.platform or None,
            "ok": self.ok,
            "pieces": [asdict(piece) for piece in self.pieces],
            "self_test": [asdict(step) for step in self.steps],
            "complaints": list(self.complaints),
            "plugins": list(self.plugins),
        }


def doctor(platform: str | None = None, runner: str | None = None, *, plugins: tuple[Path, ...] = ()) -> Health:
    """Checks the pieces that jobs on a platform need, then compiles, runs and measures a tiny program there.

    platform: None: the pieces of all platforms, and the self-test on this machine
    Raises UsageError for an unknown platform. Every other fault is in the result.
    """
    resolved = platforms.load(platform or "native", plugins)
    wanted = [resolved.arch] if platform else []
    here = backends.load(resolved.runner, plugins).is_host
    features = {resolved.name: resolved.requires} if resolved.requires and here else None
    found = tuple(check.pieces(wanted, features=features))
    # The self-test would download missing pieces, and this command must not install anything.
    lacking = [p.name for p in found if p.status != "ok" and not p.optional and p.purpose != check.PYTHON_PACKAGE]
    left_out = SelfTest("self-test", False, f"skipped, since {', '.join(lacking)} is missing")
    return Health(
        platform=resolved.name if platform else "",
        pieces=found,
        steps=(left_out,) if lacking and platform else tuple(_self_test(resolved, runner, plugins)),
        complaints=machine.complaints(machine.record()),
        plugins=leftovers.remarks(plugins),
    )


def _self_test(platform: Platform, runner: str | None, plugins: tuple[Path, ...]) -> Iterator[SelfTest]:
    try:
        target = backends.reach(platform, runner, plugins)
        unmeasured = "" if target.measures else "; nothing runs or is measured there"
        yield SelfTest("reach", True, f"{target.platform.name} by {target.name}{unmeasured}")
        if not target.measures:
            return
        program = programs.sample_program(platform)
        if isinstance(program, Outcome):
            yield SelfTest("compile", False, program.message)
            return
        size = program.path.stat().st_size
        hidden = view.describe(view.guards())
        sees = f"files of this machine are hidden from the compiler by {hidden}" if hidden else _SEES_ALL
        made_of = f"a static program of {size >> 10} KiB for {platform.compiler.static_target}"
        yield SelfTest("compile", True, f"{made_of}; {sees}")
        for vlen in target.vlens:
            yield from _execute(target, program.path, vlen)
    except TensoropError as error:
        yield SelfTest("self-test", False, str(error).replace("\n", "; "))


def _execute(target: Target, program: Path, vlen: int) -> Iterator[SelfTest]:
    guest = Guest(vlen=vlen)
    hello = session.hello(target.runner, program, guest=guest)
    at = f" at {target.label(vlen)}" if len(target.vlens) > 1 else ""
    wrong = programs.sample_fault(target.runner, program, guest)
    yield SelfTest(f"run{at}", not wrong, wrong or "; ".join(target.weaknesses(hello)) or "sandboxed")
    if target.assumed is None:
        return
    counted = target.measure(MeasureRequest(program, [programs.SAMPLE_CALL], purpose=Purpose.CHOICE, vlen=vlen))
    if isinstance(counted, Outcome):
        yield SelfTest(f"count{at}", False, counted.message)
        return
    instructions, cycles = counted[0].samples.counters["instructions"], counted[0].samples.value
    detail = f"{instructions:.0f} instructions, {cycles:.0f} modelled cycles by {target.assumed.name}"
    yield SelfTest(f"count{at}", instructions > 0, detail)
