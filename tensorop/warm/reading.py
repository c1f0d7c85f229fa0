"""Reads what `--warm-start` names: journals, products, winners files, and folders of them.

A winners file has a line for each variant, the best first. Its first line says where they come from and how many lines
follow. For a dtype it may have the choice of a library: its variants, and its trees as in a manifest. The shipped ones,
and those of plug-in folders, are `platforms/winners/*.jsonl`.

    {"schema": 1, "event": "winners", "platform", "tensorop", "date", "made", "lines"}
    {"schema": 1, "event": "winner", "operator", "dtype", "template", "point": {...}}
    {"schema": 1, "event": "choice", "operator", "dtype", "variants": [{"template", "point"}], "tree": {...}, "regret",
     "of_routines": {NAME: value}}
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, cast

from tensorop import paths
from tensorop.errors import JobError, TensoropError, UsageError, of_system
from tensorop.model.job import Job
from tensorop.model.point import Point
from tensorop.model.trial import Stage
from tensorop.model.winner import DtypeRecord, StartPoint, asked, by_operator, trees_of
from tensorop.specs import files, jsontext, operators
from tensorop.store import journal
from tensorop.store.history import History
from tensorop.store.records import point_of
from tensorop.trial import selection

AUTO, NONE = "auto", "none"  # words of `--warm-start`; any other value is a path
SCHEMA = 1
FOLDER = "winners"
MANIFEST = Path("share") / "tensorop" / "manifest.json"
MOST = 4096  # lines of a file
MOST_VARIANTS = 64  # of a choice
HEAD = ("platform", "tensorop", "date", "made")


@dataclass(frozen=True)
class WarmSource:
    """The content of a journal or a winners file."""

    path: Path
    name: str  # its name for the user
    platform: str
    known: Mapping[tuple[str, str], Sequence[StartPoint]]  # (operator, dtype) -> variants, the best first
    choices: Mapping[tuple[str, str], DtypeRecord] = field(default_factory=dict)  # those of libraries
    remark: str = ""  # a warning about the file
    is_run: bool = False  # a journal


def read(job: Job) -> tuple[list[WarmSource], list[str]]:
    """The sources that the job's `warm_start` names, and a warning for each useless file.

    Raises UsageError for a path that does not exist.
    """
    found, remarks = [], []
    for path in _files(job):
        try:
            source = read_product(path) if path.name == MANIFEST.name else None
            source = source or (_journal(path) if _is_journal(path) else read_winners(path))
        except TensoropError as error:
            remarks.append(f"a warm-start file is skipped: {error.message}")
            continue
        found.append(of_base(source, job.plugins))
        remarks += [source.remark] if source.remark else []
    if not found and not remarks and job.warm_start not in (AUTO, NONE):
        remarks.append(f"--warm-start {job.warm_start} has no effect: the folder has no journal (*.jsonl) or product")
    return found, remarks


def of_history(history: History) -> dict[tuple[str, str], list[StartPoint]]:
    """A journal's best variants: for each dtype the few that are best together, and the best direct variant."""
    operator = str(history.facts["operator"])
    found = {}
    for dtype in history.dtypes:
        ended = {f.trial.variant.id: f for f in history.ended((Stage.BLOCKING, dtype, 0)) if f.outcome.ok}
        costs = {
            name: {(p, v): c for p, s in f.score.per_problem.items() for v, c in (s.by_vlen or {0: s.value}).items()}
            for name, f in ended.items()
        }
        whole = [ended[name].trial.variant for name in selection.choose(costs)]
        small = [f for f in history.ended((Stage.SMALLEST, dtype, 0)) if f.outcome.ok and f.score.cost]
        best = [min(small, key=lambda f: f.score.cost or 0.0).trial.variant] if small else []
        found[operator, str(dtype)] = [StartPoint(variant.template.name, variant.point) for variant in (*whole, *best)]
    return found


def of_base(source: WarmSource, plugins: tuple[Path, ...] = ()) -> WarmSource:
    """The source with each extending operator's kernels under the name of its base, whose search made them."""

    def base(of: tuple[str, str]) -> tuple[str, str]:
        try:
            return operators.load(of[0], plugins).folder.name, of[1]
        except TensoropError:  # an operator that is not here
            return of

    known: dict[tuple[str, str], list[StartPoint]] = {}
    for of, points in source.known.items():
        known.setdefault(base(of), []).extend(points)
    return replace(source, known=known, choices={base(of): choice for of, choice in source.choices.items()})


def _files(job: Job) -> Iterator[Path]:
    if job.warm_start == AUTO:
        earlier = journal.journal_path(job.out)
        yield from [earlier] if job.fresh and earlier.is_file() else []
        for folder in paths.plugin_dirs("platforms", job.plugins):
            yield from sorted((folder / FOLDER).glob("*.jsonl"))
    elif job.warm_start != NONE:
        path = Path(job.warm_start)
        if not (path.is_file() or path.is_dir()):
            what = "it must be a file or a folder" if path.exists() else "the file does not exist"
            raise UsageError(
                f"--warm-start {path}: {what}",
                hint="use auto, none, a journal, a file of configurations or a product's folder",
            )
        inside = next((one for one in (journal.journal_path(path), path / MANIFEST) if one.is_file()), None)
        if path.is_file() or inside is not None:
            yield inside or path
        else:
            yield from sorted({*path.glob("*.jsonl"), *path.glob(str(journal.journal_path(Path("*"))))})


def _is_journal(path: Path) -> bool:
    try:
        with io.BufferedReader(files.opened(path, files.JOURNAL)) as file:
            record = jsontext.loads(file.readline(1 << 20))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("event") == "run"


