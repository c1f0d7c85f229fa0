"""Trials a minute by the number of workers: `python benchmarks/workers.py 1 2`. The same trials each time.

Each number has a whole job of its own below --out; products have to be equal in all but times.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

import tensorop
from tensorop.model.trial import Stage
from tensorop.store import journal

OF_A_RUN = {"journal.jsonl", "report.html", "report.json"}  # these hold times


def product(folder: Path) -> str:
    """A digest of all files of a product that hold no times."""
    total = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file() and path.name not in OF_A_RUN and path.relative_to(folder).parts[0] != "work":
            total.update(f"{path.relative_to(folder)}\0".encode() + path.read_bytes())
    return total.hexdigest()[:16]


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("workers", type=int, nargs="+")
    asked.add_argument("--platform", default="rvv")
    asked.add_argument("--trials", type=int, default=48)
    asked.add_argument("--batch", type=int, default=8)
    asked.add_argument("--out", type=Path, default=Path("build/workers"))
    given = asked.parse_args()
    print("| workers | micro | blocking | all | product |\n|---|---|---|---|---|")
    for count in given.workers:
        out = given.out / str(count)
        how = {"trials": given.trials, "batch": given.batch, "jobs": 1, "workers": count}
        tensorop.tune("gemm", platform=given.platform, dtypes=["f32"], out=out, fresh=True, warm_start="none", **how)
        history = journal.read(out)
        groups = {stage: (stage, "f32", 0) for stage in Stage}
        ended = {stage: len(history.ended(group)) for stage, group in groups.items()}
        spent = {stage: history.spent(group) for stage, group in groups.items()}
        rates = [60 * ended[stage] / spent[stage] for stage in (Stage.MICRO, Stage.BLOCKING)]
        rates.append(60 * sum(ended.values()) / sum(spent.values()))
        print(f"| {count} | {' | '.join(f'{rate:.1f}' for rate in rates)} | {product(out)} |", flush=True)


if __name__ == "__main__":
    main()
