"""The `model:` schema: what is refused and by which rule, what the scenarios are, what the plug-in is told."""

import copy
import hashlib
import json
from pathlib import Path

import pytest

from tensorop.errors import JobError, SpecError
from tensorop.measure import board as measure
from tensorop.measure import board_config
from tensorop.specs import board, board_scenarios, platforms

CONFIGURATIONS = Path(__file__).parents[1] / "golden" / "board_models.json"
CORES = [
    "rvv",
    "spacemit-k1",
    "c908",
    "x280",
    "sg2044",
    "neon",
    "cortex-a53",
    "cortex-a72",
    "cortex-a76",
    "neoverse-n1",
    "neoverse-v2",
]


def section(name="spacemit-k1"):
    return copy.deepcopy(dict(platforms.load(name).board))


def changed(path, value, name="spacemit-k1"):
    data = section(name)
    *parents, last = path.split(".")
    at = data
    for key in parents:
        at = at[key]
    at[last] = value
    return data


@pytest.mark.parametrize("name", CORES)
def test_the_shipped_cores_load_and_every_number_has_a_source(name):
    model = board.load(section(name), name)
    assert not model.calibrated
    assert set(model.costs) == set(board.CLASSES)

    def numbers(at, path, above=False):
        if isinstance(at, dict):
            sourced = above or "source" in at
            for key, value in at.items():
                if isinstance(value, float) and not isinstance(value, bool):
                    assert sourced, f"{path}.{key}"
                numbers(value, f"{path}.{key}", sourced and key == "eew")

    numbers(section(name), name)


@pytest.mark.parametrize(
    ("path", "value", "rule"),
    [
        ("memory.l1.ways", 7, "ways x sets x line = size"),
        ("memory.l2.line", 128, "one line size, got 64 and 128"),
        ("memory.l2.size", 16384, "not smaller than level 1, got 16384 and 32768"),
        ("vector.dlen", [512], "dlen <= vlen"),
        ("vector.dlen", [128, 256], "one dlen a vlen"),
        ("vector.vlen", [384], "powers of two"),
        ("memory.l2_interval.low", 14, "low <= value <= high"),
        ("memory.l2_interval.low", 60, "low <= value <= high"),
        ("memory.l2_interval.assumed", False, "an assumed constant has low and high"),
        ("core.issue_width.assumed", True, "an assumed constant has low and high"),
        ("memory.l2_interval.value", 41000, "low <= value <= high"),
        ("memory.l2_latency.value", 41000, "l2_latency <= dram_latency"),
        ("memory.store_buffer.high", 100, "store_buffer"),
        ("memory.share", {"value": 1.5, "source": "x"}, "share"),
        ("memory.share", {"value": 0.5, "assumed": True, "low": 0.2, "high": 1.0, "source": "x"}, "share"),
        ("costs.alu.unit", "nowhere", "unit of alu"),
        ("costs.branch.like", "fdivide", "must name a class without `like`"),
        ("costs.vfadd.like", "vfma_scalar", "must name a class without `like`"),
        ("costs.vload.cycles.m2", 1.0, "cycles do not fall with LMUL"),
        ("costs.nonsense", {"like": "alu"}, "known instruction classes"),
        ("shared", ["vls", "none"], "shared and whole name units"),
        ("pipeline", "ooo", "needs a window"),
        ("memory.tlb2.ways", 3, "entries = ways x sets"),
        ("core.issue_width.source", "", "expected at least 1 characters"),
        ("pipeline", "sideways", "'inorder' or 'ooo'"),
        ("core.speed", 3, "core.speed"),
    ],
)
def test_contradictions_are_refused_with_the_rule(path, value, rule):
    with pytest.raises(SpecError) as caught:
        board.load(changed(path, value), "a-board.yaml")
    assert rule in str(caught.value)
    assert "a-board.yaml" in str(caught.value)


def test_a_missing_class_or_level_is_named():
    data = section()
    del data["costs"]["vgather"]
    with pytest.raises(SpecError, match="missing vgather"):
        board.load(data, "x")
    data = section()
    del data["memory"]["l2"]
    with pytest.raises(SpecError, match=r"missing key 'memory\.l2'"):
        board.load(data, "x")


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", CORES)
def test_scenarios_are_balanced_corners(name):
    model = board.load(section(name), name)
    unknowns = model.unknowns()
    assert sorted(key for keys in unknowns.values() for key in keys) == sorted(model.assumed())
    best, *corners = board_scenarios.scenario_values(model, "interval")
    assert len(corners) + 1 <= 16
    for item, value in ((model.assumed()[key], value) for key, value in best.items()):
        assert value == (1.0 if isinstance(item, board.Cycles) else item.value)
    for keys in unknowns.values():
        low = sum(all(corner[k] == model.assumed()[k].low for k in keys) for corner in corners)
        high = sum(all(corner[k] == model.assumed()[k].high for k in keys) for corner in corners)
        assert low + high == len(corners)
        assert abs(low - high) <= 1
    assert len(board_scenarios.scenario_values(model, "sensitivity")) == 1 + 2 * len(unknowns)
    assert board_scenarios.scenario_values(model, "best") == (best,)


