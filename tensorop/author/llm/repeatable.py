"""What of a failure may be said to a model, which is somebody else's machine.

Compilers quote lines of the files they read and name them; a process prints what it likes. Of a compiler's diagnostics
the texts alone are repeated, of a process nothing but the outcome's own sentence, without the run's seed: whoever knows
it knows the operands of the calls to come.
"""

from __future__ import annotations

import re
from dataclasses import replace

from tensorop.model.trial import Kind, Outcome

MOST = 12  # diagnostics
LONGEST = 300  # characters of one

_DIAGNOSTIC = re.compile(r"^(?:.*?[:\s])?(?:fatal )?(error|warning|note): (.*)$", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.)\]])(?:~|\.{1,2})?/[\w.+~-]+(?:/[\w.+~-]+)*/?|\b[A-Za-z]:\\\\\S+")
_SEED = re.compile(r",? ?\bseed -?\d+:[0-9a-f]{32}\b")


def repeatable(outcome: Outcome) -> Outcome:
    """The outcome as a model is told it."""
    if outcome.kind is not Kind.COMPILE:
        return replace(outcome, message=_without_paths(outcome.message), log="")
    texts = [f"{kind}: {_without_paths(text)[:LONGEST]}" for kind, text in _DIAGNOSTIC.findall(outcome.log)]
    said = list(dict.fromkeys(texts))[:MOST]
    first = next((text for text in said if text.startswith("error")), "the compiler refused it")
    return replace(outcome, message=first, log="\n".join(said))


def _without_paths(text: str) -> str:
    return _PATH.sub("[path]", _SEED.sub("", text))
