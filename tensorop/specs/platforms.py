"""The schema of platforms/*.yaml and the merge over `parent:`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, RootModel, model_validator

from tensorop.errors import SpecError, UsageError
from tensorop.model.platform import BaselineChoice, Cache, Compiler, Platform, Start
from tensorop.model.point import Point
from tensorop.specs import calibration, catalog, native, yamlfile


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class CacheSpec(_Record):
    """One level: size in bytes of the whole cache, ways, line in bytes, cores that share it."""

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


class BaselineSpec(_Record):
    vlen_min: int = Field(default=0, ge=0)
    environment: dict[str, str]


class StartSpec(RootModel[dict[str, int | str]]):
    """A variant by its draft's name and its tunables."""

    model_config = ConfigDict(frozen=True, strict=True)

    @model_validator(mode="after")
    def _check(self) -> StartSpec:
        if not isinstance(self.root.get("draft"), str):
            raise ValueError("rule: a start names its draft")
        return self


def _choices(value: Any) -> Any:
    """A plain mapping is the environment at every VLEN."""
    return [{"environment": value}] if isinstance(value, dict) else value


class PlatformSpec(_Record):
    """A whole file, after the merge with its parents."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    parent: str | None = None
    description: str
    arch: Literal["x86_64", "riscv64", "aarch64"]
    primitives: tuple[str, ...] = Field(min_length=1, strict=False)
    registers: int = Field(gt=0)
    streams: int = Field(default=32, gt=0)
    vlens: tuple[Annotated[int, Field(gt=0)], ...] = Field(min_length=1, strict=False)
    verify_vlens: tuple[Annotated[int, Field(gt=0)], ...] = Field(default=(), strict=False)
    fixed_vlen: int | None = Field(default=None, gt=0)
    requires: tuple[str, ...] = Field(default=(), strict=False)
    identity: dict[str, str] = Field(default_factory=dict)
    compiler: CompilerSpec
    runner: Literal["native", "qemu"]
    qemu_cpu: str = ""
    caches: dict[Literal["l1", "l2", "l3"], CacheSpec]
    baselines: dict[
        str, Annotated[tuple[BaselineSpec, ...], BeforeValidator(_choices), Field(min_length=1, strict=False)]
    ] = Field(default_factory=dict)
    tunables: dict[str, Annotated[tuple[int | str, ...], Field(strict=False)]] = Field(default_factory=dict)
    starts: dict[str, dict[str, Annotated[tuple[StartSpec, ...], Field(strict=False)]]] = Field(default_factory=dict)
    model: dict[str, Any] | None = None
    calibration: str | None = None

    @model_validator(mode="after")
    def _check(self) -> PlatformSpec:
        if self.fixed_vlen and min((*self.vlens, *self.verify_vlens)) < self.fixed_vlen:
            raise ValueError(f"rule: vlens and verify_vlens are at least fixed_vlen ({self.fixed_vlen})")
        if self.runner == "qemu" and not self.qemu_cpu:
            raise ValueError("rule: runner qemu needs qemu_cpu")
        return self


class ProbeSpec(_Record):
    """A file whose contents are asked of this machine: everything it leaves out comes from the best platform here."""

    schema_: Literal[1] = Field(alias="schema")
    name: str
    description: str
    probe: Literal[True]
    tunables: dict[str, Any] = Field(default_factory=dict)
    baselines: dict[str, Any] = Field(default_factory=dict)
    model: dict[str, Any] | None = None


_MERGED = ("compiler", "caches", "baselines", "tunables", "starts")  # by key; everything else is replaced whole


def load(name: str, plugins: tuple[Path, ...] = ()) -> Platform:
    """A platform by name; raises UsageError for an unknown one, SpecError for a broken file or a parent cycle."""
    merged: dict[str, Any] = {}
    lineage: list[str] = []
    current: str | None = name
    origin = asker = catalog.find("platforms", name, plugins)
    while current is not None:
        if current in lineage:
            raise SpecError(f"{origin}: key 'parent': expected no cycle, got {' -> '.join([*lineage, current])}")
        path = _find("platforms", current, plugins, asker, "parent")
        data = yamlfile.read(path)
        if data.get("name") != current:
            raise SpecError(f"{path}: key 'name': expected '{current}' as the file is called, got {data.get('name')!r}")
        if "probe" in data:
            data = _probed(data, path, plugins)
        lineage.append(current)
        parent = data.get("parent")
        if parent is not None and not isinstance(parent, str):
            raise SpecError(f"{path}: key 'parent': expected the name of a platform, got {parent!r}")
        if isinstance(data.get("calibration"), str):
            data = {**data, "calibration": str(path.parent / data["calibration"])}
        merged = _under(merged, data)
        current, asker = parent, path
    spec = yamlfile.validate(PlatformSpec, merged, str(origin))
    for wanted in spec.primitives:
        _find("primitives", wanted, plugins, origin, "primitives")
    if spec.calibration is not None:
        if spec.model is None:
            raise SpecError(f"{origin}: key 'calibration': expected a platform with a board model")
        spec = spec.model_copy(update={"model": calibration.apply(spec.model, Path(spec.calibration))})
    return _resolve(spec, tuple(lineage))


def is_probed(name: str, plugins: tuple[Path, ...] = ()) -> bool:
    """Whether a platform's file asks this machine."""
    return "probe" in yamlfile.read(catalog.find("platforms", name, plugins))


def _probed(data: dict[str, Any], path: Path, plugins: tuple[Path, ...]) -> dict[str, Any]:
    """A probing file as a child of the platform that suits this machine best."""
    yamlfile.validate(ProbeSpec, data, str(path))
    others = [load(n, plugins) for n in catalog.names("platforms", plugins) if not is_probed(n, plugins)]
    best = native.best(others, native.host_arch(), native.cpu_flags())
    caches = native.caches()
    said = {key: value for key, value in data.items() if key != "probe"}
    return {"parent": best.name, "runner": "native", **({"caches": caches} if caches else {}), **said}


def _find(kind: str, name: str, plugins: tuple[Path, ...], asker: Path, key: str) -> Path:
    """catalog.find, naming the file and key that ask for it."""
    try:
        return catalog.find(kind, name, plugins)
    except UsageError as error:
        raise SpecError(f"{asker}: key '{key}': {error.message}", hint=error.hint) from None


def _under(child: dict[str, Any], parent: dict[str, Any]) -> dict[str, Any]:
    """A parent's values below what a child already said."""
    out = dict(parent)
    for key, value in child.items():
        if key in _MERGED and isinstance(value, dict) and isinstance(parent.get(key), dict):
            out[key] = {**parent[key], **value}
        else:
            out[key] = value
    return out


def _start(given: StartSpec) -> Start:
    chosen = {name: value for name, value in given.root.items() if name != "draft"}
    return Start(str(given.root["draft"]), Point.of(chosen))


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
        baselines={
            name: tuple(sorted((BaselineChoice(**c.model_dump()) for c in choices), key=lambda c: c.vlen_min))
            for name, choices in spec.baselines.items()
        },
        tunables=spec.tunables,
        streams=spec.streams,
        starts={
            operator: {dtype: tuple(map(_start, starts)) for dtype, starts in by_dtype.items()}
            for operator, by_dtype in spec.starts.items()
        },
        board=spec.model,
        identity=spec.identity,
    )
