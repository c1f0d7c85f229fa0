"""The record as one page that needs nothing but a browser."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorop.render import render
from tensorop.report import curves, drawing, gather, plots

_TEMPLATE = "report.html.j2"


def page(record: Mapping[str, Any]) -> str:
    """HTML with its style and plots inside."""
    env = render.environment(Path(__file__).parent, html=True)
    env.filters["sig"] = significant
    env.filters["percent"] = lambda x, digits=1: "" if x is None else f"{100 * x:.{digits}f} %"
    env.filters["point"] = lambda p: " ".join(f"{k}={v}" for k, v in p.items())
    env.filters["facts"] = gather.facts_line
    env.filters["shape"] = plots.shape
    env.filters["seconds"] = _duration
    bench = record["bench"]
    dtypes = list(dict.fromkeys(row["dtype"] for row in bench["results"])) if bench else []
    chosen = colours(record)
    drawn = {
        "ratios": {dtype: plots.ratios(bench, dtype) for dtype in dtypes},
        "convergence": plots.convergence(record["searches"], chosen),
        "speeds": {dtype: curves.speeds(bench, dtype) for dtype in dtypes},
        "by_vlen": curves.by_vlen(bench) if bench else "",
        "threads": curves.scaling(record["threads"]) if record.get("threads") else "",
        "maps": [(maps[0], curves.dispatch(maps, chosen)) for maps in _together(record["maps"])],
        "rooflines": [(roof, plots.roofline(roof)) for roof in record["roofline"]],
    }
    return render.text(env, _TEMPLATE, {"r": record, "plots": drawn, "dtypes": dtypes, "bench": bench})


def colours(record: Mapping[str, Any]) -> dict[str, str]:
    """Every template's own colour, the same in all plots."""
    tried = [str(t["template"]) for search in record["searches"] for t in search["trials"]]
    names = sorted({*tried, *(template for plane in record["maps"] for template in plane["templates"])})
    return dict(zip(names, itertools.cycle(drawing.SERIES), strict=False))


def _together(maps: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Those of one operator, dtype and VLEN, which differ in what is fixed."""

    def of(plane: Mapping[str, Any]) -> tuple[Any, ...]:
        return plane["operator"], plane["dtype"], plane["vlen"]

    return [list(group) for _, group in itertools.groupby(maps, key=of)]


def significant(value: float | None, digits: int = 3) -> str:
    """A number with three significant digits and no exponent; nothing for None."""
    if value is None:
        return ""
    if not value or not math.isfinite(value):
        return f"{value:g}"
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(abs(value))))}f}"


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
