"""Records as tables on stdout."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from tensorop.commands.doctor import Health
from tensorop.events import Done
from tensorop.model.bench import Bench, Ratio, Row
from tensorop.model.verdict import ControlResult, Verdict
from tensorop.report import choices

_WIDEST = 160


def console(stderr: bool = False) -> Console:
    """Wide where nobody's terminal says how wide: tables in files and pipes are not folded."""
    found = Console(stderr=stderr, highlight=False)
    return found if found.is_terminal else Console(stderr=stderr, highlight=False, width=_WIDEST)


def show_result(done: Done) -> None:
    """The end of a run: the comparison, remarks, and where the library lies."""
    out = console()
    if done.bench is not None:
        show_bench(done.bench)
    for note in done.notes:
        out.print(Text(note))
    if done.library is not None:
        out.print(Text(f"library: {done.library}"))
        out.print(Text(f"product: {done.out}  (tensorop report {done.out} makes share/tensorop/report.html)"))


def show_bench(bench: Bench) -> None:
    """A row a problem, a line a baseline below it."""
    out = console()
    out.print(bench_table(bench))
    for line in bench_notes(bench):
        out.print(Text(line))


def bench_table(bench: Bench) -> Table:
    """ours in the bench's unit, then each baseline's ratio with its interval."""
    threads = f"{bench.threads} thread" + ("s" if bench.threads > 1 else "")
    table = Table(
        title=f"{bench.platform}, {threads}: times as fast as", title_justify="left", box=None, pad_edge=False
    )
    table.add_column("shape", no_wrap=True)
    table.add_column("dtype")
    table.add_column("layout")
    table.add_column(bench.unit, justify="right")
    peaks = any(row.peak_share is not None for row in bench.rows)
    if peaks:
        table.add_column("of peak", justify="right")
    for name in bench.baselines:
        table.add_column(name, justify="right", no_wrap=True)
        table.add_column("interval", justify="left", no_wrap=True, style="dim")
    vlens = list(dict.fromkeys(vlen for row in bench.rows for vlen in row.by_vlen))
    main = next(iter(bench.baselines), None)
    if main is not None:
        for vlen in vlens:
            table.add_column(f"VLEN {vlen}", justify="right")
    for row in bench.rows:
        cells: list[Text] = [Text(row.shape), Text(row.dtype), Text(row.layout), Text(figure(row.ours))]
        if peaks:
            cells.append(Text("" if row.peak_share is None else f"{row.peak_share:.0%}"))
        for name in bench.baselines:
            cells += _ratio(row.ratios.get(name), row.noisy)
        if main is not None:
            cells += [_at(row, vlen, main) for vlen in vlens]
        table.add_row(*cells)
    table.add_section()
    for dtype in bench.dtypes:
        _add_mean(table, bench, dtype, bench.geomean(dtype), peaks)
    if len(bench.dtypes) > 1:
        _add_mean(table, bench, "all", bench.geomean(), peaks)
    return table


def _ratio(ratio: Ratio | None, noisy: bool) -> tuple[Text, Text]:
    if ratio is None:
        return Text("-"), Text("")
    style = "green" if ratio.low > 1 else "red" if ratio.high < 1 else ""
    interval = f"{ratio.low:.2f} to {ratio.high:.2f}" if ratio.low < ratio.high else ""
    return Text(f"{ratio.value:.2f}", style), Text(f"{interval} noisy" if noisy else interval)


def _at(row: Row, vlen: int, baseline: str) -> Text:
    at = row.by_vlen.get(vlen)
    ratio = at.ratios.get(baseline) if at else None
    return Text("-" if ratio is None else f"{ratio.value:.2f}")


def _add_mean(table: Table, bench: Bench, dtype: str, means: Mapping[str, float], peaks: bool) -> None:
    cells = [Text("geomean", "bold"), Text(dtype), Text(""), Text("")] + ([Text("")] if peaks else [])
    for name in bench.baselines:
        lowest = [r.ratios[name].value for r in bench.rows if name in r.ratios and dtype in (r.dtype, "all")]
        cells.append(Text(f"{means[name]:.2f}" if name in means else "-", "bold"))
        cells.append(Text(f"lowest {min(lowest):.2f}" if lowest else ""))
    table.add_row(*cells)


def bench_notes(bench: Bench) -> list[str]:
    """What the figures are, who served, what is absent."""
    lines = []
    if bench.model is not None:
        state = "calibrated" if bench.model["calibrated"] else "not calibrated on a board"
        lines.append(
            f"modelled cycles: board model {bench.model['name']} version {bench.model['version']}, {state}; "
            + (
                "intervals span its assumed constants"
                if bench.model.get("interval")
                else "its best fit, without intervals"
            )
        )
    elif bench.machine:
        machine = bench.machine
        peaks = ", ".join(f"{dtype} {peak:.0f} GFLOP/s" for dtype, peak in bench.peak.items())
        lines.append(
            f"measured on {machine['cpu']}, {machine['cores']} cores, load {machine['load']:.1f}"
            + (f"; FMA peak of one core: {peaks}" if peaks else "")
            + "; intervals are quartiles of paired rounds"
        )
    if any(row.noisy for row in bench.rows):
        lines.append(
            "noisy: the baseline drifted by more than 10 % in each of three windows; measure on a quiet machine"
        )
    lines += [f"{name} {info.version}: {info.config}" for name, info in bench.baselines.items()]
    lines += [f"absent: {name}: {why}" for name, why in bench.absent.items()]
    return lines


