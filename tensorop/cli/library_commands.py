"""`bench`, `judge`, `verify`, `inspect`, `explain`, `report` and others: of libraries, kernels, machines."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any

from rich.text import Text

from tensorop import paths, subpackages, tuning
from tensorop.cli import compare_output, judge_blas, screen, tables
from tensorop.cli.command import (
    Dtypes,
    Format,
    Jobs,
    Layout,
    NewSeed,
    Offline,
    Plugins,
    Routines,
    Runner,
    Shapes,
    command,
    is_given,
    refuse_given,
)
from tensorop.cli.explain_command import explain
from tensorop.cli.judge_command import judge
from tensorop.cli.preload_command import preload
from tensorop.cli.prompt_command import prompt
from tensorop.cli.record_command import record
from tensorop.commands import bench as benching
from tensorop.commands import compare as comparing
from tensorop.commands import doctor as doctoring
from tensorop.commands import libraries, opened
from tensorop.commands import report as reporting
from tensorop.commands import routines as of_routines
from tensorop.commands import verify as verifying
from tensorop.commands.library_paths import LibraryPaths
from tensorop.commands.opened import Opened
from tensorop.errors import JobError, UsageError
from tensorop.model.bench import Bench, Row, joined
from tensorop.model.listed import NO_FILES
from tensorop.model.option import Option
from tensorop.model.verdict import Seed
from tensorop.provision import baseline
from tensorop.report import threads as thread_gains
from tensorop.space import problems
from tensorop.specs import benches
from tensorop.target import Target

_MOST_THREADS = 1024


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _ratio(text: str) -> float:
    """A finite number, at least 0. Raises ValueError for other text."""
    if not 0 <= (ratio := _number(text)) < math.inf:
        raise ValueError(f"expected a ratio from 0 on, such as 0.95; got {text!r}")
    return ratio


def _share(text: str) -> float:
    """The share that a text such as `3%` stands for: 0.03. Raises ValueError for other text."""
    share = _number(text.removesuffix("%")) / 100
    if not text.endswith("%") or not 0 <= share < 1:
        raise ValueError(f"expected a percentage from 0% to below 100%, such as 3%; got {text!r}")
    return share


def _counts(text: str) -> tuple[int, ...]:
    """The numbers in a text such as `1,2,4`, each once. Raises ValueError for other text."""
    words = [word.strip() for word in text.split(",")]
    if not all(word.isdecimal() and 1 <= int(word) <= _MOST_THREADS for word in words):
        raise ValueError(f"expected thread counts from 1 to {_MOST_THREADS}, such as 1,2,4; got {text!r}")
    return tuple(dict.fromkeys(map(int, words)))


def _kits(each: Sequence[Opened], purpose: str) -> ModuleType | None:
    """The kits' commands if a library's target does not measure itself; None if all targets do.

    purpose: the command that needs them, for the error
    """
    return subpackages.require("kits", "commands", purpose) if any(found.by_kit for found in each) else None


def _routines(each: Sequence[Opened], text: str | None) -> tuple[Opened, ...]:
    """Each library, or the one of several routines once for each of the named ones."""
    return tuple(each) if text is None else of_routines.of_library(of_routines.library_of_several(each), text)


_Library = Annotated[Path, Option(metavar="DIR|LIB", positional=True)]
_BASELINES = f"{', '.join(baseline.names('x86_64'))}; for other architectures openblas"
_Against = Annotated[
    str | None,
    Option(
        f"Compare with these baselines, which must be there: {_BASELINES}.",
        "NAME,...",
        "openblas,blis",
        shown="those of the operator, usually openblas",
    ),
]
_Threads = Annotated[
    tuple[int, ...],
    Option(
        "Give each library N threads (only on platforms that are timed by a clock). Several counts also show how the "
        "libraries scale, and the report keeps that.",
        "N,...",
        "1,2,4",
        kind=_counts,
        shown="1",
    ),
]
_Older = Annotated[
    Path | None,
    Option(
        "Compare with an older result of `bench --format json`, and exit with 1 if a row became slower. Shapes, "
        "dtypes, layout and threads are those of the older result unless you give them.",
        "OLD.json",
        "old.json",
        name="compare",
    ),
]


@command(
    "bench build/gemm-rvv",
    "bench build/gemm-native --against openblas,blis,onednn --threads 4",
    "bench build/gemm-native --threads 1,2,4",
    "bench build/gemm-native --shapes 64x64x64,1000x16x1000 --dtype f32 --format json",
    "bench build/blas --routines dtrsm,syrk --shapes panels",
)
def bench(
    path: _Library,
    against: _Against = None,
    routines: Routines = None,
    shapes: Shapes = None,
    dtype: Dtypes = None,
    threads: _Threads = (1,),
    layout: Layout = 0,
    fast: Annotated[bool, Option("Measure fewer rounds; under a board model, skip the intervals.")] = False,
    jobs: Jobs = 2,
    fail_below: Annotated[
        float | None, Option("Exit with 1 if a ratio to a baseline is below X.", "X", "0.95", kind=_ratio)
    ] = None,
    older: _Older = None,
    threshold: Annotated[
        float, Option("With --compare, ignore changes smaller than this.", "PERCENT", "5%", kind=_share, shown="3%")
    ] = 0.03,
    runner: Runner = None,
    plugins: Plugins = (),
    offline: Offline = False,
    format_: Format = "table",
) -> None:
    """Compare a library with baselines such as OpenBLAS.

    Each ratio is the speed of your library divided by that of the baseline: above 1, yours is faster. Where a clock
    measures, the calls of both are interleaved; under a board model, the modelled cycles of both are compared. Some
    baselines have several functions for a shape, as BLAS has for one row or one column. The fastest right function is
    then the baseline, and the table names it. With several baselines, the column `best` has the ratio to the fastest
    right one of each shape, and names it. Where a clock measures, other rounds give this ratio than those that decided
    which it is.
    """
    if older and len(threads) > 1:
        raise UsageError(
            f"--compare supports one thread count; got --threads {','.join(map(str, threads))}",
            hint=f"choose one, e.g. --threads {threads[0]}",
        )
    if is_given("threshold") and not older:
        raise UsageError("--threshold has no effect without --compare", hint="add --compare OLD.json")
    old = benches.read(older)[0] if older else None
    each = _routines(opened.open_each(path, plugins), routines)
    kits = _kits(each, "bench")
    if old is not None and len(each) > 1:
        names = ", ".join(found.operator.name for found in each)
        raise UsageError(
            f"--compare works on one library, and {path} contains {names}", hint=f"pass {each[0].library} instead"
        )
    progress = tables.console(stderr=True)

    def compared(found: Opened) -> tuple[Bench, ...]:
        operator = found.operator
        named = shapes or ("" if kits else operator.usual)
        asked = tuning.listed(operator, named) if named else NO_FILES
        wanted = asked.shapes
        for remark in asked.remarks:
            screen.echo(remark, err=True)
        dtypes = tuning.dtypes(operator, dtype) if dtype else None
        if kits is not None:
            return (kits.bench(found, wanted, dtypes or (), layout),)
        names = [name.strip() for name in (against or "").split(",") if name.strip()]
        if against is not None and not names:
            raise UsageError(f"--against names no baseline; got {against!r}", hint="e.g. --against openblas")
        libraries.check_names(names, found.platform.arch, operator.baselines)
        target = found.reach(runner)
        if max(threads) > 1 and "threads" in target.ignores:
            why = f"has no effect for '{found.platform.name}': {target.ignores['threads']}"
            raise UsageError(f"--threads {why}", hint="remove --threads")
        if is_given("jobs") and not target.deterministic:
            why = "has no effect where a clock measures: shapes are timed one after the other"
            raise UsageError(f"--jobs {why}", hint="remove --jobs")
        if named in operator.suites:
            wanted = benching.suite_of(operator, named, target)
        problems.require_affordable(operator, found.dtypes, wanted, target.budgets.flops_per_s, len(target.vlens))
        request = benching.BenchRequest(dtypes, wanted, names, threads[0], layout, not fast, offline or None, jobs)
        request = replace(request, listed=asked)
        counts = threads
        if old is not None:
            request = _as_then(old, str(older), found, target, request)
            counts = (request.threads,)

        def at(count: int) -> Bench:
            if len(counts) > 1:
                progress.print(Text(f"{count} thread{'s' if count > 1 else ''}:"))
            return benching.bench(
                found, target, replace(request, threads=count), lambda row: progress.print(_line(row))
            )

        return thread_gains.bench_each(counts, at)

    results = tuple(joined(of_count) for of_count in zip(*[compared(found) for found in each], strict=False))
    if routines is None and (kept := thread_gains.keep(path, results)) is not None:
        progress.print(Text(f"saved in {kept}; run {paths.command('report', path, plugins=plugins)} to plot it"))
    failed = False
    if old is not None:
        change = comparing.compare(old, results[0], threshold, str(older))
        screen.answer(format_, change.to_json(), lambda: compare_output.show(change))
        failed = change.count(comparing.WORSE) > 0
    elif format_ == "json":
        screen.echo_json(thread_gains.record(results))
    else:
        for comparison in results:
            tables.show_bench(comparison)
        for found in each:
            if len(found.operator.layouts) > 1:
                numbered = problems.numbered(found.operator)
                screen.echo(f"measured one layout of {numbered}; choose another with --layout N")
        tables.show_scaling(results)
    below = [] if fail_below is None else [*_below(results, fail_below)]
    for remark in below:
        screen.echo(remark, err=True)
    if failed or below:
        raise SystemExit(1)


def _line(row: Row) -> Text:
    """A finished row as a progress line: its ratios at each VLEN."""
    ratios: dict[str, list[str]] = {}
    for at in row.measured.values():
        for name, ratio in at.ratios.items():
            ratios.setdefault(name, []).append(f"{ratio.value:.2f}")
    text = "  ".join(f"{' '.join(found)} x {name}" for name, found in ratios.items())
    return Text(f"  {row.shape} {row.dtype}: {text or tables.figure(row.ours)}")


def _below(results: Sequence[Bench], least: float) -> Iterator[str]:
    """Messages for ratios below `least`, and for a comparison without ratios."""
    for one in (low for comparison in results for low in comparison.below(least)):
        yield f"below {least:g}: {one} has the ratio {one.ratio.value:.3f} to {one.baseline}"
    if any(next(comparison.everything(), None) is None for comparison in results):
        yield f"--fail-below {least:g}: no ratio could be measured"


def _as_then(
    old: Bench, origin: str, found: Opened, target: Target, now: benching.BenchRequest
) -> benching.BenchRequest:
    """`now` with the older result's threads, shapes, layout and dtypes, except those that the user gave."""
    threads = now.threads if is_given("threads") else old.threads
    version = (target.assumed.name, target.assumed.version) if target.assumed else None
    comparing.check(old, origin, found.platform.name, target.speed, version, threads)
    then = [name for name in old.dtypes if name in found.dtypes]
    return replace(
        now,
        threads=threads,
        shapes=now.shapes if is_given("shapes") else compare_output.shapes(old),
        layout=now.layout if is_given("layout") else compare_output.layout(old, origin, found.operator),
        dtypes=now.dtypes or then or None,
    )


