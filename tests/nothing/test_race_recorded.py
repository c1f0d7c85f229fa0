"""On recorded blockings, all measured on every problem, the race keeps the best one of each class."""

from __future__ import annotations

import gzip
import json
import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Samples, Score, Stage, Trial
from tensorop.trial import race

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
        score = Score(race.score(costs, course.work), costs)
        found.append(Finished(Trial(str(number), 0, Stage.BLOCKING, variant), Outcome(Kind.OK), score))
    return found


def raced(everyone: list[Finished], course: race.Course, vlens: list[int]) -> list[Finished]:
    """The trials as a search has them that tries these one after the other."""
    ended: list[Finished] = []
    for one in everyone:
        alike = [other for other in ended if other.trial.variant.template == one.trial.variant.template]
        costs, fell = dict(one.score.per_problem), None
        for rung in course.rungs(alike, ended, False, vlens):
            costs = {name: one.score.per_problem[name] for name in list(course.work)[: rung.problems]}
            if not course.goes_on(rung, costs):
                fell = rung
                break
        kept = one.score.per_problem if fell is None else costs
        ended.append(replace(one, score=Score(race.score(kept, course.work, fell), kept)))
    return ended


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_the_race_keeps_the_best_of_each_class(file: Path) -> None:
    record = json.loads(gzip.decompress(file.read_bytes()))
    course = race.Course.of(record["work"], record["classes"])
    everyone, dropped = points(record, course), 0
    for seed in range(20):
        random.Random(seed).shuffle(everyone)
        kept = [
            one for one in raced(everyone, course, record["vlens"]) if len(one.score.per_problem) == len(course.work)
        ]
        dropped += len(everyone) - len(kept)
        for vlen in record["vlens"]:
            for name in set(record["classes"].values()):

                def cost(one: Finished, name: str = name, vlen: int = vlen) -> float:
                    return course.cost(course.by_class(one.score.per_problem)[name], vlen)

                best, left = min(map(cost, everyone)), min(map(cost, kept))
                assert left <= 1.03 * best, (seed, name, vlen)
    assert dropped > 20 * len(everyone) / 3  # a race that drops nothing saves nothing


def test_there_are_recorded_blockings() -> None:
    assert FILES
