"""Folders that are full, or that start no programs: the message names the right one, before work is lost."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorop.cli.main import main
from tensorop.errors import JobError, MissingTool, UsageError
from tensorop.package import publish
from tensorop.provision import process as fetching
from tensorop.runners import process
from tensorop.toolchain import cache
from tests.support import disks

FULL = Path("/dev/full")  # each write to it fails as on a full disk


@pytest.fixture
def silent(tmp_path: Path) -> Iterator[Path]:
    """A file system that starts no programs."""
    with disks.mounted(tmp_path / "noexec", disks.NOEXEC) as place:
        yield place


@pytest.mark.parametrize(("cached", "way"), [(True, "TENSOROP_CACHE"), (False, "--out or TMPDIR")])
def test_the_full_side_of_a_copy_is_named(
    cached: bool, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other side lies in the folder of the job, or in the cache."""
    with disks.mounted(tmp_path / "full") as full:
        here = full if cached else tmp_path / "cache"
        monkeypatch.setenv("TENSOROP_CACHE", str(here))
        source = tmp_path / "object.o"
        source.write_text("code" * 9999)

        def fill(folder: Path) -> cache.BuildLog:
            (full / "ballast").write_bytes(bytes(os.statvfs(full).f_bavail * os.statvfs(full).f_frsize))
            shutil.copyfile(source, folder / "object.o")
            return cache.BuildLog(())

        with pytest.raises(JobError, match=rf"cannot write build results to {full}/.*: No space left") as caught:
            cache.entry("objects", "1234", "object.o", fill, root=None if cached else full / "work")
    assert way in str(caught.value.hint)


def test_a_full_disk_is_not_blamed_on_the_network() -> None:
    with pytest.raises(JobError, match="the disk is full: fetching a wheel") as caught:
        fetching.run(["cp", "/bin/sh", str(FULL)], doing="fetching a wheel", hint="check the network")
    assert not isinstance(caught.value, MissingTool)
    assert "TENSOROP_CACHE" in str(caught.value.hint)
    assert "network" not in str(caught.value.hint)


def test_a_program_that_its_file_system_does_not_start(silent: Path) -> None:
    shutil.copy("/bin/true", silent / "candidate")
    with pytest.raises(MissingTool, match=rf"cannot start ./candidate: {silent} is on a file system mounted noexec"):
        process.run(["./candidate"], timeout_s=10, cwd=silent)
    publish.check_place(silent / "out")  # a product for another machine can be written there
    with pytest.raises(UsageError, match=rf"--out {silent}/a/b is on a file system mounted noexec"):
        publish.check_place(silent / "a" / "b", starts=True)


@pytest.mark.parametrize("which", ["--out", "the cache"])
def test_a_job_that_can_start_nothing_ends_before_any_work(
    which: str, silent: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    out = silent / "out" if which == "--out" else tmp_path / "out"
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache" if which == "--out" else silent / "cache"))
    monkeypatch.setattr(sys, "argv", ["tensorop", "gemm", "--platform", "generic", "--out", str(out)])
    with pytest.raises(SystemExit):
        main()
    assert f"error: {which} {silent}/" in (said := capsys.readouterr().err)
    assert "is on a file system mounted noexec" in said
    assert not out.exists()
    assert not any(path.is_file() for path in silent.rglob("*"))
