"""The reference pages are what docs/generate/reference.py writes of today's code."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = (
    "cli.md",
    "python.md",
    "c-api.md",
    "environment.md",
    "exit-statuses.md",
    "journal.md",
    "manifest.md",
    "bench-json.md",
    "supported.md",
)


@cache
def program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "generate" / "reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_all_pages_are_compared() -> None:
    assert tuple(program().PAGES) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_that_of_the_code(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["tensorop"])  # where --plugins would be looked for
    same = program().PAGES[page]() == (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert same, f"docs/reference/{page} is not that of the code; write it again: make reference"
