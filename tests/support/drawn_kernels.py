"""Drawn micro-kernels of an operator's shipped templates."""

from __future__ import annotations

import random
from pathlib import Path

from tensorop.author import offline
from tensorop.backends import reach
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.specs import operators, platforms
from tensorop.trial.evaluator import Evaluator


def evaluator(platform: str, work: Path, dtype: str = "f32", operator: str = "gemm") -> Evaluator:
    """Of micro-kernels alone."""
    target, run = reach(platforms.load(platform)), StageRun(dtype, Stage.MICRO, (), Seed.draw(1))
    return Evaluator(operators.load(operator), target, run, work)


def drawn(evaluate: Evaluator, count: int, seed: int) -> list[Trial]:
    """Trials of `count` different kernels of all templates, in any order; the key of each is its number."""
    operator, platform, dtype = evaluate.operator, evaluate.target.platform, evaluate.run.dtype
    rng, found = random.Random(seed), []
    for template in offline.templates(operator.folder, operator.name, operator.added):
        if instantiate.missing_primitives(platform, template, dtype):
            continue
        points = instantiate.micro_space(platform, template, dtype).sample(rng, count)
        found += [Variant(Kernel(template, dtype, point)) for point in points]
    rng.shuffle(found)
    return [Trial(str(number), 0, Stage.MICRO, variant) for number, variant in enumerate(found[:count])]
