"""Trials of micro-kernels alone: what is measured is a program of the largest tile, of shipped kernels and of others.

Shipped kernels are tried in company: one program of several kernels, one process that runs them in turn. Compiler,
linker, emulator and harness start once for all of them. The other tiles are compiled and verified when the kernel gets
blockings. A kernel that fails in company is tried again alone before anything is recorded.

Kernels of other authors never share a program. Such a trial compiles and verifies all tiles first, then the largest
tile as that of a shipped kernel. The cost does not depend on other tiles, which may change how the compiler inlines.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop.author import offline
from tensorop.errors import BoardError
from tensorop.measure.samples import combine
from tensorop.model.case import Case
from tensorop.model.hot_loop import HotLoop
from tensorop.model.kernel import Variant
from tensorop.model.trial import Kind, Outcome, Samples, Score, Stage, Trial, TrialResult
from tensorop.process.clock import StageClock
from tensorop.render import instantiate
from tensorop.render.render import RenderError
from tensorop.runners.protocol import Entry
from tensorop.trial.evaluator import COMPILE_TIMEOUT_S, Evaluator, Prepared
from tensorop.verify import grid

MOST = 16  # kernels of one program; more kernels gain little
ENTRIES = 2  # entries of each kernel in the harness: the first one is measured, the second one is verified
CALL_TIMEOUT_S = 10.0  # time limit of one verified call; a full tile takes milliseconds, also under an emulator


Unit = Sequence[Trial]  # one trial, or several in company


@dataclass(frozen=True)
class Program:
    """A built program. trials: in the order of its entries."""

    trials: Sequence[Trial]
    path: Path


@dataclass(frozen=True)
class Programs:
    """The programs of some trials, and the trials that failed already."""

    programs: Sequence[Program] = ()
    failed: Mapping[str, TrialResult] = field(default_factory=dict)  # by the key of the trial
    seconds: Mapping[str, float] = field(default_factory=dict)  # by step, of all trials together


@dataclass(frozen=True)
class Apart:
    """A built kernel that shares no program."""

    every: Prepared  # all of its tiles, to verify
    largest: Programs  # its largest one, to verify and measure


def _alone(evaluate: Evaluator) -> Evaluator:
    """The evaluator of micro-kernels alone, by the operator whose kernels they are, which may be another one."""
    made_for = evaluate.operator.kernels_of
    return evaluate if made_for is None else replace(evaluate, operator=made_for)


def takes(evaluate: Evaluator, variant: Variant) -> bool:
    """Whether a trial can share a program: a shipped kernel whose largest tile is measured."""
    return variant.template.author == offline.AUTHOR and of_largest_tile(evaluate, variant)


def of_largest_tile(evaluate: Evaluator, variant: Variant) -> bool:
    """Whether a trial measures a program of the largest tile: a micro-kernel alone, with a grid for this tile."""
    target = evaluate.target
    if target.simulated or evaluate.run.stage is not Stage.MICRO or variant.kernel.vlen:
        return False
    return bool(_alone(evaluate).kernel_cases(variant, target.vlens[0], True))


def prepare_apart(evaluate: Evaluator, trial: Trial) -> Prepared | Apart | TrialResult:
    """Renders, builds and checks a kernel that shares no program."""
    every = evaluate.prepare(trial)
    if not isinstance(every, Prepared) or not of_largest_tile(evaluate, trial.variant):
        return every
    return Apart(every, prepare(evaluate, [trial]))


def measure_apart(evaluate: Evaluator, trial: Trial, built: Apart) -> TrialResult:
    """Verifies all tiles, then verifies and measures the largest one."""
    verified = evaluate.measure(trial, built.every, costs=False)
    if not verified.outcome.ok:
        return verified
    found = measure(evaluate, [trial], built.largest)[trial.key]
    seconds = {step: verified.seconds.get(step, 0.0) + found.seconds.get(step, 0.0) for step in found.seconds}
    return replace(found, text=verified.text, seconds={**verified.seconds, **seconds})


def hot_loop(evaluate: Evaluator, trial: Trial) -> HotLoop | None:
    """The hot loop of the program that is measured; None if there is none. trial: a micro-kernel that passed"""
    if not of_largest_tile(evaluate, trial.variant):
        built = evaluate.prepare(trial)
        return evaluate.hot_loop(trial, built) if isinstance(built, Prepared) else None
    programs = prepare(evaluate, [trial]).programs
    return _alone(evaluate).hot_loop(trial, Prepared(programs[0].path, {}), Entry(0)) if programs else None


def units(evaluate: Evaluator, trials: Sequence[Trial], jobs: int) -> list[Unit]:
    """The trials that cannot share a program, each alone, then the others in `jobs` equal parts or more."""
    sharing = [trial for trial in trials if takes(evaluate, trial.variant)]
    size = min(MOST, -(-len(sharing) // max(jobs, evaluate.target.clocks)))
    together = [sharing[at : at + size] for at in range(0, len(sharing), size or 1)]
    return [*([trial] for trial in trials if trial not in sharing), *together]


def prepare(evaluate: Evaluator, trials: Sequence[Trial]) -> Programs:
    """Renders, builds and checks the trials' programs. Called from several threads at once."""
    evaluate = _alone(evaluate)
    clock = StageClock()
    failed: dict[str, TrialResult] = {}
    rendered: dict[str, list[tuple[Trial, str]]] = {}  # head of a program -> its kernels
    operator, platform = evaluate.operator, evaluate.target.platform
    for trial in trials:
        found: str | Outcome | None = evaluate.beyond(trial.variant)
        if found is None:
            try:
                found = evaluate.texts.full_tile(operator, platform, trial.variant)
            except RenderError as error:
                found = Outcome(Kind.RENDER, "render", error.message)
        if isinstance(found, Outcome):
            failed[trial.key] = TrialResult(found)
            continue
        head = instantiate.alone_head(operator, platform, trial.variant)
        rendered.setdefault(head, []).append((trial, found))
    clock.lap("render")
    programs: list[Program] = []
    for head, kernels in rendered.items():
        for several in _distinct(evaluate, kernels):
            made = _built(evaluate, head, several, clock)
            programs += made.programs
            failed |= made.failed
    return Programs(programs, failed, clock.seconds)


