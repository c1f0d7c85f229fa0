"""The style of the report's plots: SVG with the page's colours, readable on light and dark screens and on paper."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, NullLocator

mpl.rcParams["text.parse_math"] = False  # dollar signs in names are no formulas

# Placeholder colours; the written SVG has the page's variables instead.
_VARIABLES = ("ink", "muted", "rule", "good", "bad", "one", "two", "three", "four", "five", "six", "seven", "eight")
COLOUR = {name: f"#0a0b{i:02x}" for i, name in enumerate(_VARIABLES, start=1)}
SERIES = ("one", "two", "three", "four", "five", "six", "seven", "eight")
WIDTH = 7.6  # inches; the page scales it
_ID = re.compile(r' id="([^"]*)"')
_REFERENCE = re.compile(r"#([\w-]+)")
_FEWEST_TICKS = 3
_LABEL = {"x": 0.42, "y": 0.2}  # inches of a label along its axis
# Mantissas of the ticks of a logarithmic axis, coarsest set first; the first set with enough ticks is used.
_STEPS = (
    (1,),
    (1, 2, 5),
    (1, 1.5, 2, 3, 5, 7),
    (1, 1.2, 1.5, 1.8, 2, 2.5, 3, 4, 5, 6, 7, 8, 9),
    tuple(x / 20 for x in range(20, 200)),
)


def _style(axes: Axes) -> None:
    axes.set_facecolor("none")
    axes.set_axisbelow(True)
    for side, spine in axes.spines.items():
        spine.set_visible(side in ("bottom", "left"))
        spine.set_color(COLOUR["rule"])
    axes.tick_params(which="both", colors=COLOUR["muted"], labelsize=8, length=0)
    axes.xaxis.label.set(color=COLOUR["muted"], size=8)
    axes.yaxis.label.set(color=COLOUR["muted"], size=8)


def plain_ticks(axes: Axes, which: str) -> None:
    """Sets few round ticks without exponents on logarithmic axes; their labels do not overlap.

    which: `x`, `y` or `xy`
    """
    for one in which:
        _ticks(axes, one)


def _ticks(axes: Axes, which: str) -> None:
    axis = axes.xaxis if which == "x" else axes.yaxis
    low, high = axes.get_xlim() if which == "x" else axes.get_ylim()
    first, last = math.floor(math.log10(max(low, 1e-300))), math.ceil(math.log10(max(high, 1e-300)))
    inches = axes.get_figure().get_size_inches()[0 if which == "x" else 1]  # type: ignore[union-attr]
    gridspec = axes.get_subplotspec()
    share = (gridspec.get_gridspec().ncols if which == "x" else gridspec.get_gridspec().nrows) if gridspec else 1
    apart = math.log10(high / low) * (_LABEL[which] * share / inches)
    ticks: list[float] = []
    for steps in _STEPS:
        for tick in (s * 10.0**e for e in range(first, last + 1) for s in steps):
            if low <= tick <= high and all(abs(math.log10(tick / other)) >= apart for other in ticks):
                ticks.append(tick)
        if len(ticks) >= _FEWEST_TICKS:
            break
    axis.set_ticks(sorted(ticks))
    axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
    axis.set_minor_locator(NullLocator())  # invisible minor ticks take a third of the time


def powers_of_two(axes: Axes) -> None:
    """Sets every third power of two as a tick of both logarithmic axes."""
    for axis, (low, high) in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        axis.set_ticks([2.0**e for e in range(0, 64, 3) if low <= 2.0**e <= high])
        axis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axis.set_minor_locator(NullLocator())


def panels(count: int, height: float, columns: int = 2) -> tuple[Figure, list[Axes]]:
    """A figure with `count` axes in rows of at most `columns`. height: of a row, in inches."""
    across = min(columns, count)
    lines = math.ceil(count / across)
    figure = Figure(figsize=(WIDTH, height * lines), layout="constrained")
    found = [figure.add_subplot(lines, across, i + 1) for i in range(count)]
    for axes in found:
        _style(axes)
    return figure, found


def legend(figure: Figure, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """Adds one legend for all panels, below them."""
    figure.legend(
        handles, labels, loc="outside lower center", ncols=6, fontsize=7.5, frameon=False, labelcolor=COLOUR["ink"]
    )


def note(
    axes: Axes, text: str, at: tuple[float, float], offset: tuple[float, float], size: float = 7.5, **how: Any
) -> None:
    """Adds small text beside a point. offset: in points; how: arguments of matplotlib's Text."""
    axes.annotate(
        text, at, xytext=offset, textcoords="offset points", fontsize=size, color=COLOUR["muted"], **how
    )  # fmt: skip


def labelled(axes: Axes, x: str, y: str = "", title: str = "", grid: str = "both", size: float = 9) -> None:
    """Sets the axes' labels, the panel's title, and grid lines at the ticks of `grid`: x, y or both."""
    axes.set(xlabel=x, ylabel=y)
    axes.grid(axis=grid, color=COLOUR["rule"], linewidth=0.6)  # type: ignore[arg-type]
    axes.set_title(title, fontsize=size, color=COLOUR["ink"], loc="left")


def own_legend(axes: Axes) -> None:
    """Adds a legend inside a panel, for lines that all panels have."""
    axes.legend(fontsize=7, frameon=False, labelcolor=COLOUR["ink"], loc="upper left")


def svg(figure: Figure, name: str) -> str:
    """The figure as SVG. name: unique on a page; it makes the SVG's ids unique."""
    figure.patch.set_visible(False)
    out = io.StringIO()
    with mpl.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "font.family": "sans-serif"}):
        FigureCanvasSVG(figure).print_svg(  # type: ignore[no-untyped-call]
            out, metadata={"Date": None, "Creator": None, "Format": None, "Type": None}
        )
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    for variable, colour in COLOUR.items():
        text = text.replace(colour, f"var(--{variable})")
    # matplotlib numbers groups alike in each plot, so ids without a reference are removed.
    wanted = set(_REFERENCE.findall(text))
    text = _ID.sub(lambda found: found[0] if found[1] in wanted else "", text)
    text = re.sub(r"font: ([\d.]+px) [^;\"]*", r"font: \1 var(--sans)", text)
    text = re.sub(r'width="[\d.]+pt" height="[\d.]+pt"', 'role="img"', text, count=1)
    return text.replace('xmlns:xlink="http://www.w3.org/1999/xlink" ', "").replace("xlink:href", "href")
