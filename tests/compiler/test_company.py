"""Micro-kernels in company: a faulty one is recorded alone, and the others' results are as without it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.model.trial import Kind, Limit, Trial, TrialResult
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.trial import company
from tensorop.trial.called import PathCalls
from tensorop.trial.trial import side_by_side
from tests.support import drawn_kernels
from tests.support.classes import some

LIMIT = Limit(20.0, "of this test")
FAULTS = {  # what a kernel does at its first instruction
    "trap": ("__builtin_trap();", {Kind.ILLEGAL, Kind.CRASH}),
    "hang": ('for (;;) __asm__ volatile("");', {Kind.TIMEOUT}),
    "far store": ("*(volatile char *)8 = 1;", {Kind.CRASH, Kind.GUARD}),
    "store past C": ("*(volatile char *)((char *)c + (1l << 20)) = 1;", {Kind.GUARD, Kind.CRASH}),
    "store into A": ("*(volatile char *)a = 1;", {Kind.GUARD, Kind.CRASH}),
    "store before C": ("((volatile char *)c)[-1] = 1;", {Kind.GUARD, Kind.CRASH}),
    "much stack": ("volatile char much[1l << 30]; much[k] = 1;", {Kind.CRASH, Kind.COMPILE}),
    "wrong": ("c[0] = 1e30f; if (k) return;", {Kind.WRONG}),
    "no C": ("this is no C;", {Kind.COMPILE}),
}


def ran(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: str, bad: int, dtype: str = "f32"
) -> tuple[list[Trial], list[TrialResult]]:
    evaluate = drawn_kernels.evaluator("native", tmp_path, dtype)
    trials = drawn_kernels.drawn(evaluate, 6, seed=3)
    name = instantiate.ident(evaluate.target.platform, trials[bad].variant.kernel)
    honest = Texts.full_tile

    def faulty(*args):  # type: ignore[no-untyped-def]
        text = honest(*args)
        assert isinstance(text, str)
        at = text.find("{", text.find(f"static void {name}_")) + 1
        return text[:at] + fault + text[at:] if args[-1] == trials[bad].variant else text

    monkeypatch.setattr(Texts, "full_tile", faulty)
    monkeypatch.setattr(company, "CALL_TIMEOUT_S", 3.0)  # one that hangs is waited for twice
    return trials, list(side_by_side(evaluate, 1, trials, LIMIT))


@pytest.mark.one_in(3)
@pytest.mark.parametrize("fault", some(FAULTS, lambda fault: fault in ("trap", "store past C", "wrong", "no C")))
def test_a_faulty_kernel_fails_and_its_neighbours_pass(
    fault: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    text, kinds = FAULTS[fault]
    _, results = ran(monkeypatch, tmp_path, text, bad=2)
    assert [result.outcome.ok for result in results] == [True, True, False, True, True, True], results
    assert results[2].outcome.kind in kinds, results[2]


@pytest.mark.one_in(2)
@pytest.mark.parametrize("dtype", ["i8", "bf16", "f16"])
def test_a_kernel_of_packed_formats_is_judged_by_its_sums(
    dtype: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trials, results = ran(monkeypatch, tmp_path, "k -= k > 40;", 2, dtype)
    kinds = [result.outcome.kind for result in results]
    assert kinds == [Kind.WRONG if number == 2 else Kind.OK for number in range(len(trials))]


def test_two_kernels_of_one_name_get_programs_of_their_own(tmp_path: Path) -> None:
    evaluate = drawn_kernels.evaluator("native", tmp_path)
    trials = drawn_kernels.drawn(evaluate, 2, seed=3)
    twice = [*trials, replace(trials[0], key="again")]
    made = company.prepare(evaluate, twice)
    assert [len(program.trials) for program in made.programs] == [2, 1]
    results = company.measure(evaluate, twice, made)
    assert [results[trial.key].outcome.ok for trial in twice] == [True, True, True]


def test_kernels_of_other_authors_never_share_a_program(tmp_path: Path) -> None:
    evaluate = drawn_kernels.evaluator("native", tmp_path)
    (trial,) = drawn_kernels.drawn(evaluate, 1, seed=3)
    assert company.takes(evaluate, trial.variant)
    for author in ("plug-in", "model-x"):
        template = replace(trial.variant.template, author=author)
        variant = replace(trial.variant, kernel=replace(trial.variant.kernel, template=template))
        assert not company.takes(evaluate, variant)


@pytest.mark.parametrize(("count", "jobs", "sizes"), [(16, 1, [16]), (16, 2, [8, 8]), (20, 1, [16, 4]), (3, 2, [2, 1])])
def test_trials_are_dealt_out_evenly(count: int, jobs: int, sizes: list[int], tmp_path: Path) -> None:
    evaluate = drawn_kernels.evaluator("native", tmp_path)
    trials = drawn_kernels.drawn(evaluate, count, seed=3)
    assert [len(unit) for unit in company.units(evaluate, trials, jobs)] == sizes


def test_a_kernel_without_a_case_is_not_verified(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    evaluate = drawn_kernels.evaluator("native", tmp_path)
    trials = drawn_kernels.drawn(evaluate, 2, seed=3)
    built = company.prepare(evaluate, trials)
    monkeypatch.setattr(company, "_full_tile", lambda *_: ())
    monkeypatch.setattr(PathCalls, "largest", lambda self, *_, **__: dict.fromkeys(self.vlens, ()))
    assert not company.measure(evaluate, trials, built)
