"""Plug-ins of a user's own folder are like those shipped: no edit of the core, no installation."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tensorop.cli.main import main
from tests.support import plugins
from tests.support.commands import ROOT, events, tensorop

NAMES = {"platforms": "my-board", "primitives": plugins.PRIMITIVES, "operators": "axpy", "tuners": "backwards"}


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return plugins.write(tmp_path_factory.mktemp("own"), ROOT)


def said(words: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    monkeypatch.setattr(sys, "argv", ["tensorop", *words])
    main()
    return capsys.readouterr().out


@pytest.mark.parametrize(("group", "name"), NAMES.items())
def test_list_and_show(
    group: str, name: str, own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = said([group, "list", "--plugins", str(own)], monkeypatch, capsys)
    assert re.search(rf"^{name} ", listed, re.MULTILINE)
    assert name in said([group, "show", name, "--plugins", str(own)], monkeypatch, capsys)


def test_check(own: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert "each once" in said(["tuners", "check", NAMES["tuners"], "--plugins", str(own)], monkeypatch, capsys)


def test_check_of_an_operator_names_all_of_its_faults(own: Path) -> None:
    ended = tensorop("operators", "check", "axpy", "--plugins", own, cwd=own)
    assert ended.status == 1
    faults = [line for line in ended.stdout.splitlines() if line.startswith("FAIL ")]
    expected = (
        "kernel.c.j2: missing",
        "product.yaml: expected",
        "binding.py: expected",
        "controls has no",
        "'quick_grid': expected",
    )
    assert len(faults) == len(expected)
    assert all(part in fault for part, fault in zip(expected, faults, strict=True))


def test_an_operator_of_ones_own_is_a_command_and_searched(own: Path, tmp_path: Path) -> None:
    words = ("axpy", "--plugins", own, "--platform", "my-board", "--tuner", "backwards", "--runner", "null")
    ended = tensorop(*words, "--shapes", "1000,4096", "--trials", "8", "--out", "out", "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert ended.json()["library"] is None
    found = events(tmp_path / "out", "started")
    assert {record["stage"] for record in found} == {"micro", "blocking"}
    assert {record["dtype"] for record in found} == {"f32", "f64"}
