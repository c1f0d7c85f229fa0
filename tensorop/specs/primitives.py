"""The schema of primitives/*.yaml, and the vocabulary a platform gets from its sets."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from tensorop.errors import SpecError
from tensorop.model import meaning
from tensorop.model.expression import evaluate
from tensorop.model.number import NUMBERS
from tensorop.model.platform import Platform
from tensorop.model.primitive import ARGUMENTS, Formats, Vocabulary, Word
from tensorop.specs import catalog, yamlfile

_HEADER = re.compile(r"[A-Za-z0-9_]+\.h")
_NUMBERS = ("vl", "lanes", "count", "rows", "cols", "ldd", "lds", "lane")  # what a meaning may name beside arguments

_Setting = Annotated[int, Field(gt=0, le=1 << 10)]
MAX_LANES = 1 << 12  # elements in a vector; what is tried on a set grows with their square


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Lanes(_Record):
    """agnostic: any vector length, asked at run time; fixed: `$vlen` is known when the kernel is written."""

    agnostic: str
    fixed: str


class ElementType(_Record):
    """How a dtype looks in this set; `vars` are further `$names` for the C texts, by a setting's value where they
    depend on one.

    stored, packed, sums: number formats of A and B as callers store them, as packing leaves them for the kernel, and
    of C; by default the dtype itself. group: steps of k that a packed element holds. element and vector are C's,
    packed_vector (by default `vector`) A's as kernels read it, stored_vector (by default that) as it is stored.
    """

    element: str
    vector: str
    predicate: str
    lanes: str | Lanes
    stored: str | None = None
    packed: str | None = None
    sums: str | None = None
    group: int = Field(default=1, ge=1, le=16)
    packed_vector: str | None = None
    stored_vector: str | None = None
    vars: dict[str, str | dict[str, dict[int, str]]] = Field(default_factory=dict)

    def formats(self, dtype: str) -> Formats:
        stored, sums = self.stored or dtype, self.sums or dtype
        return Formats(stored, self.packed or stored, sums, self.group)

    def filled(self, settings: Mapping[str, int]) -> dict[str, str]:
        """`vars` at values of the settings."""
        return {
            name: text if isinstance(text, str) else next(by[settings[setting]] for setting, by in text.items())
            for name, text in self.vars.items()
        }


class WordSpec(_Record):
    """One entry; an argument's name says its kind."""

    args: tuple[str, ...] = Field(default=(), strict=False)
    returns: Literal["vec", "packed", "stored", "half", "elem", "pred", "memory", "none"]
    c: str | dict[str, str]
    meaning: str
    preconditions: tuple[str, ...] = Field(default=(), strict=False)
    exact: bool = True
    cost: dict[str, float] | None = None


class PrimitiveSet(_Record):
    """A whole file."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    description: str
    arch: tuple[str, ...] = Field(default=(), strict=False)
    headers: tuple[str, ...] = Field(default=(), strict=False)
    requires: tuple[str, ...] = Field(default=(), strict=False)
    settings: dict[str, Annotated[tuple[_Setting, ...], Field(min_length=1, max_length=16, strict=False)]] = Field(
        default_factory=dict, max_length=4
    )
    masked: bool = True  # False: load_tail costs more than a load, so drafts read padded panels with whole loads
    cost_source: str = ""  # the core whose cycles the words' `cost` hints are, and where they were read
    types: dict[str, ElementType] = Field(min_length=1)
    support: dict[str, str | list[str]] = Field(default_factory=dict)  # several texts: one after the other
    words: dict[str, WordSpec] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> PrimitiveSet:
        if strange := next((h for h in self.headers if not _HEADER.fullmatch(h)), None):
            raise ValueError(f"rule: headers has '{strange}'; expected the compiler's own, e.g. immintrin.h")
        self._known_types("support", self.support)
        for dtype, kind in self.types.items():
            said = kind.formats(dtype)
            if strange := next((f for f in (said.stored, said.packed, said.sums) if f not in NUMBERS), None):
                raise ValueError(f"rule: types.{dtype} has '{strange}'; expected one of {', '.join(NUMBERS)}")
            for name, text in kind.vars.items():
                for setting, by in text.items() if isinstance(text, dict) else ():
                    if sorted(by) != sorted(self.settings.get(setting, ())):
                        raise ValueError(f"rule: types.{dtype}.vars.{name} has a text for each {setting} of settings")
        for name, word in self.words.items():
            if isinstance(word.c, dict):
                self._known_types(f"words.{name}.c", word.c)
            if not name.isidentifier():
                raise ValueError(f"rule: a word is called like a C identifier, got '{name}'")
            if strange := next((a for a in word.args if a not in ARGUMENTS), None):
                raise ValueError(f"rule: words.{name}.args has '{strange}'; expected one of {', '.join(ARGUMENTS)}")
            try:
                read = meaning.parse(word.meaning)
            except SpecError as error:
                raise ValueError(f"rule: words.{name}.meaning: {error}") from None
            if foreign := sorted(read.names - {*word.args, *_NUMBERS}):
                names = ", ".join(sorted({*word.args, *_NUMBERS}))
                raise ValueError(f"rule: words.{name}.meaning uses '{foreign[0]}'; expected one of {names}")
            if word.cost and not self.cost_source:
                raise ValueError(f"rule: words.{name} has a cost, so cost_source says where it was read")
            for dtype, kind in self.types.items():
                text = word.c if isinstance(word.c, str) else word.c.get(dtype, "")
                known = {*word.args, *kind.vars, *self.settings, "vlen"}
                if unknown := sorted(set(Template(text).get_identifiers()) - known):
                    raise ValueError(
                        f"rule: words.{name}.c uses ${unknown[0]}; expected one of {', '.join(sorted(known))}"
                    )
        return self

    def _known_types(self, key: str, texts: Mapping[str, object]) -> None:
        if strange := next((t for t in texts if t not in self.types), None):
            raise ValueError(f"rule: {key} has a text for {strange}, which types has not")


def load(name: str, plugins: tuple[Path, ...] = ()) -> PrimitiveSet:
    """Reads and checks one set."""
    path = catalog.find("primitives", name, plugins)
    return _read(path, path.stat().st_mtime_ns)


@lru_cache(maxsize=64)
def _read(path: Path, stamp: int) -> PrimitiveSet:
    """A search asks for its sets thousands of times; `stamp` tells a file that was edited."""
    name = path.stem
    spec = yamlfile.validate(PrimitiveSet, yamlfile.read(path), str(path))
    if spec.name != name:
        raise SpecError(f"{path}: key 'name': expected '{name}' as the file is called, got '{spec.name}'")
    return spec


def settings(platform: Platform, plugins: tuple[Path, ...] = ()) -> dict[str, tuple[int, ...]]:
    """The settings of a platform's leading set, e.g. {"lmul": (1, 2, 4)}."""
    return dict(load(platform.primitives[0], plugins).settings)


