"""What the tests of primitive sets share: a set executed, and its broken meanings held against the answers."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.commands import check_primitives
from tensorop.model.kernel import Artifact
from tensorop.model.number import NUMBERS
from tensorop.model.platform import Platform
from tests.support.mutants import mutants


def executed(platform: Platform, dtype: str, chosen: Mapping[str, int], vlen: int) -> check_primitives.Run:
    """All words of the platform's first set at one VLEN."""
    words = platform.vocabulary(dtype, chosen)
    table, program = check_primitives.build(platform, words, vlen)
    assert isinstance(program, Artifact), program
    return check_primitives.execute(platform, words, table, program, vlen)


def undetected(run: check_primitives.Run) -> list[str]:
    """Broken meanings that pass; and how many there were is in the list's place when none was tried."""
    lanes = run.cases[0].numbers["lanes"]
    out: list[str] = []
    for word in run.vocabulary.words.values():
        broken = list(mutants(word, lanes))
        if word.name == "zero" and NUMBERS[run.vocabulary.formats.sums].whole:
            broken.remove(f"-({word.meaning})")  # integers have one zero
        assert broken, f"{word.name} has no broken meaning"
        out += [f"{word.name}: {m}" for m in broken if not list(check_primitives.complaints(run, {word.name: m}))]
    return out
