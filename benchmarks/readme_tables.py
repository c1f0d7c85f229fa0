"""Turns what `tensorop bench --format json` printed into the README's tables.

    tensorop bench build/gemm-avx512 --format json > avx512.json
    python benchmarks/readme_tables.py avx512.json

One table a file: a row a shape, a column a dtype with its ratio to the first baseline and the interval below it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from tensorop.measure import statistics


def table(bench: dict[str, Any]) -> str:
    """Markdown of one comparison."""
    baseline, about = next(iter(bench["baselines"].items()))
    dtypes = list(bench["geomean_by_dtype"])
    model = bench["model"]
    how = (
        f"modelled cycles, board model {model['name']} {model['version']}, "
        f"{'calibrated' if model['calibrated'] else 'not calibrated'}"
        if model
        else f"{bench['threads']} thread, {bench['machine'].get('cpu', '')}"
    )
    rows: dict[str, dict[str, Any]] = {}
    for result in bench["results"]:
        rows.setdefault(f"{result['m']}x{result['n']}x{result['k']}", {})[result["dtype"]] = result
    head = "".join(f" {d} {bench['unit']} | {d} ratio |" for d in dtypes)
    lines = [
        f"{bench['platform']}: {how}; against {baseline} {about['version']}, {about['config'].split(';')[0]}",
        "",
        f"| m x n x k |{head}",
        "|---|" + "---|---|" * len(dtypes),
    ]
    for shape, by_dtype in rows.items():
        cells = ""
        for dtype in dtypes:
            r = by_dtype.get(dtype)
            interval = f"{r['ratio'][baseline]:.2f} ({r['low']:.2f} to {r['high']:.2f})" if r else ""
            cells += f" {r['ours']:.4g} | {interval} |" if r else " | |"
        lines.append(f"| {shape} |{cells}")
    mean = "".join(f" | **{bench['geomean_by_dtype'][d][baseline]:.2f}** |" for d in dtypes)
    lines.append(f"| geomean |{mean}")
    if model:
        low = {d: statistics.geomean(r["low"] for r in bench["results"] if r["dtype"] == d) for d in dtypes}
        lowest = "".join(f" | **{low[d]:.2f}** |" for d in dtypes)
        lines.append(f"| geomean of the lowest ends |{lowest}")
    return "\n".join(lines)


def main() -> None:
    for name in sys.argv[1:]:
        print(table(json.loads(Path(name).read_text(encoding="utf-8"))), end="\n\n")


if __name__ == "__main__":
    main()