def vocabulary(
    platform: Platform,
    dtype: str,
    chosen: Mapping[str, int] | None = None,
    plugins: tuple[Path, ...] = (),
    only: str | None = None,
) -> Vocabulary:
    """A platform's words for a dtype, all from the first of its sets that knows it: vectors of two sets do not mix.

    chosen: values for the set's settings; defaults to the first of each. only: one set by name instead of the
    platform's own list. Raises SpecError when no set knows the dtype.
    """
    leading = _leading(platform, dtype, plugins, only)
    values = {key: options[0] for key, options in leading.settings.items()} | dict(chosen or {})
    for key, value in (chosen or {}).items():
        if value not in leading.settings.get(key, ()):
            known = "; ".join(f"{k}: {', '.join(map(str, v))}" for k, v in leading.settings.items()) or "none"
            raise SpecError(f"primitive set '{leading.name}' has no setting {key}={value}; it has {known}")
    kind = leading.types[dtype]
    variables = {**kind.filled(values), **{k: str(v) for k, v in values.items()}}
    if platform.fixed_vlen:
        variables["vlen"] = str(platform.fixed_vlen)
    if isinstance(kind.lanes, str):
        lanes = kind.lanes
    else:
        lanes = kind.lanes.fixed if platform.fixed_vlen else kind.lanes.agnostic

    def fill(text: str) -> str:
        return Template(text).safe_substitute(variables)

    words: dict[str, Word] = {}
    for name, entry in leading.words.items():
        text = entry.c if isinstance(entry.c, str) else entry.c.get(dtype)
        if text is not None:
            words[name] = Word(
                name, fill(text), entry.args, entry.returns, entry.meaning, entry.preconditions, entry.exact, entry.cost
            )
    return Vocabulary(
        dtype=dtype,
        element=kind.element,
        vector=fill(kind.vector),
        predicate=kind.predicate,
        lanes=fill(lanes),
        headers=leading.headers,
        support=fill(_joined(leading.support.get(dtype, ""))),
        words=words,
        settings=values,
        masked=leading.masked,
        sources=dict.fromkeys(words, leading.name),
        formats=kind.formats(dtype),
        packed_vector=fill(kind.packed_vector or kind.vector),
        stored_vector=fill(kind.stored_vector or kind.packed_vector or kind.vector),
    )


def formats(platform: Platform, dtype: str, plugins: tuple[Path, ...] = ()) -> Formats:
    """The number formats of a dtype's operands and sums. Raises SpecError when no set knows the dtype."""
    return _leading(platform, dtype, plugins).types[dtype].formats(dtype)


def _leading(platform: Platform, dtype: str, plugins: tuple[Path, ...], only: str | None = None) -> PrimitiveSet:
    for name in (only,) if only else platform.primitives:
        found = load(name, plugins)
        if dtype in found.types:
            return found
    raise SpecError(f"platform '{platform.name}' has no primitives for dtype '{dtype}'")


def _joined(texts: str | list[str]) -> str:
    return texts if isinstance(texts, str) else "\n".join(texts)


def lanes_expression(platform: Platform, dtype: str, vlen: int, plugins: tuple[Path, ...] = ()) -> str:
    """Elements in a vector on a machine with this VLEN (bits), as an expression over the set's settings."""
    leading = _leading(platform, dtype, plugins)
    kind = leading.types[dtype]
    text = kind.lanes if isinstance(kind.lanes, str) else kind.lanes.fixed
    names = {key: text for key, text in kind.vars.items() if isinstance(text, str)}
    names |= {key: key for key in leading.settings}
    return Template(text).safe_substitute({**names, "vlen": str(vlen)}).replace("/", "//")


def lanes_at(
    platform: Platform, dtype: str, chosen: Mapping[str, int], vlen: int, plugins: tuple[Path, ...] = ()
) -> int:
    """Elements in a vector on a machine with this VLEN (bits)."""
    leading = _leading(platform, dtype, plugins)
    kind = leading.types[dtype]
    text = kind.lanes if isinstance(kind.lanes, str) else kind.lanes.fixed
    values = {key: options[0] for key, options in leading.settings.items()} | dict(chosen)
    names = {**kind.filled(values), **{k: str(v) for k, v in values.items()}, "vlen": str(vlen)}
    found = evaluate(Template(text).safe_substitute(names).replace("/", "//"), {})
    if found > MAX_LANES:
        raise SpecError(
            f"primitive set '{leading.name}': types.{dtype}.lanes gives {found} lanes at VLEN {vlen}; "
            f"at most {MAX_LANES} are tried"
        )
    return max(found, 1)
