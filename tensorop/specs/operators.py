"""The schema of templates/<op>/operator.yaml; loads it and its reference.py."""

from __future__ import annotations

import keyword
import os
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field, model_validator

from tensorop import paths
from tensorop.errors import SpecError
from tensorop.model.call import Access
from tensorop.model.contract import OF_KERNEL, Contract
from tensorop.model.device import DeviceInterface
from tensorop.model.expression import parse
from tensorop.model.kernel import Constraint
from tensorop.model.number import NUMBERS
from tensorop.model.operator import DRIVER, NEEDED, STAGES, Costs, Direct, Operator, Routine, Steps, Threads, Tunables
from tensorop.model.problem import Problem
from tensorop.model.record import rule
from tensorop.model.shape import Shape, Shapes
from tensorop.model.signature import Operand
from tensorop.specs import catalog, extension, oracle, pymodule, yamlfile
from tensorop.specs.yamlfile import File, Record

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUITE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_C_TEXT = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
nullptr asm typeof alignas alignof constexpr static_assert thread_local
"""
_C_WORDS = frozenset(_C_TEXT.split())
_WORDS = frozenset((*keyword.kwlist, "min", "max", "true", "false", "none"))  # reserved in expressions and templates
_NOT_IN_C = ("blocking.tunables", "parameters", "numbers", "costs.where")

KERNELS, TEMPLATE_SUFFIX = "kernels", ".c.j2"  # subfolder of an operator's folder, and the suffix of its files


def _expect(holds: object, key: str, expected: str, got: object = None) -> None:
    rule(holds, f"key '{key}': expected {expected}" + ("" if got is None else f", got {got!r:.80}"))


class BlockingSpec(Record):
    tunables: dict[str, Annotated[list[int | str], Field(min_length=1)]]
    constraints: tuple[Constraint, ...] = Field(default=(), strict=False)
    runtime: tuple[str, ...] = Field(default=(), strict=False)
    named: tuple[str, ...] = Field(default=(), strict=False)


class OperandSpec(Record):
    role: Literal["in", "out", "inout", "scratch"]
    leading: bool | str = False
    shape: tuple[str | int, ...] = Field(strict=False)
    formats: dict[str, str] = Field(default_factory=dict)
    ascends_to: str = ""
    factor: str = ""
    packed: str = ""

    @property
    def operand(self) -> Operand:
        leading = self.leading if isinstance(self.leading, str) else "0" * self.leading
        more = (self.formats, self.ascends_to, leading, self.factor, self.packed)
        return Operand(Access(self.role), tuple(map(str, self.shape)), *more)


# What an operator has from the one in `uses` where its own file lacks the key, of some also where it lacks a part
INHERITED = ("blocking", "defaults", "starts", "streams", "costs", "numbers", "stages", "workspace")
_IN_PARTS = ("blocking", "defaults")


class OperatorSpec(File):
    name: str
    description: str
    dims: tuple[str, ...] = Field(min_length=1, strict=False)
    attributes: dict[str, int | str] = Field(default_factory=dict)
    shape: str = ""
    drawn: dict[str, Annotated[list[int], Field(min_length=1)]] = Field(default_factory=dict)
    rules: tuple[Constraint, ...] = Field(default=(), strict=False)
    operands: dict[str, OperandSpec] = Field(min_length=1)
    parameters: dict[str, float | str] = Field(default_factory=dict, strict=False)
    workspace: str = ""
    flags: dict[str, int | dict[str, int]] = Field(default_factory=dict)
    dtypes: tuple[str, ...] = Field(min_length=1, strict=False)
    uses: str | None = None
    kernels: tuple[str, ...] = Field(default=(), strict=False)
    stages: tuple[str, ...] = Field(default=STAGES, strict=False)
    against: tuple[str, ...] = Field(default=("openblas",), min_length=1, strict=False)
    peers: tuple[str, ...] = Field(default=(), strict=False)
    baselines: dict[str, str] = Field(default_factory=dict)
    routines: dict[str, Routine] = Field(default_factory=dict)
    layouts: tuple[dict[str, int | str], ...] = Field(min_length=1, strict=False)
    features: dict[str, str] = Field(default_factory=dict)
    costs: Costs = Field(default_factory=Costs)
    micro: dict[str, str | int] = Field(default_factory=dict)
    micro_layout: dict[str, int | str] = Field(default_factory=dict)
    defaults: dict[str, str] = Field(default_factory=dict)
    starts: tuple[dict[str, str | int], ...] = Field(default=(), strict=False)
    streams: str = ""
    blocking: BlockingSpec = BlockingSpec(tunables={})
    numbers: tuple[str, ...] = Field(default=(), strict=False)
    suites: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(min_length=1)
    probes: list[Any] = Field(default_factory=list)
    clock_probes: list[Any] = Field(default_factory=list)
    classes: dict[str, str] = Field(default_factory=dict)
    direct: Direct | None = None
    threads: Threads | None = None
    epilogue: Steps = Field(default=(), strict=False)
    device: DeviceInterface | None = None

    @model_validator(mode="after")
    def _check(self) -> OperatorSpec:
        self._check_shapes()
        self._check_threads()
        self._check_names()
        self._check_values()
        self._check_search()
        if self.device is None:
            for key in ("micro", "micro_layout", "defaults", "blocking"):
                rule(key in self.model_fields_set, f"key '{key}': expected a value, since there is no key 'device'")
        for key, fault in self.on_device.faults_of(self.shapes.names, (*self.flags,)) if self.on_device else ():
            rule(False, f"key 'device.{key}': {fault}")
        return self

    @property
    def shapes(self) -> Shapes:
        drawn = {name: tuple(values) for name, values in self.drawn.items()}
        return Shapes(self.dims, self.attributes, self.shape, drawn, self.rules)

    @property
    def on_device(self) -> DeviceInterface | None:
        return replace(self.device, usual=self.attributes) if self.device else None

    def _check_names(self) -> None:
        """Checks that each name has one meaning wherever it is used."""
        kinds: dict[str, Iterable[str]] = {  # the first four stand in one mapping in calls and points
            "dims": self.dims,
            "attributes": self.attributes,
            "blocking.tunables": self.blocking.tunables,
            "parameters": self.parameters,
            "operands": self.operands,
            "flags": self.flags,
            "features": self.features,
            "numbers": self.numbers,
            "costs.where": self.costs.where,
        }
        before: list[str] = []
        for number, (key, names) in enumerate(kinds.items()):
            for name in names:
                free = name not in _WORDS and (name not in _C_WORDS or key in _NOT_IN_C)
                plain = "a name of letters, digits and '_' that is no word of C, Python or Jinja2"
                _expect(_NAME.fullmatch(name) and free, key, plain, name)
                own = number >= 4 or name not in before
                _expect(own, key, "a name that no dim, attribute or tunable has", name)
                before.append(name)
        for name in self.suites:
            _expect(_SUITE.fullmatch(name), "suites", "a name that begins with a letter", name)
        another = "another name than 'workspace', a buffer that calls have"
        _expect("workspace" not in self.operands, "operands", another)
        for name in self.flags:
            taken = name in self.shapes.names or name in self.parameters or name == "variant"
            _expect(not taken, f"flags.{name}", "another name, this one is a call's already")

    def _check_shapes(self) -> None:
        shapes = self.shapes
        known, written = shapes.names, shapes.written
        before = list(self.dims)
        for name, usual in self.attributes.items():
            number = not isinstance(usual, str) or usual in before
            _expect(number, f"attributes.{name}", f"a number or one of {', '.join(before)}", usual)
            before.append(name)
        for name, one in self.operands.items():
            for text in one.shape:
                _check_expression(f"operands.{name}.shape", str(text), (*known, *self.flags))
            if one.ascends_to:
                _check_expression(f"operands.{name}.ascends_to", one.ascends_to, (*known, *self.flags))
            key = f"operands.{name}"
            if isinstance(one.leading, str):
                _check_expression(f"{key}.leading", one.leading, (*known, *self.flags))
                _expect(len(one.shape) == 2, f"{key}.leading", "true, or an operand of two sides", one.leading)
            for of, word, words in (("factor", one.factor, self.parameters), ("packed", one.packed, one.shape)):
                _expect(not word or word in words, f"{key}.{of}", f"one of {', '.join(map(str, words))}", word)
        if self.workspace:
            _check_expression("workspace", self.workspace, (*known, *self.flags, *self.blocking.tunables, *OF_KERNEL))
        for name, value in self.parameters.items():
            if isinstance(value, str):
                _check_expression(f"parameters.{name}", value, (*known, *self.flags), reals=True)
        for i, one_rule in enumerate(self.rules):
            _check_expression(f"rules.{i}.must", one_rule.must, known)
        for name, routine in self.routines.items():
            _check_expression(f"routines.{name}.where", routine.where, known)
        lacking = set(self.dims) - self.micro.keys() if self.micro else set()
        for key, given, more in (("drawn", self.drawn, set()), ("micro", self.micro, lacking)):
            wrong = (given.keys() - set(known)) | more
            rule(not wrong, f"key '{key}': expected {', '.join(known)}, got {', '.join(given)}: {wrong}")
        for name, values in self.drawn.items():
            least = 1 if name in self.dims else 0
            _expect(min(values) >= least, f"drawn.{name}", f"numbers from {least}", min(values))
        braces = set(re.sub(r"\{\w+\}", "", written)) & set("{}")
        _expect(not braces, "shape", "braces around names alone", self.shape)
        once = all(known.count(name) == written.count(f"{{{name}}}") == 1 for name in known)
        _expect(once, "shape", f"each of {', '.join(dict.fromkeys(known))} once", self.shape)

    def _check_threads(self) -> None:
        if self.threads is None:
            return
        dim = self.threads.dim
        _expect(dim in self.dims, "threads.dim", f"one of {', '.join(self.dims)}", dim)
        _check_expression("threads.work", self.threads.work, (*self.shapes.names, *self.flags))
        uses = re.compile(rf"\b{dim}\b")
        for name, one in self.operands.items():
            sides = [str(side) for side in one.shape]
            free = not any(map(uses.search, sides[1:])) and (sides[:1] == [dim] or not any(map(uses.search, sides[:1])))
            _expect(free, "threads.dim", f"the first side of operand '{name}', or none of its sides", dim)
            rows = not isinstance(one.leading, str) or sides[:1] != [dim]
            _expect(rows, f"operands.{name}.leading", "true, since threads divide the first side", one.leading)
        for one_rule in self.rules:
            _expect(not uses.search(one_rule.must), "threads.dim", "a dim that no rule names", dim)

    def _check_values(self) -> None:
        """Checks number formats, and flags in layouts."""
        dtypes, formats = ", ".join(self.dtypes), ", ".join(NUMBERS)
        for name, operand in self.operands.items():
            key = f"operands.{name}.formats"
            for dtype in operand.formats:
                _expect(dtype in self.dtypes, key, f"dtypes among {dtypes}", dtype)
            for dtype in self.dtypes:
                found = operand.formats.get(dtype, dtype)
                _expect(found in NUMBERS, key if dtype in operand.formats else "dtypes", f"some of {formats}", found)
        layouts = {f"layouts.{number}": layout for number, layout in enumerate(self.layouts)}
        for key, layout in {**layouts, "micro_layout": self.micro_layout}.items():
            for name, word in layout.items():
                own = name not in (*self.dims, *self.attributes, "variant")
                _expect(own, key, "names of flags or of your own", name)
                values = self.flags.get(name)
                known = values if isinstance(values, dict) else ()
                fits = values is None or not isinstance(word, str) or word in known or word.isdigit()
                _expect(fits, f"{key}.{name}", ", ".join(known) or "a number", word)

    def _check_search(self) -> None:
        """Checks stages, tunables, costs and `direct`."""
        ordered = self.stages == tuple(name for name in STAGES if name in self.stages)
        expected = f"{', '.join(NEEDED)} and any of {', '.join(STAGES[len(NEEDED) :])}, in this order"
        got = ", ".join(self.stages) or "none"
        rule(ordered and set(NEEDED) <= set(self.stages), f"key 'stages': expected {expected}, got {got}")
        blocking, costs, direct = self.blocking, self.costs, self.direct
        for name in (*blocking.runtime, *blocking.named):
            _expect(name in blocking.tunables, "blocking", f"names among {', '.join(blocking.tunables)}", name)
        for name in blocking.tunables:
            _expect(name in self.defaults, "defaults", f"one for each blocking tunable, none is for '{name}'")
        for number, start in enumerate(self.starts):
            for name in start:
                among = f"some of {', '.join(blocking.tunables)}"
                _expect(name in blocking.tunables, f"starts.{number}", among, name)
        _expect(not costs.where or costs.terms, "costs.terms", "some, 'costs.where' names what they are made of")
        if direct is not None:
            _expect(direct.suite in self.suites, "direct.suite", f"one of {', '.join(self.suites)}", direct.suite)
            more = not direct.unasked or direct.unasked >= direct.always
            _expect(more, "direct.unasked", f"{direct.always} ('always') or more", direct.unasked)


def _check_expression(key: str, text: str, known: Iterable[str], reals: bool = False) -> None:
    try:
        parse(text, dict.fromkeys(known, int), reals)
    except SpecError as error:
        rule(False, f"key '{key}': expected an expression over {', '.join(known)}: {error}")


def load(name: str, plugins: tuple[Path, ...] = (), folder: Path | None = None) -> Operator:
    """An operator by name, or of a folder. Raises UsageError for an unknown one, SpecError for a broken folder."""
    folder = (folder or catalog.find("templates", name, plugins)).absolute()  # tools run in other folders
    path = folder / "operator.yaml"
    if "extends" in (given := yamlfile.read(path)):
        return extension.extended(name, path, given, partial(load, plugins=plugins))
    spec = yamlfile.validate(OperatorSpec, _whole(path, plugins), str(path))
    if spec.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}' as the folder is called, got '{spec.name}'")
    shapes, direct, blocking = spec.shapes, spec.direct, spec.blocking
    used = (catalog.find("templates", spec.uses, plugins).absolute(),) if spec.uses else ()
    base = load(spec.uses, plugins) if spec.uses else None
    operands = {key: one.operand for key, one in spec.operands.items()}
    flags = {key: {str(of): of} if isinstance(of, int) else of for key, of in spec.flags.items()}
    code = folder / "reference.py"
    own = _contract(code)
    fields = (name, shapes, operands, spec.parameters, flags, base.reference if base else None, spec.workspace)
    reference = _answer(code, "__init__", lambda: own(*fields))
    suites = {key: _read(path, f"suites.{key}", shapes, given) for key, given in spec.suites.items()}
    example = reference.problem(spec.dtypes[0], shapes.named(next(iter(suites.values()))[0]), spec.layouts[0])
    made: dict[str, Any] = {
        "folder": folder,
        "shapes": shapes,
        "seen": _agreed(folder, reference, shapes, example, spec.features),
        "derived": spec.features,
        "micro": {key: str(value) for key, value in spec.micro.items()},
        "starts": tuple({name: str(value) for name, value in start.items()} for start in spec.starts),
        "blocking": Tunables(
            {tunable: tuple(values) for tunable, values in blocking.tunables.items()},
            blocking.constraints,
        ),
        "runtime": blocking.runtime,
        "named": blocking.named,
        "suites": suites,
        "probes": _read(path, "probes", shapes, spec.probes),
        "clock_probes": _read(path, "clock_probes", shapes, spec.clock_probes),
        "direct": replace(direct, unasked=direct.unasked or direct.always) if direct else None,
        "reference": reference,
        "device": spec.on_device,
        "added": {**_shared(path, spec, used), **_added(name, plugins)},
        "uses": used,
        "kernels_of": base,
    }
    return Operator(**{**yamlfile.shared(spec, Operator), **made})


def _whole(path: Path, plugins: tuple[Path, ...], users: tuple[Path, ...] = ()) -> dict[str, object]:
    """An operator's file with what it inherits. users: the files that use it, in turn"""
    made = yamlfile.read(path)
    if not isinstance(used := made.get("uses"), str):
        return made
    other = catalog.find("templates", used, plugins) / "operator.yaml"
    if other in (path, *users):
        raise SpecError(f"{path}: key 'uses': expected an operator that does not use this one, got '{used}'")
    base = _whole(other, plugins, (path, *users))
    whole = yamlfile.over(made, {key: base[key] for key in INHERITED if key in base}, _IN_PARTS)
    blocking, starts = whole.get("blocking"), whole.get("starts")
    if "starts" not in made and isinstance(blocking, dict) and isinstance(starts, list):
        own = {*blocking.get("tunables", {})}  # may be others than those of the starts
        whole["starts"] = [start for start in starts if {*start} <= own]
    return whole


