"""Runs a product's kit, or some of its steps, on this machine's own device.

Jobs do this before they publish, to choose variants by measured times. `verify` and `bench` do it too.
"""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from tensorop import paths, settings
from tensorop.author import offline
from tensorop.commands.explain import Explanation, VariantCost
from tensorop.commands.opened import Opened
from tensorop.device_target import DeviceContent
from tensorop.errors import JobError, UsageError
from tensorop.events import Event, Note, Phase
from tensorop.kits import device
from tensorop.kits import export as exporting
from tensorop.kits import result as results
from tensorop.kits import rows as kitrows
from tensorop.kits.device import DeviceProduct
from tensorop.kits.product import KitPlan, Retuned, read_manifest
from tensorop.kits.rows import DeviceMachine, DeviceTiming, KitRow
from tensorop.measure.statistics import halves, quartiles
from tensorop.model.bench import BEST, BaselineInfo, Bench, Ratio, Row
from tensorop.model.device import device_problem
from tensorop.model.job import Job
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape
from tensorop.process import children, scratch
from tensorop.process.stopping import StopRequest
from tensorop.store.journal import Journal
from tensorop.target import KitRequest

FIRST = "{}-top1"  # the baseline's first answer; its name alone is that of its fastest one
_START_S, _STEP_S = 300.0, 60.0  # limits; a step usually takes about a second
NOTE, _LINES = "kit", 100  # the journal's notes of a kit's results; lines of one
_STAYS = "the product stays as the model chose"


def measured(
    job: Job, found: Opened, content: DeviceContent, name: str, journal: Journal, stop: StopRequest
) -> Generator[Event, None, tuple[Retuned, str] | None]:
    """Runs the kit of a job's staged product on the GPU `name`: the product with the choice that its times correct.

    With machine and date of the measurement, for the user. None if nothing could be measured there.

    The kit's program appends each result to a file in work/, and goes on there when the job is started again. When it
    has ended, the journal gets the file's lines. Raises JobError if the library is wrong on the GPU.
    """
    of, status, why = DeviceProduct(found, *read_manifest(found), content), -1, "it was stopped"
    shapes = () if job.suite == found.operator.usual else job.shapes  # no --shapes was given
    with stop.may_end(f"stopping: {_STAYS}"):
        plan = of.plan(KitRequest(shapes, exporting.PROBES))
        rows, steps = job.out.absolute() / "work" / f"kit-{plan.kit[:16]}.jsonl", plan.steps
        notes = [data["lines"] for note, data in journal.history.notes if note == NOTE and data["kit"] == plan.kit]
        if job.fresh or not rows.exists():
            rows.write_text("".join(line for lines in notes for line in lines), encoding="ascii")
        yield Phase("measuring", f"on {name}: {steps['control']} controls, {steps['verify']} verifications, "
                    f"{steps['time']} shapes; this takes some minutes, Ctrl-C skips it")  # fmt: skip
        status, why = _run(plan, rows)
    if status not in (0, 1):
        yield Note(f"measuring on {name} stopped: {why}; {_STAYS}")
        return None
    try:
        result = results.read(rows, of)
    except JobError as error:
        error.message = f"the library failed on {name} and was not installed: {error.message}"
        raise
    if not notes:
        lines = rows.read_text(encoding="ascii").splitlines(keepends=True)
        for at in range(0, len(lines), _LINES):
            journal.note(NOTE, {"kit": plan.kit, "lines": lines[at : at + _LINES]})
    made = of.retuned([result.kept], result, job.jobs)
    yield from map(Note, made.lines)
    return made, f"{of.source(result)}: {len(result.kept.rows)} problems"


def _run(plan: KitPlan, rows: Path) -> tuple[int, str]:
    """Runs a kit's program, which writes the file `rows` or goes on with it: its status, and its last words.

    Status 1: the library is wrong.
    """
    steps = sum(plan.steps.values())
    seconds = _START_S + steps * _STEP_S
    with scratch.folder("kit") as folder:
        for name in ("kit", "plan.txt"):
            (folder / name).write_bytes(plan.files[name])
        (folder / "kit").chmod(0o755)
        argv = [str(folder / "kit"), "plan.txt", str(rows)]
        try:
            ended = children.run(argv, cwd=folder, env=settings.scrubbed_environment(), timeout=seconds)
        except subprocess.TimeoutExpired:
            return -signal.SIGKILL, f"{steps} steps took more than {seconds:.0f} s"
        return ended.returncode, (ended.stderr.strip() or "no word").splitlines()[-1]


