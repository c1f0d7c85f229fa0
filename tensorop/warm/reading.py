"""Reads what `--warm-start` names: journals, winners files, and folders of them.

A winners file has a line for each variant, the best first. Its first line says where they come from and how many
follow. The shipped ones, and those of plug-in folders, are `platforms/winners/*.jsonl`.

    {"schema": 1, "event": "winners", "platform", "tensorop", "date", "made", "lines"}
    {"schema": 1, "event": "winner", "operator", "dtype", "template", "point": {...}}
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import JobError, TensoropError, UsageError
from tensorop.model.job import Job
from tensorop.model.trial import Stage
from tensorop.model.winner import StartPoint
from tensorop.specs import files, jsontext
from tensorop.store import journal
from tensorop.store.history import History
from tensorop.store.records import point_of
from tensorop.trial import selection

AUTO, NONE = "auto", "none"  # words of `--warm-start`; any other value is a path
SCHEMA = 1
FOLDER = "winners"
MOST = 4096  # lines of a file
_HEAD = ("platform", "tensorop", "date", "made")


@dataclass(frozen=True)
class WarmSource:
    """The content of a journal or a winners file."""

    path: Path
    name: str  # its name for the user
    platform: str
    known: Mapping[tuple[str, str], Sequence[StartPoint]]  # (operator, dtype) -> variants, the best first
    remark: str = ""  # a warning about the file


def read(job: Job) -> tuple[list[WarmSource], list[str]]:
    """The sources that the job's `warm_start` names, and a warning for each useless file.

    Raises UsageError for a path that does not exist.
    """
    found, remarks = [], []
    for path in _files(job):
        try:
            source = _journal(path) if _is_journal(path) else read_winners(path)
        except TensoropError as error:
            remarks.append(f"a warm-start file is skipped: {error.message}")
            continue
        found.append(source)
        remarks += [source.remark] if source.remark else []
    if not found and not remarks and job.warm_start not in (AUTO, NONE):
        remarks.append(f"--warm-start {job.warm_start} has no effect: the folder contains no journal (*.jsonl)")
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
        inside = journal.journal_path(path)
        if path.is_file() or inside.is_file():
            yield inside if inside.is_file() else path
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
    facts = history.facts
    try:
        return WarmSource(path, f"{facts['platform']}'s journal", str(facts["platform"]), of_history(history))
    except (KeyError, TypeError) as error:
        raise JobError(f"{path}, line 1: the facts of the run lack {error}") from None


def read_winners(path: Path) -> WarmSource:
    """Reads a winners file. Raises UsageError with file, place and what was expected."""
    try:
        lines = files.plain(path, files.LINES).split(b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    if len(lines) > MOST:
        raise UsageError(f"{path} has {len(lines)} lines; a file of configurations has at most {MOST}")
    known: dict[tuple[str, str], list[StartPoint]] = {}
    head: dict[str, Any] = {}
    for number, line in enumerate(lines[:-1], 1):  # a line without its newline was cut off
        if not line.strip():
            continue
        try:
            record = jsontext.loads(line)
            if record["event"] != ("winner" if head else "winners"):
                raise ValueError(f"the event {record['event']!r:.40}")
            if not jsontext.is_schema(record["schema"], SCHEMA):
                raise ValueError(f"schema {record['schema']!r:.40}; this version reads {SCHEMA}")
            if not head:
                head = {name: str(record[name]) for name in _HEAD} | {"lines": int(record["lines"])}
                continue
            of = known.setdefault((str(record["operator"]), str(record["dtype"])), [])
            of.append(StartPoint(str(record["template"]), point_of(record["point"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            expected = "a journal, or a file of configurations (docs/how-to/tune-my-shapes.md)"
            raise UsageError(f"{path}, line {number}: {type(error).__name__} {error}; expected {expected}") from None
    if not head:
        raise UsageError(
            f"{path}: it has no complete line; expected a journal, or a file of configurations "
            "(docs/how-to/tune-my-shapes.md)"
        )
    there = sum(map(len, known.values()))
    cut = (
        f"{path} is cut off: {there} of its {head['lines']} configurations were read" if there != head["lines"] else ""
    )
    return WarmSource(path, f"the winners of {head['platform']} of {head['date']}", head["platform"], known, cut)


def winner_lines(head: Mapping[str, str], known: Mapping[tuple[str, str], Sequence[StartPoint]]) -> Iterator[str]:
    """The lines of a winners file."""
    yield json.dumps({"schema": SCHEMA, "event": "winners", **head, "lines": sum(map(len, known.values()))})
    for (operator, dtype), of in known.items():
        for one in of:
            record = {"operator": operator, "dtype": dtype, "template": one.template, "point": dict(one.point)}
            yield json.dumps({"schema": SCHEMA, "event": "winner", **record})
