"""An operator's product built once around single kernels, and called: what only a compiler and a target find out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from numbers import Integral
from pathlib import Path

from tensorop.build import harness
from tensorop.commands.operator_read import pairs
from tensorop.errors import BoardError, JobError, MissingTool, SpecError
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Outcome
from tensorop.model.verdict import Seed
from tensorop.model.winner import Leaf, Split, Tree, Winners
from tensorop.package.product import product
from tensorop.package.sources import OperatorPart
from tensorop.render import instantiate
from tensorop.render.render import RenderError
from tensorop.render.texts import Texts
from tensorop.runners import session
from tensorop.runners.protocol import Library
from tensorop.runners.session import Guest
from tensorop.space import seeds
from tensorop.specs import products
from tensorop.target import Target
from tensorop.trial import judging
from tensorop.trial.trial import COMPILE_TIMEOUT_S
from tensorop.verify import grid
from tensorop.verify.controls import ControlRun, controls
from tensorop.verify.subject import Subject

POINTS = 8  # of a template, spread over its space, one of which must build
CASES = 8  # calls of the library, and of the candidate that it is made of


def built(
    operator: Operator,
    target: Target,
    dtypes: Sequence[str],
    work: Path,
    jobs: int = 2,
    seed: Seed | None = None,
) -> None:
    """Builds one candidate of each dtype, the adapter and the whole product around these candidates, and calls it on
    the target. work: a folder that exists. Raises SpecError for the first that fails, MissingTool, BoardError."""
    texts, seed = Texts(), seed or Seed.draw()
    adapter = operator.folder / "adapter.c"
    with _building(adapter):
        program = harness.of_operator(target.platform, operator).path
    chosen: dict[str, tuple[Variant, Path]] = {}
    for dtype in dtypes:
        of_dtype = [template for _, template in pairs(operator, target.platform, (dtype,))]
        found = _candidate(operator, target, dtype, of_dtype, texts, work)
        if found is not None:
            chosen[dtype] = found
    if not chosen:
        return
    winners = [Winners(dtype, (variant,), (Tree(_every(operator), None),)) for dtype, (variant, _) in chosen.items()]
    with _building(operator.folder / products.FOLDER):
        made = product(target.platform, [OperatorPart(operator, winners, texts=texts)], jobs=jobs)
    whole = made.links[made.library]
    library = work / whole
    library.write_bytes(made.files[f"lib/{made.links.get(f'lib/{whole}', whole)}"])
    for dtype, (variant, candidate) in chosen.items():
        guest = Guest(libraries=(Library(target.runner.place(library), "tensorop", dtype),))
        with _building(adapter):
            session.hello(target.runner, program, guest=guest)
        of_library = Subject(target.runner, program, guest)
        _alike(operator, target, variant, _subject(operator, target, variant, candidate), of_library, seed)


def honest(operator: Operator, target: Target, dtypes: Sequence[str]) -> None:
    """Judges the first honest control. Raises JobError where it is refused."""
    run = ControlRun(operator, target.platform, target.runner, Seed.draw())
    for control in controls(operator):
        for dtype in dtypes:
            if control.honest and control.applies(target.platform, dtype):
                run.require_expected(control, run.judge(control, dtype))
                return


def _every(operator: Operator) -> Leaf | Split:
    """A tree that asks for every feature, so that the C of each is compiled."""
    root: Leaf | Split = Leaf(0)
    for name in operator.features:
        root = Split(name, 1, Leaf(0), root)
    return root


def each(operator: Operator, target: Target, dtypes: Sequence[str], work: Path) -> None:
    """Builds a candidate of each template, for the first dtype that it serves. Raises SpecError for the first template
    of which none builds."""
    first: dict[str, tuple[str, KernelTemplate]] = {}
    for dtype, template in pairs(operator, target.platform, dtypes):
        first.setdefault(template.name, (dtype, template))
    for dtype, template in first.values():
        _candidate(operator, target, dtype, [template], Texts(), work)


def _candidate(
    operator: Operator, target: Target, dtype: str, of: Sequence[KernelTemplate], texts: Texts, work: Path
) -> tuple[Variant, Path] | None:
    """The first variant that builds, of these templates in their order; None where none has a legal point. Raises
    SpecError where none builds."""
    failed: tuple[KernelTemplate, str] | None = None
    for template in of:
        try:
            space = instantiate.micro_space(target.platform, template, dtype)
        except JobError:
            continue
        own = seeds.named(seeds.own(template, space), template, space)
        for point in (*own, *(space.at(number) for number in judging.spread(space, POINTS))):
            kernel = Kernel(template, dtype, point)
            full = instantiate.defaults(operator, target.platform, dtype, point)
            variant = Variant(kernel, Point.of({name: full[name] for name in operator.blocking.values}))
            made = _built(operator, target, variant, texts, work)
            if isinstance(made, Path):
                return variant, made
            failed = failed or (template, f"at {point}: {made}")
    if failed is not None:
        template, said = failed
        raise SpecError(
            f"{operator.folder}: no candidate of {dtype} builds; the first, candidate.c.j2 around template "
            f"'{template.name}' {said}"
        )
    return None


def _built(operator: Operator, target: Target, variant: Variant, texts: Texts, work: Path) -> Path | str:
    """The program of a candidate, or what is wrong with it."""
    try:
        text = texts.kernel(operator, target.platform, variant)
        if isinstance(text, Outcome):
            return text.message
        source = instantiate.candidate(operator, target.platform, variant, text)
    except RenderError as error:
        return error.message
    made = target.build(source, work, COMPILE_TIMEOUT_S)
    return f"{made.message}\n{made.log}".rstrip() if isinstance(made, Outcome) else made.path


def _subject(operator: Operator, target: Target, variant: Variant, program: Path) -> Subject:
    """A candidate, called as a trial calls it."""
    platform, dtype = target.platform, variant.kernel.dtype
    reads = {f"reads_{name}": how for name, how in variant.template.reads.items()}
    full, formats = instantiate.defaults(operator, platform, dtype, variant.point), platform.formats(dtype)

    def workspace(problem: Problem, vlen: int) -> int:
        lanes = platform.lanes(dtype, full, vlen)
        elements = operator.reference.workspace(problem, {**full, **reads}, lanes, formats.group)
        if not isinstance(elements, Integral) or elements < 0:
            file = operator.folder / "reference.py"
            raise SpecError(f"{file}: method 'workspace': expected a number of elements, got {elements!r:.80}")
        return int(elements)

    more = tuple(int(full[name]) for name in operator.runtime)
    return Subject(target.runner, program, workspace=workspace, more=more, compute=formats.compute)


def _alike(
    operator: Operator, target: Target, variant: Variant, candidate: Subject, library: Subject, seed: Seed
) -> None:
    """Raises SpecError where the library is wrong and the candidate in it is right."""
    vlen = target.verify_vlens[0]
    tile = instantiate.tile(operator, target.platform, variant.kernel, vlen)
    cases = operator.reference.quick_grid(variant.kernel.dtype, tile, seed.stream(0))[:CASES]
    if not grid.check(operator.reference, candidate, cases, vlen, seed).ok:
        return  # its trial says so
    of_library = grid.check(operator.reference, library, cases, vlen, seed)
    if not of_library.ok:
        raise SpecError(
            f"{operator.folder}: the library is wrong where its kernel is right, so adapter.c or product/ is: "
            f"{of_library.outcome.message}"
        )


@contextlib.contextmanager
def _building(place: Path) -> Iterator[None]:
    """What fails in the block is a fault of this file or folder."""
    try:
        yield
    except (MissingTool, BoardError):
        raise
    except (JobError, RenderError) as error:
        raise SpecError(f"{place}: {error.message}") from None
