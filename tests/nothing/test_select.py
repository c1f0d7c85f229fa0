"""Which variants a library carries."""

from __future__ import annotations

from tensorop.trial.selection import WITHIN, choose, of_each_class, worthwhile

COSTS = {
    "good": {"small": 1.0, "large": 4.0, "turned": 4.0},
    "for large": {"small": 9.0, "large": 2.0, "turned": 9.0},
    "for turned": {"small": 9.0, "large": 9.0, "turned": 2.0},
    "never best": {"small": 2.0, "large": 5.0, "turned": 5.0},
}


def test_each_next_one_is_what_lowers_the_mean_of_the_best_most() -> None:
    assert choose(COSTS, least=1) == ["good", "for large", "for turned"]


def test_one_that_takes_nothing_off_is_carried_only_to_have_a_choice() -> None:
    assert choose(COSTS, least=4)[-1] == "never best"
    assert len(choose(COSTS, least=1, most=2)) == 2


def test_weights_say_which_problems_count_more() -> None:
    assert choose(COSTS, {"turned": 2.0}, least=1)[1] == "for turned"
    assert choose(COSTS, {"turned": 1e-6}, least=1) == ["good", "for large"]


def test_a_problem_that_was_not_run_cannot_be_served() -> None:
    costs = {**COSTS, "partial": {"small": 0.1}}
    assert choose(costs, least=1)[0] == "good"
    assert "partial" in choose(costs, least=1)
    assert choose({"partial": {"small": 0.1}}) == ["partial"]


def test_each_class_has_its_best_at_each_vlen() -> None:
    classes = {"a": "small", "b": "small", "c": "far"}

    def costs(*each: float, vlen: int = 128) -> dict[tuple[str, int], float]:
        return {(name, vlen): cost for name, cost in zip("abc", each, strict=False)}

    found = {
        "all": costs(1.0, 1.0, 2.0),
        "small": costs(0.9, 1.0, 9.0),
        "far": costs(9.0, 9.0, 1.0),
        "hardly": costs(0.9, 0.995, 9.0),
        "partial": costs(0.1),
    }
    assert of_each_class(found, classes) == ["hardly", "far"]
    assert of_each_class(found, classes, ["all"]) == ["all", "hardly", "far"]
    assert of_each_class(found, classes, ["small", "far"]) == ["small", "far"]
    assert of_each_class(found, {}) == []
    also = {"at 256": costs(5.0, 5.0, 5.0) | costs(0.5, 0.5, 0.5, vlen=256)}
    both = {name: of | costs(1.0, 1.0, 1.0, vlen=256) for name, of in found.items() if name != "partial"} | also
    assert of_each_class(both, classes, ["hardly", "far"]) == ["hardly", "far", "at 256"]


def test_a_finalist_is_measured_where_it_may_be_the_best_at_a_vlen() -> None:
    def costs(*each: float) -> dict[tuple[str, int], float]:
        return dict(zip([("small", 128), ("large", 128), ("small", 256), ("large", 256)], each, strict=True))

    near, far = 0.99 * WITHIN, 1.01 * WITHIN
    expected = {
        "first": costs(5.0, 1.0, 5.0, 1.0),
        "for small": costs(1.0, far, 1.0, far),
        "at one VLEN": costs(9.0, near, 9.0, far),
        "nowhere near": costs(3 * far, 2 * far, 3 * far, 3 * far),
    }
    assert worthwhile(expected) == {
        "for small": ("small",), "at one VLEN": ("large",), "nowhere near": ("large",)
    }  # fmt: skip


def test_without_expected_costs_finalists_are_measured_on_all_problems() -> None:
    assert not any(worthwhile({"first": {}, "second": {}}).values())
