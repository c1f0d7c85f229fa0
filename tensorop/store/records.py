"""Trials and their ends as JSON objects and back: the journal's records.

    {"schema": 5, "event": "run",       "t", "facts": {...}}                                first line: what the run is
    {"schema": 5, "event": "resumed",   "t"}                                                a later process went on
    {"schema": 5, "event": "template",     "t", "digest", "template": {...}, "joined"}            a template in full
    {"schema": 5, "event": "started",   "t", "key", "round", "stage", "dtype", "template",
        "configuration", "vlen", "blocking", "kernel", "variant", "race", "only"}
    {"schema": 5, "event": "text",      "t", "variant", "id", "packed"}                     a kernel's C, once
    {"schema": 5, "event": "finished",  "t", "key", "round", "outcome", "score", "seconds", "text"}
    {"schema": 5, "event": "abandoned", "t", "key", "round", "outcome"}                     stopped from outside
    {"schema": 5, "event": "note",      "t", "name", "data"}                                any other fact worth keeping

joined: of a template that came late: stage, dtype, round of the search, and how many of its trials had ended.
t: seconds the run has taken so far, all its processes together.
template: the digest of one in an earlier line; kernel, variant: ids of what the four before them make.
variant of a text: the id of the one it belongs to, as it is built (instantiate.as_built)
race: where the trial may end early (model.trial.Rung), by what had ended when it began
only: labels of the problems to measure, if these are a part of the stage's
packed: kernel and edge, a NUL between them, by zlib and base64; text: the id of what a trial that passed was made of.
"""

from __future__ import annotations

import base64
import re
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from tensorop.model.kernel import Constraint, Kernel, KernelTemplate, KernelText, Prior, RegionMark, Variant
from tensorop.model.point import Point
from tensorop.model.trial import Finished, Kind, Outcome, Rung, Samples, Score, Stage, Trial

SCHEMA = 5
CONFIGURATIONS = "configurations"  # note of points that a language model gave for a known template
LOG_TAIL = 4096
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}")
MAX_TEXT = 16 << 20  # characters of a text, unpacked

Record = dict[str, object]


def trial_record(trial: Trial) -> Record:
    return {
        "key": trial.key,  # hash of everything that decides the trial's result
        "round": trial.round,  # number of the search that asked for the trial
        "stage": trial.stage.value,  # part of the search: micro, blocking and so on; `kernels`: of a GPU, only built
        "dtype": trial.dtype,  # element type
        "template": trial.variant.template.digest,  # digest of a template in an earlier line
        "configuration": dict(trial.variant.kernel.configuration),  # values of the micro-kernel's tunables
        "vlen": trial.variant.kernel.vlen,  # VLEN in bits that the kernel is written for; 0: any
        "blocking": dict(trial.variant.blocking),  # values of the driver's tunables; for GPUs the layout
        "kernel": trial.variant.kernel.id,  # id of template, dtype, configuration and VLEN
        "variant": trial.variant.id,  # id of kernel and blocking
        # where the trial may end early: problems measured so far, highest cost by VLEN, factor to the whole cost
        # by class, and (class of problems, VLEN, highest cost) of which one is enough
        **({"race": [_rung_record(rung) for rung in trial.race]} if trial.race else {}),
        **({"only": list(trial.only)} if trial.only else {}),  # labels of the problems that it measures, if not all
    }


def facts_of(record: Mapping[str, object]) -> Record:
    """What a run is. Raises ValueError where its dtypes are not different words."""
    facts = dict(section(record, "facts"))
    dtypes = words(facts, "dtypes")
    if len(set(dtypes)) != len(dtypes):
        raise ValueError(f"'dtypes' is {dtypes!r:.60}; expected different ones")
    return facts


