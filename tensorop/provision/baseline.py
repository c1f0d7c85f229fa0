"""Peer libraries by name, each in its fastest build for a number of threads; large ones are fetched on request.

PyTorch is that of this Python environment; it is never fetched.

OpenBLAS exists for every architecture: PyPI's scipy-openblas32, and Debian 13's 0.3.29 for riscv64, for which PyPI has
no wheel before 0.3.33. Most published comparisons use 0.3.29.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from packaging.version import Version

from tensorop import errors
from tensorop.model.architecture import ARCHITECTURES, architecture
from tensorop.provision import cache, debian, process, pypi, zig

OPENBLAS = "0.3.34"

_OPENBLAS_WHEELS = {
    (version, of.name): pypi.Wheel("scipy-openblas32", *wheel)
    for of in ARCHITECTURES.values()
    for version, *wheel in map(str.split, of.openblas)
}
_OF_DEBIAN = ("0.3.29", "riscv64")
OPENBLAS_VERSIONS = tuple(sorted({version for version, _ in _OPENBLAS_WHEELS}, reverse=True))
_ONEDNN = pypi.wheels("""
onednn 2026.1.0 manylinux_2_28_x86_64 b04a8ffa6ebcd011f1091902d59d9707c2f620cce626fba2961520c671f3247f
tbb 2023.2.0 manylinux_2_28_x86_64 7d80615b6e970f11671fa05b6eaa9483ac864fbfe525ac280271a78b37870b7c
tcmlib 1.6.0 manylinux_2_28_x86_64 46c2491988bfd18c4733eeb08aca6a386706a497b92cc51d155f37ddea003c14
intel-cmplr-lib-rt 2026.2.0 manylinux_2_28_x86_64 9f713083073a820d2496a6da8e8d4f3482aba6640f74521d25ea48dcebe72748
intel-sycl-rt 2026.2.0 manylinux_2_28_x86_64 ad920da1ffcb43edbc03422a7c85094997e6d578f9ab534743442af70bcbfaa1
""")
# The files that libdnnl.so.3 loads, out of 2 GB.
_ONEDNN_FILES = (
    "libdnnl.so.3", "libtbb.so.12", "libtbbmalloc.so.2", "libtcm.so.1", "libhwloc.so.15", "libimf.so", "libsvml.so",
    "libintlc.so.5", "libirng.so", "libsycl.so.9", "libur_loader.so.0",
)  # fmt: skip
# The last build without a SYCL runtime: later ones find no engine for convolutions without Intel's OpenCL.
_GOMP = pypi.wheels("""
onednn-cpu-gomp 2023.2.0 manylinux1_x86_64 2f22a54d6a890ed14bfa185d42a4be65d8b5b1df85dc1f0f3a9abe31620416fb
""")
_ONEDNN_GOMP = _GOMP[0].version
_MKL = pypi.wheels("""
mkl 2026.2.0 manylinux_2_28_x86_64 eaab1875ce9f47ab3c66d5632cef06baf768c05781f2f28847bdbc4343500ed7
""")
_MKL_FILES = (
    "libmkl_rt.so.3", "libmkl_core.so.3", "libmkl_intel_lp64.so.3", "libmkl_gnu_thread.so.3",
    "libmkl_sequential.so.3", "libmkl_def.so.3", "libmkl_avx2.so.3", "libmkl_avx512.so.3", "libmkl_avx10.so.3",
)  # fmt: skip
# LIBXSMM_MAX_MNK of its libxsmm_config.h: it generates code for products of at most 64x64x64.
_XSMM_MOST = 2.0 * 262144


@dataclass(frozen=True)
class InstalledPackage:
    """A package of this Python environment, in place of an entry of the cache."""

    what: str  # its name
    least: Version

    @property
    def version(self) -> str:
        """Empty if the package is absent."""
        try:
            return importlib.metadata.version(self.what)
        except importlib.metadata.PackageNotFoundError:
            return ""

    @property
    def folder(self) -> Path:
        found = importlib.util.find_spec(self.what)
        return Path(found.origin).parent if found and found.origin else Path(self.what)

    @property
    def command(self) -> str:
        return f"pip install '{self.what}>={self.least}'"

    @property
    def present(self) -> bool:
        return bool(self.version) and Version(self.version) >= self.least

    def bring(self, *, offline: bool | None = None) -> Path:
        """The package's folder. Raises MissingTool if it is absent or too old."""
        if not self.present:
            found = f"version {self.version}, older than {self.least}" if self.version else "not installed"
            raise errors.MissingTool(f"{self.what} is {found} in the Python that runs tensorop", hint=self.command)
        return self.folder


