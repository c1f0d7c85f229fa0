"""Shows a run's progress on stderr: one changing line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable

from rich.console import Console
from rich.live import Live
from rich.text import Text

from tensorop import pipeline
from tensorop.cli import screen
from tensorop.cli.ctrl_c import CtrlC
from tensorop.events import Building, Done, Event, Note, Phase, Trying
from tensorop.measure import statistics
from tensorop.model.job import Job
from tensorop.model.search_events import Began, Exhausted, GivenUp, Lost, SearchEnded, TrialEnded
from tensorop.process.stopping import StopRequest
from tensorop.search.arms import STRIKES

LINE_EVERY_S = 10.0  # without a terminal: least time between two lines of a search
KERNEL_EVERY_S = 30.0  # the same of two lines about kernels that are built
WINDOW_S = 60.0  # time over which a search's latest gain is computed


def follow(job: Job) -> Done:
    """Runs a job, shows its progress and returns its result. Raises the errors of the run.

    The first Ctrl-C asks the run to stop early, the second one ends it.
    """
    console = screen.screen(stderr=True)
    view = _Bar(console) if console.is_terminal else _Lines(console)
    stop = StopRequest()
    events = pipeline.run(job, stop)
    with CtrlC(view.say, stop, lambda: console.show_cursor(True)), view:
        event = next(events)
        while not isinstance(event, Done):
            try:
                view.show(event)
            except KeyboardInterrupt as interrupt:  # the run handles it, even if it was raised here
                event = events.throw(interrupt)
            else:
                event = next(events)
    return event


class _View:
    """The common part of both views: counts, and a permanent line for each part that begins and each finished stage."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        self.console = console
        self.now = now
        self.forget()

    def forget(self) -> None:
        """Resets the counts after a stage."""
        self.failures: Counter[str] = Counter()  # failed trials by kind
        self.problems: Counter[int] = Counter()  # passed trials by the number of problems that they were measured on
        self.first: float | None = None  # cost of this stage's first kernel that passed
        self.bests: list[tuple[float, float]] = []  # (time, cost of the best) after each trial of this process

    def __enter__(self) -> _View:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def show(self, event: Event) -> None:
        if isinstance(event, Phase):
            self.say(f"{event.name}: {event.detail}" if event.detail else event.name)
            self.phase(event)
        elif isinstance(event, Note):
            self.say(f"  {event.text}")
        elif isinstance(event, Building):
            self.building(event)
        elif isinstance(event, Trying):
            inner = event.event
            if isinstance(inner, TrialEnded):
                self.count(inner)
            self.trying(event)
            if isinstance(inner, GivenUp):
                self.say(f"  {event.stage} {event.dtype}: {_given_up(inner)}")
            if isinstance(inner, SearchEnded):
                self.say(f"  {event.stage} {event.dtype}: {self.summary(event, inner)}")
                self.forget()

    def say(self, text: str) -> None:
        """Shows a line at once; called from any thread."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)

    def phase(self, event: Phase) -> None:
        """A part begins."""

    def building(self, event: Building) -> None:
        raise NotImplementedError

    def trying(self, event: Trying) -> None:
        raise NotImplementedError

    def summary(self, event: Trying, inner: TrialEnded | SearchEnded) -> str:
        """A text such as `23 trials, 2 failed (2 crash), 0:31 left; best: 62% of the core's peak, ..., by outer ...`.

        The variant comes last, since a narrow terminal cuts off the end.
        """
        parts = [f"{inner.trials} trial{'s' if inner.trials != 1 else ''}{self.fidelities()}"]
        if isinstance(inner, SearchEnded):
            rate = f" ({60 * inner.trials / inner.seconds:.0f} a minute)" if inner.trials and inner.seconds else ""
            parts[0] += f" in {clock(inner.seconds)}{rate}"
        if self.failures:
            kinds = ", ".join(f"{n} {kind}" for kind, n in self.failures.most_common())
            parts.append(f"{self.failures.total()} failed ({kinds})")
        if isinstance(inner, TrialEnded) and inner.left is not None:
            parts.append(f"{clock(inner.left)} left")
        if inner.best is None or not (cost := inner.best.score.cost):
            return ", ".join(parts)
        best = [f"{event.bound / cost:.0%} of the core's peak"] if event.bound else []
        best += [f"{self.first / cost:.2f} times as fast as the first trial"] if inner.trials > 1 and self.first else []
        best.append(f"{cost:.4g} {event.unit} by {inner.best.trial.variant}")
        return f"{', '.join(parts)}; best: {', '.join(best)}"

    def fidelities(self) -> str:
        """A text such as ` (5 on 26 problems, 30 on 13)`; empty if all trials had the same number of problems."""
        counted = sorted(self.problems.items(), reverse=True)
        words = [f"{n} on {problems}{'' if i else ' problems'}" for i, (problems, n) in enumerate(counted) if n]
        return f" ({', '.join(words)})" if len(words) > 1 else ""

    def gains(self, event: Trying, inner: TrialEnded) -> list[str]:
        """The known ones of two short texts about the best trial.

        The share of the core's multiply-add peak, or if that is unknown the speed relative to the stage's first passed
        kernel; and the latest gain.
        """
        cost = inner.best.score.cost if inner.best else None
        if not cost:
            return []
        of_first = f"{self.first / cost:.1f} times the first" if self.first else ""
        return [
            word
            for word in (statistics.of_peak(event.bound / cost, " of peak") if event.bound else of_first, self.gain())
            if word
        ]

    def gain(self) -> str:
        """A text such as `3.1% faster than 60 s ago`: the gain in the last WINDOW_S, or since the first best."""
        if not self.bests:
            return ""
        now, (_, best) = self.now(), self.bests[-1]
        since, before = ([one for one in self.bests if one[0] <= now - WINDOW_S] or self.bests[:1])[-1]
        ago = min(WINDOW_S, now - since)
        return f"{before / best - 1:.1%} faster than {ago:.0f} s ago" if ago >= 1 else ""

    def count(self, inner: TrialEnded) -> None:
        outcome, score = inner.finished.outcome, inner.finished.score
        self.first = self.first or score.cost
        self.problems[len(score.per_problem)] += outcome.ok
        if inner.best is not None and inner.best.score.cost and not inner.replayed:
            self.bests.append((self.now(), inner.best.score.cost))
        if not outcome.ok:
            self.failures[outcome.kind.value] += 1


def _given_up(event: GivenUp) -> str:
    return (
        f"template '{event.template}' is dropped: {STRIKES} trials exceeded the time limit, the last one of "
        f"{event.limit.seconds:.3g} s ({event.limit.why})"
    )


def clock(seconds: float) -> str:
    """Seconds as text: `0:07`, `2:31`, `1:02:03`."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _Lines(_View):
    def __init__(self, console: Console) -> None:
        super().__init__(console)
        self.last = self.now()

    def building(self, event: Building) -> None:
        if self.now() - self.last >= KERNEL_EVERY_S and event.number < event.count:
            self.last = self.now()
            self.say(f"  {event}")

    def trying(self, event: Trying) -> None:
        if self.now() - self.last >= LINE_EVERY_S and isinstance(event.event, TrialEnded):
            self.last = self.now()
            self.say(f"  {event.stage} {event.dtype}: {self.summary(event, event.event)}")
        if remark := _remark(event.event):
            self.say(f"  {remark}")


