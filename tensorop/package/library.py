"""The C of a product to its shared libraries and archives."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

from tensorop import __version__, errors
from tensorop.build import gate
from tensorop.build import library as building
from tensorop.build.library import Member, SharedLibrary
from tensorop.model.kernel import Artifact
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.package.sources import ProductLibrary, Sources, Unit

SONAME_MAJOR = int(__version__.split(".")[0])

T = TypeVar("T")


@dataclass(frozen=True)
class BuiltLibrary:
    """One library in both forms. `shared` carries `soname`."""

    name: str
    soname: str
    shared: Artifact
    archive: Artifact


def libraries(sources: Sources, platform: Platform, *, jobs: int = 2) -> tuple[BuiltLibrary, ...]:
    """Compiles and links everything, in the order of the sources; from the cache what was built before.

    The machine code of every object is read, of a kernel as a candidate's is. Raises JobError with the compiler's words
    when a file does not compile, or with the gate's: winners were built before, so this is a fault of the product's own
    templates or of the machine. MissingTool without a compiler or a disassembler.
    """
    built: dict[str, BuiltLibrary] = {}
    with ThreadPoolExecutor(max(jobs, 1)) as pool:
        for library in sources.libraries:
            members = list(pool.map(lambda unit: _compile(unit, sources, platform), library.units))
            over = [built[name].shared for name in library.over]
            built[library.name] = _link(library, members, platform, over)
    return tuple(built.values())


def soname(name: str) -> str:
    """What programs linked to a library ask the loader for."""
    return f"lib{name}.so.{SONAME_MAJOR}"


def _compile(unit: Unit, sources: Sources, platform: Platform) -> Member:
    member = building.compile_member(
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
    shared = building.shared_library(members, platform, SharedLibrary(file, name, library.exports, over))
    archive = building.static_archive(members, file=f"lib{library.name}.a")
    return BuiltLibrary(library.name, name, _whole(shared, file), _whole(archive, f"lib{library.name}.a"))


def _whole(built: T | Outcome, name: str) -> T:
    if isinstance(built, Outcome):
        raise errors.JobError(
            f"cannot build {name} of the product: {built.message}\n{built.log}".rstrip(),
            hint="tensorop doctor tests the compiler",
        )
    return built
