"""Checks of an operator that need a compiler and a target: builds its product around single kernels and calls it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensorop.commands.operator_read import pairs
from tensorop.errors import BoardError, JobError, MissingTool, SpecError
from tensorop.model.kernel import KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.package.product import product
from tensorop.package.sources import OperatorPart
from tensorop.render import adapting, instantiate
from tensorop.render.render import RenderError
from tensorop.render.texts import Texts
from tensorop.runners import session
from tensorop.runners.protocol import TargetLibrary
from tensorop.runners.session import Guest
from tensorop.specs import products
from tensorop.target import Target
from tensorop.trial import judging
from tensorop.trial.evaluator import Evaluator, Prepared
from tensorop.verify import grid
from tensorop.verify.controls import ControlRun, controls
from tensorop.verify.subject import Subject

POINTS = 8  # configurations of a template, spread over its space; one of them must build
CASES = 8  # verification calls of the library and of the candidate in it


def built(
    operator: Operator,
    target: Target,
    dtypes: Sequence[str],
    work: Path,
    jobs: int = 2,
    seed: Seed | None = None,
) -> None:
    """Builds a candidate of each dtype, the adapter and a product of these candidates, and calls it on the target.

    work: an existing folder
    Raises SpecError for the first failure, MissingTool, BoardError.
    """
    seed = seed or Seed.draw()
    evaluators = _evaluators(operator, target, dtypes, work, seed)
    adapter = operator.folder / "adapter.c"
    with _building(adapter):
        program = adapting.program(target.platform, operator).path
    chosen: dict[str, tuple[Variant, Path]] = {}
    for dtype, evaluator in evaluators.items():
        found = _candidate(evaluator, [template for _, template in pairs(operator, target.platform, (dtype,))])
        if found is not None:
            chosen[dtype] = found
    if not chosen:
        return
    winners = [Winners(dtype, (variant,), (Tree(_every(operator), None),)) for dtype, (variant, _) in chosen.items()]
    with _building(operator.folder / products.FOLDER):
        made = product(target.platform, [OperatorPart(operator, winners, texts=evaluators[dtypes[0]].texts)], jobs=jobs)
    whole = made.links[made.library]
    library = work / whole
    library.write_bytes(made.files[f"lib/{made.links.get(f'lib/{whole}', whole)}"])
    for dtype, (variant, candidate) in chosen.items():
        guest = Guest(libraries=(TargetLibrary(target.runner.place(library), "tensorop", dtype),))
        with _building(adapter):
            session.hello(target.runner, program, guest=guest)
        _alike(evaluators[dtype], variant, candidate, Subject(target.runner, program, guest))


def honest(operator: Operator, target: Target, dtypes: Sequence[str]) -> None:
    """Judges the first honest control. Raises JobError if verification rejects it."""
    run = ControlRun(operator, target.platform, target.runner, Seed.draw())
    for control in controls(operator):
        for dtype in dtypes:
            if control.honest and control.applies(target.platform, dtype):
                run.require_expected(control, run.judge(control, dtype))
                return


def _every(operator: Operator) -> Leaf | Split:
    """A dispatch tree that tests every feature, so that the C of each feature is compiled."""
    root: Leaf | Split = Leaf(0)
    for name in operator.features:
        root = Split(name, 1, Leaf(0), root)
    return root


def each(operator: Operator, target: Target, dtypes: Sequence[str], work: Path) -> None:
    """Builds a candidate of each template, for the first dtype that it supports.

    Raises SpecError for the first template without a candidate that builds.
    """
    first: dict[str, tuple[str, KernelTemplate]] = {}
    for dtype, template in pairs(operator, target.platform, dtypes):
        first.setdefault(template.name, (dtype, template))
    evaluators = _evaluators(operator, target, dtypes, work, Seed.draw())
    for dtype, template in first.values():
        _candidate(evaluators[dtype], [template])


def _evaluators(
    operator: Operator, target: Target, dtypes: Sequence[str], work: Path, seed: Seed
) -> dict[str, Evaluator]:
    """By dtype: an evaluator that builds and calls candidates as the blocking stage of a search does."""
    texts = Texts()
    runs = (StageRun(dtype, Stage.BLOCKING, (), seed) for dtype in dtypes)
    return {run.dtype: Evaluator(operator, target, run, work, texts) for run in runs}


def _candidate(evaluator: Evaluator, of: Sequence[KernelTemplate]) -> tuple[Variant, Path] | None:
    """The first variant of these templates that builds, with its program; None if no template has a legal point.

    Raises SpecError if no variant builds.
    """
    operator, platform, dtype = evaluator.operator, evaluator.target.platform, evaluator.run.dtype
    failed = ""
    for template in of:
        try:
            space = instantiate.micro_space(platform, template, dtype)
        except JobError:
            continue
        for point in judging.chosen(template, space, POINTS):
            full = instantiate.defaults(operator, platform, dtype, point)
            variant = instantiate.variant(operator, template, dtype, full)
            made = evaluator.prepare(Trial("check", 0, Stage.BLOCKING, variant))
            if isinstance(made, Prepared):
                return variant, made.program
            fault = f"{made.outcome.message}\n{made.outcome.log}".rstrip()
            failed = failed or f"around template '{template.name}' at {point}: {fault}"
    if failed:
        raise SpecError(
            f"{operator.folder}: no {dtype} candidate could be built; the first one failed: candidate.c.j2 {failed}"
        )
    return None


def _alike(evaluator: Evaluator, variant: Variant, candidate: Path, library: Subject) -> None:
    """Raises SpecError if the library computes a wrong result and its candidate does not."""
    operator, target, seed = evaluator.operator, evaluator.target, evaluator.run.seed
    vlen = target.verify_vlens[0]
    tile = instantiate.tile(operator, target.platform, variant.kernel, vlen)
    cases = operator.reference.quick_grid(variant.kernel.dtype, tile, seed.stream(0))[:CASES]
    if not grid.check(operator.reference, evaluator.subject(variant, candidate), cases, vlen, seed).ok:
        return  # the candidate's own trial reports its fault
    of_library = grid.check(operator.reference, library, cases, vlen, seed)
    if not of_library.ok:
        raise SpecError(
            f"{operator.folder}: the kernel passes but the library fails, so the fault is in adapter.c or product/: "
            f"{of_library.outcome.message}"
        )


@contextlib.contextmanager
def _building(place: Path) -> Iterator[None]:
    """Turns a failure in the block into a SpecError for this file or folder. MissingTool and BoardError pass."""
    try:
        yield
    except (MissingTool, BoardError):
        raise
    except (JobError, RenderError) as error:
        raise SpecError(f"{place}: {error.message}") from None
