"""The innermost loop of a kernel that a clock measures, and what llvm-mca predicts for it."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.errors import MissingTool
from tensorop.job import authoring
from tensorop.measure import loop_analysis
from tensorop.model.architecture import architecture, host_arch
from tensorop.model.hot_loop import HotLoop
from tensorop.model.job import Job
from tensorop.model.trial import Trial
from tensorop.model.verdict import Seed
from tensorop.provision import llvm
from tensorop.specs import platforms
from tensorop.target import Target
from tensorop.toolchain.disassembly import Instruction
from tensorop.trial.evaluator import Evaluator, Prepared
from tests.nothing.test_revising import FIRST, Model, model, printed, started
from tests.support import drawn_kernels

_ = model  # the fixture
pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="compiles for AVX2")
HAS_MCA = pytest.mark.skipif(llvm.MCA.found() is None, reason="no llvm-mca: python -m tensorop.provision mca")
ARM = (("ldr", "q0, [x1], #16"), ("fmla", "v1.4s, v0.4s, v2.s[0]"), ("subs", "x0, x0, #1"))


@pytest.fixture(scope="module")
def evaluate(tmp_path_factory: pytest.TempPathFactory) -> Evaluator:
    return drawn_kernels.evaluator("avx2", tmp_path_factory.mktemp("evaluator"))


def tile(one: Trial) -> int:
    return int(one.variant.point["mr_vectors"]) * int(one.variant.point["nr"])


@pytest.fixture(scope="module")
def trial(evaluate: Evaluator) -> Trial:
    """The largest tile that registers hold, of those drawn."""
    found = [one for one in drawn_kernels.drawn(evaluate, 40, seed=5) if one.variant.template.name == "outer"]
    return max((one for one in found if one.variant.point["mr_vectors"] == 2 and tile(one) <= 12), key=tile)


@pytest.fixture(scope="module")
def built(evaluate: Evaluator, trial: Trial) -> Prepared:
    found = evaluate.prepare(trial)
    assert isinstance(found, Prepared)
    return found


def loop_of(evaluate: Evaluator, trial: Trial, built: Prepared) -> HotLoop:
    loop = evaluate.hot_loop(trial, built)
    assert loop is not None
    return loop


def set_cpu(evaluate: Evaluator, cpu: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(evaluate.target), "llvm_cpu", cpu)


def fmas(loop: HotLoop) -> int:
    return sum(count for name, count in loop.mix.items() if name.startswith("vfmadd"))


def test_the_innermost_loop_has_the_tiles_multiply_adds(
    evaluate: Evaluator, trial: Trial, built: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(llvm.LlvmTool, "found", lambda tool: None)
    loop = loop_of(evaluate, trial, built)
    assert fmas(loop) >= tile(trial) >= 6
    assert fmas(loop) % tile(trial) == 0
    assert loop.on_stack == 0
    assert (loop.runs, loop.analysis) == (0, None)
    assert loop.unanalysed == "llvm-mca 18 or newer is not installed"


@HAS_MCA
@pytest.mark.parametrize("cpu", ["znver4", "sapphirerapids", "haswell"])
def test_a_loop_of_multiply_adds_is_bound_by_their_two_ports(
    evaluate: Evaluator, trial: Trial, built: Prepared, cpu: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_cpu(evaluate, cpu, monkeypatch)
    loop = loop_of(evaluate, trial, built)
    found = loop.analysis
    assert found is not None, loop.unanalysed
    assert fmas(loop) / 2 <= found.busiest * 1.01 < 1.25 * fmas(loop) / 2
    assert found.cycles >= found.busiest * 0.99
    assert found.once >= 4 + 4  # a load and a multiply-add
    assert all(sum(one.ports.values()) >= 1 for one in loop.instructions if one.text.startswith("vfmadd"))
    assert set(found.waits) == {"resource pressure", "register dependencies", "memory dependencies"}
    assert cpu in found.by


@HAS_MCA
@pytest.mark.parametrize(
    ("cpu", "reason"),
    [("", "LLVM has no model of this core"), ("x86-64-v4", "(x86-64-v4)"), ("k6-4", "LLVM does not know this core")],
)
def test_a_core_without_a_model_has_a_reason(
    evaluate: Evaluator, trial: Trial, built: Prepared, cpu: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_cpu(evaluate, cpu, monkeypatch)
    loop = loop_of(evaluate, trial, built)
    assert loop.analysis is None
    assert reason in loop.unanalysed


@HAS_MCA
def test_a_chain_from_one_iteration_to_the_next_bounds_a_loop_of_arm() -> None:
    code = [Instruction(4 * number, *line) for number, line in enumerate(ARM)]
    code.append(Instruction(12, "b.ne", "0x0 <kernel>", target=0))
    found = loop_analysis.analysed(code, architecture("aarch64"), "neoverse-n1")
    assert not isinstance(found, str), found
    analysis, each = found
    assert len(each) == len(code)
    assert analysis.cycles > 1.9 > analysis.busiest  # the sum waits for itself
    assert analysis.waits["register dependencies"] > analysis.waits["memory dependencies"]


def test_a_job_says_why_its_questions_have_no_analysis(
    evaluate: Evaluator, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def absent(tool: llvm.LlvmTool, *, offline: bool | None) -> Path:
        raise MissingTool("LLVM 19 is not in the cache", hint=tool.hint)

    monkeypatch.setattr(llvm.LlvmTool, "program", absent)
    author = authoring.JobAuthor(
        Job("gemm", "avx2", author="llm"), evaluate.operator, evaluate.target, Seed.draw(), tmp_path
    )
    assert (
        author._analyser() == "questions to the model have no static analysis of its loop: LLVM 19 is not in the cache"
    )
    set_cpu(evaluate, "", monkeypatch)
    assert author._analyser() == ""  # nothing is fetched for a core without a model


def test_what_llvm_calls_a_core(evaluate: Evaluator) -> None:
    of = {name: replace(evaluate.target, platform=platforms.load(name)) for name in ("cortex-a72", "rvv", "avx512")}
    assert {name: Target.llvm_cpu.fget(target) for name, target in of.items()} == {  # type: ignore[attr-defined]
        "cortex-a72": "cortex-a72", "rvv": "", "avx512": "x86-64-v4",
    }  # fmt: skip


@pytest.mark.extended
@HAS_MCA
def test_a_question_shows_the_loop_and_the_share_of_the_peak(model: Model, tmp_path: Path) -> None:
    slow = FIRST.replace("nr: [3]", "nr: [1]")  # far from the peak, so that there is a further question
    model.answers = (f"```\n{slow}```\n", f"```\n{FIRST}```\n")
    options = ("--platform", "native", "--trials", "10", "--withhold", "lanes,outer")
    job = started(tmp_path, *options, "--author", "llm", "--author-calls", "2")
    # the question is all that is wanted
    model.before = lambda number: os.kill(job.pid, signal.SIGTERM) if number == 2 else None
    text = printed(job, 600)
    assert len(model.asked) == 2, text
    better = model.asked[1]
    assert "% of the core's peak" in better
    loop = better.split("This is its innermost loop")[1]
    assert "mul" in loop or "fma" in loop
    assert "one iteration of many takes" in loop or "There is no static analysis of this loop: LLVM" in loop
