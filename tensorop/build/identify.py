"""The program by which a core says what it is."""

from __future__ import annotations

from tensorop import errors, paths
from tensorop.build import link
from tensorop.build.compile import LEAN, compile_source
from tensorop.model.kernel import Artifact, Source
from tensorop.model.trial import Outcome
from tensorop.provision import targets

_VECTOR = "+v"  # a core without it must be able to say so


def identify_program(arch: str) -> Artifact:
    """native/identify.c, static, for any core of an architecture: it asks for nothing beyond the base ISA but through a
    trap it catches. Raises JobError, MissingTool."""
    target = targets.target(arch)
    source = Source((("identify.c", (paths.native_dir() / "identify.c").read_text()),))
    flags = ("-target", target.static_triple, f"-mcpu={target.static_cpu.removesuffix(_VECTOR)}", *LEAN, "-O2", "-g0")
    built = compile_source(source, flags)
    program = built if isinstance(built, Outcome) else link.link_program(built, arch=arch, name="identify")
    if isinstance(program, Outcome):
        raise errors.JobError(
            f"the program that identifies a core cannot be built for {arch}: {program.message}\n{program.log}",
            hint="tensorop doctor tests the compiler",
        )
    return program
