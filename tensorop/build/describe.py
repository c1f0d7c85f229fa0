"""The program that asks a BLAS what it is, built once for an architecture."""

from __future__ import annotations

from pathlib import Path

from tensorop import errors, paths
from tensorop.build import cache, harness, tool
from tensorop.build.cache import Made
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.provision import targets

_FLAGS = ("-std=gnu11", "-O2", "-g0", "-Wall", "-Wextra")


def describe_program(arch: str) -> Artifact:
    """native/describe.c against glibc, for libraries a static program cannot load. Raises JobError, MissingTool."""
    target = targets.target(arch)
    source = paths.native_dir() / "describe.c"
    flags = ("-target", f"{target.multiarch}.{harness.GLIBC_FLOOR}", f"-mcpu={target.static_cpu}", *_FLAGS)

    def fill(folder: Path) -> Made | Outcome:
        argv = tool.cc(*flags, "-I", str(paths.native_dir()), str(source), "-ldl", "-o", "describe")
        return tool.run(argv, folder, timeout_s=300, doing=f"compiling {source.name}")

    key = cache.key_of(cache.content([source, *harness.jail()]), tool.compiler_version(), flags)
    built = cache.entry("describe", key, "describe", fill)
    if isinstance(built, Outcome):
        raise errors.JobError(
            f"cannot build the program that describes libraries for {arch}: {built.message}\n{built.log}",
            hint="tensorop doctor tests the compiler",
        )
    return built
