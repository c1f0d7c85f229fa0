"""A run on the screen: a bar with the best so far at a terminal, plain lines elsewhere, all on stderr."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from tensorop.events import Done, Event, Note, Phase, Trying
from tensorop.tuner.loop import Began, Ended, Exhausted, Lost, Stopped

LINE_EVERY_S = 10.0  # without a terminal: one line in this many seconds


def follow(events: Generator[Event, None, None]) -> Done:
    """Shows a run to its end and returns its result; raises what the run raises."""
    console = Console(stderr=True)
    view = _Bar(console) if console.is_terminal else _Lines(console)
    with view:
        event = next(events)
        while not isinstance(event, Done):
            try:
                view.show(event)
            except KeyboardInterrupt as interrupt:  # it is the run's to answer, wherever it struck
                event = events.throw(interrupt)
            else:
                event = next(events)
    return event


class _View:
    """What both forms keep count of."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.failures: Counter[str] = Counter()

    def __enter__(self) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, event: Event) -> None:
        if isinstance(event, Phase):
            self.phase(event)
        elif isinstance(event, Note):
            self.console.print(f"  {event.text}", highlight=False, markup=False, soft_wrap=True)
        elif isinstance(event, Trying):
            self.trying(event)

    def phase(self, event: Phase) -> None:
        text = f"{event.name}: {event.detail}" if event.detail else event.name
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def trying(self, event: Trying) -> None:
        raise NotImplementedError

    def summary(self, event: Trying) -> str:
        """`23 trials, best 1.31x first  mv=1 nr=15 ...  failed: 2 wrong-result, 3m12s left`."""
        inner = event.event
        if not isinstance(inner, Ended | Stopped):
            return ""
        parts = [f"{inner.trials} trials"]
        if inner.best is not None and inner.best.score.cost is not None:
            cost = inner.best.score.cost
            against = f" ({event.reference / cost:.2f}x {event.against})" if event.reference else ""
            parts.append(f"best {cost:.4g} {event.unit}{against}: {inner.best.trial.draft} {inner.best.trial.point}")
        if self.failures:
            parts.append("failed: " + ", ".join(f"{n} {kind}" for kind, n in self.failures.most_common()))
        if isinstance(inner, Ended) and inner.left is not None:
            parts.append(f"{inner.left:.0f} s left")
        return "; ".join(parts)

    def count(self, event: Trying) -> None:
        inner = event.event
        if isinstance(inner, Ended) and not inner.finished.outcome.ok:
            self.failures[inner.finished.outcome.kind.value] += 1


class _Lines(_View):
    """Plain lines."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.last = time.monotonic()

    def trying(self, event: Trying) -> None:
        self.count(event)
        due = time.monotonic() - self.last >= LINE_EVERY_S
        if isinstance(event.event, Stopped) or (due and isinstance(event.event, Ended)):
            self.last = time.monotonic()
            text = f"  {event.stage} {event.dtype}: {self.summary(event)}"
            self.console.print(text, highlight=False, markup=False, soft_wrap=True)
        if isinstance(event.event, Stopped):
            self.failures.clear()
        if remark := _remark(event.event):
            self.console.print(f"  {remark}", highlight=False, markup=False, soft_wrap=True)


def _remark(event: object) -> str:
    """What a reader of plain lines is told of single trials: only what is out of the ordinary."""
    if isinstance(event, Lost):
        return f"{event.trial.draft} {event.trial.point}: {event.outcome.message}; it is tried again"
    if isinstance(event, Exhausted):
        return f"{event.draft}: every point has been tried"
    if isinstance(event, Began) and event.attempt > 1:
        return f"{event.trial.draft} {event.trial.point}: begun again, an earlier run ended during it"
    return ""


class _Bar(_View):
    """One bar a search."""

    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(24),
            TimeElapsedColumn(),
            TextColumn("{task.fields[text]}"),
            console=console,
        )
        self.task: TaskID | None = None

    def __enter__(self) -> _View:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    def trying(self, event: Trying) -> None:
        self.count(event)
        if self.task is None:
            self.task = self.progress.add_task(f"{event.stage} {event.dtype}", total=1.0, text="")
        inner = event.event
        if isinstance(inner, Ended | Stopped):
            done = 1.0 if isinstance(inner, Stopped) else event.share(inner)
            self.progress.update(self.task, completed=done, text=self.summary(event))
        if isinstance(inner, Stopped):
            self.task = None
            self.failures.clear()
