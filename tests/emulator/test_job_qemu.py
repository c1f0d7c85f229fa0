"""Whole jobs on an emulated target: the same wish gives the same bits, killed on the way or not."""

from __future__ import annotations

import hashlib
import json
import os
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorop.cli.main import cli
from tensorop.dispatch import robust
from tensorop.provision import qemu
from tensorop.specs import board, platforms
from tensorop.store import journal
from tests.support import plugins, products
from tests.support.commands import events, kill_group, refused, start, tensorop, wait_for

JOB = (
    "gemm",
    "--dtype",
    "f32",
    "--shapes",
    "16x16x16,5x40x9",
    "--jobs",
    "1",
    "--batch",
    "2",
    "--seed",
    "7",
    "--trials",
    "6",
)


def digests(folder: Path) -> dict[str, str]:
    """Every file of a product that is not of one run alone: the journal and what is made of it hold times."""
    of_a_run = {"journal.jsonl", "report.html", "report.json"}
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in of_a_run and path.relative_to(folder).parts[0] != "work"
    }


@pytest.fixture(scope="module")
def on_rvv(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    return (*JOB, *plugins.small_blocks(tmp_path_factory.mktemp("plugins"), "rvv", plugins.TWO_VLENS))


@pytest.fixture(scope="module")
def uninterrupted(on_rvv: tuple[str, ...], tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("uninterrupted")
    ended = tensorop(*on_rvv, "--out", "out", "--format", "json", cwd=place)
    assert ended.status == 0, ended.stderr
    said = ended.json()
    assert said["bench"]["unit"] == "flop/modelled-cycle"
    assert not said["bench"]["model"]["calibrated"]
    return place / "out"


def begun_with(folder: Path) -> list[str]:
    """What a product says of its warm start."""
    manifest = json.loads((folder / "share" / "tensorop" / "manifest.json").read_text())
    found: list[str] = manifest["operators"]["gemm"]["facts"]["warm_start"]
    return found


@pytest.mark.extended
def test_it_began_with_the_known_winners(uninterrupted: Path) -> None:
    (said,) = begun_with(uninterrupted)
    assert said.startswith("f32: the search starts with 8 configurations of the winners of rvv of ")


@pytest.mark.extended
def test_the_journal_gives_the_same_trees(uninterrupted: Path, on_rvv: tuple[str, ...]) -> None:
    packaged, again = products.trees_again(uninterrupted, (Path(on_rvv[-1]),))
    assert again == packaged
    assert [tree.vlen for tree in again] == [128, 256]


@pytest.mark.extended
def test_close_choices_are_counted_over_the_models_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, so that every variant counts as close however few were tried."""
    monkeypatch.setattr(robust, "CLOSE", 10.0)
    own = plugins.small_blocks(tmp_path / "own", "spacemit-k1", "verify_vlens: [256]\n")
    job = (*JOB[:-2], *own, "--trials", "12", "--warm-start", "none", "--out", str(tmp_path / "out"))
    ended = CliRunner().invoke(cli, job, catch_exceptions=False)
    assert ended.exit_code == 0, ended.output
    assert "no assumed constant changes" in ended.output
    assert begun_with(tmp_path / "out") == []
    tried = [r["configuration"] for r in events(tmp_path / "out", "started") if r["stage"] == "micro"]
    assert {"mr_vectors": 1, "nr": 6, "lmul": 4, "ahead": 1}.items() <= tried[
        1
    ].items()  # the second template's, by its prior
    platform = platforms.load("spacemit-k1")
    assert platform.board is not None
    model = board.load(platform.board, "spacemit-k1")
    unknowns = list(model.unknowns())
    (note,) = [data for name, data in journal.read(tmp_path / "out").notes if name == "constants"]
    assert note["constants"] == unknowns
    assert note["alternatives"] == list(model.alternatives)
    assert note["contests"]
    for contest in note["contests"]:
        assert len(contest["cycles"]) == len(contest["variants"]) > 1
        assert {len(cycles) for cycles in contest["cycles"]} == {1 + 2 * len(unknowns)}
        assert any(len(set(cycles)) > 1 for cycles in contest["cycles"])
        worst = [max(cycles) for cycles in contest["under"]]
        assert {len(cycles) for cycles in contest["under"]} == {len(model.alternatives)}
        assert worst[contest["chosen"]] == min(worst)
    packaged, again = products.trees_again(tmp_path / "out", (Path(own[-1]),))  # close choices included
    assert again == packaged
    probed = [data for name, data in journal.read(tmp_path / "out").notes if name == "dispatch"]
    assert probed[-1]["done"]
    rows = [row for data in probed for row in data["rows"]]
    assert rows
    assert not any(list(row["dims"].values()) in ([16, 16, 16], [5, 40, 9]) for row in rows)  # shapes of its own
    # the direct one, the last, serves no large ones
    assert all(None not in row["costs"][:-1] and len(row["costs"]) == len(probed[0]["variants"]) for row in rows)
    assert "on held-out shapes the run-time choice is" in ended.output
    assert "depend on the unknowns of the model" in (tmp_path / "out/share/tensorop/report.html").read_text()


def _under_way(folder: Path, stage: str) -> bool:
    return any(record["stage"] == stage for record in events(folder, "started"))


@pytest.mark.extended
def test_the_same_wish_gives_the_same_bits_elsewhere_by_other_processes_killed_and_resumed(
    on_rvv: tuple[str, ...], uninterrupted: Path, tmp_path: Path
) -> None:
    out = tmp_path / "elsewhere" / "longer-name"
    for stage, workers in ("micro", ("--workers", "2")), ("blocking", ()):
        child = start(*on_rvv, *workers, "--out", out, cwd=tmp_path)
        wait_for(partial(_under_way, out, stage), child)
        kill_group(child)
        child.communicate()
    last = tensorop(*on_rvv, "--workers", "1", "--out", out, cwd=tmp_path)
    assert "workers accepted: 1; candidates per round (--batch): 2" in last.stderr
    assert last.status == 0, last.stderr
    keys = [[(r["key"], r["outcome"]["kind"]) for r in events(folder, "finished")] for folder in (out, uninterrupted)]
    assert keys[0] == keys[1]
    assert digests(out) == digests(uninterrupted)


@pytest.mark.extended
def test_a_library_made_elsewhere_is_verified_by_command(uninterrupted: Path, tmp_path: Path) -> None:
    ended = tensorop("verify", uninterrupted, cwd=tmp_path)
    assert ended.status == 0, ended.stderr


@pytest.mark.usefixtures("uninterrupted")  # which brings everything else into the cache
def test_a_missing_emulator_is_named_with_the_command_that_brings_it(on_rvv: tuple[str, ...], tmp_path: Path) -> None:
    """The PATH holds no QEMU, the cache neither, and the run is offline."""
    if qemu.cached("riscv64").exists():
        pytest.skip("a QEMU lies in the cache")
    (tmp_path / "bin").mkdir()
    for folder in reversed(os.environ["PATH"].split(os.pathsep)):
        for tool in Path(folder).glob("*"):
            if not tool.name.startswith("qemu-"):
                (tmp_path / "bin" / tool.name).unlink(missing_ok=True)
                (tmp_path / "bin" / tool.name).symlink_to(tool)
    env = {"PATH": str(tmp_path / "bin")}
    message = refused(*on_rvv, "--offline", "--out", "out", cwd=tmp_path, env=env, status=1)
    assert "QEMU" in message
    assert "python -m tensorop.provision qemu" in message
    assert not (tmp_path / "out" / "lib").exists()
