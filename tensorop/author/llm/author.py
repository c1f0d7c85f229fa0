"""Puts the llm author together; `replay` is the same author over recorded calls alone."""

from __future__ import annotations

from pathlib import Path

from tensorop.author.llm.limits import Limited, Limits
from tensorop.author.llm.prompt import Brief
from tensorop.author.llm.rounds import LlmAuthor
from tensorop.author.llm.transcript import Recorded
from tensorop.settings import Settings


def live(
    brief: Brief,
    settings: Settings,
    work: Path,
    *,
    limits: Limits | None = None,
    seed: int = 0,
) -> LlmAuthor:
    """Over the endpoint the environment names; every call is kept under `work`/llm and answered from there again.

    Raises UsageError where no endpoint is named.
    """
    from tensorop.author.llm.transport import Http, endpoint  # the client takes longer to load than a command takes

    where = endpoint(settings)
    limits = limits or Limits()
    transport = Limited(Recorded(work / "llm", Http(where)), limits)
    return LlmAuthor(brief, transport, where.model, seed=seed, seconds=limits.call_seconds)


def replay(brief: Brief, recording: Path, model: str, *, seed: int = 0) -> LlmAuthor:
    """Over a recording; raises JobError at a request that was not recorded."""
    return LlmAuthor(brief, Recorded(recording, None), model, seed=seed)