def trial_of(record: Mapping[str, object], templates: Mapping[str, KernelTemplate]) -> Trial:
    """templates: by digest, those that the journal has. Raises ValueError where the parts have another id."""
    if (digest := text_in(record, "template")) not in templates:
        raise ValueError(f"no template {digest:.60} is in an earlier line")
    kernel = Kernel(
        templates[digest], text_in(record, "dtype"), point_of(section(record, "configuration")), _whole(record, "vlen")
    )
    variant = Variant(kernel, point_of(section(record, "blocking")))
    if (kernel.id, variant.id) != (record["kernel"], record["variant"]):
        raise ValueError(f"the variant {record['variant']!r:.60} is another one: {variant.id}")
    race = tuple(_rung(*rung) for rung in _list(record, "race"))
    return Trial(*end_of(record), Stage(text_in(record, "stage")), variant, race, words(record, "only"))


def end_of(record: Mapping[str, object]) -> tuple[str, int]:
    """A trial's key and round."""
    return text_in(record, "key"), _whole(record, "round")


def joined_of(record: Mapping[str, object]) -> tuple[tuple[Stage, str, int], int]:
    """The search that a template came to late, and how many of its trials had ended."""
    stage, dtype, number, after = _list(record, "joined")
    return (Stage(stage), str(dtype), int(number)), int(after)


def points_record(template: KernelTemplate, group: tuple[Stage, str, int], ended: int) -> Record:
    """The seed configurations of a known template that join a search after so many trials."""
    points = [dict(point) for point in template.seed_configurations]
    return {"joined": [*group, ended], "template": template.digest, "points": points}


def points_of(record: Mapping[str, object]) -> tuple[tuple[Stage, str, int], str, tuple[Point, ...], int]:
    """The search, the digest of the template, its points, and how many trials had ended."""
    group, after = joined_of(record)
    return group, text_in(record, "template"), tuple(point_of(one) for one in _list(record, "points")), after


def _rung_record(rung: Rung) -> list[object]:
    return [rung.problems, dict(rung.bars), dict(rung.beyond), [list(one) for one in rung.of_class]]


def _rung(problems: object, bars: object, beyond: object, of_class: object = None) -> Rung:
    older = isinstance(beyond, (int, float))  # one factor for all classes, which a trial was dropped from together
    found = {"problems": problems, "bars": bars, "beyond": {} if older else beyond, "of_class": of_class or []}
    costs = tuple((int(vlen), cost) for vlen, cost in _numbers(found, "bars").items())
    best = tuple((str(name), int(vlen), float(bar)) for name, vlen, bar in _list(found, "of_class"))
    return Rung(_whole(found, "problems"), costs, tuple(_numbers(found, "beyond").items()), best)


def outcome_record(outcome: Outcome) -> Record:
    """Empty fields are left out; of the log its last 4 kB are kept."""
    record: Record = {"kind": outcome.kind.value}  # `ok`, or one of the failures listed below
    if outcome.where:
        record["where"] = outcome.where  # author, render, build, verify or measure
    if outcome.message:
        record["message"] = outcome.message[-LOG_TAIL:]  # what is wrong, in one sentence
    if outcome.log:
        record["log"] = outcome.log[-LOG_TAIL:]  # end of the tool's own output
    return record


def outcome_of(record: Mapping[str, object]) -> Outcome:
    texts = {name: text_in(record, name) for name in ("where", "message", "log") if name in record}
    return Outcome(Kind(text_in(record, "kind")), **texts)


def finished_record(finished: Finished) -> Record:
    return {
        "key": finished.trial.key,  # of the line `started`
        "round": finished.trial.round,  # of the line `started`
        "outcome": outcome_record(finished.outcome),  # how the trial ended
        "score": {  # what the tuner learns
            "cost": finished.score.cost,  # lower is better; null: the trial failed
            "per_problem": {name: _samples_record(s) for name, s in finished.score.per_problem.items()},  # by problem
        },
        "seconds": dict(finished.seconds),  # time spent, by step
        **({"text": finished.text} if finished.text else {}),  # id of the C that was judged, if the trial passed
    }


