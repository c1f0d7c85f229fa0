"""The compiler's failures as outcomes, and objects that the gate refuses."""

from pathlib import Path

import pytest

from tensorop.model.kernel import Artifact, Source
from tensorop.model.trial import Kind, Outcome
from tensorop.toolchain import compile as compiling
from tensorop.toolchain import gate
from tensorop.toolchain.compile import link_candidate
from tests.support import kernels

SYSTEM_CALL = {"x86_64": "syscall", "riscv64": "ecall", "aarch64": "svc #0"}
REGION_END = {"riscv64": "slti x0, x0, 1042", "aarch64": "hint #101"}


def compiled(source, work, *platform, **more):
    flags = compiling.candidate_flags(kernels.platform(*platform))
    return compiling.compile_source(source, flags, work=work, **more)


@pytest.mark.parametrize("arch", SYSTEM_CALL)
def test_an_honest_object_passes(tmp_path, arch):
    assert gate.check_object(kernels.built(kernels.AXPY, tmp_path, arch=arch).path) is None


@pytest.mark.parametrize("arch", SYSTEM_CALL)
def test_system_calls_are_refused(tmp_path, arch):
    made = kernels.built(f'(void)c; __asm__ volatile("{SYSTEM_CALL[arch]}" ::: "memory");', tmp_path, arch=arch)
    refused = gate.check_object(made.path)
    assert refused is not None
    assert "system call" in refused.message


@pytest.mark.parametrize("arch", REGION_END)
def test_marks_of_the_measured_region_are_refused(tmp_path, arch):
    made = kernels.built(f'(void)c; __asm__ volatile("{REGION_END[arch]}");', tmp_path, arch=arch)
    refused = gate.check_object(made.path)
    assert refused is not None
    assert "measured region" in refused.message


@pytest.mark.parametrize("arch", SYSTEM_CALL)
def test_a_loop_that_never_ends_is_compiled(tmp_path, arch):
    """A compiler that may hold it for ended runs what follows."""
    step = "const unsigned long step = *(unsigned long *)c->buffer[0];"
    loop, none = (f"{step} {more}" for more in ("for (unsigned long i = 0; i < 8; i += step) ;", "(void)step;"))
    texts = [kernels.built(body, tmp_path, arch=arch).path.read_bytes() for body in (loop, none)]
    assert texts[0] != texts[1]


def test_the_bytes_of_a_system_call_inside_a_constant_pass(tmp_path):
    made = kernels.built("((unsigned *)c->buffer[0])[0] = 0x050f050fu;", tmp_path)
    assert b"\x0f\x05" in made.path.read_bytes()
    assert gate.check_object(made.path) is None


def test_a_file_that_is_no_object_is_refused(tmp_path):
    path = tmp_path / "x.o"
    path.write_bytes(b"nothing")
    assert gate.check_object(path) is not None


def test_a_syntax_error_is_an_outcome_with_the_compilers_words(tmp_path):
    outcome = compiling.compile_source(
        kernels.source("float x = ;"), compiling.candidate_flags(kernels.platform()), work=tmp_path
    )
    assert isinstance(outcome, Outcome)
    assert outcome.kind is Kind.COMPILE
    assert "expected expression" in outcome.message
    assert "kernel.c" in outcome.log


def test_a_compiler_that_does_not_end_is_killed(tmp_path):
    bomb = "\n".join(f"#define A{i} A{i - 1} A{i - 1}" for i in range(1, 60))
    text = Source((("bomb.c", f"#define A0 1+\n{bomb}\nint x = A59 1;\n"),))
    outcome = compiling.compile_source(
        text, compiling.candidate_flags(kernels.platform()), work=tmp_path, timeout_s=1.0
    )
    assert isinstance(outcome, Outcome)
    assert outcome.kind in (Kind.TIMEOUT, Kind.COMPILE)


def test_a_file_name_that_leads_elsewhere_is_refused(tmp_path):
    outcome = compiling.compile_source(
        Source((("../x.c", ""),)), compiling.candidate_flags(kernels.platform()), work=tmp_path
    )
    assert isinstance(outcome, Outcome)
    assert outcome.kind is Kind.REFUSED


