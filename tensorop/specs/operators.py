"""The schema of templates/<op>/operator.yaml, and the loading of its reference.py by path."""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from tensorop import paths
from tensorop.errors import SpecError
from tensorop.model.call import Access
from tensorop.model.contract import Contract, Operand
from tensorop.model.expression import parse
from tensorop.model.kernel import Constraint
from tensorop.model.number import NUMBERS
from tensorop.model.operator import NEEDED, STAGES, Costs, Direct, Operator, Tunables
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape, Shapes
from tensorop.specs import catalog, oracle, pymodule, yamlfile
from tensorop.specs.yamlfile import File, Record

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUITE = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")
_C_TEXT = """
auto break case char const continue default do double else enum extern float for goto if inline int long register
restrict return short signed sizeof static struct switch typedef union unsigned void volatile while bool true false
nullptr asm typeof alignas alignof constexpr static_assert thread_local
"""
_C_WORDS = frozenset(_C_TEXT.split())
_WORDS = frozenset((*keyword.kwlist, "min", "max", "true", "false", "none"))  # of expressions and templates
_NOT_IN_C = ("blocking.tunables", "parameters", "numbers", "costs.where")

KERNELS, TEMPLATE_SUFFIX = "kernels", ".c.j2"  # of an operator's folder; their file names


class BlockingSpec(Record):
    tunables: dict[str, Annotated[list[int | str], Field(min_length=1)]]
    constraints: tuple[Constraint, ...] = Field(default=(), strict=False)
    prior: dict[str, str] = Field(default_factory=dict)
    beside: dict[str, str] = Field(default_factory=dict)
    runtime: tuple[str, ...] = Field(default=(), strict=False)


class OperandSpec(Record):
    role: Literal["in", "out", "inout", "scratch"]
    leading: bool = False
    shape: tuple[str | int, ...] = Field(strict=False)
    formats: dict[str, str] = Field(default_factory=dict)


class OperatorSpec(File):
    name: str
    description: str
    dims: tuple[str, ...] = Field(min_length=1, strict=False)
    attributes: dict[str, int | str] = Field(default_factory=dict)
    shape: str = ""
    drawn: dict[str, Annotated[list[int], Field(min_length=1)]] = Field(default_factory=dict)
    rules: tuple[Constraint, ...] = Field(default=(), strict=False)
    operands: dict[str, OperandSpec] = Field(min_length=1)
    parameters: dict[str, float] = Field(default_factory=dict, strict=False)
    flags: dict[str, int | dict[str, int]] = Field(default_factory=dict)
    dtypes: tuple[str, ...] = Field(min_length=1, strict=False)
    uses: str | None = None
    kernels: tuple[str, ...] = Field(default=(), strict=False)
    stages: tuple[str, ...] = Field(default=STAGES, strict=False)
    against: tuple[str, ...] = Field(default=("openblas",), min_length=1, strict=False)
    baselines: dict[str, str] = Field(default_factory=dict)
    layouts: tuple[dict[str, int | str], ...] = Field(min_length=1, strict=False)
    features: dict[str, str] = Field(default_factory=dict)
    costs: Costs = Field(default_factory=Costs)
    micro: dict[str, str | int]
    micro_layout: dict[str, int | str]
    defaults: dict[str, str]
    blocking: BlockingSpec
    numbers: tuple[str, ...] = Field(default=(), strict=False)
    suites: dict[str, Annotated[list[Any], Field(min_length=1)]] = Field(min_length=1)
    probes: list[Any] = Field(default_factory=list)
    clock_probes: list[Any] = Field(default_factory=list)
    direct: Direct | None = None


