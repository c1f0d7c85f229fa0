"""Checks of an operator's folder without compiler or target: reads it as a search and its product will read it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import cffi
import numpy as np

from tensorop.author import gate, offline
from tensorop.commands import libraries
from tensorop.costs.terms import quantities, term_matrix
from tensorop.dispatch import direct
from tensorop.errors import JobError, SpecError, UsageError
from tensorop.model.case import Case
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.record import BrokenRule, rule
from tensorop.package import binding
from tensorop.render import instantiate, prior
from tensorop.space import problems
from tensorop.specs import operators, products
from tensorop.trial.calls import micro_problem
from tensorop.verify.controls import controls

Look = tuple[str, Callable[[], Any]]  # the name of a part, and its check, which raises TensoropError for a fault


def parts(operator: Operator, dtypes: Sequence[str]) -> Iterator[Look]:
    """The checks that need neither platform nor compiler."""
    processors = operators.serves_processors(operator)
    if processors:
        yield "files", lambda: operators.require_whole(operator)
        yield "product/", lambda: _product(operator)
        yield "binding.py", lambda: _binding(operator)
        yield "controls/", lambda: _controls(operator)
        yield "operator.yaml: against", lambda: _against(operator)
    for dtype in dtypes:
        yield f"reference.py {dtype}", partial(_oracle, operator, dtype)
    if processors:
        yield "kernels/", lambda: ", ".join(template.name for template in templates(operator))


def require_read(operator: Operator, platform: Platform, dtypes: Sequence[str], pretended: bool) -> None:
    """Raises SpecError for the first fault in the parts that a job reads.

    pretended: True if the job builds nothing; then only templates and their expressions are checked
    """
    for _, look in () if pretended else parts(operator, dtypes):
        look()
    for dtype, template in pairs(operator, platform, dtypes):
        expressions(operator, platform, template, dtype)


def templates(operator: Operator) -> tuple[KernelTemplate, ...]:
    """All templates of the operator for CPUs but the direct one. Raises SpecError."""
    if not operators.serves_processors(operator):
        return ()
    return tuple(offline.templates(operator.folder, operator.name, operator.added))


def prompts(operator: Operator) -> tuple[Path, ...]:
    """The missing files that `--author llm` needs."""
    names = ("system.md.j2", "template.md.j2", "repair.md.j2", f"example{operators.TEMPLATE_SUFFIX}")
    own, *_ = folders = operator.prompts
    return tuple(own / name for name in names if not any((folder / name).is_file() for folder in folders))


def _product(operator: Operator) -> None:
    spec = products.load(operator)
    name, first = next(iter(spec.libraries.items()))
    named = {
        "headers": spec.headers,
        "private": spec.private,
        "kernel": (spec.kernel,),
        "dtype": spec.dtype,
        **{f"libraries.{library}.sources": one.sources for library, one in spec.libraries.items()},
    }
    with _at(f"{operator.folder / products.FOLDER / 'product.yaml'}"):
        for key, files in named.items():
            for file in files:
                expected = f"expected a file of product/, {file}.j2 is none"
                rule(products.template(operator, file), f"key '{key}': {expected}")
        there = any((folder / f"{spec.driver}.j2").is_file() for folder in operator.templates)
        rule(there, f"key 'driver': expected a file beside product/, {spec.driver}.j2 is none")
        for dtype in operator.dtypes:
            expected = f"expected the functions of each dtype, none are of {dtype}"
            held = dtype in first.names or first.names.keys() == {"all"}
            rule(held, f"key 'libraries.{name}.names': {expected}")


def declared(operator: Operator, file: Path, dtypes: Sequence[str], device: bool = False) -> str:
    """The C that a library's binding declares. file: of the binding; device: of the library for GPUs"""
    module = binding.of(operator, device=device)
    with _at(f"{file}"):
        for name in ("declarations", "bind"):
            rule(callable(getattr(module, name, None)), f"expected a function '{name}', got none")
        try:
            text = str(module.declarations(dtypes))
            cffi.FFI().cdef(text)
        except Exception as error:
            rule(False, f"function 'declarations': {type(error).__name__}: {error!s:.200}")
    return text


def _binding(operator: Operator) -> None:
    text = declared(operator, operator.folder / "binding.py", operator.dtypes)
    libraries_made = products.load(operator).libraries.values()
    known = {name for one in libraries_made for names in one.names.values() for name in names}
    with _at(f"{operator.folder / 'binding.py'}"):
        for name in re.findall(r"\b(tensorop_\w+)\s*\(", text):
            expected = f"expected functions that product.yaml names, got '{name}'"
            rule(name in known, f"function 'declarations': {expected}")


def _controls(operator: Operator) -> None:
    kinds = {control.honest for control in controls(operator)}
    if len(kinds) < 2:
        lacking = "kernels" if not kinds else "faulty kernel" if True in kinds else "honest kernel (`expect: ok`)"
        raise SpecError(
            f"{operator.folder / 'controls'} has no {lacking}; without known-wrong and known-correct kernels "
            "verification itself cannot be tested",
            hint="add honest.c and known-wrong kernels, as the shipped operators have",
        )


