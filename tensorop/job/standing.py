"""What a question for a better template says of those that were measured so far."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tensorop.author import offline, parse, regions
from tensorop.author.llm.prompt import MeasuredTemplate, Standing
from tensorop.costs.expected import Expectation
from tensorop.errors import TensoropError
from tensorop.model.hot_loop import HotLoop
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Limit, Outcome, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.process import barrier
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.space import problems
from tensorop.target import Target
from tensorop.trial import company, judging
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.trial import FIRST_S, carry_out

SHAPES = 3  # whole problems on which templates are compared
COMPARED = 3  # templates that are: the author's best, then the cheapest of the others


@dataclass(frozen=True)
class Standings:
    """Makes a `Standing` of the trials of one dtype; measures further what trials leave out."""

    job: Job
    operator: Operator
    target: Target
    seed: Seed
    work: Path
    texts: Texts
    dtype: str
    bound: float | None  # no kernel costs less; None if unknown
    _shapes: dict[str, Mapping[str, float]] = field(default_factory=dict)  # by the id of the kernel

    def __call__(self, ended: Sequence[Finished], best: Finished) -> Standing:
        """ended: the trials so far; best: of the template to change"""
        cheapest: dict[str, Finished] = {}
        for one in sorted((one for one in ended if one.score.cost is not None), key=lambda one: one.score.cost or 0.0):
            cheapest.setdefault(one.trial.variant.template.digest, one)
        compared = list(dict.fromkeys([best.trial.key, *(one.trial.key for one in cheapest.values())]))[:COMPARED]
        names = {digest: one.trial.variant.template.name for digest, one in cheapest.items()}
        (samples,) = best.score.per_problem.values()
        cost, variant = best.score.cost or 0.0, best.trial.variant
        return Standing(
            dtype=self.dtype,
            trials=len(ended),
            unit=f"{self.target.shown}",
            bound=self.bound,
            templates=tuple(
                MeasuredTemplate(
                    name=(template := one.trial.variant.template).name,
                    by=_by(template),
                    parent=names.get(template.parent, ""),
                    cost=one.score.cost or 0.0,
                    shapes=self._whole(one.trial.variant) if one.trial.key in compared else {},
                    strategy=template.strategy.strip(),
                )
                for one in cheapest.values()
            ),
            name=variant.template.name,
            text=parse.written(variant.template),
            point=str(variant.kernel.configuration),
            cost=cost,
            low=cost * samples.low / samples.value,
            high=cost * samples.high / samples.value,
            loop=self._hot_loop(best),
            counters=samples.counters,
            by=_by(variant.template),
            parts=regions.parts(variant.template),
            planned=judging.planned_at(self.target.platform, variant.kernel),
        )

    @cached_property
    def _micro(self) -> Evaluator:
        run = StageRun(self.dtype, Stage.MICRO, (), self.seed)
        return Evaluator(self.operator, self.target, run, self.work, self.texts)

    @cached_property
    def _problems(self) -> tuple[Problem, ...]:
        """Of the job's shapes a small, a middle and a large one, in the first layout."""
        found = problems.for_search(self.operator, self.dtype, self.job.shapes_of(self.dtype), self.target.budgets)
        first_layout = {one.shape: one for one in reversed(found)}
        ordered = sorted(first_layout.values(), key=self.operator.reference.work)
        return tuple(ordered[i] for i in judging.evenly(len(ordered), SHAPES))

    def _hot_loop(self, best: Finished) -> HotLoop | None:
        if self.target.simulated:
            return None
        found = barrier.guarded("profile", company.hot_loop, self._micro, best.trial)
        return None if isinstance(found, Outcome) else found

    def _whole(self, variant: Variant) -> Mapping[str, float]:
        """Shape -> cost of a whole problem with the blocking that is expected to be best; empty if the kernel fails."""
        kernel = variant.kernel
        if kernel.id not in self._shapes:
            try:
                space = instantiate.blocking_space(self.operator, self.target.platform, kernel)
            except TensoropError:  # no blocking fits its tile
                return {}
            expectation = Expectation(self.operator, self.target.platform, self._problems, self.target.vlens)
            expected = expectation.ranked(kernel, space)[0]
            run = StageRun(self.dtype, Stage.BLOCKING, self._problems, self.seed)
            evaluate = Evaluator(self.operator, self.target, run, self.work, self.texts)
            trial = Trial("whole", 0, Stage.BLOCKING, Variant(kernel, expected))
            score = carry_out(evaluate, trial, Limit(FIRST_S, "of whole problems")).score
            self._shapes[kernel.id] = {
                one.shape: 1000 * score.per_problem[one.label].value / self.operator.reference.work(one)
                for one in self._problems
                if one.label in score.per_problem
            }
        return self._shapes[kernel.id]


def _by(template: KernelTemplate) -> str:
    return "tensorop" if template.author in offline.AUTHORS else "you"
