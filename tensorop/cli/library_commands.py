"""`bench`, `judge`, `verify`, `inspect`, `report`, `doctor`: what looks at a library, a file or this machine."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from rich.text import Text

from tensorop import paths, subpackages
from tensorop.cli import compare_output, options, screen, tables
from tensorop.cli.helps import (
    examples,
    format_option,
    is_given,
    jobs_option,
    offline_option,
    plugins_option,
    refuse_given,
    runner_option,
    seed_option,
)
from tensorop.cli.judge_command import judge
from tensorop.commands import bench as benching
from tensorop.commands import compare as comparing
from tensorop.commands import doctor as doctoring
from tensorop.commands import libraries, opened, scaling
from tensorop.commands import report as reporting
from tensorop.commands import verify as verifying
from tensorop.commands.opened import Opened
from tensorop.errors import JobError, UsageError
from tensorop.model.bench import Bench, Row, joined
from tensorop.provision import baseline
from tensorop.space import problems
from tensorop.specs import benches

_MOST_THREADS = 1024
_NOT_ON_DEVICE = {
    "against": "--against", "older": "--compare", "threads": "--threads", "fast": "--fast", "jobs": "--jobs",
    "runner": "--runner", "offline": "--offline",
}  # fmt: skip
_library = click.argument("path", metavar="DIR|LIB", type=click.Path(path_type=Path))


class _Read(click.ParamType[Any]):
    """A text that `read` makes a value of, or raises ValueError with what is wrong."""

    def __init__(self, name: str, read: Callable[[str], Any]) -> None:
        self.name, self._read = name, read

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return self._read(str(value).strip())
        except ValueError as error:
            self.fail(str(error), param, ctx)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _ratio(text: str) -> float:
    """A finite number from 0 on."""
    if not 0 <= (ratio := _number(text)) < math.inf:
        raise ValueError(f"{text!r} is no ratio; write it as 0.95")
    return ratio


def _share(text: str) -> float:
    """`3%` as 0.03."""
    share = _number(text.removesuffix("%")) / 100
    if not text.endswith("%") or not 0 <= share < 1:
        raise ValueError(f"{text!r} is no share; write it as 3%")
    return share


def _counts(text: str) -> tuple[int, ...]:
    """`1,2,4` as numbers, each once."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= _MOST_THREADS for word in words):
        raise ValueError(f"{text!r}: numbers of threads are from 1 to {_MOST_THREADS}, e.g. 1,2,4")
    return tuple(dict.fromkeys(map(int, words)))


def _kits(each: Sequence[Opened], purpose: str) -> ModuleType | None:
    """What measures and judges libraries of a target that takes no figures itself; None where all targets do."""
    return subpackages.require("kits", "on_device", purpose) if any(found.by_kit for found in each) else None


