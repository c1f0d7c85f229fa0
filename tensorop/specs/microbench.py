"""The schemas of native/microbench/*/bench.yaml and platforms/published/*.yaml."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import Field

from tensorop import paths
from tensorop.model.microbench import Benchmark, MicrobenchPoint
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File, Record


class _Bench(Record):
    iterations: int = Field(gt=0)
    per: str
    unit: str
    size: str = Field(default="64", alias="bytes")
    function: str = ""
    flops: float = Field(default=0, ge=0, strict=False)
    dims: tuple[int, ...] = Field(default=(), strict=False)
    fill: Literal["", "chase", "pages"] = ""


class _Benches(File):
    sources: dict[str, dict[str, _Bench]]


class _Published(File):
    model: str
    points: tuple[MicrobenchPoint, ...] = Field(strict=False)


def folder(arch: str) -> Path:
    """The folder of an architecture's benchmarks; it may not exist."""
    return paths.native_dir() / "microbench" / arch


def benchmarks(arch: str) -> tuple[Benchmark, ...]:
    """An architecture's benchmarks in file order; () if it has none. Raises SpecError for a broken file."""
    path = folder(arch) / "bench.yaml"
    if not path.is_file():
        return ()
    spec = yamlfile.validate(_Benches, yamlfile.read(path), str(path))
    return tuple(
        Benchmark(name, source, bench.function or name, **bench.model_dump(exclude={"function"}))
        for source, benches in spec.sources.items()
        for name, bench in benches.items()
    )


def published(model: str, plugins: tuple[Path, ...] = ()) -> tuple[MicrobenchPoint, ...]:
    """Published measurements of a board model's core; () if there are none."""
    found: list[MicrobenchPoint] = []
    for root in paths.plugin_dirs("platforms", plugins):
        for path in sorted((root / "published").glob("*.yaml")):
            spec = yamlfile.validate(_Published, yamlfile.read(path), str(path))
            if spec.model == model:
                found += spec.points
    return tuple(found)
