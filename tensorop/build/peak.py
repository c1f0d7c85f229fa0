"""The program that measures a core's peak, for a platform and an element type."""

from __future__ import annotations

from tensorop import errors, paths
from tensorop.build import link
from tensorop.build.compile import candidate_flags, compile_source
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome

_ELEMENT = {"f32": "float", "f64": "double"}


def peak_program(platform: Platform, dtype: str) -> Artifact:
    """native/peak.c built with the platform's own flags. Raises UsageError for another dtype, JobError, MissingTool."""
    if dtype not in _ELEMENT:
        raise errors.unknown_name("element type of a peak", dtype, _ELEMENT)
    source = Source((("peak.c", (paths.native_dir() / "peak.c").read_text()),))
    flags = (*candidate_flags(platform), f"-DELEMENT={_ELEMENT[dtype]}", "-ffp-contract=fast")
    built = compile_source(source, flags)
    program = built if isinstance(built, Outcome) else link.link_candidate(built, platform.arch)
    if isinstance(program, Outcome):
        raise errors.JobError(
            f"the peak of {platform.name} cannot be built: {program.message}\n{program.log}",
            hint="tensorop doctor tests the compiler",
        )
    return program
