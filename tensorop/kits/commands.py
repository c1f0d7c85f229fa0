"""`export` and `import`: a tuning kit for a machine elsewhere, and its results back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from rich.text import Text

from tensorop import paths, tuning
from tensorop.cli import screen, tables
from tensorop.cli.command import Format, Jobs, NewSeed, Plugins, Shapes, command, refuse_given
from tensorop.commands import opened
from tensorop.commands.opened import Opened
from tensorop.errors import UsageError
from tensorop.kits import device, here, processor, retune
from tensorop.kits import export as exporting
from tensorop.kits import result as results
from tensorop.kits.product import KitProduct
from tensorop.model.bench import Bench
from tensorop.model.option import Option
from tensorop.model.shape import Shape
from tensorop.model.verdict import Seed
from tensorop.target import KitRequest

_Product = Annotated[Path, Option(metavar="DIR", positional=True)]


def _read(library: Opened) -> KitProduct:
    return device.read(library) if library.by_kit else processor.read(library)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


@command(
    "export build/gemm-rvv",
    "export build/gemm-rvv --out kits/k1 --shapes 64x64x64,512x512x512 --probes 40",
    "export build/gemm-rvv --format json",
)
def export(
    path: _Product,
    out: Annotated[Path | None, Option("The kit's folder; DIR-kit by default.", "KIT")] = None,
    shapes: Shapes = None,
    probes: Annotated[
        int,
        Option(
            "More shapes of each dtype for the dispatch: at random and, after a kit, where the choice is still open.",
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
    library = opened.open_product(path, plugins)
    wanted = tuning.shapes(library.operator, shapes) if shapes else ()
    place = out or path.with_name(f"{path.resolve().name}-kit")
    if library.by_kit:
        refuse_given("a kit for a device", {"jobs": "--jobs"})
    elif dtype or layouts:
        raise UsageError("--dtype and --layouts are of kits for a device", hint="leave them out")
    request = KitRequest(wanted, probes, _words(dtype), _words(layouts.upper()), jobs=jobs)
    made = exporting.export(_read(library), place, request)
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
    file: Annotated[Path, Option(metavar="FILE", positional=True)],
    seed: NewSeed = "0",
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Choose among a product's variants anew, by what its kit measured on a board."""
    library = opened.open_product(path, plugins)
    if library.by_kit:
        refuse_given("a library for a device", {"jobs": "--jobs", "seed": "--seed"})
    product = _read(library)
    done = retune.retune(product, results.read(file, product), jobs=jobs, seed=Seed.draw(*tuning.seed(seed)))
    if format_ == "json":
        screen.echo_json(done.to_json())
        return
    screen.echo(f"{done.folder}: {done.source}: {done.rows} problems, {done.unmeasured} without a figure")
    for line in done.lines:
        screen.echo(line)
    if done.verdicts:
        cases = sum(verdict.cases for verdict in done.verdicts)
        screen.echo(f"{cases} calls of the new library right here, seed {done.verdicts[0].seed}")
        screen.echo("a kit exported now measures what is still open")


# --- libraries whose target takes no figures itself ----------------------------------------------------------------


def bench(found: Opened, shapes: Sequence[Shape], dtypes: Sequence[str], layout: int) -> Bench:
    """What `tensorop bench` does of such a library."""
    no_effect = {name: f"--{name}" for name in ("against", "threads", "fast", "jobs", "runner", "offline")}
    no_effect["older"] = "--compare"
    refuse_given("a library for a device, which is compared with cuBLASLt where the device is", no_effect)
    return here.bench(found, shapes, dtypes, layout)


def verify(found: Opened, format_: str) -> bool:
    """What `tensorop verify` does of such a library, and whether it is right."""
    no_effect = {name: f"--{name}" for name in ("dtype", "seed", "controls", "jobs", "runner")}
    refuse_given("a library for a device, which is verified in all its types, by new calls, after controls", no_effect)
    record = here.verify(found)
    screen.echo_json(record) if format_ == "json" else show_verified(record)
    return bool(record["ok"])


def show_verified(record: Mapping[str, Any]) -> None:
    """What was refused, what passed, and what is wrong."""
    refused = [one["control"] for one in record["controls"] if one["refused"]]
    verdicts, out = record["verdicts"], tables.console()
    text = f"{len(refused)} faulty kernels refused ({', '.join(refused)})" if refused else "no faulty kernel was tried"
    out.print(Text(f"on {record['device']}: {text}"), soft_wrap=True)
    wrong = [one for one in verdicts if one["outcome"] != "ok"]
    cases = sum(one["cases"] or 0 for one in verdicts)
    if not wrong:
        line = f"{cases} calls passed: the library's own choices, and each of {len(verdicts) - 1} variants"
        out.print(Text(line), soft_wrap=True)
    for one in wrong:
        name = "the library" if one["variant"] < 0 else f"variant {one['variant']}"
        text = f"{name} FAILED ({one['outcome']}): {one.get('message')} ({one.get('case')})"
        out.print(Text(text, "red"), soft_wrap=True)


COMMANDS = (export, import_)
