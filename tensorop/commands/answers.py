"""`author pairs --from`: what typed actions gained in the answers of a language model, from a run or a dialogue.

A run has the costs of parents and children in its journal. A dialogue alone, a copy of `work/llm`, has outcomes: its
failed answers are rows too, and accepted ones are not, since nothing was measured.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from tensorop import backends
from tensorop.author import state
from tensorop.author.llm import accounting, transcript
from tensorop.author.state import Measured
from tensorop.commands import prompt
from tensorop.commands.pairs import PairRow, short
from tensorop.errors import UsageError
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.steering import CONFIGURE, LADDER, after_as_many, cost_reward
from tensorop.model.trial import Finished, Stage
from tensorop.store import journal
from tensorop.store.history import History
from tensorop.trial import judging
from tensorop.trial.roof import Roof


def answers(
    operator: Operator, platform: Platform, dtype: str, folder: Path, plugins: tuple[Path, ...] = ()
) -> Iterator[PairRow]:
    """A row for each settled question of a run or dialogue. Raises UsageError for another platform's, or for none."""
    history = journal.read(folder) if journal.journal_path(folder).is_file() else History()
    if (of := history.facts.get("platform", platform.name)) != platform.name:
        raise UsageError(f"{folder} is a run for '{of}', not for '{platform.name}'", hint=f"use --platform {of}")
    target = backends.reach(platform, plugins=plugins)
    known, bound = prompt.brief(operator, platform, (dtype,), ()).known, Roof(target).bound(dtype, target.vlens)
    trials = _trials(history, dtype)
    names = {one.name: digest for digest, one in history.templates.items()}
    calls = transcript.calls(transcript.place(folder))
    settled = {one.question: (one, call) for one, call in zip(accounting.account(folder).calls, calls, strict=True)}
    for one, call in settled.values():
        choice, child = call.request.choice, names.get(one.template, "")
        made_from = choice.parent or (history.templates[child].parent if child else "")
        lowest = after_as_many([one.cost for one in trials[made_from]], [one.cost for one in trials[child]])
        parent = min(trials[made_from], key=lambda one: one.cost, default=None)
        if not one.kind or choice.action == CONFIGURE or call.request.dtype not in ("", dtype):
            continue
        features, before, template = {}, "", ""
        if parent is not None and parent.outcome.ok:
            (samples,) = parent.score.per_problem.values()
            kernel = parent.trial.variant.kernel
            cost, planned = parent.score.cost or 0.0, judging.planned_at(platform, kernel)
            features = state.features(Measured(cost, bound, samples.counters, planned=planned), known)
            before, template = str(kernel.configuration), kernel.template.name
        if one.failed_at:
            gain, reward = 0.0, LADDER[one.failed_at]
        elif lowest is None:
            continue
        else:
            gain, reward = lowest[0] / lowest[1], cost_reward(*lowest, bound)
        where = platform.name, dtype, template, before, one.template, choice.action, choice.region
        rounded = {name: short(value) for name, value in sorted(features.items())}
        yield PairRow(*where, rounded, short(gain), short(reward))


def _trials(history: History, dtype: str) -> dict[str, list[Finished]]:
    """The trials of each template's micro-kernels in their order, by digest."""
    found: dict[str, list[Finished]] = defaultdict(list)
    for one in history.replay():
        if isinstance(one, Finished) and one.trial.stage is Stage.MICRO and one.trial.dtype == dtype:
            found[one.trial.variant.template.digest].append(one)
    return found
