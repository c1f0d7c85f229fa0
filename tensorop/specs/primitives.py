"""The schema of primitives/*.yaml, and its conversion to PrimitiveSet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Annotated, Literal

from pydantic import Field, model_validator

from tensorop import paths
from tensorop.errors import SpecError
from tensorop.model import meaning
from tensorop.model.number import NUMBERS
from tensorop.model.primitive import ARGUMENTS, Collective, ElementType, Formats, Primitive, PrimitiveSet
from tensorop.model.record import rule
from tensorop.specs import catalog, files, yamlfile
from tensorop.specs.yamlfile import File, Record

_HEADER = re.compile(r"[A-Za-z0-9_]+\.h")
_NUMBERS = ("vl", "lanes", "count", "rows", "cols", "ldd", "lds", "lane")  # further names in a meaning

_Setting = Annotated[int, Field(gt=0, le=1 << 10)]


class Lanes(Record):
    """Expressions for the number of lanes."""

    agnostic: str  # for any vector length, which kernels read at run time
    fixed: str  # for `$vlen` bits, known at build time


class TypeSpec(Record):
    """A dtype in this set."""

    element: str  # C type of an element of C (accumulator)
    vector: str  # C type of a vector of them
    predicate: str
    lanes: str | Lanes
    storage: str | None = None  # number format of A and B in callers' memory; by default the dtype
    compute: str | None = None  # number format of A and B in kernels, after packing; by default `storage`
    accumulator: str | None = None  # number format of C; by default the dtype
    group: int = Field(default=1, ge=1, le=16)  # steps of k in an element of the compute type
    compute_vector: str | None = None  # C type of a vector of A in kernels; by default `vector`
    storage_vector: str | None = None  # C type of a vector of A in callers' memory; by default `compute_vector`
    # further `$names` in C texts: name -> text, or setting -> its value -> text
    vars: dict[str, str | dict[str, dict[int, str]]] = Field(default_factory=dict)

    def formats(self, dtype: str) -> Formats:
        storage, accumulator = self.storage or dtype, self.accumulator or dtype
        return Formats(storage, self.compute or storage, accumulator, self.group)


class PrimitiveSpec(Record):
    """One primitive; the name of an argument determines its kind (model.primitive.ARGUMENTS)."""

    args: tuple[str, ...] = Field(default=(), strict=False)
    returns: Literal["vec", "compute", "storage", "half", "elem", "pred", "memory", "none"]
    c: str | dict[str, str]
    meaning: str
    preconditions: tuple[str, ...] = Field(default=(), strict=False)
    exact: bool = True
    cost: dict[str, float] | None = None


class CollectiveSpec(Record):
    """One entry of `collectives`; see model.primitive.Collective."""

    group: Literal["thread", "warp", "warpgroup", "block", "cluster"]
    meaning: str = Field(min_length=1)
    c: str
    returns: str = "void"
    args: tuple[str, ...] = Field(default=(), strict=False)
    template: str = ""
    parameters: tuple[str, ...] = Field(default=(), strict=False)
    accesses: str | None = None
    holds: dict[str, Annotated[tuple[str, str], Field(strict=False)]] = Field(default_factory=dict)


class SetSpec(File):
    """A whole file. It has primitives, for one thread, or collectives, for a group of GPU threads."""

    name: str
    description: str
    arch: tuple[str, ...] = Field(default=(), strict=False)
    headers: tuple[str, ...] = Field(default=(), strict=False)
    requires: tuple[str, ...] = Field(default=(), strict=False)
    settings: dict[str, Annotated[tuple[_Setting, ...], Field(min_length=1, max_length=16, strict=False)]] = Field(
        default_factory=dict, max_length=4
    )
    masked: bool = True  # False: load_tail costs more than a load, so templates read padded panels with whole loads
    broadcast: int = Field(default=1, ge=0, le=8)  # temporary vector registers for a scalar factor of `fma`
    cost_source: str = ""  # the core of the primitives' `cost` hints (cycles), and their source
    types: dict[str, TypeSpec] = Field(min_length=1)
    support: dict[str, str | list[str]] = Field(default_factory=dict)  # a list is concatenated
    primitives: dict[str, PrimitiveSpec] = Field(default_factory=dict)
    collectives: dict[str, CollectiveSpec] = Field(default_factory=dict)
    addresses: dict[str, Literal["uint32_t", "uint64_t"]] = Field(default_factory=dict)  # types of addresses

    @model_validator(mode="after")
    def _check(self) -> SetSpec:
        rule(bool(self.primitives) != bool(self.collectives), "expected primitives or collectives, got none")
        for name in self.collectives:
            rule(name.isidentifier(), f"the name of a collective must be a C identifier, got '{name}'")
        for header in self.headers:
            rule(_HEADER.fullmatch(header), f"headers has '{header}'; expected the compiler's own, e.g. immintrin.h")
        self._require_types("support", self.support)
        for dtype, kind in self.types.items():
            formats = kind.formats(dtype)
            for number in (formats.storage, formats.compute, formats.accumulator):
                rule(number in NUMBERS, f"types.{dtype} has '{number}'; expected one of {', '.join(NUMBERS)}")
            for name, text in kind.vars.items():
                for setting, by in text.items() if isinstance(text, dict) else ():
                    each = sorted(by) == sorted(self.settings.get(setting, ()))
                    rule(each, f"types.{dtype}.vars.{name} has a text for each {setting} of settings")
        for name, primitive in self.primitives.items():
            rule(name.isidentifier(), f"the name of a primitive must be a C identifier, got '{name}'")
            self._check_primitive(f"primitives.{name}", primitive)
        return self

    def _check_primitive(self, key: str, primitive: PrimitiveSpec) -> None:
        for argument in primitive.args:
            expected = f"expected one of {', '.join(ARGUMENTS)}"
            rule(argument in ARGUMENTS, f"{key}.args has '{argument}'; {expected}")
        try:
            used = meaning.parse(primitive.meaning).names
        except SpecError as error:
            raise ValueError(f"{key}.meaning: {error}") from None
        known = {*primitive.args, *_NUMBERS}
        for name in sorted(used - known):
            rule(False, f"{key}.meaning uses '{name}'; expected one of {', '.join(sorted(known))}")
        rule(not primitive.cost or self.cost_source, f"{key} has a cost, so it needs cost_source")
        texts = primitive.c if isinstance(primitive.c, dict) else dict.fromkeys(self.types, primitive.c)
        self._require_types(f"{key}.c", texts)
        for dtype, text in texts.items():
            known = {*primitive.args, *self.types[dtype].vars, *self.settings, "vlen"}
            for name in sorted(set(Template(text).get_identifiers()) - known):
                rule(False, f"{key}.c uses ${name}; expected one of {', '.join(sorted(known))}")

    def _require_types(self, key: str, texts: Iterable[str]) -> None:
        for dtype in texts:
            rule(dtype in self.types, f"{key} has a text for {dtype}, which types has not")


def load(name: str, plugins: tuple[Path, ...] = ()) -> SetSpec:
    """Reads and checks one set."""
    path = catalog.find("primitives", name, plugins)
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read(path: Path, stamp: int) -> SetSpec:
    """Reads a set once, since a search loads its sets thousands of times. stamp: changes if the file was edited"""
    name = path.stem
    spec = yamlfile.validate(SetSpec, yamlfile.read(path), str(path))
    if spec.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}' as the file is called, got '{spec.name}'")
    return spec


def resolved(name: str, plugins: tuple[Path, ...] = ()) -> PrimitiveSet:
    """A set as a record for platforms."""
    path, spec = catalog.find("primitives", name, plugins), load(name, plugins)
    return PrimitiveSet(
        **yamlfile.shared(spec, PrimitiveSet)
        | {
            "types": {dtype: _type(spec, dtype, kind) for dtype, kind in spec.types.items()},
            "whole": "" if paths.shipped(path) else files.text(path, files.TEXT),
            "collectives": {
                name: Collective(name, **of.model_dump(), addresses=frozenset(spec.addresses))
                for name, of in spec.collectives.items()
            },
        }
    )


def _type(spec: SetSpec, dtype: str, kind: TypeSpec) -> ElementType:
    texts = {name: one.c if isinstance(one.c, str) else one.c.get(dtype) for name, one in spec.primitives.items()}
    support = spec.support.get(dtype, "")
    return ElementType(
        **yamlfile.shared(kind, ElementType)
        | {
            "lanes": kind.lanes if isinstance(kind.lanes, str) else kind.lanes.agnostic,
            "fixed_lanes": kind.lanes if isinstance(kind.lanes, str) else kind.lanes.fixed,
            "formats": kind.formats(dtype),
            "compute_vector": kind.compute_vector or kind.vector,
            "storage_vector": kind.storage_vector or kind.compute_vector or kind.vector,
            "support": support if isinstance(support, str) else "\n".join(support),
            "primitives": {
                name: Primitive(name=name, **{**yamlfile.shared(of, Primitive), "c": texts[name]})
                for name, of in spec.primitives.items()
                if texts[name] is not None
            },
        }
    )
