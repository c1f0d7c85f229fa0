"""The record's plots as SVG that takes its colours from the page, so that it is legible on light, dark and paper."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullFormatter

# Colours that stand for the page's variables until the SVG is written.
_VARIABLES = ("ink", "muted", "rule", "good", "bad", "one", "two", "three", "four", "five")
_COLOUR = {name: f"#0a0b{i:02x}" for i, name in enumerate(_VARIABLES, start=1)}
_SERIES = ("one", "two", "three", "four", "five")
_WIDTH = 7.6  # inches; the page scales it
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r"#([\w-]+)")
_FEWEST_TICKS = 3
# Mantissas of the ticks of a logarithmic axis, from the coarsest; the first set with enough of them is taken.
_STEPS = (
    (1,),
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    tuple(x / 20 for x in range(20, 200)),
)


def ratios(bench: Mapping[str, Any], dtype: str) -> str:
    """A bar a problem from 1, on a logarithmic scale, with the interval of the first baseline; dots for the others."""
    names = list(bench["baselines"])
    rows = [row for row in bench["results"] if row["dtype"] == dtype and row["ratio"]]
    if not rows or not names:
        return ""
    labels = [shape(row) for row in rows]
    figure, axes = _figure(0.9 + 0.235 * len(rows))
    for y, row in enumerate(rows):
        main = next(iter(row["ratio"]))
        value, (low, high) = row["ratio"][main], row["interval"][main]
        colour = _COLOUR["good" if value >= 1 else "bad"]
        axes.barh(
            y, value - 1, left=1, height=0.62, color=colour, alpha=0.45 if row.get("noisy") else 0.85, linewidth=0
        )
        axes.plot([low, high], [y, y], color=_COLOUR["ink"], linewidth=1.1, solid_capstyle="butt")
        for other, mark in zip(names[1:], ("o", "s", "D", "^", "v"), strict=False):
            if other in row["ratio"]:
                axes.plot(row["ratio"][other], y, mark, markersize=3.6, color=_COLOUR["ink"], markerfacecolor="none")
        axes.annotate(
            f"{value:.2f}",
            (max(value, high, 1), y),
            xytext=(5, 0),
            textcoords="offset points",
            va="center",
            fontsize=7.5,
            color=_COLOUR["muted"],
        )
    axes.axvline(1, color=_COLOUR["ink"], linewidth=0.9)
    ends = [x for row in rows for x in (*row["ratio"].values(), *next(iter(row["interval"].values())))]
    axes.set_xscale("log")
    axes.set_xlim(min(0.9, *ends) / 1.05, max(1.1, *ends) * 1.2)
    axes.set_yticks(range(len(labels)), labels)
    axes.set_ylim(len(labels) - 0.4, -0.6)
    _plain_ticks(axes, "x")
    axes.grid(axis="x", color=_COLOUR["rule"], linewidth=0.6)
    axes.set_xlabel(f"times as fast as {names[0]}" + (", marks: " + ", ".join(names[1:]) if names[1:] else ""))
    return _svg(figure, f"ratios-{dtype}")


def convergence(searches: Sequence[Mapping[str, Any]]) -> str:
    """Every trial's cost and the best so far; failures as ticks below."""
    shown = [s for s in searches if any(t["cost"] is not None for t in s["trials"])]
    if not shown:
        return ""
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    figure = Figure(figsize=(_WIDTH, 2.3 * lines), layout="constrained")
    for i, search in enumerate(shown):
        axes = figure.add_subplot(lines, columns, i + 1)
        _style(axes)
        _one_search(axes, search)
    return _svg(figure, "convergence")


def _one_search(axes: Axes, search: Mapping[str, Any]) -> None:
    trials = search["trials"]
    drafts = list(dict.fromkeys(str(t["draft"]).partition(" ")[0] for t in trials))
    for draft, name in zip(drafts, _SERIES, strict=False):
        mine = [
            (i, t["cost"]) for i, t in enumerate(trials, 1) if t["cost"] and str(t["draft"]).partition(" ")[0] == draft
        ]
        if mine:
            x, y = zip(*mine, strict=True)
            axes.plot(x, y, "o", markersize=2.6, color=_COLOUR[name], alpha=0.55, markeredgewidth=0, label=draft)
    best = [(i, t["best"]) for i, t in enumerate(trials, 1) if t["best"] is not None]
    x, y = zip(*best, strict=True)
    axes.step(x, y, where="post", color=_COLOUR["ink"], linewidth=1.3)
    failed = [i for i, t in enumerate(trials, 1) if t["cost"] is None]
    if failed:
        axes.plot(
            failed, [0.02] * len(failed), "|", color=_COLOUR["bad"], markersize=5, transform=axes.get_xaxis_transform()
        )
    axes.set_yscale("log")
    costs = sorted(t["cost"] for t in trials if t["cost"])
    axes.set_ylim(costs[0] * 0.93, costs[int(0.95 * (len(costs) - 1))] * 1.1)  # the worst few would flatten the rest
    _plain_ticks(axes, "y")
    axes.grid(axis="y", color=_COLOUR["rule"], linewidth=0.6)
    axes.set_title(f"{search['stage']}, {search['dtype']}", fontsize=9, color=_COLOUR["ink"], loc="left")
    axes.set_xlabel("trial")
    axes.set_ylabel(search["unit"], fontsize=7.5)
    if len(drafts) > 1:
        axes.legend(fontsize=7, frameon=False, labelcolor=_COLOUR["ink"], loc="upper right")


