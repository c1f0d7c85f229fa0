"""Small candidates and platforms for tests of the path from a source to a reply."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tensorop.model.architecture import architecture, host_arch
from tensorop.model.call import Access, Buffer, Call, Placement
from tensorop.model.kernel import Artifact, Source
from tensorop.model.platform import Compiler, Platform
from tensorop.model.trial import Kind
from tensorop.runners.base import Runner
from tensorop.runners.native import Native
from tensorop.runners.qemu import Qemu
from tensorop.specs import primitives
from tensorop.toolchain import compile as compiling
from tensorop.toolchain.compile import link_candidate

RVV_CPU = "rv64,v=true,vext_spec=v1.0,vlen={vlen},elen=64"

AXPY = """
    const float *x = c->buffer[0];
    float *y = c->buffer[1];
    for (int64_t i = 0; i < c->dim[0]; i++)
        y[i] += (float)c->scalar[0] * x[i];
"""


def before_honest(body: str) -> str:
    """A gemm candidate in which this C stands before an honest product: `c` is C, `p` all of it (product.h of the
    operator's controls)."""
    return f"""#include "product.h"
void tensorop_candidate_0(const struct tensorop_call *call) {{
    struct product p = product_of(call);
    REAL *c = p.c;
    (void)c;
    {body}
    honest(&p);
}}
"""


def platform(arch: str = "x86_64", *flags: str) -> Platform:
    """A plain platform of an architecture, with further compiler flags."""
    target = architecture(arch)
    native = arch == host_arch()
    return Platform(
        name=f"test-{arch}",
        lineage=(f"test-{arch}",),
        description="for tests",
        arch=arch,
        primitives=(primitives.resolved("scalar"),),
        registers=16,
        vlens=(256,) if arch == "riscv64" else (128,),
        verify_vlens=(256,) if arch == "riscv64" else (128,),
        fixed_vlen=None,
        requires=(),
        compiler=Compiler(
            static_target=target.static_triple,
            static_cpu=target.static_cpu,
            shared_target=f"{target.multiarch}.2.31",
            arch_flags=(f"-mcpu={target.static_cpu}", *flags),
            flags=("-O3", "-g0"),
        ),
        runner="native" if native else "qemu",
        qemu_cpu=RVV_CPU if arch == "riscv64" else "",
        caches={},
        baselines={},
        tunables={},
    )


def runner(arch: str) -> Runner:
    """Where programs of an architecture run in tests."""
    if arch == host_arch():
        return Native()
    return Qemu(arch, RVV_CPU if arch == "riscv64" else "", 256)


def source(body: str, *, before: str = "", name: str = "kernel.c") -> Source:
    """A candidate whose entry has this body; the call is `c`."""
    text = f"""#include "call.h"
{before}
void tensorop_candidate_0(const struct tensorop_call *c) {{
{body}
}}
"""
    return Source(((name, text),))


def built(body: str, work: Path, *, arch: str = "x86_64", before: str = "") -> Artifact:
    """The object of a candidate, which must compile."""
    made = compiling.compile_source(source(body, before=before), compiling.candidate_flags(platform(arch)), work=work)
    assert isinstance(made, Artifact), made
    return made


def program(body: str, work: Path, *, arch: str = "x86_64", before: str = "") -> Path:
    """The program of a candidate, which must link."""
    made = link_candidate(built(body, work, arch=arch, before=before), arch=arch, work=work)
    assert isinstance(made, Artifact), made
    return made.path


def axpy_call(n: int = 37, placement: Placement = Placement.END, seed: int = 0) -> Call:
    """y += a * x on n floats."""
    random = np.random.default_rng(seed)
    x, y = (random.standard_normal(n).astype(np.float32) for _ in range(2))
    return Call(
        (n,),
        scalars=(2.0,),
        buffers=(Buffer("x", Access.IN, x), Buffer("y", Access.INOUT, y)),
        placement=placement,
    )


def axpy_result(call: Call) -> np.ndarray:
    """What a call of axpy must leave in y."""
    x, y = (buffer.data for buffer in call.buffers)
    return y + np.float32(call.scalars[0]) * x


FAR = 1 << 33  # elements between two lines of `far_call`
FAR_BODY = """
    const double *x = c->buffer[0];
    double *y = c->buffer[1];
    for (int64_t i = 0; i < c->dim[0]; i++)
        for (int64_t j = 0; j < 5; j++)
            y[i * c->ld[0] + j] = 2 * x[i * c->ld[0] + j];
"""
FAR_FAULTS = {
    "y[c->ld[0] / 2] = 0;": Kind.GUARD,
    "volatile double far = x[c->ld[0] / 2]; (void)far;": Kind.GUARD,
    "y[5] = 0;": Kind.GUARD,
    "y[-1] = 0;": Kind.GUARD,
    "volatile double end = x[2 * c->ld[0] + 5]; (void)end;": Kind.GUARD,
    "((double *)x)[c->ld[0]] = 0;": Kind.GUARD,
    "y[c->ld[0] + 7] = 0;": Kind.GUARD,
}


def far_call(placement: Placement) -> Call:
    """y = 2 x of three lines of five doubles, 64 GiB apart in memory."""
    x = np.arange(15, dtype=np.float64)
    apart = (5, FAR)
    buffers = (Buffer("x", Access.IN, x, apart=apart), Buffer("y", Access.OUT, np.zeros(15), apart=apart))
    return Call((3,), (FAR,), buffers=buffers, placement=placement)
