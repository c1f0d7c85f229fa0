"""Loads policies by name, and asks one: whatever it does, there is a choice with its reason."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop.errors import SpecError
from tensorop.model.steering import Choice, Parent, PastQuestion, State, open_parents, untried
from tensorop.model.trial import Kind
from tensorop.specs import catalog, pymodule
from tensorop.specs.printable import printable

KIND = "policies"


@dataclass(frozen=True)
class Policy:
    """A loaded policy file."""

    name: str
    path: Path
    description: str
    parents: int
    function: Callable[[State, Sequence[PastQuestion]], Choice | None]

    def choose(self, state: State, history: Sequence[PastQuestion]) -> Choice | None:
        """Its choice; None: no further question. A legal choice that names the fault stands in for a faulty one."""
        try:
            found = self.function(state, history)
            wrong = _fault(found, state)
        except Exception as error:  # of a plug-in, or of an endpoint that is gone
            found, wrong = None, f"{type(error).__name__}: {error}"
        if not wrong:
            return found
        open_ = open_parents(state, history)
        if not open_:
            return None
        action, region = untried(open_[0], history)[0]
        reason = printable(" ".join(f"the policy '{self.name}' gave no legal choice ({wrong})".split()))[:300]
        return Choice(open_[0].digest, action, region, f"{reason}; this is the first that is open")


def _fault(found: object, state: State) -> str:
    """What is wrong with a policy's result; empty if nothing is."""
    if found is None:
        return ""
    if not isinstance(found, Choice):
        return f"got {found!r:.80}, expected a Choice or None"
    if not found.typed:
        return ""
    legal = {pair for parent in state.parents if parent.digest == found.parent for pair in parent.legal}
    return "" if (found.action, found.region) in legal else f"got {found} of {found.parent or 'no template'}"


def load(name: str, plugins: tuple[Path, ...] = ()) -> Policy:
    """The policy of that name. Raises UsageError if there is none, SpecError if its file breaks the contract."""
    path = catalog.find(KIND, name, plugins)
    module = pymodule.load(path, f"tensorop_policy_{name}")
    description, parents = getattr(module, "DESCRIPTION", None), getattr(module, "PARENTS", 1)
    if not isinstance(description, str):
        raise SpecError(f"{path}: DESCRIPTION is {description!r}; expected a line of text")
    if not isinstance(parents, int) or not 1 <= parents <= 8:
        raise SpecError(f"{path}: PARENTS is {parents!r}; expected an integer from 1 to 8")
    if not callable(function := getattr(module, "policy", None)):
        raise SpecError(f"{path}: expected a function policy(state, history), got {function!r}")
    return Policy(name, path, description, parents, function)


def check(policy: Policy) -> list[str]:
    """What a policy does with a made-up search until it stops, one line a question. Raises SpecError for a fault."""
    pairs = (("tile", "head"), ("prefetch", "loads-a"), ("reorder", "multiply-adds"))
    features = {"over_bound": 0.3, "in_order": 1.0, "stall.compute": 0.4, "misses": 12.0, "loads": 0.5}
    parents = tuple(Parent(name, name, cost, features, pairs) for name, cost in (("first", 120.0), ("second", 130.0)))
    history: list[PastQuestion] = []
    lines: list[str] = []
    for number in range(8):
        state = State(parents, 100.0, 8 - number, number, lambda question, answers: answers[0])
        found = policy.function(state, history)
        if wrong := _fault(found, state):
            raise SpecError(f"{policy.path}: question {number + 1}: {wrong}; expected a legal choice or None")
        if found is None:
            return [*lines, f"question {number + 1}: none"]
        again = policy.function(state, history)
        if found != again:
            raise SpecError(f"{policy.path}: the same state and history gave {found} and {again}; draw from state.seed")
        lines.append(f"question {number + 1}: {found}{f' of {found.parent}' if found.parent else ''}: {found.reason}")
        history.append(
            PastQuestion(found, Kind.OK, f"child {number}", 1.1 if number % 2 else 0.9, 0.4 if number % 2 else 0.0)
        )
    return lines
