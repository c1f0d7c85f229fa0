"""Trials and their ends as JSON objects and back: the journal's vocabulary.

    {"schema": 1, "event": "run",       "t", "facts": {...}}                                first line: what the run is
    {"schema": 1, "event": "resumed",   "t"}                                                a later process went on
    {"schema": 1, "event": "draft",     "t", "digest", "draft": {...}}                      a draft in full
    {"schema": 1, "event": "started",   "t", "key", "round", "stage", "draft", "dtype", "point"}
    {"schema": 1, "event": "finished",  "t", "key", "round", "outcome", "score", "seconds"}
    {"schema": 1, "event": "abandoned", "t", "key", "round", "outcome"}                     stopped from outside
    {"schema": 1, "event": "note",      "t", "name", "data"}                                any other fact worth keeping

t: seconds the run has taken so far, all its processes together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tensorop.model.kernel import Constraint, Draft
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Samples, Score, Stage, Trial

SCHEMA = 1
LOG_TAIL = 4096

Record = dict[str, Any]


def trial_record(trial: Trial) -> Record:
    return {
        "key": trial.key,
        "round": trial.round,
        "stage": trial.stage.value,
        "draft": trial.draft,
        "dtype": trial.dtype,
        "point": dict(trial.point),
    }


def trial_of(record: Mapping[str, Any]) -> Trial:
    return Trial(
        key=record["key"],
        round=record["round"],
        stage=Stage(record["stage"]),
        draft=record["draft"],
        dtype=record["dtype"],
        point=Point.of(record["point"]),
    )


def outcome_record(outcome: Outcome) -> Record:
    """Empty fields are left out; of the log its last 4 kB are kept."""
    record = {"kind": outcome.kind.value}
    if outcome.where:
        record["where"] = outcome.where
    if outcome.message:
        record["message"] = outcome.message[-LOG_TAIL:]
    if outcome.log:
        record["log"] = outcome.log[-LOG_TAIL:]
    return record


def outcome_of(record: Mapping[str, Any]) -> Outcome:
    return Outcome(Kind(record["kind"]), record.get("where", ""), record.get("message", ""), record.get("log", ""))


def finished_record(finished: Finished) -> Record:
    return {
        "key": finished.trial.key,
        "round": finished.trial.round,
        "outcome": outcome_record(finished.outcome),
        "score": {
            "cost": finished.score.cost,
            "per_problem": {name: _samples_record(s) for name, s in finished.score.per_problem.items()},
        },
        "seconds": dict(finished.seconds),
    }


def finished_of(record: Mapping[str, Any], trial: Trial) -> Finished:
    score = record["score"]
    return Finished(
        trial=trial,
        outcome=outcome_of(record["outcome"]),
        score=Score(score["cost"], {name: _samples_of(s) for name, s in score["per_problem"].items()}),
        seconds=dict(record["seconds"]),
    )


def draft_record(draft: Draft) -> Record:
    return {
        "operator": draft.operator,
        "name": draft.name,
        "author": draft.author,
        "strategy": draft.strategy,
        "text": draft.text,
        "reads": dict(draft.reads),
        "needs": list(draft.needs),
        "tunables": {name: list(values) for name, values in draft.tunables.items()},
        "constraints": [{"must": c.must, "reason": c.reason} for c in draft.constraints],
        "starts": [dict(start) for start in draft.starts],
    }


def draft_of(record: Mapping[str, Any]) -> Draft:
    return Draft(
        operator=record["operator"],
        name=record["name"],
        author=record["author"],
        strategy=record["strategy"],
        text=record["text"],
        reads=dict(record["reads"]),
        needs=tuple(record["needs"]),
        tunables={name: tuple(values) for name, values in record["tunables"].items()},
        constraints=tuple(Constraint(c["must"], c["reason"]) for c in record["constraints"]),
        starts=tuple(Point.of(start) for start in record.get("starts", ())),
    )


def _samples_record(samples: Samples) -> Record:
    return {
        "unit": samples.unit,
        "value": samples.value,
        "low": samples.low,
        "high": samples.high,
        "count": samples.count,
        "counters": dict(samples.counters),
    }


def _samples_of(record: Mapping[str, Any]) -> Samples:
    return Samples(
        unit=record["unit"],
        value=record["value"],
        low=record["low"],
        high=record["high"],
        count=record["count"],
        counters=dict(record["counters"]),
    )
