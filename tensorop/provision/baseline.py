"""Every peer library by the name a user gives it, as it is fastest with so many threads; large ones are fetched only
when asked for."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from tensorop import errors
from tensorop.model.architecture import architecture
from tensorop.provision import cache, debian, openblas, process, pypi, zig
from tensorop.provision.library import Library, Source

_X86 = "manylinux_2_28_x86_64"
_ONEDNN = (
    pypi.Wheel("onednn", "2026.1.0", _X86, "b04a8ffa6ebcd011f1091902d59d9707c2f620cce626fba2961520c671f3247f"),
    pypi.Wheel("tbb", "2023.2.0", _X86, "7d80615b6e970f11671fa05b6eaa9483ac864fbfe525ac280271a78b37870b7c"),
    pypi.Wheel("tcmlib", "1.6.0", _X86, "46c2491988bfd18c4733eeb08aca6a386706a497b92cc51d155f37ddea003c14"),
    pypi.Wheel(
        "intel-cmplr-lib-rt", "2026.2.0", _X86, "9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748"
    ),
    pypi.Wheel("intel-sycl-rt", "2026.2.0", _X86, "ad920da1ffcb43edbc03422a7c85094997e6d578f9ab534743442af70bcbfaa1"),
)
# What libdnnl.so.3 really loads, out of 2 GB.
_ONEDNN_FILES = (
    "libdnnl.so.3", "libtbb.so.12", "libtbbmalloc.so.2", "libtcm.so.1", "libhwloc.so.15", "libimf.so", "libsvml.so",
    "libintlc.so.5", "libirng.so", "libsycl.so.9", "libur_loader.so.0",
)  # fmt: skip
# The last build without a SYCL runtime: later ones find no engine for convolutions without Intel's OpenCL.
_ONEDNN_GOMP = "2023.2.0"
_GOMP = (
    pypi.Wheel(
        "onednn-cpu-gomp",
        _ONEDNN_GOMP,
        "manylinux1_x86_64",
        "2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb",
    ),
)
_MKL = (pypi.Wheel("mkl", "2026.2.0", _X86, "eaab1875ce9f47ab3c66d5632cef06baf768c05781f2f28847bdbc4343500ed7"),)
_MKL_FILES = (
    "libmkl_rt.so.3", "libmkl_core.so.3", "libmkl_intel_lp64.so.3", "libmkl_gnu_thread.so.3",
    "libmkl_sequential.so.3", "libmkl_def.so.3", "libmkl_avx2.so.3", "libmkl_avx512.so.3", "libmkl_avx10.so.3",
)  # fmt: skip
# LIBXSMM_MAX_MNK of its libxsmm_config.h: it generates code for products of at most 64 cubed.
_XSMM_MOST = 2.0 * 262144


def _in_wheel(files: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"*.data/data/lib/{name}" for name in files)


def _onednn(arch: str, threads: int) -> Source:
    fill = pypi.unpacker(_ONEDNN, _in_wheel(_ONEDNN_FILES), hint="pip download onednn")
    return Source("onednn", _ONEDNN[0].version, arch, "libdnnl.so.3", fill, kind="dnnl", megabytes=321)


def _onednn_gomp(arch: str, threads: int) -> Source:
    fill = pypi.unpacker(_GOMP, _in_wheel(("libdnnl.so.3",)), hint="pip download onednn-cpu-gomp")
    name = f"onednn@{_ONEDNN_GOMP}"
    threaded = {"OMP_NUM_THREADS": str(threads)}
    return Source(
        name, _ONEDNN_GOMP, arch, "libdnnl.so.3", fill, kind="dnnl", build="OpenMP", environment=threaded, megabytes=39
    )


def _mkl(arch: str, threads: int) -> Source:
    fill = pypi.unpacker(_MKL, _in_wheel(_MKL_FILES), hint="pip download mkl")
    # The default layer wants Intel's OpenMP; the compiler's own libgomp serves. One thread needs none.
    layer = {"MKL_THREADING_LAYER": "SEQUENTIAL" if threads == 1 else "GNU", "MKL_INTERFACE_LAYER": "LP64"}
    return Source("mkl", _MKL[0].version, arch, "libmkl_rt.so.3", fill, environment=layer, megabytes=221)


def _blis(arch: str, threads: int) -> Source:
    """For one thread the build without threads, which takes a third less time for the smallest products."""
    t, build = architecture(arch), "serial" if threads == 1 else "pthread"
    packages, hint = [f"libblis4-{build}"], cache.by_hand("blis", arch)
    fill = debian.unpacker(packages, suite="bookworm", architecture=t.debian, doing="fetching BLIS", hint=hint)
    folder = f"usr/lib/{t.multiarch}/blis-{build}"
    return Source("blis", "0.9.0", arch, f"{folder}/libblis.so.4", fill, folders=(folder,), build=build)


def _libxsmm(arch: str, threads: int) -> Source:
    hint, debians = cache.by_hand("libxsmm", arch), architecture(arch).debian
    unpack = debian.unpacker(
        ["libxsmm-dev"], suite="bookworm", architecture=debians, doing="fetching libxsmm", hint=hint
    )

    def fill(folder: Path) -> None:
        unpack(folder)
        # Debian has the static library alone; `noblas` stands in for the BLAS it falls back to.
        lib = folder / "usr/lib"
        argv = [
            str(zig.host_cc()), "-shared", "-o", f"{folder}/libxsmm.so", "-Wl,--whole-archive", f"{lib}/libxsmm.a",
            f"{lib}/libxsmmnoblas.a", "-Wl,--no-whole-archive", "-lpthread", "-lm", "-ldl", "-lrt",
        ]  # fmt: skip
        process.run(argv, doing="linking libxsmm", hint="apt-get install gcc libc6-dev")
        shutil.rmtree(folder / "usr/share", ignore_errors=True)

    return Source("libxsmm", "1.17", arch, "libxsmm.so", fill, kind="xsmm", most_flops=_XSMM_MOST)


_ON_X86: dict[str, Callable[[str, int], Source]] = {
    "onednn": _onednn,
    f"onednn@{_ONEDNN_GOMP}": _onednn_gomp,
    "mkl": _mkl,
    "blis": _blis,
    "libxsmm": _libxsmm,
}


def names(arch: str) -> tuple[str, ...]:
    """Every baseline that can be had for an architecture."""
    architecture(arch)
    everywhere = ("openblas", *(f"openblas@{v}" for v in openblas.VERSIONS))
    return (*everywhere, *_ON_X86) if arch == "x86_64" else everywhere


def source(name: str, arch: str, threads: int = 1) -> Source:
    """Where a baseline comes from, as it is fastest with so many threads. Raises UsageError for a name that this
    architecture has not."""
    base, _, version = name.partition("@")
    if base == "openblas":
        return openblas.source(arch, version or "newest")
    if name not in names(arch):
        raise errors.unknown_name(f"baseline for {arch}", name, names(arch))
    return _ON_X86[name](arch, threads)


def baseline(name: str, arch: str, threads: int = 1, *, offline: bool | None = None) -> Library:
    """A peer library, fetched when absent: `openblas`, `openblas@0.3.29`, `onednn`, `onednn@2023.2.0`, `mkl`, `blis`,
    `libxsmm`.

    Raises UsageError for an unknown name, MissingTool when it cannot be fetched.
    """
    return source(name, arch, threads).bring(offline=offline)
