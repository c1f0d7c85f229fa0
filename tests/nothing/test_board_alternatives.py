"""Declared alternatives of a board model: what is refused, what the plug-in is told, what a board's figures settle."""

import copy

import pytest

from tensorop.calibration import settle
from tensorop.errors import SpecError
from tensorop.measure import board_config
from tensorop.model.microbench import Modelled, Question
from tensorop.specs import board, board_scenarios, catalog, microbench, platforms
from tensorop.specs.board_alternative import SWITCHES, switched

MODELLED = [name for name in catalog.names("platforms") if name != "native" and platforms.load(name).board]
STOPS, VECTORS, NONE = "load misses stop", "vectors prefetched", "no L1 prefetcher"


def section(name):
    return copy.deepcopy(dict(platforms.load(name).board))


def load(name):
    return board.load(section(name), name)


@pytest.mark.parametrize("name", MODELLED)
def test_every_alternative_names_its_evidence_and_what_settles_it(name):
    known = {bench.name for bench in microbench.benchmarks(platforms.load(name).arch)}
    alternatives = load(name).alternatives
    assert alternatives
    for alternative in alternatives.values():
        assert set(alternative.settled_by) <= known
        assert set(alternative.change) <= set(SWITCHES)


def test_what_is_indicative_is_the_platforms_own_word():
    assert {name: list(load(name).indicative) for name in MODELLED if load(name).indicative} == {"c908": ["f64"]}


def test_a_child_has_its_parents():
    assert load("rvv-1024").alternatives == load("rvv").alternatives


def test_a_child_keeps_those_it_can_have_and_may_give_one_up(tmp_path):
    def child(*lines):
        (tmp_path / "platforms").mkdir(exist_ok=True)
        head = "schema: 1\nname: mine\nparent: spacemit-k1\ndescription: a test\nmodel:\n"
        (tmp_path / "platforms" / "mine.yaml").write_text(head + "\n".join(lines) + "\n")
        return board.load(platforms.load("mine", (tmp_path,)).board, "mine")

    assert list(child("  memory: {l1_prefetch: null}").alternatives) == [STOPS]
    given_up = child(f"  alternatives: {{{NONE}: null}}")
    assert NONE not in given_up.alternatives
    assert STOPS in given_up.alternatives
    assert (given_up.name, given_up.version) == ("spacemit-x60", load("spacemit-k1").version)


@pytest.mark.parametrize(
    ("name", "change", "rule"),
    [
        ("spacemit-k1", {"core.issue_width": 1}, "changes core.load_miss_stops"),
        ("spacemit-k1", {"memory.l1_prefetch.present": 2}, "to 0 or 1"),
        ("cortex-a76", {"core.load_miss_stops": 1}, "issue in order"),
        ("x280", {"memory.l1_prefetch.scalar_only": 0}, "a prefetcher the model has"),
    ],
)
def test_what_a_model_cannot_change_is_refused(name, change, rule):
    data = section(name)
    first = next(iter(data["alternatives"]))
    data["alternatives"][first]["change"] = change
    with pytest.raises(SpecError, match=rule):
        board.load(data, "a-board.yaml")


def test_the_plug_in_is_told_of_each_and_the_best_fit_stays_first():
    model = load("spacemit-k1")
    best, *_ = board_scenarios.scenario_values(model, "best")
    values = board_scenarios.alternative_values(model)
    assert list(values) == [STOPS, VECTORS, f"{STOPS} and {VECTORS}", NONE]
    told = board_config.text(model, 256, (best, *values.values())).splitlines()
    assert "load_miss_stops" not in board_config.text(model, 256, (best,))
    assert "load_miss_stops -1e+30 0 -1e+30 0 -1e+30" in told
    # the best fit and the first share their caches; vectors prefetched; nothing prefetched into level 1
    assert [line for line in told if line.startswith("variant ")] == [
        "variant 0 1 1 0 0 0",
        "variant 1 0 0 1 1 0",
        "variant 2 0 0 0 0 1",
    ]
    assert {line for line in told if line.startswith("prefetch ")} == {
        "prefetch 0 1 8 2 2 1",
        "prefetch 0 2 8 10 2 0",
        "prefetch 1 1 8 2 2 0",
        "prefetch 1 2 8 10 2 0",
        "prefetch 2 2 8 10 2 0",
    }


def test_switched_on_it_is_the_best_fit_and_no_alternative():
    data = switched(section("spacemit-k1"), [STOPS, NONE], "a test")
    model = board.load(data, "x")
    assert model.core.load_miss_stops.value == 1
    assert model.memory.l1_prefetch.present.value == 0
    assert model.memory.l1_prefetch.scalar_only
    assert list(model.alternatives) == [VECTORS, f"{STOPS} and {VECTORS}"]
    assert load("spacemit-k1").core.load_miss_stops is None


def question(usual, under, name="walk"):
    bench = type("Named", (), {"name": name})()
    return Question("other", *(Modelled(bench, best, low, high) for low, best, high in (usual, under)))


@pytest.mark.parametrize(
    ("cycles", "said"), [(13, "refuted"), (15.5, "refuted"), (25, "open"), (38, "shown"), (41, "shown"), (400, "open")]
)
def test_a_figure_answers_where_it_lies_clearly_on_one_side(cycles, said):
    assert settle.answer(question((13, 14, 15), (40, 41, 42)), cycles) == said


def test_ranges_that_hardly_differ_answer_nothing():
    near = question((70, 71, 72), (71, 72, 74))
    assert {settle.answer(near, cycles) for cycles in (60, 70, 73, 90)} == {"open"}


def test_several_figures_must_all_show_it():
    asked = [question((13, 14, 15), (40, 41, 42), "one"), question((70, 71, 72), (110, 111, 112), "two")]
    assert settle.verdicts(asked, {"one": 41, "two": 111}) == {"other": "shown"}
    assert settle.verdicts(asked, {"one": 41, "two": 71}) == {"other": "refuted"}
    assert settle.verdicts(asked, {"one": 41, "two": 88}) == {"other": "open"}
    assert settle.verdicts(asked, {"three": 41}) == {}
