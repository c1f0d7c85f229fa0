"""Counted calls under the board model."""

import json
from dataclasses import replace

import numpy as np
import pytest

from tensorop.measure import modelled
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Judgement
from tensorop.runners.protocol import Entry
from tensorop.runners.qemu import Qemu
from tensorop.specs import board, platforms
from tests.support import kernels

MODELS = pytest.mark.parametrize(("name", "vlen"), [("spacemit-k1", 256), ("cortex-a53", 128)])
TWICE = "void tensorop_candidate_1(const struct tensorop_call *c) { tensorop_candidate_0(c); tensorop_candidate_0(c); }"
LOOP = 'long n = 1000; __asm__ volatile("1: addi %0, %0, -1\\n bnez %0, 1b" : "+r"(n)); (void)c;'
LOOP_A = 'long n = 1000; __asm__ volatile("1: subs %0, %0, #1\\n b.ne 1b" : "+r"(n)); (void)c;'


def setup(name, body, work, before=""):
    platform = platforms.load(name)
    model = board.load(platform.board, name)
    runner = kernels.runner(platform.arch)
    assert isinstance(runner, Qemu)
    return runner, kernels.program(body, work, arch=platform.arch, before=before), model


@MODELS
def test_only_the_marked_call_counts_and_twice_the_work_is_twice_the_count(tmp_path, name, vlen):
    loop = LOOP if name != "cortex-a53" else LOOP_A
    forward = "void tensorop_candidate_0(const struct tensorop_call *c);\n" + TWICE
    runner, program, model = setup(name, loop, tmp_path, forward)
    call = kernels.axpy_call(4)
    once, twice = counted(runner, program, call, model, vlen, entries=[Entry(0), Entry(1)])
    assert once.unit == "modelled-cycles"
    assert 2000 <= once.counters["instructions"] <= 2100
    assert 4000 <= twice.counters["instructions"] <= 4200
    assert once.low <= once.value <= once.high


@MODELS
def test_the_same_call_gives_the_same_figure_and_baselines_are_kept(tmp_path, monkeypatch, name, vlen):
    runner, program, model = setup(name, kernels.AXPY, tmp_path / "work")
    call = kernels.axpy_call(5000)
    figures = [counted(runner, program, call, model, vlen) for _ in range(2)]
    assert figures[0] == figures[1]
    kept = [judged(runner, program, call, model, vlen, tmp_path, monkeypatch) for _ in range(2)]
    assert [[replace(found.samples, alternative_costs={})] for found in kept] == figures
    assert all(found.verdict.ok for found in kept)
    assert len(list(tmp_path.glob("*.json"))) == 1


def counted(runner, program, call, model, vlen, **more):
    found = modelled.count(
        runner, model, MeasureRequest(program, [call], **{"purpose": Purpose.CHOICE, "vlen": vlen, **more})
    )
    return found if isinstance(found, Outcome) else [one.samples for one in found]


def judged(runner, program, call, model, vlen, folder, monkeypatch, judge=None, by="axpy", empty=False):
    def exact(_, left):
        return Judgement(Kind.OK if np.array_equal(left[0].outputs["y"], kernels.axpy_result(call)) else Kind.WRONG)

    monkeypatch.setattr(modelled.paths, "cache_dir", lambda *parts: folder)
    answer = judge or exact
    request = MeasureRequest(
        program, [call], purpose=Purpose.COMPARISON, vlen=vlen, judge=answer, empty=empty, judged_by=by
    )
    (found,) = modelled.count(runner, model, request)
    return found


@MODELS
def test_what_an_empty_call_takes_is_taken_off(tmp_path, monkeypatch, name, vlen):
    runner, program, model = setup(name, kernels.AXPY, tmp_path / "work")
    given = (runner, program, kernels.axpy_call(5), model, vlen, tmp_path, monkeypatch)
    whole, net = judged(*given), judged(*given, empty=True)
    assert whole.empty is None
    assert 0 < net.empty < whole.samples.value
    assert net.samples.value == whole.samples.value - net.empty
    assert net.samples.low <= net.samples.value <= net.samples.high
    assert net.verdict.ok
    assert judged(*given, empty=True) == net  # remembered apart from the whole call
    assert judged(*given) == whole


def test_a_remembered_count_has_its_verdict(tmp_path, monkeypatch):
    """One without is counted anew, a wrong one stays wrong, and another judge judges for himself."""
    runner, program, model = setup("spacemit-k1", kernels.AXPY, tmp_path / "work")
    given = (runner, program, kernels.axpy_call(50), model, 256, tmp_path, monkeypatch)

    def wrong(_, left):
        return Judgement(Kind.WRONG, "verify", "y[0] is 1", worst=3.0)

    first = judged(*given, judge=wrong)
    assert first.verdict.message == "y[0] is 1"
    assert judged(*given) == first
    assert judged(*given, by="another").verdict.ok
    for kept in tmp_path.glob("*.json"):
        kept.write_text(json.dumps(json.loads(kept.read_text())["samples"]))
    assert judged(*given).verdict.ok
    assert judged(*given, judge=wrong).verdict.ok


def test_a_call_that_leaves_its_work_to_the_warming_one_is_wrong(tmp_path, monkeypatch):
    body = "static int calls;\nif (calls++ == 0) {" + kernels.AXPY + "}"
    runner, program, model = setup("spacemit-k1", body, tmp_path / "work")
    found = judged(runner, program, kernels.axpy_call(50), model, 256, tmp_path, monkeypatch)
    assert found.verdict.kind is Kind.WRONG


def test_the_folder_a_program_lies_in_changes_no_figure(tmp_path):
    figures = []
    for folder in ("a", "b" * 200):
        runner, program, model = setup("spacemit-k1", kernels.AXPY, tmp_path / folder)
        figures.append(counted(runner, program, kernels.axpy_call(500), model, 256))
    assert figures[0] == figures[1]


def test_cold_caches_miss_more(tmp_path):
    runner, program, model = setup("spacemit-k1", kernels.AXPY, tmp_path)
    call = kernels.axpy_call(2000)
    warm, cold = (counted(runner, program, call, model, 256, warm=[warm])[0] for warm in (1, 0))
    assert isinstance(warm, Samples)
    assert cold.counters["misses.l1"] > warm.counters["misses.l1"]


def test_a_crash_is_the_candidates_outcome(tmp_path):
    runner, program, model = setup("spacemit-k1", "*(volatile int *)8 = 1; (void)c;", tmp_path)
    outcome = counted(runner, program, kernels.axpy_call(), model, 256)
    assert isinstance(outcome, Outcome)
    assert outcome.kind is Kind.CRASH
