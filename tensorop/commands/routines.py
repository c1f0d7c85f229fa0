"""The routines of a product of BLAS: each as an operator that commands compare, and all before the judge."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tensorop.blas import binding, judging
from tensorop.blas.contract import DTYPES, RoutineContract
from tensorop.blas.findings import BlasJudgement
from tensorop.blas.routines import chosen as chosen_functions
from tensorop.blas.routines import routines
from tensorop.commands.opened import Opened
from tensorop.errors import UsageError, unknown_name
from tensorop.model.operator import Operator
from tensorop.model.point import Value
from tensorop.specs import products
from tensorop.specs.products import RoutineSpec
from tensorop.target import Target


def library_of_several(each: Sequence[Opened]) -> Opened:
    """The library with several routines. Raises UsageError if there is none."""
    found = next((one for one in each if len(products.load(one.operator).routines) > 1), None)
    if found is None:
        raise UsageError(
            f"--routines is for libraries of several routines; {each[0].library} has one",
            hint="remove --routines, or make a library of more",
        )
    return found


def of_library(found: Opened, text: str) -> tuple[Opened, ...]:
    """The library once for each routine of a list of names, with or without the letter of a type.

    The operator's own routine is the operator itself. Raises UsageError for a name that the library has not.
    """
    known = products.load(found.operator).routines
    letters = {DTYPES[dtype]: dtype for dtype in found.dtypes}
    chosen: dict[str, list[str]] = {}
    for word in (word.strip().lower() for word in text.split(",")):
        letter, routine = ("", word) if word in known else (word[:1], word[1:])
        if routine not in known or letter not in ("", *letters):
            names = (*known, *(letter + name for name in known for letter in letters))
            raise unknown_name(f"routine of {found.library.name}", word, names)
        chosen.setdefault(routine, []).extend([letters[letter]] if letter else letters.values())
    return tuple(
        replace(found, operator=_operator(found.operator, name, known[name]), dtypes=tuple(dict.fromkeys(dtypes)))
        for name, dtypes in chosen.items()
    )


def judged(
    library: Path, names: str, target: Target, show: Callable[[str], None] = lambda text: None, **how: int
) -> BlasJudgement:
    """The judgement on functions of a library with the standard names, at every VLEN, by 1 and by 2 threads.

    names: as of_library takes them; how: further fields of Judging. Raises as judging.judge.
    """
    found, vlens = binding.find(library), tuple(target.verify_vlens) or (0,)
    functions = chosen_functions(names, "".join(DTYPES.values()))
    held = [one for one in functions if found.layouts(*one)]
    of = judging.Judging(found, held, target.runner, vlens, threads=2, budget_s=0.0, **how)  # type: ignore[arg-type]
    return replace(judging.judge(of, show), remarks=())  # the planned calls are enough, and others would be drawn


def standard(operator: Operator, library: Path) -> Path | None:
    """The library with the standard names, beside that of the operator; None if the operator has none."""
    names = [name for name, one in products.load(operator).libraries.items() if one.routines and one.api]
    return library.with_name(f"lib{names[0]}.so") if names else None


def as_operator(base: Operator, name: str) -> Operator:
    """A routine of a product of BLAS as an operator."""
    return _operator(base, name, products.load(base).routines[name])


def _operator(base: Operator, name: str, spec: RoutineSpec) -> Operator:
    """The routine as an operator, without anything that a search needs."""
    if not spec.suites:
        return base
    reference = RoutineContract.of(routines()[name])
    shapes = reference.shapes
    # a row-major call is the column-major one of other flags; the diagonal takes no time
    one_of = {flag: [*letters][: 1 if flag in ("layout", "diag") else 2] for flag, letters in reference.flags.items()}
    layouts: list[Mapping[str, Value]] = [
        dict(zip(one_of, chosen, strict=True)) for chosen in itertools.product(*one_of.values())
    ]
    return replace(
        base,
        name=name,
        description=spec.computes,
        shapes=shapes,
        layouts=tuple(layouts),
        suites={suite: tuple(map(shapes.of, given)) for suite, given in spec.suites.items()},
        routines={},
        baselines={},
        reference=reference,
        direct=None,
        classes={},
    )
