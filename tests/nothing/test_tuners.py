"""What every tuner keeps: legal points, none twice, an end; and what bayes is for."""

import ast
import itertools
import math
import random
import statistics
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tensorop import paths
from tensorop.errors import SpecError, UsageError
from tensorop.model.kernel import Constraint
from tensorop.space import Space, strategy
from tensorop.space.features import fullness
from tests.support.commands import tensorop
from tests.support.plugins import TUNER

BATCH = 16
NAMES = [path.stem for path in sorted(paths.builtin_dir("tuners").glob("*.py"))]

SMALL = Space.of({"a": (1, 2, 4, 8), "b": (1, 2, 3), "w": ("x", "y")}, [Constraint("a * b <= 12", "room")])

LARGE = Space.of(
    {
        "mr": (1, 2, 3, 4, 6, 8),
        "nr": tuple(range(1, 17)),
        "lmul": (1, 2, 4),
        "unroll": (1, 2, 4, 8),
        "prefetch": (0, 1, 2, 4, 8),
        "order": ("ab", "ba"),
    },
    [Constraint("mr * nr * lmul + 2 * lmul * mr <= registers", "registers"), Constraint("mr * nr >= 4", "tile")],
    {"registers": 32},
)


def surface(point):
    """A kernel-like cost: a valley along the tile's size, kinks elsewhere; 6 % of the points cannot be built."""
    if point["unroll"] == 8 and point["lmul"] == 4:
        return None
    tile = point["mr"] * point["nr"] * point["lmul"]
    return 1e6 * math.exp(
        0.6 * ((tile - 26) / 16) ** 2
        + 0.15 * abs(math.log2(point["unroll"]) - 1)
        + 0.08 * abs(point["prefetch"] - 2)
        + 0.15 * abs(math.log2(point["lmul"]) - 1)
        + (0.1 if point["order"] == "ba" else 0.0)
    )


def best_of(name, seed, trials):
    tuner = strategy.load(name).make(LARGE, seed)
    costs = []
    for _ in range(trials):
        (point,) = tuner.ask()
        costs.append(surface(point))
        tuner.tell(point, costs[-1])
    return min(cost for cost in costs if cost is not None)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("batch", [1, 3])
def test_every_legal_point_once_and_then_none(name, batch):
    tuner = strategy.load(name).make(SMALL, seed=3)
    asked = []
    while points := tuner.ask(batch):
        asked += points
        for point in points:
            tuner.tell(point, None if point["b"] == 3 else float(point["a"] * point["b"]))
    assert len(asked) == SMALL.size
    assert set(asked) == set(SMALL.points())
    assert tuner.ask() == []


@st.composite
def spaces(draw):
    counts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    dimensions = {f"t{axis}": tuple(range(1, count + 1)) for axis, count in enumerate(counts)}
    constraint = Constraint(f"{' * '.join(dimensions)} <= room", "room")
    return Space.of(dimensions, [constraint], {"room": draw(st.integers(1, 24))})


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=4, deadline=None)  # skopt takes its time
@given(spaces(), st.integers(0, 9), st.sampled_from([0.0, 0.3, 1.0]))
def test_a_batch_has_new_legal_points(name, space, seed, failing):
    tuner, rng = strategy.load(name).make(space, seed), random.Random(seed)
    asked = []
    while points := tuner.ask(BATCH):
        assert len(points) == min(BATCH, space.size - len(asked))
        assert all(point in space for point in points)
        asked += points
        for point in points:
            tuner.tell(point, None if rng.random() < failing else 1 + rng.random())
    assert len(set(asked)) == len(asked) == space.size


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", NAMES)
def test_a_resumed_search_requests_the_same_batches(name):
    tool = strategy.load(name)

    def batches_after(history, count):
        tuner = tool.make(LARGE, seed=5)
        for point in history:
            tuner.tell(point, surface(point))
        for _ in range(count):
            yield (points := tuner.ask(BATCH))
            for point in points:
                tuner.tell(point, surface(point))

    whole = list(batches_after([], 3))
    assert list(batches_after([*whole[0], *whole[1]], 1)) == whole[2:]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("failing", ["all", "none", "equal"])
def test_searches_where_costs_teach_nothing(name, failing):
    tuner = strategy.load(name).make(SMALL, seed=0)
    for _ in range(SMALL.size):
        (point,) = tuner.ask()
        tuner.tell(point, {"all": None, "none": 5.0 + point["a"], "equal": 7.0}[failing])
    assert tuner.ask() == []


@pytest.mark.parametrize("name", NAMES)
def test_told_points_are_not_asked(name):
    tuner = strategy.load(name).make(SMALL, seed=1)
    told = list(SMALL.points())[::2]
    for point in told:
        tuner.tell(point, 3.0)
    assert not set(tuner.ask(SMALL.size)) & set(told)