# --- verify and bench ------------------------------------------------------------------------------------------------


def verify(found: Opened) -> dict[str, Any]:
    """Runs the controls, then verifies the library's own choices and each variant, in all types.

    The result is the record of `--format json`. Raises JobError if this machine lacks the device, or if a control has
    a wrong outcome.
    """
    machine, rows = _ran(found, KitRequest(kinds=("control", "verify")))
    name, verdicts, controls = found.operator.name, [], []
    for row in rows:
        of = {"op": name, **row.of.model_dump(exclude_unset=True)}
        if row.kind == "control":
            controls.append({**of, "refused": row.message or None})
        else:
            ended = {"cases": row.cases if "cases" in row.model_fields_set else None, "outcome": row.outcome}
            verdicts.append({**of, **ended, **row.model_dump(include={"message", "case"}, exclude_unset=True)})
    if not any(row.cases for row in rows if row.kind == "verify"):
        raise JobError(f"nothing was verified: the kit ran no call on {machine.device}", hint="run `tensorop doctor`")
    good = all(row.outcome == "ok" for row in rows if row.kind == "verify")
    common = {"platform": found.platform.name, "device": machine.device, "ok": good}
    return {**common, "controls": controls, "verdicts": verdicts}


def bench(found: Opened, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], layout: int) -> Bench:
    """Times the library's choices beside the baseline's fastest and first answers, and judges all results.

    shapes: by default the operator's for a device; layout: its number. Raises as `verify`, and JobError if nothing
    could be timed.
    """
    call, reference = found.operator.on_device, found.operator.reference
    some = found.operator.shapes.named(found.operator.suites[found.operator.usual][0])
    key = call.key_of(reference.known(reference.problem(found.dtypes[0], some, found.operator.layouts[layout])))
    name = call.text(key)
    machine, rows = _ran(found, KitRequest(shapes, 0, dtypes or found.dtypes, (name,), ("control", "time")))
    timed = [row for row in rows if isinstance(row, DeviceTiming)]
    made = {row.step: _row(found, row) for row in timed}
    absent = {
        f"{found.operator.shapes.text(_shape(found, row))} {row.of.dtype}": row.message or row.outcome
        for row in timed
        if made[row.step] is None
    }
    measured = [one for one in made.values() if one is not None]
    if not measured:
        raise JobError("nothing could be timed: " + "; ".join(f"{n}: {why}" for n, why in absent.items()))
    against, baselines = machine.baseline, {}
    if against and not getattr(machine, against):
        why = "no libcublasLt.so here; TENSOROP_KIT_CUBLASLT=FILE names one"
        absent |= dict.fromkeys((against, FIRST.format(against)), why)
    elif against:
        how, limit = kitrows.BASELINES[against]
        version, remarks, limited = str(getattr(machine, against)), (limit,) * bool(limit), (0,) * bool(limit)
        for name, rank in ((against, "the fastest"), (FIRST.format(against), "the first")):
            baselines[name] = BaselineInfo(version, how.format(rank), remarks, limited=limited)
        absent |= {
            f"{against} at {found.operator.shapes.text(_shape(found, row))} {row.of.dtype}": arm.refused
            for row in timed
            for arm in row.arms
            if arm.answer and not arm.us
        }
    facts = machine.model_dump(exclude_unset=True)
    return Bench(found.platform.name, 1, "GFLOP/s", None, baselines, absent, tuple(measured), facts)


def explain(found: Opened, problem: Problem) -> Explanation:
    """Why a GPU library takes a variant: the costs of its model, with the corrections by its kits. No GPU is needed."""
    of = device.read(found)
    call, known = of.operator.on_device, of.operator.reference.known(problem)
    sizes = [known[name] for name in of.operator.shapes.names]
    asked = device_problem(call, of.operator.name, problem.dtype, sizes, call.key_of(known))
    rows = of.problems(of.kept())
    costs = of.costs(rows, asked)
    if not costs:
        raise UsageError(f"no kernel of {found.library} serves {problem.label}", hint="its header says what it takes")
    ranked = sorted(costs, key=costs.__getitem__)
    records = of.of_operator["dtypes"][problem.dtype]["variants"]
    names = {int(one["number"]): f"{one['template']} {Point.of(one['point'])}" for one in records}
    least = costs[ranked[0]]
    variants = [VariantCost(n, names[n], costs[n], None, costs[n] / least - 1, "predicted") for n in sorted(costs)]
    by = f", corrected by {len(rows)} measured problems" if rows else ""
    features, rule = {**asked.sizes, **call.named(call.key(asked.options))}, f"the least cost of the cost model{by}"
    following = ranked[1] if len(ranked) > 1 else None
    return Explanation(problem.label, 0, 1, features, ranked[0], rule, [], of.target.unit, variants, following, "", "")


