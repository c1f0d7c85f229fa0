"""OpenBLAS for every architecture: PyPI's scipy-openblas32, pinned by digest, and Debian 13's 0.3.29 for riscv64.

PyPI has no riscv64 wheel before 0.3.33; 0.3.29 is the version most published comparisons were made with.
"""

from __future__ import annotations

from tensorop import errors
from tensorop.model.architecture import architecture
from tensorop.provision import cache, debian, pypi
from tensorop.provision.library import Library, Source

NEWEST = "0.3.34"

# Version, architecture, the wheel's version, its platform, its digest.
_TABLE = """
0.3.34 x86_64 0.3.34.481.3 manylinux_2_28_x86_64 0595f94cd58c1f8a0d90c975621f4587337a003916b1979e834ebdf2cb5d9504
0.3.34 aarch64 0.3.34.481.3 manylinux_2_28_aarch64 e085dddbc5b9aa130f83def515d31c440e69f387a90c7e63b154a5575b4466bc
0.3.34 riscv64 0.3.34.481.3 manylinux_2_39_riscv64 b27d19793b78825a5cd8a116771815ed29a651658fc4c03bcdd4b50542ceee46
0.3.29 x86_64 0.3.29.265.1 manylinux_2_17_x86_64 0ce4eec40cf03af80fea68493fe7174a8d534b3c01bcb35e460f678d2e24676a
0.3.29 aarch64 0.3.29.265.1 manylinux_2_17_aarch64 c6edc3bfa73060e5cb31c4bbb03c92e1cd83c52e3dba4493de448f1ca9e1ef10
"""
_WHEELS = {
    (version, arch): pypi.Wheel("scipy-openblas32", *wheel)
    for version, arch, *wheel in map(str.split, _TABLE.split("\n")[1:-1])
}
VERSIONS = tuple(sorted({version for version, _ in _WHEELS}, reverse=True))


def source(arch: str, version: str = "newest") -> Source:
    """Where one version for one architecture comes from. Raises UsageError for a version nobody packaged."""
    t = architecture(arch)
    wanted = NEWEST if version == "newest" else version
    name = "openblas" if version == "newest" else f"openblas@{version}"
    command = cache.by_hand(name, arch)
    if wheel := _WHEELS.get((wanted, arch)):
        fill = pypi.unpacker([wheel], ["scipy_openblas32/lib/*.so*"], hint=command)
        return Source(name, wheel.version, arch, "libscipy_openblas.so", fill, prefix="scipy_", megabytes=8)
    if (wanted, arch) == ("0.3.29", "riscv64"):
        doing, packages = f"fetching OpenBLAS {wanted} for {arch}", ["libopenblas0-pthread", "libgfortran5"]
        fill = debian.unpacker(packages, suite="trixie", architecture=t.debian, doing=doing, hint=command)
        folder = f"usr/lib/{t.multiarch}/openblas-pthread"
        file = f"{folder}/libopenblasp-r0.3.29.so"
        return Source(name, wanted, arch, file, fill, folders=(folder, f"usr/lib/{t.multiarch}"))
    raise errors.unknown_name(f"version of OpenBLAS for {arch}", version, (*VERSIONS, "newest"))


def openblas(arch: str, version: str = "newest", *, offline: bool | None = None) -> Library:
    """OpenBLAS for an architecture, fetched when absent; its C names carry `prefix` (`scipy_` in PyPI's builds).

    Raises UsageError for an unknown architecture or version, MissingTool when it cannot be fetched.
    """
    return source(arch, version).bring(offline=offline)