@pytest.mark.parametrize("name", NAMES)
def test_the_next_point_depends_on_what_was_told_alone(name):
    tool = strategy.load(name)
    tuner = tool.make(LARGE, seed=5)
    history = []
    for _ in range(14):
        (point,) = tuner.ask()
        tuner.tell(point, surface(point))
        history.append(point)
    for cut in (0, 5, 8, 13):
        rebuilt = tool.make(LARGE, seed=5)
        for point in history[:cut]:
            rebuilt.tell(point, surface(point))
        assert rebuilt.ask() == [history[cut]]


def test_fullness_ranks_points_by_limits_that_are_facts():
    full = fullness(LARGE)
    taken = [point["mr"] * point["nr"] * point["lmul"] + 2 * point["lmul"] * point["mr"] for point in LARGE.points()]
    order = sorted(range(LARGE.size), key=lambda index: taken[index])
    assert all(full[one] <= full[other] for one, other in itertools.pairwise(order))
    assert set(fullness(SMALL)) == {0.0}  # its limit is a number


def test_the_first_points_of_bayes_are_in_the_fuller_half():
    full = fullness(LARGE)
    first = strategy.load("bayes").make(LARGE, seed=2).ask(8)
    assert all(full[LARGE.index(point)] >= statistics.median(full) for point in first)
    assert len({point["nr"] for point in first}) > 3


def test_bayes_in_a_space_that_is_too_large_to_rank_whole(monkeypatch):
    bayes = strategy.load("bayes")
    for name, value in {"CANDIDATES": 20, "MEMORY": 12}.items():
        monkeypatch.setattr(sys.modules[bayes.factory.__module__], name, value)
    tuner = bayes.make(LARGE, 5)
    costs = {}
    for _ in range(30):
        (point,) = tuner.ask()
        assert point not in costs
        costs[point] = surface(point)
        tuner.tell(point, costs[point])
    assert min(filter(None, list(costs.values())[6:])) < min(filter(None, list(costs.values())[:6]))


def test_bayes_beats_random():
    seeds = range(5)
    assert statistics.median(best_of("bayes", seed, 30) for seed in seeds) < statistics.median(
        best_of("random", seed, 30) for seed in seeds
    )


@pytest.mark.parametrize("name", NAMES)
def test_tuners_import_model_and_space_only(name):
    tree = ast.parse(strategy.load(name).path.read_text())
    imported = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = {module for module in imported if module.split(".")[0] == "tensorop"}
    assert ours
    assert all(module.startswith(("tensorop.model", "tensorop.space")) for module in ours)


def test_unknown_names_bring_the_nearest():
    with pytest.raises(UsageError, match="did you mean bayes"):
        strategy.load("bayse")
    with pytest.raises(UsageError, match="known: "):
        strategy.load("../tuners/bayes")


@pytest.mark.covers("command tuners check")
@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("DESCRIPTION = 3", "DESCRIPTION is 3"),
        ("DESCRIPTION = 'd'", "expected a class Tuner"),
        ("1 / 0", "fails on import: ZeroDivisionError"),
        ("def (", "SyntaxError"),
    ],
)
def test_a_tuner_of_the_users_own(tmp_path, text, complaint):
    (tmp_path / "tuners").mkdir()
    (tmp_path / "tuners" / "mine.py").write_text(text)
    assert "mine" in strategy.names((tmp_path,))
    with pytest.raises(SpecError, match=complaint):
        strategy.load("mine", (tmp_path,))


def test_a_users_tuner_overrides_ours(tmp_path):
    (tmp_path / "tuners").mkdir()
    source = paths.builtin_dir("tuners") / "grid.py"
    (tmp_path / "tuners" / "bayes.py").write_text(source.read_text())
    assert strategy.load("bayes", (tmp_path,)).path.parent == tmp_path / "tuners"


def test_a_tuner_without_its_package_is_refused_before_any_work(tmp_path):
    (tmp_path / "tuners").mkdir()
    text = TUNER.replace("self._left = ", "import no_such_package  # noqa\n        self._left = ", 1)
    (tmp_path / "tuners" / "lacking.py").write_text(text)
    words = ("--runner", "null", "--platform", "generic", "--tuner", "lacking", "--plugins", tmp_path)
    ended = tensorop("gemm", *words, "--out", tmp_path / "out", cwd=tmp_path)
    assert ended.status == 2
    assert "the tuner lacking cannot start: No module named 'no_such_package'" in ended.stderr
    assert "install the missing package, or choose another --tuner" in ended.stderr
    assert not (tmp_path / "out").exists()
