"""How far a search comes that knows of no earlier one: products with and without warm starts, of several seeds.

    python benchmarks/cold.py cortex-a53 c908 --budget 20s [--dtype f32] [--seeds 5] [--dir build/cold]

makes DIR/PLATFORM-START-SEED, or takes it as it is where its comparison is there, so that a run that was ended goes on.
Of each platform and VLEN it prints the geometric mean over the first baseline, in median of the seeds and the lowest of
them, and that median's share of the best of all the runs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

SUITE = "quick"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("platforms", nargs="+")
    parser.add_argument("--budget", default="2m")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--starts", nargs="+", default=["none", "auto"])
    parser.add_argument("--dir", type=Path, default=Path("build/cold"))
    given = parser.parse_args()
    for platform in given.platforms:
        found = {start: [made(given, platform, start, seed) for seed in range(given.seeds)] for start in given.starts}
        print("\n".join(told(platform, found)))


def made(given: argparse.Namespace, platform: str, start: str, seed: int) -> dict[int, float]:
    """By VLEN the geometric mean over the baseline, of the comparison at the end of a job."""
    folder = given.dir / f"{platform}-{start}-{seed}"
    compared = folder / "share" / "tensorop" / "bench.json"
    if not compared.exists():
        words = ["--platform", platform, "--dtype", given.dtype, "--budget", given.budget, "--shapes", SUITE]
        words += ["--seed", str(seed), "--warm-start", start, "--out", str(folder)]
        subprocess.run([sys.executable, "-m", "tensorop", "gemm", *words], check=True, stdout=sys.stderr)
    bench = json.loads(compared.read_text(encoding="utf-8"))
    first, rows = next(iter(bench["baselines"])), bench["results"]
    vlens = rows[0].get("by_vlen") or {"0": None}
    at = {vlen: [(row["by_vlen"][vlen] if vlen != "0" else row)["ratio"].get(first) for row in rows] for vlen in vlens}
    return {int(vlen): statistics.geometric_mean(filter(None, ratios)) for vlen, ratios in at.items()}


def told(platform: str, found: Mapping[str, Sequence[Mapping[int, float]]]) -> list[str]:
    """A line for each start and VLEN."""
    lines = []
    for vlen in next(iter(found.values()))[0]:
        best = max(of[vlen] for each in found.values() for of in each)
        for start, each in found.items():
            means = [of[vlen] for of in each]
            middle = statistics.median(means)
            where = f"{platform}{f' VLEN {vlen}' if vlen else ''}, {start}"
            lines.append(
                f"{where}: {middle:.3f} in median of {len(means)} seeds, lowest {min(means):.3f}; "
                f"{middle / best:.1%} of the best of all these runs"
            )
    return lines


if __name__ == "__main__":
    main()