def _distinct(evaluate: Evaluator, kernels: Sequence[tuple[Trial, str]]) -> list[list[tuple[Trial, str]]]:
    """The trials in parts. In a part all kernels have different names, and their templates the same flags."""
    parts: list[list[tuple[Trial, str]]] = []
    names: list[set[object]] = []
    for trial, text in kernels:
        kernel = trial.variant.kernel
        name, flags = instantiate.ident(evaluate.target.platform, kernel), tuple(kernel.template.flags)
        for part, known in zip(parts, names, strict=True):
            if name not in known and flags in known and len(part) < MOST:
                part.append((trial, text))
                known.add(name)
                break
        else:
            parts.append([(trial, text)])
            names.append({name, flags})
    return parts


def _built(evaluate: Evaluator, head: str, kernels: Sequence[tuple[Trial, str]], clock: StageClock) -> Programs:
    """The program of these kernels; after a failure a program of each."""
    operator, platform = evaluate.operator, evaluate.target.platform
    trials = [trial for trial, _ in kernels]
    each = [(trial.variant, text) for trial, text in kernels]
    source = instantiate.alone(operator, platform, head, each, ENTRIES)
    clock.lap("render")
    made = evaluate.target.build(source, evaluate.objects(one.variant for one in trials), COMPILE_TIMEOUT_S, clock.lap)
    if not isinstance(made, Outcome):
        return Programs([Program(trials, made.path)])
    if len(kernels) == 1:
        return Programs(failed={trials[0].key: TrialResult(made)})
    several = [_built(evaluate, head, [one], clock) for one in kernels]
    failed = {name: result for built in several for name, result in built.failed.items()}
    return Programs([program for built in several for program in built.programs], failed)


