"""Whole jobs through the command line on this machine, and what may befall them."""

from __future__ import annotations

import ctypes
import os
import signal
import stat
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import tensorop as package
from tests.support.commands import JOURNAL, events, finish, journal, kill_group, refused, start, tensorop, wait_for

SMALL = ("gemm", "--platform", "generic", "--dtype", "f32", "--shapes", "24x17x33", "--jobs", "1")


def product_of(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()} & {"include", "lib"} if folder.exists() else set()


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, object], str]:
    """A finished job: its folder, what it printed and what it told meanwhile. --out is relative, as by default."""
    place = tmp_path_factory.mktemp("job")
    ended = tensorop(*SMALL, "--trials", "4", "--out", "out", "--format", "json", cwd=place)
    assert ended.status == 0, ended.stderr
    return place / "out", ended.json(), ended.stderr


def test_a_job_ends_with_a_library_that_computes(made: tuple[Path, dict[str, object], str]) -> None:
    folder, said, told = made
    assert Path(str(said["library"])).name == "libtensorop_gemm.so"
    assert said["bench"]
    assert "negative controls" in told
    assert (folder / "share/tensorop/report.html").is_file()
    a, b = np.ones((5, 7), np.float32), np.full((7, 3), 2, np.float32)
    assert np.array_equal(package.load(folder).gemm(a, b), np.full((5, 3), 14, np.float32))


def test_the_same_command_again_tries_nothing_anew(made: tuple[Path, dict[str, object], str]) -> None:
    folder, _, _ = made
    before = events(folder, "finished")
    library = (folder / "lib/libtensorop_gemm.so").resolve().read_bytes()
    ended = tensorop(*SMALL, "--trials", "4", "--out", folder, cwd=folder.parent)
    assert ended.status == 0, ended.stderr
    assert events(folder, "finished") == before
    assert (folder / "lib/libtensorop_gemm.so").resolve().read_bytes() == library
    assert "library: " in ended.stdout


def test_other_settings_do_not_mix_with_a_run(made: tuple[Path, dict[str, object], str]) -> None:
    folder, _, _ = made
    words = ["7" if word == "1" else word for word in SMALL]
    message = refused(*words, "--trials", "4", "--seed", "5", "--out", folder, cwd=folder.parent)
    assert "seed" in message
    assert "--fresh" in message
    assert product_of(folder) == {"include", "lib"}


