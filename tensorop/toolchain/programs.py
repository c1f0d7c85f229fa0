"""Builds tensorop's own programs that run on a target beside candidates; the cache keeps each."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from tensorop import errors, paths
from tensorop.model.architecture import architecture, host_arch
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.kernel import Artifact, Source
from tensorop.model.microbench import Benchmark
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Check
from tensorop.runners.session import Guest
from tensorop.toolchain import cache, harness, tool
from tensorop.toolchain.cache import BuildLog
from tensorop.toolchain.compile import LEAN, candidate_flags, compile_and_link, compile_source, link_program

_VECTOR = "+v"  # left out, so that the program also runs on a core without it
_LIBRARY = "host.so"
_ELEMENT = {"f32": "float", "f64": "double"}


def describe_program(arch: str) -> Artifact:
    """native/describe.c, which reads a BLAS's properties; with glibc, for libraries that a static program cannot load.

    Raises JobError, MissingTool.
    """
    source, flags = paths.native_dir() / "describe.c", harness.glibc_flags(arch)

    def fill(folder: Path) -> BuildLog | Outcome:
        argv = tool.cc(*flags, "-I", str(paths.native_dir()), str(source), "-ldl", "-o", "describe")
        return tool.run(argv, folder, timeout_s=300, doing=f"compiling {source.name}")

    key = cache.key_of(cache.content([source, *harness.jail()]), tool.compiler_version(), flags)
    built = cache.entry("describe", key, "describe", fill)
    return tool.required(built, f"the program that describes libraries for {arch}")


def identify_program(arch: str) -> Artifact:
    """native/identify.c as a static program that identifies any core of an architecture.

    It needs only the base ISA; it catches the trap of other instructions. Raises JobError, MissingTool.
    """
    target = architecture(arch)
    flags = ("-target", target.static_triple, f"-mcpu={target.static_cpu.removesuffix(_VECTOR)}", *LEAN, "-O2", "-g0")
    built = compile_source(native("identify.c", "additions.h"), flags)
    program = built if isinstance(built, Outcome) else link_program(built, arch=arch, name="identify")
    return tool.required(program, f"the program that identifies a core of {arch}")


def peak_program(platform: Platform, dtype: str) -> Artifact:
    """native/peak.c, which measures a core's peak, with the platform's flags.

    Raises UsageError for another dtype, JobError, MissingTool.
    """
    if dtype not in _ELEMENT:
        raise errors.UsageError(f"native/peak.c is of {' and '.join(_ELEMENT)} alone")
    flags = (*candidate_flags(platform), f"-DELEMENT={_ELEMENT[dtype]}", "-ffp-contract=fast")
    return tool.required(compile_and_link(native("peak.c"), platform, flags), f"the peak of {platform.name}")


def host_library(source: Source) -> Artifact:
    """A source without a C library as a shared library that this process can load. Raises JobError, MissingTool."""
    flags = ("-target", architecture(host_arch()).static_triple, *LEAN, "-O2", "-g0", "-fPIC")
    made = tool.required(compile_source(source, flags), source.files[0][0])

    def fill(folder: Path) -> BuildLog | Outcome:
        argv = tool.cc(*flags, "-shared", "-nostdlib", str(made.path), "-o", _LIBRARY)
        return tool.run(argv, folder, timeout_s=60, doing=f"linking {_LIBRARY}")

    return tool.required(cache.entry("host", cache.key_of(made.key), _LIBRARY, fill), source.files[0][0])


def benchmark_functions(benchmarks: Sequence[Benchmark], source: str) -> tuple[str, ...]:
    """The functions that micro-benchmarks use from a C file, in the order of its table."""
    return tuple(dict.fromkeys(b.function for b in benchmarks if b.source == source))


def benchmark_program(folder: Path, source: str, benchmarks: Sequence[Benchmark], platform: Platform) -> Artifact:
    """A C file of micro-benchmarks as a program for the harness, with its benchmarks by number.

    Raises JobError, MissingTool.
    """
    files = [source, *sorted(p.name for p in folder.glob("*.h"))]
    text = Source(tuple((name, (folder / name).read_text()) for name in files))
    flags = (*candidate_flags(platform), f"-DBENCHES={','.join(benchmark_functions(benchmarks, source))}")
    built = compile_and_link(text, platform, flags)
    return tool.required(built, f"{source} of the micro-benchmarks for {platform.name}")


def native(*names: str) -> Source:
    """Files of native/ as a source."""
    return Source(tuple((name, (paths.native_dir() / name).read_text()) for name in names))


def sample_call(size: int) -> Call:
    """A call of the smallest candidate, which doubles `size` numbers."""
    x = np.arange(size, dtype=np.float32)
    return Call((size,), buffers=(Buffer("x", Access.IN, x), Buffer("y", Access.OUT, np.zeros_like(x))))


SAMPLE_CALL = sample_call(64)


def sample_program(platform: Platform) -> Artifact | Outcome:
    """The smallest candidate (native/sample.c) as a static program, to check that builds for a target work.

    Errors as compiler and linker.
    """
    return compile_and_link(native("sample.c"), platform, candidate_flags(platform))


def sample_fault(runner: Runner, program: Path, guest: Guest) -> str:
    """Calls the smallest candidate on a target: the fault, or "" if there is none. Errors as `session.run`."""
    (reply,) = session.run(runner, program, [Check(SAMPLE_CALL)], guest=guest)
    right = reply.outcome.ok and np.array_equal(reply.outputs["y"], 2 * SAMPLE_CALL.buffers[0].data)
    return "" if right else reply.outcome.message or "wrong result"
