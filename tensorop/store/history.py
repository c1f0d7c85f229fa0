"""A run's history from the journal's records: which trials ended, which are open, and the time spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tensorop.model.kernel import KernelTemplate, KernelText
from tensorop.model.point import Point
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Trial
from tensorop.store import records
from tensorop.store.records import end_of, section, text_in


@dataclass(frozen=True)
class Started:
    """A trial that started and has not ended."""

    trial: Trial
    attempts: int  # starts without an end


def group_of(trial: Trial) -> Group:
    return (trial.stage, trial.dtype, trial.round)


@dataclass
class History:
    """The state of a run. `add` takes its records one by one, from a file or as they are written."""

    facts: Mapping[str, object] = field(default_factory=dict)
    templates: dict[str, KernelTemplate] = field(default_factory=dict)
    late: dict[str, tuple[Group, int]] = field(default_factory=dict)  # by digest: search joined, trials ended then
    texts: dict[str, KernelText] = field(default_factory=dict)  # by the id of the variant as built
    notes: list[tuple[str, Any]] = field(default_factory=list)
    sessions: int = 0
    seconds: float = 0.0
    _configured: list[tuple[Group, str, tuple[Point, ...], int]] = field(default_factory=list)
    _own: dict[str, KernelTemplate] = field(default_factory=dict)
    _finished: dict[tuple[str, int], Finished] = field(default_factory=dict)
    _open: dict[tuple[str, int], Started] = field(default_factory=dict)
    _set_back: dict[tuple[str, int], Trial] = field(default_factory=dict)
    _spent: dict[Group, float] = field(default_factory=dict)
    _counted_s: float = 0.0  # up to here, time is assigned to a search or to none

    def add(self, record: Mapping[str, object]) -> None:
        """Adds a record. Raises KeyError, TypeError or ValueError if it is invalid."""
        event = record["event"]
        if not isinstance(record["t"], int | float):
            raise TypeError(f"'t' is {record['t']!r:.60}")
        self.seconds = float(record["t"])
        since = self.seconds - self._counted_s
        if event not in ("template", "text"):  # its time counts for the trial of the next record
            self._counted_s = self.seconds
        match event:
            case "run":
                self.facts = records.facts_of(record)
                self.sessions += 1
            case "resumed":
                self.sessions += 1
            case "template":
                template = records.template_of(section(record, "template"))
                self.templates[template.digest] = template  # by the computed digest, not the recorded one
                if "joined" in record:
                    self.late[template.digest] = records.joined_of(record)
            case "text":
                self.texts[text_in(record, "variant")] = records.text_of(record)
            case "note":
                self.notes.append((text_in(record, "name"), record["data"]))
                if record["name"] == records.CONFIGURATIONS:
                    self._configured.append(records.points_of(section(record, "data")))
            case "started":
                trial = records.trial_of(record, {**self.templates, **self._own})
                before = self._open.get((trial.key, trial.round))
                self._open[trial.key, trial.round] = Started(trial, 1 + (before.attempts if before else 0))
                self._set_back.pop((trial.key, trial.round), None)
                self._count(trial, since)
            case "finished":
                end = end_of(record)
                trial = self._open.pop(end).trial
                self._finished[end] = records.finished_of(record, trial)
                self._count(trial, since)
            case "abandoned":
                end = end_of(record)
                begun = self._open[end]
                self._count(begun.trial, since)
                if begun.attempts > 1:
                    self._open[end] = Started(begun.trial, begun.attempts - 1)
                else:
                    self._set_back[end] = self._open.pop(end).trial
            case _:
                raise ValueError(f"unknown event {event!r}")

    def trust(self, templates: Iterable[KernelTemplate]) -> None:
        """Uses these templates of the process in all trials, in place of the journal's with the same digests.

        Names and authors then are the process's own, whatever the journal records.
        """
        self._own |= {template.digest: template for template in templates}

        def ours(trial: Trial) -> Trial:
            kernel = trial.variant.kernel
            kernel = replace(kernel, template=self._own.get(kernel.template.digest, kernel.template))
            return replace(trial, variant=replace(trial.variant, kernel=kernel))

        self._finished = {end: replace(done, trial=ours(done.trial)) for end, done in self._finished.items()}
        self._open = {end: replace(begun, trial=ours(begun.trial)) for end, begun in self._open.items()}
        self._set_back = {end: ours(trial) for end, trial in self._set_back.items()}

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes of the run."""
        return records.words(self.facts, "dtypes")

    def replay(self) -> list[Finished | Started]:
        """Ended trials in the order of their ends, then open ones in the order of their starts."""
        return [*self._finished.values(), *self._open.values()]

    def finished(self, key: str, round_: int) -> Finished | None:
        return self._finished.get((key, round_))

    def started(self, key: str, round_: int) -> Started | None:
        return self._open.get((key, round_))

    def ended(self, group: Group) -> list[Finished]:
        """The ended trials of one search, in order."""
        return [end for end in self._finished.values() if group_of(end.trial) == group]

    def unfinished(self, group: Group) -> list[Started]:
        """The open trials of one search, in order."""
        return [begun for begun in self._open.values() if group_of(begun.trial) == group]

    def set_back(self, group: Group) -> list[Trial]:
        """The trials of one search that were stopped from outside, in order; their attempts do not count."""
        return [trial for trial in self._set_back.values() if group_of(trial) == group]

    def joined(self, group: Group) -> list[tuple[KernelTemplate, int]]:
        """The templates that joined a search late, in order, each with the number of trials ended by then."""
        return [(self.templates[digest], after) for digest, (to, after) in self.late.items() if to == group]

    def configured(self, group: Group) -> list[tuple[str, tuple[Point, ...], int]]:
        """Digest of a template, its points, and the number of trials ended when they joined a search; in order."""
        return [(digest, points, after) for to, digest, points, after in self._configured if to == group]

    def spent(self, group: Group) -> float:
        """Seconds that one search has taken so far, in all processes."""
        return self._spent.get(group, 0.0)

    def _count(self, trial: Trial, seconds: float) -> None:
        group = group_of(trial)
        self._spent[group] = self._spent.get(group, 0.0) + seconds
