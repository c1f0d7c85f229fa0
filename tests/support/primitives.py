"""What the tests of primitive sets share: a set executed, and its broken meanings held against the answers."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.commands import check_primitives
from tensorop.model.kernel import Artifact
from tensorop.model.number import NUMBERS
from tensorop.model.platform import Platform
from tests.support.mutants import mutants


def executed(platform: Platform, dtype: str, chosen: Mapping[str, int], vlen: int) -> check_primitives.PrimitiveRun:
    """All primitives of the platform's first set at one VLEN."""
    primitives = platform.primitives_of(dtype, chosen)
    table, program = check_primitives.build(platform, primitives, vlen)
    assert isinstance(program, Artifact), program
    return check_primitives.execute(platform, primitives, table, program, vlen)


def undetected(run: check_primitives.PrimitiveRun) -> list[str]:
    """Broken meanings that pass; and how many there were is in the list's place when none was tried."""
    lanes = run.cases[0].numbers["lanes"]
    out: list[str] = []
    for primitive in run.primitives.by_name.values():
        broken = list(mutants(primitive, lanes))
        if primitive.name == "zero" and NUMBERS[run.primitives.formats.accumulator].whole:
            broken.remove(f"-({primitive.meaning})")  # integers have one zero
        assert broken, f"{primitive.name} has no broken meaning"
        out += [
            f"{primitive.name}: {m}" for m in broken if not list(check_primitives.complaints(run, {primitive.name: m}))
        ]
    return out
