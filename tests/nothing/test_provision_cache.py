"""The cache: filled once, never half, and honest when it must not fetch."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tensorop import errors
from tensorop.provision import cache

COMMAND = "python -m tensorop.provision thing"


def _entry(folder: Path, text: str = "payload", offline: bool | None = None) -> Path:
    def fill(scratch: Path) -> None:
        (scratch / "sub").mkdir()
        (scratch / "sub/file").write_text(text)
        (scratch / "link").symlink_to("sub/file")

    return cache.CacheEntry(folder, fill, what="the thing", command=COMMAND).bring(offline=offline)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("TENSOROP_OFFLINE", raising=False)
    return cache.entry_path("kind", "thing-1")


def test_a_whole_entry_is_not_filled_again(folder: Path) -> None:
    assert (_entry(folder) / "link").read_text() == "payload"
    assert (_entry(folder, "other") / "sub/file").read_text() == "payload"


@pytest.mark.parametrize("damage", ["short", "gone", "extra", "unlisted"])
def test_a_torn_entry_is_a_miss(folder: Path, damage: str) -> None:
    _entry(folder)
    match damage:
        case "short":
            (folder / "sub/file").write_text("pay")
        case "gone":
            (folder / "link").unlink()
        case "extra":
            (folder / "stray").write_text("?")
        case "unlisted":
            (folder / cache.LIST).write_text('{"sub/fi')
    assert not cache.is_whole(folder)
    assert (_entry(folder, "again!!") / "sub/file").read_text() == "again!!"
    assert cache.is_whole(folder)


def test_offline_names_the_piece_and_the_command(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TENSOROP_OFFLINE", "1")
    with pytest.raises(errors.MissingTool, match="the thing is not in the cache") as caught:
        _entry(folder)
    assert str(folder) in caught.value.message
    assert COMMAND in str(caught.value.hint)
    assert not folder.exists()
    assert _entry(folder, offline=False).is_dir()
    assert _entry(folder, offline=True).is_dir()


def test_a_failed_fill_leaves_nothing(folder: Path) -> None:
    def fill(scratch: Path) -> None:
        (scratch / "half").write_text("x")
        raise errors.MissingTool("no network")

    with pytest.raises(errors.MissingTool, match="no network"):
        cache.CacheEntry(folder, fill, what="the thing", command=COMMAND).bring()
    assert [p.name for p in folder.parent.iterdir() if not p.name.endswith(".lock")] == []


def test_an_unwritable_cache_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "file/cache"))
    with pytest.raises(errors.JobError, match="cannot write the thing into the cache") as caught:
        _entry(cache.entry_path("thing"))
    assert "TENSOROP_CACHE" in str(caught.value.hint)


def test_two_who_ask_at_once_fill_once(folder: Path) -> None:
    fills = []

    def fill(scratch: Path) -> None:
        fills.append(scratch)
        time.sleep(0.1)
        (scratch / "file").write_text("x")

    def ask() -> None:
        cache.CacheEntry(folder, fill, what="the thing", command=COMMAND).bring()

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(fills) == 1
    assert cache.is_whole(folder)
