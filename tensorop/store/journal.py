"""The journal: appends and fsyncs every trial of a run, so that a killed run can be resumed.

A process that dies while it writes a line leaves the line torn. The torn line is put aside and the run resumes. A
damaged line elsewhere, another schema, or a run with other settings is refused, never repaired.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tensorop.errors import JobError, UsageError, of_system
from tensorop.model.kernel import KernelTemplate, KernelText
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Outcome, Trial
from tensorop.process import places
from tensorop.process.stopping import whole
from tensorop.specs import files, jsontext
from tensorop.store import records
from tensorop.store.durable import sync
from tensorop.store.history import History
from tensorop.store.lock import FolderLock
from tensorop.store.records import SCHEMA, Record

MAX_NOTES = 4_000_000  # JSON values in all notes of a journal
MAX_TEXTS = 512 << 20  # characters in all texts of a journal
SESSION = "session"  # note of a process: its date and command line
START_OVER = "start again with --fresh, or choose another --out"


def journal_path(folder: Path) -> Path:
    return folder / "share" / "tensorop" / "journal.jsonl"


def read(folder: Path) -> History:
    """The history of a run, for reports. Takes no lock and changes nothing. Raises UsageError if there is no run."""
    path = journal_path(folder)
    if not path.is_file():
        raise UsageError(
            f"{folder} contains no run: {path} is missing", hint="start one with `tensorop <operator> --out DIR`"
        )
    history = load(path)
    if not history.sessions:
        raise UsageError(f"{folder} contains no run: {path} has no complete line", hint=START_OVER)
    return history


class Journal:
    """An open journal."""

    def __init__(self, path: Path, history: History, descriptor: int, lock: FolderLock | None = None) -> None:
        self.path = path
        self.history = history  # the content so far
        self.remarks: list[str] = []  # warnings of `open`
        self._descriptor = descriptor
        self._lock = lock
        self._began = time.monotonic() - history.seconds
        self._broken = False

    @staticmethod
    def open(folder: Path, facts: Mapping[str, object], fresh: bool = False) -> Journal:
        """Starts a run in `folder`, or resumes the one there.

        facts: the run's identity as JSON values (tool version, operator, platform, settings). If an existing run has
        other facts, the error lists them. fresh: discards the run there. Raises UsageError (other settings, folder not
        writable), JobError (a second run at work, damaged journal, full disk).
        """
        lock = FolderLock(folder)
        try:
            return _open(folder, json.loads(json.dumps(facts)), fresh, lock)
        except BaseException:
            lock.release()
            raise

    def start(self, trial: Trial) -> int:
        """Records the start of a trial; returns how often it was started without an end."""
        return self.start_all([trial])[0]

    def start_all(self, trials: Sequence[Trial]) -> list[int]:
        """As `start`, for trials that were requested together; also records their templates if they are new.

        The starts are written together or not at all: a resumed run requests further trials with the same knowledge.
        """
        for trial in trials:
            if self.history.finished(trial.key, trial.round) is not None:
                raise ValueError(f"trial {trial.key} of round {trial.round} has ended before")
            self.template(trial.variant.template)
        self._append("started", *map(records.trial_record, trials))
        begun = (self.history.started(trial.key, trial.round) for trial in trials)
        return [one.attempts for one in begun if one is not None]

    def finish(self, finished: Finished) -> None:
        """Records the end of a trial; each (key, round) once."""
        trial = finished.trial
        if self.history.started(trial.key, trial.round) is None:
            raise ValueError(f"trial {trial.key} of round {trial.round} ends without having begun")
        self._append("finished", records.finished_record(finished))

    def abandon(self, trial: Trial, outcome: Outcome) -> None:
        """Records that a started trial was stopped from outside (Ctrl-C, a lost target).

        The trial may be tried again as if it were new.
        """
        record = {"key": trial.key, "round": trial.round, "outcome": records.outcome_record(outcome)}
        self._append("abandoned", record)

    def template(self, template: KernelTemplate, joined: tuple[Group, int] | None = None) -> None:
        """Records a template in full, once, so that the run can be rebuilt without its author.

        joined: the search that it joined late, and the number of trials ended by then.
        """
        if template.digest not in self.history.templates:
            late = {"joined": [*joined[0], joined[1]]} if joined else {}
            self._append("template", {"digest": template.digest, "template": records.template_record(template), **late})

    def configured(self, template: KernelTemplate, group: Group, ended: int) -> None:
        """Records that the seed configurations of a known template join a search after so many trials."""
        known = [(digest, points) for digest, points, _ in self.history.configured(group)]
        if (template.digest, template.seed_configurations) not in known:
            self.note(records.CONFIGURATIONS, records.points_record(template, group, ended))

    def text(self, text: KernelText) -> None:
        """Records the C of a variant's kernel, once. A resumed run uses this text and renders none of its own."""
        if text.variant not in self.history.texts:
            self._append("text", records.text_record(text))

    def note(self, name: str, data: Any) -> None:
        """Records another fact; `data` is JSON."""
        self._append("note", {"name": name, "data": data})

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._lock:
            self._lock.release()
            self._lock = None

    def __enter__(self) -> Journal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _append(self, event: str, *of_each: Record) -> None:
        """Appends records of one kind in one write: a killed process has written all or none."""
        now = round(time.monotonic() - self._began, 3)
        whole_records = [{"schema": SCHEMA, "event": event, "t": now, **fields} for fields in of_each]
        lines = [json.dumps(record, allow_nan=False, separators=(",", ":")) + "\n" for record in whole_records]
        if self._broken:
            raise JobError(f"{self.path} could not be written earlier, so the run must stop")
        with whole():
            try:
                _write(self._descriptor, "".join(lines).encode())
            except OSError as error:
                self._broken = True
                raise _cannot_write(self.path, error) from error
            for line in lines:
                self.history.add(json.loads(line))


