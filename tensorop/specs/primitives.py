"""The schema of primitives/*.yaml, and its conversion to PrimitiveSet."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache, reduce
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
    ulp: float | None = Field(default=None, ge=0.5, le=1 << 10)
    cost: dict[str, float] | None = None
    support: dict[str, str | list[str]] = Field(default_factory=dict)  # of kernels that call it; a list is concatenated

    def of(self, name: str, dtype: str) -> Primitive | None:
        """The primitive for a dtype; None if it has none."""
        c = self.c if isinstance(self.c, str) else self.c.get(dtype)
        given = {"name": name, "c": c, "support": _joined(self.support.get(dtype, ""))}
        return None if c is None else Primitive(**{**yamlfile.shared(self, Primitive), **given})


def _joined(text: str | list[str]) -> str:
    return text if isinstance(text, str) else "\n".join(text)


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
    extends: str | None = None  # the set from which missing keys and entries are taken
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
        rule(primitive.exact or primitive.ulp is None, f"{key} has `ulp` and `exact: false`; expected one of them")
        for text_of in ("c", "support"):
            given = getattr(primitive, text_of)
            texts = given if isinstance(given, dict) else dict.fromkeys(self.types, given)
            self._require_types(f"{key}.{text_of}", texts)
            for dtype, text in texts.items():
                known = {*(primitive.args if text_of == "c" else ()), *self.types[dtype].vars, *self.settings, "vlen"}
                for name in sorted(set(Template(_joined(text)).get_identifiers()) - known):
                    rule(False, f"{key}.{text_of} uses ${name}; expected one of {', '.join(sorted(known))}")

    def _require_types(self, key: str, texts: Iterable[str]) -> None:
        for dtype in texts:
            rule(dtype in self.types, f"{key} has a text for {dtype}, which types has not")


# These are merged entry by entry; other keys are replaced whole. What a set requires is added to the other's.
_MERGED = ("types", "settings", "support", "primitives", "collectives", "addresses")
_ADDED = ("headers", "requires")


def load(name: str, plugins: tuple[Path, ...] = ()) -> SetSpec:
    """Reads and checks one set, merged over the sets that it extends.

    Raises UsageError for an unknown name, SpecError for a broken file and for sets that extend each other in a cycle.
    """
    return _checked(_stamped(name, plugins))


def _stamped(name: str, plugins: tuple[Path, ...]) -> tuple[tuple[Path, int], ...]:
    return tuple((path, path.stat().st_mtime_ns) for path in _files(name, plugins))


def _files(name: str, plugins: tuple[Path, ...]) -> list[Path]:
    """A set's file, that of the set that it extends, and so on."""
    found = [catalog.find("primitives", name, plugins)]
    while (wanted := _read(found[-1], found[-1].stat().st_mtime_ns).get("extends")) is not None:
        asker = f"{found[-1]}: key 'extends'"
        if not isinstance(wanted, str):
            raise SpecError(f"{asker}: expected the name of a primitive set, got {wanted!r:.80}")
        path = catalog.named("primitives", wanted, plugins, found[-1], "extends")
        if path in found:
            seen = " -> ".join(one.stem for one in (*found, path))
            raise SpecError(f"{asker}: expected no cycle, got {seen}", hint="a set cannot extend itself")
        found.append(path)
    return found


@lru_cache(maxsize=64)
def _read(path: Path, stamp: int) -> dict[str, object]:
    """Reads a file once, since a search loads its sets thousands of times. stamp: changes if the file was edited"""
    return yamlfile.read(path)


@lru_cache(maxsize=64)
def _checked(stamped: tuple[tuple[Path, int], ...]) -> SetSpec:
    path = stamped[0][0]
    spec = yamlfile.validate(SetSpec, _merged(stamped), str(path))
    if spec.name != path.stem:
        raise SpecError(f"{path}: key 'name': expected '{path.stem}' as the file is called, got '{spec.name}'")
    return spec


def _merged(stamped: tuple[tuple[Path, int], ...]) -> dict[str, object]:
    """A set's own file over those that it extends, given as `_stamped` does."""
    return reduce(lambda below, one: _over(_read(*one), below), reversed(stamped), {})


def _over(own: dict[str, object], below: dict[str, object]) -> dict[str, object]:
    """A set over the one that it extends."""
    out = yamlfile.over(own, below, _MERGED)
    for key in _ADDED:
        value, under = own.get(key), below.get(key)
        if isinstance(value, list) and isinstance(under, list):
            out[key] = list(dict.fromkeys([*under, *value]))
    return out


def _whole(stamped: tuple[tuple[Path, int], ...]) -> str:
    """A set as one file without references; "" if all its files are shipped with tensorop."""
    if all(paths.shipped(path) for path, _ in stamped):
        return ""
    if len(stamped) == 1:
        return files.text(stamped[0][0], files.TEXT)
    return yamlfile.dump({key: value for key, value in _merged(stamped).items() if key != "extends"})


def resolved(name: str, plugins: tuple[Path, ...] = ()) -> PrimitiveSet:
    """A set as a record for platforms."""
    stamped = _stamped(name, plugins)
    spec = _checked(stamped)
    return PrimitiveSet(
        **yamlfile.shared(spec, PrimitiveSet)
        | {
            "types": {dtype: _type(spec, dtype, kind) for dtype, kind in spec.types.items()},
            "whole": _whole(stamped),
            "collectives": {
                name: Collective(name, **of.model_dump(), addresses=frozenset(spec.addresses))
                for name, of in spec.collectives.items()
            },
        }
    )


def _type(spec: SetSpec, dtype: str, kind: TypeSpec) -> ElementType:
    primitives = {name: one.of(name, dtype) for name, one in spec.primitives.items()}
    return ElementType(
        **yamlfile.shared(kind, ElementType)
        | {
            "lanes": kind.lanes if isinstance(kind.lanes, str) else kind.lanes.agnostic,
            "fixed_lanes": kind.lanes if isinstance(kind.lanes, str) else kind.lanes.fixed,
            "formats": kind.formats(dtype),
            "compute_vector": kind.compute_vector or kind.vector,
            "storage_vector": kind.storage_vector or kind.compute_vector or kind.vector,
            "support": _joined(spec.support.get(dtype, "")),
            "primitives": {name: one for name, one in primitives.items() if one is not None},
        }
    )
