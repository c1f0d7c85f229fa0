"""Makes one HTML page of a report's record."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path

from tensorop.measure import statistics
from tensorop.render import render
from tensorop.report import curves, drawing, plots
from tensorop.report.gather import Report

_TEMPLATE = "report.html.j2"


def page(report: Report) -> str:
    """HTML with style and plots included."""
    env = render.environment(Path(__file__).parent, html=True)
    env.filters["sig"] = statistics.significant
    env.filters["of_peak"] = lambda x: statistics.of_peak(x).replace("%", " %")
    env.filters["percent"] = lambda x, digits=1: "" if x is None else f"{100 * x:.{digits}f} %"
    env.filters["point"] = lambda p: " ".join(f"{k}={v}" for k, v in p.items())
    env.filters["facts"] = facts_line
    env.filters["seconds"] = _duration
    bench = report.bench
    dtypes = bench.dtypes if bench else ()
    chosen = colours(report)
    # Maps of one operator, dtype and VLEN are one plot; they differ in the fixed dims.
    planes = itertools.groupby(report.maps, key=lambda plane: (plane.operator, plane.dtype, plane.vlen))
    together = [maps for _, found in planes if len(curves.variants_on(maps := list(found))) > 1]
    drawn = {
        "ratios": {dtype: plots.ratios(bench, dtype) for dtype in dtypes if bench},
        "convergence": plots.convergence(report.searches, chosen),
        "speeds": {dtype: curves.speeds(bench, dtype) for dtype in dtypes if bench},
        "by_vlen": curves.by_vlen(bench) if bench else "",
        "threads": curves.scaling(report.threads),
        "maps": [(maps[0], curves.dispatch(maps, chosen)) for maps in together],
        "rooflines": [(roof, plots.roofline(roof)) for roof in report.roofline],
    }
    return render.text(env, _TEMPLATE, {"r": report, "plots": drawn, "dtypes": dtypes, "bench": bench})


def colours(report: Report) -> dict[str, str]:
    """The colour of each template, the same in all plots."""
    tried = {trial.template for search in report.searches for trial in search.trials}
    names = sorted(tried.union(*(plane.templates for plane in report.maps)))
    return dict(zip(names, itertools.cycle(drawing.SERIES), strict=False))


def facts_line(facts: Mapping[str, object]) -> str:
    """A job's facts for the head of a page, without digests: `dtypes f32 f64, 16 shapes, ...`."""
    words = []
    for key, value in facts.items():
        if value in (None, "", []):
            continue
        if key == "shapes" and isinstance(value, list):
            words.append(f"{len(value)} shape{'s' if len(value) > 1 else ''}")
        elif key not in ("operator", "platform") and " and " not in key and "digest" not in key:
            words.append(f"{key} {' '.join(map(str, value)) if isinstance(value, list) else value}")
    return ", ".join(words)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