def _against(operator: Operator) -> None:
    for key, names in (("against", operator.against), ("peers", operator.peers)):
        for name in names:
            try:
                libraries.check_known(name, own=operator.baselines)
            except UsageError as error:
                raise SpecError(f"{_yaml(operator)}: key '{key}': {error.message}", hint=error.hint) from None


def _oracle(operator: Operator, dtype: str) -> None:
    """Checks a call of each layout, whose rounded oracle must pass, and the quick grid around the controls' tile."""
    reference, rng = operator.reference, np.random.default_rng(0)
    file = operator.folder / "reference.py"
    sizes = operator.shapes.named(operator.shapes.of(reference.CONTROL_SHAPE))
    for layout in operator.layouts:
        problem = reference.problem(dtype, sizes, layout)
        call = reference.call(problem, rng)
        held = {buffer.name: buffer.data for buffer in call.buffers}
        left = {}
        for name, (want, bound) in reference.expected(problem, call).items():
            with _at(f"{file}: method 'expected': output '{name}'"):
                rule(np.isfinite(bound[np.isfinite(want)]).all(), f"expected finite bounds ({problem.label})")
            stored = reference.operands[name].number(dtype).encoded(want)
            left[name] = reference.stored(problem, name, stored, held[name])
        judged = reference.judge(problem, call, left)
        with _at(f"{file}: method 'expected'"):
            rule(judged.ok, f"its own result, rounded, is refused: {judged.message}")
        reference.alternated(problem, call, rng)
        reference.counted(problem, call, rng)
    cases = reference.quick_grid(dtype, reference.CONTROL_TILE, rng)
    some = isinstance(cases, Sequence) and cases and all(isinstance(case, Case) for case in cases)
    with _at(f"{file}: method 'quick_grid'"):
        rule(some, f"expected some cases, got {cases!r:.80}")
    if operator.threads is not None:
        with _at(f"{file}: method 'thread_grid'"):
            of_threads = reference.thread_grid(dtype, reference.CONTROL_TILE, rng)
            rule(of_threads, "expected some cases, since operator.yaml has the key 'threads', got none")
    for case in cases:
        with _at(f"{file}: method 'quick_grid': {case.label}"):
            reference.call(case.problem, rng, case.distribution, case.placement, start=case.start)


def pairs(operator: Operator, platform: Platform, dtypes: Sequence[str]) -> Iterator[tuple[str, KernelTemplate]]:
    """Pairs of dtype and template for which the platform has all primitives."""
    for dtype in dtypes:
        for template in templates(operator) if dtype in platform.dtypes else ():
            if not instantiate.missing_primitives(platform, template, dtype):
                yield dtype, template


def expressions(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str) -> None:
    file = operator.added.get(template.name, operator.folder / operators.KERNELS / f"{template.name}.c.j2")
    reserved = instantiate.reserved(operator, platform, dtype)
    if strange := gate.check_template(template, platform.primitives_of(dtype), reserved):
        raise SpecError(f"{file}: {strange.message}")
    if taken := [name for name in operator.blocking.values if name in instantiate.given(platform, dtype)]:
        raise SpecError(
            f"{_yaml(operator)}: key 'blocking.tunables': expected another name, since '{taken[0]}' has a meaning of "
            "its own in templates"
        )
    with _at(f"{file}"):
        try:
            space = instantiate.micro_space(platform, template, dtype)
        except JobError:  # the template has no legal point on the platform
            return
        prior.first(platform, template, dtype, space)
    kernel = Kernel(template, dtype, space.at(0))
    with _at(f"{_yaml(operator)}: key 'defaults'"):
        full = instantiate.defaults(operator, platform, dtype, kernel.configuration)
    with _at(f"{_yaml(operator)}: key 'blocking'"), contextlib.suppress(JobError):  # no blocking fits the tile
        instantiate.blocking_space(operator, platform, kernel)
    blocked = Variant(kernel, Point.of({name: full[name] for name in operator.blocking.values}))
    with _at(f"{_yaml(operator)}: key 'micro'"):
        alone = micro_problem(operator, platform, blocked, platform.vlens[0])
        wrong = operator.shapes.wrong(tuple(alone.sizes.values()))
        rule(not wrong, f"expected a shape of the operator, got {alone.label}: {wrong}")
    columns = quantities(operator, [problems.of(operator, dtype, s) for s in operator.suites[operator.usual]])
    for name, values in columns.items():
        with _at(f"{_yaml(operator)}: key 'features.{name}'"):
            rule(values.min() >= 0, f"expected numbers from 0, got {values.min()}")
    term_matrix(operator, platform, blocked, columns)
    if operator.direct is not None:
        direct.may_serve(operator, platform, dtype, columns)


@contextlib.contextmanager
def _at(place: str) -> Iterator[None]:
    try:
        yield
    except SpecError as error:
        raise SpecError(f"{place}: {error.message}", hint=error.hint) from None
    except BrokenRule as error:
        raise SpecError(f"{place}: {error}") from None
    except (ArithmeticError, KeyError, TypeError, ValueError) as error:
        raise SpecError(f"{place}: {type(error).__name__}: {error}") from None


def _yaml(operator: Operator) -> Path:
    return operator.folder / "operator.yaml"
