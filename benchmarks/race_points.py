"""Records blockings on all problems of a search, without a race: what a race may drop can be read from it.

    python -m benchmarks.race_points DIR FILE.json.gz [--count 10] [--dtype f32] [--seed 1]

DIR is a finished product, whose journal has the kernels that got blockings. `count` drawn blockings of each are
measured on every problem of the stage `blocking`.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tensorop.backends import reach
from tensorop.errors import JobError
from tensorop.model.kernel import Variant
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Stage, Trial, TrialResult
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tensorop.store import journal as store
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.judging import PATIENT
from tensorop.trial.trial import carry_out


def _costs(done: TrialResult, vlens: Sequence[int]) -> dict[str, list[float]]:
    return {name: [float(f"{one.at(vlen):.6g}") for vlen in vlens] for name, one in done.score.per_problem.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("product", type=Path)
    parser.add_argument("file", type=Path)
    parser.add_argument("--count", type=int, default=10, help="blockings of each kernel")
    parser.add_argument("--dtype", default="f32")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    history = store.read(given.product)
    operator = operators.load(str(history.facts["operator"]))
    target = reach(platforms.load(str(history.facts["platform"])))
    ended = history.ended((Stage.BLOCKING, given.dtype, 0))
    whole = max(ended, key=lambda trial: len(trial.score.per_problem))
    labels = list(whole.score.per_problem)
    shapes = (*operator.suites[operator.usual], *operator.probes)
    known = {one.label: one for one in problems.for_search(operator, given.dtype, shapes, target.budgets)}
    found = tuple(known[label] for label in labels if label in known)
    evaluate = Evaluator(
        operator, target, StageRun(given.dtype, Stage.BLOCKING, found, Seed.draw(given.seed)), Path(tempfile.mkdtemp())
    )
    rng = random.Random(given.seed)
    trials: list[Trial] = []
    for kernel in {trial.trial.variant.kernel.id: trial.trial.variant.kernel for trial in ended}.values():
        try:
            space = instantiate.blocking_space(operator, target.platform, kernel)
        except JobError:
            continue
        for point in space.sample(rng, given.count):
            trials.append(Trial(str(len(trials)), 0, Stage.BLOCKING, Variant(kernel, point)))
    jobs = 2 if target.side_by_side else 1
    with ThreadPoolExecutor(jobs) as pool:
        results = list(pool.map(lambda trial: carry_out(evaluate, trial, PATIENT), trials))
    record = {
        "operator": operator.name,
        "platform": target.platform.name,
        "dtype": given.dtype,
        "work": {problem.label: float(operator.reference.work(problem)) for problem in found},
        "classes": problems.classes(operator, found),
        "vlens": list(target.vlens),
        "points": [
            {
                "template": trial.variant.kernel.template.name,
                "point": dict(trial.variant.point),
                "costs": _costs(done, target.vlens),
            }
            for trial, done in zip(trials, results, strict=True)
            if done.outcome.ok
        ],
    }
    given.file.write_bytes(gzip.compress(json.dumps(record, separators=(",", ":")).encode(), mtime=0))
    print(f"{len(record['points'])} points of {len(trials)} in {given.file}")


if __name__ == "__main__":
    main()
