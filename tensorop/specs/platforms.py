"""The schema of platforms/*.yaml, and the merge with `parent:`."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from tensorop import paths
from tensorop.errors import SpecError
from tensorop.model.architecture import host_arch
from tensorop.model.platform import BaselineChoice, Cache, Compiler, Platform
from tensorop.model.record import rule
from tensorop.specs import admitted, catalog, inherit, native, primitives, yamlfile, yamltext
from tensorop.specs.yamlfile import File

MAX_VLEN = 1 << 16  # the largest of all instruction sets in use
_Vlen = Annotated[int, Field(gt=0, le=MAX_VLEN)]


def _choices(value: Any) -> Any:
    """Converts a plain mapping, which is the environment for every VLEN."""
    return [{"environment": value}] if isinstance(value, dict) else value


class PlatformSpec(File):
    """A whole file, after the merge with its parents."""

    name: str  # the file's name without .yaml
    parent: str | None = None  # the platform from which missing keys are taken
    description: str  # one line for `tensorop platforms list`
    arch: str = Field(pattern=r"^[a-z][a-z0-9_]{0,31}$")  # `x86_64`, `riscv64` or `aarch64`
    primitives: tuple[str, ...] = Field(min_length=1, strict=False)  # primitive sets, preferred first
    registers: int = Field(gt=0, le=1 << 10)  # architectural vector registers
    # memory streams that the prefetchers follow at once; by default those of the board model, or else 32
    streams: int | None = Field(default=None, gt=0, le=1 << 10)
    # vector lengths (bits) of tuning and results; one entry for vectors of fixed width
    vlens: tuple[_Vlen, ...] = Field(min_length=1, max_length=16, strict=False)
    # vector lengths (bits) of verification, including those of `vlens`; by default `vlens`
    verify_vlens: tuple[_Vlen, ...] = Field(default=(), max_length=16, strict=False)
    # vector length (bits) that kernels use, also on machines with a longer one; without it they read VLEN at run time
    fixed_vlen: int | None = Field(default=None, gt=0, le=MAX_VLEN)
    # CPU flags that kernels need, in the spelling of /proc/cpuinfo: `[v, zba]`
    requires: tuple[str, ...] = Field(default=(), strict=False)
    # key in /proc/cpuinfo -> text that its value contains on this core: `{uarch: "spacemit,x60"}`
    identity: dict[str, str] = Field(default_factory=dict)
    compiler: Compiler  # how kernels, harness and library are compiled, see [compiler](#compiler)
    runner: str  # the backend: `native`, `qemu`, `cuda`, or one of your own
    qemu_cpu: str = ""  # value of QEMU's -cpu, with `{vlen}` in place of the vector length
    # data caches, the innermost first, see [caches](#caches)
    caches: tuple[Cache, ...] = Field(min_length=1, strict=False)
    # library to compare with -> environment, or a list of choices, see [baselines](#baselines)
    baselines: dict[
        str, Annotated[tuple[BaselineChoice, ...], BeforeValidator(_choices), Field(min_length=1, strict=False)]
    ] = Field(default_factory=dict)
    # values that replace those of operators and templates: `{nr: [4, 8]}`
    tunables: dict[str, Annotated[tuple[int | str, ...], Field(strict=False)]] = Field(default_factory=dict)
    device: dict[str, int | str] | None = None  # facts of a GPU, for platforms with `runner: cuda`
    # the board model, see [model](#model); null: none, even if a parent has one
    model: dict[str, object] | None = None
    calibration: str | None = None  # name of a calibration-*.yaml in the same folder, with constants of the model

    @model_validator(mode="after")
    def _check(self) -> PlatformSpec:
        least = min((*self.vlens, *self.verify_vlens))
        rule(least >= (self.fixed_vlen or 0), f"vlens and verify_vlens are at least fixed_vlen ({self.fixed_vlen})")
        for key, vlens in (("vlens", self.vlens), ("verify_vlens", self.verify_vlens)):
            rule(len(set(vlens)) == len(vlens), f"each of {key} stands once, got {list(vlens)}")
        lacking = sorted(set(self.vlens) - set(self.verify_vlens or self.vlens))
        given = f"{lacking} are not in verify_vlens {list(self.verify_vlens)}"
        rule(not lacking, f"verify_vlens must include every VLEN that is tuned: {given}")
        for complaint in self._complaints():
            rule(False, complaint)
        return self

    def _complaints(self) -> Iterator[str]:
        yield from admitted.compiler(self.arch, dataclasses.asdict(self.compiler))
        yield from admitted.qemu_cpu(self.qemu_cpu)
        for name, choices in self.baselines.items():
            for choice in choices:
                yield from (f"baselines.{name}: {fault}" for fault in admitted.environment(choice.environment))


class ProbeSpec(File):
    """A file for the machine at hand: missing keys come from the best platform for it."""

    name: str
    description: str
    # `true`: missing keys come from the most capable platform that this CPU supports, and the caches from the kernel.
    # The only other keys are `tunables`, `baselines` and `model`. It cannot be a parent
    probe: Literal[True]
    tunables: dict[str, object] = Field(default_factory=dict)
    baselines: dict[str, object] = Field(default_factory=dict)
    model: dict[str, object] | None = None


_PREFETCHERS = ("l1_prefetch", "l2_prefetch")
_MERGED = ("compiler", "baselines", "tunables", "device")  # these are merged key by key; others are replaced whole


def load(name: str, plugins: tuple[Path, ...] = ()) -> Platform:
    """A platform by name. Raises UsageError for an unknown one, SpecError for a broken file or a cycle of parents."""
    files = _files(name, plugins)
    merged, origin = _merged(files), files[0].path
    spec = yamlfile.validate(PlatformSpec, merged, str(origin))
    catalog.named("backends", spec.runner, plugins, origin, "runner")
    for wanted in spec.primitives:
        catalog.named("primitives", wanted, plugins, origin, "primitives")
    sets = tuple(primitives.resolved(wanted, plugins) for wanted in spec.primitives)
    board = inherit.resolve(files[::-1])
    if spec.calibration is not None and board is None:
        raise SpecError(f"{origin}: key 'calibration': expected a platform with a board model")
    own: dict[str, Any] = {
        "lineage": tuple(file.name for file in files),
        "primitives": sets,
        "verify_vlens": spec.verify_vlens or spec.vlens,
        "caches": {f"l{n}": cache for n, cache in enumerate(spec.caches, 1)},
        "baselines": {n: tuple(sorted(of, key=lambda one: one.vlen_min)) for n, of in spec.baselines.items()},
        "streams": spec.streams or _followed(board),
        "board": board,
        "whole": _whole(files, board),
    }
    return Platform(**{**yamlfile.shared(spec, Platform), **own})


def _whole(files: list[inherit.PlatformFile], board: dict[str, object] | None) -> str:
    """A platform as one file without references; "" if all its files are shipped with tensorop."""
    if all(paths.shipped(file.path) for file in files):
        return ""
    whole = {key: value for key, value in _merged(files).items() if key not in ("parent", "calibration", "model")}
    model = {} if board is None else {"model": inherit.without_sizes(board)}
    return yamlfile.dump({"schema": 1, "name": files[0].name, **whole, **model})


def check_whole(text: str, name: str, origin: str) -> None:
    """Raises SpecError unless a text is a platform of this name without references to other files."""
    data = yamltext.parse(text, origin)
    if data.get("name") != name:
        raise SpecError(f"{origin}: key 'name': expected '{name}', got {data.get('name')!r}")
    for key in ("parent", "calibration", "probe"):
        if key in data:
            raise SpecError(
                f"{origin}: unknown key '{key}': a platform that is stored in a product is complete, so it was edited "
                "or written by another version"
            )
    yamlfile.validate(PlatformSpec, data, origin)


def _files(name: str, plugins: tuple[Path, ...]) -> list[inherit.PlatformFile]:
    """A platform's own file, its parent's, and so on up to the root."""
    files: list[inherit.PlatformFile] = []
    current: str | None = name
    origin = asker = catalog.find("platforms", name, plugins)
    while current is not None:
        seen = [file.name for file in files]
        if current in seen:
            raise SpecError(f"{origin}: key 'parent': expected no cycle, got {' -> '.join([*seen, current])}")
        path = catalog.named("platforms", current, plugins, asker, "parent")
        data = yamlfile.read(path)
        if data.get("name") != current:
            raise SpecError(f"{path}: key 'name': expected '{current}' as the file is called, got {data.get('name')!r}")
        if "probe" in data and files:
            raise SpecError(
                f"{asker}: key 'parent': '{current}' stands for the machine that it runs on (`probe: true`)",
                hint=f"name the parent that `tensorop platforms show {current}` prints",
            )
        if "probe" in data:
            data = _probed(data, path, plugins)
        files.append(inherit.PlatformFile(current, path, data))
        if "caches" in data:
            inherit.levels_of(data, path)
        parent = data.get("parent")
        if parent is not None and not isinstance(parent, str):
            raise SpecError(f"{path}: key 'parent': expected the name of a platform, got {parent!r}")
        current, asker = parent, path
    return files


def _merged(files: list[inherit.PlatformFile]) -> dict[str, object]:
    merged: dict[str, object] = {}
    for file in files:
        merged = yamlfile.over(merged, file.data, _MERGED)
    return merged


def is_probed(name: str, plugins: tuple[Path, ...] = ()) -> bool:
    """Whether a platform's file has `probe: true`."""
    return "probe" in yamlfile.read(catalog.find("platforms", name, plugins))


