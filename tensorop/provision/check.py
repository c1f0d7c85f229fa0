"""Lists the tools and libraries of this machine, and commands for the missing ones. It fetches nothing."""

from __future__ import annotations

import glob
import importlib.metadata
import platform
import shutil
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement

from tensorop import errors
from tensorop.model.architecture import ARCHITECTURES, architecture, host_arch
from tensorop.provision import baseline, cache, debian, libc, llvm, process, qemu, zig
from tensorop.specs import native

Status = Literal["ok", "missing", "old"]
DISTRIBUTION = "tensorop-tuner"  # this project's name on an index, as in pyproject.toml
PYTHON_PACKAGE = "Python package"


@dataclass(frozen=True)
class Piece:
    """A tool or library that a job may need."""

    name: str
    purpose: str
    status: Status
    version: str = ""
    path: str = ""
    command: str = ""  # installs or fetches it; "" if no command can
    optional: bool = False  # most jobs do not need it


def pieces(arches: Iterable[str] = (), *, features: Mapping[str, Iterable[str]] | None = None) -> list[Piece]:
    """The pieces that jobs on these architectures need; without any, on all supported architectures.

    features: groups of CPU flags that native runs need, spelled as in /proc/cpuinfo.
    Raises UsageError for an unknown architecture.
    """
    wanted = tuple(architecture(a).name for a in arches) or tuple(ARCHITECTURES)
    found = [
        _python(),
        *python_packages(),
        _found("zig", "compiles kernels for every target", zig.HINT, lambda: (zig.zig_version(), zig.zig())),
        _found("C compiler", "builds QEMU's plug-in and native programs", zig.CC_HINT, _host_cc),
        _llvm(llvm.OBJDUMP, "reads the machine code of kernels before it runs"),
    ]
    for arch in wanted:
        found += [*_emulation(arch), _libc(arch), _baseline("openblas", arch, "the baseline")]
    for name, flags in (features or {}).items():
        found.append(cpu_features(name, flags))
    found += _extras(wanted)
    return found


def _python() -> Piece:
    ok = tuple(int(v) for v in platform.python_version_tuple()[:2]) >= (3, 11)
    status: Status = "ok" if ok else "old"
    return Piece("python", "runs tensorop", status, platform.python_version(), command="apt-get install python3.11")


def _requirements() -> list[Requirement]:
    """Declared requirements: from the metadata of the installed package, else from the checkout's pyproject.toml."""
    try:
        declared = importlib.metadata.requires(DISTRIBUTION) or []
    except importlib.metadata.PackageNotFoundError:
        pyproject = Path(__file__).resolve().parents[2] / "pyproject.toml"
        declared = tomllib.loads(pyproject.read_text())["project"]["dependencies"] if pyproject.is_file() else []
    parsed = [Requirement(d) for d in declared]
    return [r for r in parsed if r.marker is None or r.marker.evaluate({"extra": ""})]


def python_packages() -> list[Piece]:
    """A piece for each Python package that tensorop requires."""
    found = []
    for requirement in _requirements():
        command = f"pip install '{requirement}'"
        try:
            version = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            found.append(Piece(requirement.name, PYTHON_PACKAGE, "missing", command=command))
            continue
        status: Status = "ok" if requirement.specifier.contains(version, prereleases=True) else "old"
        found.append(Piece(requirement.name, PYTHON_PACKAGE, status, version, command=command))
    return found


def _found(name: str, purpose: str, command: str, look: Callable[[], tuple[str, Path]]) -> Piece:
    """look: gives version and path; raises MissingTool"""
    try:
        version, path = look()
    except errors.MissingTool:
        return Piece(name, purpose, "missing", command=command)
    return Piece(name, purpose, "ok", version, str(path), command)


def _host_cc() -> tuple[str, Path]:
    path = zig.host_cc()
    argv = [str(path), "-dumpfullversion", "-dumpversion"]
    return process.run(argv, doing="asking the compiler", hint="").strip(), path