@command(
    "verify build/gemm-rvv",
    "verify build/gemm-native --dtype f32 --format json",
    "verify build/blas --routines trsm,dgemv",
)
def verify(
    path: _Library,
    dtype: Dtypes = None,
    routines: Routines = None,
    seed: NewSeed = "0",
    controls: Annotated[
        bool, Option("Check first that verification rejects known-wrong kernels.", name="controls/--no-controls")
    ] = True,
    jobs: Jobs = 2,
    runner: Runner = None,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Verify a library on its target with the full grid of test calls, and on each path of its kernels.

    With --routines, the judge of BLAS libraries makes calls of these routines instead, as `tensorop judge --blas` does.
    """
    each = opened.open_each(path, plugins)
    if routines is not None:
        refuse_given("--routines", {"dtype": "--dtype", "controls": "--controls"})
        _verify_routines(each, routines, runner, format_, jobs=jobs, seed=tuning.seed(seed)[0])
        return
    drawn, shown = Seed.draw(*tuning.seed(seed)), format_ == "table"
    kits = _kits(each, "verify")
    if kits is not None:
        raise SystemExit(0 if kits.verify(each[0], format_) else 1)
    record: dict[str, Any] = {"platform": each[0].platform.name, "ok": True, "controls": [], "verdicts": []}
    uncalled = record["uncalled"] = {}
    for found in each:
        name = found.operator.name
        wanted = found.only(tuning.dtypes(found.operator, dtype) if dtype else ())
        wanted.require_fit()
        target = wanted.reach(runner)
        if len(each) > 1 and shown:
            screen.echo(f"{name}:")
        if controls:
            refused = verifying.run_controls(wanted, target, drawn)
            record["controls"] += [{"op": name, **control.to_json()} for control in refused]
            if shown:
                tables.show_controls(refused)
        most_threads = 1
        paths = LibraryPaths(wanted, target, drawn)
        for verdict in verifying.verify(wanted, target, drawn, jobs=jobs, paths=paths):
            most_threads = max(most_threads, verdict.threads)
            record["ok"] &= verdict.ok
            record["verdicts"].append({"op": name, **verdict.to_json()})
            if shown:
                tables.show_verdict(verdict)
        uncalled[name] = paths.uncalled
        for template, why in paths.uncalled.items() if shown else ():
            screen.echo(f"the paths of template '{template}' were not called: {why}")
        if most_threads == 1 and record["ok"] and shown:
            screen.echo(f"multi-threaded calls were not verified: {name} has no test case for them")
    screen.answer(format_, record, lambda: None, ok=bool(record["ok"]))


def _verify_routines(each: Sequence[Opened], text: str, runner: str | None, format_: str, **how: int) -> None:
    """Judges routines by their standard names, and shows the judgement. Raises SystemExit(1) with findings."""
    found = of_routines.library_of_several(each)
    of_routines.of_library(found, text)  # which refuses unknown names
    library, target = of_routines.standard(found.operator, found.library), found.reach(runner)
    assert library is not None
    judgement = of_routines.judged(library, text, target, lambda line: screen.echo(line, err=True), **how)
    screen.answer(format_, judgement.to_json(), lambda: judge_blas.show(judgement), ok=judgement.ok)


@command("inspect build/gemm-rvv", "inspect build/gemm-rvv/lib/libtensorop_gemm.so --format json")
def inspect(
    path: _Library,
    trees: Annotated[bool, Option("Print the dispatch trees too: which variant serves which shape.")] = False,
    format_: Format = "table",
) -> None:
    """Show how a library was made.

    Every library contains its provenance card: platform, compiler, tuned kernels and measurements. For a product, the
    command shows the card of each library.
    """
    cards = opened.cards(path)
    if format_ == "json":
        screen.echo_json(cards if len(cards) > 1 else next(iter(cards.values())))
    else:
        try:
            for text in (text for card in cards.values() for text in tables.card_lines(card, trees)):
                tables.line(text)
        except (AttributeError, IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
            raise JobError(
                f"the provenance card of {path} is damaged: {type(error).__name__}: {error!s:.200}",
                hint="use --format json to see its raw content, or build the library again",
            ) from None


@command("report build/gemm-rvv", "report build/gemm-rvv --format json")
def report(
    path: Annotated[Path, Option(metavar="DIR", positional=True)],
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Write the HTML report of a run.

    The report is DIR/share/tensorop/report.html, one file that any browser shows without network. A run already writes
    it; run this command after `bench --threads` or with a newer version of tensorop.
    """
    found, page = reporting.report(path, plugins=plugins)
    if format_ == "json":
        screen.echo_json(found.to_json())
    else:
        screen.echo(f"{page}")
        if lacking := found.absent.get("operator and platform"):
            screen.echo("the report is incomplete: " + lacking.replace("\n", "; "), err=True)


_ToBring = Annotated[
    str | None, Option("Check what this platform needs.", "NAME", "rvv", shown="what any platform may need")
]


@command("doctor", "doctor --platform rvv", "doctor --format json")
def doctor(platform: _ToBring = None, runner: Runner = None, plugins: Plugins = (), format_: Format = "table") -> None:
    """Check that this machine has what you need.

    The command lists each tool, shows how to get the missing ones, and builds and runs a small test program.
    """
    health = doctoring.doctor(platform, runner, plugins=plugins)
    screen.answer(format_, health.to_json(), lambda: tables.show_health(health), ok=health.ok)


COMMANDS = (bench, judge, verify, inspect, explain, report, record, preload, doctor, prompt)
