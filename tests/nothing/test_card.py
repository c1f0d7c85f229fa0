"""The provenance card's way through a C string and a file."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tensorop.errors import JobError, UsageError
from tensorop.package import card

FACTS = {
    "schema": 1,
    "quote": '"\\',
    "trigraph": "??/",
    "letters": "\u00e9\u4e2d",
    "number": 1.5,
    "none": None,
    "long": "x" * 500,
}


def _bytes(literal: str) -> bytes:
    """What a C compiler makes of the literal; Python reads the same escapes but '\\?'."""
    return (
        "".join(ast.literal_eval(line.replace("\\?", "?")) for line in literal.splitlines()).encode("latin-1") + b"\0"
    )


def test_card_comes_back_from_a_file(tmp_path: Path) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(b"\x7fELF junk" + _bytes(card.literal(card.text(FACTS))) + b"more junk")
    assert card.read_card(file) == FACTS


def test_the_literal_is_plain_ascii_in_short_lines() -> None:
    lines = card.literal(card.text(FACTS)).splitlines()
    assert all(line.isascii() and len(line) < 400 and line[0] == line[-1] == '"' for line in lines)


@pytest.mark.parametrize("content", [b"", b"\x7fELF and no card", card.MARKER.encode("latin-1")[:-1]])
def test_a_file_without_a_card_is_named(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "other.so"
    file.write_bytes(content)
    with pytest.raises(UsageError, match=r"other\.so contains no provenance card"):
        card.read_card(file)


@pytest.mark.parametrize("rest", [b'{"cut": ', b'{"cut": \0', b"[]\0"])
def test_a_damaged_card_is_said_to_be(tmp_path: Path, rest: bytes) -> None:
    file = tmp_path / "lib.so"
    file.write_bytes(card.MARKER.encode("latin-1") + rest)
    with pytest.raises(JobError, match="damaged"):
        card.read_card(file)


def test_a_missing_file_is_a_wrong_request(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        card.read_card(tmp_path / "absent.so")
