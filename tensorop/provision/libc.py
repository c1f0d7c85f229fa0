"""A static C library for the harness, without compiling one.

zig compiles musl at the first static link for a target, for each -mcpu and -O level; this takes 30 to 60 s on two
cores. Debian ships the same musl (1.2.5) compiled, 1 MB. With it, zig only builds its compiler support routines (3 s).
"""

from __future__ import annotations

import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors
from tensorop.model.architecture import architecture
from tensorop.provision import cache, debian, zig

SUITE = "trixie"


@dataclass(frozen=True)
class StaticLink:
    """The command that links a static program: `before` + objects + `after` + ("-o", program).

    Objects are compiled separately, with their own -mcpu, for the same musl triple.
    """

    arch: str
    before: tuple[str, ...]  # compiler, target, CPU and -O level, the same in the whole project
    after: tuple[str, ...]
    origin: str  # name and version of the C library

    def argv(self, objects: tuple[str, ...], program: str) -> tuple[str, ...]:
        """The whole command that links `objects` into `program`."""
        return (*self.before, *objects, *self.after, "-o", program)


def entry(arch: str) -> cache.CacheEntry:
    """The cache entry of Debian's musl for an architecture."""
    packages = debian.Packages(("musl-dev",), SUITE, arch, f"musl for {arch}", cache.by_hand("libc", arch))
    return packages.entry(
        cache.entry_path("libc", f"musl-{SUITE}-{architecture(arch).name}"), "to link candidates with"
    )


@functools.cache
def static_link(arch: str, *, offline: bool | None = None) -> StaticLink:
    """The command that links a static program for an architecture, with the architecture's one CPU string.

    Cached per process. If Debian's musl is unavailable, zig's own is used; then the first link takes half a minute
    more.
    Raises MissingTool without zig.
    """
    t = architecture(arch)
    words = ("-target", t.static_triple, f"-mcpu={t.static_cpu}", "-O3", "-static", "-Wl,--strip-debug")
    compiler = (*zig.zig_cc(), *words)
    try:
        root = entry(arch).bring(offline=offline)
    except errors.MissingTool:
        return StaticLink(arch, compiler, (), f"musl of zig {zig.zig_version()}")
    lib = root / "usr/lib" / t.static_triple
    before = (*compiler, "-nostdlib", str(lib / "crt1.o"), str(lib / "crti.o"))
    # libc.a includes mathematics and threads; it needs compiler_rt (long double is 128 bits in software).
    after = (str(lib / "libc.a"), "-lcompiler_rt", str(lib / "crtn.o"))
    return StaticLink(arch, before, after, f"musl {debian.version(root, 'musl-dev')}")


def shared_link(arch: str, triple: str) -> tuple[str, ...]:
    """The argv prefix that links a shared library for glibc, e.g. for `riscv64-linux-gnu.2.31`. Raises MissingTool."""
    return (*zig.zig_cc(), "-target", triple, f"-mcpu={architecture(arch).static_cpu}", "-O3", "-shared", "-g0")


def warm(arch: str, *, offline: bool | None = None) -> StaticLink:
    """Links an empty program, so that zig builds its parts for the architecture. Raises MissingTool."""
    link = static_link(arch, offline=offline)
    with tempfile.TemporaryDirectory() as tmp:
        obj = _empty_object(arch, architecture(arch).static_triple, Path(tmp))
        _run(link.argv((obj,), str(Path(tmp, "empty"))), arch)
    return link


def warm_shared(arch: str, triple: str) -> None:
    """Links an empty library by `shared_link`, for the same purpose. Raises MissingTool."""
    with tempfile.TemporaryDirectory() as tmp:
        obj = _empty_object(arch, triple, Path(tmp))
        _run((*shared_link(arch, triple), obj, "-o", str(Path(tmp, "empty.so"))), arch)


def _empty_object(arch: str, triple: str, folder: Path) -> str:
    source, obj = folder / "empty.c", folder / "empty.o"
    source.write_text("int main(void) { return 0; }\n")
    _run((*zig.zig_cc(), "-target", triple, "-O3", "-fPIC", "-c", str(source), "-o", str(obj)), arch)
    return str(obj)


def _run(argv: tuple[str, ...], arch: str) -> None:
    zig.run(argv, f"zig cannot link a program for {arch}", hint="pip install --force-reinstall ziglang==0.17.0")
