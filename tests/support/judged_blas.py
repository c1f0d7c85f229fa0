"""Products of `tensorop blas` before the judge of BLAS libraries."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from tensorop.blas import binding, judging, routines
from tensorop.blas.binding import BlasLibrary
from tensorop.blas.findings import BlasJudgement
from tensorop.blas.routines import BlasInterface
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.specs import operators, products

ROUTINES = tuple(products.load(operators.load("blas")).routines)


def judged(library: BlasLibrary, names: str, runner: Runner | None = None, **how: int) -> BlasJudgement:
    """The judgement on some routines. how: further fields of `Judging`"""
    functions = routines.chosen(names, "sd")
    of = judging.Judging(library, functions, runner or Native(), budget_s=0.01, **how)  # type: ignore[arg-type]
    return judging.judge(of, lambda text: None)


def wide(path: Path) -> BlasLibrary:
    """The names with 64-bit integers."""
    found = binding.find(path)
    fortran, cblas = BlasInterface(False, suffix="_64_", wide=True), BlasInterface(True, suffix="_64", wide=True)
    return replace(found, fortran=fortran, cblas=cblas)


def texts(found: BlasJudgement) -> list[str]:
    """The findings in words."""
    return [f"{one.function}: {one.fault}, {one.smallest}, {one.detail}" for one in found.findings]