def test_the_same_source_is_built_once_and_lies_beside_its_object(tmp_path):
    first = compiling.compile_source(
        kernels.source(kernels.AXPY), compiling.candidate_flags(kernels.platform()), work=tmp_path
    )
    assert isinstance(first, Artifact)
    stamp = first.path.stat().st_mtime_ns
    again = compiling.compile_source(
        kernels.source(kernels.AXPY), compiling.candidate_flags(kernels.platform()), work=tmp_path
    )
    other = compiling.compile_source(
        kernels.source(kernels.AXPY), compiling.candidate_flags(kernels.platform("x86_64", "-mavx2")), work=tmp_path
    )
    assert again == first
    assert isinstance(other, Artifact)
    assert other.key != first.key
    assert first.path.stat().st_mtime_ns == stamp
    assert {p.name for p in first.path.parent.iterdir()} == {
        "kernel.c",
        "kernel.o",
        "command.txt",
        "log.txt",
        "sha256.txt",
    }
    assert not list(Path(tmp_path).rglob(".making-*"))


def test_a_missing_function_is_a_failed_link(tmp_path):
    made = kernels.built("nowhere(c);", tmp_path, before="void nowhere(const void *);")
    outcome = link_candidate(made, arch="x86_64", work=tmp_path)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is Kind.COMPILE
    assert "nowhere" in outcome.message


INTRINSICS = {
    "x86_64": ("immintrin.h", "_mm_storeu_ps(c->buffer[0], _mm_set1_ps(c->scalar[0]));"),
    "aarch64": ("arm_neon.h", "vst1q_f32(c->buffer[0], vdupq_n_f32(c->scalar[0]));"),
}


@pytest.mark.parametrize("arch", INTRINSICS)
def test_a_precompiled_header_of_intrinsics_changes_no_bit(tmp_path, arch):
    header, body = INTRINSICS[arch]
    objects = []
    for before in ("", "#define _GNU_SOURCE\n"):  # with a feature macro nothing is precompiled
        name, text = kernels.source(body).files[0]
        source = Source(((name, f"{before}#include <{header}>\n{text}"),))
        flags = compiling.candidate_flags(kernels.platform(arch))
        made = compiling.compile_source(source, flags, work=tmp_path)
        assert isinstance(made, Artifact), made
        assert (f"{compiling.DECLARED}/{compiling.PRECOMPILED}" in made.command) == (not before)
        objects.append(made.path.read_bytes())
    assert objects[0] == objects[1]


KERNEL = "const int tensorop_variant = 1;\n"
DRIVER = """#include "call.h"
extern const int tensorop_variant;
void tensorop_candidate_0(const struct tensorop_call *c) { *(int *)c->buffer[0] = tensorop_variant; }
"""


def parts(kernel, tmp_path):
    driver = Source((("driver.c", DRIVER),))
    source = Source((("kernel.c", kernel),), driver=driver)
    return source, [compiled(part, tmp_path) for part in source.parts]


def test_a_kernel_apart_from_its_driver_passes(tmp_path):
    source, made = parts(KERNEL, tmp_path)
    assert [gate.check_part(one.path, source, part) for one, part in zip(made, source.parts, strict=True)] == [None] * 2
    assert isinstance(link_candidate(*made, arch="x86_64", work=tmp_path), Artifact)


@pytest.mark.parametrize(
    ("kernel", "complaint"),
    [
        (
            KERNEL + "void tensorop_candidate_0(const void *c) { (void)c; }\n",
            "defines the global 'tensorop_candidate_0'",
        ),
        (
            KERNEL + "void tensorop_candidate_1(const void *c) { (void)c; }\n",
            "defines the global 'tensorop_candidate_1'",
        ),
        (KERNEL + "int tensorop_other = 1;\n", "keeps 4 bytes between calls"),
        ("extern const int nix; int const *const tensorop_variant = &nix;\n", "calls or reads 'nix'"),
        ("static int one;\n", "defines none of tensorop_variant"),
    ],
)
def test_a_kernel_apart_has_none_of_its_drivers_names(tmp_path, kernel, complaint):
    """An entry of its own would take the place of the driver's, and answer without computing."""
    source, made = parts(kernel, tmp_path)
    refused = gate.check_part(made[0].path, source, source)
    assert refused is not None
    assert complaint in refused.message


def test_a_driver_without_its_kernel_is_no_candidate(tmp_path):
    _, made = parts(KERNEL, tmp_path)
    assert gate.check_object(made[1].path) is not None
    assert isinstance(link_candidate(made[1], arch="x86_64", work=tmp_path), Outcome)
