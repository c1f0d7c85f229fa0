"""The choice among variants on shapes nobody measured: models of terms, distilled into a tree."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from tensorop.author import offline
from tensorop.costs import model as cost_model
from tensorop.costs.terms import named_terms
from tensorop.dispatch import choice, probing, tree
from tensorop.dispatch.choice import Candidates, CostRow
from tensorop.dispatch.shapes import Draw, drawn
from tensorop.dispatch.tree import TreeRow
from tensorop.errors import SpecError
from tensorop.model.expression import parse
from tensorop.model.kernel import Variant
from tensorop.model.problem import Problem
from tensorop.model.winner import Leaf, Tree
from tensorop.render import instantiate
from tensorop.space import problems
from tensorop.specs import operators, platforms
from tests.support import products

OPERATOR = operators.load("gemm")
SPENT = {"call": 300.0, "multiplies": 4.0, "loads": 6.0, "steps": 6.0, "tiles": 90.0, "blocks": 600.0, "copied": 4.0}
SPENT |= {"transposed": 2.0, "a_again": 25.0, "reads_apart": 3.0, "updates": 6.0}


def variants() -> tuple[Variant, ...]:
    """Packed and in place, a wide and a narrow tile, rows by columns."""
    two = products.winners(("f32",))[0].variants
    templates = {template.name: template for template in offline.templates(OPERATOR.folder, OPERATOR.name)}
    values = {name: of_one[0] for name, of_one in templates["dot"].tunables.items()}
    blocks = {"lmul": 1, "mc": 64, "kc": 512, "nc": 256, "pack_a": 0, "pack_b": 0, "a_stationary": 0}
    short = instantiate.variant(OPERATOR, two[1].template, "f32", {**two[1].point, "lmul": 1, "mr_vectors": 3, "nr": 8})
    long = instantiate.variant(
        OPERATOR, two[0].template, "f32", {**two[0].point, "lmul": 4, "mr_vectors": 1, "kc": 128, "mc": 256}
    )
    return (
        long,
        short,
        instantiate.variant(OPERATOR, templates["dot"], "f32", {**values, **blocks, "mr_vectors": 4, "nr": 4}),
    )


SUBJECT = Candidates(OPERATOR, platforms.load("spacemit-k1"), "f32", variants())


def world(found: tuple[Problem, ...], off: float = 0.05) -> list[CostRow]:
    """What problems cost where time is spent as SPENT says, and a share of `off` beside it."""
    rng = np.random.default_rng(3)
    columns = SUBJECT.columns(found)
    terms = [named_terms(OPERATOR, SUBJECT.platform, variant, columns) for variant in SUBJECT.variants]
    costs = [sum(of[name] * each for name, each in SPENT.items()) for of in terms]
    noise = np.exp(rng.normal(0, off, (len(found), len(costs))))
    return [CostRow(problem, tuple(row)) for problem, row in zip(found, np.stack(costs, 1) * noise, strict=True)]


def lost(root, told: list[CostRow]) -> float:
    """Geometric mean of the chosen cost over the best, less one."""
    seen = [(problems.features(OPERATOR, one.problem), one) for one in told]
    return math.expm1(np.mean([math.log(one.costs[tree.decide(root, f)] / one.best) for f, one in seen]))


@pytest.fixture(scope="module")
def measured() -> list[CostRow]:
    return world(drawn(OPERATOR, "f32", Draw(25, seed=1, longest=1024)))


@pytest.fixture(scope="module")
def grown(measured: list[CostRow]) -> Tree:
    return choice.tree(SUBJECT, measured)


def test_shapes_nobody_measured_are_chosen_for_well(measured: list[CostRow], grown: Tree) -> None:
    """By a tree of the measured shapes alone the same choice costs several times as much."""
    unseen = world(drawn(OPERATOR, "f32", Draw(100, seed=2, longest=1024)))
    rows = [TreeRow(problems.features(OPERATOR, one.problem), one.costs) for one in measured]
    assert lost(grown.root, unseen) < 0.06
    assert lost(grown.root, unseen) < lost(tree.grow(rows), unseen) / 2


def test_a_call_with_much_of_a_programs_time_gets_its_best_variant(measured: list[CostRow], grown: Tree) -> None:
    asked = max(measured, key=lambda one: lost(grown.root, [one]))
    assert lost(grown.root, [asked]) > 0.02
    listed = replace(SUBJECT, weights={asked.problem.label: 2.0})
    assert lost(choice.tree(listed, measured).root, [asked]) == 0


def test_the_regret_is_of_shapes_left_out() -> None:
    """It is what shapes nobody measured cost, not what the measured ones do."""
    measured = world(drawn(OPERATOR, "f32", Draw(25, seed=1, longest=1024)), off=0.5)
    unseen = world(drawn(OPERATOR, "f32", Draw(100, seed=2, longest=1024)), off=0.5)
    found = choice.tree(SUBJECT, measured)
    assert found.regret > lost(found.root, measured)
    assert 0.4 < found.regret / lost(found.root, unseen) < 2.5  # of 75 shapes and of 300


def test_all_layouts_of_a_shape_are_left_out_together() -> None:
    told = world(tuple(problems.of(OPERATOR, "f32", shape, i) for shape in ((8, 9, 10), (30, 4, 5)) for i in range(3)))
    parts = choice.fit_data(SUBJECT, told).parts
    assert len(set(parts[:3])) == len(set(parts[3:])) == 1
    assert parts[0] != parts[3]


def test_the_same_samples_make_the_same_tree(measured: list[CostRow], grown: Tree) -> None:
    assert choice.tree(SUBJECT, measured) == grown


def test_one_variant_is_all_there_is_to_choose(measured: list[CostRow]) -> None:
    alone = replace(SUBJECT, variants=SUBJECT.variants[:1])
    assert choice.tree(alone, [CostRow(one.problem, one.costs[:1]) for one in measured]).root == Leaf(0)


def test_a_variant_that_was_not_tried_everywhere_has_a_model(measured: list[CostRow]) -> None:
    some = [replace(one, costs=(*one.costs[:2], None if i % 3 else one.costs[2])) for i, one in enumerate(measured)]
    unseen = world(drawn(OPERATOR, "f32", Draw(100, seed=2, longest=1024)))
    assert lost(choice.tree(SUBJECT, some).root, unseen) < 0.1


def test_what_no_term_says_is_learnt_from_neighbours(measured: list[CostRow]) -> None:
    """One variant is three times as slow on short products, for a reason that no term has."""

    def slowed(told: list[CostRow]) -> list[CostRow]:
        return [replace(o, costs=(o.costs[0] * (3 if o.problem.dims["k"] < 32 else 1), *o.costs[1:])) for o in told]

    unseen = slowed(world(drawn(OPERATOR, "f32", Draw(100, seed=2, longest=1024))))
    assert lost(choice.tree(SUBJECT, slowed(measured)).root, unseen) < 0.1


def test_the_regret_is_of_what_all_variants_were_measured_on(measured: list[CostRow]) -> None:
    """A shape that only its rivals were measured on says nothing of the others there, but helps the models."""
    some = [replace(one, costs=(*one.costs[:2], None)) for one in measured]
    assert choice.tree(SUBJECT, some).regret is None
    told = choice.tree(SUBJECT, [*measured, *some[:3]]).regret
    assert told is not None


def test_random_probes_are_affordable_and_in_every_layout() -> None:
    found = drawn(OPERATOR, "f32", Draw(8, seed=5, longest=2048, most=2e6))
    works = [float(OPERATOR.reference.work(problem)) for problem in found]
    assert OPERATOR.direct is not None
    assert OPERATOR.direct.always < min(works) <= max(works) <= 2e6
    assert len({problem.options for problem in found}) == len(OPERATOR.layouts)
    assert len({problem.dims.pairs for problem in found}) == len(found)


def test_rivals_are_those_that_may_be_best() -> None:
    means, spreads = np.array([[0.0, 0.1, 3.0]]), np.full((1, 3), 0.2)
    expected, wins = probing._thrown(means, spreads)
    assert [bool(won >= probing.MIN_WINS) for won in wins[0]] == [True, True, False]
    assert 0 < expected[0] < 0.4


def test_coefficients_are_found_again_and_are_not_negative() -> None:
    rng = np.random.default_rng(0)
    terms = rng.uniform(1, 1000, (40, 4)) * [1, 10, 1, 1]
    spent = np.array([3.0, 0.5, 0.0, 20.0])
    assert cost_model.weights(terms, terms @ spent) == pytest.approx(spent, abs=1e-6)
    assert (cost_model.weights(terms, terms @ spent - 0.4 * terms[:, 2]) >= 0).all()


def test_few_samples_are_drawn_to_those_of_the_pool() -> None:
    rng = np.random.default_rng(0)
    terms = rng.uniform(1, 1000, (2, 4))
    spent = np.array([3.0, 0.5, 0.1, 20.0])
    alone, pooled = cost_model.weights(terms, terms @ spent), cost_model.weights(terms, terms @ spent, spent)
    assert np.abs(np.log(pooled / spent)).max() < 0.01
    assert np.abs(alone - spent).max() > 0.1


@pytest.mark.parametrize("text", ["m * n * k", "m % 32", "(k + 7) // 8 + m", "min(m, 2 * n, 64)", "m * (k <= 64)"])
def test_columns_have_the_values_that_single_problems_have(text: str) -> None:
    expression = parse(text, {"m": int, "n": int, "k": int})
    sides = np.array([[1, 7, 64], [33, 2, 65], [2048, 999, 3]], dtype=np.float64)
    columns = expression.column({"m": sides[:, 0], "n": sides[:, 1], "k": sides[:, 2]})
    assert list(columns) == [expression.value({"m": int(m), "n": int(n), "k": int(k)}) for m, n, k in sides]


def test_what_has_no_counterpart_in_c_is_refused() -> None:
    assert parse("m % 8 + 1", {"m": int}).in_c() == "((m % 8u) + 1u)"
    with pytest.raises(SpecError, match="cannot be translated to C"):
        parse("m > 1 and m < 3", {"m": int}).in_c()


def test_a_coefficient_that_is_off_is_off_wherever_it_counts() -> None:
    """Few samples under a strong prior: what they show of a term is believed far from them too, and only there."""
    terms = np.array([[1e5, 1e4], [2e5, 1e4], [1e5, 5e4], [4e4, 4e4]])
    places = np.array([[0.0], [1.0], [2.0], [3.0]])
    spent = np.array([3.0, 1.0])  # the pool says 1 and 1
    pool = cost_model.CostSamples(terms.repeat(30, 0), places.repeat(30, 0), (terms @ np.ones(2)).repeat(30))
    own = cost_model.CostSamples(terms, places, terms @ spent)
    (model,) = cost_model.fit(
        [own], [cost_model.PoolKey("own", "family")], [(pool, cost_model.PoolKey("other", "family"))]
    )
    far = np.array([[40.0], [40.0]])
    (told,), (spreads,) = (one.T for one in cost_model.predict([model], [np.array([[4e5, 1e3], [1e3, 4e5]])], far))
    assert told[0] == pytest.approx(math.log(4e5 * 3), abs=0.15)
    assert told[1] == pytest.approx(math.log(4e5), abs=0.5)  # hardly seen
    assert spreads[1] > 1.15 * spreads[0]


def small_world(over: float) -> tuple[Candidates, list[CostRow]]:
    """Small problems, where the last variant, the direct one, costs `over` times the best of the others."""
    template = offline.direct(OPERATOR.folder, OPERATOR.name)
    assert template is not None
    direct = instantiate.variant(
        OPERATOR, template, "f32", {"lmul": 1, "mr_vectors": 2, "nr": 4, "partial_sums": 1, "ahead": 0, "narrow": 0}
    )
    subject = replace(SUBJECT, variants=(*variants(), direct), direct=3)
    told = world(drawn(OPERATOR, "f32", Draw(20, seed=4, longest=512, most=2e4)))
    return subject, [replace(one, costs=(*one.costs, one.best * over)) for one in told]


def test_choosing_what_is_barred_counts_as_choosing_the_untried() -> None:
    """A coarse tree may send the direct variant a problem beyond what it serves, where nothing was measured of it."""
    subject, _ = small_world(1.0)
    beyond = [problems.of(OPERATOR, "f32", (side,) * 3) for side in (200, 300)]
    assert subject.barred(subject.columns(beyond))[:, 3].all()
    told = [CostRow(problem, (10.0, 20.0, 30.0, None)) for problem in beyond]
    lost = choice._left_out(subject, told, (0, 1), lambda _: Leaf(3))
    assert lost == pytest.approx(choice.UNTRIED_FACTOR * 30.0 / 10.0 - 1)


@pytest.mark.parametrize(("over", "wanted"), [(0.8, "unasked"), (1.5, "always")])
@pytest.mark.extended
def test_the_direct_variant_is_unasked_where_it_is_hardly_worse(over: float, wanted: str) -> None:
    subject, told = small_world(over)
    found = choice.winners(subject, {0: told})
    assert OPERATOR.direct is not None
    assert found.unasked == getattr(OPERATOR.direct, wanted)


@pytest.mark.parametrize("judged", [False, True])
def test_the_direct_variant_is_not_called_beyond_what_it_serves(judged: bool) -> None:
    """Whatever a leaf of the tree covers: large products would take several times as long."""
    subject, told = small_world(0.5)
    found = choice.tree(subject, told, judged=judged).root
    shapes = drawn(OPERATOR, "f32", Draw(200, seed=6, longest=4096))
    sent = np.array([tree.decide(found, problems.features(OPERATOR, problem)) == 3 for problem in shapes])
    barred = subject.barred(subject.columns(shapes))[:, 3]
    assert (sent & ~barred).any()
    assert not (sent & barred).any()