def _open(folder: Path, facts: Mapping[str, object], fresh: bool, lock: FolderLock) -> Journal:
    path = journal_path(folder)
    history, size, torn = History(), 0, b""
    if path.exists() and not fresh:
        history, size, torn = _load(path)
        if history.sessions:
            _same_run(folder, history.facts, facts)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if torn:
            with open(folder / "work" / "torn", "ab") as aside:
                aside.write(torn + b"\n")
        flags = os.O_NONBLOCK | os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        descriptor = os.open(path, flags | (os.O_TRUNC if fresh else 0), 0o644)
        os.ftruncate(descriptor, size)
        sync(path.parent)
    except OSError as error:
        raise _cannot_write(path, error) from error
    journal = Journal(path, history, descriptor, lock)
    try:
        if torn:
            journal.remarks.append(f"the last line of {path} was incomplete; it is kept in {folder / 'work' / 'torn'}")
        if history.sessions:
            journal._append("resumed", {})
        else:
            journal._append("run", {"facts": dict(facts)})
    except BaseException:
        os.close(descriptor)
        raise
    return journal


def load(path: Path) -> History:
    """The history in a file. Raises UsageError if it cannot be read, JobError if it is damaged."""
    return _load(path)[0]


def _load(path: Path) -> tuple[History, int, bytes]:
    """The history, the length of the intact part in bytes, and the torn rest."""
    fault = of_system(UsageError, f"{path} cannot be read", START_OVER)
    with fault, io.BufferedReader(files.opened(path, files.JOURNAL)) as file:
        files.require_narrow(path, file.peek(2))
        return _history(path, file)


def _history(path: Path, file: IO[bytes]) -> tuple[History, int, bytes]:
    history = History()
    sound = number = notes = texts = 0
    while line := file.readline(files.LINE):
        number += 1
        if not line.endswith(b"\n"):  # the line was cut, even if its JSON is complete
            if len(line) == files.LINE:
                raise _damaged(path, number, ValueError(f"it has more than {files.LINE} bytes"))
            return history, sound, line
        try:
            record = jsontext.loads(line)
        except ValueError as error:
            if not (rest := file.readline(files.LINE)).endswith(b"\n"):
                return history, sound, line + rest
            raise _damaged(path, number, error) from error
        try:
            if not jsontext.is_schema(record["schema"], SCHEMA):
                raise JobError(
                    f"{path} has schema {record['schema']!r:.40} in line {number}; this version reads schema {SCHEMA}",
                    hint=f"use the version of tensorop that wrote it, or {START_OVER}",
                )
            if (record["event"] == "run") != (number == 1):
                raise ValueError("the first line, and it alone, tells what the run is")
            history.add(record)
            if record["event"] == "note" and (notes := notes + jsontext.values(line)) > MAX_NOTES:
                raise ValueError(f"notes of more than {MAX_NOTES} values")
            if record["event"] == "text":
                text = history.texts[record["variant"]]
                if (texts := texts + len(text.kernel) + len(text.edge)) > MAX_TEXTS:
                    raise ValueError(f"texts of more than {MAX_TEXTS} characters")
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise _damaged(path, number, error) from error
        sound += len(line)
    return history, sound, b""


def _damaged(path: Path, line: int, error: Exception) -> JobError:
    return JobError(f"{path} is damaged in line {line}: {type(error).__name__}: {str(error)[:300]}", hint=START_OVER)


def _same_run(folder: Path, there: Mapping[str, object], here: Mapping[str, object]) -> None:
    names = [name for name in dict.fromkeys([*there, *here]) if there.get(name) != here.get(name)]
    if names:
        differences = ", ".join(f"{name} was {_show(there.get(name))}, is {_show(here.get(name))}" for name in names)
        raise UsageError(f"{folder} contains a run with other settings: {differences}", hint=START_OVER)


def _show(value: Any) -> str:
    text = "absent" if value is None else value if isinstance(value, str) else json.dumps(value)
    return text if len(text) <= 80 else f"{text[:77]}..."


def _write(descriptor: int, data: bytes) -> None:
    """Writes all bytes and syncs them. On failure the file is cut back to its old length if possible."""
    try:
        before = os.fstat(descriptor).st_size
        done = 0
        while done < len(data):
            done += os.write(descriptor, data[done:])
        os.fsync(descriptor)
    except OSError:
        with contextlib.suppress(OSError):
            os.ftruncate(descriptor, before)
        raise


def _cannot_write(path: Path, error: OSError) -> JobError | UsageError:
    if error.errno in places.FULL:
        return JobError(
            f"the disk is full: {path} cannot grow ({error.strerror})",
            hint="free disk space, then run the same command again to resume",
        )
    return UsageError(
        f"cannot write {path}: {error.strerror or error}", hint="choose another --out, or make it writable"
    )
