"""The kernel template of docs/how-to/write-a-kernel-template.md, in a folder of the user's own."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tensorop as package
from tests.support.commands import ROOT, events, refused, tensorop

PAGE = ROOT / "docs" / "how-to" / "write-a-kernel-template.md"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """A plug-in folder with the page's example alone."""
    text = re.search(r"```jinja\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert text is not None
    templates = tmp_path / "own" / "templates" / "gemm" / "kernels"
    templates.mkdir(parents=True)
    (templates / "plain.c.j2").write_text(text[1])
    return tmp_path / "own"


@pytest.mark.extended
def test_documented_templates_join_the_search_and_one_of_a_shipped_name_stands_in_its_place(
    own: Path, tmp_path: Path
) -> None:
    templates = own / "templates" / "gemm" / "kernels"
    text = (templates / "plain.c.j2").read_text()
    assert "mr_vectors: [1, 2, 3, 4]" in text
    (templates / "outer.c.j2").write_text(text.replace("mr_vectors: [1, 2, 3, 4]", "mr_vectors: [1, 2, 3, 4, 5]"))
    (templates / "again.c.j2").write_text(text)
    words = ("gemm", "--plugins", own, "--platform", "generic", "--dtype", "f32", "--shapes", "24x17x33")
    ended = tensorop(*words, "--trials", "10", "--seed", "1", "--out", "out", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert "template 'plain' has the same content as another template and is skipped" in ended.stderr
    assert f"{templates}/outer.c.j2: stands before the shipped template of this name" in ended.stderr.replace("\n", "")
    told = {record["digest"]: record["template"] for record in events(tmp_path / "out", "template")}
    begun = {record["key"]: told[record["template"]] for record in events(tmp_path / "out", "started")}
    outcomes = {(begun[e["key"]]["name"], e["outcome"]["kind"]) for e in events(tmp_path / "out", "finished")}
    assert {kind for name, kind in outcomes if name in ("again", "outer")} == {"ok"}
    assert {"outer", "dot", "again"} <= {name for name, _ in outcomes}
    strategies = {template["name"]: template["strategy"] for template in begun.values()}
    assert strategies["outer"] == strategies["again"] != strategies["dot"]
    a, b = np.ones((5, 7), np.float32), np.full((7, 3), 2, np.float32)
    assert np.array_equal(package.load(tmp_path / "out").gemm(a, b), np.full((5, 3), 14, np.float32))


def test_a_broken_one_is_named_by_its_file(own: Path, tmp_path: Path) -> None:
    path = own / "templates" / "gemm" / "kernels" / "plain.c.j2"
    path.write_text(path.read_text().replace("tunables:", "tunabels:", 1))
    message = refused("gemm", "--plugins", own, "--platform", "native", "--out", "out", cwd=tmp_path)
    assert f"{path}: template 'plain': " in message
    assert "unknown key 'tunabels'; did you mean 'tunables'?" in message
    assert "negative controls" not in message  # said before anything is built
    assert not (tmp_path / "out").exists()
