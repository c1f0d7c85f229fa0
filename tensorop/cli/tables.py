"""Records as tables on stdout."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorop import paths
from tensorop.cli import screen
from tensorop.commands.doctor import Health
from tensorop.commands.explain import Explanation
from tensorop.commands.routine_products import RoutineExplanation
from tensorop.events import Done
from tensorop.measure import modelled, statistics
from tensorop.model.bench import BEST, Bench, Ratio
from tensorop.model.verdict import ControlResult, Verdict, controls_text, error_text
from tensorop.model.winner import DtypeRecord, Leaf, Split, Tree, trees_of
from tensorop.report.threads import mean_gains

_WIDEST = 160
_COUNTED = "modelled cycles x instructions^0.1, by which the search compares variants"  # see `target.objective`
_SCREEN = 20  # rows that a screen shows with the head of a table and what follows it
_WIDE_INTERVAL = 1.5  # upper / lower quartile of paired rounds; above it a ratio is unsteady
figure = statistics.significant


def console(stderr: bool = False) -> Console:
    """A console. In files and pipes it is _WIDEST wide, so that tables are not folded."""
    found = screen.screen(stderr)
    return found if found.is_terminal else screen.screen(stderr, width=_WIDEST)


def line(text: str, style: str = "") -> None:
    """Prints a line on stdout, without folding."""
    console().print(Text(text, style), soft_wrap=True)


def table(title: str | None, names: Iterable[str], numbers: Iterable[str] = ()) -> Table:
    """An empty table. names: columns; numbers: further columns, aligned to the right."""
    made = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for name in names:
        made.add_column(name)
    for name in numbers:
        made.add_column(name, justify="right")
    return made


def show_result(done: Done, plugins: Sequence[Path] = ()) -> None:
    """Shows the result of a run: comparison, remarks and paths. plugins: the user's plug-in folders."""
    if done.bench is not None:
        show_bench(done.bench)
    for note in done.notes:
        line(note)
    if done.library is not None:
        line(f"library: {done.library}")
        report = done.out / "share/tensorop/report.html"
        if report.is_file():  # a library chosen by a model has no report
            line(f"report: {report}")
        compare = paths.command("bench", done.out, plugins=plugins)
        aim = "--shapes SHAPE measures any other shape" if done.bench else "compares it with a baseline"
        line(f"next: {compare} {aim}")


def show_bench(bench: Bench) -> None:
    """Shows a comparison: a row for each problem, then the notes."""
    console().print(bench_table(bench))
    for note in bench_notes(bench):
        line(note)


def show_scaling(found: Sequence[Bench]) -> None:
    """Shows the geometric mean speedup of more threads over the first count; nothing for a single count."""
    if len(found) < 2:
        return
    first, *others = found
    title = f"speedup over {first.threads} thread{'s' if first.threads > 1 else ''}"
    rows = table(title, ("threads", "dtype"), ("this library", *first.baselines))
    for dtype in first.dtypes:
        means = [mean_gains(found, dtype, who) for who in ("", *first.baselines)]
        for count in (other.threads for other in others):
            rows.add_row(str(count), dtype, *(f"{mean[count]:.2f}" if count in mean else "-" for mean in means))
    console().print(rows)


