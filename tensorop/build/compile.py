"""Source to object."""

from __future__ import annotations

from pathlib import Path, PurePosixPath

from tensorop import paths
from tensorop.build import cache, tool
from tensorop.build.cache import Made
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Kind, Outcome

OBJECT = "kernel.o"
# zig keeps a frame pointer at every optimisation level: a register less for the kernel.
LEAN = ("-fomit-frame-pointer",)


def candidate_flags(platform: Platform) -> tuple[str, ...]:
    """The flags of a candidate's object: the target of the static harness, the platform's ISA, its optimisation."""
    c = platform.compiler
    return ("-target", c.static_target, *LEAN, *c.arch_flags, *c.flags)


def compile_object(
    source: Source,
    platform: Platform,
    *,
    work: Path | None = None,
    timeout_s: float = 60.0,
    extra: tuple[str, ...] = (),
) -> Artifact | Outcome:
    """A candidate's object for the static harness, from the cache when the same was built before.

    work: root of the build cache, by default the user's. extra: further flags, after the platform's.
    Outcome: COMPILE or TIMEOUT with the compiler's words. Raises MissingTool without one, JobError on a full disk.
    """
    return compile_source(source, (*candidate_flags(platform), *extra), work=work, timeout_s=timeout_s)


def compile_source(
    source: Source,
    flags: tuple[str, ...],
    *,
    work: Path | None = None,
    timeout_s: float = 60.0,
    doing: str = "compiling",
) -> Artifact | Outcome:
    """Compiles the first of the source's files with these flags; its other files and call.h can be included."""
    include = str(paths.native_dir())
    header = cache.content([paths.native_dir() / "call.h"])
    key = cache.key_of(source.files, flags, tool.compiler_version(), header)
    main = source.files[0][0] if source.files else ""

    def fill(folder: Path) -> Made | Outcome:
        for name, text in source.files:
            path = PurePosixPath(name)
            if path.is_absolute() or any(part.startswith(".") for part in path.parts) or not path.parts:
                return Outcome(Kind.REFUSED, "build", f"'{name}' leads out of the folder of a source")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        argv = tool.cc(*flags, "-I", ".", "-I", include, "-c", main, "-o", OBJECT)
        return tool.run(argv, folder, timeout_s=timeout_s, doing=f"{doing} {main}")

    return cache.entry("objects", key, OBJECT, fill, root=work)
