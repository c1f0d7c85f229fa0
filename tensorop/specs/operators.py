"""The schema of templates/<op>/operator.yaml, and the loading of its reference.py by path."""

from __future__ import annotations

import importlib.util
import sys
from functools import lru_cache
from pathlib import Path
from types import ModuleType
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tensorop import paths
from tensorop.errors import SpecError
from tensorop.model.kernel import Constraint
from tensorop.model.operator import Costs, Direct, Operator, Tunables
from tensorop.specs import catalog, yamlfile

DRAFTS, DRAFT_SUFFIX = "drafts", ".c.j2"  # of an operator's folder; their file names


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class ConstraintSpec(_Record):
    must: str
    reason: str


class TunablesSpec(_Record):
    tunables: dict[str, list[int | str]]
    constraints: tuple[ConstraintSpec, ...] = Field(default=(), strict=False)


class BlockingSpec(TunablesSpec):
    at_call: tuple[str, ...] = Field(default=(), strict=False)


class DirectSpec(_Record):
    suite: str
    always: int = Field(gt=0, le=1 << 20)
    unasked: int | None = Field(default=None, gt=0, le=1 << 20)  # as much as `always`
    most: int = Field(gt=0, le=1 << 30)


class CostsSpec(_Record):
    absent: dict[str, int] = Field(default_factory=dict)
    where: dict[str, str] = Field(default_factory=dict)
    terms: dict[str, str] = Field(default_factory=dict)


class OperatorSpec(_Record):
    """A whole file."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    description: str
    dims: tuple[str, ...] = Field(min_length=1, strict=False)
    dtypes: tuple[str, ...] = Field(min_length=1, strict=False)
    api: str
    layouts: tuple[dict[str, int | str], ...] = Field(min_length=1, strict=False)
    features: dict[str, str]
    costs: CostsSpec = Field(default_factory=CostsSpec)
    micro: dict[str, str | int]
    micro_layout: dict[str, int | str]
    defaults: dict[str, str]
    blocking: BlockingSpec
    numbers: tuple[str, ...] = Field(default=(), strict=False)
    suites: dict[str, list[list[int]]]
    probes: list[list[int]] = Field(default_factory=list)
    clock_probes: list[list[int]] = Field(default_factory=list)
    direct: DirectSpec | None = None


def load(name: str, plugins: tuple[Path, ...] = ()) -> Operator:
    """An operator by name; raises UsageError for an unknown one, SpecError for a broken folder."""
    folder = catalog.find("templates", name, plugins)
    path = folder / "operator.yaml"
    spec = yamlfile.validate(OperatorSpec, yamlfile.read(path), str(path))
    if spec.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}' as the folder is called, got '{spec.name}'")
    return Operator(
        name=spec.name,
        description=spec.description,
        folder=folder,
        dims=spec.dims,
        dtypes=spec.dtypes,
        layouts=tuple(dict(layout) for layout in spec.layouts),
        features=spec.features,
        costs=Costs(spec.costs.where, spec.costs.terms, spec.costs.absent),
        micro={key: str(value) for key, value in spec.micro.items()},
        blocking=Tunables(
            {key: tuple(values) for key, values in spec.blocking.tunables.items()},
            tuple(Constraint(c.must, c.reason) for c in spec.blocking.constraints),
        ),
        at_call=_at_call(path, spec),
        micro_layout=spec.micro_layout,
        defaults=spec.defaults,
        numbers=spec.numbers,
        suites={key: tuple(tuple(shape) for shape in shapes) for key, shapes in spec.suites.items()},
        probes=tuple(tuple(shape) for shape in spec.probes),
        clock_probes=tuple(tuple(shape) for shape in spec.clock_probes),
        direct=_direct(path, spec),
        api=spec.api,
        reference=_module(folder / "reference.py"),
        added=_added(name, plugins),
    )


def _added(name: str, plugins: tuple[Path, ...]) -> dict[str, Path]:
    """Drafts for an operator in plug-in folders that do not hold the operator itself; the first of a name counts."""
    found: dict[str, Path] = {}
    for root in paths.plugin_roots(plugins):
        folder = root / "templates" / name
        if not (folder / "operator.yaml").is_file():
            for file in sorted((folder / DRAFTS).glob(f"*{DRAFT_SUFFIX}")):
                found.setdefault(file.name.removesuffix(DRAFT_SUFFIX), file)
    return found


def _at_call(path: Path, spec: OperatorSpec) -> tuple[str, ...]:
    for name in spec.blocking.at_call:
        if name not in spec.blocking.tunables:
            known = ", ".join(spec.blocking.tunables)
            raise SpecError(f"{path}: key 'blocking.at_call': expected names among {known}, got '{name}'")
    return spec.blocking.at_call


def _direct(path: Path, spec: OperatorSpec) -> Direct | None:
    if spec.direct is None:
        return None
    if spec.direct.suite not in spec.suites:
        known = ", ".join(spec.suites)
        raise SpecError(f"{path}: key 'direct.suite': expected one of {known}, got '{spec.direct.suite}'")
    unasked = spec.direct.unasked or spec.direct.always
    if unasked < spec.direct.always:
        raise SpecError(
            f"{path}: key 'direct.unasked': expected {spec.direct.always} ('always') or more, got {unasked}"
        )
    if spec.direct.most < unasked:
        raise SpecError(
            f"{path}: key 'direct.most': expected {unasked} ('always', 'unasked') or more, got {spec.direct.most}"
        )
    return Direct(spec.direct.suite, spec.direct.always, unasked, spec.direct.most)


def binding(operator: Operator) -> ModuleType:
    """The operator's binding.py: how its product is called from Python (see tensorop.api)."""
    return _module(operator.folder / "binding.py")


@lru_cache(maxsize=32)
def _module(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"_tensorop_operator_{path.parent.name}_{path.stem}", path)
    if spec is None or spec.loader is None or not path.is_file():
        raise SpecError(f"{path}: missing; an operator needs it")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module
