"""The schema of primitives/*.yaml, and the vocabulary a platform gets from its sets."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tensorop.errors import SpecError
from tensorop.model.platform import Platform
from tensorop.model.primitive import Vocabulary, Word
from tensorop.model.expression import evaluate
from tensorop.specs import catalog, yamlfile


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Lanes(_Record):
    """agnostic: any vector length, asked at run time; fixed: `$vlen` is known when the kernel is written."""

    agnostic: str
    fixed: str


class ElementType(_Record):
    """How a dtype looks in this set; `vars` are further `$names` for the C texts."""

    element: str
    vector: str
    predicate: str
    lanes: str | Lanes
    vars: dict[str, str] = Field(default_factory=dict)


class WordSpec(_Record):
    """One entry."""

    args: tuple[str, ...] = Field(default=(), strict=False)
    returns: Literal["vec", "elem", "pred", "count", "memory", "none"]
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
    settings: dict[str, tuple[int, ...]] = Field(default_factory=dict, strict=False)
    masked: bool = True  # False: load_tail costs more than a load, so drafts read padded panels with whole loads
    cost_source: str = ""  # the core whose cycles the words' `cost` hints are, and where they were read
    types: dict[str, ElementType]
    support: dict[str, str] = Field(default_factory=dict)
    words: dict[str, WordSpec]


def load(name: str, plugins: tuple[Path, ...] = ()) -> PrimitiveSet:
    """Reads and checks one set."""
    path = catalog.find("primitives", name, plugins)
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
    """A platform's words for a dtype: each from the first of its sets that has it with the leading set's types.

    chosen: values for the leading set's settings; defaults to the first of each. only: one set by name instead of
    the platform's own list. Raises UsageError when no set knows the dtype.
    """
    sets = [load(n, plugins) for n in ((only,) if only else platform.primitives)]
    leading = next((s for s in sets if dtype in s.types), None)
    if leading is None:
        raise SpecError(f"platform '{platform.name}' has no primitives for dtype '{dtype}'")
    values = {key: options[0] for key, options in leading.settings.items()} | dict(chosen or {})
    kind = leading.types[dtype]
    variables = {**kind.vars, **{k: str(v) for k, v in values.items()}}
    if platform.fixed_vlen:
        variables["vlen"] = str(platform.fixed_vlen)
    lanes = kind.lanes if isinstance(kind.lanes, str) else (kind.lanes.fixed if platform.fixed_vlen else kind.lanes.agnostic)

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
        support=fill(leading.support.get(dtype, "")),
        words=words,
        settings=values,
        masked=leading.masked,
        sources={name: leading.name for name in words},
    )


def lanes_at(platform: Platform, dtype: str, chosen: Mapping[str, int], vlen: int, plugins: tuple[Path, ...] = ()) -> int:
    """Elements in a vector on a machine with this VLEN (bits)."""
    leading = load(platform.primitives[0], plugins)
    kind = leading.types[dtype]
    text = kind.lanes if isinstance(kind.lanes, str) else kind.lanes.fixed
    values = {key: options[0] for key, options in leading.settings.items()} | dict(chosen)
    filled = Template(text).safe_substitute({**kind.vars, **{k: str(v) for k, v in values.items()}, "vlen": str(vlen)})
    return max(int(evaluate(filled.replace("/", "//"), {})), 1)
