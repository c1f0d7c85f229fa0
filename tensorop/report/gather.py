"""Collects a report's record from the journal, the manifest and the comparisons in a folder.

A part that cannot be read (no product yet, a deleted platform file) is left out and named under `absent`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from tensorop import paths
from tensorop.errors import TensoropError, UsageError
from tensorop.model.bench import Bench
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Finished, Stage
from tensorop.model.winner import OperatorRecord, by_operator
from tensorop.package import plugin_record
from tensorop.package.manifest import read
from tensorop.report import choices, dispatch_map, roofline, rounds, searches, threads
from tensorop.report.choices import Choices, CloseChoices
from tensorop.report.dispatch_map import DispatchMap
from tensorop.report.roofline import Roofline
from tensorop.report.rounds import Rounds
from tensorop.report.searches import Failures, Run, SearchSummary, TemplateUse
from tensorop.specs import benches, operators, platforms
from tensorop.store import journal
from tensorop.store.history import History, group_of
from tensorop.warm import start

SCHEMA = 1
_SHARE = Path("share") / "tensorop"
_AGAIN = "build the product again"

T = TypeVar("T")
Noted = Sequence[Mapping[str, object]]  # JSON values from the journal


@dataclass(frozen=True)
class Report:
    run: Run
    product: Mapping[str, object] | None  # the manifest without its files and results
    kits: Noted  # whose measurements the choice uses
    bench: Bench | None
    threads: Sequence[Bench]  # one for each number of threads
    searches: Sequence[SearchSummary]
    steps: Sequence[str]  # of trials, in their order
    failures: Sequence[Failures]
    templates: Sequence[TemplateUse]
    author: Rounds | None  # the calls to a language model
    choices: Sequence[Choices]
    maps: Sequence[DispatchMap]
    constants: Sequence[CloseChoices]
    roofline: Sequence[Roofline]
    controls: Noted
    verification: Noted
    warm_start: Sequence[str]
    sessions: Noted  # the processes of the run: date and command line of each
    seed: str  # the full seed of the verification calls; "" if unknown
    notes: Mapping[str, object]  # the journal's other notes
    absent: Mapping[str, str]  # part -> the reason for its absence

    def to_json(self) -> dict[str, object]:
        record: dict[str, object] = {"schema": SCHEMA, **asdict(replace(self, bench=None, threads=()))}
        record["bench"] = self.bench.to_json() if self.bench else None
        record["threads"] = threads.record(self.threads) if self.threads else None
        return record


def gather(folder: Path, plugins: tuple[Path, ...] = ()) -> Report:
    """The record of the run and product in a folder.

    Raises UsageError if the folder has no run or a damaged comparison, JobError if its journal is damaged.
    """
    absent: dict[str, str] = {}

    def part(name: str, make: Callable[[], T], default: T) -> T:
        try:
            return make()
        except (TensoropError, KeyError, ValueError, TypeError) as error:
            absent[name] = f"{type(error).__name__}: {error}" if not isinstance(error, TensoropError) else str(error)
            return default

    manifest = _manifest(folder / _SHARE / "manifest.json")
    held: dict[str, OperatorRecord] = {}
    if manifest:
        held = part("product", lambda: by_operator(manifest), held)
    history = _history(folder, manifest, held)
    bench = next(iter(_comparisons(folder / _SHARE / "bench.json")), None)
    notes = _notes(history)
    begun = notes.pop(start.NOTE, [{}])[-1]
    for name in ("dispatch", "kit", "counted"):  # single measurements are not shown
        notes.pop(name, None)
    ended = [item for item in history.replay() if isinstance(item, Finished)]
    loaded = part(
        "operator and platform", lambda: _load(history, list(held), folder / _SHARE / "manifest.json", plugins), None
    )
    found = [searches.search(history, group) for group in dict.fromkeys(group_of(f.trial) for f in ended)]
    maps: list[DispatchMap] = []
    chosen: list[Choices] = []
    roofs: list[Roofline] = []
    constants: list[CloseChoices] = []
    if loaded is not None:
        loaded_operators, platform = loaded

        def bounded(one: SearchSummary) -> SearchSummary:
            if one.stage == Stage.SINGLE_VLEN:  # each trial has its own VLEN
                return one
            return replace(one, bound=roofline.bound(platform, one.dtype, bench, one.cost_unit))

        found = [part("bound", partial(bounded, one), one) for one in found]
        for one in loaded_operators if manifest else ():
            dtypes = _mapping(_mapping(held.get(one.name)).get("dtypes"))
            if dtypes and not any("tree" in of or "by_vlen" in of for of in dtypes.values()):
                continue  # a GPU's library chooses by its cost model
            maps += part("maps", partial(dispatch_map.maps, one, dtypes), [])
            chosen += part("choices", partial(choices.choices, one, dtypes, history, folder / _SHARE), [])
        if bench:
            roofs = part("roofline", lambda: roofline.rooflines(loaded_operators[0], platform, bench), [])
    constants = part("constants", lambda: choices.close_choices(notes.pop("constants", [])), constants)
    if not manifest:
        absent["product"] = "the run has not come to a library yet"
    if not bench:
        absent["bench"] = "the run has not compared its library yet; `tensorop bench DIR` does"
    results = _mapping((manifest or {}).get("results"))
    uses = searches.templates(history, ended)
    if loaded is not None:
        named = _list(history.facts.get("dtypes"))
        uses = [
            use if use.trials else replace(use, untried=searches.untried(loaded[1], template, named, ended))
            for template, use in zip(history.templates.values(), uses, strict=True)
        ]
    authored: Rounds | None = None
    authored = part("language model", lambda: rounds.rounds(folder, uses, chosen), authored)
    return Report(
        run=searches.run(history, ended),
        product={k: v for k, v in (manifest or {}).items() if k not in ("files", "results")} or None,
        kits=[kit for of in held.values() for kit in _list(_mapping(of.get("facts")).get("measured"))],
        bench=bench,
        threads=_comparisons(folder / threads.KEPT),
        searches=found,
        steps=list(dict.fromkeys(step for search in found for step in search.steps)),
        failures=searches.failures(ended),
        templates=uses,
        author=authored,
        choices=chosen,
        maps=maps,
        constants=constants,
        roofline=roofs,
        controls=notes.pop("controls", []),
        verification=notes.pop("verification", None) or results.get("verification", []),
        warm_start=[*begun.get("used", ()), *begun.get("unused", ())],
        sessions=notes.pop(journal.SESSION, []),
        seed=str([*notes.pop("seed", []), ""][0]),
        notes=notes,
        absent=absent,
    )


def _mapping(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _manifest(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = read(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise UsageError(f"{path} cannot be read: {why}", hint=_AGAIN) from None
    return found


def _comparisons(path: Path) -> tuple[Bench, ...]:
    return benches.read(path, _AGAIN) if path.exists() else ()


def _history(folder: Path, manifest: Mapping[str, Any] | None, held: Mapping[str, object]) -> History:
    """The run's history; an empty one for a product of several operators, which no search made."""
    if manifest is None or journal.journal_path(folder).exists():
        return journal.read(folder)
    if len(held) < 2:
        raise UsageError(
            f"{folder} has no journal of a search, so there is nothing to report",
            hint=f"run `{paths.command('inspect', folder)}` to see how the library was made",
        )
    return History(facts={"operator": ", ".join(held), "platform": _mapping(manifest["platform"])["name"]})


def _load(
    history: History, names: Sequence[str], manifest: Path, plugins: tuple[Path, ...]
) -> tuple[list[Operator], Platform]:
    with plugin_record.explained(manifest, plugins):
        found = [operators.load(name, plugins) for name in names or [str(history.facts["operator"])]]
        return found, platforms.load(str(history.facts["platform"]), plugins)


def _notes(history: History) -> dict[str, Any]:
    """The journal's notes by name: a list of each name's notes. If a note is itself a list, the last one counts."""
    out: dict[str, Any] = {}
    for name, data in history.notes:
        if isinstance(data, list):
            out[name] = data
        else:
            out.setdefault(name, []).append(data)
    return out
