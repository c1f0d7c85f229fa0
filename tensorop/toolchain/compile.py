"""Compiles sources, and links objects to static programs: candidates in the harness, and programs of their own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path, PurePosixPath

from tensorop import paths
from tensorop.model.architecture import ARCHITECTURES
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Kind, Outcome
from tensorop.provision import libc, zig
from tensorop.toolchain import cache, harness, tool
from tensorop.toolchain.cache import BuildLog

OBJECT = "kernel.o"
CANDIDATE = "candidate"
READ = "read.d"  # in the folder of a source: the list of files that the compiler read
DECLARED = "declared"  # in the same folder: headers that are not the source's own
PRECOMPILED = "intrinsics.pch"  # there
# zig keeps a frame pointer at every optimisation level, which costs the kernel a register.
LEAN = ("-fomit-frame-pointer",)
# The compiler may not conclude that code is unreachable from a loop that must end, an overflow, a type or an access.
DEFINED = (
    "-fno-finite-loops", "-fno-strict-overflow", "-fno-strict-aliasing", "-fno-delete-null-pointer-checks",
)  # fmt: skip


def candidate_flags(platform: Platform) -> tuple[str, ...]:
    """The flags of a candidate's object: the static harness's target, the platform's ISA and optimisation."""
    c = platform.compiler
    return ("-target", c.static_target, *LEAN, *c.arch_flags, *c.flags, *DEFINED)


def read_elsewhere(folder: Path) -> str | None:
    """The first file that the compiler read outside of the source's folder and its own folders; None if there is none.

    The compiler lists includes and embedded files. Without a list, for example after a missing embedded file, the
    result reports that.
    """
    try:
        text = (folder / READ).read_text(errors="replace")
    except OSError:
        return "what the compiler did not list"
    roots = [path.resolve() for path in (folder, zig.zig().parent, paths.cache_dir("zig"))]
    listed = text.replace("\\\n", " ").partition(":")[2]
    for name in (word.replace("\\ ", " ") for word in re.split(r"(?<!\\)\s+", listed.strip()) if word):
        real = (folder / name).resolve()
        if not any(root in real.parents for root in roots):
            return name
    return None


def compile_source(
    source: Source,
    flags: tuple[str, ...],
    *,
    work: Path | None = None,
    timeout_s: float = 60.0,
    guards: str | None = None,
) -> Artifact | Outcome:
    """The object of the first file of a source, from the cache if it was built before.

    The source's other files and call.h can be included. As far as `guards` (see tool.run) can hide files, the compiler
    sees only these and its own headers.
    work: root of the build cache, by default the user's.
    Outcome: COMPILE or TIMEOUT with the compiler's output, REFUSED if the source has or reads a file elsewhere. Raises
    MissingTool without a compiler, JobError on a full disk.
    """
    call, flags = paths.native_dir() / "call.h", (*flags, *source.flags)
    header = cache.content([call])
    key = cache.key_of(source.files, flags, tool.compiler_version(), header)
    main = source.files[0][0] if source.files else ""

    def fill(folder: Path) -> BuildLog | Outcome:
        for name, text in source.files:
            path = PurePosixPath(name)
            if path.is_absolute() or any(part.startswith(".") for part in path.parts) or not path.parts:
                return Outcome(Kind.REFUSED, "build", f"'{name}' leads out of the folder of a source")
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_text(text)
        (folder / DECLARED).mkdir()
        shutil.copyfile(call, folder / DECLARED / call.name)
        read: tuple[str, ...] = ()
        if isinstance(intrinsics := _intrinsics(source, flags), Artifact):
            # a copy, since a compiler that reads untrusted C can write to its folder
            shutil.copyfile(intrinsics.path, folder / DECLARED / PRECOMPILED)
            read = ("-include-pch", f"{DECLARED}/{PRECOMPILED}")
        argv = tool.cc(*flags, *read, "-MD", "-MF", READ, "-I", ".", "-I", DECLARED, "-c", main, "-o", OBJECT)
        made = tool.run(argv, folder, timeout_s=timeout_s, doing=f"compiling {main}", guards=guards)
        elsewhere = read_elsewhere(folder) if isinstance(made, BuildLog) else None
        (folder / READ).unlink(missing_ok=True)
        shutil.rmtree(folder / DECLARED)
        return made if elsewhere is None else Outcome(Kind.REFUSED, "build", f"view: its C reads {elsewhere}")

    return cache.entry("objects", key, OBJECT, fill, root=work)


def _intrinsics(source: Source, flags: tuple[str, ...]) -> Artifact | Outcome | None:
    """The header of intrinsics that a source includes, precompiled; None if it includes none.

    Reading it takes the compiler longer than some kernels do. The object is the same bit by bit.
    """
    text = source.files[0][1] if source.files else ""
    names = [a.intrinsics for a in ARCHITECTURES.values() if a.intrinsics and f"#include <{a.intrinsics}>" in text]
    if not names or "_SOURCE" in text:  # a feature macro has to stand before all headers
        return None
    header = zig.zig().parent / "lib" / "include" / names[0]

    def fill(folder: Path) -> BuildLog | Outcome:
        argv = tool.cc(*flags, "-x", "c-header", str(header), "-o", PRECOMPILED)
        return tool.run(argv, folder, timeout_s=60, doing=f"reading {names[0]}")

    # it holds paths and times of the compiler's headers
    key = cache.key_of(flags, tool.compiler_version(), str(header), header.stat().st_mtime_ns)
    return cache.entry("headers", key, PRECOMPILED, fill)


def compile_and_link(source: Source, platform: Platform, flags: tuple[str, ...]) -> Artifact | Outcome:
    """A source's parts compiled with these flags and linked into the harness. Outcomes and errors of both steps."""
    objects: list[Artifact] = []
    for part in source.parts:
        made = compile_source(part, flags)
        if isinstance(made, Outcome):
            return made
        objects.append(made)
    return link_candidate(*objects, arch=platform.arch)


def link_candidate(*objects: Artifact, arch: str, work: Path | None = None) -> Artifact | Outcome:
    """A static program that runs the objects' candidate through the harness.

    Outcome: COMPILE if the linker fails (a missing or a duplicate symbol). Raises MissingTool, JobError.
    """
    return _linked((harness.static_object(arch), *objects), arch, CANDIDATE, work)


def link_program(made: Artifact, *, arch: str, name: str) -> Artifact | Outcome:
    """A static program from an object that has a main. Outcomes and errors as `link_candidate`."""
    return _linked((made,), arch, name)


def _linked(objects: tuple[Artifact, ...], arch: str, name: str, work: Path | None = None) -> Artifact | Outcome:
    static = libc.static_link(arch)

    def fill(folder: Path) -> BuildLog | Outcome:
        argv = static.argv(tuple(str(a.path) for a in objects), name)
        made = tool.run(argv, folder, timeout_s=120, doing=f"linking the {name}")
        if isinstance(made, BuildLog):
            (folder / name).chmod(0o755)
        return made

    key = cache.key_of(name, [a.key for a in objects], static.origin, static.before, static.after)
    return cache.entry("programs", key, name, fill, root=work)
