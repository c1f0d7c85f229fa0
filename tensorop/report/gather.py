"""Everything a report says, as one JSON-able record: from the journal, the manifest and the comparison in a folder.

A part that cannot be told (no product yet, a platform file that is gone) is left out and named under `absent`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import TensoropError, UsageError
from tensorop.model.kernel import Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Finished, Stage
from tensorop.model.winner import by_operator
from tensorop.package import plugged
from tensorop.report import choices, dispatch_map, roofline, threads
from tensorop.specs import files, jsontext, operators, platforms
from tensorop.store import journal
from tensorop.store.history import History, group_of
from tensorop.warm import start

SCHEMA = 1
_SHARE = Path("share") / "tensorop"
_COST_UNITS = {"ns": "ns per 1000 flop", "modelled-cycles": "modelled cycles per 1000 flop"}


def gather(folder: Path, plugins: tuple[Path, ...] = ()) -> dict[str, Any]:
    """The record of the run and product in a folder.

    Keys: schema, run, product, kits, bench, threads, searches, failures, templates, choices, maps, constants,
    roofline, controls, verification, warm_start, notes, absent. Raises UsageError when the folder holds no run,
    JobError when its journal is damaged.
    """
    absent: dict[str, str] = {}

    def part(name: str, make: Callable[[], Any], default: Any) -> Any:
        try:
            return make()
        except (TensoropError, KeyError, ValueError, TypeError) as error:
            absent[name] = f"{type(error).__name__}: {error}" if not isinstance(error, TensoropError) else str(error)
            return default

    manifest = _json(folder / _SHARE / "manifest.json")
    held = part("product", lambda: by_operator(manifest), {}) if manifest else {}
    history = _history(folder, manifest, held)
    bench = _json(folder / _SHARE / "bench.json")
    scaling = _json(folder / threads.KEPT)
    notes = _notes(history)
    begun = notes.pop(start.NOTE, [{}])[-1]
    ended = [item for item in history.replay() if isinstance(item, Finished)]
    loaded = part(
        "operator and platform", lambda: _load(history, list(held), folder / _SHARE / "manifest.json", plugins), None
    )
    record: dict[str, Any] = {
        "schema": SCHEMA,
        "run": _run(history, ended),
        "product": {k: v for k, v in (manifest or {}).items() if k not in ("files", "results")} or None,
        "kits": [kit for of in held.values() for kit in _mapping(of.get("facts")).get("measured", [])],
        "bench": bench,
        "threads": scaling,
        "searches": [_search(history, group) for group in dict.fromkeys(group_of(f.trial) for f in ended)],
        "failures": _failures(ended),
        "templates": _templates(history, ended),
        "choices": [],
        "maps": [],
        "constants": part("constants", lambda: choices.constants(notes.pop("constants", [])), []),
        "roofline": [],
        "controls": notes.pop("controls", []),
        "verification": notes.pop("verification", None)
        or _mapping((manifest or {}).get("results")).get("verification", []),
        "warm_start": [*begun.get("used", ()), *begun.get("unused", ())],
        "absent": absent,
    }
    if loaded is not None:
        found, platform = loaded
        for search in record["searches"]:
            wanted = search["dtype"], bench, search["cost_unit"]
            if search["stage"] != Stage.SINGLE_VLEN:  # whose trials are at one VLEN each
                search["bound"] = part("bound", partial(roofline.bound, platform, *wanted), None)
        for one in found if manifest else ():
            of = _mapping(held.get(one.name))
            record["maps"] += part("maps", partial(dispatch_map.maps, one, of), [])
            record["choices"] += part("choices", partial(choices.choices, one, of, history), [])
        if bench:
            record["roofline"] = part("roofline", lambda: roofline.rooflines(found[0], platform, bench), [])
    if not manifest:
        absent["product"] = "the run has not come to a library yet"
    if not bench:
        absent["bench"] = "the run has not compared its library yet; `tensorop bench DIR` does"
    notes.pop("dispatch", None)  # costs of every variant, from which the choice was made
    record["notes"] = notes
    return record


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _json(path: Path) -> dict[str, Any] | None:
    try:
        found = jsontext.loads(files.read(path, files.JSON))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {said}", hint="make the product again") from None
    return found if isinstance(found, dict) else None


def _history(folder: Path, manifest: Mapping[str, Any] | None, held: Mapping[str, Any]) -> History:
    """The run's; of a product of several operators, which no run made, there is none."""
    if manifest is None or journal.journal_path(folder).exists():
        return journal.read(folder)
    if len(held) < 2:
        raise UsageError(
            f"{folder} holds a product without the journal of a search, which a report is of",
            hint=f"`{paths.command('inspect', folder)}` says what the product is",
        )
    return History(facts={"operator": ", ".join(held), "platform": _mapping(manifest["platform"])["name"]})


