"""A product appears whole or not at all, and takes nothing away that is not its own."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest

from tensorop.errors import JobError, UsageError
from tensorop.package import publish
from tensorop.package.product import MANIFEST, Product
from tensorop.report import threads


def _product(text: str = "one", *more: str) -> Product:
    files = {"include/tensorop/op.h": text.encode(), "lib/libtensorop_op.so.0.1.0": b"\x7fELF" + text.encode()}
    files |= dict.fromkeys(more, b"more")
    files[MANIFEST] = json.dumps({"files": dict.fromkeys(files, "sha256:0")}).encode()
    return Product(files, {"lib/libtensorop_op.so": "libtensorop_op.so.0.1.0"}, "lib/libtensorop_op.so")


def _put(folder: Path, product: Product) -> Path:
    return publish.publish(publish.stage(product, folder), folder)


def test_a_product_appears_with_links_and_nothing_beside(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    staged = publish.stage(_product(), folder)
    assert not folder.exists()
    assert staged.library.read_bytes() == b"\x7fELFone"
    publish.publish(staged, folder, extra={"share/tensorop/report.html": b"<html>"}, results={"verified": 5})
    assert os.readlink(folder / "lib/libtensorop_op.so") == "libtensorop_op.so.0.1.0"
    assert json.loads((folder / MANIFEST).read_text())["results"] == {"verified": 5}
    assert (folder / "share/tensorop/report.html").read_bytes() == b"<html>"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_newer_product_replaces_the_old_one_whole_and_keeps_the_run(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    journal = folder / "share/tensorop/journal.jsonl"
    journal.parent.mkdir(parents=True)
    (folder / "work").mkdir()
    (folder / "work/lock").write_text("held")
    with journal.open("a") as run:
        print("first", file=run, flush=True)
        _put(folder, _product("one", "lib/gone.a"))
        print("second", file=run, flush=True)
        _put(folder, _product("two"))
        print("third", file=run, flush=True)
    assert journal.read_text() == "first\nsecond\nthird\n"
    assert (folder / "include/tensorop/op.h").read_text() == "two"
    assert not (folder / "lib/gone.a").exists()
    assert (folder / "work/lock").read_text() == "held"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_newer_product_replaces_what_bench_measured_of_the_old_one(tmp_path: Path) -> None:
    _put(tmp_path / "out", _product("one"))
    measured = tmp_path / "out" / threads.KEPT
    measured.write_text("{}")
    _put(tmp_path / "out", _product("two"))
    assert not measured.exists()


def test_what_others_put_into_the_prefix_is_not_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "prefix"
    _put(folder, _product())
    other = folder / "lib/libother.so"
    other.write_bytes(b"theirs")
    with pytest.raises(JobError, match=r"lib/libother\.so, which tensorop did not write"):
        _put(folder, _product("two"))
    assert (folder / "include/tensorop/op.h").read_text() == "one"
    assert other.read_bytes() == b"theirs"


def test_what_lies_outside_of_the_prefix_folders_stays(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    _put(folder, _product())
    assert (folder / "notes.txt").read_text() == "mine"


def test_a_folder_with_other_files_is_no_place_for_a_product(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "paper").mkdir()
    with pytest.raises(UsageError, match=r"--out .* is in use: .* it contains notes\.txt and 1 more") as caught:
        publish.check_place(tmp_path)
    assert "choose a new folder" in str(caught.value.hint)
    _put(tmp_path, _product())  # a product that is there already stays in use
    publish.check_place(tmp_path)


@pytest.mark.parametrize("there", [(), ("work/lock",), ("share/tensorop/journal.jsonl", "work/lock", "notes.txt")])
def test_an_empty_folder_and_an_unfinished_run_are_places(tmp_path: Path, there: tuple[str, ...]) -> None:
    for name in there:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    publish.check_place(tmp_path)


def test_a_full_disk_leaves_the_old_product(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "out"
    _put(folder, _product())

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(JobError, match="disk is full") as caught:
        _put(folder, _product("two"))
    assert caught.value.hint
    assert (folder / "include/tensorop/op.h").read_text() == "one"
    assert [p.name for p in tmp_path.iterdir()] == ["out"]


def test_a_file_in_the_way_is_named(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("a file")
    with pytest.raises(JobError, match="is a file"):
        publish.stage(_product(), tmp_path / "out")
    with pytest.raises(JobError, match="cannot write the product"):
        publish.stage(_product(), tmp_path / "out" / "below")