def _journal(path: Path) -> WarmSource:
    history = journal.load(path)
    product = path.with_name(MANIFEST.name)
    choices: Mapping[tuple[str, str], DtypeRecord] = {}
    remark = ""
    if product.is_file():
        try:
            choices = read_product(product).choices
        except UsageError as error:
            remark = f"the choice of a library is not used: {error.message}"
    try:
        platform = str(history.facts["platform"])
        return WarmSource(path, f"{platform}'s journal", platform, of_history(history), choices, remark, is_run=True)
    except (KeyError, TypeError) as error:
        raise JobError(f"{path}, line 1: the facts of the run lack {error}") from None


def read_product(path: Path) -> WarmSource:
    """Reads a product's manifest: its variants, and the choice among them. Raises UsageError for a damaged one."""
    try:
        manifest = jsontext.loads(files.read(path, files.JSON))
        name = str(manifest["platform"]["name"])
        choices = {
            (operator, dtype): choice_of(record)
            for operator, of in by_operator(manifest).items()
            for dtype, record in of["dtypes"].items()
            if "tree" in record or "by_vlen" in record  # a GPU's library has none
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise UsageError(f"{path} is no manifest of a product: {type(error).__name__} {error}") from None
    known = {
        of: [StartPoint(one["template"], Point.of(one["point"])) for one in choice["variants"]]
        for of, choice in choices.items()
    }
    return WarmSource(path, f"{name}'s product", name, known, choices)


def choice_of(record: Mapping[str, Any]) -> DtypeRecord:
    """The part of a dtype's record that chooses. Raises KeyError, TypeError or ValueError for an invalid one."""
    variants: list[Any] = []
    for one in record["variants"]:
        variants.append({"template": str(one["template"]), "point": dict(point_of(one["point"]))})
        if "specialisations" in one:
            variants[-1]["specialisations"] = [int(vlen) for vlen in one["specialisations"]]
    found: dict[str, Any] = {"variants": variants}
    found |= {name: record[name] for name in ("tree", "regret", "by_vlen") if name in record}
    if "direct" in record:
        found["direct"] = {name: int(record["direct"][name]) for name in ("variant", "most_flops")}
    if "of_routines" in record:
        found["of_routines"] = {str(name): int(value) for name, value in record["of_routines"].items()}
    choice = cast(DtypeRecord, found)
    if not 0 < len(variants) <= MOST_VARIANTS:
        raise ValueError(f"{len(variants)} variants; expected 1 to {MOST_VARIANTS}")
    for tree in trees_of(choice):
        asked(tree.root)  # its levels are few
        if not isinstance(tree.regret, float | int | None):
            raise ValueError("the key 'regret' must be a number or null")
    return choice


def read_winners(path: Path) -> WarmSource:
    """Reads a winners file. Raises UsageError with file, place and what was expected."""
    with of_system(UsageError, f"{path} cannot be read"):
        lines = files.plain(path, files.LINES).split(b"\n")
    if len(lines) > MOST:
        raise UsageError(f"{path} has {len(lines)} lines; a file of configurations has at most {MOST}")
    known: dict[tuple[str, str], list[StartPoint]] = {}
    choices: dict[tuple[str, str], DtypeRecord] = {}
    head: dict[str, Any] = {}
    for number, line in enumerate(lines[:-1], 1):  # a line without its newline was cut off
        if not line.strip():
            continue
        try:
            record = jsontext.loads(line)
            if record["event"] not in (("winner", "choice") if head else ("winners",)):
                raise ValueError(f"the event {record['event']!r:.40}")
            if not jsontext.is_schema(record["schema"], SCHEMA):
                raise ValueError(f"schema {record['schema']!r:.40}; this version reads {SCHEMA}")
            if not head:
                head = {name: str(record[name]) for name in HEAD} | {"lines": int(record["lines"])}
                continue
            of = str(record["operator"]), str(record["dtype"])
            if record["event"] == "choice":
                choices[of] = choice_of(record)
            else:
                known.setdefault(of, []).append(StartPoint(str(record["template"]), point_of(record["point"])))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            expected = "a journal, or a file of configurations (docs/how-to/tune-my-shapes.md)"
            raise UsageError(f"{path}, line {number}: {type(error).__name__} {error}; expected {expected}") from None
    if not head:
        raise UsageError(
            f"{path}: it has no complete line; expected a journal, or a file of configurations "
            "(docs/how-to/tune-my-shapes.md)"
        )
    there = sum(map(len, known.values())) + len(choices)
    cut = f"{path} is cut off: {there} of its {head['lines']} lines were read" if there != head["lines"] else ""
    name = f"the winners of {head['platform']} of {head['date']}"
    return WarmSource(path, name, head["platform"], known, choices, cut)


def winner_lines(
    head: Mapping[str, str],
    known: Mapping[tuple[str, str], Sequence[StartPoint]],
    choices: Mapping[tuple[str, str], DtypeRecord] = MappingProxyType({}),
) -> Iterator[str]:
    """The lines of a winners file."""
    lines = sum(map(len, known.values())) + len(choices)
    yield json.dumps({"schema": SCHEMA, "event": "winners", **head, "lines": lines})
    for (operator, dtype), of in known.items():
        for one in of:
            record = {"operator": operator, "dtype": dtype, "template": one.template, "point": dict(one.point)}
            yield json.dumps({"schema": SCHEMA, "event": "winner", **record})
    for (operator, dtype), choice in choices.items():
        of_choice: dict[str, object] = {"schema": SCHEMA, "event": "choice", "operator": operator, "dtype": dtype}
        yield json.dumps({**of_choice, **choice}, separators=(",", ":"))
