"""Plots of a library over size, vector length, number of threads, and a plane of problems."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import groupby, pairwise

from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgba
from matplotlib.patches import Patch, Rectangle

from tensorop.model.bench import Bench, Row, geomean
from tensorop.report import drawing, threads
from tensorop.report.dispatch_map import DispatchMap
from tensorop.report.drawing import COLOUR, SERIES


def speeds(bench: Bench, dtype: str) -> str:
    """Speed over size (the geometric mean of a problem's dimensions), for the library and each baseline.

    There is a panel for each VLEN. A baseline's speed is the library's speed divided by the ratio.
    """
    rows = [row for row in bench.rows if row.dtype == dtype]
    vlens = list(dict.fromkeys(vlen for row in rows for vlen in row.measured))
    if len(rows) < 2:
        return ""
    figure, panels = drawing.panels(len(vlens), 2.6)
    for axes, vlen in zip(panels, vlens, strict=True):
        shown = [(_size(row), row.measured[vlen]) for row in rows if vlen in row.measured]
        at = sorted(shown, key=lambda pair: pair[0])
        xs, mine = [x for x, _ in at], [y.ours for _, y in at]
        axes.plot(xs, mine, "o", markersize=4.2, color=COLOUR["ink"], label="this library")
        for name, colour, mark in zip(bench.baselines, SERIES, "sD^vP*XhH", strict=False):
            theirs = [(x, y.ours / y.ratios[name].value, y.ours) for x, y in at if name in y.ratios]
            if not theirs:
                continue
            axes.plot(
                [x for x, _, _ in theirs], [y for _, y, _ in theirs], mark, markersize=4, color=COLOUR[colour],
                markerfacecolor="none", label=name,
            )  # fmt: skip
            if name == next(iter(bench.baselines)):
                for x, y, ours in theirs:
                    side = COLOUR["good" if ours >= y else "bad"]
                    axes.plot([x, x], [y, ours], color=side, linewidth=1.1, alpha=0.6, zorder=1)
        axes.set(xscale="log", yscale="log")
        low, high = axes.get_ylim()
        axes.set_ylim(low, high * (high / low) ** 0.2)  # space for the legend
        drawing.plain_ticks(axes, "xy")
        title = f"VLEN {vlen}" if vlen else ""
        drawing.labelled(axes, "size: geometric mean of the dimensions", bench.unit, title)
    drawing.own_legend(panels[0])
    return drawing.svg(figure, f"speeds-{dtype}")


def by_vlen(bench: Bench) -> str:
    """The ratio to the first baseline at each VLEN, with a panel for each dtype.

    Thin lines are problems; the thick line is the geometric mean.
    """
    name = next(iter(bench.baselines), "")
    dtypes = list(dict.fromkeys(row.dtype for row in bench.rows if len(row.by_vlen) > 1))
    if not dtypes or not name:
        return ""
    figure, panels = drawing.panels(len(dtypes), 2.6)
    for axes, dtype in zip(panels, dtypes, strict=True):
        rows = [row.by_vlen for row in bench.rows if row.dtype == dtype]
        vlens = sorted({vlen for row in rows for vlen in row})
        lines = [
            [(i, row[v].ratios[name].value) for i, v in enumerate(vlens) if v in row and name in row[v].ratios]
            for row in rows
        ]
        for line in lines:
            if line:
                axes.plot(*zip(*line, strict=True), color=COLOUR["one"], linewidth=0.8, alpha=0.45)
        found = ((i, geomean(ratio for line in lines for at, ratio in line if at == i)) for i in range(len(vlens)))
        means = [(i, mean) for i, mean in found if not math.isnan(mean)]
        if means:
            axes.plot(*zip(*means, strict=True), "o-", color=COLOUR["ink"], linewidth=2, markersize=4.5)
        for i, mean in means:
            drawing.note(axes, f"{mean:.2f}", (i, mean), (6, 5))
        axes.axhline(1, color=COLOUR["bad"], linewidth=0.9)
        axes.set_yscale("log")
        drawing.plain_ticks(axes, "y")
        axes.set_xticks(range(len(vlens)), list(map(str, vlens)))
        axes.set_xlim(-0.3, len(vlens) - 0.6)
        drawing.labelled(axes, "VLEN, bits", f"ratio to {name}", dtype, "y")
    return drawing.svg(figure, "by-vlen")


def dispatch(maps: Sequence[DispatchMap], colours: Mapping[str, str]) -> str:
    """The chosen variant over a plane of problems: maps of one dtype and VLEN, with a panel for each.

    A colour is a template; its further variants are paler.
    """
    figure, panels = drawing.panels(len(maps), 2.9, columns=3)
    first = maps[0]
    shades = _shades(first.templates)
    for axes, plane in zip(panels, maps, strict=True):
        sides = plane.sides
        between = [(a * b) ** 0.5 for a, b in pairwise(sides)]
        edges = [sides[0] / 2**0.5, *between, sides[-1] * 2**0.17]
        areas: dict[int, list[tuple[float, float]]] = {}
        cells: list[Rectangle] = []
        for j, line in enumerate(plane.chosen):
            at = 0
            for number, run in groupby(line):
                length = len(list(run))
                size = edges[at + length] - edges[at], edges[j + 1] - edges[j]
                colour = COLOUR[colours[plane.templates[number]]]
                cells.append(Rectangle((edges[at], edges[j]), *size, facecolor=to_rgba(colour, shades[number])))
                areas.setdefault(number, []).extend((sides[i], sides[j]) for i in range(at, at + length))
                at += length
        # One collection without antialiasing: otherwise hairlines appear between the rows.
        axes.add_collection(PatchCollection(cells, match_original=True, linewidth=0, antialiased=False))
        for number, area in areas.items():
            if len(area) >= 24:
                x, y = _middle(area)
                axes.text(x, y, str(number), ha="center", va="center", fontsize=8, color=COLOUR["ink"])
        ends = edges[0], edges[-1]
        axes.set(xscale="log", yscale="log", xlim=ends, ylim=ends)
        drawing.powers_of_two(axes)
        where = ", ".join(f"{name} = {size}" for name, size in plane.fixed.items())
        drawing.labelled(axes, f"{plane.axes[0]}, elements", f"{plane.axes[1]}, elements", where, size=8.5)
        axes.grid(visible=False)
    used = variants_on(maps)
    shown = [(number, template) for number, template in enumerate(first.templates) if number in used]
    handles = [Patch(color=COLOUR[colours[template]], alpha=shades[number], linewidth=0) for number, template in shown]
    drawing.legend(figure, handles, [f"{number} {template}" for number, template in shown])
    return drawing.svg(figure, f"dispatch-{first.dtype}-{first.vlen}")


def variants_on(maps: Sequence[DispatchMap]) -> list[int]:
    """The numbers of the variants that these maps contain."""
    return sorted({number for plane in maps for line in plane.chosen for number in line})


def scaling(found: Sequence[Bench]) -> str:
    """The speedup over the first number of threads, with a panel for each dtype; "" for a single number.

    Thin lines are problems; thick lines are geometric means.
    """
    if len(found) < 2:
        return ""
    dtypes = found[0].dtypes
    counts = [one.threads for one in found]
    figure, panels = drawing.panels(len(dtypes), 2.8)
    ours = threads.gains(found)
    for axes, dtype in zip(panels, dtypes, strict=True):
        for place in {place: None for of_each in ours.values() for place in of_each if place[0] == dtype}:
            line = [(count, of_each[place]) for count, of_each in ours.items() if place in of_each]
            axes.plot(*zip(*line, strict=True), color=COLOUR["ink"], linewidth=0.7, alpha=0.3)
        means = list(threads.mean_gains(found, dtype).items())
        xs, ys = zip(*means, strict=True)
        axes.plot(xs, ys, "o-", color=COLOUR["ink"], linewidth=2, markersize=4.5, label="this library")
        for x, mean in means[1:]:
            drawing.note(axes, f"{mean:.2f}", (x, mean), (6, 5))
        for name, colour, mark in zip(found[0].baselines, SERIES, "sD^vP*XhH", strict=False):
            theirs = list(threads.mean_gains(found, dtype, name).items())
            if len(theirs) > 1:
                axes.plot(
                    *zip(*theirs, strict=True), f"{mark}--", color=COLOUR[colour], markersize=4, markerfacecolor="none",
                    label=name,
                )  # fmt: skip
        ideal = [count / counts[0] for count in counts]
        axes.plot(counts, ideal, ":", color=COLOUR["muted"], linewidth=1, label="ideal")
        axes.set_xticks(counts, [str(count) for count in counts])
        axes.set_ylim(bottom=0)
        drawing.labelled(axes, "threads", f"speedup over {counts[0]} thread{'s' if counts[0] > 1 else ''}", dtype)
    drawing.own_legend(panels[0])
    return drawing.svg(figure, "threads")


def _size(row: Row) -> float:
    return geomean(side for side in row.dims.values() if side > 0)


def _shades(templates: Sequence[str]) -> list[float]:
    """The opacity of each variant; a template's first variant has the highest."""
    seen: dict[str, int] = {}
    counts = {template: templates.count(template) for template in templates}
    out = []
    for template in templates:
        rank = seen[template] = seen.get(template, -1) + 1
        out.append(0.85 - 0.6 * rank / max(counts[template] - 1, 1) if counts[template] > 1 else 0.7)
    return out


def _middle(cells: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """The cell nearest to the centre of the cells, on logarithmic axes."""
    x = sum(math.log(a) for a, _ in cells) / len(cells)
    y = sum(math.log(b) for _, b in cells) / len(cells)
    return min(cells, key=lambda cell: (math.log(cell[0]) - x) ** 2 + (math.log(cell[1]) - y) ** 2)
