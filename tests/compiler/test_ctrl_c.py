"""Ctrl-C on real jobs: pressed once, pressed twice, in each of their parts."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest

import tensorop as package
from tests.support.commands import Watched, events

SMALL = ("gemm", "--platform", "generic", "--dtype", "f32", "--shapes", "24x17x33", "--jobs", "1", "--out", "out")


def product_of(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} & {"include", "lib"} if folder.exists() else set()


def passed(folder: Path) -> list[dict[str, Any]]:
    return [record for record in events(folder, "finished") if record["outcome"]["kind"] == "ok"]


def below(folder: Path) -> list[str]:
    """Processes that work in a folder, each by its command line."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.cwd().startswith(str(folder)):
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def test_once_in_the_search_ends_it_with_a_verified_product(tmp_path: Path) -> None:
    job = Watched(*SMALL, "--budget", "10m", "--format", "json", cwd=tmp_path)
    job.until(lambda: bool(passed(tmp_path / "out")))
    before = len(events(tmp_path / "out", "finished"))
    job.press()
    job.until("stopping the search", 10)
    assert "built into a library and verified" in job.told
    ended = job.finish()
    assert "Traceback" not in ended.stderr
    assert ended.status == 3, ended.stderr
    assert "calls passed" in ended.stderr
    assert "comparison:" not in ended.stderr
    said = ended.json()
    assert said["stopped_early"] is True
    assert said["bench"] is None
    assert "best kernels so far" in " ".join(said["notes"])
    # a trial under way is no failure of its candidate
    assert {record["outcome"]["kind"] for record in events(tmp_path / "out", "finished")[before:]} <= {"ok"}
    assert below(tmp_path) == []
    a = np.eye(4, dtype=np.float32)
    assert np.array_equal(package.load(tmp_path / "out").gemm(a, a), a)


def test_before_anything_passed_there_is_no_product(tmp_path: Path) -> None:
    job = Watched(*SMALL, "--trials", "50", cwd=tmp_path)
    job.until("negative controls")
    job.press()
    job.until("no kernel has passed yet", 10)
    ended = job.finish()
    assert "Traceback" not in ended.stderr
    assert ended.status == 130
    assert "stopped before any kernel passed" in ended.stderr
    assert product_of(tmp_path / "out") == set()
    assert below(tmp_path) == []


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> Callable[[Path], Path]:
    """searched(place): brings a run there whose search has come to its end and nothing behind it."""
    place = tmp_path_factory.mktemp("searched")
    job = Watched(*SMALL, "--trials", "4", cwd=place)
    job.until("library:")
    job.press(signal.SIGKILL)
    job.finish()

    def bring(to: Path) -> Path:
        shutil.copytree(place / "out", to / "out")
        return to

    return bring


@pytest.mark.extended
def test_once_while_the_product_is_judged_leaves_out_the_comparison_alone(
    searched: Callable[[Path], Path], tmp_path: Path
) -> None:
    job = Watched(*SMALL, "--trials", "4", "--format", "json", cwd=searched(tmp_path))
    job.until("verification:")
    job.press()
    job.until("verification continues", 10)
    ended = job.finish()
    assert ended.status == 3, ended.stderr
    assert "calls passed" in ended.stderr
    assert ended.json()["bench"] is None
    assert product_of(tmp_path / "out") == {"include", "lib"}
    assert not (tmp_path / "out/share/tensorop/bench.json").exists()


@pytest.mark.extended
def test_twice_ends_it_at_once_without_a_product_and_once_in_the_comparison_with_one(
    searched: Callable[[Path], Path], tmp_path: Path
) -> None:
    job = Watched(*SMALL, "--trials", "4", cwd=searched(tmp_path))
    job.until("verification:")
    for said in ("verification continues", "interrupted; run the same command again to resume"):
        job.press()
        job.until(lambda said=said: said in job.told or job.child.poll() is not None, 10)  # type: ignore[misc]
    ended = job.finish()
    assert "Traceback" not in ended.stderr
    assert ended.status == 130
    assert "interrupted; run the same command again to resume" in ended.stderr
    assert product_of(tmp_path / "out") == set()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert below(tmp_path) == []
    kept = events(tmp_path / "out", "finished")
    assert kept
    again = Watched(*SMALL, "--trials", "4", "--format", "json", cwd=tmp_path)
    again.until("comparison:")
    again.press()
    ended = again.finish()
    assert ended.status == 3, ended.stderr
    assert "the comparison is skipped" in ended.stderr
    assert product_of(tmp_path / "out") == {"include", "lib"}
    assert events(tmp_path / "out", "finished") == kept


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_process_told_to_end_sets_back_what_was_under_way(tmp_path: Path, number: int) -> None:
    job = Watched(*SMALL, "--budget", "10m", cwd=tmp_path)
    job.until(lambda: bool(events(tmp_path / "out", "started")))
    job.press(number)
    ended = job.finish(20)
    assert "Traceback" not in ended.stderr
    assert ended.status == 130
    begun, done, back = ({r["key"] for r in events(tmp_path / "out", e)} for e in ("started", "finished", "abandoned"))
    assert begun == done | back
    assert product_of(tmp_path / "out") == set()
    assert below(tmp_path) == []


@pytest.mark.extended
def test_a_run_that_ended_early_goes_on(tmp_path: Path) -> None:
    """What passed before is packaged by a first press, although this run has tried nothing itself."""
    first = Watched(*SMALL, "--budget", "10m", cwd=tmp_path)
    first.until(lambda: bool(passed(tmp_path / "out")))
    first.press(signal.SIGTERM)
    assert first.finish().status == 130
    kept = events(tmp_path / "out", "finished")
    again = Watched(*SMALL, "--budget", "10m", cwd=tmp_path)
    again.until("negative controls")
    again.press()
    ended = again.finish()
    assert "kernels that passed in earlier runs are packaged" in ended.stderr
    assert ended.status == 3, ended.stderr
    assert events(tmp_path / "out", "finished") == kept
    assert product_of(tmp_path / "out") == {"include", "lib"}
