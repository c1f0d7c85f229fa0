"""Micro-kernels alone: every template that the platform can speak, on packed operands."""

from __future__ import annotations

from tensorop.author import offline
from tensorop.errors import TensoropError
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.trial import Stage
from tensorop.render import instantiate
from tensorop.search.arms import Arm
from tensorop.search.task import Pass, Plan, Task
from tensorop.space import seeds


def plan(task: Task) -> Plan:
    """An arm for each template; templates that come later have theirs too."""
    arms = (_arm(task, template) for template in task.known_templates)
    found = [arm for arm in arms if arm is not None]
    return Plan(found, (), task.budget(Stage.MICRO), joining=lambda template: _arm(task, template))


def _arm(task: Task, template: KernelTemplate) -> Arm | None:
    platform = task.target.platform
    if instantiate.missing_primitives(platform, template, task.dtype):
        return None
    try:
        space, hints = instantiate.micro_space(platform, template, task.dtype), task.hints(template)
    except TensoropError:
        if template.author == offline.AUTHOR:
            raise
        return None  # a model's was judged for the first dtype, and may have no legal point for another
    # however little time there is: what earlier searches found, else each choice that this stage cannot make
    due = seeds.named(task.sure, template, space) or seeds.unlike(hints, template, space)
    first = list(dict.fromkeys([*due, *seeds.named(hints, template, space)]))
    return Arm(Kernel(template, task.dtype), space, first, max(1, len(due)))


PASS = Pass(Stage.MICRO, 0.33, plan=plan)
