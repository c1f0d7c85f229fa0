"""Trials and their ends as JSON objects and back: the journal's records.

    {"schema": 5, "event": "run",       "t", "facts": {...}}                                first line: what the run is
    {"schema": 5, "event": "resumed",   "t"}                                                a later process went on
    {"schema": 5, "event": "template",     "t", "digest", "template": {...}, "joined"}            a template in full
    {"schema": 5, "event": "started",   "t", "key", "round", "stage", "dtype", "template",
        "configuration", "vlen", "blocking", "kernel", "variant", "race"}
    {"schema": 5, "event": "text",      "t", "variant", "id", "packed"}                     a kernel's C, once
    {"schema": 5, "event": "finished",  "t", "key", "round", "outcome", "score", "seconds", "text"}
    {"schema": 5, "event": "abandoned", "t", "key", "round", "outcome"}                     stopped from outside
    {"schema": 5, "event": "note",      "t", "name", "data"}                                any other fact worth keeping

joined: of a template that came late: stage, dtype, round of the search, and how many of its trials had ended.
t: seconds the run has taken so far, all its processes together.
template: the digest of one that was told of before; kernel, variant: ids of what the four before them make.
variant of a text: the id of the one it belongs to, as it is built (instantiate.as_built)
race: where the trial may end early (model.trial.Rung), by what had ended when it began
packed: kernel and edge, a NUL between them, by zlib and base64; text: the id of what a trial that passed was made of.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tensorop.model.kernel import Constraint, Kernel, KernelTemplate, KernelText, Prior, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Rung, Samples, Score, Stage, Trial

SCHEMA = 5
LOG_TAIL = 4096
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}")
MAX_TEXT = 16 << 20  # characters of a text, unpacked

Record = dict[str, Any]


def trial_record(trial: Trial) -> Record:
    return {
        "key": trial.key,
        "round": trial.round,
        "stage": trial.stage.value,
        "dtype": trial.dtype,
        "template": trial.variant.template.digest,
        "configuration": dict(trial.variant.kernel.configuration),
        "vlen": trial.variant.kernel.vlen,
        "blocking": dict(trial.variant.blocking),
        "kernel": trial.variant.kernel.id,
        "variant": trial.variant.id,
        **({"race": [[rung.problems, dict(rung.bars), rung.beyond] for rung in trial.race]} if trial.race else {}),
    }


def facts_of(record: Mapping[str, Any]) -> Record:
    """What a run is. Raises ValueError where its dtypes are not different words."""
    facts = dict(record["facts"])
    dtypes = [_kind(dtype, str, "dtypes") for dtype in _kind(facts.get("dtypes", []), list, "dtypes")]
    if len(set(dtypes)) != len(dtypes):
        raise ValueError(f"'dtypes' is {dtypes!r:.60}; expected different ones")
    return facts


def note_of(record: Mapping[str, Any]) -> tuple[str, Any]:
    return _text(record, "name"), record["data"]


def trial_of(record: Mapping[str, Any], templates: Mapping[str, KernelTemplate]) -> Trial:
    """templates: by digest, those that the journal has told of. Raises ValueError where the parts have another id."""
    if (digest := _text(record, "template")) not in templates:
        raise ValueError(f"no template {digest:.60} was told of before")
    kernel = Kernel(
        templates[digest], _text(record, "dtype"), point_of(record["configuration"]), _whole(record, "vlen")
    )
    variant = Variant(kernel, point_of(record["blocking"]))
    if (kernel.id, variant.id) != (record["kernel"], record["variant"]):
        raise ValueError(f"the variant {record['variant']!r:.60} is another one: {variant.id}")
    race = tuple(_rung(*rung) for rung in record.get("race", ()))
    return Trial(_text(record, "key"), _whole(record, "round"), Stage(record["stage"]), variant, race)


def _rung(problems: Any, bars: Mapping[str, Any], beyond: Any) -> Rung:
    found = {"problems": problems, "beyond": beyond}
    costs = tuple((int(vlen), cost) for vlen, cost in _numbers(bars).items())
    return Rung(_whole(found, "problems"), costs, _positive(found, "beyond"))


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
    told = {name: _text(record, name) for name in ("where", "message", "log") if name in record}
    return Outcome(Kind(record["kind"]), **told)


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
        **({"text": finished.text} if finished.text else {}),
    }


def finished_of(record: Mapping[str, Any], trial: Trial) -> Finished:
    score = record["score"]
    return Finished(
        trial=trial,
        outcome=outcome_of(record["outcome"]),
        score=Score(
            None if score["cost"] is None else _positive(score, "cost"),
            {str(name): _samples_of(s) for name, s in score["per_problem"].items()},
        ),
        seconds=_numbers(record["seconds"]),
        text=_text(record, "text") if "text" in record else "",
    )


def text_record(text: KernelText) -> Record:
    packed = zlib.compress(f"{text.kernel}\0{text.edge}".encode(), 9)
    return {"variant": text.variant, "id": text.id, "packed": base64.b64encode(packed).decode()}


def text_of(record: Mapping[str, Any]) -> KernelText:
    """Raises ValueError where the text is not the one of its id."""
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(base64.b64decode(record["packed"], validate=True), MAX_TEXT)
    except zlib.error as error:
        raise ValueError(f"a text that cannot be unpacked: {error}") from error
    kernel, _, edge = data.decode().partition("\0")
    text = KernelText(str(record["variant"]), kernel, edge)
    if text.id != record["id"]:
        raise ValueError(f"the text {record['id']} is another one: {text.id}")
    return text


def template_record(template: KernelTemplate) -> Record:
    return {
        "operator": template.operator,
        "name": template.name,
        "author": template.author,
        "strategy": template.strategy,
        "text": template.text,
        "reads": dict(template.reads),
        "needs": list(template.needs),
        "tunables": {name: list(values) for name, values in template.tunables.items()},
        "constraints": [{"must": c.must, "reason": c.reason} for c in template.constraints],
        "unseen": list(template.unseen),
        "seed_configurations": [dict(start) for start in template.seed_configurations],
        **({"prior": asdict(template.prior)} if template.prior else {}),
        **({"parent": template.parent} if template.parent else {}),
    }


def template_of(record: Mapping[str, Any]) -> KernelTemplate:
    return KernelTemplate(
        operator=_text(record, "operator"),
        name=_text(record, "name"),
        author=_text(record, "author"),
        strategy=_text(record, "strategy"),
        text=_text(record, "text"),
        reads={name: _text(record["reads"], name) for name in record["reads"]},
        needs=tuple(_kind(word, str, "needs") for word in record["needs"]),
        tunables={name: tuple(_value(v, name) for v in values) for name, values in record["tunables"].items()},
        constraints=tuple(Constraint(_text(c, "must"), _text(c, "reason")) for c in record["constraints"]),
        unseen=tuple(record.get("unseen", ())),
        seed_configurations=tuple(point_of(start) for start in record.get("seed_configurations", ())),
        prior=_prior(record["prior"]) if "prior" in record else None,
        parent=_text(record, "parent") if "parent" in record else "",
    )


def _prior(record: Mapping[str, Any]) -> Prior:
    names = {key: tuple(_kind(name, str, key) for name in record[key]) for key in ("of", "apart")}
    return Prior(_text(record, "cost"), **names)


def _samples_record(samples: Samples) -> Record:
    return {
        "unit": samples.unit,
        "value": samples.value,
        "low": samples.low,
        "high": samples.high,
        "count": samples.count,
        "counters": dict(samples.counters),
        **({"by_vlen": {str(vlen): value for vlen, value in samples.by_vlen.items()}} if samples.by_vlen else {}),
        **({"choices": list(samples.choices)} if samples.choices else {}),
        **({"under": dict(samples.under)} if samples.under else {}),
    }


def _samples_of(record: Mapping[str, Any]) -> Samples:
    return Samples(
        unit=_text(record, "unit"),
        value=_positive(record, "value"),
        low=_number(record, "low"),
        high=_number(record, "high"),
        count=_whole(record, "count"),
        counters=_numbers(record["counters"]),
        by_vlen={int(vlen): value for vlen, value in _numbers(record.get("by_vlen", {})).items()},
        choices=tuple(_kind(value, int | float, "choices") for value in record.get("choices", ())),
        under=_numbers(record.get("under", {})),
    )


def _kind(value: Any, kinds: Any, name: str) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"'{name}' is {value!r:.60}")
    return value


def _text(record: Mapping[str, Any], name: str) -> str:
    return str(_kind(record[name], str, name))


def _whole(record: Mapping[str, Any], name: str) -> int:
    return int(_kind(record[name], int, name))


def _number(record: Mapping[str, Any], name: str) -> Any:
    """Finite, for the reader of JSON knows no other; as it was written, so that what is written again is the same."""
    return _kind(record[name], int | float, name)


def _numbers(record: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _number(record, name) for name in record}


def _positive(record: Mapping[str, Any], name: str) -> Any:
    value = _number(record, name)
    if value <= 0:
        raise ValueError(f"'{name}' is {value}; expected more than 0")
    return value


def _value(value: Any, name: str) -> Any:
    """Of a tunable: what templates and operators may say, since it becomes part of the C."""
    if not isinstance(_kind(value, int | str, name), int) and not _WORD.fullmatch(value):
        raise ValueError(f"'{name}' is {value!r:.60}; expected a number or a single word")
    return value


def point_of(record: Mapping[str, Any]) -> Point:
    """Raises ValueError for what is none."""
    return Point.of({name: _value(value, name) for name, value in record.items()})