def whole(plugins: tuple[Path, ...] = ()) -> list[Platform]:
    """All platforms without `probe: true`."""
    return [load(n, plugins) for n in catalog.names("platforms", plugins) if not is_probed(n, plugins)]


def _probed(data: dict[str, object], path: Path, plugins: tuple[Path, ...]) -> dict[str, object]:
    """A file with `probe: true`, as a child of the best platform for this machine."""
    yamlfile.validate(ProbeSpec, data, str(path))
    best = native.best(whole(plugins), host_arch(), native.cpu_flags())
    own = {key: value for key, value in data.items() if key != "probe"}
    # without the parent's board model, since this machine has a clock
    return {"parent": best.name, "runner": "native", "model": None, "caches": _seen(best), **own}


def _seen(best: Platform) -> list[dict[str, object]]:
    """This machine's caches; levels that its kernel does not report come from the best platform."""
    here = native.caches()
    levels = sorted(here.keys() | best.caches.keys())
    return [{**(here.get(level) or dataclasses.asdict(best.caches[level]))} for level in levels]


def _followed(board: dict[str, object] | None) -> int:
    """The smallest number of streams of a model's prefetchers; 32 without any."""
    memory: Any = (board or {}).get("memory", {})
    return min((memory[level]["streams"] for level in _PREFETCHERS if level in memory), default=32)
