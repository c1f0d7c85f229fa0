"""`platforms check` and `platforms probe`: a platform file held against a machine, and one written from a machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tensorop import paths
from tensorop.build import link
from tensorop.build.compile import candidate_flags, compile_source
from tensorop.errors import JobError, TensoropError
from tensorop.measure import board
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.runners import choose, process
from tensorop.runners.base import Runner
from tensorop.specs import board as board_spec
from tensorop.specs import native, platforms


@dataclass(frozen=True)
class Line:
    """One thing that was looked at; about: what; message: what came of it."""

    ok: bool
    about: str
    message: str

    def __str__(self) -> str:
        return f"{'ok  ' if self.ok else 'FAIL'} {self.about}: {self.message}"


def check(platform: Platform, runner: str | None = None, plugins: tuple[Path, ...] = ()) -> Iterator[Line]:
    """Holds a platform against what it claims, a line each."""
    yield Line(True, "file", " < ".join(platform.lineage))
    try:
        program = _identify(platform)
    except TensoropError as error:
        yield Line(False, "compiler", str(error))
        return
    yield Line(True, "compiler", " ".join(platform.compiler.arch_flags))
    target = choose.runner_for(platform, runner)
    for vlen in platform.vlens:
        try:
            said = _said(target, program, vlen)
        except TensoropError as error:
            yield Line(False, "run", str(error))
            return
        found = said.get("vlen", str(vlen))
        yield Line(int(found) == vlen, f"VLEN {vlen}", f"the core has {found} bits")
    if platform.board:
        model = board_spec.load(platform.board, platform.name)
        yield Line(True, "board model", f"{model.name} {model.version}")
        try:
            board.require_plugins(f"qemu-{platform.arch}")
        except TensoropError as error:
            yield Line(False, "emulator", str(error))


def probe(target: str, name: str | None) -> str:
    """A platform file, as text, of this machine (`native`) or of ssh://host."""
    if target != "native":
        raise JobError(f"{target} cannot be probed yet")
    known = [platforms.load("native")]
    caches = "".join(
        f"  {level}: {{size: {c['size']}, ways: {c['ways']}, line: {c['line']}, shared_by: {c['shared_by']}}}\n"
        for level, c in native.caches().items()
    )
    return f"schema: 1\nname: {name or 'mine'}\nparent: {known[0].lineage[1]}\ndescription: as probed\n" + (
        f"caches:\n{caches}" if caches else ""
    )


def _identify(platform: Platform) -> Artifact:
    source = Source((("identify.c", (paths.native_dir() / "identify.c").read_text()),))
    built = compile_source(source, candidate_flags(platform))
    program = built if isinstance(built, Outcome) else link.link_program(built, arch=platform.arch, name="identify")
    if isinstance(program, Outcome):
        raise JobError(f"{program.message}\n{program.log}")
    return program


def _said(runner: Runner, program: Artifact, vlen: int) -> dict[str, str]:
    argv = runner.command([runner.place(program.path)], vlen=vlen, environment={})
    ended = process.run(argv, timeout_s=60, environment=runner.environment({}))
    if ended.status:
        raise JobError(f"a program ended with status {ended.status} on the target: {ended.stderr.strip()[:200]}")
    return dict(line.split(" ", 1) for line in ended.stdout.decode().splitlines())
