"""Figures by this machine's clock: that they come, pair and mean what they say; never how good they are."""

import numpy as np
import pytest

from tensorop import errors
from tensorop.backends import reach
from tensorop.measure import clock, machine, peak, statistics
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.architecture import host_arch
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check, Entry, TargetLibrary, Time
from tensorop.space.problems import of
from tensorop.specs import platforms
from tensorop.toolchain import harness, programs
from tensorop.trial import roof
from tests.support import kernels
from tests.support.operators import gemm

QUICK = clock.Pace(rounds=5, warm_ns=200_000, min_ns=200_000, max_ns=1_000_000_000)
pytestmark = pytest.mark.clock
NATIVE = Native()

ADAPTER = """#include "call.h"
typedef float (*function)(float);
static void call(const struct tensorop_bound *self, const struct tensorop_call *c) {
    *(float *)c->buffer[1] = ((function)self->function)(*(const float *)c->buffer[0]);
}
int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype, const char *prefix,
                  const char *suffix, void *(*lookup)(void *handle, const char *symbol), void *handle) {
    (void)api, (void)dtype, (void)prefix, (void)suffix;
    out->call = call;
    out->function = lookup(handle, "sqrtf");
    return out->function ? 0 : -1;
}
"""


# Says in y[0] how often it was called, this time included; a call that is `SLOW` takes 50 ms or so.
COUNTING = """
    static int calls;
    calls++;
    for (volatile int i = 0; i < (SLOW ? 30000000 : WORK); i++) {}
    ((float *)c->buffer[1])[0] = (float)calls;
"""


def counting(folder, slow, work=500, sleep=False):
    body = COUNTING.replace("SLOW", slow).replace("WORK", str(work))
    before = "#include <time.h>"
    if sleep:
        body = f"if ((CALLS) == 0) nanosleep(&(struct timespec){{0, 50000000}}, 0); {body}".replace(
            "(CALLS)", "first++"
        )
        before += "\nstatic int first;"
    return kernels.program(body, folder, before=before)


def beside(program, call, *entries, **more):
    request = MeasureRequest(program, [call], entries or [Entry()], Purpose.CHOICE, **more)
    return clock.measure(NATIVE, request, QUICK)


def timed_and_counted(program, *entries, min_ns=200_000, warm_ns=100_000):
    """Samples by entry, and how often entry 0 was called for all of them."""
    call = kernels.axpy_call(8)
    request = Time(call, entries or (Entry(),), rounds=5, warm_ns=warm_ns, min_ns=min_ns)
    guest = session.Guest(threads=2)  # on one thread a candidate cannot sleep
    timed, counted = session.run(NATIVE, program, [request, Check(call)], guest=guest)
    assert timed.outcome.ok, timed.outcome
    return timed.samples, int(counted.outputs["y"][0]) - 1


@pytest.mark.one_in(5)
# One that loads its code, one that does so by and by, one that writes a kernel once it is called often.
@pytest.mark.parametrize("slow", ["calls == 1", "calls <= 3", "calls == 2", "calls == 20"])
@pytest.mark.parametrize("sleep", [False, True])
def test_slow_first_calls_are_not_what_is_timed(tmp_path, slow, sleep):
    (samples,), calls = timed_and_counted(counting(tmp_path, slow, sleep=sleep))
    assert len(samples) == 5
    assert calls >= sum(200_000 / sample for sample in samples)  # every batch is filled
    assert sorted(samples)[2] < 1e6


def test_of_calls_longer_than_a_batch_the_first_is_not_timed(tmp_path):
    (samples,), calls = timed_and_counted(counting(tmp_path, "calls == 1", work=1_000_000), min_ns=50_000)
    assert calls >= 5 + 2
    assert max(samples) < 25e6


def test_single_calls_on_cold_caches_begin_with_the_second(tmp_path):
    call = kernels.axpy_call(8)
    request = Time(call, (Entry(),), rounds=5, flush_bytes=1 << 16)
    timed, counted = session.run(NATIVE, counting(tmp_path, "calls == 1"), [request, Check(call)])
    assert int(counted.outputs["y"][0]) == 5 + 1 + 1
    assert max(timed.samples[0]) < 25e6


def test_an_empty_call_calls_nothing(tmp_path):
    program = counting(tmp_path, "0")
    (alone,), none = timed_and_counted(program, Entry(empty=True))
    assert none == 0
    assert min(alone) > 0
    (whole, empty), calls = timed_and_counted(program, Entry(), Entry(empty=True))
    assert calls >= sum(200_000 / sample for sample in whole)
    assert max(empty) < min(whole)


