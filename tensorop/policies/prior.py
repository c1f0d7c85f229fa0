"""Asks for what paid most often in such a state, by a table that is generated from recorded pairs."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensorop.model.steering import Choice, PastQuestion, State, bottleneck, drawn_parent, untried

DESCRIPTION = "the action that paid most often where the same thing takes the cycles, by a shipped table"
PARENTS = 2
_TRIES, _PAID = 4.0, 1.0  # what an action without a record counts as


@functools.cache
def table() -> Mapping[str, Mapping[str, Sequence[float]]]:
    """Bottleneck -> action -> (tries, sum of rewards), from `author pairs`."""
    found: Mapping[str, Mapping[str, Sequence[float]]] = json.loads(
        Path(__file__).with_name("prior.json").read_text(encoding="utf-8")
    )["table"]
    return found


def worth(features: Mapping[str, float], action: str) -> float:
    """The expected reward of an action. Records of other states count a tenth."""
    here = bottleneck(features)
    tries, paid = _TRIES, _PAID * 0.1
    for state, actions in table().items():
        weight = 1.0 if state == here else 0.1
        count, rewards = actions.get(action, (0.0, 0.0))
        tries, paid = tries + weight * count, paid + weight * rewards
    return paid / tries


def policy(state: State, history: Sequence[PastQuestion]) -> Choice | None:
    """The untried action with the largest expected reward; equal ones as drawn."""
    draw = random.Random(state.seed)
    if (parent := drawn_parent(state, history, draw)) is None:
        return None
    known = {pair: (worth(parent.features, pair[0]), draw.random()) for pair in untried(parent, history)}
    action, region = max(known, key=lambda pair: known[pair])
    expected, where = known[action, region][0], bottleneck(parent.features)
    return Choice(parent.digest, action, region, f"pays {expected:.2f} on average where {where} takes the cycles")
