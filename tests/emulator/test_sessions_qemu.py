"""The same harness under QEMU, for each foreign architecture."""

from dataclasses import replace

import numpy as np
import pytest

from tensorop.model.call import Access, Buffer, Call, Placement
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
def test_lines_far_apart_take_their_own_pages_alone(tmp_path, arch):
    call = kernels.far_call(Placement.END)
    (reply,) = run(arch, kernels.FAR_BODY, tmp_path, call)
    assert reply.outcome.kind is Kind.OK, reply.outcome
    assert (reply.outputs["y"] == 2 * call.buffers[0].data).all()
    for fault in list(kernels.FAR_FAULTS)[:2]:
        assert run(arch, kernels.FAR_BODY + fault, tmp_path, call)[0].outcome.kind is Kind.GUARD


@pytest.mark.one_in(5)
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


# What a callee may leave in registers that its caller owns.
CLOBBERED = {
    "riscv64": "".join(f"li s{i}, {i + 7}\\n" for i in range(1, 12))
    + "".join(f"fmv.d.x fs{i}, zero\\n" for i in range(12)),
    "aarch64": "".join(f"mov x{i}, #{i}\\n" for i in range(19, 29))
    + "".join(f"movi d{i}, #0\\n" for i in range(8, 16)),
}


@ARCHES
def test_timed_calls_have_a_stack_of_their_own_and_owe_their_caller_nothing(tmp_path, arch):
    """The switch of stacks: a call that is only checked runs on the harness's own, one that is timed elsewhere; and
    registers that it must not change are the caller's again after it."""
    body = f"""
        char here;
        *(double *)c->buffer[0] = (double)((uintptr_t)&here >> 12);
        if (c->flag[0])
            __asm__ volatile("{CLOBBERED[arch]}");
    """
    program = kernels.program(body, tmp_path, arch=arch)
    call = Call((1,), flags=(0,), buffers=(Buffer("out", Access.OUT, np.zeros(1)),))
    timed = Time(
        replace(call, flags=(1,)), (Entry(), Entry(empty=True)), rounds=5, warm_ns=1000, min_ns=20_000, keep=True
    )
    checked, first, second = session.run(kernels.runner(arch), program, [Check(call), timed, timed])
    assert checked.outcome.ok, checked.outcome
    for reply in (first, second):
        assert reply.outcome.ok, reply.outcome
        assert [len(samples) for samples in reply.samples] == [5, 5]
        (left,) = reply.left[0]
        pages = abs(left.outputs["out"][0] - checked.outputs["out"][0])
        assert pages > 16, "both ran on one stack"


@ARCHES
def test_a_timed_call_that_writes_over_the_frames_above_it_gets_no_figure(tmp_path, arch):
    body = """
        volatile char *at = (volatile char *)__builtin_frame_address(0);
        for (int i = 0; i < 1 << 20; i++)
            at[i] = 1;
        (void)c;
    """
    program = kernels.program(body, tmp_path, arch=arch)
    call = Call((1,), buffers=(Buffer("out", Access.OUT, np.zeros(1)),))
    (reply,) = session.run(kernels.runner(arch), program, [Time(call, (Entry(),), rounds=3, min_ns=1000, keep=True)])
    assert reply.outcome.kind in (Kind.CRASH, Kind.GUARD)
    assert not reply.samples


@pytest.mark.parametrize("vlen", [128, 256, 512, 1024])
def test_the_vector_length_is_the_one_asked_for(tmp_path, vlen):
    program = kernels.program(
        "*(float *)c->buffer[1] = (float)(8 * __riscv_vlenb());", tmp_path, arch="riscv64", before=VLENB
    )
    guest = session.Guest(vlen=vlen)
    (reply,) = session.run(kernels.runner("riscv64"), program, [Check(kernels.axpy_call(1))], guest=guest)
    assert reply.outputs["y"][0] == vlen