def measure(evaluate: Evaluator, trials: Sequence[Trial], built: Programs) -> dict[str, TrialResult]:
    """Verifies and measures the programs' kernels: a result by its key.

    A trial that failed in company with others has no result. An unreachable board gives LOST.
    """
    evaluate = _alone(evaluate)
    clock = StageClock(built.seconds)
    found = dict(built.failed)
    try:
        with evaluate.target.one() as target:
            own = evaluate if target is evaluate.target else replace(evaluate, target=target, specialised={})
            for program in built.programs:
                found |= _measured(own, program, clock)
    except BoardError as error:
        lost = TrialResult(Outcome(Kind.LOST, "measure", error.message))
        found |= {trial.key: lost for trial in trials if trial.key not in found}
    clock.lap("measure")
    seconds = {step: round(took / len(trials), 4) for step, took in clock.seconds.items()}
    return {name: replace(result, seconds=seconds) for name, result in found.items()}


def _measured(evaluate: Evaluator, program: Program, clock: StageClock) -> dict[str, TrialResult]:
    trials = program.trials
    entries = [ENTRIES * number for number in range(len(trials))]
    failed = _verified(evaluate, program, entries)
    clock.lap("verify")
    alone = len(trials) == 1
    found = {name: TrialResult(outcome) for name, outcome in failed.items()} if alone else {}
    passed = [(trial, at) for trial, at in zip(trials, entries, strict=True) if trial.key not in failed]
    costs = _costs(evaluate, program, passed) if passed else []
    clock.lap("measure")
    if isinstance(costs, Outcome):
        return found | ({trials[0].key: TrialResult(costs)} if alone else {})
    for (trial, _), cost in zip(passed, costs, strict=True):
        if isinstance(cost, Outcome):
            if alone:
                found[trial.key] = TrialResult(cost)
            continue
        problem = evaluate.micro_problem(trial.variant, 0)
        of_problem = {problem.label: cost}
        score = Score(evaluate.course_of([problem]).score(of_problem), of_problem)
        found[trial.key] = TrialResult(Outcome(Kind.OK, "measure"), score)
    return found


def _verified(evaluate: Evaluator, program: Program, entries: Sequence[int]) -> dict[str, Outcome]:
    """The failures by the key of the trial. Each VLEN gets its part of each kernel's cases."""
    vlens = evaluate.target.verify_vlens
    paths = {trial.key: evaluate.path_calls(vlens).largest(trial.variant, full_tile=True) for trial in program.trials}
    left = list(zip(program.trials, entries, strict=True))
    failed: dict[str, Outcome] = {}
    for vlen in vlens:
        subjects, cases = [], []
        for trial, at in left:
            subject = evaluate.subject(trial.variant, program.path, Entry(at + 1))
            subjects.append(replace(subject, timeout_s=CALL_TIMEOUT_S, panels=evaluate.panels))
            whole = functools.partial(_full_tile, evaluate, trial.variant)
            cases.append([*grid.in_turn(whole, vlens)(vlen, evaluate.run.seed), *paths[trial.key].get(vlen, ())])
        verdicts = grid.check_together(evaluate.operator.reference, subjects, cases, vlen, evaluate.run.seed)
        wrong = [(trial, verdict) for (trial, _), verdict in zip(left, verdicts, strict=True) if not verdict.ok]
        failed |= {trial.key: verdict.outcome for trial, verdict in wrong}
        left = [(trial, at) for trial, at in left if trial.key not in failed]
        if not left:
            break
    return failed


def _full_tile(evaluate: Evaluator, variant: Variant, vlen: int, seed: object) -> Sequence[Case]:
    return evaluate.kernel_cases(variant, vlen, full_tile=True)


def _costs(
    evaluate: Evaluator, program: Program, passed: Sequence[tuple[Trial, int]]
) -> list[Samples | Outcome] | Outcome:
    """The cost of each kernel on its own problem, or the outcome of the first failure."""
    asked = [(evaluate.micro_problem(trial.variant, 0), trial.variant) for trial, _ in passed]
    entries = [Entry(at) for _, at in passed]
    measured = evaluate.target.measure_each(lambda vlen: evaluate.request(program.path, asked, entries, vlen))
    if isinstance(measured, Outcome):
        return measured
    return [
        evaluate.impossible([problem], variant, [by_vlen]) or combine(by_vlen)
        for (problem, variant), by_vlen in zip(asked, measured, strict=True)
    ]
