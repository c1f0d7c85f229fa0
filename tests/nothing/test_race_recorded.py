"""On recorded blockings, all measured on every problem: what the race and the choice of finalists keep."""

from __future__ import annotations

import gzip
import json
import math
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import kendalltau

from tensorop.backends import qemu
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Samples, Score, Stage, Trial
from tensorop.space import problems
from tensorop.specs import operators
from tensorop.trial import race, selection

FILES = sorted((Path(__file__).parents[1] / "data").glob("race-*.json.gz"))


def points(record: dict[str, Any], course: race.Course) -> list[Finished]:
    """Complete trials, with their costs in the order of measurement."""
    found, vlens = [], record["vlens"]
    for number, point in enumerate(record["points"]):
        costs = {
            name: Samples(
                "u", (each := point["costs"][name])[0], each[0], each[0], by_vlen=dict(zip(vlens, each, strict=True))
            )
            for name in course.work
        }
        template = KernelTemplate("gemm", point["template"], "offline", "", point["template"])
        variant = Variant(Kernel(template, record["dtype"], Point.of({"number": number})))
        score = Score(course.score(costs), costs)
        found.append(Finished(Trial(str(number), 0, Stage.BLOCKING, variant), Outcome(Kind.OK), score))
    return found


def raced(everyone: list[Finished], course: race.Course, vlens: list[int]) -> list[Finished]:
    """The trials as a search has them that tries these one after the other."""
    ended: list[Finished] = []
    for one in everyone:
        alike = [other for other in ended if other.trial.variant.template == one.trial.variant.template]
        kept: dict[str, Samples] = {}
        going, beyond = frozenset(course.parts(course.work)), dict[str, float]()
        for rung in (*course.rungs(alike, ended, vlens), None):
            kept |= {name: one.score.per_problem[name] for name in course.due(going, kept, rung)}
            if rung is not None:
                left = going & course.goes_on(rung, kept)
                beyond |= {name: factor for name, factor in rung.beyond if name in going - left}
                going = left
        ended.append(replace(one, score=Score(course.score(kept, beyond), kept)))
    return ended


def sketched(record: dict[str, Any]) -> race.Course:
    """The problems that trials are measured on."""
    operator = operators.load(record["operator"])
    shapes, budgets = (*operator.suites[operator.usual], *operator.probes), qemu.Backend.budgets
    known = {one.label: one for one in problems.for_search(operator, record["dtype"], shapes, budgets)}
    chosen = [one.label for one in problems.sketch(operator, [known[name] for name in record["work"]], budgets)]
    course = race.Course.of({name: record["work"][name] for name in chosen}, record["classes"])
    return replace(course, shares=Counter(record["classes"].values()))


def on(one: Finished, course: race.Course) -> Finished:
    """The trial as if it had been measured on these problems alone."""
    costs = {name: one.score.per_problem[name] for name in course.work}
    return replace(one, score=Score(course.score(costs), costs))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_race_keeps_the_best_of_each_class_and_finalists_the_best_of_all(file: Path) -> None:
    record = json.loads(gzip.decompress(file.read_bytes()))
    whole = race.Course.of(record["work"], record["classes"])
    course = sketched(record)
    full = {one.trial.variant.id: one for one in points(record, whole)}
    everyone, dropped, seeds = [on(one, course) for one in full.values()], 0, 4
    for seed in range(seeds):
        random.Random(seed).shuffle(everyone)
        ended = raced(everyone, course, record["vlens"])
        dropped += sum(len(one.score.per_problem) < len(course.work) for one in ended)
        for vlen in record["vlens"]:
            for name, of_class in course.parts(course.work).items():

                def cost(one: Finished, of_class: list[str] = of_class, vlen: int = vlen) -> float:
                    return course.cost(one.score.per_problem, of_class, vlen)

                kept = [one for one in ended if one.score.per_problem.keys() >= {*of_class}]
                best, left = min(map(cost, everyone)), min(map(cost, kept))
                assert left <= 1.03 * best, (seed, name, vlen)
        costs = {one.trial.variant.id: selection.by_vlen(one, record["vlens"]) for one in ended}
        chosen = selection.finalists(ended, costs, classes=record["classes"])
        assert selection.FINALISTS <= len(chosen) <= selection.MOST
        assert min(full[name].score.cost for name in chosen) <= 1.02 * min(one.score.cost for one in full.values())
        for vlen in record["vlens"]:
            for name, of_class in course.parts(course.work).items():
                measured = [one for one in ended if one.score.per_problem.keys() >= {*of_class}]
                by_id = {one.trial.variant.id: course.cost(one.score.per_problem, of_class, vlen) for one in measured}
                best = min(by_id[of] for of in chosen if of in by_id)
                assert best <= selection.CLOSE * min(by_id.values()), (seed, name, vlen)
    assert dropped > seeds * len(everyone) / 3  # a race that drops nothing saves nothing


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_trials_order_the_best_quarter_as_all_problems_do(file: Path) -> None:
    record = json.loads(gzip.decompress(file.read_bytes()))
    course = sketched(record)
    assert sum(course.work.values()) < 0.4 * sum(record["work"].values())
    everyone = points(record, race.Course.of(record["work"], record["classes"]))
    assert len(everyone) >= 200
    best = sorted(everyone, key=lambda one: one.score.cost or math.inf)[: len(everyone) // 4]
    cheap = [on(one, course).score.cost for one in best]
    assert kendalltau(cheap, [one.score.cost for one in best]).statistic >= 0.6


def test_there_are_recorded_blockings() -> None:
    assert FILES
