"""The reference pages are what docs/generate/reference.py writes of today's code."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
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
    "platform-yaml.md",
    "template.md",
)


@pytest.fixture(scope="module")
def program() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "docs" / "generate")
        patch.setattr("sys.argv", ["tensorop"])  # where --plugins would be looked for
        yield importlib.import_module("reference")


def test_all_pages_are_compared(program: ModuleType) -> None:
    assert tuple(program.PAGES) == PAGES


@pytest.mark.parametrize("page", PAGES)
def test_a_page_is_that_of_the_code(page: str, program: ModuleType) -> None:
    same = program.PAGES[page]() == (ROOT / "docs" / "reference" / page).read_text(encoding="utf-8")
    assert same, f"docs/reference/{page} is not that of the code; write it again: make reference"
