"""What a question asks for: one action on one region of one template, and who chooses them.

Policies (`policies/`) import this module alone.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tensorop.model.trial import Kind

HEAD, BODY, ALL = "head", "body", "all"
REGIONS: Mapping[str, str] = {  # of a template, marked by lines `{# region: NAME #}`
    "prologue": "what stands before the loop: locals, sums, first loads",
    "loads-a": "loads and prefetches of A",
    "loads-b": "loads and prefetches of B",
    "multiply-adds": "multiply-adds",
    "counters": "loops, counters, addresses",
    "rest-of-k": "the steps of k after the loop",
    "update-c": "what is done with C",
    "stage": "copies to shared memory and waits for them",
    "epilogue": "sums to C",
}
# Name of an action -> what it asks for, and the regions that it may be done in, the most usual first.
_ACTIONS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "tile": ("choose other tile sizes, or what limits them", (HEAD,)),
    "vectorise": ("load or compute more elements with one instruction", ("loads-b", "loads-a", "multiply-adds")),
    "reorder": ("change the order of instructions, so that dependent ones are further apart", ("multiply-adds",)),
    "layout": ("read an operand in another order, or where it lies", ("loads-b", "loads-a")),
    "pipeline": ("load earlier, so that no multiply-add waits for an operand", ("loads-a", "loads-b")),
    "pair": ("split or place loads so that they issue beside multiply-adds", ("loads-a", "loads-b")),
    "prefetch": ("prefetch lines that are missed, or fewer that are not", ("loads-a", "loads-b", "update-c")),
    "unroll": ("do more or fewer steps of k in an iteration", ("counters",)),
    "split-sums": ("use more chains of sums, or fewer", ("multiply-adds", "prologue")),
    "address": ("compute addresses and counters with fewer integer instructions", ("counters", "loads-b", "loads-a")),
    "edge": ("make the steps after the loop, or the update of C, cheaper", ("rest-of-k", "update-c", "epilogue")),
    "stage": ("copy earlier, in other parts, or with more stages", ("stage",)),
    "swizzle": ("place shared memory so that fewer loads of a tile conflict", ("stage", "loads-a", "loads-b")),
    "split": ("divide the work of a tile among warps in another way", ("multiply-adds", "prologue", "epilogue")),
    "fresh": ("write another template, which differs in structure", (ALL,)),
}
CONFIGURE = "configure"  # not an action: the question for configurations of a shipped template
IMPROVE = "improve"  # an action of no type, in any region: the question of the policy `greedy`
ACTIONS: Mapping[str, str] = {name: what for name, (what, _) in _ACTIONS.items()}
OF_DEVICES = frozenset({"stage", "swizzle", "split"})
OF_PROCESSORS = frozenset({"pair", "prefetch", "vectorise"})  # a device has no primitives for them
PLACES: Mapping[str, tuple[str, ...]] = {name: places for name, (_, places) in _ACTIONS.items()}


@dataclass(frozen=True)
class Choice:
    """What a question asks for."""

    parent: str = ""  # digest of the template to change; empty: the best of the author
    action: str = IMPROVE
    region: str = ALL
    reason: str = ""

    @property
    def typed(self) -> bool:
        return self.action != IMPROVE

    def __str__(self) -> str:
        return f"{self.action} in {self.region}" if self.typed else self.action


@dataclass(frozen=True)
class PastQuestion:
    """A question of the search so far that is settled, and what came of it."""

    choice: Choice
    kind: Kind | None = None  # of the answer's outcome; None: there was no answer
    template: str = ""  # digest of the answer's template; empty: none passed
    gain: float | None = None  # cost of the parent over that of the template, as `after_as_many`; None: unknown
    reward: float = 0.0


@dataclass(frozen=True)
class Parent:
    """A template that a question may change."""

    digest: str
    name: str
    cost: float
    features: Mapping[str, float]  # what was measured of it; unknown ones are absent
    legal: Sequence[tuple[str, str]]  # actions with their regions, without those that the measured state excludes


def _no_model(question: str, answers: tuple[str, ...]) -> str:
    raise LookupError("no --policy-model is named")


@dataclass(frozen=True)
class State:
    """What is known before a question."""

    parents: Sequence[Parent]  # the cheapest first; of others than the first, those of another structure
    bound: float | None  # no kernel costs less; None if unknown
    questions_left: int
    seed: int  # of the job and the question: every draw of a policy is made from it
    # a question to the model of --policy-model, and its allowed answers -> an answer; LookupError if there is none
    ask: Callable[[str, tuple[str, ...]], str] = _no_model


def cost_reward(parent: float, child: float, bound: float | None) -> float:
    """The reward of a right template: the share of the logarithm of the distance to the bound that it closed; or 0."""
    if child >= parent:
        return 0.0
    far = math.log(parent / bound) if bound and bound < parent else 1.0
    return min(1.0, math.log(parent / child) / far)


def after_as_many(parent: Sequence[float], child: Sequence[float]) -> tuple[float, float] | None:
    """The lowest costs of a parent and a child after as many trials of each as the one with fewer has; None if one has
    none. parent, child: costs in the order of their trials; infinite for one that failed"""
    count = min(len(parent), len(child))
    lowest = min(parent[:count], default=math.inf), min(child[:count], default=math.inf)
    return lowest if math.isfinite(max(lowest)) else None


# The ladder below a right template: by the stage at which an answer failed.
LADDER: Mapping[str, float] = {
    "answer": -1.0,
    "template": -1.0,
    "gates": -0.8,
    "render": -0.8,
    "build": -0.6,
    "verify": -0.4,
    "measure": -0.4,
}


SECOND = 0.3  # probability of the second parent
# A second parent costs at most this much of the best one. Of the recorded pairs one in six gains more by one action, so
# a child of a dearer parent would hardly be the best.
SECOND_COSTS = 1.25
MOST_FAILED = 3  # children of a parent that failed, after which it is closed


def is_closed(digest: str, history: Sequence[PastQuestion]) -> bool:
    """Whether so many questions for a template brought none that is right. One that is not faster counts as right."""
    return sum(past.choice.parent == digest and past.reward < 0 for past in history) >= MOST_FAILED


def open_parents(state: State, history: Sequence[PastQuestion]) -> list[Parent]:
    """The parents that are not closed and have an untried action."""
    return [one for one in state.parents if not is_closed(one.digest, history) and untried(one, history)]


def drawn_parent(state: State, history: Sequence[PastQuestion], draw: random.Random) -> Parent | None:
    """The first open parent, or with a probability the second one if it costs little more; None if all are closed."""
    first, second = [*open_parents(state, history), None, None][:2]
    near = first is not None and second is not None and second.cost <= SECOND_COSTS * first.cost
    return second if near and draw.random() < SECOND else first


def untried(parent: Parent, history: Sequence[PastQuestion]) -> list[tuple[str, str]]:
    """The actions and regions that were not asked for with this parent."""
    done = {(step.choice.action, step.choice.region) for step in history if step.choice.parent == parent.digest}
    return [pair for pair in parent.legal if pair not in done]


def bottleneck(features: Mapping[str, float]) -> str:
    """What most cycles without issue wait for, as a class of states; `issue` if few do, `unknown` without counts."""
    waits = {name.partition(".")[2]: share for name, share in features.items() if name.startswith("stall.")}
    if not waits:
        return "unknown"
    cause = max(sorted(waits), key=lambda name: waits[name])
    return cause if waits[cause] >= 0.05 else "issue"
