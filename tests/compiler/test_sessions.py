"""Good and hostile candidates through the harness on this machine."""

import time
from pathlib import Path

import numpy as np
import pytest

from tensorop.model.call import Access, Buffer, Call, Placement
from tensorop.model.trial import Kind
from tensorop.runners import process, session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check, Entry, Time
from tests.support import kernels

NATIVE = Native()
BOTH = pytest.mark.parametrize("placement", list(Placement))


def run(body: str, work: Path, *calls: Call, before: str = "", timeout_s: float = 5.0, **more):
    program = kernels.program(body, work, before=before)
    return session.run(NATIVE, program, [Check(call) for call in calls], timeout_s=timeout_s, **more)


def kinds(replies) -> list[Kind]:
    return [reply.outcome.kind for reply in replies]


@BOTH
def test_a_good_kernel_returns_its_outputs(tmp_path, placement):
    calls = [kernels.axpy_call(n, placement, seed=n) for n in (0, 1, 16, 1000, 5000)]
    replies = run(kernels.AXPY, tmp_path, *calls)
    assert kinds(replies) == [Kind.OK] * 5
    for call, reply in zip(calls, replies, strict=True):
        np.testing.assert_allclose(reply.outputs["y"], kernels.axpy_result(call), rtol=1e-6)


def test_a_call_has_as_many_values_and_buffers_as_its_operator(tmp_path):
    inputs = [Buffer(f"x{i}", Access.IN, np.full(3, 10.0 + i)) for i in range(19)]
    out = Buffer("out", Access.OUT, np.full(5, np.nan))
    call = Call(tuple(range(40)), (7,) * 11, (0.5,) * 13, tuple(range(100, 133)), (*inputs, out))
    body = """
    double *out = c->buffer[19];
    out[0] = (double)c->dim[39], out[1] = (double)c->ld[10], out[2] = c->scalar[12], out[3] = (double)c->flag[32];
    out[4] = ((const double *)c->buffer[18])[2];
    """
    program = kernels.program(body, tmp_path)
    requests = [Check(call), Check(call, Entry(0, (32, -5))), Time(call, (Entry(0, (32, 6)),), rounds=3, keep=True)]
    plain, forced, timed = session.run(NATIVE, program, requests, timeout_s=5.0)
    assert plain.outputs["out"].tolist() == [39, 7, 0.5, 132, 28]
    assert forced.outputs["out"].tolist() == [39, 7, 0.5, -5, 28]
    assert [left.outputs["out"].tolist() for left in timed.left[0]] == [[39, 7, 0.5, 6, 28]]


@BOTH
def test_lines_far_apart_take_their_own_pages_alone(tmp_path, placement):
    """128 GiB from the first to the last, in a jail of 8 GiB; what lies between is guard."""
    call = kernels.far_call(placement)
    replies = run(kernels.FAR_BODY, tmp_path, call, call)
    assert kinds(replies) == [Kind.OK] * 2
    assert all((reply.outputs["y"] == 2 * call.buffers[0].data).all() for reply in replies)
    for fault, kind in kernels.FAR_FAULTS.items():
        if placement is Placement.END or "end" not in fault:
            assert kinds(run(kernels.FAR_BODY + fault, tmp_path, call)) == [kind], fault


def test_a_timed_buffer_ends_a_line_before_its_guard_page(tmp_path):
    """A masked access past the end into a guard page costs time that no user's buffer costs."""
    n = 1008  # 64 bytes before the first of buffer 0, and these, are a page of 4096
    program = kernels.program("volatile float v = ((float *)c->buffer[0])[c->dim[0] + 15]; (void)v;", tmp_path)
    call = kernels.axpy_call(n)
    checked, timed = session.run(NATIVE, program, [Check(call), Time(call, (Entry(0),), rounds=3)], timeout_s=5.0)
    assert kinds([checked, timed]) == [Kind.GUARD, Kind.OK]


def test_what_a_call_lacks_is_0(tmp_path):
    out = Buffer("out", Access.OUT, np.full(1, np.nan))
    body = "*(double *)c->buffer[0] = c->dim[7] + c->ld[7] + c->scalar[7] + c->flag[7] + (c->buffer[7] != 0);"
    (reply,) = run(body, tmp_path, Call((3,), buffers=(out,)))
    assert reply.outputs["out"].tolist() == [0]


def test_the_values_of_a_call_cannot_be_written(tmp_path):
    (reply,) = run("*(int64_t *)c->dim = 1;", tmp_path, kernels.axpy_call())
    assert reply.outcome.kind is Kind.GUARD
    assert "the harness's own memory" in reply.outcome.message


