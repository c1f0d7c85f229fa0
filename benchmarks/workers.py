"""Trials a minute by the number of workers: `python benchmarks/workers.py 1 2`. The same trials each time.

Each number has a search of its own below --out, which ends before a library is built; the digest of its trials' figures
has to be the same for all.
"""

from __future__ import annotations

import argparse
import hashlib
import shutil
from contextlib import closing
from pathlib import Path

from tensorop import pipeline
from tensorop.events import Note, Phase
from tensorop.model.job import Job
from tensorop.model.trial import Stage
from tensorop.specs import operators
from tensorop.store import journal


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("workers", nargs="+", help="each as --workers takes it")
    asked.add_argument("--platform", default="rvv")
    asked.add_argument("--trials", type=int, default=48)
    asked.add_argument("--batch", type=int, default=8)
    asked.add_argument("--out", type=Path, default=Path("build/workers"))
    given = asked.parse_args()
    operator = operators.load("gemm")
    for number, workers in enumerate(given.workers):
        out = given.out / str(number)
        shutil.rmtree(out, ignore_errors=True)
        job = Job(
            "gemm", given.platform, ("f32",), operator.suites["quick"], "quick", budget_s=None, trials=given.trials,
            jobs=1, workers=workers, batch=given.batch, out=out, warm_start="none",
        )  # fmt: skip
        with closing(pipeline.run(job)) as events:
            for event in events:
                if isinstance(event, Note) and "admitted" in event.text:
                    print(event.text, flush=True)
                if isinstance(event, Phase) and event.name == "library":
                    break
        history = journal.read(out)
        total = hashlib.sha256()
        for stage in Stage:
            ended, seconds = history.ended((stage, "f32", 0)), history.spent((stage, "f32", 0))
            for one in ended:
                total.update(repr((one.trial.key, one.outcome.kind, one.score)).encode())
            if ended:
                print(f"{stage}: {len(ended)} trials in {seconds:.0f} s, {60 * len(ended) / seconds:.1f} a minute")
        print(f"figures {total.hexdigest()[:16]}", flush=True)


if __name__ == "__main__":
    main()
