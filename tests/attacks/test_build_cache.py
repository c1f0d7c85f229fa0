"""A build cache whose entries are torn, changed or somebody else's: what lies there is made again before it is run."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tensorop.errors import JobError
from tensorop.model.kernel import Artifact
from tensorop.toolchain import cache
from tensorop.toolchain.cache import BuildLog


def fill(folder: Path) -> BuildLog:
    (folder / "program").write_text("right")
    return BuildLog(("cc", "-o", "program"), "a log")


def entry(root: Path) -> Artifact:
    found = cache.entry("programs", cache.key_of("x"), "program", fill, root=root)
    assert isinstance(found, Artifact)
    return found


def _replace_by_link(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")
    folder.symlink_to(folder.parent / "elsewhere")
    (folder / "program").write_text("wrong")


def _file_to_link(folder: Path) -> None:
    (folder.parent / "evil").write_text("right")
    (folder / "program").unlink()
    (folder / "program").symlink_to(folder.parent / "evil")


DAMAGE: dict[str, Callable[[Path], object]] = {
    "cut": lambda folder: (folder / "program").write_text("righ"),
    "empty": lambda folder: (folder / "program").write_text(""),
    "other": lambda folder: (folder / "program").write_text("wrong"),
    "gone": lambda folder: (folder / "program").unlink(),
    "without digest": lambda folder: (folder / "sha256.txt").unlink(),
    "empty digest": lambda folder: (folder / "sha256.txt").write_text(""),
    "digest of bytes": lambda folder: (folder / "sha256.txt").write_bytes(b"\xff\xfe"),
    "without command": lambda folder: (folder / "command.txt").unlink(),
    "other command": lambda folder: (folder / "command.txt").write_text("cc '"),
    "other log": lambda folder: (folder / "log.txt").write_bytes(b"\xff"),
    "anybody's": lambda folder: folder.chmod(0o777),
    "a link to it": _replace_by_link,
    "a link in it": _file_to_link,
}


@pytest.mark.parametrize("name", DAMAGE)
def test_a_damaged_entry_is_made_again(name: str, tmp_path: Path) -> None:
    folder = entry(tmp_path).path.parent
    DAMAGE[name](folder)
    found = entry(tmp_path)
    assert found.path.read_text() == "right"
    assert found.command == ("cc", "-o", "program")
    assert found.log == "a log"
    assert not found.path.is_symlink()
    assert not found.path.parent.is_symlink()
    assert not found.path.parent.stat().st_mode & 0o022


def test_a_sound_entry_is_taken(tmp_path: Path) -> None:
    before = entry(tmp_path).path.stat().st_ino
    assert entry(tmp_path).path.stat().st_ino == before


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give a folder to somebody else")
def test_an_entry_of_somebody_else_is_made_again(tmp_path: Path) -> None:
    folder = entry(tmp_path).path.parent
    (folder / "program").write_text("wrong")
    os.chown(folder, 12345, 12345)
    assert entry(tmp_path).path.read_text() == "right"
    assert folder.stat().st_uid == 0


def test_who_has_no_room_hears_of_the_folder_that_lacks_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full = tmp_path / "full"
    full.write_text("no folder")
    with pytest.raises(JobError, match="cannot write build results") as caught:
        entry(full)
    assert caught.value.hint == "free disk space, or choose another --out or TMPDIR"
    monkeypatch.setenv("TENSOROP_CACHE", str(full))
    with pytest.raises(JobError) as caught:
        cache.entry("programs", cache.key_of("x"), "program", fill)
    assert "TENSOROP_CACHE" in (caught.value.hint or "")
