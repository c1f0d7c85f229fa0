"""What the trials of a search say: which kernels go on, which blockings there are."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import replace

from tensorop.model.kernel import Kernel
from tensorop.model.trial import Finished, Stage
from tensorop.render import instantiate
from tensorop.search.task import Task
from tensorop.space import seeds

KERNELS = 6  # micro-kernels that go on to whole problems, and OTHERS beside those that earlier searches found
OTHERS = 2


def passed(task: Task, stage: Stage, arms: Container[str] | None = None) -> list[Finished]:
    """Trials of a stage that passed, of these arms where they are named."""
    ended = task.journal.history.ended((stage, task.dtype, 0))
    return [f for f in ended if f.outcome.ok and (arms is None or f.trial.arm in arms)]


def kernels(task: Task) -> dict[str, Kernel]:
    """By id, the micro-kernels that go on: those that earlier searches found; each template's best and the best of
    those that it began with, since what a template is for may not show alone, for each choice of its unseen tunables;
    then other tiles, the best of each VLEN in turn."""
    late = [template for template, _ in task.journal.history.joined((Stage.MICRO, task.dtype, 0))]
    arms = {Kernel(template, task.dtype).id for template in (*task.known_templates, *late)}
    ended = [f for f in passed(task, Stage.MICRO, arms) if f.score.cost is not None]
    ranked = [f.trial.variant.kernel for f in sorted(ended, key=lambda f: f.score.cost or 0.0)]
    others = _in_turn(ended, task.target.vlens, _micro_cost)
    chosen_before = {one.template for one in task.sure}  # whose choices those have made

    def kind(kernel: Kernel) -> tuple[int | str, ...]:
        name = kernel.template.name
        return (name, *(() if name in chosen_before else seeds.unseen(kernel.template, kernel.configuration)))

    best_of: dict[tuple[int | str, ...], Kernel] = {}
    own: dict[tuple[int | str, ...], Kernel] = {}
    hints = {kernel.template.digest: task.hints(kernel.template) for kernel in ranked}
    for kernel in ranked:
        best_of.setdefault(kind(kernel), kernel)
        if any(seeds.agrees(one, kernel.template.name, kernel.configuration) for one in hints[kernel.template.digest]):
            own.setdefault(kind(kernel), kernel)
    named = [own.get(of_kind, best) for of_kind, best in best_of.items()]
    known = [
        next((k for k in ranked if seeds.agrees(one, k.template.name, k.configuration)), None) for one in task.sure
    ]
    chosen = {kernel.id: kernel for kernel in known if kernel is not None}
    most = max(KERNELS, len(chosen) + OTHERS)
    shapes = {(*kind(kernel), *_tile(task, kernel)) for kernel in chosen.values()}
    for kernel in [*best_of.values(), *named, *others]:
        shape = (*kind(kernel), *_tile(task, kernel))
        if shape not in shapes and len(chosen) < most:
            shapes.add(shape)
            chosen[kernel.id] = kernel
    return chosen


def _tile(task: Task, kernel: Kernel) -> tuple[int, ...]:
    sizes = instantiate.tile(task.operator, task.target.platform, kernel, task.target.vlens[0])
    return task.operator.reference.same(sizes)


def tried(task: Task, of: Container[str]) -> dict[str, Finished]:
    """By id, the trial of every blocking of these kernels that passed; what one on large problems adds is among its
    figures."""
    ended = {f.trial.variant.id: f for f in passed(task, Stage.BLOCKING, of)}
    for again in passed(task, Stage.LARGE, of):
        before = ended[again.trial.variant.id]
        ended[again.trial.variant.id] = with_figures(before, again)
    return ended


def with_figures(before: Finished, again: Finished) -> Finished:
    """A trial with the figures of another one, which stand for its own."""
    both = {**before.score.per_problem, **again.score.per_problem}
    return replace(before, score=replace(before.score, per_problem=both))


def _micro_cost(finished: Finished, vlen: int) -> float:
    """A first-stage trial's cost at one VLEN, up to a factor all share: the problem grows as the vectors do."""
    (samples,) = finished.score.per_problem.values()
    return (finished.score.cost or 0.0) * samples.at(vlen) / samples.value


def _in_turn(ended: Sequence[Finished], vlens: Sequence[int], cost: Callable[[Finished, int], float]) -> list[Kernel]:
    """Each kernel once: the best at each VLEN, then the second best at each, and so on."""

    def ranked(vlen: int) -> list[Finished]:
        return sorted(ended, key=lambda finished: cost(finished, vlen))

    found = [f.trial.variant.kernel for at_once in zip(*map(ranked, vlens), strict=True) for f in at_once]
    return list({kernel.id: kernel for kernel in found}.values())