def load(name: str, plugins: tuple[Path, ...] = ()) -> Operator:
    """An operator by name; raises UsageError for an unknown one, SpecError for a broken folder."""
    folder = catalog.find("templates", name, plugins).absolute()  # tools are run elsewhere
    path = folder / "operator.yaml"
    spec = yamlfile.validate(OperatorSpec, yamlfile.read(path), str(path))
    if spec.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}' as the folder is called, got '{spec.name}'")
    shapes, stages, direct = _shapes(path, spec), _stages(path, spec), _direct(path, spec)
    used = (catalog.find("templates", spec.uses, plugins).absolute(),) if spec.uses else ()
    operands = {n: Operand(Access(o.role), tuple(map(str, o.shape)), o.formats) for n, o in spec.operands.items()}
    flags = {key: {str(of): of} if isinstance(of, int) else of for key, of in spec.flags.items()}
    leading = tuple(key for key, one in spec.operands.items() if one.leading)
    _check_names(path, spec)
    _check_values(path, spec)
    own = _contract(folder / "reference.py")
    reference = _answer(
        folder / "reference.py",
        "__init__",
        lambda: own(name, shapes, operands, spec.parameters, flags, leading),
    )
    suites = {key: _read(path, f"suites.{key}", shapes, given) for key, given in spec.suites.items()}
    layouts = tuple(dict(layout) for layout in spec.layouts)
    example = reference.problem(spec.dtypes[0], shapes.named(next(iter(suites.values()))[0]), layouts[0])
    return Operator(
        name=spec.name,
        description=spec.description,
        folder=folder,
        shapes=shapes,
        dtypes=spec.dtypes,
        stages=stages,
        layouts=layouts,
        seen=_agreed(folder, reference, shapes, example, spec.features),
        derived=spec.features,
        costs=spec.costs,
        micro={key: str(value) for key, value in spec.micro.items()},
        blocking=_blocking(path, spec.blocking),
        runtime=spec.blocking.runtime,
        micro_layout=spec.micro_layout,
        defaults=spec.defaults,
        numbers=spec.numbers,
        suites=suites,
        probes=_read(path, "probes", shapes, spec.probes),
        clock_probes=_read(path, "clock_probes", shapes, spec.clock_probes),
        direct=direct,
        against=spec.against,
        baselines=spec.baselines,
        reference=reference,
        added={**_shared(path, spec, used), **_added(name, plugins)},
        uses=used,
    )


def _check_names(path: Path, spec: OperatorSpec) -> None:
    """Raises SpecError for a name that means something else where it is read."""
    one_each: list[str] = []  # of a call and of a point: each of these is one thing to them all
    kinds: dict[str, Iterable[str]] = {
        "dims": spec.dims,
        "attributes": spec.attributes,
        "blocking.tunables": spec.blocking.tunables,
        "parameters": spec.parameters,
        "operands": spec.operands,
        "flags": spec.flags,
        "features": spec.features,
        "numbers": spec.numbers,
        "costs.where": spec.costs.where,
    }
    for key, names in kinds.items():
        for name in names:
            if not _NAME.fullmatch(name) or name in _WORDS or (name in _C_WORDS and key not in _NOT_IN_C):
                raise SpecError(
                    f"{path}: key '{key}': expected a name of letters, digits and '_' that is no word of C, Python or "
                    f"Jinja2, got '{name}'"
                )
            if name in one_each and key in list(kinds)[:4]:
                raise SpecError(
                    f"{path}: key '{key}': expected a name that no dim, attribute or tunable has, got '{name}'"
                )
            one_each.append(name)
    if spec.costs.where and not spec.costs.terms:
        raise SpecError(f"{path}: key 'costs.terms': expected some, 'costs.where' names what they are made of")
    if strange := [name for name in spec.suites if not _SUITE.fullmatch(name)]:
        raise SpecError(f"{path}: key 'suites': expected a name that begins with a letter, got '{strange[0]}'")
    if "workspace" in spec.operands:
        raise SpecError(f"{path}: key 'operands': expected another name than 'workspace', a buffer that calls have")
    if lacking := [name for name in spec.blocking.tunables if name not in spec.defaults]:
        raise SpecError(f"{path}: key 'defaults': expected one for each blocking tunable, none is for '{lacking[0]}'")


