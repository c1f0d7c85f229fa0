"""Micro-kernels alone: every draft that the platform can speak, on packed operands."""

from __future__ import annotations

from tensorop.author import offline
from tensorop.errors import TensoropError
from tensorop.model.kernel import Draft, Kernel
from tensorop.model.trial import Stage
from tensorop.render import instantiate
from tensorop.search.arms import Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.space import starts


def plan(task: Task) -> Plan:
    """An arm for each draft; drafts that come later have theirs too."""
    arms = (_arm(task, draft) for draft in task.known_drafts)
    found = [arm for arm in arms if arm is not None]
    return Plan(found, (), task.budget(Stage.MICRO), joining=lambda draft: _arm(task, draft))


def _arm(task: Task, draft: Draft) -> Arm | None:
    platform = task.target.platform
    if instantiate.missing_words(platform, draft, task.dtype):
        return None
    try:
        space, hints = instantiate.micro_space(platform, draft, task.dtype), task.hints(draft)
    except TensoropError:
        if draft.author == offline.AUTHOR:
            raise
        return None  # a model's was judged for the first dtype, and may have no legal point for another
    # however little time there is: what earlier searches found, else each choice that this stage cannot make
    due = starts.named(task.sure, draft, space) or starts.unlike(hints, draft, space)
    first = list(dict.fromkeys([*due, *starts.named(hints, draft, space)]))
    return Arm(Kernel(draft, task.dtype), space, first, max(1, len(due)))


PASS = Pass(Stage.MICRO, 0.33, plan=plan)
