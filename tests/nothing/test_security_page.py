"""Every promise of docs/explanation/security.md names the test that shows it, and that test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:attacks|compiler|emulator|nothing)/test_\w+\.py)(?:::(\w+))?`")
# Tables that promise nothing: whom tensorop trusts, and what a run of benchmarks/attack_run.py ended with.
NO_PROMISES = ("| trusted | not trusted |", "| outcomes, as root and as user 4242 alike | native | neon | rvv |")


def tables(page: str) -> list[list[str]]:
    """Each table's lines: its head, the line below it, its rows."""
    return [block.splitlines() for block in re.findall(r"(?:^\|.*\n)+", page, re.MULTILINE)]


def test_each_test_that_the_page_names_exists() -> None:
    named = NAMED.findall(PAGE)
    assert len(named) > 100
    functions = {}
    for file in {file for file, _ in named}:
        assert (TESTS / file).is_file(), file
        tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
        functions[file] = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert [f"{file}::{name}" for file, name in named if name and name not in functions[file]] == []
    assert [
        word for word in re.findall(r"`([\w/]*test_\w+\.py[\w:]*)`", PAGE) if not NAMED.fullmatch(f"`{word}`")
    ] == []


def test_each_row_of_a_table_names_its_test() -> None:
    assert len(tables(PAGE)) > 10
    for head, _, *rows in tables(PAGE):
        if head not in NO_PROMISES:
            assert head.endswith("| test |"), head
            assert [row for row in rows if not NAMED.search(row.split("|")[-2])] == []


def test_the_page_begins_with_five_rows_of_promises() -> None:
    title, blank, head, _, *rows = PAGE.splitlines()[:10]
    assert (title[:2], blank, head) == ("# ", "", "| where | promised | not promised | test |")
    assert [row.startswith("| ") for row in rows] == [True] * 5 + [False]
