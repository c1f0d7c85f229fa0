"""One barrier around everything that is done with a stranger's words: what they cause is an outcome, never an error.

What the machine lacks (a tool, the disk, a board) is no fault of a template, and passes.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import ParamSpec, TypeVar

from tensorop.errors import JobError, TensoropError
from tensorop.model.trial import Kind, Outcome

P = ParamSpec("P")
T = TypeVar("T")

MESSAGE = 1000  # characters
_FRAMES = 8


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
        fault = _short(f"{kind}: {error}" if str(error) else kind)
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = (f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
        return Outcome(Kind.REFUSED, where, f"it cannot be worked with: {fault}", "\n".join(places))


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE else f"{text[: MESSAGE - 3]}..."