TORCH = InstalledPackage("torch", Version("2.8"))  # the first one with aoti_torch_call_dispatcher


@dataclass(frozen=True)
class PeerLibrary:
    """A shared library to compare with. `bring` fetches it."""

    name: str
    version: str
    arch: str
    entry: cache.CacheEntry | InstalledPackage = field(repr=False)
    file: str  # the file to load, in the entry
    # The API it exposes: "cblas" (between prefix and suffix), "dnnl" (oneDNN's C API), "xsmm", "torch" (its C shim).
    kind: str = "cblas"
    prefix: str = ""
    suffix: str = ""
    folders: tuple[str, ...] = (".",)  # of the entry, for the loader
    build: str = ""  # the build, if there are several
    # Variables for correct and fast calls with the number of threads; core types come from the platform.
    environment: Mapping[str, str] = field(default_factory=dict)
    most_flops: float | None = None  # it passes larger products to another library

    @property
    def path(self) -> Path:
        return self.entry.folder / self.file

    @property
    def library_path(self) -> tuple[Path, ...]:
        """Folders for the loader: LD_LIBRARY_PATH of the process that loads the library."""
        return tuple((self.entry.folder / folder).resolve() for folder in self.folders)

    def bring(self, *, offline: bool | None = None) -> PeerLibrary:
        """Returns the library, fetched if it is absent. Raises MissingTool."""
        root, command = self.entry.bring(offline=offline), self.entry.command
        if not self.path.exists():
            raise errors.MissingTool(f"{self.entry.what} lacks {self.file}", hint=f"delete {root}, then run {command}")
        return self


Fill = Callable[[Path], None]


def _entry(name: str, version: str, arch: str, fill: Fill, *, build: str = "", megabytes: int = 0) -> cache.CacheEntry:
    base = name.partition("@")[0]
    folder = cache.entry_path("libraries", "-".join(filter(None, (base, version, build, arch))))
    what, command = f"{base} {version} for {arch}", cache.by_hand(name, arch)
    return cache.CacheEntry(folder, fill, what, command, "to compare with", megabytes)


def _in_wheel(wheels: tuple[pypi.Wheel, ...], files: tuple[str, ...]) -> Fill:
    patterns = [f"*.data/data/lib/{name}" for name in files]
    return pypi.unpacker(wheels, patterns, hint=f"pip download {wheels[0].project}")


def _onednn(arch: str, threads: int) -> PeerLibrary:
    version = _ONEDNN[0].version
    entry = _entry("onednn", version, arch, _in_wheel(_ONEDNN, _ONEDNN_FILES), megabytes=321)
    return PeerLibrary("onednn", version, arch, entry, "libdnnl.so.3", kind="dnnl")


def _onednn_gomp(arch: str, threads: int) -> PeerLibrary:
    name, version = f"onednn@{_ONEDNN_GOMP}", _ONEDNN_GOMP
    entry = _entry(name, version, arch, _in_wheel(_GOMP, ("libdnnl.so.3",)), megabytes=39)
    threaded = {"OMP_NUM_THREADS": str(threads)}
    return PeerLibrary(name, version, arch, entry, "libdnnl.so.3", "dnnl", build="OpenMP", environment=threaded)


def _mkl(arch: str, threads: int) -> PeerLibrary:
    version = _MKL[0].version
    # The default layer needs Intel's OpenMP; GNU uses the compiler's libgomp. One thread needs neither.
    layer = {"MKL_THREADING_LAYER": "SEQUENTIAL" if threads == 1 else "GNU", "MKL_INTERFACE_LAYER": "LP64"}
    entry = _entry("mkl", version, arch, _in_wheel(_MKL, _MKL_FILES), megabytes=221)
    return PeerLibrary("mkl", version, arch, entry, "libmkl_rt.so.3", environment=layer)


def _torch(arch: str, threads: int) -> PeerLibrary:
    return PeerLibrary("torch", TORCH.version, arch, TORCH, "lib/libtorch_cpu.so", kind="torch", folders=("lib",))


