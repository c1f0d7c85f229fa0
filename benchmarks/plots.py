"""Plots of results as SVG: bars with their interval, each marked as simulated or measured."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import escape

import matplotlib as mpl

mpl.use("svg")
from matplotlib import pyplot as plt
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

TICKS = [0.1, 0.25, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8, 12]
COLOURS = {"simulated": "#4477aa", "measured": "#cc7711"}
HATCHES = {"simulated": "//", "measured": ""}


@dataclass(frozen=True)
class Bar:
    """how: `simulated` or `measured`; dots: single values beside it, e.g. of each shape, or published ones."""

    label: str
    value: float
    low: float
    high: float
    how: str
    dots: Sequence[float] = ()


@dataclass(frozen=True)
class Plot:
    """ratio: a logarithmic axis whose bars begin at 1; else one from 0. interval, dots: what the legend calls them."""

    title: str
    axis: str
    bars: Sequence[Bar]
    ratio: bool = True
    interval: str = ""
    dots: str = field(default="", kw_only=True)

    @property
    def description(self) -> str:
        """Every number of the plot: the text alternative inside the SVG."""
        return f"{self.title}. {self.axis}. " + "; ".join(map(self._described, self.bars))

    def _described(self, bar: Bar) -> str:
        interval = f" ({bar.low:.2f} to {bar.high:.2f})" if self.interval else ""
        dots = f" [{', '.join(f'{dot:.2f}' for dot in sorted(bar.dots))}]" if bar.dots else ""
        return f"{bar.label}: {bar.value:.2f}{interval}, {bar.how}{dots}"


def draw(plot: Plot) -> bytes:
    """The same plot gives the same file."""
    mpl.rcParams["svg.hashsalt"] = "tensorop"
    size = (8, 1.7 + 0.3 * len(plot.bars))
    dots: dict[str, Any] = {
        "color": "black" if plot.ratio else COLOURS["measured"],
        "linestyle": "",
        "marker": "o",
        "markersize": 3 if plot.ratio else 5,
    }
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    base = 1.0 if plot.ratio else 0.0
    if plot.ratio:
        axes.set_xscale("log")
    for height, bar in enumerate(reversed(plot.bars)):
        colour, hatch = COLOURS[bar.how], HATCHES[bar.how]
        axes.barh(height, bar.value - base, left=base, height=0.62, color=colour, alpha=0.75, hatch=hatch, ec="white")
        if plot.interval:
            axes.plot([bar.low, bar.high], [height, height], color="black", linewidth=1.2, marker="|", markersize=5)
        axes.plot(bar.dots, [height] * len(bar.dots), alpha=0.6, zorder=3, **dots)
        text = f" {bar.value:.2f} {bar.how}"
        right = max([bar.value, base, *bar.dots, bar.high if plot.interval else 0])
        axes.text(right, height, text, va="center", fontsize=8)
    values = [
        v for bar in plot.bars for v in (bar.value, base, *bar.dots, *((bar.low, bar.high) if plot.interval else ()))
    ]
    if plot.ratio and values:
        axes.set_xlim(min(values) / 1.15, max(values) * 1.9)
        axes.xaxis.set_major_locator(FixedLocator(TICKS))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_minor_locator(NullLocator())
        axes.xaxis.set_minor_formatter(NullFormatter())
        axes.axvline(1.0, color="grey", linewidth=1)
    else:
        axes.set_xlim(0, max(values) * 1.25)
    axes.set_yticks(range(len(plot.bars)), [bar.label for bar in reversed(plot.bars)], fontsize=9)
    axes.set_xlabel(plot.axis)
    axes.set_ylim(-0.7, len(plot.bars) - 0.3)
    figure.suptitle(plot.title, fontsize=10.5)
    shown: list[Patch | Line2D] = [
        Patch(fc=COLOURS[how], hatch=HATCHES[how], ec="white", label=how) for how in _ways(plot)
    ]
    if plot.interval:
        shown.append(Line2D([], [], color="black", linewidth=1.2, marker="|", label=plot.interval))
    if plot.dots:
        shown.append(Line2D([], [], label=plot.dots, **dots))
    figure.legend(handles=shown, loc="outside lower center", ncols=len(shown), fontsize=8, frameon=False)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    out = io.BytesIO()
    figure.savefig(out, format="svg", metadata={"Date": None})
    plt.close(figure)
    words = f" <title>{escape(plot.title)}</title>\n <desc>{escape(plot.description)}</desc>\n"
    return out.getvalue().replace(b" <metadata>", words.encode() + b" <metadata>", 1)


def _ways(plot: Plot) -> list[str]:
    return list(dict.fromkeys(bar.how for bar in plot.bars))
