"""Lets a model of --policy-model choose among the untried actions."""

from __future__ import annotations

from collections.abc import Sequence

from tensorop.model.steering import ACTIONS, Choice, PastQuestion, State, open_parents, untried

DESCRIPTION = "the action that the model of --policy-model chooses from the untried ones"
PARENTS = 2


def policy(state: State, history: Sequence[PastQuestion]) -> Choice | None:
    """What the model answers: one of the listed choices, which its answer is constrained to."""
    choices = {
        f"{action} in {region} of {parent.name}": Choice(parent.digest, action, region)
        for parent in open_parents(state, history)
        for action, region in untried(parent, history)
    }
    if not choices:
        return None
    lines = ["You choose what is changed next in a kernel template. The next question asks another model for it."]
    for parent in state.parents:
        near = f", {parent.cost / state.bound:.2f} times the bound" if state.bound else ""
        facts = ", ".join(f"{name} {value:.3g}" for name, value in parent.features.items())
        lines.append(f"Template {parent.name} costs {parent.cost:.4g}{near}. Measured: {facts}.")
    for step in history:
        came = (
            "no template" if not step.template else "unknown" if step.gain is None else f"{step.gain:.3f} times as fast"
        )
        lines.append(f"Asked before: {step.choice}; result: {came}.")
    lines += [f"- {name}: {ACTIONS[choice.action]}" for name, choice in choices.items()]
    answer = state.ask("\n".join(lines), tuple(choices))
    found = choices.get(answer)
    if found is None:
        raise ValueError(
            f"the model of --policy-model chose {answer[:80]!r}, which is none of its {len(choices)} choices"
        )
    return Choice(found.parent, found.action, found.region, "chosen by the model of --policy-model")
