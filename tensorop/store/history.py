"""The journal's records folded into what they say: which trials ended, which are open, what was spent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from tensorop.model.kernel import KernelTemplate, KernelText
from tensorop.model.stage_run import Group
from tensorop.model.trial import Finished, Trial
from tensorop.store import records
from tensorop.store.records import end_of, section, text_in


@dataclass(frozen=True)
class Started:
    """A trial that began and did not end; `attempts` counts the processes that died with it under way."""

    trial: Trial
    attempts: int


def group_of(trial: Trial) -> Group:
    return (trial.stage, trial.dtype, trial.round)


@dataclass
class History:
    """Built by `add`, one record after the other, from a file or as it is written."""

    facts: Mapping[str, object] = field(default_factory=dict)
    templates: dict[str, KernelTemplate] = field(default_factory=dict)
    late: dict[str, tuple[Group, int]] = field(default_factory=dict)  # of templates: what they joined, after how many
    texts: dict[str, KernelText] = field(default_factory=dict)  # by variant as it is built
    notes: list[tuple[str, Any]] = field(default_factory=list)
    sessions: int = 0
    seconds: float = 0.0
    _own: dict[str, KernelTemplate] = field(default_factory=dict)
    _finished: dict[tuple[str, int], Finished] = field(default_factory=dict)
    _open: dict[tuple[str, int], Started] = field(default_factory=dict)
    _spent: dict[Group, float] = field(default_factory=dict)
    _counted_s: float = 0.0  # up to when seconds are of some search, or of none

    def add(self, record: Mapping[str, object]) -> None:
        """Takes one record in; raises KeyError, TypeError or ValueError where it is not one."""
        event = record["event"]
        if not isinstance(record["t"], int | float):
            raise TypeError(f"'t' is {record['t']!r:.60}")
        self.seconds = float(record["t"])
        since = self.seconds - self._counted_s
        if event not in ("template", "text"):  # written between a trial's start and its end, whose time it is
            self._counted_s = self.seconds
        match event:
            case "run":
                self.facts = records.facts_of(record)
                self.sessions += 1
            case "resumed":
                self.sessions += 1
            case "template":
                template = records.template_of(section(record, "template"))
                self.templates[template.digest] = template  # its own, whatever is written beside it
                if "joined" in record:
                    self.late[template.digest] = records.joined_of(record)
            case "text":
                self.texts[text_in(record, "variant")] = records.text_of(record)
            case "note":
                self.notes.append(records.note_of(record))
            case "started":
                trial = records.trial_of(record, {**self.templates, **self._own})
                before = self._open.get((trial.key, trial.round))
                self._open[trial.key, trial.round] = Started(trial, 1 + (before.attempts if before else 0))
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
                    del self._open[end]
            case _:
                raise ValueError(f"unknown event {event!r}")

    def trust(self, templates: Iterable[KernelTemplate]) -> None:
        """From here on trials are of these templates, the process's own, whatever name and author the journal gives to
        one of the same digest."""
        self._own |= {template.digest: template for template in templates}

        def ours(trial: Trial) -> Trial:
            kernel = trial.variant.kernel
            kernel = replace(kernel, template=self._own.get(kernel.template.digest, kernel.template))
            return replace(trial, variant=replace(trial.variant, kernel=kernel))

        self._finished = {end: replace(done, trial=ours(done.trial)) for end, done in self._finished.items()}
        self._open = {end: replace(begun, trial=ours(begun.trial)) for end, begun in self._open.items()}

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Those that the run is of."""
        return records.words(self.facts, "dtypes")

    def replay(self) -> list[Finished | Started]:
        """Ended trials in the order they ended, then the open ones in the order they began."""
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

    def joined(self, group: Group) -> list[tuple[KernelTemplate, int]]:
        """The templates that came to a search late, in order, each with the number of trials that had ended."""
        return [(self.templates[digest], after) for digest, (to, after) in self.late.items() if to == group]

    def spent(self, group: Group) -> float:
        """Seconds one search has taken so far, in all processes."""
        return self._spent.get(group, 0.0)

    def _count(self, trial: Trial, seconds: float) -> None:
        group = group_of(trial)
        self._spent[group] = self._spent.get(group, 0.0) + seconds