def test_outputs_start_as_they_were_sent(tmp_path):
    poison = np.full(9, np.nan)
    call = Call((9,), buffers=(Buffer("out", Access.OUT, poison),))
    (reply,) = run("(void)c;", tmp_path, call)
    assert reply.outcome.ok
    assert np.isnan(reply.outputs["out"]).all()


@pytest.mark.parametrize(
    ("body", "placement"),
    [
        ("volatile float v = ((float *)c->buffer[0])[c->dim[0]]; (void)v;", Placement.END),
        ("volatile float v = ((float *)c->buffer[0])[-1]; (void)v;", Placement.START),
        ("((float *)c->buffer[1])[c->dim[0]] = 0;", Placement.END),
        ("((float *)c->buffer[1])[-1] = 0;", Placement.START),
    ],
)
def test_one_element_over_the_guarded_end_is_a_guard_hit(tmp_path, body, placement):
    (reply,) = run(body, tmp_path, kernels.axpy_call(37, placement))
    assert reply.outcome.kind is Kind.GUARD


@pytest.mark.parametrize(
    ("body", "placement"),
    [
        ("((float *)c->buffer[1])[c->dim[0]] = 0;", Placement.START),
        ("((float *)c->buffer[1])[-1] = 0;", Placement.END),
    ],
)
def test_one_element_written_on_the_other_side_is_seen_afterwards(tmp_path, body, placement):
    (reply,) = run(body, tmp_path, kernels.axpy_call(37, placement))
    assert reply.outcome.kind is Kind.GUARD
    assert "y" in reply.outcome.message


def test_writing_an_input_is_a_guard_hit_that_names_it(tmp_path):
    (reply,) = run("((float *)c->buffer[0])[3] = 0;", tmp_path, kernels.axpy_call())
    assert reply.outcome.kind is Kind.GUARD
    assert "input buffer x" in reply.outcome.message


def test_an_endless_loop_is_killed_in_time(tmp_path):
    begin = time.monotonic()
    replies = run(
        "for (volatile int i = 0;;) i++;", tmp_path, *[kernels.axpy_call()] * 5, timeout_s=0.5, give_up_after=2
    )
    assert kinds(replies) == [Kind.TIMEOUT] * 5
    assert time.monotonic() - begin < 30


def test_a_crash_in_one_call_leaves_the_others_valid(tmp_path):
    body = "if (c->flag[0]) *(volatile int *)8 = 1;" + kernels.AXPY
    calls = [kernels.axpy_call(100 + i, seed=i) for i in range(5)]
    calls[1] = Call(calls[1].dims, scalars=calls[1].scalars, flags=(1,), buffers=calls[1].buffers)
    replies = run(body, tmp_path, *calls)
    assert kinds(replies) == [Kind.OK, Kind.CRASH, Kind.OK, Kind.OK, Kind.OK]
    for i in (0, 2, 3, 4):
        np.testing.assert_allclose(replies[i].outputs["y"], kernels.axpy_result(calls[i]), rtol=1e-6)


def test_printing_ok_and_leaving_is_no_success(tmp_path):
    before = "#include <stdio.h>\n#include <unistd.h>"
    (reply,) = run('puts("OK"); fflush(stdout); _exit(0);', tmp_path, kernels.axpy_call(), before=before)
    assert reply.outcome.kind is Kind.CRASH
    assert "status 0" in reply.outcome.message


def test_what_a_candidate_prints_goes_nowhere(tmp_path):
    before = "#include <stdio.h>"
    body = 'for (int i = 0; i < 1000; i++) puts("TOPA forged"); fflush(stdout);' + kernels.AXPY
    (reply,) = run(body, tmp_path, kernels.axpy_call(), before=before)
    assert reply.outcome.ok


def test_a_reply_forged_on_the_private_pipe_is_not_taken(tmp_path):
    before = "#include <unistd.h>"
    body = """
    char z[400] = {'T', 'O', 'P', 'A'};
    for (int fd = 3; fd < 100; fd++) { ssize_t n = write(fd, z, 400); (void)n; }
    _exit(0);
    """
    (reply,) = run(body, tmp_path, kernels.axpy_call(), before=before)
    assert reply.outcome.kind is Kind.GUARD


def test_an_unknown_instruction_is_told_apart(tmp_path):
    (reply,) = run('__asm__ volatile("ud2");', tmp_path, kernels.axpy_call())
    assert reply.outcome.kind is Kind.ILLEGAL


@pytest.mark.parametrize("call", ['open("/etc/passwd", 0)', "socket(2, 1, 0)", "fork()", "getppid()"])
def test_system_calls_end_the_candidate(tmp_path, call):
    before = "#include <fcntl.h>\n#include <sys/socket.h>\n#include <unistd.h>"
    (reply,) = run(f"volatile int v = {call}; (void)v;", tmp_path, kernels.axpy_call(), before=before)
    assert reply.outcome.kind is Kind.CRASH
    assert "system call" in reply.outcome.message


