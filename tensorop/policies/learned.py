"""Asks for the action that a softmax regression on the measured state prefers."""

from __future__ import annotations

import functools
import json
import math
import random
from collections.abc import Mapping, Sequence
from pathlib import Path

from tensorop.model.steering import Choice, PastQuestion, State, drawn_parent, untried

DESCRIPTION = "the action that a softmax regression on the measured state prefers, fitted to recorded pairs"
PARENTS = 2


@functools.cache
def fitted() -> Mapping[str, Mapping[str, float]]:
    """`mean` and `scale` by feature; by action its weights, with the constant under an empty name."""
    found: Mapping[str, Mapping[str, float]] = json.loads(
        Path(__file__).with_name("learned.json").read_text(encoding="utf-8")
    )
    return found


def preferences(features: Mapping[str, float], actions: Sequence[str]) -> dict[str, float]:
    """Action -> probability among these. An unknown feature has its mean; an action without weights has none."""
    known = fitted()
    mean, scale = known["mean"], known["scale"]
    inputs = {name: (features[name] - mean[name]) / scale[name] for name in mean if name in features}
    scores = {}
    for action in actions:
        weights = known.get(action, {})
        scores[action] = weights.get("", -2.0) + sum(weights.get(name, 0.0) * x for name, x in inputs.items())
    most = max(scores.values())
    parts = {action: math.exp(score - most) for action, score in scores.items()}
    return {action: part / sum(parts.values()) for action, part in parts.items()}


def policy(state: State, history: Sequence[PastQuestion]) -> Choice | None:
    """The untried action with the largest probability; equal ones as drawn."""
    draw = random.Random(state.seed)
    if (parent := drawn_parent(state, history, draw)) is None:
        return None
    left = untried(parent, history)
    liked = preferences(parent.features, [*dict.fromkeys(action for action, _ in left)])
    action, region = max(left, key=lambda pair: (liked[pair[0]], draw.random()))
    return Choice(parent.digest, action, region, f"probability {liked[action]:.2f} of {len(liked)} actions")
