"""Objects to static programs: candidates within the harness, and programs of their own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorop.build import cache, harness, tool
from tensorop.build.cache import BuildLog
from tensorop.build.compile import compile_source
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.provision import libc

PROGRAM = "candidate"


def candidate(source: Source, platform: Platform, flags: tuple[str, ...]) -> Artifact | Outcome:
    """A source compiled with these flags and linked into the harness. Outcome and errors as of both."""
    made = compile_source(source, flags)
    return made if isinstance(made, Outcome) else link_candidate(made, platform.arch)


def link_candidate(
    objects: Artifact | Sequence[Artifact], arch: str, *, work: Path | None = None
) -> Artifact | Outcome:
    """A static program that runs the candidate in these objects through the harness.

    Outcome: COMPILE when the linker refuses (a missing symbol, two with one name). Raises MissingTool, JobError.
    """
    return _linked((harness.static_object(arch), *_several(objects)), arch, PROGRAM, work)


def link_program(objects: Artifact | Sequence[Artifact], *, arch: str, name: str) -> Artifact | Outcome:
    """A static program of these objects alone, one of which has a main. Outcome and errors as `link_candidate`."""
    return _linked(_several(objects), arch, name)


def _several(objects: Artifact | Sequence[Artifact]) -> tuple[Artifact, ...]:
    return (objects,) if isinstance(objects, Artifact) else tuple(objects)


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