def test_killed_in_the_middle_it_goes_on(tmp_path: Path) -> None:
    child = start(*SMALL, "--trials", "6", "--out", tmp_path / "out", cwd=tmp_path)
    wait_for(lambda: len(events(tmp_path / "out", "finished")) >= 3, child)
    kill_group(child)
    child.communicate()
    kept = events(tmp_path / "out", "finished")
    assert product_of(tmp_path / "out") == set()
    ended = tensorop(*SMALL, "--trials", "6", "--out", tmp_path / "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    finished = events(tmp_path / "out", "finished")
    assert finished[: len(kept)] == kept
    assert len(finished) == 6
    assert len({record["key"] for record in finished}) == 6
    assert product_of(tmp_path / "out") == {"include", "lib"}


def test_ctrl_c_packages_the_best_so_far(tmp_path: Path) -> None:
    child = start(*SMALL, "--budget", "10m", "--out", tmp_path / "out", "--format", "json", cwd=tmp_path)
    wait_for(lambda: any(r["outcome"]["kind"] == "ok" for r in events(tmp_path / "out", "finished")), child)
    kill_group(child, signal.SIGINT)
    ended = finish(child)
    assert "Traceback" not in ended.stderr
    assert ended.status == 0, ended.stderr
    assert "best so far" in " ".join(ended.json()["notes"])
    assert "goes on" in " ".join(ended.json()["notes"])
    a = np.eye(4, dtype=np.float32)
    assert np.array_equal(package.load(tmp_path / "out").gemm(a, a), a)


def test_ctrl_c_before_anything_passed(tmp_path: Path) -> None:
    child = start(*SMALL, "--trials", "50", "--out", tmp_path / "out", cwd=tmp_path)
    wait_for(lambda: (tmp_path / "out" / "work" / "lock").exists(), child)
    kill_group(child, signal.SIGINT)
    ended = finish(child)
    assert "Traceback" not in ended.stderr
    assert ended.status in (1, 130)
    assert "interrupted" in ended.stderr
    assert product_of(tmp_path / "out") == set()


def test_ctrl_c_while_the_product_is_judged_leaves_none(tmp_path: Path) -> None:
    child = start(*SMALL, "--trials", "4", "--out", tmp_path / "out", cwd=tmp_path)
    wait_for((tmp_path / ".out.staged").exists, child)
    kill_group(child, signal.SIGINT)
    ended = finish(child)
    assert "Traceback" not in ended.stderr
    assert ended.status == 130
    assert "interrupted; the same command goes on where it stopped" in ended.stderr
    assert product_of(tmp_path / "out") == set()
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert tensorop(*SMALL, "--trials", "4", "--out", tmp_path / "out", cwd=tmp_path).status == 0


def test_two_runs_on_one_folder(tmp_path: Path) -> None:
    first = start(*SMALL, "--trials", "50", "--out", tmp_path / "out", cwd=tmp_path)
    try:
        wait_for(lambda: bool(journal(tmp_path / "out")), first)
        message = refused(*SMALL, "--trials", "4", "--out", tmp_path / "out", cwd=tmp_path, status=1)
        assert f"another run is at work on {tmp_path / 'out'} (process {first.pid}" in message
        assert "another --out" in message
    finally:
        kill_group(first)
        first.communicate()


def test_a_budget_too_short_for_one_trial(tmp_path: Path) -> None:
    message = refused(*SMALL, "--budget", "0.05s", "--out", "out", cwd=tmp_path, status=1)
    assert "budget" in message
    assert product_of(tmp_path / "out") == set()


def test_an_out_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    for out in ("file", "file/below", "/proc/nothing"):
        message = refused(*SMALL, "--trials", "4", "--out", out, cwd=tmp_path)
        assert f"cannot write to {out}" in message
        assert "another --out" in message
    assert (tmp_path / "file").read_text() == "mine"


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_an_out_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    assert "cannot write to" in refused(*SMALL, "--trials", "4", "--out", tmp_path / "out", cwd=tmp_path)


def test_a_foreign_library_in_out_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "out" / "lib").mkdir(parents=True)
    (tmp_path / "out" / "lib" / "libmine.so").write_text("mine")
    message = refused(*SMALL, "--trials", "4", "--out", "out", cwd=tmp_path, status=1)
    assert not (tmp_path / "out" / JOURNAL).exists()
    assert "lib/libmine.so, which tensorop did not write" in message
    assert [p.name for p in (tmp_path / "out" / "lib").iterdir()] == ["libmine.so"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 32 MiB. Mounting needs root and a kernel that lets it."""
    place = tmp_path / "disk"
    place.mkdir()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", os.fsencode(place), b"tmpfs", 0, b"size=32m") != 0:
        pytest.skip(f"no small file system to fill: mount says {os.strerror(ctypes.get_errno())}")
    yield place
    libc.umount2(os.fsencode(place), 2)


@pytest.mark.parametrize("free", [100 << 10, 400 << 10], ids=["100 KiB", "400 KiB"])
def test_a_full_disk_ends_the_job_in_a_sentence_and_costs_no_candidate(
    small_disk: Path, tmp_path: Path, free: int
) -> None:
    room = os.statvfs(small_disk)
    (small_disk / "ballast").write_bytes(bytes(room.f_bavail * room.f_frsize - free))
    message = refused(*SMALL, "--trials", "4", "--out", small_disk / "out", cwd=tmp_path, status=1)
    assert "the disk is full" in message or "No space left on device" in message
    assert "free some space" in message
    assert product_of(small_disk / "out") == set()
    (small_disk / "ballast").unlink()
    ended = tensorop(*SMALL, "--trials", "4", "--out", small_disk / "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert {record["outcome"]["kind"] for record in events(small_disk / "out", "finished")} == {"ok"}


def test_a_missing_compiler_is_named_with_the_command_that_brings_it(tmp_path: Path) -> None:
    """A torn `ziglang` stands before the real one on the import path."""
    (tmp_path / "ziglang").mkdir()
    (tmp_path / "ziglang" / "__init__.py").write_text("")
    message = refused(
        *SMALL, "--trials", "4", "--out", "out", cwd=tmp_path, status=1, env={"PYTHONPATH": str(tmp_path)}
    )
    assert "ziglang" in message
    assert "pip install ziglang" in message
    assert product_of(tmp_path / "out") == set()


def test_with_json_only_json_is_on_stdout_when_a_job_fails(tmp_path: Path) -> None:
    ended = tensorop(*SMALL, "--budget", "0.05s", "--out", "out", "--format", "json", cwd=tmp_path)
    assert (ended.status, ended.stdout) == (1, "")


def test_the_journal_is_the_only_thing_beside_work_during_a_run(tmp_path: Path) -> None:
    child = start(*SMALL, "--trials", "50", "--out", tmp_path / "out", cwd=tmp_path)
    try:
        wait_for(lambda: len(events(tmp_path / "out", "finished")) >= 1, child)
        files = [p.relative_to(tmp_path / "out") for p in (tmp_path / "out").rglob("*") if p.is_file()]
        assert {p for p in files if p.parts[0] != "work"} == {JOURNAL}
    finally:
        kill_group(child)
        child.communicate()
    left = subprocess.run(["pgrep", "-s", str(child.pid)], capture_output=True, text=True, check=False).stdout
    assert left == ""
