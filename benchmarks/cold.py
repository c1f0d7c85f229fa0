"""How far a search comes that knows of no earlier one: products with and without warm starts, of several seeds.

    python benchmarks/cold.py cortex-a53 c908 --budget 20s|--trials 60 [--dtype f32] [--seeds 5] [--dir build/cold]

makes DIR/PLATFORM-START-SEED, or takes it as it is where its comparison is there, so that a run that was ended goes on.
Of each platform and VLEN it prints the geometric mean over the first baseline, in median of the seeds and the lowest of
them, and that median's share of the best of all the runs: as the library chooses, and were each shape served by the
best of all trials, which is what the search found. With `--trials` a run does not depend on how busy the machine is
where a model counts cycles, but its library chooses by fewer probes than with a budget of time.
"""

from __future__ import annotations

import argparse
import json
import math
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
    parser.add_argument("--trials", type=int, help="instead of a budget of time")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--starts", nargs="+", default=["none", "auto"])
    parser.add_argument("--dir", type=Path, default=Path("build/cold"))
    given = parser.parse_args()
    for platform in given.platforms:
        made = {start: [product(given, platform, start, seed) for seed in range(given.seeds)] for start in given.starts}
        for what, figures in (("library", compared), ("search", searched)):
            found = {start: list(map(figures, folders)) for start, folders in made.items()}
            print("\n".join(told(f"{platform}, {what}", found)))


def product(given: argparse.Namespace, platform: str, start: str, seed: int) -> Path:
    """What a job put in its product's folder for people."""
    folder = given.dir / f"{platform}-{start}-{seed}"
    told = folder / "share" / "tensorop"
    if not (told / "bench.json").exists():
        words = ["--platform", platform, "--dtype", given.dtype, "--shapes", SUITE, "--seed", str(seed)]
        words += ["--trials", str(given.trials)] if given.trials else ["--budget", given.budget]
        words += ["--warm-start", start, "--out", str(folder)]
        subprocess.run([sys.executable, "-m", "tensorop", "gemm", *words], check=True, stdout=sys.stderr)
    return told


def compared(told: Path) -> dict[int, float]:
    """By VLEN the geometric mean over the baseline, of the comparison at the end of a job."""
    return {vlen: statistics.geometric_mean(r for r, _, _ in each) for vlen, each in rows(told).items()}


def searched(told: Path) -> dict[int, float]:
    """The same of each problem's best trial, where there is one."""
    best: dict[tuple[str, int], float] = {}
    for line in (told / "journal.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["event"] != "finished" or record["outcome"]["kind"] != "ok":
            continue
        for label, samples in record["score"]["per_problem"].items():
            for vlen, cost in (samples.get("by_vlen") or {"0": samples["value"]}).items():
                best[label, int(vlen)] = min(cost, best.get((label, int(vlen)), math.inf))
    return {
        vlen: statistics.geometric_mean(r * cost / best.get((label, vlen), cost) for r, cost, label in each)
        for vlen, each in rows(told).items()
    }


def rows(told: Path) -> dict[int, list[tuple[float, float, str]]]:
    """By VLEN of each shape: the ratio to the first baseline, ours in the unit of costs, the problem's label."""
    bench = json.loads((told / "bench.json").read_text(encoding="utf-8"))
    first, found = next(iter(bench["baselines"])), {}
    for row in bench["results"]:
        flops, label = 2.0 * row["m"] * row["n"] * row["k"], f"{row['shape']} {row['dtype']} layout={row['layout']}"
        for vlen, of in (row.get("by_vlen") or {"0": row}).items():
            if ratio := of["ratio"].get(first):
                found.setdefault(int(vlen), []).append((ratio, flops / of["ours"], label))
    return found


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
