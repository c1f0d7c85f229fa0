"""Accounts for the calls of a transcript: tokens, time, money, and how far each answer came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensorop.author.llm import transcript
from tensorop.author.llm.messages import ModelReply
from tensorop.author.llm.transcript import RecordedCall
from tensorop.errors import UsageError
from tensorop.model.steering import ALL, CONFIGURE, IMPROVE
from tensorop.model.trial import Finished, Outcome, Stage
from tensorop.store import journal

# The stages of an answer, in their order: the endpoint answers, the answer has a template, the gates accept it, it is
# rendered, built, verified, and measured.
STAGES = ("answer", "template", "gates", "render", "build", "verify", "measure")
_STAGE_OF = {"render": "render", "build": "build", "verify": "verify", "measure": "measure"}  # else the gates


@dataclass(frozen=True)
class AccountedCall:
    """A call of a transcript."""

    number: int
    question: int  # number of the template that it asks for
    repair: int
    trials: int  # of the search that were done when it was asked
    template: str  # name of the template in the answer; empty if it has none
    kind: str  # of its outcome; empty: it was in flight, or not judged
    failed_at: str  # a stage; empty if it was accepted, in flight or not judged
    message: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None  # None without a price file
    action: str = IMPROVE  # what its question asked for, and where
    region: str = ALL

    @property
    def accepted(self) -> bool:
        return self.kind == "ok"


@dataclass(frozen=True)
class StageCount:
    """How many of the settled calls that came to a stage passed it."""

    stage: str
    came: int
    passed: int


@dataclass(frozen=True)
class ActionCount:
    """What one action in one region brought."""

    action: str
    region: str
    tries: int  # questions, without repairs
    accepted: int
    gains: Sequence[float]  # cost of the parent over that of each accepted micro-kernel; without a journal none


@dataclass(frozen=True)
class Account:
    """The calls of a transcript, and their sums. Figures for an accepted kernel are None if none was accepted."""

    model: str
    calls: Sequence[AccountedCall]
    accepted: int  # answers whose template was accepted
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    cost: float | None  # None if any call has no price
    tokens_per_accepted: float | None
    seconds_per_accepted: float | None
    cost_per_accepted: float | None
    stages: Sequence[StageCount]
    actions: Sequence[ActionCount]


def account(folder: Path) -> Account:
    """The account of a run's folder, or of a transcript's. Raises UsageError without a transcript, JobError for a
    damaged one."""
    place = transcript.place(folder)
    recorded = transcript.calls(place)
    if not recorded:
        raise UsageError(
            f"{folder} has no recorded calls of a language model",
            hint="name the folder of a run with --author llm, or a copy of its work/llm",
        )
    first = transcript.head(place).seed
    found = [_accounted(call, first) for call in recorded]
    accepted = sum(call.accepted and call.action != CONFIGURE for call in found)
    prompt, completion = (sum(getattr(call, name) for call in found) for name in ("prompt_tokens", "completion_tokens"))
    seconds, costs = sum(call.seconds for call in found), [call.cost for call in found if call.cost is not None]
    unknown = [call for call in recorded if call.answer is not None and call.answer.cost is None]
    cost = None if unknown else sum(costs)

    def per_accepted(value: float | None) -> float | None:
        return None if value is None or not accepted else value / accepted

    return Account(
        model=recorded[0].request.model,
        calls=found,
        accepted=accepted,
        prompt_tokens=prompt,
        completion_tokens=completion,
        seconds=seconds,
        cost=cost,
        tokens_per_accepted=per_accepted(prompt + completion),
        seconds_per_accepted=per_accepted(seconds),
        cost_per_accepted=per_accepted(cost),
        stages=_stages(found),
        actions=_actions(found, gains(folder)),
    )


def _accounted(call: RecordedCall, seed: int) -> AccountedCall:
    place, answer, outcome = call.request.place, call.answer, call.outcome
    if outcome is None and answer is not None and not isinstance(answer, ModelReply):
        outcome = answer.outcome
    return AccountedCall(
        number=int(call.path.name.partition(".")[0].partition("-")[0]),
        question=call.request.seed - seed,
        repair=place.repair,
        trials=place.trials,
        template=call.template,
        kind=outcome.kind.value if outcome else "",
        failed_at=_failed_at(call, outcome) if outcome and not outcome.ok else "",
        message=outcome.message if outcome else "",
        prompt_tokens=answer.prompt_tokens if answer else 0,
        completion_tokens=answer.completion_tokens if answer else 0,
        seconds=answer.seconds if answer else 0.0,
        cost=answer.cost if answer else None,
        action=call.request.choice.action,
        region=call.request.choice.region,
    )


def stage_of(where: str) -> str:
    """The stage of an outcome's place."""
    return _STAGE_OF.get(where, "gates")


def _failed_at(call: RecordedCall, outcome: Outcome) -> str:
    if not isinstance(call.answer, ModelReply):
        return "answer"
    return stage_of(outcome.where) if call.template else "template"


def _stages(calls: Sequence[AccountedCall]) -> list[StageCount]:
    left = [call for call in calls if call.kind]
    found = []
    for stage in STAGES:
        passed = [call for call in left if call.failed_at != stage]
        found.append(StageCount(stage, len(left), len(passed)))
        left = passed
    return found


def _actions(calls: Sequence[AccountedCall], gained: Mapping[str, float]) -> list[ActionCount]:
    found = []
    for action, region in dict.fromkeys((call.action, call.region) for call in calls):
        mine = [call for call in calls if (call.action, call.region) == (action, region)]
        accepted = [call.template for call in mine if call.accepted]
        tries = sum(not call.repair for call in mine)
        own = [gained[name] for name in accepted if name in gained]
        found.append(ActionCount(action, region, tries, len(accepted), own))
    return found


def gains(folder: Path) -> dict[str, float]:
    """Name of a template of a model -> its parent's lowest cost over its own, as micro-kernels of one dtype.

    It is known by the journal in the folder of a run. Raises JobError for a damaged one.
    """
    if not journal.journal_path(folder).is_file():
        return {}
    history = journal.read(folder)
    costs: dict[tuple[str, str], float] = {}
    for end in history.replay():
        if isinstance(end, Finished) and end.trial.stage is Stage.MICRO and end.outcome.ok and end.score.cost:
            key = end.trial.dtype, end.trial.variant.template.digest
            costs[key] = min(end.score.cost, costs.get(key, end.score.cost))
    found: dict[str, float] = {}
    for (dtype, digest), cost in costs.items():
        template = history.templates[digest]
        if before := costs.get((dtype, template.parent)):
            found.setdefault(template.name, before / cost)
    return found