def _llvm(tool: llvm.LlvmTool, purpose: str, optional: bool = False) -> Piece:
    if (found := tool.found()) is None:
        return Piece(tool.name, purpose, "missing", command=tool.hint, optional=optional)
    return Piece(tool.name, purpose, "ok", f"{llvm.version(found)}", str(found), tool.hint, optional)


def _emulation(arch: str) -> list[Piece]:
    if arch == host_arch():
        return []
    name, purpose, hint = f"qemu-{arch}", f"runs {arch} programs and counts what they do, by plug-ins", qemu.TOOLS.hint
    there = [path for path in (qemu.system(arch), qemu.cached(arch)) if path is not None and path.exists()]
    emulator = Piece(name, purpose, "missing", command=hint)
    if there:
        emulator = Piece(name, f"{purpose} (this one takes none)", "old", path=str(there[0]), command=hint)
    if able := next(filter(qemu.has_plugins, there), None):
        emulator = Piece(name, purpose, "ok", qemu.qemu_version(able), str(able), hint)
    sysroot = f"glibc for {arch} programs under QEMU"
    return [emulator, _cached(f"sysroot {arch}", sysroot, qemu.sysroot_entry(arch), "libc6")]


def _cached(
    name: str, purpose: str, entry: cache.CacheEntry | baseline.InstalledPackage, package: str, optional: bool = False
) -> Piece:
    """A piece in the cache, with the version of a Debian package in it."""
    if not entry.present:
        return Piece(name, purpose, "missing", command=entry.command, optional=optional)
    version = debian.version(entry.folder, package)
    return Piece(name, purpose, "ok", version, str(entry.folder), entry.command, optional)


def _libc(arch: str) -> Piece:
    purpose = "static C library of the candidates' harness (zig's own serves, half a minute slower at first)"
    return _cached(f"musl {arch}", purpose, libc.entry(arch), "musl-dev", optional=True)


def _baseline(name: str, arch: str, purpose: str, optional: bool = False) -> Piece:
    library = baseline.baseline(name, arch)
    piece = _cached(f"{name} {arch}", purpose, library.entry, "", optional)
    return replace(piece, version=library.version) if piece.status == "ok" else piece


def cpu_features(name: str, flags: Iterable[str]) -> Piece:
    """Whether this machine's CPU has every flag of a group; no command can add one."""
    lacking = sorted(set(flags) - native.cpu_flags())
    purpose = f"native runs of {name}" + (f" (this CPU lacks {', '.join(lacking)})" if lacking else "")
    return Piece(f"CPU for {name}", purpose, "missing" if lacking else "ok", path="/proc/cpuinfo", optional=True)


def _extras(arches: Iterable[str]) -> list[Piece]:
    of_numpy = "/usr/lib/python3/dist-packages/numpy/__init__.py"
    found = [
        _optional("cmake", "builds a product's sources and the example", "apt-get install cmake"),
        _optional("pkg-config", "finds a product from other builds", "apt-get install pkg-config"),
        _optional("ssh", "runs candidates on a remote board", "apt-get install openssh-client"),
        _optional("nvcc", "compiles CUDA kernels", "pip install nvidia-cuda-nvcc"),
        _llvm(llvm.MCA, "predicts the cycles of loops, for --author llm and judge on a clock", optional=True),
        _optional(
            "libblas-test", "netlib's BLAS testers", "apt-get install libblas-test libblas3", "/usr/lib/*/blas/xblat3s"
        ),
        _optional("Debian's numpy", "linear-algebra tests over a product", "apt-get install python3-numpy", of_numpy),
    ]
    for arch in arches:
        others = (name for name in baseline.names(arch) if name.partition("@")[0] != "openblas")
        found += [_baseline(name, arch, "a further baseline", optional=True) for name in others]
    return found


def _optional(name: str, purpose: str, command: str, pattern: str = "") -> Piece:
    """A program on the PATH, or the first file that matches a pattern."""
    path = next(iter(sorted(glob.glob(pattern))), "") if pattern else shutil.which(name) or ""
    return Piece(name, purpose, "ok" if path else "missing", path=path, command=command, optional=True)
