"""Where a search begins that knows of no earlier one: at what templates expect of a platform."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.backends.null import Backend, Nowhere
from tensorop.errors import SpecError
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate, Prior, Variant
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Outcome, Stage
from tensorop.model.verdict import Seed
from tensorop.model.winner import StartPoint, WarmStart
from tensorop.render import instantiate, prior
from tensorop.search import stages
from tensorop.search.arms import Arm
from tensorop.search.loop import conduct
from tensorop.search.task import JobContext
from tensorop.space import Space, seeds
from tensorop.specs import catalog, platforms
from tensorop.store.journal import Journal
from tensorop.trial import judging
from tensorop.trial.calls import micro_problem
from tests.support.operators import gemm

OPERATOR = gemm()
TEMPLATES = {template.name: template for template in offline.templates(OPERATOR.folder, OPERATOR.name)}
DIRECT = offline.direct(OPERATOR.folder, OPERATOR.name)
assert DIRECT is not None
ALL = [*TEMPLATES.values(), DIRECT]


def first(platform: str, template: KernelTemplate, dtype: str = "f32") -> list[Point]:
    found = platforms.load(platform)
    return prior.first(found, template, dtype, instantiate.micro_space(found, template, dtype))


def knows(platform: Platform, dtype: str) -> bool:
    return any(dtype in one.types for one in platform.primitives)


@pytest.mark.covers("platform {platform}")
@pytest.mark.parametrize("platform", catalog.names("platforms"))
@pytest.mark.parametrize("template", ALL, ids=lambda template: template.name)
def test_every_template_expects_something_of_every_platform(platform: str, template: KernelTemplate) -> None:
    found = platforms.load(platform)
    for dtype in OPERATOR.dtypes:
        if not knows(found, dtype) or instantiate.missing_primitives(found, template, dtype):
            continue
        space = instantiate.micro_space(found, template, dtype)
        points = prior.first(found, template, dtype, space)
        assert points
        assert all(point in space for point in points)
        # however few are tried, each choice that whole problems alone can make is among the first
        legal = {seeds.unseen(template, point) for point in space.points()}
        assert {seeds.unseen(template, point) for point in points[:8]} == legal


@pytest.mark.parametrize("platform", [n for n in catalog.names("platforms") if knows(platforms.load(n), "f32")])
def test_a_register_tile_fills_the_registers_and_leaves_room(platform: str) -> None:
    found, point = platforms.load(platform), first(platform, TEMPLATES["outer"])[0]
    lmul = int(point.get("lmul", 1))
    used = int(point["mr_vectors"]) * (int(point["nr"]) + 1 + int(point["ahead"])) * lmul
    assert 0.75 * found.registers <= used <= found.registers - found.leading("f32").broadcast


def test_what_longer_searches_found_is_expected() -> None:
    known = Point.of(lmul=4, mr_vectors=1, nr=6, ku=4, ahead=1, late=2, lead=4, fetch=0, c_ahead=1)
    for platform in ("rvv", "spacemit-k1"):
        assert first(platform, TEMPLATES["outer"])[0] == known
    assert {(p["mr_vectors"], p["nr"]) for p in first("neon", TEMPLATES["lanes"])[:2]} == {(2, 12), (3, 8)}
    wide = [point for point in first("avx512", TEMPLATES["outer"]) if not point["c_ahead"]]
    assert [(p["mr_vectors"], p["nr"], p["ahead"]) for p in wide[:2]] == [(3, 8, 0), (2, 12, 0)]


def test_short_vectors_are_tried_beside_long_ones_however_little_time_there_is() -> None:
    found = first("rvv", TEMPLATES["outer"])
    begun = [(point["lmul"], point["c_ahead"]) for point in found[:6]]  # C is prefetched where it lies far away
    assert begun[0] == (4, 1)
    assert sorted(begun) == [(lmul, c_ahead) for lmul in (1, 2, 4) for c_ahead in (0, 1)]
    platform = platforms.load("rvv")
    space = instantiate.micro_space(platform, TEMPLATES["outer"], "f32")
    known = [StartPoint("outer", point) for point in found]
    assert seeds.unlike(known, TEMPLATES["outer"], space) == found[:6]
    fixed = first("avx512", TEMPLATES["outer"])  # where there is no such choice
    assert len({seeds.unseen(TEMPLATES["outer"], point) for point in fixed}) == 2


def test_the_best_of_each_choice_in_the_order_of_their_costs() -> None:
    space = Space.of({"mr_vectors": (1, 2, 4), "nr": (2, 4)})
    template = replace(
        TEMPLATES["outer"], prior=Prior("mr_vectors * nr * (1 + (mr_vectors == 1) * 9)", ("mr_vectors",))
    )
    found = prior.first(platforms.load("generic"), template, "f32", space)
    assert found == [Point.of(mr_vectors=2, nr=2), Point.of(mr_vectors=4, nr=2), Point.of(mr_vectors=1, nr=2)]
    assert prior.first(platforms.load("generic"), replace(template, prior=None), "f32", space) == []


@pytest.mark.parametrize(
    ("bad", "expected"),
    [
        (Prior("nothing * 2"), "nothing"),
        (Prior("1 // (mr_vectors - 1)"), "divides by zero at "),
        (Prior("mr_vectors", ("nobody",)), "no tunable or setting 'nobody'"),
        (Prior("mr_vectors +"), "mr_vectors +"),
    ],
)
def test_a_prior_that_cannot_be_read_is_refused_before_the_template_competes(bad: Prior, expected: str) -> None:
    platform, template = platforms.load("generic"), replace(TEMPLATES["outer"], prior=bad)
    with pytest.raises(SpecError, match=expected.replace("+", r"\+")):
        first("generic", template)
    refused = judging.legal(OPERATOR, platform, template, "f32")
    assert isinstance(refused, Outcome)
    assert expected in refused.message


class OneAfterAnother(Backend):
    """A dry run that measures as a clock does."""

    side_by_side = False


def blocking_arms(tmp_path: Path, *known: StartPoint, backend: type[Backend] = Backend) -> list[Arm]:
    """Those of rvv after the micro-kernels that are tried however little time there is."""
    job = Job("gemm", "rvv", ("f32",), ((64, 64, 64), (1, 512, 512)), budget_s=0.01, jobs=1, out=tmp_path)
    target = backend(platforms.load("rvv"), Nowhere(), seed=3, failing=0.0)
    templates = tuple(TEMPLATES.values())
    with Journal.open(tmp_path, {}, fresh=True) as journal:
        for template in templates:
            journal.template(template)
        place = tmp_path / "work"
        whole = JobContext(job, OPERATOR, target, pipeline.passes(OPERATOR), templates, journal, Seed.draw(0), place)
        task = replace(whole, warm={"f32": WarmStart(known)}).task("f32")
        list(conduct(task, Stage.MICRO, stages.micro(task)))
        return list(stages.blocking(task).arms)


def test_each_template_is_tried_on_whole_problems_before_cheap_ones_decide(tmp_path: Path) -> None:
    """Each gets a trial in any case."""
    arms = blocking_arms(tmp_path)
    kinds = {(arm.kernel.template.name, arm.kernel.configuration.get("lmul")) for arm in arms}
    assert {name for name, _ in kinds} == {"outer", "dot", "stream"}
    assert {lmul for name, lmul in kinds if name == "outer"} == {1, 2, 4}
    assert all(arm.least >= 1 for arm in arms)
    best = arms[0]
    by_caches = len(OPERATOR.starts)
    assert best.least == len(best.first) == by_caches + 3
    assert [(point["pack_a"], point["pack_b"]) for point in best.first[:by_caches]] == [(1, 1), (1, 1), (0, 1), (0, 0)]
    assert len({(point["pack_a"], point["pack_b"], point["a_stationary"]) for point in best.first[by_caches:]}) == 3
    assert all(arm.least == len(arm.first) <= 2 for arm in arms[1:])


def test_known_variants_are_tried_in_any_case(tmp_path: Path) -> None:
    kernel = {"ahead": 1, "c_ahead": 1, "fetch": 0, "ku": 4, "late": 2, "lead": 4, "lmul": 4, "mr_vectors": 1, "nr": 6}
    block = {"a_stationary": 1, "mc": 32, "nc": 512, "pack_a": 1, "pack_b": 1}
    points = [Point.of({**kernel, **block, "kc": kc}) for kc in (128, 256)]
    arms = blocking_arms(tmp_path, *(StartPoint("outer", point) for point in points))
    (arm,) = (arm for arm in arms if {**arm.kernel.configuration} == kernel)
    assert [point["kc"] for point in arm.first] == [128, 256]
    assert arm.least == 2
    by_a_clock, *_ = blocking_arms(tmp_path, *(StartPoint("outer", point) for point in points), backend=OneAfterAnother)
    starts = instantiate.starts(OPERATOR, platforms.load("rvv"), arm.kernel, arm.space)
    assert by_a_clock.first == [*arm.first, *starts]  # what is known comes from a machine with other caches, perhaps


def test_no_more_columns_or_rows_side_by_side_than_prefetchers_follow() -> None:
    """cortex-a53's model has four streams: with more, 1x1024x1024 takes three times as long."""
    platform = platforms.load("cortex-a53")
    assert platform.streams == 4
    for dtype in ("f32", "f64"):
        stream = first("cortex-a53", TEMPLATES["stream"], dtype)[0]
        assert stream["ku"] == 2
        assert stream["fetch"] == 0
        straight = next(point for point in first("cortex-a53", TEMPLATES["dot"], dtype) if point["straight"])
        assert max(int(straight["mr_vectors"]), int(straight["nr"])) == 3
    # a prefetcher that follows scalar loads alone says nothing of vectors
    assert first("spacemit-k1", TEMPLATES["stream"])[0]["fetch"] == 2
    assert platforms.load("spacemit-k1").streams == 8
    assert platforms.load("native").streams == 32


@pytest.mark.parametrize("platform", ["cortex-a53", "spacemit-k1", "avx512"])
def test_a_kernel_that_streams_is_measured_on_more_than_level_2_holds(platform: str) -> None:
    target = platforms.load(platform)
    level_2 = target.caches["l2"].size
    for name, template in TEMPLATES.items():
        if "stream" not in template.reads.values() and name != "outer":
            continue
        variant = Variant(Kernel(template, "f32", first(platform, template)[0]))
        problem = micro_problem(OPERATOR, target, variant, 0)
        size = 4 * problem.dims["m"] * problem.dims["k"]
        assert (size >= level_2) == (name == "stream")
