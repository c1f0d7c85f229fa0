"""A library without a search: known winners with their choice, first expected kernels, and one template alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.backends.null import Backend, Nowhere
from tensorop.dispatch import known, winners
from tensorop.errors import UsageError
from tensorop.events import Note
from tensorop.model.job import Job
from tensorop.model.point import Point
from tensorop.model.verdict import Seed
from tensorop.model.winner import DtypeRecord, Leaf, Split, StartPoint, Tree, Winners, asked
from tensorop.render import instantiate
from tensorop.search.task import JobContext, Task
from tensorop.specs import operators, platforms
from tensorop.store import journal
from tensorop.store.journal import Journal
from tensorop.warm import reading, start
from tests.nothing.test_warm import HEAD
from tests.support.commands import events, tensorop
from tests.support.operators import gemm

OPERATOR = gemm()
TEMPLATES = offline.templates(OPERATOR.folder, OPERATOR.name, OPERATOR.added)
DIRECT = offline.direct(OPERATOR.folder, OPERATOR.name)
SHAPE = ((24, 24, 24),)


def job(folder: Path, platform: str, dtype: str = "f32", **more: Any) -> Job:
    return Job("gemm", platform, (dtype,), SHAPE, runner="null", no_search=True, out=folder / "out", **more)


def task(folder: Path, platform: str, dtype: str = "f32", **more: Any) -> tuple[Task, list[str]]:
    """A task without a search, and what is said of where its variants come from."""
    wanted = job(folder, platform, dtype, **more)
    target = Backend(platforms.load(platform), Nowhere())
    every = [*TEMPLATES, *([DIRECT] if DIRECT else [])]
    begun, used, unused = start.begin(reading.read(wanted)[0], wanted, OPERATOR, target.platform, every)
    with Journal.open(folder / "out", {}) as opened:
        whole = JobContext(wanted, OPERATOR, target, (), tuple(TEMPLATES), opened, Seed.draw(0), folder)
    return replace(whole, warm=start.of_json(start.to_json(begun))).task(dtype), [*used, *unused]


def sure(folder: Path, platform: str) -> list[StartPoint]:
    return list(task(folder, platform)[0].sure)


def choice(of: list[StartPoint], **more: Any) -> DtypeRecord:
    variants = [{"template": one.template, "point": dict(one.point)} for one in of]
    low, high = {"variant": 0}, {"variant": 1}
    tree = {"feature": "m", "threshold": 40, "low": low, "high": high}
    return reading.choice_of({"variants": variants, "tree": tree, "regret": 0.01} | more)


def deep(levels: int) -> dict[str, Any]:
    rest = deep(levels - 1) if levels else {"variant": 0}
    return {"feature": "m", "threshold": levels, "low": {"variant": 0}, "high": rest}


def a_file(path: Path, choice: DtypeRecord, platform: str = "spacemit-k1") -> Path:
    points = [StartPoint(one["template"], Point.of(one["point"])) for one in choice["variants"]]
    known = {("gemm", "f32"): points}
    lines = reading.winner_lines(HEAD | {"platform": platform}, known, {("gemm", "f32"): choice})
    path.write_text("\n".join(lines) + "\n")
    return path


def numbers(found: Winners) -> set[int]:
    def leaves(node: Leaf | Split) -> Iterator[int]:
        yield from (node.variant,) if isinstance(node, Leaf) else (*leaves(node.low), *leaves(node.high))

    return {number for tree in found.trees for number in leaves(tree.root)}


def test_a_choice_of_a_file_is_the_library_s(tmp_path: Path) -> None:
    two = sure(tmp_path, "spacemit-k1")[:2]
    path = a_file(tmp_path / "known.jsonl", choice(two))
    made, said = task(tmp_path, "spacemit-k1", warm_start=str(path))
    found = winners.first(made)
    assert found is not None
    assert [dict(variant.point) for variant in found.variants] == [dict(one.point) for one in two]
    assert found.trees == (Tree(Split("m", 40, Leaf(0), Leaf(1)), 0.01),)
    assert winners.final(made, found) is found
    assert said == ["f32: the library has 2 variants of the winners of spacemit-k1 of 2026-11-23, and their choice"]


def test_a_product_without_its_journal_is_taken_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    two = choice(sure(tmp_path, "spacemit-k1")[:2])
    path = tmp_path / "product" / reading.MANIFEST
    path.parent.mkdir(parents=True)
    operators = {"gemm": {"facts": {}, "dtypes": {"f32": two}}}
    path.write_text(json.dumps({"platform": {"name": "spacemit-k1"}, "operators": operators}))
    made, said = task(tmp_path, "spacemit-k1", warm_start=str(tmp_path / "product"))
    assert made.warm["f32"].choice == two
    assert said == ["f32: the library has 2 variants of spacemit-k1's product, and their choice"]
    path.write_text("{}")
    wanted = job(tmp_path, "spacemit-k1", warm_start=str(tmp_path / "product"))
    assert reading.read(wanted) == (
        [],
        [f"a warm-start file is skipped: {path} is no manifest of a product: KeyError 'platform'"],
    )


def test_a_choice_of_blas_is_gemm_s_with_the_legal_tunables_of_routines(tmp_path: Path) -> None:
    two = choice(sure(tmp_path, "spacemit-k1")[:2], of_routines={"trmm_rows": 64, "trsm_rows": 7, "other": 1})
    path = a_file(tmp_path / "known.jsonl", two)
    path.write_text(path.read_text().replace('"gemm"', '"blas"'))
    made, _ = task(tmp_path, "spacemit-k1", warm_start=str(path))
    for of, values in ((operators.load("blas"), {"trmm_rows": 64}), (OPERATOR, {})):
        found = winners.first(replace(made, operator=of))
        assert found is not None
        assert found.of_routines == values


def test_each_vlen_takes_the_tree_of_the_next_shorter_one(tmp_path: Path) -> None:
    two = sure(tmp_path, "rvv")[:2]
    trees = {str(vlen): {"tree": {"variant": number}, "regret": None} for number, vlen in enumerate((128, 256))}
    path = a_file(tmp_path / "known.jsonl", choice(two, by_vlen=trees), "rvv")
    for platform, expected in (("rvv", {128: 0, 256: 1, 512: 1}), ("c908", {0: 0})):
        found = winners.first(task(tmp_path, platform, warm_start=str(path))[0])
        assert found is not None
        assert {tree.vlen: tree.root for tree in found.trees} == {v: Leaf(n) for v, n in expected.items()}


@pytest.mark.parametrize(
    "wrong",
    [
        {"tree": {"feature": "m // (m - 7)", "threshold": 1, "low": {"variant": 0}, "high": {"variant": 1}}},
        {"tree": {"feature": "system", "threshold": 1, "low": {"variant": 0}, "high": {"variant": 1}}},
    ],
)
def test_a_choice_that_may_not_be_compiled_is_not_used(tmp_path: Path, wrong: dict[str, Any]) -> None:
    path = a_file(tmp_path / "known.jsonl", choice(sure(tmp_path, "spacemit-k1")[:2], **wrong))
    made, _ = task(tmp_path, "spacemit-k1", warm_start=str(path))
    assert made.warm["f32"].choice is None


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"tree": {"variant": 2}}, "a tree chooses variant 2 of 2"),
        ({"tree": deep(100)}, "a tree has more than 64 levels"),
        ({"variants": []}, "0 variants; expected 1 to 64"),
        ({"regret": "none"}, "the key 'regret' must be a number or null"),
        ({"variants": 7}, "TypeError"),
    ],
)
def test_a_damaged_choice_is_refused_with_its_line(tmp_path: Path, wrong: dict[str, Any], reason: str) -> None:
    path = a_file(tmp_path / "known.jsonl", choice(sure(tmp_path, "spacemit-k1")[:2]))
    *lines, last = path.read_text().splitlines()
    path.write_text("\n".join([*lines, json.dumps(json.loads(last) | wrong)]) + "\n")
    with pytest.raises(UsageError, match=r"known\.jsonl, line 4: .*" + reason):
        reading.read_winners(path)


def test_winners_without_a_choice_are_chosen_by_expected_costs(tmp_path: Path) -> None:
    path = tmp_path / "known.jsonl"
    of = sure(tmp_path, "spacemit-k1")
    path.write_text("\n".join(reading.winner_lines(HEAD, {("gemm", "f32"): of})) + "\n")
    made, said = task(tmp_path, "spacemit-k1", warm_start=str(path))
    found = winners.first(made)
    assert found is not None
    assert len(found.variants) == len(of)
    assert len(numbers(found)) > 1
    assert all(asked(tree.root) <= OPERATOR.features.keys() for tree in found.trees)
    assert "expected costs choose among them" in said[0]
    refused = {found.variants[0].template.name}
    again = winners.without(made, found, 0, set())
    assert again is not None
    assert not {variant.template.name for variant in again.variants} & refused
    small = winners.without(made, found, len(found.variants), set())
    assert found.direct is not None
    assert small is not None
    assert small.direct is None
    assert small.variants == found.variants


def test_a_journal_without_a_library_chooses_by_its_measurements(tmp_path: Path) -> None:
    searched = replace(job(tmp_path / "first", "spacemit-k1"), no_search=False, trials=30, budget_s=None)
    assert list(pipeline.run(searched))
    made, said = task(tmp_path, "spacemit-k1", warm_start=str(searched.out))
    found = winners.first(made)
    assert found is not None
    known = [dict(one.point) for one in reading.of_history(journal.read(searched.out))["gemm", "f32"]]
    assert found.variants
    assert all(dict(variant.point) in known for variant in found.variants)
    assert said == [
        f"f32: the library has the best variants of {made.warm['f32'].journal}, and its measurements choose"
    ]
    assert {record["dtype"] for record in events(searched.out, "started")} == {"f32"}


@pytest.mark.parametrize("dtype", ["f32", "f64"])
@pytest.mark.parametrize("platform", ["avx2", "avx512", "rvv"])
def test_a_shipped_choice_is_the_library_s(tmp_path: Path, platform: str, dtype: str) -> None:
    made, said = task(tmp_path, platform, dtype)
    chosen, found = made.warm[dtype].choice, winners.first(made)
    assert chosen is not None
    assert found is not None
    assert found.direct is not None
    assert [{**one.point} for one in (*found.variants, found.direct)] == [one["point"] for one in chosen["variants"]]
    assert "and their choice" in said[0]


@pytest.mark.parametrize("platform", ["avx2", "avx512"])
def test_where_none_is_known_each_template_has_its_first_expected_kernel(tmp_path: Path, platform: str) -> None:
    made, said = task(tmp_path, platform, warm_start="none")
    found = winners.first(made)
    assert found is not None
    here = [one.name for one in TEMPLATES if not instantiate.missing_primitives(platforms.load(platform), one, "f32")]
    assert [variant.template.name for variant in found.variants] == here
    assert len(numbers(found)) > 1
    assert known.winners(made) == found
    assert f"no tuned configuration of gemm is known for {platform}" in said[0]
    assert "the first expected kernel of each template with the default blocking" in said[0]


def run(folder: Path, **more: Any) -> list[str]:
    return [event.text for event in pipeline.run(job(folder, "spacemit-k1", **more)) if isinstance(event, Note)]


def test_a_job_without_a_search_has_no_trial_and_may_be_searched_later(tmp_path: Path) -> None:
    assert any("the library has " in text for text in run(tmp_path))
    assert not events(tmp_path / "out", "started")
    later = replace(job(tmp_path, "spacemit-k1"), no_search=False, trials=4, budget_s=None)
    assert list(pipeline.run(later))
    assert events(tmp_path / "out", "started")
    with pytest.raises(UsageError, match="has trials of a search, and --no-search would replace their library"):
        run(tmp_path)


def test_one_template_alone(tmp_path: Path) -> None:
    words = ("gemm", "--runner", "null", "--platform", "avx2", "--dtype", "f32", "--shapes", "24x24x24")
    ended = tensorop(*words, "--trials", "8", "--only", "stream", "--out", "out", cwd=tmp_path)
    assert ended.status == 0
    assert {trial["stage"] for trial in events(tmp_path / "out", "started")} >= {"micro", "blocking"}
    micro = [trial for trial in events(tmp_path / "out", "started") if trial["stage"] in ("micro", "blocking")]
    assert {trial["template"] for trial in micro} == {one.digest for one in TEMPLATES if one.name == "stream"}
    unknown = tensorop(*words, "--only", "streams", "--out", "none", cwd=tmp_path)
    assert unknown.status == 2
    assert "unknown template of gemm 'streams'" in unknown.stderr
    assert "did you mean stream? known: dot, lanes, outer, stream" in unknown.stderr
