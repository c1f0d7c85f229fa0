"""`doctor`: what is on this machine, what is missing and how to get it, and whether the whole path works."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import backends
from tensorop.build import programs
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

_SEES_ALL = (
    "this kernel has neither user namespaces nor Landlock, so the compiler could read files of this machine; the gate "
    "of C and the list of what was read are all that stands before it"
)


@dataclass(frozen=True)
class Step:
    """One part of the self-test. ok: whether it did what it must; detail: what it found, or why not."""

    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class Health:
    """platform: name the pieces are for, "" for all; complaints: what makes native figures doubtful now."""

    platform: str
    pieces: tuple[Piece, ...]
    steps: tuple[Step, ...]
    complaints: tuple[str, ...]
    plugins: tuple[str, ...] = ()  # what is in plug-in folders and nothing uses

    @property
    def ok(self) -> bool:
        """Everything needed is there and every step passed."""
        return all(p.status == "ok" or p.optional for p in self.pieces) and all(step.ok for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        return {
            "platform": self.platform or None,
            "ok": self.ok,
            "pieces": [dataclasses.asdict(piece) for piece in self.pieces],
            "self_test": [dataclasses.asdict(step) for step in self.steps],
            "complaints": list(self.complaints),
            "plugins": list(self.plugins),
        }


def doctor(platform: str | None = None, runner: str | None = None, *, plugins: tuple[Path, ...] = ()) -> Health:
    """Looks at what jobs on a platform need (without one: on any), then compiles, runs and counts something tiny there
    (without one: on the machine at hand).

    Raises UsageError for an unknown platform. Whatever else is wrong is in the answer.
    """
    resolved = platforms.load(platform or "native", plugins)
    wanted = [resolved.arch] if platform else []
    here = backends.load(resolved.runner, plugins).is_host
    features = {resolved.name: resolved.requires} if resolved.requires and here else None
    found = tuple(check.pieces(wanted, features=features))
    # The self-test would fetch what is missing; a doctor only looks.
    lacking = [p.name for p in found if p.status != "ok" and not p.optional and p.purpose != check.PYTHON_PACKAGE]
    left_out = Step("self-test", False, f"left out for want of {', '.join(lacking)}")
    steps = (left_out,) if lacking and platform else ()
    return Health(
        platform=resolved.name if platform else "",
        pieces=found,
        steps=steps or tuple(_self_test(resolved, runner, plugins)),
        complaints=machine.complaints(machine.record()),
        plugins=leftovers.remarks(plugins),
    )


def _self_test(platform: Platform, runner: str | None, plugins: tuple[Path, ...]) -> list[Step]:
    steps: list[Step] = []
    try:
        target = backends.reach(platform, runner, plugins)
        unmeasured = "" if target.measures else "; nothing is measured or tried there, products say so"
        steps.append(Step("reach", True, f"{target.platform.name} by {target.name}{unmeasured}"))
        if not target.measures:
            return steps
        program = programs.sample_program(platform)
        if isinstance(program, Outcome):
            return [*steps, Step("compile", False, program.message)]
        size = program.path.stat().st_size
        hidden = view.describe(view.guards())
        sees = f"files of this machine are hidden from the compiler by {hidden}" if hidden else _SEES_ALL
        made_of = f"a static program of {size >> 10} KiB for {platform.compiler.static_target}"
        steps.append(Step("compile", True, f"{made_of}; {sees}"))
        steps += _execute(target, program.path)
    except TensoropError as error:
        steps.append(Step("self-test", False, str(error).replace("\n", "; ")))
    return steps


def _execute(target: Target, program: Path) -> list[Step]:
    steps = []
    for vlen in target.vlens:
        guest = Guest(vlen=vlen)
        hello = session.hello(target.runner, program, guest=guest)
        at = f" at {target.label(vlen)}" if len(target.vlens) > 1 else ""
        wrong = programs.sample_fault(target.runner, program, guest)
        jail = "; ".join(target.weaknesses(hello)) or "in a closed jail"
        steps.append(Step(f"run{at}", not wrong, wrong or jail))
        if target.assumed is not None:
            counted = target.measure(MeasureRequest(program, [programs.SAMPLE_CALL], purpose=Purpose.CHOICE, vlen=vlen))
            if isinstance(counted, Outcome):
                steps.append(Step(f"count{at}", False, counted.message))
            else:
                instructions, cycles = counted[0].samples.counters["instructions"], counted[0].samples.value
                detail = f"{instructions:.0f} instructions, {cycles:.0f} modelled cycles by {target.assumed.name}"
                steps.append(Step(f"count{at}", instructions > 0, detail))
    return steps