def roofline(roof: Mapping[str, Any]) -> str:
    """Speed over intensity, both logarithmic, under the two roofs."""
    points = roof["points"]
    if not points:
        return ""
    figure, axes = _figure(2.9)
    xs = [p["intensity"] for p in points]
    low, high = min(xs) / 2, max(xs) * 2.5
    if roof["bandwidth"]:
        ridge = roof["peak"] / roof["bandwidth"]
        low = min(low, ridge / 2)
        high = max(high, ridge * 2)
        axes.plot(
            [low, ridge, high],
            [low * roof["bandwidth"], roof["peak"], roof["peak"]],
            color=_COLOUR["ink"],
            linewidth=1.2,
        )
        axes.annotate(
            f"memory {roof['bandwidth']:.3g} bytes/{_time(roof)}",
            (low, low * roof["bandwidth"]),
            xytext=(-2, 14),
            textcoords="offset points",
            fontsize=7.5,
            color=_COLOUR["muted"],
        )
    else:
        axes.plot([low, high], [roof["peak"]] * 2, color=_COLOUR["ink"], linewidth=1.2)
    axes.annotate(f"multiply-adds {roof['peak']:.3g} {roof['unit']}", (high, roof["peak"]), xytext=(-4, 4), ha="right",
                  textcoords="offset points", fontsize=7.5, color=_COLOUR["muted"])  # fmt: skip
    axes.plot(xs, [p["ours"] for p in points], "o", markersize=4, color=_COLOUR["one"], markeredgewidth=0)
    for p in _apart(points):
        axes.annotate(
            p["shape"], (p["intensity"], p["ours"]), xytext=(5, -2.5), textcoords="offset points", fontsize=6.5,
            color=_COLOUR["muted"],
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    _plain_ticks(axes, "x")
    _plain_ticks(axes, "y")
    axes.grid(color=_COLOUR["rule"], linewidth=0.6)
    axes.set_xlabel("flop per byte that must move at least")
    axes.set_ylabel(roof["unit"])
    return _svg(figure, f"roofline-{roof['dtype']}-{roof['vlen']}")


def _apart(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Those whose labels do not lie over another's, by the room a label takes on both axes' usual spans."""
    kept: list[Mapping[str, Any]] = []
    for p in points:
        near = (
            abs(math.log10(p["ours"] / q["ours"])) < 0.06 and abs(math.log10(p["intensity"] / q["intensity"])) < 0.5
            for q in kept
        )
        if not any(near):
            kept.append(p)
    return kept


def importance(found: Sequence[Mapping[str, Any]]) -> str:
    """A bar a tunable, a panel a search."""
    shown = [f for f in found if f["parameters"]]
    if not shown:
        return ""
    columns = min(2, len(shown))
    lines = math.ceil(len(shown) / columns)
    tallest = max(len(f["parameters"]) for f in shown)
    figure = Figure(figsize=(_WIDTH, lines * (0.75 + 0.2 * tallest)), layout="constrained")
    for i, entry in enumerate(shown):
        axes = figure.add_subplot(lines, columns, i + 1)
        _style(axes)
        names = list(entry["parameters"])
        axes.barh(range(len(names)), list(entry["parameters"].values()), height=0.62, color=_COLOUR["one"], linewidth=0)
        axes.set_yticks(range(len(names)), names)
        axes.set_ylim(tallest - 0.4, -0.6)
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{100 * x:.0f} %"))
        axes.grid(axis="x", color=_COLOUR["rule"], linewidth=0.6)
        title = f"{entry['stage']}, {entry['dtype']}: {entry['trials']} trials, R² {entry['score']:.2f} out of bag"
        axes.set_title(title, fontsize=8.5, color=_COLOUR["ink"], loc="left")
    return _svg(figure, "importance")


def shape(row: Mapping[str, Any]) -> str:
    """`64x64x64`: the dimensions of a result's row, which stand between dtype and layout."""
    keys = list(row)
    return "x".join(str(row[key]) for key in keys[keys.index("dtype") + 1 : keys.index("layout")])


def _time(roof: Mapping[str, Any]) -> str:
    return "ns" if roof["unit"] == "GFLOP/s" else "cycle"


def _figure(height: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    _style(axes)
    return figure, axes


def _style(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(_COLOUR["rule"])
    axes.tick_params(which="both", colors=_COLOUR["muted"], labelsize=8, length=0)
    axes.xaxis.label.set(color=_COLOUR["muted"], size=8)
    axes.yaxis.label.set(color=_COLOUR["muted"], size=8)


def _plain_ticks(axes: Axes, which: str) -> None:
    """1, 2, 5 and tens as numbers, where the axis spans little; tens alone where it spans much."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    first, last = math.floor(math.log10(max(low, 1e-300))), math.ceil(math.log10(max(high, 1e-300)))
    ticks: list[float] = []
    for steps in _STEPS:
        ticks = [s * 10.0**e for e in range(first, last + 1) for s in steps if low <= s * 10.0**e <= high]
        if len(ticks) >= _FEWEST_TICKS:
            break
    axis.set_ticks(ticks)
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def _svg(figure: Figure, name: str) -> str:
    """name: unique on a page; the ids that the SVG refers to are made of it."""
    figure.patch.set_visible(False)
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
            out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for variable, colour in _COLOUR.items():
        text = text.replace(colour, f"var(--{variable})")
    # Groups are numbered in each plot alike; only what is referred to is named after this one.
    wanted = set(_REFERENCE.findall(text))
    text = _ID.sub(lambda found: found[0] if found[1] in wanted else "", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 var(--sans)", text)
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img"', text, count=1)
    return text.replace('xmlns:xlink="http://www.w3.org/1999/xlink" ', "").replace("xlink:href", "href")
