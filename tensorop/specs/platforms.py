"""The schema of platforms/*.yaml and the merge over `parent:`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tensorop.errors import SpecError
from tensorop.model.platform import Cache, Compiler, Platform
from tensorop.specs import catalog, yamlfile


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CacheSpec(_Record):
    size: int = Field(gt=0)
    ways: int = Field(gt=0)
    line: int = Field(default=64, gt=0)
    shared_by: int = Field(default=1, gt=0)


class CompilerSpec(_Record):
    static_target: str
    static_cpu: str
    shared_target: str
    arch_flags: tuple[str, ...] = Field(default=(), strict=False)
    flags: tuple[str, ...] = Field(default=("-O3", "-g0"), strict=False)


class PlatformSpec(_Record):
    """A whole file, after the merge with its parents."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    parent: str | None = None
    description: str
    arch: Literal["x86_64", "riscv64", "aarch64"]
    primitives: tuple[str, ...] = Field(min_length=1, strict=False)
    registers: int = Field(gt=0)
    vlens: tuple[int, ...] = Field(min_length=1, strict=False)
    verify_vlens: tuple[int, ...] = Field(default=(), strict=False)
    fixed_vlen: int | None = None
    requires: tuple[str, ...] = Field(default=(), strict=False)
    compiler: CompilerSpec
    runner: Literal["native", "qemu"]
    qemu_cpu: str = ""
    caches: dict[Literal["l1", "l2", "l3"], CacheSpec]
    baselines: dict[str, dict[str, str]] = Field(default_factory=dict)
    tunables: dict[str, tuple[int | str, ...]] = Field(default_factory=dict, strict=False)
    model: dict[str, Any] | None = None


_MERGED = ("compiler", "caches", "baselines", "tunables")  # by key; everything else is replaced whole


def load(name: str, plugins: tuple[Path, ...] = ()) -> Platform:
    """A platform by name; raises UsageError for an unknown one, SpecError for a broken file or a parent cycle."""
    merged: dict[str, Any] = {}
    lineage: list[str] = []
    current: str | None = name
    origin = str(catalog.find("platforms", name, plugins))
    while current is not None:
        if current in lineage:
            raise SpecError(f"{origin}: key 'parent': cycle {' -> '.join([*lineage, current])}")
        path = catalog.find("platforms", current, plugins)
        data = yamlfile.read(path)
        if data.get("name") != current:
            raise SpecError(f"{path}: key 'name': expected '{current}' as the file is called, got {data.get('name')!r}")
        lineage.append(current)
        parent = data.get("parent")
        if parent is not None and not isinstance(parent, str):
            raise SpecError(f"{path}: key 'parent': expected the name of a platform, got {parent!r}")
        merged = _under(merged, data)
        current = parent
    spec = yamlfile.validate(PlatformSpec, merged, origin)
    return _resolve(spec, tuple(lineage))


def _under(child: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    """A parent's values below what a child already said."""
    out = dict(parent)
    for key, value in child.items():
        if key in _MERGED and isinstance(value, dict) and isinstance(parent.get(key), dict):
            out[key] = {**parent[key], **value}
        else:
            out[key] = value
    return out


def _resolve(spec: PlatformSpec, lineage: tuple[str, ...]) -> Platform:
    return Platform(
        name=spec.name,
        lineage=lineage,
        description=spec.description,
        arch=spec.arch,
        primitives=spec.primitives,
        registers=spec.registers,
        vlens=spec.vlens,
        verify_vlens=spec.verify_vlens or spec.vlens,
        fixed_vlen=spec.fixed_vlen,
        requires=spec.requires,
        compiler=Compiler(**spec.compiler.model_dump()),
        runner=spec.runner,
        qemu_cpu=spec.qemu_cpu,
        caches={level: Cache(**cache.model_dump()) for level, cache in spec.caches.items()},
        baselines=spec.baselines,
        tunables=spec.tunables,
        board=spec.model,
    )
