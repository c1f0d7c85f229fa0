"""The distance of loads from their uses, read from objects whose loops are written out in assembly."""

from pathlib import Path

import pytest

from benchmarks import loops
from tensorop.model.kernel import Artifact
from tensorop.toolchain import compile as compiling
from tensorop.toolchain.compile import link_candidate
from tests.support import kernels

# `near` loads right before the uses; `ahead` loads for the next iteration, once the first use has freed the register.
RISCV = {
    "near": """1: vle32.v v8, (%1)
        vle32.v v10, (%1)
        vfmacc.vf v0, fa0, v8
        vfmacc.vf v2, fa0, v10
        vfmacc.vf v4, fa1, v8
        vfmacc.vf v6, fa1, v10
        addi %0, %0, -1
        bnez %0, 1b""",
    "ahead": """1: vfmacc.vf v0, fa0, v8
        vfmacc.vf v4, fa1, v8
        vle32.v v8, (%1)
        vfmacc.vf v2, fa0, v10
        vfmacc.vf v6, fa1, v10
        vle32.v v10, (%1)
        addi %0, %0, -1
        bnez %0, 1b""",
    "scalars": """1: vle32.v v8, (%1)
        vfmacc.vf v0, fa0, v8
        flw fa0, 0(%1)
        vfmacc.vf v4, fa1, v8
        flw fa1, 4(%1)
        addi %0, %0, -1
        bnez %0, 1b""",
    "spilled": """1: vs2r.v v8, (sp)
        vl2r.v v8, (sp)
        vle32.v v10, (%1)
        vfmacc.vf v0, fa0, v8
        vfmacc.vf v2, fa0, v10
        addi %0, %0, -1
        bnez %0, 1b""",
}
ARM = {
    "near": """1: ldr q8, [%1]
        ldr q10, [%1, #16]
        fmla v0.4s, v8.4s, v16.s[0]
        fmla v2.4s, v10.4s, v16.s[0]
        fmla v4.4s, v8.4s, v17.4s
        fmla v6.4s, v10.4s, v17.4s
        subs %0, %0, #1
        b.ne 1b""",
    "ahead": """1: fmla v0.4s, v8.4s, v16.s[0]
        fmla v4.4s, v8.4s, v17.4s
        ldr q8, [%1]
        fmla v2.4s, v10.4s, v16.s[0]
        fmla v6.4s, v10.4s, v17.4s
        ldr q10, [%1], #0
        subs %0, %0, #1
        b.ne 1b""",
    "pairs": """1: ldp q8, q10, [%1]
        fmla v0.4s, v8.4s, v16.s[0]
        fmla v2.4s, v10.4s, v16.s[0]
        cbnz %0, 1b""",
}
X86 = {
    "near": """1: vmovups (%1), %%ymm8
        vbroadcastss 32(%1), %%ymm9
        vfmadd231ps %%ymm8, %%ymm12, %%ymm0
        vfmadd231ps %%ymm9, %%ymm12, %%ymm1
        dec %0
        jne 1b""",
    "ahead": """1: vfmadd231ps %%ymm8, %%ymm12, %%ymm0
        vmovups (%1), %%ymm8
        vfmadd231ps %%ymm9, %%ymm12, %%ymm1
        vbroadcastss 32(%1), %%ymm9
        dec %0
        jne 1b""",
}
FLAGS = {"x86_64": "-mavx2", "riscv64": "-mcpu=baseline_rv64+v", "aarch64": "-mcpu=cortex_a53"}


def compiled(text: str, arch: str, work) -> Artifact:
    lines = " ".join(f'"{line.strip()}\\n"' for line in text.splitlines())
    extra = "-mfma" if arch == "x86_64" else FLAGS[arch]
    body = f'long n = 9; const void *p = c->buffer[0]; __asm__ volatile({lines} : "+r"(n), "+r"(p) :: "memory");'
    flags = compiling.candidate_flags(kernels.platform(arch, FLAGS[arch], extra))
    made = compiling.compile_source(kernels.source(body), flags, work=work)
    assert isinstance(made, Artifact), made
    return made


def inner_loop(path: Path, function: str | None = None) -> loops.Loop | None:
    """The loop with the most multiply-adds, of one function or of all."""
    found = (loop for loop in loops.inner_loops(path) if function in (None, loop.function))
    return max(found, key=lambda loop: (loop.fmas, -loop.at), default=None)


def loop(text: str, arch: str, work) -> loops.Loop | None:
    return inner_loop(compiled(text, arch, work).path)


@pytest.mark.parametrize(
    ("arch", "text", "fmas", "loads", "distances"),
    [
        ("riscv64", RISCV["near"], 4, 2, (0, 1)),
        ("riscv64", RISCV["ahead"], 4, 2, (2, 2)),
        ("aarch64", ARM["near"], 4, 2, (0, 1)),
        ("aarch64", ARM["ahead"], 4, 2, (2, 2)),
        ("aarch64", ARM["pairs"], 2, 1, (0, 1)),
        ("x86_64", X86["near"], 2, 2, (0, 1)),
        ("x86_64", X86["ahead"], 2, 2, (1, 1)),
    ],
)
def test_loads_and_their_distances(tmp_path, arch, text, fmas, loads, distances):
    found = loop(text, arch, tmp_path)
    assert found is not None
    assert (found.fmas, found.loads, found.distances) == (fmas, loads, distances)
    assert found.spills == 0
    assert found.function == "tensorop_candidate_0"
    assert found.least == min(distances)


def test_steps_ahead_and_spills(tmp_path):
    ahead = loop(RISCV["ahead"], "riscv64", tmp_path)
    assert ahead is not None
    assert sum(ahead.distances) / len(ahead.distances) / 4 == 0.5  # multiply-adds of a step
    scalars = loop(RISCV["scalars"], "riscv64", tmp_path)
    assert scalars is not None
    assert (scalars.distances, scalars.scalar_distances) == ((0,), (1, 1))
    spilled = loop(RISCV["spilled"], "riscv64", tmp_path)
    assert spilled is not None
    assert spilled.spills == 2


@pytest.mark.parametrize(("arch", "text"), [("riscv64", RISCV["ahead"]), ("aarch64", ARM["ahead"])])
def test_a_linked_program_shows_the_same_loop_as_its_object(tmp_path, arch, text):
    made = compiled(text, arch, tmp_path)
    program = link_candidate(made, arch=arch, work=tmp_path)
    assert isinstance(program, Artifact)
    before, after = inner_loop(made.path, "tensorop_candidate_0"), inner_loop(program.path)
    assert before is not None
    assert after is not None
    assert (after.fmas, after.distances) == (before.fmas, before.distances)
    assert inner_loop(made.path, "another") is None


@pytest.mark.parametrize("arch", ["riscv64", "aarch64"])
def test_an_object_without_multiply_adds_has_no_such_loop(tmp_path, arch):
    made = kernels.built("for (long i = 0; i < c->dim[0]; i++) ((long *)c->buffer[0])[i] ^= i;", tmp_path, arch=arch)
    assert inner_loop(made.path) is None