def bench_table(bench: Bench) -> Table:
    """A comparison as a table: our speed in its unit, then each baseline's ratio and interval at each VLEN.

    With a best one of several baselines, only that and the first have intervals, so that the table is not too wide.
    """
    threads = f"{bench.threads} thread" + ("s" if bench.threads > 1 else "")
    threads = str(bench.machine.get("device", threads))
    peaks = any(row.peak_share is not None for row in bench.rows)
    timed = any(row.time_share is not None for row in bench.rows)
    numbers = (*(["of time"] if timed else []), bench.unit, *(["of peak"] if peaks else []))
    title = f"{bench.platform}, {threads}: speed of this library, and its ratio to each baseline (above 1: faster)"
    several = len({row.op for row in bench.rows}) > 1
    rows = table(title, ("shape", *(["of"] if several else []), "dtype", "layout"), numbers)
    rows.columns[0].no_wrap = True
    columns = [(name, vlen) for name in bench.columns for vlen in bench.vlens or (0,)]
    brief = bench.columns[1:-1] if BEST in bench.columns else ()
    for name, vlen in columns:
        rows.add_column(f"{name} VLEN {vlen}" if vlen else name, justify="right", no_wrap=True)
        if name not in brief:
            rows.add_column("interval", justify="left", no_wrap=True, style="dim")
    indicative = (bench.model or {}).get("indicative", {})
    for row in bench.rows:
        cells: list[Text] = [
            Text(row.shape),
            *([Text(row.op)] if several else []),
            Text(f"{row.dtype} (indicative)" if row.dtype in indicative else row.dtype),
            Text(row.layout),
            *([Text("" if row.time_share is None else f"{row.time_share:.1%}")] if timed else []),
            Text(figure(row.ours)),
        ]
        if peaks:
            cells.append(Text(statistics.of_peak(row.peak_share)))
        for name, vlen in columns:
            at = row.measured[vlen]
            cells += _ratio(at.ratios.get(name), at.called.get(name, ""), row.noisy)[: 1 if name in brief else 2]
        rows.add_row(*cells)
    rows.add_section()
    if len(bench.rows) > _SCREEN:  # the head of the table has left the screen
        rows.add_row(*(Text(str(column.header), "bold") for column in rows.columns))
    for dtype in (*bench.dtypes, *([None] if len(bench.dtypes) > 1 else [])):
        head = [Text("geomean", "bold"), *([Text("")] if several else []), Text(dtype or "all"), Text(""), Text("")]
        head += [Text("")] * (peaks + timed)
        means = (_mean(bench, name, vlen, dtype)[: 1 if name in brief else 2] for name, vlen in columns)
        rows.add_row(*head, *(cell for pair in means for cell in pair))
    return rows


def _ratio(ratio: Ratio | None, called: str, noisy: bool) -> tuple[Text, Text]:
    if ratio is None:
        return Text("-"), Text("")
    style = "green" if ratio.low > 1 else "red" if ratio.high < 1 else ""
    interval = f"{ratio.low:.2f} to {ratio.high:.2f}" if ratio.low < ratio.high else ""
    marks = (interval, f"({called})" if called else "", "noisy" if noisy else "")
    return Text(f"{ratio.value:.2f}", style), Text(" ".join(filter(None, marks)))


def _mean(bench: Bench, name: str, vlen: int, dtype: str | None) -> tuple[Text, Text]:
    """A baseline's geometric mean at a VLEN, and its lowest ratio there; `*` refers to a remark."""
    mean = bench.geomean(dtype, vlen).get(name)
    if mean is None:
        return Text("-", "bold"), Text("")
    mark = " *" if bench.limited(name, vlen) else ""
    return Text(f"{mean:.2f}", "bold"), Text(f"lowest {bench.lowest(dtype, vlen)[name].ratio.value:.2f}{mark}")


def _means(bench: Bench, name: str) -> str:
    """A baseline's geometric mean, one number for each VLEN."""
    if not bench.vlens:
        return f"{name} {bench.geomean()[name]:.2f}"
    means = {vlen: bench.geomean(vlen=vlen).get(name) for vlen in bench.vlens}
    return f"{name} " + ", ".join(f"{mean:.2f} at VLEN {vlen}" for vlen, mean in means.items() if mean is not None)


