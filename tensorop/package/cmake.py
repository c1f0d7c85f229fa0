"""The CMake side of a product: its package files, and the project that builds it from sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tensorop import __version__, paths
from tensorop.model.platform import Platform
from tensorop.package.library import SONAME_MAJOR
from tensorop.package.sources import Library, Sources
from tensorop.render import words

FOLDER = "lib/cmake/TensorOp"

_PROCESSORS = {"x86_64": "^(x86_64|amd64|AMD64)$", "aarch64": "^(aarch64|arm64)$", "riscv64": "^riscv64$"}
# GCC has __builtin_shufflevector from 12, the RISC-V vector intrinsics from 14 on; PyPI's ziglang is a recent Clang.
_COMPILERS = {
    "x86_64": "GCC 12, Clang 12, zig or a later one",
    "aarch64": "GCC 12, Clang 12, zig or a later one",
    "riscv64": "GCC 14, Clang 17, zig or a later one",
}
_SLOT = re.compile(r"@([A-Z_]+)@")


def component(library: str) -> str:
    """A library's name behind TensorOp::."""
    return library.removeprefix("tensorop_")


def fill(template: str, values: dict[str, str]) -> str:
    """A file of cmake/ with its @SLOTS@ filled; a slot without a value is a KeyError."""
    text = (paths.builtin_dir("cmake") / template).read_text(encoding="utf-8")
    return _SLOT.sub(lambda slot: values[slot[1]], text)


def package_files(sources: Sources, platform: Platform) -> dict[str, str]:
    """What find_package(TensorOp) reads: file name -> text."""
    values = _values(sources, platform)
    names = ("TensorOpConfig.cmake", "TensorOpConfigVersion.cmake")
    generate = paths.builtin_dir("cmake") / "TensorOpGenerate.cmake"
    return {n: fill(f"{n}.in", values) for n in names} | {generate.name: generate.read_text(encoding="utf-8")}


def project(sources: Sources, platform: Platform, headers: Sequence[str], pkgconfig: Sequence[str]) -> str:
    """CMakeLists.txt of the source folder. headers: the intrinsics' headers the compiler must have."""
    units = [unit for library in sources.libraries for unit in library.units]
    spellings, llvm = isa_flags(platform)
    libraries = "".join(fill("Library.cmake.in", _library(library)) for library in sources.libraries)
    return fill(
        "CMakeLists.txt.in",
        _values(sources, platform)
        | {
            "COMPILERS": _COMPILERS[platform.arch],
            "HEADERS": " ".join(headers),
            "ISA_FLAGS": " ".join(spellings),
            "LLVM_FLAGS": " ".join(llvm),
            "CONFINED": " ".join(unit.name for unit in units if unit.flags),
            "TUNED": " ".join(unit.name for unit in units if unit.tuned),
            "LIBRARIES": libraries,
            "PC": " ".join(pkgconfig),
            "FOLDERS": " ".join(dict.fromkeys(unit.name.split("/")[0] for unit in units if "/" in unit.name)),
        },
    )


def isa_flags(platform: Platform) -> tuple[list[str], list[str]]:
    """How compilers are asked for the ISA: spellings to try (GCC's and Clang's first), and LLVM's own options."""
    spellings: list[str] = []
    llvm: list[str] = []
    flags = iter(platform.compiler.arch_flags)
    for flag in flags:
        if flag == "-mllvm":
            llvm += [flag, next(flags)]
        elif flag.startswith("-mcpu="):
            spellings = [_gnu(platform.arch, flag.removeprefix("-mcpu=")), flag]
    return spellings, llvm


def _gnu(arch: str, cpu: str) -> str:
    """zig writes features behind the name of a CPU, with underscores; the others have -march."""
    if arch == "riscv64" and cpu.startswith("baseline_rv64"):
        features = [f for f in cpu.split("+")[1:] if f]
        single = "".join(sorted(f for f in features if len(f) == 1))
        return "-march=rv64gc" + single + "".join(f"_{f}" for f in features if len(f) > 1)
    if arch == "aarch64" and cpu.startswith("baseline"):
        return cpu.replace("baseline", "-march=armv8-a", 1)
    name = cpu.replace("_", "-")
    return f"-march={name}" if arch == "x86_64" else f"-mcpu={name}"


def _values(sources: Sources, platform: Platform) -> dict[str, str]:
    libraries = {component(one.name): [component(name) for name in one.over] for one in sources.libraries}
    return {
        "VERSION": __version__,
        "SOVERSION": str(SONAME_MAJOR),
        "PLATFORM": words.in_build_file(platform.name),
        "ARCH": platform.arch,
        "PROCESSORS": _PROCESSORS[platform.arch],
        "NAMES": " ".join(libraries),
        "OVER": "\n".join(f"set(_over_{name} {' '.join(over)})" for name, over in libraries.items()),
    }


def _library(library: Library) -> dict[str, str]:
    return {
        "NAME": library.name,
        "FILES": "\n  ".join(unit.name for unit in library.units),
        "LINKS": f"PRIVATE {' '.join(library.over)}" if library.over else "PRIVATE Threads::Threads",
        "VERSION": __version__,
        "SOVERSION": str(SONAME_MAJOR),
    }
