"""The harness's two forms, each built once for an architecture."""

from __future__ import annotations

from pathlib import Path

from tensorop import errors, paths
from tensorop.build import cache, tool
from tensorop.build.cache import Made
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.provision import targets

PROGRAM = "harness"
GLIBC_FLOOR = "2.31"
_FLAGS = ("-std=gnu11", "-O3", "-g0", "-Wall", "-Wextra")


def sources() -> list[Path]:
    """The harness's C files, in a fixed order."""
    return sorted(paths.native_dir().glob("harness*.c"))


def jail() -> list[Path]:
    """The headers by which a program confines itself."""
    return [paths.native_dir() / "jail.h", paths.native_dir() / "region.h"]


def _key(*more: object) -> str:
    native = paths.native_dir()
    headers = [native / "call.h", native / "bind.h", native / "harness.h", *jail()]
    return cache.key_of(cache.content([*sources(), *headers]), tool.compiler_version(), _FLAGS, *more)


def static_object(arch: str) -> Artifact:
    """The harness as one relocatable object that lacks only tensorop_candidate_*. Raises JobError, MissingTool."""
    target = targets.target(arch)
    flags = ("-target", target.static_triple, f"-mcpu={target.static_cpu}", *_FLAGS)

    def fill(folder: Path) -> Made | Outcome:
        objects = []
        for file in sources():
            objects.append(f"{file.stem}.o")
            made = tool.run(
                tool.cc(*flags, "-c", str(file), "-o", objects[-1]),
                folder,
                timeout_s=120,
                doing=f"compiling {file.name}",
            )
            if isinstance(made, Outcome):
                return made
        joined = tool.cc(*flags[:3], "-r", "-nostdlib", *objects, "-o", f"{PROGRAM}.o")
        return tool.run(joined, folder, timeout_s=120, doing="joining the harness")

    return _whole(cache.entry("harness", _key("static", flags), f"{PROGRAM}.o", fill), arch)


def dynamic_program(arch: str, adapter: Path) -> Artifact:
    """The harness for shared libraries, against glibc, with an operator's adapter.c. Raises JobError, MissingTool."""
    target = targets.target(arch)
    triple = f"{target.multiarch}.{GLIBC_FLOOR}"
    flags = ("-target", triple, f"-mcpu={target.static_cpu}", *_FLAGS, "-DTENSOROP_DLOPEN")

    def fill(folder: Path) -> Made | Outcome:
        files = [str(file) for file in (*sources(), adapter)]
        argv = tool.cc(*flags, "-I", str(paths.native_dir()), *files, "-ldl", "-o", PROGRAM)
        return tool.run(argv, folder, timeout_s=300, doing="building the harness for libraries")

    return _whole(cache.entry("harness", _key("dynamic", flags, cache.content([adapter])), PROGRAM, fill), arch)


def _whole(built: Artifact | Outcome, arch: str) -> Artifact:
    if isinstance(built, Outcome):
        raise errors.JobError(
            f"cannot build the harness for {arch}: {built.message}\n{built.log}",
            hint="tensorop doctor tests the compiler",
        )
    return built
