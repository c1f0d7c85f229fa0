"""The page about KernelBench names each problem once, and its numbers add up."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reference" / "kernelbench.md").read_text()
FILES = {1: 100, 2: 100, 3: 50}


def problems(cell: str) -> list[int]:
    pairs = (part.partition("-") for part in cell.split(", "))
    return [number for low, _, high in pairs for number in range(int(low), int(high or low) + 1)]


def rows(text: str) -> list[tuple[int, list[int], int]]:
    cells = ([cell.strip() for cell in line.split("|")] for line in text.splitlines() if line.startswith("| "))
    return [(int(one[1]), problems(one[2]), int(one[3])) for one in cells if one[1].isdigit()]


def test_each_problem_is_named_once_and_the_counts_add_up() -> None:
    found = rows(PAGE)
    assert [many for _, of, many in found] == [len(of) for _, of, _ in found]
    named = Counter((level, number) for level, of, _ in found for number in of)
    assert named == Counter((level, number) for level, most in FILES.items() for number in range(1, most + 1))
    served = sum(many for _, _, many in rows(PAGE.partition("## Not served")[0]))
    assert f"can serve: {served} of the {sum(FILES.values())} of levels 1 to 3" in PAGE
