"""The SVG plots of ratios, searches and rooflines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from tensorop.model.bench import Bench
from tensorop.report import drawing, labels
from tensorop.report.drawing import COLOUR, svg
from tensorop.report.roofline import Roofline
from tensorop.report.searches import SearchSummary


def ratios(bench: Bench, dtype: str) -> str:
    """The ratios of one dtype: a bar for each problem, from 1 on a logarithmic scale.

    Bar and interval are those of the first baseline with this dtype; marks are the others. A problem without a ratio
    to the first baseline is left out.
    """
    given = [row for row in bench.rows if row.dtype == dtype]
    names = [name for name in bench.baselines if any(name in row.ratios for row in given)]
    if not names:
        return ""
    main = names[0]
    rows = [row for row in given if main in row.ratios]
    figure, (axes,) = drawing.panels(1, 0.9 + 0.235 * len(rows))
    for y, row in enumerate(rows):
        ratio = row.ratios[main]
        colour, alpha = COLOUR["good" if ratio.value >= 1 else "bad"], 0.45 if row.noisy else 0.85
        axes.barh(y, ratio.value - 1, left=1, height=0.62, color=colour, alpha=alpha, linewidth=0)
        axes.plot([ratio.low, ratio.high], [y, y], color=COLOUR["ink"], linewidth=1.1, solid_capstyle="butt")
        for other, mark in zip(names[1:], ("o", "s", "D", "^", "v"), strict=False):
            if other in row.ratios:
                axes.plot(row.ratios[other].value, y, mark, markersize=3.6, color=COLOUR["ink"], markerfacecolor="none")
        drawing.note(axes, f"{ratio.value:.2f}", (max(ratio.value, ratio.high, 1), y), (5, 0), va="center")
    axes.axvline(1, color=COLOUR["ink"], linewidth=0.9)
    ends = [one.value for row in rows for one in row.ratios.values()]
    ends += [end for row in rows for end in (row.ratios[main].low, row.ratios[main].high)]
    axes.set(xscale="log", xlim=(min(0.9, *ends) / 1.05, max(1.1, *ends) * 1.2), ylim=(len(rows) - 0.4, -0.6))
    axes.set_yticks(range(len(rows)), [row.shape for row in rows])
    drawing.plain_ticks(axes, "x")
    marks = f"; marks: {', '.join(names[1:])}" if names[1:] else ""
    drawing.labelled(axes, f"ratio to {main} (above 1: this library is faster{marks})", "shape", grid="x")
    return svg(figure, f"ratios-{dtype}")


def convergence(searches: Sequence[SearchSummary], colours: Mapping[str, str]) -> str:
    """Each trial's cost and the best so far, for searches with two passed trials or more. Ticks below are failures.

    The dotted line is the best so far that the same trials have in random order, on average.

    colours: names of the page's colours, by template
    """
    shown = [s for s in searches if sum(t.cost is not None for t in s.trials) > 1]
    if not shown:
        return ""
    figure, panels = drawing.panels(len(shown), 2.3)
    for axes, search in zip(panels, shown, strict=True):
        _one_search(axes, search, colours)
    dots = {label: dot for axes in figure.axes for dot, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    if len(dots) > 1:
        drawing.legend(figure, list(dots.values()), list(dots))
    return svg(figure, "convergence")


def _one_search(axes: Axes, search: SearchSummary, colours: Mapping[str, str]) -> None:
    trials = search.trials
    templates = list(dict.fromkeys(t.template for t in trials))
    for template in templates:
        mine = [(i, t.cost) for i, t in enumerate(trials, 1) if t.cost and t.template == template]
        if mine:
            x, y = zip(*mine, strict=True)
            colour = COLOUR[colours[template]]
            axes.plot(x, y, "o", markersize=3.2, color=colour, alpha=0.7, markeredgewidth=0, label=template)
    best = [(i, t.best) for i, t in enumerate(trials, 1) if t.best is not None]
    x, y = zip(*best, strict=True)
    axes.step(x, y, where="post", color=COLOUR["ink"], linewidth=1.3)
    by_chance = [(i, cost) for i, cost in enumerate(search.random_order, 1) if cost is not None]
    axes.plot([i for i, _ in by_chance], [cost for _, cost in by_chance], ":", color=COLOUR["muted"], linewidth=1.3)
    failed = [i for i, t in enumerate(trials, 1) if t.cost is None]
    if failed:
        axes.plot(
            failed, [0.02] * len(failed), "|", color=COLOUR["bad"], markersize=5, transform=axes.get_xaxis_transform()
        )
    axes.set_yscale("log")
    costs = sorted(t.cost for t in trials if t.cost)
    axes.set_xlim(0.5, len(trials) + 0.5)
    axes.set_ylim(costs[0] * 0.93, costs[int(0.95 * (len(costs) - 1))] * 1.1)  # without the worst 5 %
    drawing.plain_ticks(axes, "y")
    drawing.labelled(axes, "trial", search.unit, f"{search.stage}, {search.dtype}", "y")
    axes.xaxis.set_major_locator(MaxNLocator(nbins=7, integer=True, min_n_ticks=1))
    axes.yaxis.label.set_fontsize(7.5)


def roofline(roof: Roofline) -> str:
    """Speed over arithmetic intensity, both logarithmic, with the two roofs."""
    if not roof.points:
        return ""
    figure, (axes,) = drawing.panels(1, 2.9)
    xs = [p.intensity for p in roof.points]
    low, high = min(xs) / 2, max(xs) * 2.5
    if roof.bandwidth:
        ridge = roof.peak / roof.bandwidth
        low = min(low, ridge / 2)
        high = max(high, ridge * 2)
        line = [low * roof.bandwidth, roof.peak, roof.peak]
        axes.plot([low, ridge, high], line, color=COLOUR["ink"], linewidth=1.2)
        time = "ns" if roof.unit == "GFLOP/s" else "cycle"
        drawing.note(axes, f"memory {roof.bandwidth:.3g} bytes/{time}", (low, line[0]), (16, -1))
    else:
        axes.plot([low, high], [roof.peak] * 2, color=COLOUR["ink"], linewidth=1.2)
    words = f"multiply-adds {roof.peak:.3g} {roof.unit}"
    drawing.note(axes, words, (high, roof.peak), (-4, 4), ha="right")
    axes.plot(xs, [p.ours for p in roof.points], "o", markersize=4, color=COLOUR["one"], markeredgewidth=0)
    axes.set(xscale="log", yscale="log")
    drawing.plain_ticks(axes, "xy")
    drawing.labelled(axes, "arithmetic intensity, flop/byte", roof.unit)
    for p, offset, side in labels.beside(roof, axes.get_xlim(), axes.get_ylim(), _inches(figure)):
        drawing.note(axes, p.shape, (p.intensity, p.ours), offset, 6.5, ha=side, va="center")
    return svg(figure, f"roofline-{roof.dtype}-{roof.vlen}")


def _inches(figure: Figure) -> tuple[float, float]:
    """The approximate size of a figure's axes, without ticks and labels."""
    width, height = figure.get_size_inches()
    return float(width) - 0.6, float(height) - 0.55
