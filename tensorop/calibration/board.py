"""Runs a platform's micro-benchmarks on a board, and fits the constants of its board model to the results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tensorop.calibration import constants, settle
from tensorop.calibration import fit as fitting
from tensorop.commands import microbench
from tensorop.commands.check_platform import TOLERANCE, Line, UnderModel, span
from tensorop.errors import JobError, of_system
from tensorop.model.core import Core
from tensorop.model.microbench import ClockedBenchmark, Question
from tensorop.model.trial import Outcome
from tensorop.runners.base import Runner
from tensorop.specs import board as board_spec
from tensorop.specs.board_alternative import switched

_CLOCK_OFF = 0.1


def on_board(under: UnderModel, target: Runner, core: Core, folder: Path) -> Iterator[Line]:
    """Times the benchmarks on the board, fits the model, and writes calibration-NAME.yaml into `folder`."""
    platform, model, benches = under.platform, under.model, under.benches
    clocked: dict[str, ClockedBenchmark] = {}
    absent: dict[str, str] = {}
    for bench, timed in zip(benches, microbench.time(benches, target), strict=True):
        name = bench.benchmark.name
        if isinstance(timed, Outcome):
            absent[name] = timed.message or timed.kind.value
            yield Line(False, name, absent[name])
        else:
            clocked[name] = timed
    declared = 1e3 * model.clock_ghz.value
    seen = sorted(c.mhz for c in clocked.values())[len(clocked) // 2] if clocked else 0.0
    off = abs(seen / declared - 1)
    yield Line(
        True,
        "clock",
        f"{seen:.0f} MHz measured by dependent additions, {declared:.0f} declared"
        + ("; cycles use the measured clock" if off > _CLOCK_OFF else ""),
        note=off > _CLOCK_OFF,
    )
    for bench, cycles in under.counted():
        found = microbench.interval(bench, cycles)
        real = clocked.get(bench.benchmark.name)
        if real is not None:
            inside = found.low * (1 - TOLERANCE) <= real.cycles <= found.high * (1 + TOLERANCE)
            message = f"{real.cycles:.2f} cycles/{bench.benchmark.unit} ({real.ns:.2f} ns), {span(found)}, "
            message += "inside" if inside else "outside"
            kind = "measured figures inside the model's range" if inside else ""
            yield Line(True, bench.benchmark.name, message, not inside, kind)
    measured = {name: c.cycles for name, c in clocked.items()}
    asked = under.questions()
    verdicts = settle.verdicts(asked, measured)
    yield from _settled(asked, measured, verdicts)
    shown = [name for name, verdict in verdicts.items() if verdict == settle.SHOWN]
    assert platform.board is not None
    model = board_spec.load(switched(platform.board, shown, "a board"), f"platform '{platform.name}'")
    try:
        fitted = fitting.fit(benches, measured, under.emulator, model, under.vlen)
    except JobError as error:
        yield Line(False, "calibration", str(error))
        return
    record = fitting.calibration(platform, model, fitting.BoardFigures(core, clocked, absent, verdicts), fitted)
    path = folder / f"calibration-{platform.name}.yaml"
    with of_system(JobError, f"{path} cannot be written", "run the command in a folder that you may write to"):
        path.write_text(constants.text(record), encoding="utf-8")
    if fitted.explains:
        for key, constant in record.constants.items():
            if constant.determined:
                limits = f"({constant.low:g} to {constant.high:g})"
                yield Line(True, key, f"{constant.value:g}, was {constant.was:g} {limits}", note=True)
    summary = f"{path}: residual {fitted.residual_after:.3f}, was {fitted.residual_before:.3f}"
    if not fitted.explains:
        summary += (
            f", {fitted.residual_known:.3f} for benchmarks that no constant affects: the model does not describe this "
            "board. "
            "It is another core, or its clock is not stable; the file has the raw measurements, and no platform can "
            "use it"
        )
    yield Line(fitted.explains, "calibration", summary)


def _settled(asked: Sequence[Question], measured: Mapping[str, float], verdicts: Mapping[str, str]) -> Iterator[Line]:
    """A line for each alternative with its verdict. An alternative that is shown contradicts the model's best fit."""
    for name, verdict in verdicts.items():
        parts = [
            f"{question.usual.benchmark.name} took {measured[question.usual.benchmark.name]:.2f} cycles, "
            f"{question.under.best:.2f} ({question.under.low:.2f} to {question.under.high:.2f}) under it, "
            f"{question.usual.best:.2f} ({question.usual.low:.2f} to {question.usual.high:.2f}) as modelled"
            for question in asked
            if question.alternative == name and question.usual.benchmark.name in measured
        ]
        message = f"{verdict}: {'; '.join(parts)}"
        yield Line(verdict != settle.SHOWN, f"alternative '{name}'", message, note=verdict == settle.OPEN)