def _check_values(path: Path, spec: OperatorSpec) -> None:
    """Raises SpecError for a number format that is none, and for a flag's value that it does not have."""
    for name, operand in spec.operands.items():
        key = f"operands.{name}.formats"
        if strange := next((dtype for dtype in operand.formats if dtype not in spec.dtypes), None):
            raise SpecError(f"{path}: key '{key}': expected dtypes among {', '.join(spec.dtypes)}, got '{strange}'")
        for dtype in spec.dtypes:
            if (found := operand.formats.get(dtype, dtype)) not in NUMBERS:
                where = key if dtype in operand.formats else "dtypes"
                raise SpecError(f"{path}: key '{where}': expected some of {', '.join(NUMBERS)}, got '{found}'")
    layouts = {f"layouts.{number}": layout for number, layout in enumerate(spec.layouts)}
    for key, layout in {**layouts, "micro_layout": spec.micro_layout}.items():
        for name, word in layout.items():
            if name in (*spec.dims, *spec.attributes, "variant"):
                raise SpecError(f"{path}: key '{key}': expected names of flags or of your own, got '{name}'")
            values = spec.flags.get(name)
            known = values if isinstance(values, dict) else ()
            if values is not None and isinstance(word, str) and word not in known and not word.isdigit():
                expected = ", ".join(known) or "a number"
                raise SpecError(f"{path}: key '{key}.{name}': expected {expected}, got '{word}'")


def _shapes(path: Path, spec: OperatorSpec) -> Shapes:
    drawn = {name: tuple(values) for name, values in spec.drawn.items()}
    shapes = Shapes(spec.dims, spec.attributes, spec.shape, drawn, spec.rules)
    known = dict.fromkeys(shapes.names, int)
    before = list(spec.dims)
    for name, usual in spec.attributes.items():
        if isinstance(usual, str) and usual not in before:
            raise SpecError(
                f"{path}: key 'attributes.{name}': expected a number or one of {', '.join(before)}, got '{usual}'"
            )
        before.append(name)
    for name, one in spec.operands.items():
        for text in one.shape:
            _expression(path, f"operands.{name}.shape", str(text), (*known, *spec.flags))
    for i, rule in enumerate(spec.rules):
        _expression(path, f"rules.{i}.must", rule.must, known)
    if twice := [name for name in spec.flags if name in known or name in spec.parameters or name == "variant"]:
        raise SpecError(f"{path}: key 'flags.{twice[0]}': expected another name, this one is a call's already")
    for key, names in (("drawn", set(spec.drawn)), ("micro", set(spec.micro))):
        if more := names - known.keys() or (key == "micro" and names and known.keys() - spec.attributes.keys() - names):
            raise SpecError(f"{path}: key '{key}': expected {', '.join(known)}, got {', '.join(names)}: {more}")
    shown = [name for name in known if shapes.written.count(f"{{{name}}}") != 1]
    for name, values in spec.drawn.items():
        if min(values) < (least := 1 if name in spec.dims else 0):
            raise SpecError(f"{path}: key 'drawn.{name}': expected numbers from {least}, got {min(values)}")
    if set(re.sub(r"\{\w+\}", "", shapes.written)) & set("{}"):
        raise SpecError(f"{path}: key 'shape': expected braces around names alone, got '{spec.shape}'")
    if shown or len(known) != len(spec.dims) + len(spec.attributes):
        raise SpecError(f"{path}: key 'shape': expected each of {', '.join(known)} once, got '{spec.shape}'")
    return shapes


def _expression(path: Path, key: str, text: str, known: Iterable[str]) -> None:
    try:
        parse(text, dict.fromkeys(known, int))
    except SpecError as error:
        raise SpecError(f"{path}: key '{key}': expected an expression over {', '.join(known)}: {error}") from None


def _read(path: Path, key: str, shapes: Shapes, given: Iterable[object]) -> tuple[Shape, ...]:
    try:
        return tuple(shapes.of(shape) for shape in given)
    except ValueError as error:
        raise SpecError(f"{path}: key '{key}': {error}") from None