def finished_of(record: Mapping[str, object], trial: Trial) -> Finished:
    score = section(record, "score")
    problems = section(score, "per_problem")
    return Finished(
        trial=trial,
        outcome=outcome_of(section(record, "outcome")),
        score=Score(
            None if score["cost"] is None else _positive(score, "cost"),
            {name: _samples_of(section(problems, name)) for name in problems},
        ),
        seconds=_numbers(record, "seconds"),
        text=text_in(record, "text") if "text" in record else "",
    )


def text_record(text: KernelText) -> Record:
    packed = zlib.compress(f"{text.kernel}\0{text.edge}".encode(), 9)
    return {
        "variant": text.variant,  # id of the variant, as it is built
        "id": text.id,  # digest of the C
        "packed": base64.b64encode(packed).decode(),  # kernel and edge kernel, a NUL between them, zlib, base64
    }


def text_of(record: Mapping[str, object]) -> KernelText:
    """Raises ValueError where the text is not the one of its id."""
    unpacking = zlib.decompressobj()
    try:
        data = unpacking.decompress(base64.b64decode(text_in(record, "packed"), validate=True), MAX_TEXT)
    except zlib.error as error:
        raise ValueError(f"a text that cannot be unpacked: {error}") from error
    kernel, _, edge = data.decode().partition("\0")
    text = KernelText(str(record["variant"]), kernel, edge)
    if text.id != record["id"]:
        raise ValueError(f"the text {record['id']} is another one: {text.id}")
    return text


def template_record(template: KernelTemplate) -> Record:
    return {
        "operator": template.operator,  # operator that the template computes
        "name": template.name,  # name of the template's file
        "author": template.author,  # `offline`: shipped; `plugin`: your own; otherwise a model's name
        "strategy": template.strategy,  # the idea, in one sentence
        "text": template.text,  # the Jinja2 text
        "reads": dict(template.reads),  # how each operand is read: packed or in place
        "needs": list(template.needs),  # primitives that the text uses
        "tunables": {name: list(values) for name, values in template.tunables.items()},  # values to choose from
        "constraints": [{"must": c.must, "reason": c.reason} for c in template.constraints],  # what configurations obey
        "unseen": list(template.unseen),  # tunables that the micro stage cannot tell apart
        "seed_configurations": [dict(start) for start in template.seed_configurations],  # tried first
        # expected cost before any measurement, which orders the search
        **({"prior": asdict(template.prior)} if template.prior else {}),
        **({"parent": template.parent} if template.parent else {}),  # digest of the template that this one revises
        # regions of the text, each with the number of lines before it
        **({"regions": [[one.name, one.line] for one in template.regions]} if template.regions else {}),
        **({"plan": template.plan} if template.plan else {}),  # what it keeps, moves and computes, a statement a line
        # kernels for a GPU only: names and expressions for the launch and the cost, in their order
        **{name: [*of.items()] for name, of in (("facts", template.facts), ("model", template.model)) if of},
    }


def template_of(record: Mapping[str, object]) -> KernelTemplate:
    reads, tunables = section(record, "reads"), section(record, "tunables")
    prior = section(record, "prior") if "prior" in record else None
    return KernelTemplate(
        operator=text_in(record, "operator"),
        name=text_in(record, "name"),
        author=text_in(record, "author"),
        strategy=text_in(record, "strategy"),
        text=text_in(record, "text"),
        reads={name: text_in(reads, name) for name in reads},
        needs=words(record, "needs"),
        tunables={name: tuple(_value(v, name) for v in _list(tunables, name)) for name in tunables},
        constraints=tuple(Constraint(text_in(c, "must"), text_in(c, "reason")) for c in _list(record, "constraints")),
        unseen=words(record, "unseen"),
        seed_configurations=tuple(point_of(start) for start in _list(record, "seed_configurations")),
        prior=Prior(text_in(prior, "cost"), words(prior, "of"), words(prior, "apart")) if prior else None,
        parent=text_in(record, "parent") if "parent" in record else "",
        plan=text_in(record, "plan") if "plan" in record else "",
        regions=tuple(_mark_of(one) for one in _list(record, "regions")),
        facts=_texts(record, "facts"),
        model=_texts(record, "model"),
    )