def _remark(event: object) -> str:
    """A plain line for an unusual event; empty for other events."""
    if isinstance(event, Lost):
        return f"{event.trial.variant}: {event.outcome.message}; retrying"
    if isinstance(event, Exhausted):
        return f"{event.arm}: every configuration has been tried"
    if isinstance(event, Began) and event.attempt > 1:
        return f"{event.trial.variant}: retried, since an earlier run ended during this trial"
    return ""


class _Bar(_View):
    """Shows a changing line below the permanent ones: the current part, time taken, time left, best result."""

    def __init__(self, console: Console, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(console, now)
        self.name, self.text, self.began = "starting", "", now()
        self.ends: float | None = None
        self.live = Live(console=console, get_renderable=self.line, refresh_per_second=4, transient=True)

    def __enter__(self) -> _View:
        self.live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.live.stop()

    def line(self) -> Text:
        """The changing line; the terminal's width cuts it off."""
        now = self.now()
        parts = [self.name, clock(now - self.began)]
        if self.ends is not None:
            parts.append(f"{clock(max(0.0, self.ends - now))} left")
        return Text("  ".join([*parts, self.text]), style="cyan", no_wrap=True, overflow="ellipsis")

    def under_way(self, name: str, seconds: float | None) -> None:
        self.name, self.text, self.began = name, "", self.now()
        self.ends = None if seconds is None else self.began + seconds
        self.live.refresh()  # shows also parts that are shorter than the refresh period

    def phase(self, event: Phase) -> None:
        self.under_way(event.name, event.seconds)

    def building(self, event: Building) -> None:
        self.text = str(event)

    def trying(self, event: Trying) -> None:
        name = f"{event.stage} {event.dtype}"
        if name != self.name:
            self.under_way(name, None)
        inner = event.event
        if isinstance(inner, TrialEnded):
            self.ends = None if inner.left is None else self.now() + inner.left
            words = [f"{inner.trials} tried", *self.gains(event, inner)]
            if failed := sum(self.failures.values()):
                words.append(f"{failed} failed")
            if inner.best is not None:
                words.append(str(inner.best.trial.variant))
            self.text = "  ".join(words)
