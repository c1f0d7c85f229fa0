"""Files for CMake and pkg-config that find a product, and the CMake project that builds it from its sources."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tensorop import __version__, paths
from tensorop.model.architecture import architecture
from tensorop.model.platform import Platform
from tensorop.package.loadable import SONAME_MAJOR
from tensorop.package.sources import ProductLibrary, Sources
from tensorop.render import words
from tensorop.toolchain.compile import DEFINED

FOLDER = "lib/cmake/TensorOp"
PKGCONFIG_FOLDER = "lib/pkgconfig"
_SLOT = re.compile(r"@([A-Z_]+)@")


def component(library: str) -> str:
    """The name of a library's CMake component, TensorOp::NAME."""
    return library.removeprefix("tensorop_")


def fill(template: str, values: dict[str, str]) -> str:
    """A file of cmake/ with its @SLOTS@ filled. Raises KeyError for a slot without a value."""
    text = (paths.builtin_dir("cmake") / template).read_text(encoding="utf-8")
    return _SLOT.sub(lambda slot: values[slot[1]], text)


def package_files(sources: Sources, platform: Platform) -> dict[str, str]:
    """The files of find_package(TensorOp): file name -> text."""
    values = _values(sources, platform)
    names = ("TensorOpConfig.cmake", "TensorOpConfigVersion.cmake")
    generate = paths.builtin_dir("cmake") / "TensorOpGenerate.cmake"
    return {n: fill(f"{n}.in", values) for n in names} | {generate.name: generate.read_text(encoding="utf-8")}


def project(sources: Sources, platform: Platform, headers: Sequence[str], pkgconfig: Sequence[str]) -> str:
    """CMakeLists.txt of the source folder. headers: headers of intrinsics that the compiler must have."""
    units = [unit for library in sources.libraries for unit in library.units]
    spellings, llvm = isa_flags(platform)
    libraries = "".join(fill("Library.cmake.in", _library(library)) for library in sources.libraries)
    return fill(
        "CMakeLists.txt.in",
        _values(sources, platform)
        | {
            "COMPILERS": architecture(platform.arch).compilers,
            "HEADERS": " ".join(headers),
            "ISA_FLAGS": " ".join(spellings),
            "LLVM_FLAGS": " ".join(llvm),
            "DEFINED": " ".join(DEFINED),
            "CONFINED": " ".join(unit.name for unit in units if unit.flags),
            "TUNED": " ".join(unit.name for unit in units if unit.tuned),
            "LIBRARIES": libraries,
            "PC": " ".join(pkgconfig),
            "TARGETS": " and ".join(f"TensorOp::{component(library.name)}" for library in sources.libraries),
            "FOLDERS": " ".join(dict.fromkeys(unit.name.split("/")[0] for unit in units if "/" in unit.name)),
        },
    )


def pkgconfig_files(sources: Sources, platform: Platform) -> dict[str, str]:
    """Two pkg-config files per library, relocatable with their prefix: file name -> text.

    pkg-config takes the first file of a name, whatever the architecture of its library. So each library has a second
    name with its architecture, `LIBRARY-ARCH`, which is found in any order of prefixes.
    """
    return {
        f"{library.name}{suffix}.pc": fill(
            "tensorop.pc.in",
            {
                "LIBRARY": library.name,
                "SUFFIX": suffix,
                "DESCRIPTION": words.in_build_file(library.description),
                "PLATFORM": words.in_build_file(platform.name),
                "ARCH": platform.arch,
                "VERSION": __version__,
                "REQUIRES": " ".join(f"{name}{suffix}" for name in library.over),
            },
        )
        for library in sources.libraries
        for suffix in ("", f"-{platform.arch}")
    }


def isa_flags(platform: Platform) -> tuple[list[str], list[str]]:
    """Compiler flags for the ISA: spellings to try (GCC's and Clang's first), and LLVM's own options."""
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
    """The flag of GCC and Clang for a CPU in zig's spelling.

    zig appends features to the CPU's name, with underscores; the others have -march.
    """
    of = architecture(arch)
    base, march = of.baseline
    if not march or not cpu.startswith(base):
        return f"{of.cpu_option}={cpu.replace('_', '-')}"
    if not march.startswith("rv"):
        return cpu.replace(base, f"-march={march}", 1)
    features = [f for f in cpu.split("+")[1:] if f]
    single = "".join(sorted(f for f in features if len(f) == 1))
    return f"-march={march}{single}" + "".join(f"_{f}" for f in features if len(f) > 1)


def _values(sources: Sources, platform: Platform) -> dict[str, str]:
    names = [platform.arch, *architecture(platform.arch).spellings]
    processors = f"^({'|'.join(names)})$" if len(names) > 1 else f"^{platform.arch}$"
    libraries = {component(one.name): [component(name) for name in one.over] for one in sources.libraries}
    return {
        "VERSION": __version__,
        "SOVERSION": str(SONAME_MAJOR),
        "PLATFORM": words.in_build_file(platform.name),
        "ARCH": platform.arch,
        "PROCESSORS": processors,
        "NAMES": " ".join(libraries),
        "OVER": "\n".join(f"set(_over_{name} {' '.join(over)})" for name, over in libraries.items()),
    }


def _library(library: ProductLibrary) -> dict[str, str]:
    own = ("Threads::Threads", "${CMAKE_DL_LIBS}")
    return {
        "NAME": library.name,
        "COMPONENT": component(library.name),
        "FILES": "\n  ".join(unit.name for unit in library.units),
        "LINKS": f"PUBLIC {' '.join(library.over)}" if library.over else "PRIVATE Threads::Threads",
        "STATIC_LINKS": " ".join((*(f"{name}_static" for name in library.over), *own)),
        "VERSION": __version__,
        "SOVERSION": str(SONAME_MAJOR),
    }