def _ran(found: Opened, request: KitRequest) -> tuple[DeviceMachine, Sequence[KitRow]]:
    """Runs the requested steps; the machine and the rows."""
    found.require_fit()
    of = device.read(found)
    if of.target.attached() is None:
        raise JobError(
            f"this machine has no GPU for platform '{found.platform.name}'",
            hint=f"use a kit: run {paths.command('export', of.root, plugins=found.plugins)} here, ./run-kit on the "
            "GPU machine, and then "
            f"{paths.command('import', of.root, 'result.jsonl', plugins=found.plugins)}",
        )
    variants = [one for of_dtype in of.of_operator["dtypes"].values() for one in of_dtype["variants"]]
    if models := sorted({one["author"] for one in variants} - offline.AUTHORS):
        raise UsageError(
            f"{of.root} has kernels by {', '.join(models)}, and nothing confines a model's kernels on a GPU",
            hint=f"use a kit where you accept that: {paths.command('export', of.root, plugins=found.plugins)}",
        )
    with scratch.folder("results") as folder:
        status, why = _run(of.plan(request), folder / "result.jsonl")
        if status not in (0, 1):
            raise JobError(f"the kit's program failed with status {status}: {why}", hint="run `tensorop doctor`")
        result = results.typed(folder / "result.jsonl")
    machine = result.machines[0]
    assert isinstance(machine, DeviceMachine)
    return machine, result.rows


def _row(found: Opened, row: DeviceTiming) -> Row | None:
    """A row of the comparison; None for a problem at which the library has no time."""
    of, arms = row.of, [arm for arm in row.arms if arm.us]
    ours = next((arm for arm in arms if arm.variant == row.chosen), None)
    if ours is None or not ours.us:
        return None
    answers = {arm.answer: arm for arm in arms if arm.answer}
    against = {}
    if answers:
        name = next(iter(answers))[0]
        fastest = min(answers.values(), key=lambda arm: median(arm.us or ()))
        against = {name: fastest, FIRST.format(name): answers.get((name, 0), fastest)}
    ratios, called = {n: _ratio(arm.us or (), ours.us) for n, arm in against.items() if not arm.refused}, {}
    if right := {answer: halves(arm.us or ()) for answer, arm in answers.items() if not arm.refused}:
        deciding, reporting = halves(ours.us)
        name, best = min(right, key=lambda answer: _ratio(right[answer][0], deciding).value)
        ratios[BEST], called[BEST] = _ratio(right[name, best][1], reporting), name if best else FIRST.format(name)
    low, middle, high = quartiles(ours.us)
    operator, call = found.operator, found.operator.on_device
    options = call.flags(call.key(of.options), operator.reference.flags, operator.layouts[0])
    sizes = operator.shapes.named(_shape(found, row))
    problem = operator.reference.problem(operator.dtypes[0], sizes, options)
    return Row(
        operator.name,
        of.dtype,
        sizes,
        " ".join(str(word) if isinstance(word, str) else f"{name}={word}" for name, word in options.items() if word),
        1e-3 * operator.reference.work(problem) * call.repeats(of.dims) / middle,
        ratios,
        (high - low) / middle,
        verdicts={name: arm.refused or "ok" for name, arm in {"ours": ours, **against}.items()},
        called=called,
    )


def _shape(found: Opened, row: DeviceTiming) -> Shape:
    """A problem's shape, without the other numbers of a call."""
    shapes, dims = found.operator.shapes, row.of.dims
    return tuple(shapes.filled({name: dims[name] for name in shapes.names}).values())


def _ratio(theirs: Sequence[float], ours: Sequence[float]) -> Ratio:
    """The ratio by interleaved rounds. If the counts of rounds differ, it is that of the medians, without a range."""
    if len(theirs) != len(ours):
        value = median(theirs) / median(ours)
        return Ratio(value, value, value)
    low, middle, high = quartiles([one / own for one, own in zip(theirs, ours, strict=True)])
    return Ratio(middle, low, high)
