"""Updates the forecast of a running job from what its parts took so far."""

from __future__ import annotations

import dataclasses
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Generator
from dataclasses import dataclass

from tensorop.events import Done, Event, Note, Phase, Trying
from tensorop.job.forecast import SEARCH, SET_UP, Forecast, about, remember
from tensorop.model.search_events import SearchEnded, TrialEnded

_CHANGED, _LEAST_S = 0.3, 15.0  # a new total is shown if it differs by this share, and by so many seconds
_FASTEST, _SLOWEST = 0.5, 20.0  # limits of the pace, since one short piece says little

_Key = tuple[str, str]  # stage and dtype of trials; a part, or a stage that measures, and ""


@dataclass
class _Piece:
    """A piece of the job: a part of the forecast, or a stage of its search for one dtype."""

    part: str  # of the forecast
    budget_s: float  # its time limit, which holds on a slow machine too
    work_s: float  # predicted time of the work that is done in any case
    began: float | None = None  # on the clock of the reckoning
    search_s: float | None = None  # the search's own estimate of the seconds left
    asked: float = 0.0  # when the search made it
    ended: bool = False

    def seconds(self, pace: float) -> float:
        return max(self.budget_s, self.work_s * pace)

    def left(self, pace: float, now: float) -> float:
        """Seconds until its end."""
        if self.ended:
            return 0.0
        if self.search_s is not None:
            return max(0.0, self.search_s - (now - self.asked))
        return max(0.0, self.seconds(pace) - (0.0 if self.began is None else now - self.began))


class Reckoning:
    """The progress of a job against its forecast. `hear` must get every event."""

    def __init__(self, plan: Forecast, now: Callable[[], float]) -> None:
        self.plan, self.now, self.began = plan, now, now()
        self.shown = sum(plan.seconds.values())  # the total that the user saw last
        self.took = self.predicted = 0.0  # seconds of the ended pieces, and their prediction
        self.current: _Piece | None = None
        self.pieces = {
            (stage, dtype): _Piece(SEARCH, budget / len(dtypes), work / len(dtypes))
            for stage, (dtypes, budget, work) in plan.stages.items()
            for dtype in dtypes
        }
        self.pieces |= {(part, ""): _Piece(part, 0.0, s) for part, s in plan.seconds.items() if part != SEARCH}

    @property
    def pace(self) -> float:
        """The time of the ended pieces, divided by their prediction."""
        return min(_SLOWEST, max(_FASTEST, self.took / self.predicted)) if self.predicted else 1.0

    def seconds(self, part: str) -> float | None:
        """The expected seconds of a part; None for a part that has no forecast."""
        piece = self.pieces.get((part, ""))
        return None if piece is None else piece.seconds(self.pace)

    def hear(self, event: Event) -> list[Note]:
        """Takes an event. Returns a remark if the job will take much longer or shorter than the user read last."""
        now = self.now()
        if isinstance(event, Trying):
            piece = self._go_to((event.stage, event.dtype), now)
            if isinstance(event.event, TrialEnded) and piece is not None:
                piece.search_s, piece.asked = event.event.left, now
        elif isinstance(event, Phase):
            self._go_to((event.name if event.name in self.plan.stages else self.plan.part(event.name), ""), now)
        left = dict.fromkeys(self.plan.seconds, 0.0)
        for piece in self.pieces.values():
            left[piece.part] += piece.left(self.pace, now)
        total = now - self.began + sum(left.values())
        if abs(total - self.shown) <= max(_LEAST_S, _CHANGED * self.shown):
            return []
        self.shown = total
        parts = ", ".join(f"{about(seconds)} {part}" for part, seconds in left.items() if seconds >= 1)
        return [Note(f"new forecast: about {about(total)} in total; still to come: {parts or 'the end'}")]

    def _go_to(self, key: _Key, now: float) -> _Piece | None:
        """The piece `key`, which goes on now, while the one before it has ended. None for a key without a forecast."""
        piece = self.pieces.get(key)
        if piece is None or piece is self.current:
            return piece
        if self.current is not None and not self.current.ended:
            self.current.ended = True
            if self.current.part != SET_UP:  # it may download tools
                self.took += now - (self.current.began or now)
                self.predicted += self.current.seconds(1.0)
        if not key[1]:  # stages that were left out do not follow
            for (_, dtype), other in self.pieces.items():
                other.ended |= bool(dtype) and piece.part != SET_UP
        piece.began = now
        self.current = piece
        return piece


def watched(
    events: Generator[Event, None, None], plan: Forecast, now: Callable[[], float] = time.monotonic
) -> Generator[Event, None, None]:
    """The same events, with the expected seconds in phases, and new forecasts. Records each part's time at the end."""
    took: defaultdict[str, float] = defaultdict(float)  # seconds by part
    trials: Counter[str] = Counter()  # by stage
    reckoning = Reckoning(plan, now)
    part, since = "", now()
    try:
        for event in events:
            took[part], since = took[part] + now() - since, now()
            remarks = reckoning.hear(event)
            if isinstance(event, Phase):
                before, part = part, plan.part(event.name)
                if part not in (before, SEARCH):
                    event = dataclasses.replace(event, seconds=reckoning.seconds(part))
            elif isinstance(event, Trying):
                part = SEARCH
                if isinstance(event.event, SearchEnded):
                    took[event.stage] += event.event.seconds
                    trials[event.stage] += event.event.trials
            elif isinstance(event, Done) and not event.early:
                remember(plan, {name: seconds / (trials[name] or 1) for name, seconds in took.items()})
            yield event
            yield from remarks
    finally:
        events.close()
