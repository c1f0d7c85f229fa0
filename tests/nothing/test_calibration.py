"""A calibration file and the platform that takes it."""

import pytest

from tensorop.calibration import constants
from tensorop.calibration.constants import Calibration
from tensorop.errors import SpecError
from tensorop.specs import board, catalog, platforms

BASE = platforms.load("spacemit-k1")
MODEL = board.load(BASE.board, "test")
KEY, ITEM = next((k, i) for k, i in MODEL.assumed().items() if hasattr(i, "value") and i.low < i.high)
OTHER = next(k for k in MODEL.assumed() if k != KEY)


def record(**changes):
    constant = {"value": ITEM.high, "was": ITEM.value, "low": ITEM.low, "high": ITEM.high, "determined": True}
    fields = {
        "schema": 1,
        "platform": "spacemit-k1",
        "model": {"name": MODEL.name, "version": MODEL.version},
        "board": {"cpu": "X60", "cores": 8},
        "constants": {KEY: constant, OTHER: {**constant, "determined": False}},
        "residual": {"before": 0.4, "after": 0.05, "known": 0.02},
        "figures": {"chase_l2": {"ns": 25, "mhz": 1600, "spread": 0.01, "measured": 40, "before": 41, "after": 40.5}},
    }
    return Calibration.model_validate({**fields, **changes})


def child(folder, made, name="mine"):
    (folder / "platforms").mkdir()
    (folder / "platforms" / "calibration-k1.yaml").write_text(constants.text(made))
    (folder / "platforms" / f"{name}.yaml").write_text(
        f"schema: 1\nname: {name}\nparent: spacemit-k1\ncalibration: calibration-k1.yaml\n"
    )
    return platforms.load(name, (folder,))


def test_a_child_takes_it(tmp_path):
    model = board.load(child(tmp_path, record()).board, "test")
    assert model.calibrated
    assert KEY not in model.assumed()
    assert OTHER in model.assumed()
    assert catalog.names("platforms", (tmp_path,)) == (*sorted({*catalog.names("platforms"), "mine"}),)
    assert not board.load(platforms.load("spacemit-k1").board, "test").calibrated


def test_what_the_board_shows_becomes_the_best_fit_and_what_it_refutes_goes(tmp_path):
    names = list(MODEL.alternatives)
    stops, vectors, both, none = names
    settled = {stops: "shown", vectors: "refuted", both: "refuted", none: "open"}
    model = board.load(child(tmp_path, record(alternatives=settled)).board, "test")
    assert list(model.alternatives) == [none]
    assert model.core.load_miss_stops.value == 1
    assert model.memory.l1_prefetch.scalar_only


def test_an_alternative_the_model_has_not_is_refused(tmp_path):
    with pytest.raises(SpecError, match="expected alternatives of the model, got 'walls are thin'"):
        child(tmp_path, record(alternatives={"walls are thin": "shown"}))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"model": {"name": MODEL.name, "version": 999}}, "key 'model'"),
        ({"residual": {"before": 2, "after": 0.9, "known": 0}}, "does not describe this board"),
        ({"residual": {"before": 2, "after": 0.1, "known": 3}}, "does not describe this board"),
        (
            {"constants": {"core.nothing": {"value": 1, "was": 1, "low": 0, "high": 2, "determined": True}}},
            "core.nothing",
        ),
    ],
)
def test_one_that_does_not_fit_is_refused(tmp_path, changes, said):
    with pytest.raises(SpecError, match=said):
        child(tmp_path, record(**changes))


def test_one_that_is_not_there(tmp_path):
    (tmp_path / "platforms").mkdir()
    (tmp_path / "platforms" / "mine.yaml").write_text(
        "schema: 1\nname: mine\nparent: spacemit-k1\ncalibration: absent.yaml\n"
    )
    with pytest.raises(SpecError, match="absent"):
        platforms.load("mine", (tmp_path,))
