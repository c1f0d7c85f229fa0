"""The same harness under QEMU, for each foreign architecture."""

import numpy as np
import pytest

from tensorop.model.call import Call, Placement
from tensorop.model.trial import Kind
from tensorop.runners import session
from tensorop.runners.protocol import Check, Count, Entry, Time
from tests.support import kernels

ARCHES = pytest.mark.parametrize("arch", ["riscv64", "aarch64"])
UNKNOWN = {"riscv64": ".word 0", "aarch64": "udf #0"}
VLENB = "#include <riscv_vector.h>"


def run(arch, body, work, *calls, **more):
    program = kernels.program(body, work, arch=arch)
    return session.run(kernels.runner(arch), program, [Check(call) for call in calls], **more)


@ARCHES
def test_a_good_kernel_and_one_that_crashes_in_between(tmp_path, arch):
    calls = [kernels.axpy_call(100 + i, list(Placement)[i % 2], seed=i) for i in range(4)]
    calls[2] = Call(calls[2].dims, scalars=(2.0,), flags=(1,), buffers=calls[2].buffers)
    replies = run(arch, "if (c->flag[0]) *(volatile int *)8 = 1;" + kernels.AXPY, tmp_path, *calls)
    assert [r.outcome.kind for r in replies] == [Kind.OK, Kind.OK, Kind.CRASH, Kind.OK]
    for i in (0, 1, 3):
        np.testing.assert_allclose(replies[i].outputs["y"], kernels.axpy_result(calls[i]), rtol=1e-6)


@ARCHES
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("volatile float v = ((float *)c->buffer[0])[c->dim[0]]; (void)v;", Kind.GUARD),
        ("((float *)c->buffer[1])[c->dim[0]] = 0;", Kind.GUARD),
        ("((float *)c->buffer[1])[-1] = 0;", Kind.GUARD),
        ("((float *)c->buffer[0])[0] = 0;", Kind.GUARD),
        ("__builtin_trap();", Kind.CRASH),
        ("for (volatile int i = 0;;) i++;", Kind.TIMEOUT),
    ],
)
def test_hostile_kernels(tmp_path, arch, body, kind):
    (reply,) = run(arch, body, tmp_path, kernels.axpy_call(), timeout_s=1.0)
    if body == "__builtin_trap();":
        assert reply.outcome.kind in (Kind.CRASH, Kind.ILLEGAL)
    else:
        assert reply.outcome.kind is kind


@ARCHES
def test_an_unknown_instruction(tmp_path, arch):
    (reply,) = run(arch, f'(void)c; __asm__ volatile("{UNKNOWN[arch]}");', tmp_path, kernels.axpy_call())
    assert reply.outcome.kind is Kind.ILLEGAL


@ARCHES
def test_timed_and_counted_calls_are_answered(tmp_path, arch):
    program = kernels.program(kernels.AXPY, tmp_path, arch=arch)
    call = kernels.axpy_call(64)
    requests = [Time(call, (Entry(),), rounds=3, warm_ns=0, min_ns=1000), Count(call, warm=2)]
    timed, counted = session.run(kernels.runner(arch), program, requests)
    assert timed.outcome.ok
    assert len(timed.samples[0]) == 3
    assert counted.outcome.ok
    # the outputs are those of the counted call, not of the warming ones before it
    np.testing.assert_allclose(counted.outputs["y"], kernels.axpy_result(call), rtol=1e-6)


@pytest.mark.parametrize("vlen", [128, 256, 512, 1024])
def test_the_vector_length_is_the_one_asked_for(tmp_path, vlen):
    program = kernels.program(
        "*(float *)c->buffer[1] = (float)(8 * __riscv_vlenb());", tmp_path, arch="riscv64", before=VLENB
    )
    guest = session.Guest(vlen=vlen)
    (reply,) = session.run(kernels.runner("riscv64"), program, [Check(kernels.axpy_call(1))], guest=guest)
    assert reply.outputs["y"][0] == vlen
