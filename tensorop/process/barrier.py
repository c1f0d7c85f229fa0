"""A barrier around work on untrusted text: an exception that the text causes becomes an outcome.

Exceptions about the machine (a missing tool, a full disk, a lost board) pass through.
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
    """Returns what `call` returns, or REFUSED at `where` for an exception. JobError and OSError pass through."""
    try:
        return call(*args, **how)
    except (JobError, OSError):
        raise
    except TensoropError as error:
        return Outcome(Kind.REFUSED, where, _short(str(error)))
    except Exception as error:
        kind = type(error).__name__
        # a KeyError has only its key as text; folders are removed from paths, since a language model may read the log
        fault = _short(f"{kind}: {error}" if str(error) else kind)
        frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
        places = (f"{Path(frame.filename).name}:{frame.lineno} {frame.name}" for frame in frames)
        return Outcome(Kind.REFUSED, where, f"it cannot be worked with: {fault}", "\n".join(places))


def _short(text: str) -> str:
    return text if len(text) <= MESSAGE else f"{text[: MESSAGE - 3]}..."
