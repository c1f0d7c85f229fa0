"""Figures by this machine's clock: that they come, pair and mean what they say; never how good they are."""

import numpy as np
import pytest

from tensorop import errors
from tensorop.build import harness
from tensorop.build import peak as building
from tensorop.measure import clock, machine, peak, statistics
from tensorop.model.trial import Kind, Outcome
from tensorop.provision import targets
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check, Entry, Library
from tests.support import kernels

QUICK = clock.Pace(rounds=5, warm_ns=200_000, min_ns=200_000, max_ns=1_000_000_000)
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


def test_a_slower_entry_has_a_ratio_below_one(tmp_path):
    before = """void tensorop_candidate_1(const struct tensorop_call *c) {
        for (volatile int i = 0; i < 5000; i++) {} (void)c; }"""
    program = kernels.program(kernels.AXPY, tmp_path, before=before)
    timed = clock.time_entries(NATIVE, program, kernels.axpy_call(100), [Entry(0), Entry(1)], pace=QUICK)
    if isinstance(timed, Outcome):
        assert timed.kind is Kind.NOISY
        pytest.skip("no steady window on this machine now")
    assert timed.ratio(1, 0).median < 1 < timed.ratio(0, 1).median
    assert timed.samples[0].low <= timed.samples[0].value <= timed.samples[0].high
    assert timed.samples[0].unit == "ns"


def test_a_reference_that_is_not_where_it_was_makes_the_window_noisy(tmp_path):
    program = kernels.program(kernels.AXPY, tmp_path)
    timed = clock.time_entries(NATIVE, program, kernels.axpy_call(), [Entry()], pace=QUICK, expected=1e9)
    assert isinstance(timed, Outcome)
    assert timed.kind is Kind.NOISY


def test_a_crash_while_timing_is_the_candidates_outcome(tmp_path):
    program = kernels.program("*(volatile int *)8 = 1; (void)c;", tmp_path)
    timed = clock.time_entries(NATIVE, program, kernels.axpy_call(), [Entry()], pace=QUICK)
    assert isinstance(timed, Outcome)
    assert timed.kind is Kind.CRASH
    assert timed.where == "measure"


@pytest.mark.parametrize("dtype", ["f32", "f64"])
def test_the_peak_is_measured_and_kept(tmp_path, monkeypatch, dtype):
    program = building.peak_program(kernels.platform(targets.host_arch()), dtype)
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    first = peak.fma_peak(program, NATIVE, dtype)
    assert 0.1 < first < 10_000
    assert peak.fma_peak(program, NATIVE, dtype) == first


def test_the_machine_is_described():
    state = machine.record()
    assert state.cpu
    assert state.cores >= 1


def test_the_dynamic_harness_calls_a_shared_library(tmp_path):
    adapter = tmp_path / "adapter.c"
    adapter.write_text(ADAPTER)
    program = harness.dynamic_program(targets.host_arch(), adapter)
    guest = session.Guest(libraries=(Library("libm.so.6", "m", "f32"),))
    call = kernels.axpy_call(1)
    (reply,) = session.run(NATIVE, program.path, [Check(call)], guest=guest)
    assert reply.outcome.ok
    x = call.buffers[0].data[0]
    assert np.array_equal(reply.outputs["y"][0], np.sqrt(x), equal_nan=True)
    missing = session.Guest(libraries=(Library(str(tmp_path / "none.so"), "m", "f32"),))
    with pytest.raises(errors.JobError, match=r"none\.so"):
        session.run(NATIVE, program.path, [Check(call)], guest=missing)


def test_statistics():
    assert statistics.quartiles([4, 1, 3, 2, 5]) == (2, 3, 4)
    assert statistics.drift([1, 1, 1, 2, 2, 2]) == 1
    both = statistics.ratio([1, 2, 4], [2, 4, 8])
    assert (both.median, both.spread) == (2, 0)
    assert statistics.geomean([1, 4]) == pytest.approx(2)


def test_a_time_below_the_peaks_is_impossible():
    two_thousand = 2000.0
    at_half = statistics.summary([two_thousand / 50])
    assert clock.impossible(at_half, two_thousand, 100) is None
    beyond = statistics.summary([two_thousand / 200])
    found = clock.impossible(beyond, two_thousand, 100)
    assert found is not None
    assert found.kind is Kind.NOISY


def test_what_protects_the_target_is_told(tmp_path):
    greeting = session.hello(
        NATIVE, kernels.program(kernels.AXPY, tmp_path), guest=session.Guest(cpu=clock.quiet_cpu())
    )
    assert greeting is not None
    assert greeting.pinned
    assert bool(session.weaknesses(NATIVE, greeting)) is not greeting.sandboxed
    assert session.weaknesses(NATIVE, None)
