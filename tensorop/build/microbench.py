"""Micro-benchmarks built for a platform: a static program a C file, with its benchmarks by number."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tensorop import errors
from tensorop.build import link
from tensorop.build.compile import candidate_flags, compile_source
from tensorop.model.kernel import Artifact, Source
from tensorop.model.microbench import Benchmark
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome


def functions(benchmarks: Sequence[Benchmark], source: str) -> tuple[str, ...]:
    """The functions of a C file that are used, in the order of its table."""
    return tuple(dict.fromkeys(b.function for b in benchmarks if b.source == source))


def program(folder: Path, source: str, benchmarks: Sequence[Benchmark], platform: Platform) -> Artifact:
    """One C file of a folder of benchmarks as a static program for the harness. Raises JobError, MissingTool."""
    files = [source, *sorted(p.name for p in folder.glob("*.h"))]
    text = Source(tuple((name, (folder / name).read_text()) for name in files))
    table = ",".join(functions(benchmarks, source))
    built = compile_source(text, (*candidate_flags(platform), f"-DBENCHES={table}"))
    made = built if isinstance(built, Outcome) else link.link_candidate(built, platform.arch)
    if isinstance(made, Outcome):
        raise errors.JobError(
            f"the micro-benchmarks {source} cannot be built for {platform.name}: {made.message}\n{made.log}",
            hint="tensorop doctor tests the compiler",
        )
    return made