@pytest.mark.parametrize("factors", [4, 7, 11, 12, 15])
def test_two_level_designs_are_orthogonal(factors):
    rows = board_scenarios._two_level(factors)
    for a in range(factors):
        assert sum(row[a] for row in rows) * 2 == len(rows)
        for b in range(a):
            assert sum((2 * row[a] - 1) * (2 * row[b] - 1) for row in rows) == 0


def lines(text):
    out = {}
    for line in text.splitlines():
        key, *rest = line.split()
        words = rest[:4] if key == "price" else rest[:1] if key in ("cache", "latency", "unit", "tlb") else []
        out[(key, *words)] = rest[len(words) :]
    return out


def test_the_configuration_says_what_the_platform_file_says():
    model = board.load(section("rvv"), "rvv")
    for vlen, cycles in ((128, 1), (256, 1), (512, 2), (1024, 4)):
        config = lines(board_config.text(model, vlen))
        assert config[("vlen",)] == [str(vlen)]
        # m1 and m4 of vfma at e32: DLEN bits a cycle
        assert config[("price", "vfma", "3", "2", "occupancy")] == [str(cycles)]
        assert config[("price", "vfma", "5", "2", "occupancy")] == [str(4 * cycles)]
        assert config[("price", "vfadd", "5", "2", "occupancy")] == [str(4 * cycles)]
    assert config[("cache", "1")] == ["128", "4"]
    assert config[("price", "load", "*", "*", "occupancy")] == ["0.5"]


def test_assumed_ranges_reach_every_class_that_is_like_another():
    key = "costs.vfma.latency"
    model = board.load(section("rvv"), "rvv")
    config = lines(board_config.text(model, 256, ({}, {key: 4.0}, {key: 6.0})))
    for name in ("vfma", "vfma_scalar", "vfadd", "vfwma"):
        assert config[("price", name, "*", "*", "latency")] == ["5", "4", "6"]
    with pytest.raises(JobError, match=r"no assumed constant 'costs\.alu\.latency'"):
        board_config.text(model, 256, ({"costs.alu.latency": 3.0},))


def test_a_report_that_is_no_report_is_an_error(tmp_path):
    with pytest.raises(JobError, match="wrote no report"):
        measure.parse(tmp_path / "none")
    (tmp_path / "half").write_text(json.dumps({"instructions": {}})[:-1])
    with pytest.raises(JobError, match="cannot be read"):
        measure.parse(tmp_path / "half")
    (tmp_path / "empty").write_text("")
    assert measure.parse(tmp_path / "empty") == ()


def test_too_many_scenarios_and_no_compiler_are_said(monkeypatch):
    with pytest.raises(JobError, match="at most 32 scenarios"):
        measure.plugin(scenarios=33)
    monkeypatch.setattr(measure, "CC", "no-such-cc")
    with pytest.raises(measure.MissingTool, match="needs the C compiler 'no-such-cc'"):
        measure.plugin()


@pytest.mark.parametrize("name", CORES)
def test_the_model_has_the_platforms_vlens_and_each_modelled_level_its_source(name):
    platform = platforms.load(name)
    model = board.load(section(name), name)
    assert set(platform.vlens) <= set(model.vector.vlen)
    for level in ("l1", "l2"):
        assert platform.caches[level].source, level


def test_a_figure_of_a_version_stays_what_it_was(request):
    """What the plug-in is told of each shipped core. A number that changes raises the model's `version`."""
    told = {}
    for name in CORES:
        platform = platforms.load(name)
        model = board.load(platform.board, name)
        for vlen in platform.verify_vlens:
            text = board_config.text(model, vlen, board_scenarios.scenario_values(model, "sensitivity"))
            digest = hashlib.sha256(text.encode()).hexdigest()[:16]
            told.setdefault(f"{name}: {model.name} {model.version}", {})[str(vlen)] = digest
    if request.config.getoption("--update-golden"):
        CONFIGURATIONS.write_text(json.dumps(told, indent=1) + "\n")
    assert told == json.loads(CONFIGURATIONS.read_text()), (
        "a model's configuration changed: raise its version, then pytest test_board_spec.py --update-golden"
    )