@click.command(
    epilog=examples(
        "bench build/gemm-rvv",
        "bench build/gemm-native --against openblas,blis,onednn --threads 4",
        "bench build/gemm-native --threads 1,2,4",
        "bench build/gemm-native --shapes 64x64x64,1000x16x1000 --dtype f32 --format json",
    )
)
@_library
@click.option(
    "--against",
    metavar="NAME,...",
    default=None,
    show_default="the operator's, openblas",
    help=f"Libraries to compare with: {', '.join(baseline.names('x86_64'))}; for other architectures openblas.",
)
@click.option(
    "--shapes",
    metavar="SUITE|SHAPE,...",
    default=None,
    show_default="the operator's first suite",
    help="A suite of the operator (`tensorop operators show NAME`), or shapes, e.g. 64x64x64.",
)
@click.option("--dtype", metavar="NAME,...", default=None, help="Element types; by default those the library holds.")
@click.option(
    "--threads",
    type=_Read("N,...", _counts),
    default="1",
    show_default=True,
    help="Of each library, where a clock measures; with several, e.g. 1,2,4, what each adds, kept for the report.",
)
@click.option(
    "--layout",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Number of the operator's layout; `operators show NAME` lists them.",
)
@click.option("--fast", is_flag=True, help="Fewer rounds; a model's best fit without its interval.")
@jobs_option
@click.option("--fail-below", type=_Read("X", _ratio), default=None, help="Exit 1 when a ratio is under X.")
@click.option(
    "--compare",
    "older",
    type=click.Path(path_type=Path),
    metavar="OLD.json",
    help="Beside an older result; exit 1 when a row is slower. Shapes, dtypes, layout and threads are the older one's.",
)
@click.option(
    "--threshold", type=_Read("SHARE", _share), default="3%", show_default=True, help="A smaller change is no change."
)
@runner_option
@plugins_option
@offline_option
@format_option
def bench(
    path: Path,
    against: str | None,
    shapes: str | None,
    dtype: str | None,
    threads: tuple[int, ...],
    layout: int,
    fast: bool,
    jobs: int,
    fail_below: float | None,
    older: Path | None,
    threshold: float,
    runner: str | None,
    plugins: tuple[Path, ...],
    offline: bool,
    format_: str,
) -> None:
    """Compare a library with baselines: interleaved ratios, or modelled cycles of both."""
    if older and len(threads) > 1:
        raise UsageError("--compare is of one number of threads", hint=f"e.g. --threads {threads[0]}")
    if is_given("threshold") and not older:
        raise UsageError("--threshold is of what --compare finds", hint="give --compare OLD.json too")
    old = benches.read(older)[0] if older else None
    each = opened.open_each(path, plugins)
    kits = _kits(each, "bench")
    if kits is not None:
        refuse_given("a library for a device, which is compared with cuBLASLt where the device is", _NOT_ON_DEVICE)
    if old is not None and len(each) > 1:
        raise UsageError("--compare is of one operator", hint=f"give {each[0].library} in place of {path}")
    given = {name for name in ("shapes", "dtype", "layout", "threads") if is_given(name)}
    progress = tables.console(stderr=True)

    def tell(row: Row) -> None:
        told: dict[str, list[str]] = {}
        for at in row.measured.values():
            for name, ratio in at.ratios.items():
                told.setdefault(name, []).append(f"{ratio.value:.2f}")
        ratios = "  ".join(f"{' '.join(found)} times {name}" for name, found in told.items())
        progress.print(Text(f"  {row.shape} {row.dtype}: {ratios or tables.figure(row.ours)}"))

    def measured(found: Opened) -> tuple[Bench, ...]:
        if kits is not None:
            wanted = options.shapes(found.operator, shapes) if shapes else ()
            return (kits.bench(found, wanted, options.dtypes(found.operator, dtype) if dtype else (), layout),)
        usual = ",".join(found.operator.against)
        names = [name.strip() for name in (usual if against is None else against).split(",") if name.strip()]
        if not names:
            raise UsageError("--against names no baseline", hint="e.g. --against openblas")
        for name, why in libraries.check_names(names, found.platform.arch, found.operator.baselines).items():
            screen.echo(f"{name} is left out: it {why}", err=True)
        named = shapes or found.operator.usual
        wanted = options.shapes(found.operator, named)
        target = found.reach(runner)
        if max(threads) > 1 and "threads" in target.ignores:
            said = f"has no effect for '{found.platform.name}': {target.ignores['threads']}"
            raise UsageError(f"--threads {said}", hint="leave --threads out")
        if is_given("jobs") and not target.deterministic:
            said = "has no effect where a clock measures, one problem after the other"
            raise UsageError(f"--jobs {said}", hint="leave --jobs out")
        if named in found.operator.suites:
            wanted = benching.suite_of(found.operator, named, target)
        speed = target.budgets.flops_per_s, len(target.vlens)
        problems.require_affordable(found.operator, found.dtypes, wanted, *speed)
        counts, place, asked = threads, layout, dtype
        if old is not None:
            counts = threads if "threads" in given else (old.threads,)
            version = (target.assumed.name, target.assumed.version) if target.assumed else None
            comparing.check(old, str(older), found.platform.name, target.speed, version, counts[0])
            wanted = wanted if "shapes" in given else compare_output.shapes(old)
            place = layout if "layout" in given else compare_output.layout(old, str(older), found.operator)
            held = [name for name in old.dtypes if name in found.dtypes]
            asked = dtype or ",".join(held) or None

        def at(count: int) -> Bench:
            if len(counts) > 1:
                progress.print(Text(f"{count} thread{'s' if count > 1 else ''}:"))
            request = benching.Request(
                options.dtypes(found.operator, asked) if asked else None,
                wanted,
                names,
                count,
                place,
                not fast,
                offline or None,
                jobs,
            )
            return benching.bench(found, target, request, tell)

        return scaling.bench_each(counts, at)

    results = tuple(joined(of_count) for of_count in zip(*[measured(found) for found in each], strict=False))
    result = results[0]
    if (kept := scaling.keep(path, results)) is not None:
        progress.print(Text(f"kept in {kept}; {paths.command('report', path, plugins=plugins)} plots it"))
    slower = False
    if old is not None:
        compared = comparing.compare(old, result, threshold, str(older))
        screen.echo_json(compared.to_json()) if format_ == "json" else compare_output.show(compared)
        slower = compared.count(comparing.WORSE) > 0
    elif format_ == "json":
        screen.echo_json(scaling.record(results))
    else:
        for comparison in results:
            tables.show_bench(comparison)
        for found in each:
            if len(found.operator.layouts) > 1:
                screen.echo(f"one of the layouts {problems.numbered(found.operator)}; --layout N measures another")
        tables.show_scaling(scaling.record(results))
    if fail_below is not None:
        below = [low for comparison in results for low in comparison.below(fail_below)]
        for one in below:
            screen.echo(f"below {fail_below:g}: {one} is {one.ratio.value:.3f} of {one.baseline}", err=True)
        if any(next(comparison.everything(), None) is None for comparison in results):
            screen.echo(f"no ratio could be measured, so none is at least {fail_below:g}", err=True)
            raise SystemExit(1)
        if below:
            raise SystemExit(1)
    if slower:
        raise SystemExit(1)


