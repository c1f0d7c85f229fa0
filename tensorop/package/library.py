"""Builds a product's libraries from its C: shared, with a SONAME and only public names, and static."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tensorop import errors
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.package.loadable import soname
from tensorop.package.sources import ProductLibrary, Sources, Unit
from tensorop.toolchain import cache, gate, tool
from tensorop.toolchain.cache import BuildLog
from tensorop.toolchain.compile import DEFINED, LEAN, compile_source

T = TypeVar("T")
_PIC = ("-g0", "-fPIC", "-fvisibility=hidden")


@dataclass(frozen=True)
class Member:
    """An object of a library under its own name, e.g. dispatch_f32.o."""

    name: str
    artifact: Artifact


def compile_member(
    source: Source,
    platform: Platform,
    name: str,
    *,
    arch_flags: tuple[str, ...] | None = None,
    work: Path | None = None,
) -> Member | Outcome:
    """Compiles one source of a product, position-independent, with hidden names unless the source exports them.

    arch_flags: replace the platform's, for code that must run before the CPU is known. Outcomes as compile_source.
    """
    c = platform.compiler
    isa = c.arch_flags if arch_flags is None else arch_flags
    flags = ("-target", c.shared_target, *LEAN, *isa, *c.flags, *DEFINED, *_PIC)
    built = compile_source(source, flags, work=work, timeout_s=120.0)
    return built if isinstance(built, Outcome) else Member(name, built)


@dataclass(frozen=True)
class SharedLibrary:
    """The names of a shared library, and its dependencies."""

    file: str
    soname: str
    exports: Collection[str]  # the only visible names, whatever the sources export
    over: Sequence[Artifact] = ()  # libraries that it links and finds in its own folder at run time


def shared_library(
    members: Sequence[Member], platform: Platform, library: SharedLibrary, *, work: Path | None = None
) -> Artifact | Outcome:
    """Links a shared library. The same members give the same bits.

    Outcome: COMPILE with the linker's output (e.g. an undefined name), TIMEOUT.
    """
    target, file, over = platform.compiler.shared_target, library.file, library.over
    key = _key(members, target, file, library.soname, sorted(library.exports), [a.key for a in over])

    def fill(folder: Path) -> BuildLog | Outcome:
        objects = _gather(members, folder)
        names = "".join(f"    {name};\n" for name in sorted(library.exports))
        (folder / "exports.map").write_text(f"{{\n  global:\n{names}  local:\n    *;\n}};\n")
        for below in over:
            shutil.copyfile(below.path, folder / below.path.name)
        argv = tool.cc(
            "-target", target, "-O3", "-g0", "-shared",
            f"-Wl,-soname,{library.soname}", "-Wl,--version-script=exports.map",
            "-Wl,--strip-debug",  # the C library's own objects name folders of this machine
            "-Wl,-z,defs", "-Wl,-z,nodelete",  # its threads and their memory outlive a dlclose
            *(["-Wl,-rpath,$ORIGIN"] if over else []), *objects, *(a.path.name for a in over),
            "-lpthread", "-lm", "-o", file,
        )  # fmt: skip
        return tool.run(argv, folder, timeout_s=300, doing=f"linking {file}")

    return cache.entry("libraries", key, file, fill, root=work)


def static_archive(members: Sequence[Member], *, file: str, work: Path | None = None) -> Artifact | Outcome:
    """Archives the same objects without times, owners or paths."""

    def fill(folder: Path) -> BuildLog | Outcome:
        argv = tool.ar("rcsD", file, *_gather(members, folder))
        return tool.run(argv, folder, timeout_s=60, doing=f"writing {file}")

    return cache.entry("libraries", _key(members, "archive", file), file, fill, root=work)


def _key(members: Sequence[Member], *more: object) -> str:
    return cache.key_of([(m.name, m.artifact.key) for m in members], tool.compiler_version(), more)


def _gather(members: Sequence[Member], folder: Path) -> list[str]:
    """Copies the objects under their own names, so that archives and libraries contain these and not local paths."""
    names = [m.name for m in members]
    if len(set(names)) != len(names):
        raise ValueError(f"two object files of one library have the same name: {names}")
    for member in members:
        shutil.copyfile(member.artifact.path, folder / member.name)
    return names


@dataclass(frozen=True)
class BuiltLibrary:
    """One library in both forms."""

    name: str
    soname: str  # of `shared`
    shared: Artifact
    archive: Artifact


def libraries(sources: Sources, platform: Platform, *, jobs: int = 2) -> tuple[BuiltLibrary, ...]:
    """Compiles and links all libraries, in the order of the sources; the cache supplies earlier builds.

    The gate checks the machine code of every object; kernels follow the same rules as candidates. Raises JobError with
    the output of the compiler or the gate: winners were built before, so the product's own templates or the machine are
    at fault. Raises MissingTool without a compiler or a disassembler.
    """
    built: dict[str, BuiltLibrary] = {}
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        units = [unit for made in sources.libraries for unit in made.units]
        # the longest first, so that all end together
        units.sort(key=lambda unit: len(unit.text) if unit.tuned else 0, reverse=True)
        compiling = {unit.name: pool.submit(_compile, unit, sources, platform) for unit in units}
        for library in sources.libraries:
            members = [compiling[unit.name].result() for unit in library.units]
            over = [built[name].shared for name in library.over]
            built[library.name] = _link(library, members, platform, over)
    return tuple(built.values())


def _compile(unit: Unit, sources: Sources, platform: Platform) -> Member:
    member = compile_member(
        sources.seen_by(unit),
        platform,
        f"{unit.name.removesuffix('.c').replace('/', '_')}.o",
        arch_flags=None if unit.tuned else (),
    )
    built = _whole(member, unit.name)
    refused = gate.check_object(built.artifact.path, entries=unit.entries, relocated=True, of=unit.needs)
    if refused:
        return _whole(refused, unit.name)
    return built


def _link(
    library: ProductLibrary, members: Sequence[Member], platform: Platform, over: Sequence[Artifact]
) -> BuiltLibrary:
    name = soname(library.name)
    file = f"lib{library.name}.so"
    shared = shared_library(members, platform, SharedLibrary(file, name, library.exports, over))
    archive = static_archive(members, file=f"lib{library.name}.a")
    return BuiltLibrary(library.name, name, _whole(shared, file), _whole(archive, f"lib{library.name}.a"))


def _whole(built: T | Outcome, name: str) -> T:
    if isinstance(built, Outcome):
        raise errors.JobError(
            f"cannot build {name} of the product: {built.message}\n{built.log}".rstrip(),
            hint="run `tensorop doctor` to test the compiler",
        )
    return built
