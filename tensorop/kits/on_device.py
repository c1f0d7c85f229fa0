"""`verify` and `bench` of a product for a device that is in this machine, by steps of the product's kit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from tensorop import paths
from tensorop.commands.opened import Opened
from tensorop.errors import JobError
from tensorop.kits import device, here
from tensorop.kits import result as results
from tensorop.measure.statistics import quartiles
from tensorop.model.bench import BaselineInfo, Bench, Ratio, Row
from tensorop.process import scratch
from tensorop.target import Asked

BEST, FIRST = "cublaslt", "cublaslt-top1"
_ANSWERS = "{} of its answers to seven queries, 32 MiB of workspace"
Rows = list[dict[str, Any]]


def verify(found: Opened) -> dict[str, Any]:
    """Controls, then the library as it chooses and each of its variants, in all types: what `--format json` prints.

    Raises JobError where the device is not in this machine, or its judge is broken there.
    """
    found.require_fit()
    machine, rows = _ran(found, Asked(), ("control", "verify"))
    told = {kind: [row for row in rows if row["kind"] == kind] for kind in ("control", "verify")}
    verdicts = [
        {"op": found.operator.name, **row["of"], **{name: row.get(name) for name in ("cases", "outcome")}}
        | {name: row[name] for name in ("message", "case") if name in row}
        for row in told["verify"]
    ]
    if not sum(verdict["cases"] or 0 for verdict in verdicts):
        raise JobError(
            f"the kit's program on {machine['device']} tried no case: nothing was verified", hint="tensorop doctor"
        )
    controls = [{"op": found.operator.name, **row["of"], "refused": row.get("message")} for row in told["control"]]
    good = all(verdict["outcome"] == "ok" for verdict in verdicts)
    common = {"platform": found.platform.name, "device": machine["device"], "ok": good}
    return {**common, "controls": controls, "verdicts": verdicts}


def bench(found: Opened, shapes: Sequence[tuple[int, ...]], dtypes: Sequence[str], layout: int) -> Bench:
    """The library's choices beside cuBLASLt's fastest and first answers; what each left was judged. shapes: by default
    the operator's for a device; layout: its number. Raises as `verify`, JobError too where nothing could be timed."""
    options = found.operator.layouts[layout]
    name = "TN"[not options.get("tb")] + "TN"[not options.get("ta")]
    machine, rows = _ran(found, Asked(shapes, 0, dtypes or found.dtypes, (name,)), ("control", "time"))
    timed = [row for row in rows if row["kind"] == "time"]
    made = {row["step"]: _row(found, row) for row in timed}
    absent = {
        f"{_shape(row)} {row['of']['dtype']}": str(row.get("message") or row["outcome"])
        for row in timed
        if made[row["step"]] is None
    }
    measured = [one for one in made.values() if one is not None]
    if not measured:
        raise JobError("nothing could be timed: " + "; ".join(f"{n}: {why}" for n, why in absent.items()))
    version = str(machine["cublaslt"])
    named = {BEST: "the fastest", FIRST: "the first"} if any(row.ratios for row in measured) else {}
    if not named:
        absent |= dict.fromkeys((BEST, FIRST), "libcublasLt.so is not on this machine; CUBLASLT=FILE names another")
    baselines = {n: BaselineInfo(version, _ANSWERS.format(said)) for n, said in named.items()}
    return Bench(found.platform.name, 1, "GFLOP/s", None, baselines, absent, tuple(measured), dict(machine))


def _ran(found: Opened, asked: Asked, kinds: Sequence[str]) -> tuple[Mapping[str, Any], Rows]:
    """The machine and the rows of so many steps."""
    of = device.read(found)
    if of.target.attached() is None:
        raise JobError(
            f"no GPU that {found.platform.name} is for is in this machine",
            hint=f"take a kit to one: {paths.command('export', of.root, plugins=found.plugins)}, there ./run-kit, here "
            f"{paths.command('import', of.root, 'result.jsonl', plugins=found.plugins)}",
        )
    with scratch.folder("kit") as folder:
        steps = device.export(of, folder / "kit", asked, kinds).steps
        ended = here.run(folder / "kit", sum(steps.values()))
        if ended.returncode not in (0, 1):
            said = (ended.stderr.strip() or "no word").splitlines()[-1]
            raise JobError(f"the kit's program ended with status {ended.returncode}: {said}", hint="tensorop doctor")
        head, *rest = results.lines(folder / "result.jsonl")
    return dict(head["machine"]), [row for row in rest if "step" in row]


def _shape(row: Mapping[str, Any]) -> str:
    return "x".join(str(row["of"][name]) for name in "mnk")


def _row(found: Opened, row: Mapping[str, Any]) -> Row | None:
    """None of a problem without a figure of the library."""
    of, arms = row["of"], row.get("arms", ())
    ours = next((arm for arm in arms if arm.get("variant") == row.get("chosen") and "us" in arm), None)
    if ours is None:
        return None
    answers = [arm for arm in arms if "cublaslt" in arm and "us" in arm]
    against = {}
    if answers:
        best = min(answers, key=lambda arm: median(arm["us"]))
        first = next((arm for arm in answers if arm["cublaslt"] == 0), best)
        against = {BEST: best, FIRST: first}
    low, middle, high = quartiles(ours["us"])
    verdicts = {name: arm.get("refused", "ok") for name, arm in {"ours": ours, **against}.items()}
    flops = 2e-3 * of["m"] * of["n"] * of["k"] * of["batch"]
    turned = [name for name, along in (("ta=1", of["a_along_m"]), ("tb=1", of["b_along_k"])) if along]
    return Row(
        found.operator.name,
        of["dtype"],
        {name: of[name] for name in "mnk"},
        " ".join(("row", *turned)),
        flops / middle,
        {name: _ratio(arm["us"], ours["us"]) for name, arm in against.items()},
        (high - low) / middle,
        verdicts=verdicts,
    )


def _ratio(theirs: Sequence[float], ours: Sequence[float]) -> Ratio:
    """By rounds, which were interleaved; one that was not timed in them has a single figure."""
    if len(theirs) != len(ours):
        value = median(theirs) / median(ours)
        return Ratio(value, value, value)
    low, middle, high = quartiles([one / own for one, own in zip(theirs, ours, strict=True)])
    return Ratio(middle, low, high)