def bench_notes(bench: Bench) -> list[str]:
    """Notes on a comparison: source of the figures, baseline builds, missing measurements."""
    lines = []
    if bench.model is not None:
        state = "calibrated" if bench.model["calibrated"] else "not calibrated on a board"
        lines.append(
            f"modelled cycles: board model {bench.model['name']} version {bench.model['version']}, {state}; "
            + (
                "intervals cover the range of its assumed constants"
                if bench.model.get("interval")
                else "best fit, without intervals"
            )
        )
        lines += [
            f"{dtype} is indicative only: {why}"
            for dtype, why in bench.model.get("indicative", {}).items()
            if dtype in bench.dtypes
        ]
        for name, under in bench.alternatives().items():
            found = [f"{_means(under, b)}, lowest {one.ratio.value:.2f}" for b, one in under.lowest().items()]
            lines.append(f"alternative '{name}': {'; '.join(found)}; {bench.model['alternatives'][name]}")
    elif bench.machine:
        machine = bench.machine
        peaks = ", ".join(f"{dtype} {peak:.0f} GFLOP/s" for dtype, peak in bench.peak.items())
        lines.append(
            f"measured on {_machine(machine)}"
            + (f"; FMA peak of one core: {peaks}" if peaks else "")
            + "; intervals are quartiles of paired rounds"
        )
        ratios = [ratio for row in bench.rows for ratio in row.ratios.values()]
        if wide := sum(ratio.high > _WIDE_INTERVAL * ratio.low for ratio in ratios):
            lines.append(
                f"unsteady: the intervals of {wide} of {len(ratios)} ratios span more than a factor of "
                f"{_WIDE_INTERVAL:g}; measure again on an idle machine"
            )
        if bench.threads > 1 and machine["load"] > machine["cores"] + 0.5:  # load includes the measured threads
            lines.append(
                f"busy: {machine['load']:.1f} processes shared {machine['cores']} cores, which distorts the times of "
                f"{bench.threads} threads; measure again on an idle machine"
            )
    if any(row.noisy for row in bench.rows):
        lines.append(
            "noisy: the baseline drifted by more than 10 % in each of three tries; measure again on an idle machine"
        )
    if any(at.called.keys() - {BEST} for row in bench.rows for at in row.measured.values()):
        lines.append("in brackets: the baseline's function, the fastest right one of those that compute the shape")
    if BEST in bench.columns:
        own = "" if bench.model else "; its ratio is from other rounds than those that decided"
        lines.append(f"{BEST}: the fastest right baseline of each shape, in brackets{own}")
    for name, one in bench.lowest().items():
        count = sum(m.baseline == name for m in bench.everything())
        of = f"{one.row.op} " if len({row.op for row in bench.rows}) > 1 else ""
        lines.append(f"lowest of {count} ratio{'s' if count > 1 else ''} to {name}: {one.ratio.value:.2f} at {of}{one}")
    for name, part in bench.saved().items():
        gained = f"{part:.1%} saved" if part >= 0 else f"{-part:.1%} lost"
        measured = f"{bench.time_measured(name):.1%} of it measured"
        lines.append(f"time in --shapes: {gained} compared with {name} ({measured})")
    for name, info in bench.baselines.items():
        lines.append(f"{name} {info.version}: {info.config}")
        lines += [f"* {name}, {remark}" for remark in info.remarks]
    lines += [f"not measured: {lacking}" for lacking in bench.lacking()]
    return lines


def _machine(machine: Mapping[str, Any]) -> str:
    if "device" in machine:
        return f"{machine['board']}, {machine['watts']} W, driver {machine['driver']}"
    return f"{machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f}"


def show_verdict(verdict: Verdict) -> None:
    line(verdict_line(verdict), "" if verdict.ok else "red")


def verdict_line(verdict: Verdict) -> str:
    """A text such as `f32 VLEN 256, 1 thread: 812 calls passed, largest error 41% of its bound, ..., seed ...`."""
    width = f" VLEN {verdict.vlen}" if verdict.vlen else ""
    threads = f"{verdict.threads} thread" + ("s" if verdict.threads > 1 else "")
    head = f"{verdict.dtype}{width}, {threads}: "
    if not verdict.ok:
        return f"{head}FAILED ({verdict.outcome.kind.value}): {verdict.outcome.message}"
    if not verdict.cases:
        return f"{head}not verified: the operator defines no calls for it (`thread_grid` in its reference.py)"
    return f"{head}{verdict.cases} calls passed, {error_text(verdict.errors)}, seed {verdict.seed}"


def show_controls(results: Iterable[ControlResult]) -> None:
    """Shows one line: how many controls were rejected and accepted. JSON has their names."""
    line(f"negative controls: {controls_text(results)}")


def show_health(health: Health) -> None:
    """Shows the table of components, then the self-test."""
    pieces = table(None, ("", "component", "version", "used for", "how to get it"))
    for piece in health.pieces:
        bad = piece.status != "ok"
        style = "" if not bad else "yellow" if piece.optional else "red"
        word = piece.status if not (bad and piece.optional) else f"{piece.status} (optional)"
        command = piece.command if bad else ""
        pieces.add_row(*(Text(t, style) for t in (word, piece.name, piece.version, piece.purpose, command)))
    console().print(pieces)
    for step in health.steps:
        line(f"{'ok     ' if step.ok else 'FAILED '} {step.name}: {step.detail}", "" if step.ok else "red")
    for complaint in health.complaints:
        line(f"timings taken now would be unreliable: {complaint}", "yellow")
    for remark in health.plugins:
        line(f"plug-ins: {remark}", "yellow")


def show_routine(found: RoutineExplanation) -> None:
    """Shows the products that a call of a routine consists of."""
    where = f", VLEN {found.vlen}" if found.vlen else ""
    count = sum(one.count for one in found.products)
    line(f"{found.routine} {found.problem}{where}: {count} product{'s' if count != 1 else ''}")
    for one in found.products:
        line(f"  {one.count} of {one.shape} by variant {one.variant}: {one.template}")