def _blis(arch: str, threads: int) -> PeerLibrary:
    """BLIS; for one thread the serial build, which takes a third less time for the smallest products."""
    version, build = "0.9.0", "serial" if threads == 1 else "pthread"
    packages = debian.Packages((f"libblis4-{build}",), "bookworm", arch, "BLIS", cache.by_hand("blis", arch))
    folder = f"usr/lib/{architecture(arch).multiarch}/blis-{build}"
    entry = _entry("blis", version, arch, packages.unpack, build=build)
    return PeerLibrary("blis", version, arch, entry, f"{folder}/libblis.so.4", folders=(folder,), build=build)


def _libxsmm(arch: str, threads: int) -> PeerLibrary:
    packages = debian.Packages(("libxsmm-dev",), "bookworm", arch, "libxsmm", cache.by_hand("libxsmm", arch))

    def fill(folder: Path) -> None:
        packages.unpack(folder)
        # Debian has only the static library; `noblas` replaces the BLAS that it falls back to.
        lib = folder / "usr/lib"
        argv = [
            str(zig.host_cc()), "-shared", "-o", f"{folder}/libxsmm.so", "-Wl,--whole-archive", f"{lib}/libxsmm.a",
            f"{lib}/libxsmmnoblas.a", "-Wl,--no-whole-archive", "-lpthread", "-lm", "-ldl", "-lrt",
        ]  # fmt: skip
        process.run(argv, doing="linking libxsmm", hint="apt-get install gcc libc6-dev")
        shutil.rmtree(folder / "usr/share", ignore_errors=True)

    entry = _entry("libxsmm", "1.17", arch, fill)
    return PeerLibrary("libxsmm", "1.17", arch, entry, "libxsmm.so", kind="xsmm", most_flops=_XSMM_MOST)


def _openblas(name: str, arch: str) -> PeerLibrary:
    """`openblas` (the newest) or `openblas@VERSION`. Raises UsageError for a version without a package."""
    given = name.partition("@")[2] or "newest"
    version = OPENBLAS if given == "newest" else given
    of, command = architecture(arch), cache.by_hand(name, arch)
    if wheel := _OPENBLAS_WHEELS.get((version, arch)):
        fill = pypi.unpacker([wheel], ["scipy_openblas32/lib/*.so*"], hint=command)
        entry = _entry(name, wheel.version, arch, fill, megabytes=8)
        return PeerLibrary(name, wheel.version, arch, entry, "libscipy_openblas.so", prefix="scipy_")
    if (version, arch) == _OF_DEBIAN:
        names, what = ("libopenblas0-pthread", "libgfortran5"), f"OpenBLAS {version} for {arch}"
        entry = _entry(name, version, arch, debian.Packages(names, "trixie", arch, what, command).unpack)
        folder = f"usr/lib/{of.multiarch}/openblas-pthread"
        file = f"{folder}/libopenblasp-r{version}.so"
        return PeerLibrary(name, version, arch, entry, file, folders=(folder, f"usr/lib/{of.multiarch}"))
    raise errors.unknown_name(f"version of OpenBLAS for {arch}", given, (*OPENBLAS_VERSIONS, "newest"))


_ON_X86: dict[str, Callable[[str, int], PeerLibrary]] = {
    "onednn": _onednn,
    f"onednn@{_ONEDNN_GOMP}": _onednn_gomp,
    "mkl": _mkl,
    "blis": _blis,
    "libxsmm": _libxsmm,
    "torch": _torch,
}


def names(arch: str) -> tuple[str, ...]:
    """All baselines of an architecture."""
    architecture(arch)
    everywhere = ("openblas", *(f"openblas@{v}" for v in OPENBLAS_VERSIONS))
    return (*everywhere, *_ON_X86) if arch == "x86_64" else everywhere


def baseline(name: str, arch: str, threads: int = 1) -> PeerLibrary:
    """A peer library in its fastest build for a number of threads.

    name: `openblas`, `openblas@0.3.29`, `onednn`, `onednn@2023.2.0`, `mkl`, `blis`, `libxsmm`, `torch`. Raises
    UsageError for a name or version that this architecture lacks.
    """
    if name.partition("@")[0] == "openblas":
        return _openblas(name, arch)
    if name not in names(arch):
        raise errors.unknown_name(f"baseline for {arch}", name, names(arch))
    return _ON_X86[name](arch, threads)
