"""Kernels that are right when they are looked at, and cheaper when they are timed: judged as a search judges them."""

import shutil

import pytest

from tensorop import paths
from tensorop.measure import clock
from tensorop.measure.request import MeasureRequest
from tensorop.model.call import Placement
from tensorop.model.contract import Contract
from tensorop.model.kernel import Source
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Entry, Time
from tensorop.space.problems import of
from tensorop.specs import operators
from tensorop.verify.answers import Answers
from tensorop.verify.controls import controls
from tests.support import cheats, kernels, plugins
from tests.support.commands import ROOT
from tests.support.operators import beside_controls, builder, gemm

NATIVE = Native()
REFERENCE = gemm().reference
PROBLEM = of(gemm(), "f32", (8, 6, 16))
PACE = clock.Pace(rounds=15, warm_ns=50_000, min_ns=100_000)


def program(text):
    made = builder(kernels.platform())(beside_controls("kernel.c", text), ("-DTENSOROP_DTYPE_f32=1",))
    assert not isinstance(made, Outcome), made
    return made.path


def timed(text, problem=PROBLEM):
    seed = Seed.draw()
    call = REFERENCE.call(problem, seed.stream(0), "normal", Placement.START)
    call = REFERENCE.alternated(problem, call, seed.stream(1))
    answers = Answers(REFERENCE)
    judge = lambda _, left: answers.judge_all(problem, call, left)  # noqa: E731
    return clock.measure(NATIVE, MeasureRequest(program(text), [call], judge=judge), PACE)


@pytest.mark.parametrize("cheat", cheats.OF_TIMES, ids=lambda cheat: cheat.name)
def test_what_a_timed_call_leaves_is_judged(cheat):
    found = timed(cheat.text)
    assert isinstance(found, Outcome), found
    assert (found.where, found.kind) == (cheat.place, cheat.kind), found


AXPY = """
#include "call.h"
#include "slots.h"
#include <string.h>
void tensorop_candidate_0(const struct tensorop_call *call) {{
    static float kept[64];
    static int64_t known;
    const int64_t n = call->dim[DIM_n];
    const float *x = call->buffer[BUFFER_x];
    float *y = call->buffer[BUFFER_y];
    if ({replays} && known == n) {{
        memcpy(y, kept, (size_t)n * sizeof *y);
        return;
    }}
    for (int64_t i = 0; i < n; i++)
        y[i] += (float)call->scalar[SCALAR_alpha] * x[i];
    memcpy(kept, y, (size_t)n * sizeof *y);
    known = n;
}}
"""


def replayed(operator, dims, source):
    """A timed call as an operator has it that says nothing of second operands."""
    reference, seed, platform = operator.reference, Seed.draw(), kernels.platform()
    assert type(reference).alternated is Contract.alternated
    problem = reference.problem("f32", dims, operator.layouts[0])
    call = reference.call(problem, seed.stream(0), "normal", Placement.START)
    call = reference.alternated(problem, call, seed.stream(1))
    made = builder(platform)(source, ("-DTENSOROP_DTYPE_f32=1",))
    assert not isinstance(made, Outcome), made
    answers = Answers(reference)
    judge = lambda _, left: answers.judge_all(problem, call, left)  # noqa: E731
    return clock.measure(NATIVE, MeasureRequest(made.path, [call], judge=judge), PACE)


def told(found):
    return (found.kind, found.where) if isinstance(found, Outcome) else Kind.OK


@pytest.mark.parametrize(("name", "ends"), [("replays", (Kind.WRONG, "measure")), ("honest", Kind.OK)])
def test_by_default_every_other_call_has_operands_of_its_own(name, ends):
    operator = operators.load("conv1d", (ROOT / "examples/operator",))
    (control,) = [one for one in controls(operator) if one.name == name]
    assert told(replayed(operator, {"b": 2, "c": 3, "h": 40, "t": 5}, control.source(operator))) == ends


@pytest.mark.parametrize(("replays", "ends"), [(1, (Kind.WRONG, "measure")), (0, Kind.OK)])
def test_so_it_has_where_the_output_is_read(replays, ends, tmp_path):
    operator = operators.load("axpy", (plugins.write(tmp_path, ROOT),))
    source = Source((("kernel.c", AXPY.format(replays=replays)), *operator.slots.files))
    assert told(replayed(operator, {"n": 50}, source)) == ends


@pytest.mark.parametrize("shape", [(1, 1, 1), (40, 24, 96), (3, 200, 7)])
def test_an_honest_kernel_is_timed(shape):
    (found,) = timed(kernels.before_honest(""), of(gemm(), "f32", shape))
    assert found.samples.value > 0


# What a harness says in whose memory a kernel wrote, all gates and guards notwithstanding: text of harness_time.c and
# what stands in its place. A request says by its draw which it is.
LIES = {
    "a slow clock": ("return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;", """
        uint64_t ns = (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
        return LIE == 1 ? ns / 64 : LIE == 2 ? ns * 64 : ns;"""),
    "a fast clock": ("", ""),
    "batches were short": ("made->ns += elapsed(&spent);", """
        made->ns += LIE == 3 ? elapsed(&spent) / 64 : LIE == 4 ? 64 * elapsed(&spent) : elapsed(&spent);"""),
    "batches were long": ("", ""),
    "more calls than were asked for": ("made->calls += calls;", """
        made->calls += LIE == 5 ? 4 * calls : LIE == 6 ? (calls + 3) / 4 : calls;"""),
    "fewer calls than were asked for": ("", ""),
    "what does not fill a batch": ("while (!went_wrong(&made) && !fills(", "while (LIE != 7 && !fills("),
}  # fmt: skip
# Slow until after the calibration, however fast the machine is: batches of several calls then, much shorter ones later.
SLOW_AT_FIRST = "static int calls; if (calls++ < 160) for (volatile int i = 0; i < 20000; i++) {}"


@pytest.fixture(scope="module")
def lying(tmp_path_factory):
    native = shutil.copytree(paths.native_dir(), tmp_path_factory.mktemp("lying") / "native")
    text = (native / "harness_time.c").read_text()
    for honest, other in LIES.values():
        assert honest in text
        text = text.replace(honest, other) if honest else text
    (native / "harness_time.c").write_text(
        text.replace(
            "static uint64_t read_clock", "#define LIE (state()->request.wire.draw)\nstatic uint64_t read_clock"
        )
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "native_dir", lambda: native)
        yield kernels.program(SLOW_AT_FIRST + kernels.AXPY, tmp_path_factory.mktemp("program"))


def said(program, lie, **how):
    request = Time(kernels.axpy_call(100), (Entry(),), 30, warm_ns=50_000, min_ns=500_000, draw=lie, **how)
    return session.run(NATIVE, program, [request])[0].outcome


@pytest.mark.one_in(3)
@pytest.mark.parametrize("lie", LIES)
def test_what_a_harness_says_is_held_against_what_was_asked_and_what_passed_here(lying, lie):
    found = said(lying, 1 + list(LIES).index(lie), keep=True)
    assert found.kind in (Kind.IMPOSSIBLE, Kind.NOISY, Kind.GUARD), found


def test_the_same_harness_is_believed_where_it_does_not_lie(lying):
    assert said(lying, 0).ok
    assert said(lying, 8, keep=True).ok
    assert said(lying, 0, flush_bytes=1 << 16).ok
