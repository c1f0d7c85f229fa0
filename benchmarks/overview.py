"""The README's first plot and table, out of what `tensorop bench --format json` printed.

    tensorop bench build/gemm-rvv --format json > rvv.json
    python benchmarks/overview.py rvv.json spacemit-k1.json tiny=k1-tiny.json --plot docs/images/overview.svg

With `--warm` files of the same platforms, made from shipped winners, what those add is a further column.

A line of the table, and of the plot, is a platform, dtype and VLEN, and a suite where one is named: the geometric mean
of the ratios to the first baseline (above 1: tensorop is faster) and the lowest of all shapes, which is never left
out.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.ticker import FixedLocator, NullFormatter, NullLocator

from tensorop.measure import statistics


@dataclass(frozen=True)
class Line:
    """Ratios of one platform, dtype and VLEN (0: it has one), by shape; absent: shapes without a ratio."""

    platform: str
    dtype: str
    vlen: int
    modelled: bool
    baseline: str
    ratios: Mapping[str, float]
    absent: int
    suite: str = ""

    @property
    def label(self) -> str:
        vlen, suite = f", VLEN {self.vlen}" if self.vlen else "", f", {self.suite}" if self.suite else ""
        return f"{self.platform}{vlen}{suite}, {self.dtype}"

    @property
    def geomean(self) -> float:
        return statistics.geomean(self.ratios.values())

    @property
    def lowest(self) -> tuple[float, str]:
        return min((ratio, shape) for shape, ratio in self.ratios.items())


def lines(bench: Mapping[str, Any], suite: str = "") -> Iterator[Line]:
    """One for each dtype and VLEN that has a ratio."""
    name, about = next(iter(bench["baselines"].items()))
    for dtype in dict.fromkeys(row["dtype"] for row in bench["results"]):
        rows = [row for row in bench["results"] if row["dtype"] == dtype]
        vlens = sorted({int(vlen) for row in rows for vlen in row.get("by_vlen", {})}) or [0]
        for vlen in vlens:
            at = {_shape(row): (row["by_vlen"][str(vlen)] if vlen else row)["ratio"].get(name) for row in rows}
            known = {shape: ratio for shape, ratio in at.items() if ratio is not None}
            if known:
                baseline = f"{name} {about['version']}"
                modelled, absent = bench["model"] is not None, len(at) - len(known)
                yield Line(bench["platform"], dtype, vlen, modelled, baseline, known, absent, suite)


def _shape(row: Mapping[str, Any]) -> str:
    return "x".join(str(side) for side in (row["dims"].values() if "dims" in row else (row[d] for d in "mnk")))


def table(found: Sequence[Line], warm: Sequence[Line] = ()) -> str:
    """Markdown: one row a line; the last column, where there is one, is of the same line in `warm`."""
    rows = [
        "| platform | measured by | against | shapes | geometric mean | lowest of all shapes |",
        "|---|---|---|---|---|---|",
    ]
    same = {line.label: line for line in warm}
    if warm:
        rows = [rows[0] + " from shipped winners: mean, lowest |", rows[1] + "---|"]
    for line in found:
        lowest, shape = line.lowest
        shapes = f"{len(line.ratios)}" + (f" ({line.absent} without a right baseline)" if line.absent else "")
        rows.append(
            f"| {line.label} | {'modelled cycles' if line.modelled else 'clock'} | {line.baseline} | {shapes} "
            f"| **{line.geomean:.2f}** | {lowest:.2f} ({shape}) |"
        )
        if warm:
            other = same.get(line.label)
            rows[-1] += f" {other.geomean:.2f}, {other.lowest[0]:.2f} |" if other else " not measured |"
    return "\n".join(rows)


def plot(found: Sequence[Line], path: Path) -> None:
    """A dot a shape, a bar at the geometric mean, on a logarithmic axis."""
    mpl.rcParams["svg.hashsalt"] = "tensorop"  # the same figures give the same file
    figure, axes = plt.subplots(figsize=(8, 0.8 + 0.36 * len(found)), layout="constrained")
    for height, line in enumerate(reversed(found)):
        colour = "tab:blue" if line.dtype == "f32" else "tab:orange"
        axes.plot(list(line.ratios.values()), [height] * len(line.ratios), "o", color=colour, alpha=0.45, markersize=5)
        axes.plot([line.geomean], [height], "|", color="black", markersize=16, markeredgewidth=2)
    axes.axvline(1.0, color="grey", linewidth=1)
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(FixedLocator([0.25, 0.5, 0.7, 1, 1.5, 2, 3, 4, 6, 8]))
    axes.xaxis.set_major_formatter("{x:g}")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_yticks(range(len(found)), [line.label for line in reversed(found)])
    axes.set_xlabel("times as fast as OpenBLAS: a dot a shape, a bar at the geometric mean")
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def read(files: Sequence[str]) -> list[Line]:
    """files: FILE or SUITE=FILE."""
    found: list[Line] = []
    for text in files:
        suite, _, file = text.rpartition("=")
        found += lines(json.loads(Path(file).read_text(encoding="utf-8")), suite)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    told = "what `tensorop bench --format json` printed; with the name of its suite: NAME=FILE"
    parser.add_argument("files", nargs="+", help=told)
    parser.add_argument("--warm", nargs="+", default=[], metavar="FILE", help="the same, made from shipped winners")
    parser.add_argument("--plot", type=Path, help="SVG to write")
    wanted = parser.parse_args()
    found, warm = read(wanted.files), read(wanted.warm)
    print(table(found, warm))
    if wanted.plot:
        plot(found, wanted.plot)


if __name__ == "__main__":
    main()
