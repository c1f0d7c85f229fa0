"""What the cost models say of shapes that were kept from them, against what was measured there."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tensorop.dispatch import choice, costmodel, known
from tensorop.dispatch.choice import PARTS, Also, Measured, Subject
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Samples, Stage
from tensorop.space import problems
from tensorop.store.history import History
from tensorop.target import objective

CLOSE = 0.1  # a prediction that is off by no more is close
SHOWN = 400  # points that a record has of a dtype and VLEN
_FEWEST = 10


def left_out(operator: Operator, platform: Platform, history: History) -> list[dict[str, Any]]:
    """For each dtype and VLEN: what models predict that were fitted without a shape, in five parts, as the choice's
    regret is found, of the variants that were measured in the library (where none were, of every blocking).

    points: some of them, costs for 1000 flops, under a model with the small power of the instructions that variants
    are compared by; error: the factor that the median prediction is off by, less 1; close: the share of those within
    10 %; ordered: how often, of two variants measured on one problem, the one that is better there is predicted to be.
    """
    out = []
    for dtype in history.facts.get("dtypes", ()) if operator.costs.terms else ():
        by_id = _variants(dtype, history)
        figures = {name: _figures(operator, dtype, ended) for name, (_, ended) in by_id.items()}
        noted = [data for name, data in history.notes if name == known.NOTE and data["dtype"] == dtype]
        latest = [data for data in noted if data["variants"] == noted[-1]["variants"]]
        ids = [one["id"] for one in latest[0]["variants"]] if latest else list(by_id)
        variants = tuple(by_id[name][0] for name in ids)
        rows = [row for data in latest for row in data["rows"]]
        samples = [one for of_one in figures.values() for one in of_one.values()]
        vlens = {int(row["vlen"]) for row in rows} or {vlen for one in samples for vlen in one.by_vlen or (0,)}
        by_clock = any(one.unit == "ns" for one in samples) and rows  # apart in time, trials say little of each other
        for vlen in sorted(vlens):
            told = {} if by_clock else _told([figures[name] for name in ids], vlen)
            for row in rows:
                if row["vlen"] == vlen:
                    told[operator.reference.problem(dtype, row["dims"], row["options"])] = tuple(row["costs"])
            also = [
                Also(by_id[name][0], tuple(of), tuple(objective(one, vlen) for one in of.values()))
                for name, of in figures.items()
                if name not in ids and not by_clock
            ]
            subject = Subject(operator, platform, dtype, variants, vlen)
            points = list(_points(subject, [Measured(p, costs) for p, costs in told.items()], also))
            if len(points) >= _FEWEST:
                some = points[:: math.ceil(len(points) / SHOWN)]
                out.append({"dtype": dtype, "vlen": vlen or None, **_judged(points), "points": some})
    return out


def _variants(dtype: str, history: History) -> dict[str, tuple[Variant, list[Finished]]]:
    """By id, those that passed for all VLENs, with their trials."""
    found: dict[str, tuple[Variant, list[Finished]]] = {}
    for stage in (Stage.BLOCKING, Stage.LARGE, Stage.SMALLEST):
        for finished in history.ended((stage, dtype, 0)):
            if finished.outcome.ok:
                variant = finished.trial.variant
                found.setdefault(variant.id, (variant, []))[1].append(finished)
    return found


def _figures(operator: Operator, dtype: str, ended: Sequence[Finished]) -> dict[Problem, Samples]:
    told = {label: samples for finished in ended for label, samples in finished.score.per_problem.items()}
    return {p: samples for label, samples in told.items() if (p := _problem(operator, dtype, label)) is not None}


def _problem(operator: Operator, dtype: str, label: str) -> Problem | None:
    """The one of a label, in one of the operator's layouts."""
    shape = operator.shapes.of(label.split(f" {dtype}")[0])
    each = (problems.of(operator, dtype, shape, layout) for layout in range(len(operator.layouts)))
    return next((problem for problem in each if problem.label == label), None)


def _told(of_each: Sequence[Mapping[Problem, Samples]], vlen: int) -> dict[Problem, tuple[float | None, ...]]:
    every = dict.fromkeys(problem for of_one in of_each for problem in of_one)
    return {p: tuple(objective(of[p], vlen) if p in of else None for of in of_each) for p in every}


def _points(subject: Subject, measured: Sequence[Measured], also: Sequence[Also]) -> Iterator[dict[str, Any]]:
    samples = choice.known(subject, measured, also) if measured else None
    for part in range(PARTS) if samples else ():
        assert samples is not None
        rows = [row for row, of_row in enumerate(samples.parts) if of_row == part]
        if not rows or len(rows) == len(measured):
            continue
        of_each = [terms[rows] for terms in samples.terms]
        predictions, _ = costmodel.predict(samples.fitted(part), of_each, samples.places[rows])
        for number, logs in enumerate(predictions.T):
            for row, log in zip(rows, logs, strict=True):
                cost, problem = measured[row].costs[number], measured[row].problem
                if cost is not None:
                    scale = 1e3 / float(subject.operator.reference.work(problem))
                    said = {"measured": scale * cost, "predicted": scale * math.exp(log)}
                    template = subject.variants[number].template.name
                    yield {"problem": problem.label, "variant": number, "template": template, **said}


def _judged(points: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    off = np.abs(np.log([p["predicted"] / p["measured"] for p in points]))
    by_problem: dict[str, list[Mapping[str, Any]]] = {}
    for point in points:
        by_problem.setdefault(point["problem"], []).append(point)
    pairs = [pair for alike in by_problem.values() for pair in itertools.combinations(alike, 2)]
    apart = [(a, b) for a, b in pairs if a["measured"] != b["measured"]]
    right = [(a["measured"] < b["measured"]) == (a["predicted"] < b["predicted"]) for a, b in apart]
    return {
        "error": math.expm1(float(np.median(off))),
        "close": float(np.mean(off <= math.log1p(CLOSE))),
        "ordered": sum(right) / len(right) if right else None,
    }
