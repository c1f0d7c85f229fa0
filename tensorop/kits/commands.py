"""`export` and `import`: a tuning kit for a machine elsewhere, and its results back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text

from tensorop import paths, tuning
from tensorop.cli import screen, tables
from tensorop.cli.command import Format, Jobs, NewSeed, Plugins, command, refuse_given
from tensorop.commands import opened
from tensorop.commands.opened import Opened
from tensorop.errors import UsageError
from tensorop.kits import device, on_device, retune
from tensorop.kits import export as exporting
from tensorop.kits import held as holding
from tensorop.kits import result as results
from tensorop.model.bench import Bench
from tensorop.model.option import Option
from tensorop.model.shape import Shape
from tensorop.model.verdict import Seed
from tensorop.target import Asked

_Product = Annotated[Path, Option(metavar="DIR", kind=Path, positional=True)]


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


@command(
    "export build/gemm-rvv",
    "export build/gemm-rvv --out kits/k1 --shapes 64x64x64,512x512x512 --probes 40",
    "export build/gemm-rvv --format json",
)
def export(
    path: _Product,
    out: Annotated[Path | None, Option("The kit's folder; DIR-kit by default.", "KIT", kind=Path)] = None,
    shapes: Annotated[
        str | None,
        Option(
            "What is timed beside the probes: a suite of the operator, or shapes, e.g. 64x64x64.",
            "SUITE|SHAPE,...",
            shown="the operator's first suite",
        ),
    ] = None,
    probes: Annotated[
        int,
        Option(
            "More shapes of each dtype for the dispatch: at random and, after a kit, where the choice is still open.",
            kind=int,
            least=0,
            most=1000,
        ),
    ] = exporting.PROBES,
    dtype: Annotated[str, Option("Types that are timed on a device; by default the first.", "NAME,...")] = "",
    layouts: Annotated[str, Option("Layouts that are timed on a device: NN, NT, TN, TT.", "NN,...")] = "",
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Write a tuning kit of a product for a machine without tensorop: it judges, times, and writes one file."""
    product = opened.open_product(path, plugins)
    wanted = tuning.shapes(product.operator, shapes) if shapes else ()
    place = out or path.with_name(f"{path.resolve().name}-kit")
    if product.by_kit:
        refuse_given("a kit for a device", {"jobs": "--jobs"})
        asked = Asked(wanted, probes, _words(dtype), _words(layouts.upper()))
        made = device.export(device.read(product), place, asked)
    elif dtype or layouts:
        raise UsageError("--dtype and --layouts are of kits for a device", hint="leave them out")
    else:
        made = exporting.export(holding.read(product), place, shapes=wanted, probes=probes, jobs=jobs)
    if format_ == "json":
        screen.echo_json(made.to_json())
        return
    steps = made.steps
    screen.echo(f"{made.folder} and {made.packed.name}: {made.size / 1e6:.1f} MB")
    screen.echo(f"{steps['control']} controls, {steps['verify']} verifications, {steps['time']} problems to time")
    then = paths.command("import", path, "result.jsonl", plugins=plugins)
    screen.echo(f"on the board: ./run-kit; then here: {then}")


@command("import build/gemm-rvv result.jsonl", "import build/gemm-rvv result.jsonl --format json", name="import")
def import_(
    path: _Product,
    file: Annotated[Path, Option(metavar="FILE", kind=Path, positional=True)],
    seed: NewSeed = "0",
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Choose among a product's variants anew, by what its kit measured on a board."""
    product = opened.open_product(path, plugins)
    if product.by_kit:
        refuse_given("a library for a device", {"jobs": "--jobs", "seed": "--seed"})
        _import_device(product, file, format_)
        return
    held = holding.read(product)
    found = results.read(file, held)
    done = retune.retune(held, found, plugins=plugins, jobs=jobs, seed=Seed.draw(*tuning.seed(seed)))
    if format_ == "json":
        screen.echo_json({**done.to_json(), "unmeasured": found.unmeasured})
        return
    screen.echo(f"{done.folder}: {done.said}: {done.rows} problems, {found.unmeasured} without a figure")
    for dtype, (old, new) in done.regret.items():
        before, after = ("not known" if of is None else f"{of:.1%}" for of in (old, new))
        screen.echo(f"{dtype}: choosing costs {after} on shapes left out (by what was known before: {before})")
    cases = sum(verdict.cases for verdict in done.verdicts)
    screen.echo(f"{cases} calls of the new library right here, seed {done.verdicts[0].seed}")
    screen.echo("a kit exported now measures what is still open")


def _import_device(product: Opened, file: Path, format_: str) -> None:
    done = device.retune(device.read(product), file)
    if format_ == "json":
        screen.echo_json(done.to_json())
        return
    screen.echo(f"{done.folder}: {done.said}: {done.rows} problems, {done.unmeasured} without a figure")
    for dtype, told in done.told.items():
        regret, off = told["regret"], told["off"]
        screen.echo(
            f"{dtype}: choosing costs {regret['after']:.1%} on shapes left out "
            f"(by the model alone {regret['before']:.1%}); "
            f"predictions are off by {off['after']:.1%} ({off['before']:.1%})"
        )
    if done.against:
        screen.echo(
            f"of cuBLASLt's best: {done.against['before']:.2f} as the library chose, "
            f"{done.against['fastest']:.2f} by its fastest kernels; a kit exported now measures other shapes"
        )


# --- libraries whose target takes no figures itself ----------------------------------------------------------------


def bench(found: Opened, shapes: Sequence[Shape], dtypes: Sequence[str], layout: int) -> Bench:
    """What `tensorop bench` does of such a library."""
    no_effect = {name: f"--{name}" for name in ("against", "threads", "fast", "jobs", "runner", "offline")}
    no_effect["older"] = "--compare"
    refuse_given("a library for a device, which is compared with cuBLASLt where the device is", no_effect)
    return on_device.bench(found, shapes, dtypes, layout)


def verify(found: Opened, format_: str) -> bool:
    """What `tensorop verify` does of such a library, and whether it is right."""
    no_effect = {name: f"--{name}" for name in ("dtype", "seed", "controls", "jobs", "runner")}
    refuse_given("a library for a device, which is verified in all its types, by new calls, after controls", no_effect)
    record = on_device.verify(found)
    screen.echo_json(record) if format_ == "json" else show_verified(record)
    return bool(record["ok"])


def show_verified(told: Mapping[str, Any]) -> None:
    """What was refused, what passed, and what is wrong."""
    refused = [one["control"] for one in told["controls"] if one["refused"]]
    verdicts, out = told["verdicts"], tables.console()
    said = f"{len(refused)} faulty kernels refused ({', '.join(refused)})" if refused else "no faulty kernel was tried"
    out.print(Text(f"on {told['device']}: {said}"), soft_wrap=True)
    wrong = [one for one in verdicts if one["outcome"] != "ok"]
    cases = sum(one["cases"] or 0 for one in verdicts)
    if not wrong:
        line = f"{cases} calls passed: the library's own choices, and each of {len(verdicts) - 1} variants"
        out.print(Text(line), soft_wrap=True)
    for one in wrong:
        name = "the library" if one["variant"] < 0 else f"variant {one['variant']}"
        said = f"{name} FAILED ({one['outcome']}): {one.get('message')} ({one.get('case')})"
        out.print(Text(said, "red"), soft_wrap=True)


COMMANDS = (export, import_)