def show_verdict(verdict: Verdict) -> None:
    """One line."""
    console().print(Text(verdict_line(verdict), "" if verdict.ok else "red"), soft_wrap=True)


def verdict_line(verdict: Verdict) -> str:
    """`f32 VLEN 256, 1 thread: 812 cases passed, worst error 0.41 of its bound, seed ...`."""
    width = f" VLEN {verdict.vlen}" if verdict.vlen else ""
    threads = f"{verdict.threads} thread" + ("s" if verdict.threads > 1 else "")
    head = f"{verdict.dtype}{width}, {threads}: "
    if not verdict.ok:
        return f"{head}FAILED ({verdict.outcome.kind.value}): {verdict.outcome.message}"
    return f"{head}{verdict.cases} cases passed, worst error {verdict.worst:.2f} of its bound, seed {verdict.seed}"


def verdict_record(verdict: Verdict) -> dict[str, Any]:
    """A verdict as JSON."""
    return {
        "dtype": verdict.dtype,
        "vlen": verdict.vlen,
        "threads": verdict.threads,
        "ok": verdict.ok,
        "cases": verdict.cases,
        "worst": verdict.worst if math.isfinite(verdict.worst) else None,
        "seed": verdict.seed,
        "outcome": {"kind": verdict.outcome.kind.value, "message": verdict.outcome.message},
    }


def show_controls(results: Iterable[ControlResult]) -> None:
    """One line: what was refused, what passed."""
    found = list(results)
    refused = [r for r in found if not r.outcome.ok]
    names = ", ".join(dict.fromkeys(r.name for r in refused))
    console().print(
        Text(f"negative controls: {len(refused)} refused ({names}), {len(found) - len(refused)} honest passed"),
        soft_wrap=True,
    )


def show_health(health: Health) -> None:
    """The doctor's table, then the self-test."""
    out = console()
    table = Table(box=None, pad_edge=False)
    for column in ("", "piece", "version", "what for", "how to get it"):
        table.add_column(column)
    for piece in health.pieces:
        bad = piece.status != "ok"
        style = "" if not bad else "yellow" if piece.optional else "red"
        word = piece.status if not (bad and piece.optional) else f"{piece.status} (optional)"
        command = piece.command if bad else ""
        table.add_row(*(Text(t, style) for t in (word, piece.name, piece.version, piece.purpose, command)))
    out.print(table)
    for step in health.steps:
        out.print(Text(f"{'ok     ' if step.ok else 'FAILED '} {step.name}: {step.detail}", "" if step.ok else "red"))
    for complaint in health.complaints:
        out.print(Text(f"figures taken now would be doubtful: {complaint}", "yellow"))


def show_card(card: Mapping[str, Any]) -> None:
    """The provenance card for a reader: one fact a line, variants and the dispatch tree indented."""
    out = console()
    for line in card_lines(card):
        out.print(Text(line), soft_wrap=True)


def card_lines(card: Mapping[str, Any]) -> list[str]:
    """See show_card; what this version does not know is shown as JSON."""
    lines = []
    for key, value in card.items():
        if key == "dtypes" and isinstance(value, Mapping):
            for dtype, winners in value.items():
                lines += _winners_lines(dtype, winners)
        elif key == "files":
            lines.append(f"files: {len(value)}")
        elif isinstance(value, Mapping):
            lines += [f"{key}.{name}: {_plain(inner)}" for name, inner in value.items()]
        else:
            lines.append(f"{key}: {_plain(value)}")
    return lines


def _winners_lines(dtype: str, winners: Mapping[str, Any]) -> list[str]:
    several = "by_vlen" in winners
    dispatch = choices.trees(winners)
    regret = "" if several else f", dispatch regret {winners.get('regret', 0):.2%}"
    lines = [f"{dtype}: {len(winners['variants'])} variants{regret}"]
    for number, variant in enumerate(winners["variants"]):
        point = " ".join(f"{k}={v}" for k, v in variant["point"].items())
        forms = f", also written for VLEN {' '.join(map(str, variant['forms']))}" if "forms" in variant else ""
        lines.append(f"    {number}: {variant['draft']} ({variant['author']}) {point}{forms}")
    for vlen, of_vlen in dispatch:
        lines += [f"    VLEN {vlen}, dispatch regret {of_vlen['regret']:.2%}"] if several else []
        lines += [f"    {line}" for line in tree_lines(of_vlen["tree"], 1 if several else 0)]
    return lines


def tree_lines(node: Mapping[str, Any], depth: int = 0) -> list[str]:
    """A dispatch tree, indented."""
    pad = "  " * depth
    if "variant" in node:
        return [f"{pad}variant {node['variant']}"]
    return [
        f"{pad}{node['feature']} <= {node['threshold']}:",
        *tree_lines(node["low"], depth + 1),
        f"{pad}else:",
        *tree_lines(node["high"], depth + 1),
    ]


def _plain(value: Any) -> str:
    if isinstance(value, list) and all(isinstance(v, str | int | float) for v in value):
        return " ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value)


def figure(value: float) -> str:
    """Three significant digits without an exponent."""
    digits = 2 - math.floor(math.log10(abs(value))) if value else 0
    return f"{value:.{max(0, digits)}f}"
