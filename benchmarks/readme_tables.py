"""Turns what `tensorop bench --format json` printed into the README's tables.

    tensorop bench build/gemm-avx512 --format json > avx512.json
    python benchmarks/readme_tables.py avx512.json

A table a file, or one for each VLEN that was measured: a row a shape, for each dtype our speed and its ratio to each
baseline with the interval. Below them the lowest of all that was measured, what must be known of a baseline, and what
is absent and why.
"""

from __future__ import annotations

import functools
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tensorop.measure import statistics

Found = dict[str, Any]


def tables(bench: Found) -> str:
    """Markdown of one comparison."""
    vlens = list(dict.fromkeys(vlen for row in bench["results"] for vlen in row.get("by_vlen", {})))
    parts = [_table(bench, vlen) for vlen in vlens or [None]]
    return "\n\n".join([*parts, "\n".join(f"- {line}" for line in _remarks(bench, vlens))])


def _table(bench: Found, vlen: str | None) -> str:
    columns = [(dtype, name) for dtype in bench["geomean_by_dtype"] for name in (None, *bench["baselines"])]
    rows: dict[str, dict[str, Found]] = {}
    for row in bench["results"]:
        rows.setdefault(_shape(row), {})[row["dtype"]] = row if vlen is None else row["by_vlen"][vlen]
    indicative = (bench["model"] or {}).get("indicative", {})
    called = {d: f"{d} (indicative)" if d in indicative else d for d, _ in columns}
    head = "".join(f" {called[d]} {bench['unit'] if name is None else f'over {name}'} |" for d, name in columns)
    lines = [f"{_title(bench, vlen)}", "", f"| m x n x k |{head}", "|---|" + "---|" * len(columns)]
    for shape, here in rows.items():
        lines.append(f"| {shape} |" + "".join(f" {_cell(here.get(dtype), name)} |" for dtype, name in columns))
    lines.append(_summary("geomean", rows, columns, lambda at, name: at["ratio"][name], statistics.geomean))
    lines.append(_summary("lowest", rows, columns, lambda at, name: at["ratio"][name], min))
    if bench["model"] and bench["model"]["interval"]:
        ends = _summary(
            "geomean of the lowest ends", rows, columns, lambda at, n: at["interval"][n][0], statistics.geomean
        )
        lines.append(ends)
    for other in bench.get("alternatives", {}):
        under = functools.partial(_under, other)
        lines.append(_summary(f"geomean, were it: {other}", rows, columns, under, statistics.geomean))
        lines.append(_summary(f"lowest, were it: {other}", rows, columns, under, min))
    return "\n".join(lines)


def _title(bench: Found, vlen: str | None) -> str:
    model = bench["model"]
    how = (
        f"modelled cycles, board model {model['name']} {model['version']}, "
        f"{'calibrated' if model['calibrated'] else 'not calibrated'}"
        if model
        else f"{bench['threads']} thread{'s' if bench['threads'] > 1 else ''}, {bench['machine'].get('cpu', '')}"
    )
    against = ", ".join(f"{n} {b['version']} ({_core(b, vlen)})" for n, b in bench["baselines"].items())
    width = f" at VLEN {vlen}" if vlen else ""
    return f"{bench['platform']}{width}: {how}; against {against or 'nobody'}"


def _core(about: Found, vlen: str | None) -> str:
    """`core A for f32, B for f64`, or the first words of what a baseline says of itself."""
    here = about.get("cores", {}).get(vlen or "0", {})
    if not here:
        return str(about["config"]).split(";")[0]
    if len(set(here.values())) == 1:
        return f"core {next(iter(here.values()))}"
    return "core " + ", ".join(f"{core} for {dtype}" for dtype, core in here.items())


def _shape(row: Found) -> str:
    return f"{row['m']}x{row['n']}x{row['k']}"


def _cell(at: Found | None, name: str | None) -> str:
    """Our speed, or the ratio to a baseline; `absent` where that has none."""
    if at is None:
        return ""
    if name is None:
        return f"{at['ours']:.4g}"
    if name not in at["ratio"]:
        return "absent"
    low, high = at["interval"][name]
    interval = f" ({low:.2f} to {high:.2f})" if low < high else ""
    return f"{at['ratio'][name]:.2f}{interval}{' noisy' if at.get('noisy') else ''}"


def _summary(title: str, rows: dict[str, dict[str, Found]], columns: list[Any], pick: Any, mean: Any) -> str:
    cells = []
    for dtype, name in columns:
        here = [at[dtype] for at in rows.values() if dtype in at and name is not None and name in at[dtype]["ratio"]]
        values = [pick(at, name) for at in here]
        cells.append(f" **{mean(values):.2f}** |" if values else " |")
    return f"| {title} |{''.join(cells)}"


def _under(alternative: str, at: Found, name: str) -> float:
    return float(at["alternatives"][name][alternative])


def _remarks(bench: Found, vlens: list[str]) -> Iterator[str]:
    for name, about in bench["baselines"].items():
        every = [
            (at["ratio"][name], f"{_shape(row)} {row['dtype']}" + (f" at VLEN {vlen}" if vlen else ""))
            for row in bench["results"]
            for vlen, at in (row.get("by_vlen") or {"": row}).items()
            if name in at["ratio"]
        ]
        if every:
            low, where = min(every)
            width = f" at VLEN {', '.join(vlens)}" if vlens else ""
            yield f"{name}: the lowest of all {len(every)} ratios measured{width} is {low:.2f}, {where}"
        yield f"{name} {about['version']}: {about['config']}"
        yield from (f"{name}, {remark}" for remark in about.get("remarks", []))
    checked = [verdict for row in bench["results"] for verdict in row.get("verdict", {}).values()]
    if checked:
        yield "judged: all of C that each measured call left, ours and theirs; a ratio stands where both are right"
    for dtype, why in (bench["model"] or {}).get("indicative", {}).items():
        yield f"{dtype} is indicative only: {why}"
    for what, why in bench["absent"].items():
        yield f"absent: {what}: {why}"


def main() -> None:
    for name in sys.argv[1:]:
        print(tables(json.loads(Path(name).read_text(encoding="utf-8"))), end="\n\n")


if __name__ == "__main__":
    main()