def _read(path: Path, key: str, shapes: Shapes, given: Iterable[object]) -> tuple[Shape, ...]:
    try:
        return tuple(shapes.of(shape) for shape in given)
    except ValueError as error:
        raise SpecError(f"{path}: key '{key}': {error}") from None


@lru_cache(maxsize=32)  # of the same size as that of _module, whose classes it changes
def _contract(path: Path) -> type[Contract]:
    """The checked class of a reference.py."""
    own: type[Contract] = pymodule.derived(path, _module(path), Contract)
    for name in ("CONTROL_TILE", "CONTROL_SHAPE"):
        if not hasattr(own, name):
            raise SpecError(f"{path}: class '{own.__name__}': expected {name}, got none")
    pymodule.check_methods(path, own, Contract, Contract.__abstractmethods__)
    pymodule.name_faults(path, own)
    own.expected = oracle.sound(path, own.expected)  # type: ignore[method-assign]
    return own


def _agreed(
    folder: Path, reference: Contract, shapes: Shapes, problem: Problem, derived: Mapping[str, str]
) -> tuple[str, ...]:
    """The names of the contract's features. Raises SpecError if its results contradict operator.yaml."""
    path, declared = folder / "reference.py", folder / "operator.yaml"
    _read(path, "CONTROL_SHAPE", shapes, [reference.CONTROL_SHAPE])
    for name in ("work", "traffic"):
        value = _answer(path, name, partial(getattr(reference, name), problem))
        if not isinstance(value, float | int) or not value > 0:
            raise SpecError(f"{path}: method '{name}': expected a number over 0 of {problem.label}, got {value!r:.80}")
    seen = _answer(path, "features", lambda: reference.features(problem))
    if not isinstance(seen, dict) or not all(type(v) is int and v >= 0 for v in seen.values()):
        raise SpecError(f"{path}: method 'features': expected names with numbers from 0, got {seen!r:.80}")
    for name, text in derived.items():
        if name in seen:
            raise SpecError(
                f"{declared}: key 'features.{name}': expected another name, since the contract uses this one"
            )
        try:
            _check_expression(f"features.{name}", text, seen)
        except ValueError as error:
            raise SpecError(f"{declared}: {error}") from None
    call = _answer(path, "call", lambda: reference.call(problem, np.random.default_rng(0)))
    got = [(buffer.name, buffer.access) for buffer in call.buffers]
    if got != [(name, one.access) for name, one in reference.operands.items()]:
        operands = ", ".join(f"{name} ({one.access})" for name, one in reference.operands.items())
        raise SpecError(f"{path}: method 'call': expected the buffers {operands} of operator.yaml, got {got!r:.200}")
    return tuple(seen)


