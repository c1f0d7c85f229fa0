"""The commands `export` and `import`: they write a tuning kit for another machine, and read its results."""

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
    out: Annotated[Path | None, Option("Write the kit to this folder.", "KIT", "kits/k1", shown="DIR-kit")] = None,
    shapes: Shapes = None,
    probes: Annotated[
        int,
        Option(
            "Also time N shapes of each dtype, to improve the choice of kernels at run time: random ones, and after an "
            "import those whose choice is still uncertain.",
            "N",
            "40",
            least=0,
            most=1000,
        ),
    ] = exporting.PROBES,
    dtype: Annotated[
        str, Option("Time these element types (GPU kits only).", "NAME,...", "bf16", shown="the first one")
    ] = "",
    layouts: Annotated[str, Option("Time these layouts of NN, NT, TN, TT (GPU kits only).", "NN,...", "NN,TN")] = "",
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Write a tuning kit for a machine without tensorop.

    Copy the kit to the board or GPU machine and run it there. It verifies and times the kernels and writes one file,
    which `tensorop import` reads.
    """
    library = opened.open_product(path, plugins)
    wanted = tuning.shapes(library.operator, shapes) if shapes else ()
    place = out or path.with_name(f"{path.resolve().name}-kit")
    if library.by_kit:
        refuse_given("a GPU kit", {"jobs": "--jobs"})
    elif dtype or layouts:
        given = "--dtype" if dtype else "--layouts"
        raise UsageError(f"{given} applies to GPU kits only, and {path} is a CPU product", hint=f"remove {given}")
    request = KitRequest(wanted, probes, _words(dtype), _words(layouts.upper()), jobs=jobs)
    made = exporting.export(_read(library), place, request)
    if format_ == "json":
        screen.echo_json(made.to_json())
        return
    steps = made.steps
    screen.echo(f"{made.folder} and {made.packed.name}: {made.size / 1e6:.1f} MB")
    screen.echo(
        f"it checks {steps['control']} known-wrong kernels, makes {steps['verify']} verifications and times "
        f"{steps['time']} shapes"
    )
    then = paths.command("import", path, "result.jsonl", plugins=plugins)
    screen.echo(f"next: run ./run-kit on the board, bring result.jsonl here, and run {then}")


@command("import build/gemm-rvv result.jsonl", "import build/gemm-rvv result.jsonl --format json", name="import")
def import_(
    path: _Product,
    file: Annotated[Path, Option(metavar="FILE", positional=True)],
    seed: NewSeed = "0",
    jobs: Jobs = 2,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Improve a product with the results of its kit.

    FILE is what the kit wrote on the board. The library then chooses its kernels by these measurements.
    """
    library = opened.open_product(path, plugins)
    if library.by_kit:
        refuse_given("a GPU library", {"jobs": "--jobs", "seed": "--seed"})
    product = _read(library)
    done = retune.retune(product, results.read(file, product), jobs=jobs, seed=Seed.draw(*tuning.seed(seed)))
    if format_ == "json":
        screen.echo_json(done.to_json())
        return
    screen.echo(f"{done.folder}: {done.source}: {done.rows} shapes, {done.unmeasured} of them without a time")
    for line in done.lines:
        screen.echo(line)
    if done.verdicts:
        cases = sum(verdict.cases for verdict in done.verdicts)
        screen.echo(f"{cases} calls of the new library verified on this machine, seed {done.verdicts[0].seed}")
        screen.echo("to improve it further, export another kit: it times the shapes whose choice is still uncertain")


# --- libraries that are measured only by their kits ----------------------------------------------------------------


def bench(found: Opened, shapes: Sequence[Shape], dtypes: Sequence[str], layout: int) -> Bench:
    """Runs `tensorop bench` for such a library."""
    no_effect = {name: f"--{name}" for name in ("against", "threads", "fast", "jobs", "runner", "offline")}
    no_effect["older"] = "--compare"
    refuse_given("a GPU library, which is always compared by its kit on the GPU of this machine", no_effect)
    return here.bench(found, shapes, dtypes, layout)


def verify(found: Opened, format_: str) -> bool:
    """Runs `tensorop verify` for such a library. True if the library is correct."""
    no_effect = {name: f"--{name}" for name in ("dtype", "seed", "controls", "jobs", "runner")}
    refuse_given("a GPU library: all its dtypes are verified with new calls, after the controls", no_effect)
    record = here.verify(found)
    screen.echo_json(record) if format_ == "json" else show_verified(record)
    return bool(record["ok"])


def show_verified(record: Mapping[str, Any]) -> None:
    """Prints the refused controls, the count of passed calls, and the failures."""
    refused = [one["control"] for one in record["controls"] if one["refused"]]
    verdicts, out = record["verdicts"], tables.console()
    text = f"{len(refused)} known-wrong kernels rejected ({', '.join(refused)})" if refused else "no controls ran"
    out.print(Text(f"on {record['device']}: {text}"), soft_wrap=True)
    wrong = [one for one in verdicts if one["outcome"] != "ok"]
    cases = sum(one["cases"] or 0 for one in verdicts)
    if not wrong:
        line = f"{cases} calls passed: those of the library, and those of each of its {len(verdicts) - 1} variants"
        out.print(Text(line), soft_wrap=True)
    for one in wrong:
        name = "the library" if one["variant"] < 0 else f"variant {one['variant']}"
        text = f"{name} FAILED ({one['outcome']}): {one.get('message')} ({one.get('case')})"
        out.print(Text(text, "red"), soft_wrap=True)


COMMANDS = (export, import_)