@lru_cache(maxsize=32)  # as long as its module, whose class it changes
def _contract(path: Path) -> type[Contract]:
    """The class of a reference.py, once it has what a contract asks for."""
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
    """The names of the contract's features, once its answers on one problem agree with operator.yaml."""
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
            raise SpecError(f"{declared}: key 'features.{name}': expected another name, this one is the contract's")
        _expression(declared, f"features.{name}", text, seen)
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
    """The templates of the operator it uses that it takes."""
    files = (file for one in used for file in (one / KERNELS).glob(f"*{TEMPLATE_SUFFIX}"))
    there = {file.name.removesuffix(TEMPLATE_SUFFIX): file for file in files}
    if strange := [name for name in spec.kernels if name not in there]:
        known = ", ".join(sorted(there)) or "none, without 'uses'"
        raise SpecError(f"{path}: key 'kernels': expected some of {known}, got '{strange[0]}'")
    return {name: there[name] for name in spec.kernels}


def _added(name: str, plugins: tuple[Path, ...]) -> dict[str, Path]:
    """Templates for an operator in plug-in folders that do not hold the operator itself; the first of a name counts."""
    found: dict[str, Path] = {}
    for root in paths.plugin_roots(plugins):
        folder = root / "templates" / name
        if not (folder / "operator.yaml").is_file():
            for file in sorted((folder / KERNELS).glob(f"*{TEMPLATE_SUFFIX}")):
                found.setdefault(file.name.removesuffix(TEMPLATE_SUFFIX), file)
    return found


def _stages(path: Path, spec: OperatorSpec) -> tuple[str, ...]:
    if not set(NEEDED) <= set(spec.stages) or spec.stages != tuple(name for name in STAGES if name in spec.stages):
        expected = f"{', '.join(NEEDED)} and any of {', '.join(STAGES[len(NEEDED) :])}, in this order"
        raise SpecError(f"{path}: key 'stages': expected {expected}, got {', '.join(spec.stages) or 'none'}")
    return spec.stages


def _blocking(path: Path, spec: BlockingSpec) -> Tunables:
    for key, names in (("prior", spec.prior), ("beside", spec.beside), ("runtime", spec.runtime)):
        if strange := next((name for name in names if name not in spec.tunables), None):
            known = ", ".join(spec.tunables)
            raise SpecError(f"{path}: key 'blocking.{key}': expected names among {known}, got '{strange}'")
    values = {name: tuple(of_name) for name, of_name in spec.tunables.items()}
    return Tunables(values, spec.constraints, spec.prior, spec.beside)


def _direct(path: Path, spec: OperatorSpec) -> Direct | None:
    if spec.direct is None:
        return None
    if spec.direct.suite not in spec.suites:
        known = ", ".join(spec.suites)
        raise SpecError(f"{path}: key 'direct.suite': expected one of {known}, got '{spec.direct.suite}'")
    found = replace(spec.direct, unasked=spec.direct.unasked or spec.direct.always)
    if found.unasked < found.always:
        raise SpecError(
            f"{path}: key 'direct.unasked': expected {found.always} ('always') or more, got {found.unasked}"
        )
    return found


def require_whole(operator: Operator) -> None:
    """Raises SpecError where a file is absent without which no library of an operator is built or called."""
    for name in ("adapter.c", "binding.py", "product/product.yaml"):
        if not (operator.folder / name).is_file():
            raise SpecError(f"{operator.folder / name}: missing; an operator needs it")
    if not any((folder / "candidate.c.j2").is_file() for folder in operator.templates):
        raise SpecError(
            f"{operator.folder / 'candidate.c.j2'}: missing; an operator needs it, of its own or by `uses:`"
        )


def serves_devices(operator: Operator) -> bool:
    """Whether its folder holds what products for devices are made of."""
    return (operator.folder / "device").is_dir()


def binding(operator: Operator, device: bool = False) -> ModuleType:
    """The operator's binding.py, or that of its products for devices: how one is called from Python (tensorop.api)."""
    return _module(operator.folder / ("device/binding.py" if device else "binding.py"))


@lru_cache(maxsize=32)
def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise SpecError(f"{path}: missing; an operator needs it")
    return pymodule.load(path, f"_tensorop_operator_{path.parent.parent.name}_{path.parent.name}_{path.stem}")
