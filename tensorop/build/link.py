"""Object to program: the candidate linked into the static harness."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

from tensorop.build import cache, harness, tool
from tensorop.build.cache import Made
from tensorop.model.kernel import Artifact
from tensorop.model.trial import Outcome
from tensorop.provision import libc

PROGRAM = "candidate"


@functools.cache
def _static_link(arch: str) -> libc.StaticLink:
    return libc.static_link(arch)


def link_candidate(
    objects: Artifact | Sequence[Artifact], arch: str, *, work: Path | None = None, timeout_s: float = 120.0
) -> Artifact | Outcome:
    """A static program that runs the candidate in these objects through the harness.

    Outcome: COMPILE when the linker refuses (a missing symbol, two with one name). Raises MissingTool, JobError.
    """
    given = (objects,) if isinstance(objects, Artifact) else tuple(objects)
    host = harness.static_object(arch)
    static = _static_link(arch)
    key = cache.key_of(host.key, [a.key for a in given], static.origin, static.before, static.after)

    def fill(folder: Path) -> Made | Outcome:
        argv = static.argv((str(host.path), *(str(a.path) for a in given)), PROGRAM)
        made = tool.run(argv, folder, timeout_s=timeout_s, doing="linking the candidate")
        if isinstance(made, Made):
            (folder / PROGRAM).chmod(0o755)
        return made

    return cache.entry("programs", key, PROGRAM, fill, root=work)


def link_program(objects: Artifact | Sequence[Artifact], *, arch: str, name: str = PROGRAM) -> Artifact | Outcome:
    """A static program of these objects alone, one of which has a main. Outcome and errors as `link_candidate`."""
    given = (objects,) if isinstance(objects, Artifact) else tuple(objects)
    static = _static_link(arch)
    key = cache.key_of("program", [a.key for a in given], static.origin, static.before, static.after)

    def fill(folder: Path) -> Made | Outcome:
        made = tool.run(static.argv(tuple(str(a.path) for a in given), name), folder, timeout_s=120.0, doing="linking")
        if isinstance(made, Made):
            (folder / name).chmod(0o755)
        return made

    return cache.entry("programs", key, name, fill)


def forget(program: Artifact) -> None:
    """Takes a candidate's program out of the cache: it is made again from its object in no time."""
    shutil.rmtree(program.path.parent, ignore_errors=True)
