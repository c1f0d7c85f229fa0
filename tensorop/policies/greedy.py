"""Asks for an improvement of the best template, of any kind."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.model.steering import Choice, PastQuestion, State

DESCRIPTION = "any change of the model's best template; the model chooses it"


def policy(state: State, history: Sequence[PastQuestion]) -> Choice | None:
    """The best template, without an action."""
    return Choice(reason="the best template of the model")
