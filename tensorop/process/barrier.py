"""One barrier around everything that is done with a stranger's words: what they cause is an outcome, never an error.

What the machine lacks (a tool, the disk, a board) is no fault of a template, and passes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import ParamSpec, TypeVar

from tensorop.errors import JobError, TensoropError
from tensorop.model.trial import Kind, Measured, Outcome
from tensorop.process import deadline

P = ParamSpec("P")
T = TypeVar("T")

MESSAGE = 1000  # characters
FIRST_S = 60.0  # of a trial, while nothing is known of others
_FRAMES = 8


@dataclass(frozen=True)
class Limit:
    """What one trial may take, in seconds, and how that came about."""

    seconds: float
    why: str


def guarded(where: str, call: Callable[P, T], *args: P.args, **how: P.kwargs) -> T | Outcome:
    """What `call` gives, or the outcome REFUSED at `where` of what it raises. JobError and OSError are raised."""
    try:
        return call(*args, **how)
    except (JobError, OSError):
        raise
    except TensoropError as error:
        return Outcome(Kind.REFUSED, where, _short(str(error)))
    except Exception as error:
        kind = type(error).__name__
        # a KeyError says no more than its key; files are named without their folders, for a log goes to a model
        said = _short(f"{kind}: {error}" if str(error) else kind)
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = (f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
        return Outcome(Kind.REFUSED, where, f"it cannot be worked with: {said}", "\n".join(places))


def in_time(where: str, limit: Limit, used: float, call: Callable[P, T], *args: P.args, **how: P.kwargs) -> T | Outcome:
    """A step of a trial as `guarded`, in what of its limit is not `used` (seconds).

    What failed after a process of its ran into the limit is TIMEOUT, also where it would have ended the job; a target
    that went away stays LOST.
    """
    found: T | Outcome
    with deadline.within(max(0.0, limit.seconds - used)) as end:
        try:
            found = guarded(where, call, *args, **how)
        except JobError as error:
            if not end.struck:
                raise
            found = Outcome(Kind.TIMEOUT, where, error.message)
    failed = found if isinstance(found, Outcome) else found.outcome if isinstance(found, Measured) else None
    if not end.struck or failed is None or failed.ok or failed.kind is Kind.LOST:
        return found
    message = f"the trial took longer than its limit of {limit.seconds:.3g} s, {limit.why}"
    return Outcome(Kind.TIMEOUT, failed.where or where, message, failed.log)


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE else f"{text[: MESSAGE - 3]}..."
