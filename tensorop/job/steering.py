"""What the next question asks for: a policy's choice among the actions that the measured state of templates leaves."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tensorop.author.llm.accounting import stage_of
from tensorop.author.llm.messages import Message, ModelReply, Request, Transport
from tensorop.author.llm.prompt import AnyBrief, Standing
from tensorop.author.policies import Policy
from tensorop.author.state import Measured, features, legal
from tensorop.model.steering import LADDER, Choice, Parent, PastQuestion, State, after_as_many, cost_reward, is_closed
from tensorop.model.trial import Finished, Outcome

ASKED_S = 60.0  # for one choice of a model


@dataclass(frozen=True)
class Settled:
    """A question that has its answer."""

    choice: Choice
    outcome: Outcome | None  # None: there was no answer
    answered: bool  # whether the answer had a template
    template: str = ""  # digest of the template, if it was accepted


@dataclass(frozen=True)
class Asking:
    """A question that is due."""

    choice: Choice
    parent: Finished  # the best trial of the template to change
    standing: Standing


@dataclass(frozen=True)
class Steering:
    """Asks a policy, with what was measured."""

    policy: Policy
    standing: Callable[[Sequence[Finished], Finished], Standing]  # (trials so far, of the template to change)
    brief: AnyBrief
    bound: float | None  # no kernel costs less; None if unknown
    seed: int
    transport: Transport | None = None  # to the model of --policy-model
    model: str = ""

    def __call__(
        self, ended: Sequence[Finished], best: Finished, settled: Sequence[Settled], left: int
    ) -> Asking | None:
        """What the next question asks for; None if the policy wants none. best: the author's best trial"""
        shown = best, *(one for one in _cheapest(ended) if one.trial.variant.template != best.trial.variant.template)
        history = [_step(one, ended, self.bound) for one in settled]
        if self.policy.parents > 1:
            shown = tuple(sorted(shown, key=lambda one: (is_closed(_digest(one), history), one.cost)))
        measured = [(one, self.standing(ended, one)) for one in shown[: self.policy.parents]]
        parents = tuple(self._parent(one, standing) for one, standing in measured)
        number = self.seed + 1000 * (len(settled) + 1)
        state = State(parents, self.bound, left, number, partial(ask, self.transport, self.model))
        choice = self.policy.choose(state, history)
        if choice is None:
            return None
        if self.brief.left_out == "feedback":  # its questions show no template
            choice = Choice(reason=choice.reason)
        one, standing = next((pair for pair in measured if _digest(pair[0]) == choice.parent), measured[0])
        return Asking(choice, one, standing)

    def _parent(self, one: Finished, standing: Standing) -> Parent:
        template = one.trial.variant.template
        of = Measured(one.cost, self.bound, standing.counters, standing.loop, standing.planned)
        known = features(of, self.brief.known)
        return Parent(
            template.digest, template.name, one.cost, known, tuple(legal(template, known, in_parts=of.in_parts))
        )


def ask(transport: Transport | None, model: str, question: str, answers: tuple[str, ...]) -> str:
    """The answer of the model of --policy-model. Raises LookupError if there is none."""
    if transport is None:
        raise LookupError("no --policy-model is named")
    request = Request(model, (Message("user", question),), temperature=0.0, max_tokens=512, answers=answers)
    reply = transport.complete(request, ASKED_S)
    if not isinstance(reply, ModelReply):
        raise LookupError(reply.outcome.message)
    try:
        return str(json.loads(reply.text)["choice"])
    except (ValueError, TypeError, KeyError):
        return reply.text.strip()


def _step(one: Settled, ended: Sequence[Finished], bound: float | None) -> PastQuestion:
    """What became of a question, from the trials so far."""
    if one.outcome is None:
        return PastQuestion(one.choice, reward=LADDER["answer"])
    if not one.outcome.ok:
        stage = stage_of(one.outcome.where) if one.answered else "template"
        return PastQuestion(one.choice, one.outcome.kind, reward=LADDER[stage])
    parent, child = (
        [trial.cost for trial in ended if _digest(trial) == of] for of in (one.choice.parent, one.template)
    )
    if (lowest := after_as_many(parent, child)) is None:
        return PastQuestion(one.choice, one.outcome.kind, one.template)
    parent_cost, child_cost = lowest
    reward = cost_reward(parent_cost, child_cost, bound)
    return PastQuestion(one.choice, one.outcome.kind, one.template, parent_cost / child_cost, reward)


def _cheapest(ended: Sequence[Finished]) -> list[Finished]:
    """The best trial of each template, the cheapest first."""
    found: dict[str, Finished] = {}
    for one in sorted(
        (one for one in ended if one.outcome.ok and one.score.cost is not None), key=lambda one: one.cost
    ):
        found.setdefault(_digest(one), one)
    return list(found.values())


def _digest(one: Finished) -> str:
    return one.trial.variant.template.digest