def _answer(path: Path, method: str, ask: Callable[[], Any]) -> Any:
    try:
        return ask()
    except Exception as error:
        raise SpecError(f"{path}: method '{method}': {type(error).__name__}: {error}") from error


def _shared(path: Path, spec: OperatorSpec, used: tuple[Path, ...]) -> dict[str, Path]:
    """Name -> file of the templates in `kernels`, from the operator in `uses`."""
    files = (file for one in used for file in (one / KERNELS).glob(f"*{TEMPLATE_SUFFIX}"))
    there = {file.name.removesuffix(TEMPLATE_SUFFIX): file for file in files}
    if strange := [name for name in spec.kernels if name not in there]:
        known = ", ".join(sorted(there)) or "none, without 'uses'"
        raise SpecError(f"{path}: key 'kernels': expected a subset of {known}, got '{strange[0]}'")
    return {name: there[name] for name in spec.kernels}


def _added(name: str, plugins: tuple[Path, ...]) -> dict[str, Path]:
    """Templates for an operator in plug-in folders without the operator itself; for equal names the first one."""
    found: dict[str, Path] = {}
    for root in paths.plugin_roots(plugins):
        folder = root / "templates" / name
        if not (folder / "operator.yaml").is_file():
            for file in sorted((folder / KERNELS).glob(f"*{TEMPLATE_SUFFIX}")):
                found.setdefault(file.name.removesuffix(TEMPLATE_SUFFIX), file)
    return found


