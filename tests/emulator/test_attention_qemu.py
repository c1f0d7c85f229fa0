"""attention under board models: a whole job, and variants on other sets of primitives."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tensorop.author import offline
from tensorop.backends import reach
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.trial.evaluator import Evaluator, Prepared
from tensorop.verify import grid
from tests.support.classes import each_once
from tests.support.commands import tensorop

SHAPES = "b1h2g1s24t40d32,b1h4g2s1t96d64"


@pytest.mark.extended
def test_a_job_under_a_board_model(tmp_path: Path) -> None:
    words = ("attention", "--platform", "cortex-a53", "--shapes", SHAPES, "--trials", "3")
    ended = tensorop(*words, "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    rows = ended.json()["bench"]["results"]
    assert [row["shape"] for row in rows] == SHAPES.split(",")
    assert all(row["ours"] > 0 for row in rows)
    assert all(verdict == "ok" for row in rows for verdict in row["verdict"].values())
    assert "instructions" not in ended.stderr  # the model knows all of them


@pytest.mark.parametrize(
    ("of", "how"),
    each_once(
        [("rvv", "outer"), ("spacemit-k1", "outer"), ("cortex-a53", "lanes")],
        [("f32", 0), ("f32", 1), ("bf16", 1), ("f16", 1)],
    ),
    ids=lambda v: "-".join(map(str, v)),
)
def test_a_variant_is_right(of: tuple[str, str], how: tuple[str, int], tmp_path: Path) -> None:
    (platform, template), (dtype, pack_b) = of, how
    operator, target, seed = operators.load("attention"), reach(platforms.load(platform)), Seed.draw()
    found = offline.templates(operator.folder, operator.name, operator.added)
    one = next(of for of in found if of.name == template)
    space = instantiate.micro_space(target.platform, one, dtype)
    full = instantiate.defaults(operator, target.platform, dtype, space.at(space.size // 2))
    variant = instantiate.variant(operator, one, dtype, {**full, "pack_b": pack_b})
    evaluator = Evaluator(operator, target, StageRun(dtype, Stage.BLOCKING, (), seed), tmp_path, Texts())
    built = evaluator.prepare(Trial("check", 0, Stage.BLOCKING, variant))
    assert isinstance(built, Prepared), built
    for vlen in target.verify_vlens[:2]:
        tile = instantiate.tile(operator, target.platform, variant.kernel, vlen)
        cases = operator.reference.quick_grid(dtype, tile, np.random.default_rng(0))
        judged = grid.check(operator.reference, evaluator.subject(variant, built.program), cases, vlen, seed)
        assert judged.ok, judged.outcome