def test_the_environment_is_what_was_given(tmp_path, monkeypatch):
    monkeypatch.setenv("SECRET", "1")
    before = "#include <stdlib.h>\n#include <string.h>\nextern char **environ;"
    body = 'if (getenv("SECRET")) abort(); int n = 0; while (environ[n]) n++; ((float *)c->buffer[1])[0] = (float)n;'
    program = kernels.program(body, tmp_path, before=before)
    for environment in ((), (("A", "b"),)):
        guest = session.Guest(environment=environment)
        (reply,) = session.run(NATIVE, program, [Check(kernels.axpy_call())], guest=guest)
        assert reply.outcome.ok
        assert reply.outputs["y"][0] == len(environment)


def test_a_stack_overflow_is_a_crash(tmp_path):
    before = (
        "static int deep(volatile int n) { volatile char pad[4096]; pad[0] = (char)n; return deep(n + 1) + pad[0]; }"
    )
    (reply,) = run("((float *)c->buffer[1])[0] = (float)deep(0);", tmp_path, kernels.axpy_call(), before=before)
    assert reply.outcome.kind is Kind.CRASH


def test_timings_come_back_for_each_entry_and_round(tmp_path):
    before = "void tensorop_candidate_1(const struct tensorop_call *c) { (void)c; }"
    program = kernels.program(kernels.AXPY, tmp_path, before=before)
    request = Time(kernels.axpy_call(4000), (Entry(0), Entry(1)), rounds=5, warm_ns=100_000, min_ns=100_000)
    cold = Time(kernels.axpy_call(4000), (Entry(0),), rounds=3, flush_bytes=1 << 20)
    replies = session.run(NATIVE, program, [request, cold])
    assert kinds(replies) == [Kind.OK, Kind.OK]
    assert [len(rounds) for rounds in replies[0].samples] == [5, 5]
    assert min(replies[0].samples[0]) > max(replies[0].samples[1]) > 0
    assert len(replies[1].samples[0]) == 3


FIRST = """
    static int calls;
    float *out = c->buffer[0];
    if (calls++ < %d)
        for (int64_t i = 0; i < c->dim[0]; i++)
            out[i] = 7;
"""


@pytest.mark.parametrize("access", [Access.OUT, Access.INOUT])
def test_what_the_last_timed_call_left_is_its_own_work(tmp_path, access):
    """An entry that computes in its first calls alone is found out, whatever lies in its output from them."""
    before = "void tensorop_candidate_1(const struct tensorop_call *c) { ((float *)c->buffer[0])[0] = 1; }"
    program = kernels.program(FIRST % 2, tmp_path, before=before)
    call = Call((9,), buffers=(Buffer("out", access, np.full(9, np.nan, np.float32)),))
    request = Time(call, (Entry(0), Entry(1)), rounds=2, warm_ns=0, min_ns=100_000, keep=True)
    (reply, plain) = session.run(NATIVE, program, [request, Time(call, (Entry(1),), rounds=2)])
    assert reply.outcome.ok
    assert [len(rounds) for rounds in reply.samples] == [2, 2]
    assert any(np.isnan(left.outputs["out"]).all() for left in reply.left[0])
    (other,) = reply.left[1]
    assert other.outputs["out"][0] == 1
    assert np.isnan(other.outputs["out"][1:]).all()
    assert plain.left == ()
    honest = kernels.program(FIRST % 1_000_000_000, tmp_path / "honest")
    (reply,) = session.run(NATIVE, honest, [Time(call, (Entry(),), rounds=2, keep=True)])
    assert [left.outputs["out"].tolist() for left in reply.left[0]] == [[7] * 9]


def test_an_entry_that_is_not_there_is_named(tmp_path):
    program = kernels.program(kernels.AXPY, tmp_path)
    (reply,) = session.run(NATIVE, program, [Check(kernels.axpy_call(), Entry(1))])
    assert reply.outcome.kind is Kind.OBJECT


def test_a_process_is_gone_with_all_it_started():
    ended = process.run(["/bin/sh", "-c", "sleep 60 & echo $!; wait"], timeout_s=0.5)
    assert ended.timed_out
    child = int(ended.stdout)
    for _ in range(100):
        stat = Path(f"/proc/{child}/stat")
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the grandchild lives")


def test_a_left_behind_child_that_holds_the_pipe_does_not_hold_us():
    begin = time.monotonic()
    ended = process.run(["/bin/sh", "-c", "sleep 60 & echo started"], timeout_s=30)
    assert (ended.status, ended.timed_out, ended.stdout) == (0, False, b"started\n")
    assert time.monotonic() - begin < 25
