"""A child's board model: its own caches and numbers over its parent's, its own name, and what is refused."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorop.cli.main import cli
from tensorop.errors import SpecError
from tensorop.measure import board_config
from tensorop.render.instantiate import facts
from tensorop.specs import board, platforms

OWN = "caches: [{size: 65536, ways: 8}, {size: 1048576, ways: 16, shared_by: 2}]"


def write(folder: Path, name: str, *lines: str, parent: str = "rvv") -> tuple[Path, ...]:
    (folder / "platforms").mkdir(parents=True, exist_ok=True)
    head = ["schema: 1", f"name: {name}", f"parent: {parent}", "description: a test"]
    (folder / "platforms" / f"{name}.yaml").write_text("\n".join([*head, *lines]) + "\n")
    return (folder,)


def load(folder: Path, *lines: str, parent: str = "rvv") -> board.BoardModel:
    found = platforms.load("mine", write(folder, "mine", *lines, parent=parent))
    assert found.board is not None
    return board.load(found.board, "mine")


def test_a_child_is_modelled_with_its_own_caches(tmp_path: Path) -> None:
    model = load(tmp_path, "vlens: [512]", OWN)
    assert (model.memory.l1.size, model.memory.l1.ways, model.memory.l2.size) == (65536, 8, 1 << 20)
    assert (model.name, model.version, model.calibrated) == ("mine, after generic-inorder-rvv 6", 1, False)
    assert "memory.l1.size, memory.l1.ways, memory.l2.size" in model.description
    text = board_config.text(model, 512)
    assert "\ncache 1 128 8\ncache 2 1024 16\n" in text
    parent = platforms.load("rvv").board
    assert parent is not None
    theirs = board_config.text(board.load(parent, "rvv"), 512)
    assert {line for line in text.splitlines() if line.split()[0] != "cache"} <= {*theirs.splitlines()}


def test_the_operators_facts_come_from_the_same_list(tmp_path: Path) -> None:
    levels = "caches: [{size: 65536, ways: 8}, {size: 1048576, ways: 16, shared_by: 2}, {size: 8388608, ways: 16}, "
    mine = platforms.load("mine", write(tmp_path, "mine", levels + "{size: 67108864, ways: 16}]"))
    known = facts(mine, "f32", {})
    assert [known[level] for level in ("l1", "l2", "l3", "l4")] == [65536, 1 << 19, 8 << 20, 64 << 20]
    assert mine.board is not None
    assert [level for level in mine.board["memory"] if level in mine.caches] == ["l1", "l2"]


def test_a_child_that_changes_no_number_keeps_the_model(tmp_path: Path) -> None:
    rvv = platforms.load("rvv")
    same = "caches: [{size: 32768, ways: 4, source: elsewhere}, {size: 262144, ways: 16, shared_by: 8}]"
    assert load(tmp_path, same).name == "generic-inorder-rvv"
    assert load(tmp_path, "vlens: [512]").version == 6
    assert dict(platforms.load("mine", (tmp_path,)).board or {}) == dict(rvv.board or {})


def test_a_part_of_a_model_goes_over_the_parents(tmp_path: Path) -> None:
    parent = board.load(platforms.load("spacemit-k1").board or {}, "k1")
    model = load(
        tmp_path,
        "model:",
        "  memory:",
        "    l2_interval: {value: 20, source: a bench}",
        "    l1_prefetch: null",
        "  core: {vector_queue: 4}",
        "  costs: {vfma: {latency: {value: 9, source: a bench}}}",
        parent="spacemit-k1",
    )
    assert (model.name, model.version) == ("mine, after spacemit-x60 8", 1)
    assert model.description == (
        "As spacemit-x60 8, but for core.vector_queue, costs.vfma.latency, memory.l2_interval, memory.l1_prefetch"
    )
    assert (model.memory.l2_interval.value, model.memory.l2_interval.assumed) == (20, False)
    assert model.memory.l1_prefetch is None
    assert model.core.vector_queue == 4
    assert (model.cost("vfma").latency.value, model.cost("vfma").unit) == (9, parent.cost("vfma").unit)  # type: ignore[union-attr]
    assert model.memory.dram_latency == parent.memory.dram_latency
    assert model.units == parent.units


def test_a_childs_child_is_named_after_both(tmp_path: Path) -> None:
    write(tmp_path, "first", OWN)
    model = load(tmp_path, "caches: [{size: 16384, ways: 4}, {size: 262144, ways: 16}]", parent="first")
    assert model.name == "mine, after first 1, after generic-inorder-rvv 6"
    assert load(tmp_path, "vlens: [256]", parent="first").name == "first, after generic-inorder-rvv 6"


def test_its_own_name_stands(tmp_path: Path) -> None:
    model = load(tmp_path, OWN, "model: {name: my-core, version: 3, calibrated: true, description: mine}")
    assert (model.name, model.version, model.calibrated, model.description) == ("my-core", 3, False, "mine")


def test_a_complete_one_takes_nothing(tmp_path: Path) -> None:
    with pytest.raises(SpecError, match=r"mine.yaml: missing key 'model.core'"):
        load(tmp_path, "model: {complete: true, name: my-core}")


@pytest.mark.parametrize(
    ("lines", "says"),
    [
        (
            ["caches: [{size: 65536, ways: 7}, {size: 262144, ways: 16}]"],
            r"key 'caches.0': expected ways x sets x line",
        ),
        (
            ["caches: [{size: 49152, ways: 4}, {size: 262144, ways: 16}]"],
            r"'caches.0': expected a power of two of sets",
        ),
        (["caches: [{size: 65536, ways: 4}]"], r"key 'caches': expected at least 2 levels.*got 1"),
        (
            ["caches: [{size: 65536, ways: 4, line: 128}, {size: 262144, ways: 16}]"],
            r"key 'model.memory': levels 1 and 2 of `caches` have one line size, got 128 and 64",
        ),
        (
            ["model: {memory: {l1: {size: 65536, ways: 4}}}"],
            r"unknown key 'model.memory.l1'; a model takes the sizes of its caches from the platform\ngive them",
        ),
        (
            ["model: {memory: {l2_intervall: {value: 2}}}"],
            r"unknown key 'model.memory.l2_intervall'; did you mean 'l2_i",
        ),
        (["model: {memory: {l2_interval: {value: 2}}}"], r"missing key 'model.memory.l2_interval.source'"),
        (
            ["model: {memory: {tlb: {entries: 64}}}"],
            r"key 'model.memory.tlb.source': expected the source of the numbers",
        ),
        (["model: {memory: {l2_latency: {value: 900, source: x}}}"], r"key 'model.memory': l2_latency <= dram_latency"),
        (["model: 3"], r"key 'model'.*got 3"),
        (["model: {complete: maybe}"], r"key 'model.complete': expected true or false"),
    ],
)
def test_what_does_not_fit_is_refused_with_file_and_key(tmp_path: Path, lines: list[str], says: str) -> None:
    with pytest.raises(SpecError, match=f"(?s){says}") as caught:
        load(tmp_path, *lines)
    assert "mine.yaml" in str(caught.value)


def test_show_says_which_levels_the_model_has(tmp_path: Path) -> None:
    levels = "caches: [{size: 65536, ways: 8}, {size: 1048576, ways: 16}, {size: 8388608, ways: 16}]"
    plugins = write(tmp_path, "mine", levels)
    shown = CliRunner().invoke(cli, ["platforms", "show", "mine", "--plugins", str(plugins[0])])
    told = json.loads(shown.output)
    assert (told["modelled_caches"], told["not_modelled_caches"]) == (["l1", "l2"], ["l3"])
    native = json.loads(CliRunner().invoke(cli, ["platforms", "show", "avx2"]).output)
    assert (native["modelled_caches"], native["not_modelled_caches"]) == ([], [])


def test_a_platform_that_travels_says_everything_itself(tmp_path: Path) -> None:
    levels = "caches: [{size: 65536, ways: 8}, {size: 1048576, ways: 16}, {size: 8388608, ways: 16}]"
    plugins = write(
        tmp_path / "from",
        "mine",
        levels,
        "vlens: [512]",
        "baselines: {openblas: {OPENBLAS_CORETYPE: GENERIC}}",
        parent="rvv",
    )
    assert platforms.load("rvv", plugins).whole == ""
    text = platforms.load("mine", plugins).whole
    platforms.check_whole(text, "mine", "a manifest")
    (tmp_path / "to" / "platforms").mkdir(parents=True)
    (tmp_path / "to" / "platforms" / "mine.yaml").write_text(text)
    there, here = (platforms.load("mine", (folder,)) for folder in (tmp_path / "to", tmp_path / "from"))
    assert dataclasses.replace(there, lineage=here.lineage, whole=here.whole) == here
    for more, says in (
        ("parent: rvv", "'parent'"),
        ("calibration: x", "'calibration'"),
        ("regs: 3", "unknown key 'regs'"),
    ):
        with pytest.raises(SpecError, match=f"a manifest: .*{says}"):
            platforms.check_whole(f"{text}{more}\n", "mine", "a manifest")
