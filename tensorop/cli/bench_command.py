"""`bench`: compares a library with baselines, or with an older result."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from rich.text import Text

from tensorop import paths, tuning
from tensorop.cli import compare_output, screen, tables
from tensorop.cli.command import (
    Dtypes,
    Format,
    Jobs,
    Layout,
    LibraryPath,
    Offline,
    Plugins,
    Routines,
    Runner,
    Shapes,
    command,
    is_given,
)
from tensorop.commands import bench as benching
from tensorop.commands import compare as comparing
from tensorop.commands import libraries, opened
from tensorop.commands import routines as of_routines
from tensorop.commands.opened import Opened
from tensorop.errors import UsageError
from tensorop.model.bench import Bench, Row, joined
from tensorop.model.listed import NO_FILES
from tensorop.model.option import Option
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


def _routines(each: Sequence[Opened], text: str | None) -> tuple[Opened, ...]:
    """Each library, or the one of several routines once for each of the named ones."""
    return tuple(each) if text is None else of_routines.of_library(of_routines.library_of_several(each), text)


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
    path: LibraryPath,
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
    by_kit = opened.kits(each, "bench")
    if old is not None and len(each) > 1:
        names = ", ".join(found.operator.name for found in each)
        raise UsageError(
            f"--compare works on one library, and {path} contains {names}", hint=f"pass {each[0].library} instead"
        )
    progress = tables.console(stderr=True)

    def compared(found: Opened) -> tuple[Bench, ...]:
        operator = found.operator
        named = shapes or ("" if by_kit else operator.usual)
        asked = tuning.listed(operator, named) if named else NO_FILES
        wanted = asked.shapes
        for remark in asked.remarks:
            screen.echo(remark, err=True)
        dtypes = tuning.dtypes(operator, dtype) if dtype else None
        if by_kit is not None:
            return (by_kit.bench(found, wanted, dtypes or (), layout),)
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
