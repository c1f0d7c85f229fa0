"""Edits in a model's answer are applied exactly, or refused with the reason."""

from __future__ import annotations

import pytest

from tensorop.author.llm.edits import edited
from tensorop.errors import SpecError

TEXT = "one\ntwo\n  three\ntwo and a half\n"


def block(search: str, by: str) -> str:
    return f"<<<<<<< SEARCH\n{search}\n=======\n{by}\n>>>>>>> REPLACE\n"


def test_an_answer_without_edits_has_none() -> None:
    assert edited("```\nsome text\n```", TEXT) is None


def test_edits_apply_in_their_order() -> None:
    answer = f"I change two things.\n```\n{block('  three', '  3')}```\nand\n{block('one', '1')}{block('1', 'first')}"
    assert edited(answer, TEXT) == "first\ntwo\n  3\ntwo and a half\n"
    assert edited(answer.replace("\n", "\r\n"), TEXT) == "first\ntwo\n  3\ntwo and a half\n"
    assert edited(block("  three\ntwo and", "and"), TEXT) == "one\ntwo\nand a half\n"
    assert edited("<<<<<<< SEARCH\none\n=======\n>>>>>>> REPLACE", TEXT) == "\ntwo\n  three\ntwo and a half\n"


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (block("four", "4"), "is not in the template: 'four'"),
        (block("two", "2"), "is 2 times in the template: 'two'"),
        (block("three ", "3"), "is not in the template"),
        (block("", "3"), "empty"),
        ("<<<<<<< SEARCH\none\n=======\n1\n", "lacks"),
        ("<<<<<<< SEARCH\none\n>>>>>>> REPLACE\n", "lacks"),
        ("<<<<<<< SEARCH\none\n>>>>>>> REPLACE\n=======\n", "lacks"),
    ],
)
def test_what_does_not_apply_is_refused(answer: str, why: str) -> None:
    with pytest.raises(SpecError, match=why):
        edited(answer, TEXT)