def show_explanation(found: Explanation) -> None:
    """Shows the choice and its rule, then the costs."""
    where = f", VLEN {found.vlen}" if found.vlen else ""
    where += f", in one of {found.blocks} blocks for threads" if found.blocks > 1 else ""
    chosen = next(one for one in found.variants if one.number == found.variant)
    line(f"{found.problem}{where}: variant {found.variant}, {chosen.template}")
    line(f"features: {', '.join(f'{name} = {value}' for name, value in found.features.items())}")
    for text in (f"rule: {found.rule}", *(f"  {test}" for test in found.path)):
        line(text)
    if found.origin:
        line(f"its blocking is from {found.origin}")
    if found.epilogue:
        line(f"epilogues of the same variant: {', '.join(found.epilogue)}")
    if found.lacking:
        return
    costs, best = table(None, ("variant", "template"), ("predicted", "measured", "slower than the choice")), None
    for one in found.variants:
        predicted = "-" if one.predicted is None else figure(one.predicted)
        measured = "not measured" if one.measured is None else figure(one.measured)
        slower = "-" if one.slower is None else f"{one.slower:.1%} ({one.by})"
        if one.number == found.next_best:
            how = "faster" if slower.startswith("-") else "slower"
            best = f"variant {one.number}, {how} by {slower.removeprefix('-')}"
        costs.add_row(str(one.number), one.template, predicted, measured, "chosen" if one is chosen else slower)
    console().print(costs)
    line(f"next best: {best or 'unknown, for lack of costs'}")
    line(f"costs are in {_COUNTED if found.unit == modelled.UNIT else found.unit}")


def card_lines(card: Mapping[str, object], trees: bool) -> list[str]:
    """A provenance card as text, one fact per line. Keys that this version does not know are shown as JSON.

    trees: with the dispatch trees
    """
    lines = []
    for key, value in card.items():
        if key == "dtypes" and isinstance(value, Mapping):
            for dtype, winners in value.items():
                lines += _winners_lines(dtype, winners, trees)
        elif key == "files" and isinstance(value, Mapping):
            lines.append(f"files: {len(value)}")
        elif isinstance(value, Mapping):
            lines += [f"{key}.{name}: {_plain(inner)}" for name, inner in value.items()]
        else:
            lines.append(f"{key}: {_plain(value)}")
    return lines


def _winners_lines(dtype: str, winners: DtypeRecord, shown: bool) -> list[str]:
    several, modelled = "by_vlen" in winners, "tree" not in winners and "by_vlen" not in winners
    trees = () if modelled else trees_of(winners)
    regret = ", chosen at run time by a cost model" if modelled else "" if several else f", {_regret(trees[0])}"
    lines = [f"{dtype}: {len(winners['variants'])} variants{regret}"]
    for number, variant in enumerate(winners["variants"]):
        point = " ".join(f"{k}={v}" for k, v in variant["point"].items())
        vlens = variant.get("specialisations", ())
        also = f", with specialised code for VLEN {' '.join(map(str, vlens))}" if vlens else ""
        text = f", source {variant['text']}" if "text" in variant else ""
        made = f", made from {variant['parent']}" if "parent" in variant else ""
        lines.append(f"    {number}: {variant['template']} ({variant['author']}{made}) {point}{also}{text}")
    if numbers := winners.get("of_routines"):
        lines.append(f"    routines: {' '.join(f'{name}={value}' for name, value in numbers.items())}")
    for tree in trees:
        lines += [f"    VLEN {tree.vlen}, {_regret(tree)}"] if several else []
        found = _tree_lines(tree.root, 1 if several else 0)
        lines += [f"    {line}" for line in found] if shown else [f"    tree of {len(found)} lines: --trees prints it"]
    return lines


def _regret(tree: Tree) -> str:
    known = tree.regret
    return "dispatch loss unknown" if known is None else f"dispatch loss on held-out shapes {known:.2%}"


def _tree_lines(node: Leaf | Split, depth: int) -> list[str]:
    """A dispatch tree as indented lines."""
    pad = "  " * depth
    if isinstance(node, Leaf):
        return [f"{pad}variant {node.variant}"]
    return [
        f"{pad}{node.feature} <= {node.threshold}:",
        *_tree_lines(node.low, depth + 1),
        f"{pad}else:",
        *_tree_lines(node.high, depth + 1),
    ]


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(v, str | int | float) for v in value):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)
