"""Kernels that are right when looked at, and cheaper when a model counts them: judged as a search judges them."""

import pytest

from tensorop.measure import modelled
from tensorop.measure.request import MeasureRequest
from tensorop.model.call import Placement
from tensorop.model.contract import Contract
from tensorop.model.kernel import Artifact, Source
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.space.problems import of
from tensorop.specs import board, operators, platforms
from tensorop.toolchain import compile as compiling
from tensorop.toolchain.compile import link_candidate
from tensorop.verify.answers import Answers
from tensorop.verify.controls import ControlRun, controls
from tests.support import cheats
from tests.support.commands import ROOT
from tests.support.kernels import before_honest
from tests.support.operators import beside_controls, builder, gemm, runner_of

REFERENCE = gemm().reference
PROBLEM = of(gemm(), "f32", (8, 6, 16))
PLATFORMS = pytest.mark.parametrize("name", ["spacemit-k1", "cortex-a53"])

CHEATS = {cheat.name.removesuffix(".c"): cheat for cheat in cheats.SOURCES}
COUNTED = [  # that can gain something by the two calls of a counted region
    "done_if_a_number_is_there", "few_rows_anew", "one_element_anew", "every_other_call", "first_call_alone",
    "by_pointer", "by_size", "half_of_k",
]  # fmt: skip


def program(platform, text):
    flags = (*compiling.candidate_flags(platform), "-DTENSOROP_DTYPE_f32=1")
    made = compiling.compile_source(beside_controls("kernel.c", text), flags)
    made = made if isinstance(made, Outcome) else link_candidate(made, arch=platform.arch)
    assert isinstance(made, Artifact), made
    return made.path


def counted(name, text, problem=PROBLEM, warm=1):
    seed = Seed.draw()
    call = REFERENCE.call(problem, seed.stream(0), "normal", Placement.START)
    call = REFERENCE.counted(problem, call, seed.stream(1))
    return ruled(name, program(platforms.load(name), text), REFERENCE, problem, call, warm)


def ruled(name, made, reference, problem, call, warm=1):
    platform, answers = platforms.load(name), Answers(reference)
    request = MeasureRequest(
        made,
        [call],
        vlen=platform.vlens[0],
        warm=[warm],
        judge=lambda number, left: answers.judge_all(problem, call, left),
    )
    return modelled.count(runner_of(platform), board.load(platform.board, name), request)


@pytest.mark.one_in(5)
@PLATFORMS
@pytest.mark.parametrize("cheat", COUNTED)
def test_what_a_counted_call_leaves_must_be_its_own_work(name, cheat):
    found = counted(name, CHEATS[cheat].text)
    assert isinstance(found, Outcome), found
    assert (found.kind, found.where) == (Kind.WRONG, "measure"), found


@PLATFORMS
@pytest.mark.parametrize("cheat", ["done_if_a_number_is_there", "one_element_anew", "half_of_k"])
def test_so_must_what_a_call_without_a_warming_one_leaves(name, cheat):
    found = counted(name, CHEATS[cheat].text, warm=0)
    assert isinstance(found, Outcome), found
    assert (found.kind, found.where) == (Kind.WRONG, "measure"), found


@pytest.mark.parametrize(("skips", "ends"), [("if (y[0] == y[0]) return;", Kind.WRONG), ("", Kind.OK)])
def test_so_it_must_where_an_operator_says_nothing_of_it(skips, ends):
    operator = operators.load("conv1d", (ROOT / "examples/operator",))
    (control,) = [one for one in controls(operator) if one.name == "honest"]
    ((name, text), *headers) = control.source(operator).files
    made = builder(platforms.load("spacemit-k1"))(
        Source(((name, text.replace("CONV1D(call)", f"CONV1D(call) {skips}")), *headers)), ("-DTENSOROP_DTYPE_f32=1",)
    )
    reference, seed = operator.reference, Seed.draw()
    assert type(reference).counted is Contract.counted
    problem = reference.problem("f32", {"b": 2, "c": 3, "h": 40, "t": 5}, operator.layouts[0])
    call = reference.counted(
        problem, reference.call(problem, seed.stream(0), "normal", Placement.START), seed.stream(1)
    )
    found = ruled("spacemit-k1", made.path, reference, problem, call, warm=0)
    assert found.kind is ends if isinstance(found, Outcome) else ends is Kind.OK


@PLATFORMS
@pytest.mark.parametrize("shape", [(8, 6, 16), (1, 1, 1), (3, 20, 7)])
def test_an_honest_kernel_is_counted(name, shape):
    (found,) = counted(name, before_honest(""), of(gemm(), "f32", shape))
    assert found.samples.value > 0


@pytest.mark.one_in(5)
@PLATFORMS
@pytest.mark.parametrize("control", ["skips_when_done", "skips_alternately", "recomputes_one", "replays", "stale"])
def test_the_controls_that_skip_are_refused(name, control):
    platform = platforms.load(name)
    (known,) = [c for c in controls(gemm()) if c.name == control]
    result = ControlRun(gemm(), platform, runner_of(platform), Seed.draw()).judge(known, "f32")
    assert result.as_expected, result
    assert result.outcome.kind is Kind.WRONG


@PLATFORMS
@pytest.mark.parametrize("control", ["skips_when_done", "skips_alternately"])
def test_they_are_refused_by_what_the_counted_call_left_too(name, control):
    (known,) = [c for c in controls(gemm()) if c.name == control]
    found = counted(name, known.path.read_text())
    assert isinstance(found, Outcome), found
    assert (found.kind, found.where) == (Kind.WRONG, "measure"), found
