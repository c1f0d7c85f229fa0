"""Every promise of docs/explanation/security.md names the test that shows it, and that test exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
PAGE = (TESTS.parent / "docs" / "explanation" / "security.md").read_text(encoding="utf-8")
NAMED = re.compile(r"`((?:attacks|compiler|emulator|nothing)/test_\w+\.py)(?:::(\w+))?`")
NO_PROMISES = "| trusted | not trusted |"  # the table that promises nothing


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
    assert len(tables(PAGE)) > 8
    for head, _, *rows in tables(PAGE):
        if head != NO_PROMISES:
            assert head.endswith("| test |"), head
            assert [row for row in rows if not NAMED.search(row.split("|")[-2])] == []


def test_the_page_begins_with_a_short_answer_and_five_rows_of_promises() -> None:
    title, _, rest = PAGE.partition("\n")
    answer, _, _ = rest.partition("\n| ")
    assert title == "# Security"
    assert re.findall(r"^\d", answer, re.MULTILINE) == list("12345")
    head, _, *rows = tables(PAGE)[0]
    assert (head, len(rows)) == ("| target | untrusted kernels | promised | not promised | test |", 5)
