"""Asks for each action once, those first that were asked for least."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

from tensorop.model.steering import Choice, PastQuestion, State, drawn_parent, untried

DESCRIPTION = "each action that the measured state does not exclude once, on the best or a second template"
PARENTS = 2


def policy(state: State, history: Sequence[PastQuestion]) -> Choice | None:
    """An untried action of an open parent; the fewest earlier questions first, then as drawn."""
    draw = random.Random(state.seed)
    if (parent := drawn_parent(state, history, draw)) is None:
        return None
    asked = Counter(step.choice.action for step in history)
    action, region = min(untried(parent, history), key=lambda pair: (asked[pair[0]], draw.random()))
    return Choice(parent.digest, action, region, f"asked for {asked[action]} times before; {parent.name} is open")
