"""Builds the two forms of the harness, each once per architecture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorop import paths
from tensorop.model.architecture import architecture
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.toolchain import cache, tool
from tensorop.toolchain.cache import BuildLog

PROGRAM = "harness"
ADAPTER, BASELINES = "adapter.c", "baselines.c"  # of an operator
GLIBC_FLOOR = "2.31"
FLAGS = ("-std=gnu11", "-O3", "-g0", "-Wall", "-Wextra")


def sources() -> list[Path]:
    """The harness's C files, in a fixed order."""
    return sorted(paths.native_dir().glob("harness*.c"))


def jail() -> list[Path]:
    """The headers with which a program confines itself."""
    return [paths.native_dir() / "jail.h", paths.native_dir() / "region.h"]


def glibc_flags(arch: str) -> tuple[str, ...]:
    """Flags of programs that are linked with glibc, so that they can load libraries."""
    target = architecture(arch)
    return ("-target", f"{target.multiarch}.{GLIBC_FLOOR}", f"-mcpu={target.static_cpu}", *FLAGS)


def _key(*more: object) -> str:
    native = paths.native_dir()
    headers = [native / "call.h", native / "bind.h", native / "harness.h", *jail()]
    return cache.key_of(cache.content([*sources(), *headers]), tool.compiler_version(), FLAGS, *more)


def static_object(arch: str) -> Artifact:
    """The harness as one relocatable object without tensorop_candidate_*. Raises JobError, MissingTool."""
    target = architecture(arch)
    flags = ("-target", target.static_triple, f"-mcpu={target.static_cpu}", *FLAGS)

    def fill(folder: Path) -> BuildLog | Outcome:
        objects = []
        for file in sources():
            objects.append(f"{file.stem}.o")
            argv = tool.cc(*flags, "-c", str(file), "-o", objects[-1])
            made = tool.run(argv, folder, timeout_s=120, doing=f"compiling {file.name}")
            if isinstance(made, Outcome):
                return made
        joined = tool.cc(*flags[:3], "-r", "-nostdlib", *objects, "-o", f"{PROGRAM}.o")
        return tool.run(joined, folder, timeout_s=120, doing="joining the harness")

    made = cache.entry("harness", _key("static", flags), f"{PROGRAM}.o", fill)
    return tool.required(made, f"the harness for {arch}")


def dynamic_program(
    arch: str,
    adapter: str,
    headers: Sequence[tuple[str, str]] = (),
    baselines: tuple[Path, Sequence[str]] | None = None,
    beside: Path | None = None,
    exports: bool = False,
) -> Artifact:
    """The harness for shared libraries, linked with glibc and an adapter. Raises JobError, MissingTool.

    adapter: its C; headers: (name, text) that it may include; baselines: a C file and its own flags
    beside: a folder with more headers; exports: libraries find the adapter's functions instead of their own
    """
    flags = (*glibc_flags(arch), "-DTENSOROP_DLOPEN", *(["-rdynamic", "-pthread"] if exports else []))
    include = ("-I", str(paths.native_dir()), "-I", ".", *(("-I", str(beside)) if beside else ()))

    def fill(folder: Path) -> BuildLog | Outcome:
        files = [*map(str, sources()), ADAPTER]
        for name, text in (*headers, (ADAPTER, adapter)):
            (folder / name).write_text(text, encoding="utf-8")
        if baselines is not None:
            file, own = baselines
            words = (*flags[:2], *own, *FLAGS, *include, "-c", str(file))
            made = tool.run(tool.cc(*words, "-o", "baselines.o"), folder, timeout_s=120, doing=f"compiling {file}")
            if isinstance(made, Outcome):
                return made
            files.append("baselines.o")
        argv = tool.cc(*flags, *include, *files, "-ldl", *(["-lm"] if baselines else []), "-o", PROGRAM)
        return tool.run(argv, folder, timeout_s=300, doing="building the harness for libraries")

    content = cache.content([*(sorted(beside.glob("*.h")) if beside else []), *([baselines[0]] if baselines else [])])
    key = _key("dynamic", flags, content, adapter, tuple(headers), tuple(baselines[1]) if baselines else ())
    made = cache.entry("harness", key, PROGRAM, fill)
    return tool.required(made, f"the harness for libraries of {arch}")