def _load(
    history: History, names: Sequence[str], manifest: Path, plugins: tuple[Path, ...]
) -> tuple[list[Operator], Platform]:
    with plugged.explained(manifest, plugins):
        found = [operators.load(name, plugins) for name in names or [str(history.facts["operator"])]]
        return found, platforms.load(str(history.facts["platform"]), plugins)


def _notes(history: History) -> dict[str, Any]:
    """By name; a name noted several times has a list, a list noted several times (by each process) its last."""
    out: dict[str, Any] = {}
    for name, data in history.notes:
        if isinstance(data, list):
            out[name] = data
        else:
            out.setdefault(name, []).append(data)
    return out


def _seconds(ended: Sequence[Finished]) -> dict[str, float]:
    """What trials took together, by pipeline stage."""
    total: Counter[str] = Counter()
    for finished in ended:
        total.update(finished.seconds)
    return {name: round(seconds, 1) for name, seconds in total.items()}


def _run(history: History, ended: Sequence[Finished]) -> dict[str, Any]:
    return {
        "facts": dict(history.facts),
        "processes": history.sessions,
        "seconds": round(history.seconds, 1),
        "trials": len(ended),
        "passed": sum(f.outcome.ok for f in ended),
        "seconds_by_stage": _seconds(ended),
    }


def _search(history: History, group: Any) -> dict[str, Any]:
    """One stage of one dtype: every trial's cost in order, and the best so far beside it."""
    stage, dtype, round_ = group
    ended = history.ended(group)
    best: Finished | None = None
    trials = []
    for finished in ended:
        cost = finished.score.cost if finished.outcome.ok else None
        if cost is not None and (best is None or finished.rank < best.rank):
            best = finished
        trials.append(
            {
                **_named(finished.trial.variant),
                "kind": finished.outcome.kind.value,
                "cost": cost,
                "best": None if best is None else best.score.cost,
            }
        )
    passed = Counter(len(finished.score.per_problem) for finished in ended if finished.outcome.ok)
    units = {samples.unit for finished in ended for samples in finished.score.per_problem.values()}
    return {
        "stage": stage.value,
        "dtype": dtype,
        "round": round_,
        "unit": ", ".join(_COST_UNITS.get(unit, unit) for unit in sorted(units)),
        "cost_unit": ", ".join(sorted(units)),
        "seconds": round(history.spent(group), 1),
        "bound": None,
        "kinds": dict(Counter(str(t["kind"]) for t in trials)),
        "problems": dict(sorted(passed.items(), reverse=True)),
        "best": None if best is None else {**_named(best.trial.variant), "cost": best.score.cost},
        "trials": trials,
    }


def _named(variant: Variant) -> dict[str, Any]:
    vlen = {"vlen": variant.kernel.vlen} if variant.kernel.vlen else {}
    ids = {"id": variant.id, "kernel": variant.kernel.id}
    return {**ids, "template": variant.template.name, "point": dict(variant.point), **vlen}


def _failures(ended: Sequence[Finished]) -> list[dict[str, Any]]:
    """By kind and stage of the pipeline, with the first of each as the example."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for finished in ended:
        outcome, trial = finished.outcome, finished.trial
        if outcome.ok:
            continue
        kind, where = outcome.kind.value, outcome.where
        example = {"dtype": trial.dtype, **_named(trial.variant), "message": outcome.message}
        entry = found.setdefault((kind, where), {"kind": kind, "where": where, "count": 0, "example": example})
        entry["count"] += 1
    return sorted(found.values(), key=lambda entry: -int(entry["count"]))


def _templates(history: History, ended: Sequence[Finished]) -> list[dict[str, Any]]:
    """Each template with its first-stage trials and best cost by dtype."""
    out = []
    for template in history.templates.values():
        mine = [f for f in ended if f.trial.stage is Stage.MICRO and f.trial.variant.template.digest == template.digest]
        costs: dict[str, list[float]] = {}
        for finished in mine:
            if finished.outcome.ok and finished.score.cost is not None:
                costs.setdefault(finished.trial.dtype, []).append(finished.score.cost)
        out.append(
            {
                "name": template.name,
                "author": template.author,
                "strategy": template.strategy.strip(),
                "tunables": {name: list(values) for name, values in template.tunables.items()},
                "trials": len(mine),
                "passed": sum(f.outcome.ok for f in mine),
                "best": {dtype: min(found) for dtype, found in costs.items()},
            }
        )
    return out


def facts_line(facts: Mapping[str, Any]) -> str:
    """`dtypes f32 f64, 16 shapes, ...` for the head of a page; digests are for machines."""
    words = []
    for key, value in facts.items():
        if value in (None, "", []):
            continue
        if key == "shapes":
            words.append(f"{len(value)} shape{'s' if len(value) > 1 else ''}")
        elif key not in ("operator", "platform") and " and " not in key and "digest" not in key:
            words.append(f"{key} {' '.join(map(str, value)) if isinstance(value, list) else value}")
    return ", ".join(words)
