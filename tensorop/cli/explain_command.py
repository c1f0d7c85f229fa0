"""`explain`: shows which variant of a library serves a shape, and why."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

from tensorop import tuning
from tensorop.cli import screen, tables
from tensorop.cli.command import Format, Layout, LibraryPath, Plugins, Routines, command
from tensorop.commands import explain as explaining
from tensorop.commands import opened, routine_products
from tensorop.commands import routines as of_routines
from tensorop.commands.opened import Opened
from tensorop.errors import JobError, UsageError
from tensorop.model.option import Option
from tensorop.model.problem import Problem
from tensorop.space import problems


@command(
    "explain build/gemm-rvv 64x64x64",
    "explain build/gemm-rvv 96x32x200 --dtype f64 --layout 1 --vlen 256",
    "explain build/gemm-native 1000x16x1000 --threads 4 --format json",
    "explain build/blas 64x960 --routines dtrsm",
)
def explain(
    path: LibraryPath,
    shape: Annotated[str, Option(metavar="SHAPE|@FILE", positional=True)],
    dtype: Annotated[
        str, Option("Explain the choice for this type.", "NAME", "f64", shown="the library's first type")
    ] = "",
    routines: Routines = None,
    layout: Layout = 0,
    vlen: Annotated[int, Option("Explain it for vectors of N bits.", "N", "256", shown="the shortest tuned ones")] = 0,
    threads: Annotated[int, Option("Explain it for N threads.", "N", "4", least=1, most=1024)] = 1,
    plugins: Plugins = (),
    format_: Format = "table",
) -> None:
    """Show which variant of a library serves a shape, why, and what the others cost.

    The rule is the one that the library itself follows. Predicted costs come from the cost models that its decision
    tree was made with. Measured costs are those of the search, if it measured this shape. A GPU library takes the least
    cost of its model, corrected by its kits. A file, as in --shapes @FILE, explains each of its shapes in turn.

    With --routines, the library makes one call of each routine, and you see the products that it consists of.

    Exit status: 0 done, 2 wrong usage, or a product without a readable journal: then you see the rule without costs.
    """
    try:
        found = opened.open_product(path, plugins)
    except JobError as error:
        raise UsageError(error.message, hint=error.hint) from None
    if routines is not None:
        several = of_routines.of_library(of_routines.library_of_several([found]), routines)
        each = [
            routine_products.explain(one, problem, vlen, threads)
            for one in several
            for problem in _problems(one, shape, dtype, layout)
        ]
        screen.answer(format_, [asdict(one) for one in each], lambda: [*map(tables.show_routine, each)])
        return
    wanted = _problems(found, shape, dtype, layout)
    answers = [explaining.explain(found, problem, vlen, threads) for problem in wanted]
    records = [asdict(answer) for answer in answers]
    screen.answer(format_, records if "@" in shape else records[0], lambda: [*map(tables.show_explanation, answers)])
    if (one := next((answer for answer in answers if answer.lacking), None)) is not None:
        hint = f"variant and rule are as in the library; {one.remedy}"
        raise UsageError(f"the costs of the variants are unknown: {one.lacking}", hint=hint)


def _problems(found: Opened, shape: str, dtype: str, layout: int) -> list[Problem]:
    """The problems of a shape or of the calls in a file. Raises UsageError for several shapes or types."""
    operator = found.operator
    listed = tuning.listed(operator, shape)
    usual = tuple(of for of in found.dtypes if of in listed.dtypes) or found.dtypes[:1]
    dtypes = tuning.dtypes(operator, dtype or usual, found.dtypes)
    if not listed.calls and (len(listed.shapes) > 1 or len(dtypes) > 1):
        got = f"explain takes one shape and one element type; got {shape} and {', '.join(dtypes)}"
        raise UsageError(got, hint=f"e.g. {operator.example} --dtype {dtypes[0]}, or @FILE for all shapes of a file")
    number = problems.require_layout(operator, layout)
    wanted = [
        problem
        for of in found.only(dtypes).dtypes
        for problem in problems.asked(operator, of, listed.shapes, listed, number)
    ]
    if not wanted:
        called = ", ".join(listed.dtypes)
        raise UsageError(f"{shape} has calls of {called}; got {', '.join(dtypes)}", hint="add --dtype NAME")
    return wanted