@click.command(epilog=examples("verify build/gemm-rvv", "verify build/gemm-native --dtype f32 --format json"))
@_library
@click.option("--dtype", metavar="NAME,...", default=None, help="Element types; by default those the library holds.")
@seed_option
@click.option("--controls/--no-controls", default=True, show_default=True, help="Judge known-bad kernels first.")
@jobs_option
@runner_option
@plugins_option
@format_option
def verify(
    path: Path,
    dtype: str | None,
    seed: str | None,
    controls: bool,
    jobs: int,
    runner: str | None,
    plugins: tuple[Path, ...],
    format_: str,
) -> None:
    """Judge a library on the whole correctness grid, on its target."""
    each = opened.open_each(path, plugins)
    drawn = options.seed(seed)
    kits = _kits(each, "verify")
    if kits is not None:
        of_hosts = {name: f"--{name}" for name in ("dtype", "seed", "controls", "jobs", "runner")}
        refuse_given(
            "a library for a device, which is verified in all its types, by new calls, after controls", of_hosts
        )
        told = kits.verify(each[0])
        if format_ == "json":
            screen.echo_json(told)
        else:
            subpackages.require("kits", "commands", "verify").show_verified(told)
        raise SystemExit(0 if told["ok"] else 1)
    record: dict[str, Any] = {"platform": each[0].platform.name, "ok": True, "controls": [], "verdicts": []}
    for found in each:
        name = found.operator.name
        wanted = found.only(options.dtypes(found.operator, dtype) if dtype else ())
        wanted.require_fit()
        target = wanted.reach(runner)
        if len(each) > 1 and format_ == "table":
            screen.echo(f"{name}:")
        if controls:
            refused = verifying.run_controls(wanted, target, drawn)
            record["controls"] += [{"op": name, **control.to_json()} for control in refused]
            if format_ == "table":
                tables.show_controls(refused)
        most_threads = 1
        for verdict in verifying.verify(wanted, target, drawn, jobs=jobs):
            most_threads = max(most_threads, verdict.threads)
            record["ok"] &= verdict.ok
            record["verdicts"].append({"op": name, **verdict.to_json()})
            if format_ == "table":
                tables.show_verdict(verdict)
        if most_threads == 1 and record["ok"] and format_ == "table":
            screen.echo(f"several threads: not verified, {name} has no case for them")
    if format_ == "json":
        screen.echo_json(record)
    if not record["ok"]:
        raise SystemExit(1)


@click.command(
    epilog=examples("inspect build/gemm-rvv", "inspect build/gemm-rvv/lib/libtensorop_gemm.so --format json")
)
@_library
@format_option
def inspect(path: Path, format_: str) -> None:
    """Show the provenance card inside a library, or of each library in a product."""
    cards = opened.cards(path)
    if format_ == "json":
        screen.echo_json(cards if len(cards) > 1 else next(iter(cards.values())))
    else:
        try:
            for card in cards.values():
                tables.show_card(card)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise JobError(
                f"the provenance card of {path} is damaged: {type(error).__name__}: {error!s:.200}",
                hint="--format json shows it as it is",
            ) from None


@click.command(epilog=examples("report build/gemm-rvv", "report build/gemm-rvv --format json"))
@click.argument("path", metavar="DIR", type=click.Path(path_type=Path))
@plugins_option
@format_option
def report(path: Path, plugins: tuple[Path, ...], format_: str) -> None:
    """Write share/tensorop/report.html: one page with every figure of a run, for any browser, without network."""
    record, page = reporting.report(path, plugins=plugins)
    if format_ == "json":
        screen.echo_json(record)
    else:
        screen.echo(f"{page}")
        if lacking := record["absent"].get("operator and platform"):
            screen.echo("parts of it are left out: " + lacking.replace("\n", "; "), err=True)


@click.command(epilog=examples("doctor", "doctor --platform rvv", "doctor --format json"))
@click.option(
    "--platform",
    metavar="NAME",
    default=None,
    help="What a job on this platform needs; by default what any job may need.",
)
@runner_option
@plugins_option
@format_option
def doctor(platform: str | None, runner: str | None, plugins: tuple[Path, ...], format_: str) -> None:
    """Say what is there, what is missing and how to get it; compile and run something tiny."""
    health = doctoring.doctor(platform, runner, plugins=plugins)
    if format_ == "json":
        screen.echo_json(health.to_json())
    else:
        tables.show_health(health)
    if not health.ok:
        raise SystemExit(1)


COMMANDS = (bench, judge, verify, inspect, report, doctor)