def test_what_an_empty_call_takes_is_taken_off(tmp_path):
    program, call = kernels.program(kernels.AXPY, tmp_path), kernels.axpy_call(4000)
    (timed,) = beside(program, call, empty=True)
    assert len(timed.rounds) == 5
    assert 0 < timed.empty < timed.samples.value
    nothing = kernels.program("(void)c;", tmp_path)
    timed = beside(nothing, call, empty=True)
    if isinstance(timed, Outcome):
        assert (timed.kind, "does nothing" in timed.message) == (Kind.NOISY, True)
    else:
        assert timed[0].samples.value < 100


def test_a_slower_entry_has_a_ratio_below_one(tmp_path):
    before = """void tensorop_candidate_1(const struct tensorop_call *c) {
        for (volatile int i = 0; i < 5000; i++) {} (void)c; }"""
    program = kernels.program(kernels.AXPY, tmp_path, before=before)
    quick, slow = beside(program, kernels.axpy_call(100), Entry(0), Entry(1))
    assert statistics.ratio(slow.rounds, quick.rounds).value < 1 < statistics.ratio(quick.rounds, slow.rounds).value
    assert quick.samples.low <= quick.samples.value <= quick.samples.high
    assert quick.samples.unit == "ns"


def test_a_crash_while_timing_is_the_candidates_outcome(tmp_path):
    program = kernels.program("*(volatile int *)8 = 1; (void)c;", tmp_path)
    timed = beside(program, kernels.axpy_call())
    assert isinstance(timed, Outcome)
    assert timed.kind is Kind.CRASH
    assert timed.where == "measure"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_peak_is_measured_and_kept(tmp_path, monkeypatch, dtype):
    program = programs.peak_program(kernels.platform(host_arch()), dtype)
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    first = peak.fma_peak(program, NATIVE, dtype)
    assert 0.1 < first < 10_000
    assert peak.fma_peak(program, NATIVE, dtype) == first


def test_the_machine_is_described():
    state = machine.record()
    assert state.cpu
    assert state.cores >= 1


def test_the_dynamic_harness_calls_a_shared_library(tmp_path):
    program = harness.dynamic_program(host_arch(), ADAPTER)
    guest = session.Guest(libraries=(TargetLibrary("libm.so.6", "m", "f32"),))
    call = kernels.axpy_call(1)
    (reply,) = session.run(NATIVE, program.path, [Check(call)], guest=guest)
    assert reply.outcome.ok
    x = call.buffers[0].data[0]
    assert np.array_equal(reply.outputs["y"][0], np.sqrt(x), equal_nan=True)
    missing = session.Guest(libraries=(TargetLibrary(str(tmp_path / "none.so"), "m", "f32"),))
    with pytest.raises(errors.JobError, match=r"none\.so"):
        session.run(NATIVE, program.path, [Check(call)], guest=missing)


def test_statistics():
    assert statistics.quartiles([4, 1, 3, 2, 5]) == (2, 3, 4)
    assert statistics.drift([1, 1, 1, 2, 2, 2]) == 1
    both = statistics.ratio([1, 2, 4], [2, 4, 8])
    assert (both.value, both.low, both.high) == (2, 2, 2)
    assert statistics.geomean([1, 4]) == pytest.approx(2)


def test_a_time_below_what_peak_and_memory_allow_is_impossible(tmp_path, monkeypatch):
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    operator, target = gemm(), reach(platforms.load("generic"), None)
    limits = roof.Roof(target)
    program = programs.peak_program(target.platform, "f32")
    for shape, bytes_ns in (((64, 64, 64), 1e9), ((1, 40000, 40000), 500.0)):
        problem = of(operator, "f32", shape)
        at_peak = operator.reference.work(problem) / peak.fma_peak(program, NATIVE, "f32")
        least = max(at_peak, operator.reference.traffic(problem) / bytes_ns)
        assert limits.impossible(operator, problem, Samples("ns", 20 * least, 0, 0)) is None
        found = limits.impossible(operator, problem, Samples("ns", least / 20, 0, 0))
        assert found is not None
        assert found.kind is Kind.IMPOSSIBLE
    assert limits.impossible(operator, of(operator, "i8", (64, 64, 64)), Samples("ns", 1.0, 0, 0)) is None


def test_what_protects_the_target_is_told(tmp_path):
    greeting = session.hello(
        NATIVE, kernels.program(kernels.AXPY, tmp_path), guest=session.Guest(cpu=Native().processor)
    )
    assert greeting is not None
    assert greeting.pinned
    assert bool(session.weaknesses(NATIVE, greeting)) is not greeting.jailed
    assert session.weaknesses(NATIVE, None)
