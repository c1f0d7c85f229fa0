"""`operators check`: checks every part of an operator's folder and reports all faults; a job stops at the first."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tensorop import backends, subpackages
from tensorop.commands import operator_built, operator_read
from tensorop.errors import BoardError, MissingTool, TensoropError
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.process import scratch
from tensorop.render import instantiate
from tensorop.specs import catalog, native, operators, platforms
from tensorop.target import Target


@dataclass(frozen=True)
class Finding:
    """The result of one check."""

    ok: bool
    text: str
    kind: str = ""  # a plural for similar checks: those that passed are shown as one line

    def __str__(self) -> str:
        return self.text if self.ok else f"FAIL {self.text}"

    def summary(self, count: int) -> str:
        """The line for `count` passed checks of this kind."""
        return f"{count} {self.kind}"


def check(operator: Operator, runner: str | None = None, plugins: tuple[Path, ...] = ()) -> Iterator[Finding]:
    """Reads the folder for every platform; if that finds no fault, builds and runs on this machine or by `runner`.

    Yields each fault once. Raises MissingTool, BoardError.
    """
    found = _Findings()
    for name, look in operator_read.parts(operator, operator.dtypes):
        yield from found.of(name, look, "" if name == "kernels/" else "parts of the folder as expected")
    names = catalog.names("platforms", plugins) if found.whole else ()
    known = [platforms.load(name, plugins) for name in names]
    hosts = [platform for platform in known if platform.runner not in subpackages.BACKENDS]
    for platform in hosts:
        for template, dtype in itertools.product(operator_read.templates(operator), operator.dtypes):
            where = f"{platform.name} {dtype} {template.name}"
            if lacking := _lacking(platform, template, dtype):
                kind = f"platforms and dtypes that template '{template.name}' does not support"
                yield Finding(True, f"{where}: {lacking}", kind)
                continue
            kind = f"platforms and dtypes with legal configurations of template '{template.name}'"
            yield from found.of(where, partial(_points, operator, platform, template, dtype), kind)
    for platform in known:
        parts = backends.load(platform.runner, plugins).parts(operator, platform) if platform not in hosts else ()
        for name, look in parts:
            yield from found.of(f"{platform.name}: {name}", look, "parts of GPU products as expected")
    if absent := operator_read.prompts(operator) if operators.serves_processors(operator) else ():
        files = ", ".join(file.name for file in absent)
        yield Finding(True, f"prompts/: {files} missing, so `tensorop {operator.name} --author llm` does not work")
    reached = _here(operator, hosts, runner, plugins) if found.whole else None
    if reached is not None:
        yield from _built(found, operator, *reached)


def _built(found: _Findings, operator: Operator, target: Target, dtypes: Sequence[str]) -> Iterator[Finding]:
    where = f"{target.platform.name} {', '.join(dtypes)}"
    with scratch.folder("operator") as folder:
        built = partial(operator_built.built, operator, target, dtypes, folder)
        yield from found.of(f"{where}: candidate, adapter and product", built)
        each = partial(operator_built.each, operator, target, dtypes, folder)
        yield from found.of(f"{where}: one candidate of each template", each)
    honest = partial(operator_built.honest, operator, target, dtypes)
    yield from found.of(f"{where}: a control that must pass", honest)


@dataclass
class _Findings:
    """The faults found so far."""

    faults: set[str] = field(default_factory=set)  # their messages

    @property
    def whole(self) -> bool:
        return not self.faults

    def of(self, name: str, look: Callable[[], object], kind: str = "") -> Iterator[Finding]:
        try:
            found = look()
        except (MissingTool, BoardError):
            raise
        except TensoropError as error:
            if str(error) not in self.faults:
                self.faults.add(str(error))
                yield Finding(False, str(error))
        else:
            yield Finding(True, f"{name}: {found or 'as expected'}", kind if str(found)[:2] != "0 " else "")


def _here(
    operator: Operator, known: Sequence[Platform], runner: str | None, plugins: tuple[Path, ...]
) -> tuple[Target, tuple[str, ...]] | None:
    """The first reachable platform that has templates of the operator, and their dtypes; the default platform first."""
    for platform in sorted(known, key=lambda one: one.name != Job.platform):
        dtypes = tuple(dict.fromkeys(dtype for dtype, _ in operator_read.pairs(operator, platform, operator.dtypes)))
        here = backends.load(platform.runner, plugins).is_host and not native.missing_flags(platform)
        if dtypes and (runner or here):
            return backends.reach(platform, runner, plugins), dtypes
    return None


def _lacking(platform: Platform, template: KernelTemplate, dtype: str) -> str:
    if dtype not in platform.dtypes:
        return "not for this platform"
    missing = instantiate.missing_primitives(platform, template, dtype)
    return f"not for this platform (lacks {', '.join(missing)})" if missing else ""


def _points(operator: Operator, platform: Platform, template: KernelTemplate, dtype: str) -> str:
    operator_read.expressions(operator, platform, template, dtype)
    space = instantiate.micro_space(platform, template, dtype)
    return f"{space.size} legal configurations of {space.product}"