def _mark_of(pair: object) -> RegionMark:
    name, line = _kind(pair, list, "regions")
    return RegionMark(str(_kind(name, str, "regions")), int(_kind(line, int, "regions")))


def _texts(record: Mapping[str, object], name: str) -> dict[str, str]:
    pairs = [_kind(pair, list, name) for pair in _list(record, name)]
    return {str(_kind(key, str, name)): str(_kind(text, str, name)) for key, text in pairs}


def _samples_record(samples: Samples) -> Record:
    return {
        "unit": samples.unit,  # `ns` by a clock, or `modelled-cycles`
        "value": samples.value,  # cost of one call
        "low": samples.low,  # lower end of the interval
        "high": samples.high,  # upper end of the interval
        "count": samples.count,  # number of samples
        "counters": dict(samples.counters),  # instructions, cache misses and so on of one call
        # cost by VLEN, if the value is the mean over several
        **({"by_vlen": {str(vlen): value for vlen, value in samples.by_vlen.items()}} if samples.by_vlen else {}),
        # cost under each choice of the board model's assumed constants, the best fit first
        **({"choices": list(samples.scenario_costs)} if samples.scenario_costs else {}),
        # cost under each alternative behaviour of the board model
        **({"under": dict(samples.alternative_costs)} if samples.alternative_costs else {}),
    }


def _samples_of(record: Mapping[str, object]) -> Samples:
    return Samples(
        unit=text_in(record, "unit"),
        value=_positive(record, "value"),
        low=_number(record, "low"),
        high=_number(record, "high"),
        count=_whole(record, "count"),
        counters=_numbers(record, "counters"),
        by_vlen={int(vlen): value for vlen, value in _numbers(record, "by_vlen").items()},
        scenario_costs=tuple(_kind(value, int | float, "choices") for value in _list(record, "choices")),
        alternative_costs=_numbers(record, "under"),
    )


def _kind(value: Any, kinds: Any, name: str) -> Any:
    if not isinstance(value, kinds) or isinstance(value, bool):
        raise ValueError(f"'{name}' is {value!r:.60}")
    return value


def text_in(record: Mapping[str, object], name: str) -> str:
    return str(_kind(record[name], str, name))


def _whole(record: Mapping[str, object], name: str) -> int:
    return int(_kind(record[name], int, name))


def _number(record: Mapping[str, object], name: str) -> Any:
    """Finite, for the reader of JSON knows no other; as it was written, so that what is written again is the same."""
    return _kind(record[name], int | float, name)


def _numbers(record: Mapping[str, object], name: str) -> dict[str, Any]:
    found = section(record, name) if name in record else {}
    return {key: _number(found, key) for key in found}


def section(record: Mapping[str, object], name: str) -> Mapping[str, object]:
    """An object of JSON in another."""
    found: Mapping[str, object] = _kind(record[name], dict, name)
    return found


def _list(record: Mapping[str, object], name: str) -> list[Any]:
    found: list[Any] = _kind(record.get(name, []), list, name)
    return found


def words(record: Mapping[str, object], name: str) -> tuple[str, ...]:
    """A list of texts; empty where there is none."""
    return tuple(_kind(word, str, name) for word in _list(record, name))


def _positive(record: Mapping[str, object], name: str) -> Any:
    value = _number(record, name)
    if value <= 0:
        raise ValueError(f"'{name}' is {value}; expected more than 0")
    return value


def _value(value: Any, name: str) -> Any:
    """Of a tunable: what templates and operators may say, since it becomes part of the C."""
    if not isinstance(_kind(value, int | str, name), int) and not _WORD.fullmatch(value):
        raise ValueError(f"'{name}' is {value!r:.60}; expected a number or a single word")
    return value


def point_of(record: Mapping[str, object]) -> Point:
    """Raises ValueError for what is none."""
    return Point.of({name: _value(value, name) for name, value in record.items()})