def require_whole(operator: Operator) -> None:
    """Raises SpecError if a template is missing that every operator's library needs."""
    has_candidate = any((folder / "candidate.c.j2").is_file() for folder in operator.templates)
    for name in ("kernel.c.j2", *(() if has_candidate else (DRIVER,))):
        if not any((folder / name).is_file() for folder in operator.templates):
            need = "every operator needs this file, its own or by `uses:`"
            raise SpecError(f"{operator.folder / name}: missing; {need}")


def serves_processors(operator: Operator) -> bool:
    """Whether the operator has products for CPUs; an operator without a section `device:` must have."""
    return operator.device is None or any((folder / "kernel.c.j2").is_file() for folder in operator.templates)


def serves_devices(operator: Operator) -> bool:
    """Whether the operator has products for GPUs."""
    return operator.device is not None


def binding(operator: Operator, device: bool = False) -> ModuleType | None:
    """The operator's binding.py for Python (see tensorop.package.binding); None if it has none.

    device: that of its products for GPUs
    """
    path = operator.folder / ("device/binding.py" if device else "binding.py")
    return _module(path) if device or os.path.lexists(path) else None


@lru_cache(maxsize=32)
def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise SpecError(f"{path}: missing; every operator needs this file")
    return pymodule.load(path, f"_tensorop_operator_{path.parent.parent.name}_{path.parent.name}_{path.stem}")
