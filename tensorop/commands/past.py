"""What a finished search found, read from the product's journal: each variant's costs on a problem."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tensorop import backends
from tensorop.author import offline
from tensorop.commands.opened import Opened
from tensorop.costs.terms import quantities
from tensorop.dispatch import choice, evidence, robust
from tensorop.dispatch.choice import Candidates
from tensorop.dispatch.shapes import chosen_for
from tensorop.errors import UsageError
from tensorop.measure.samples import objective
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, Variant
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.trial import Finished, Stage
from tensorop.model.verdict import Seed
from tensorop.model.winner import VariantRecord, WarmStart, Winners
from tensorop.render import instantiate
from tensorop.runners.native import Native
from tensorop.search.task import Task
from tensorop.space import problems
from tensorop.store import journal
from tensorop.store.records import words
from tensorop.warm import start

Costs = Sequence[float | None]  # of variants in the library's order; None: unknown


@dataclass(frozen=True)
class PastTask(Task):
    """One dtype's part of a finished job. The journal has no budget and no suite, so what was tried is read from it."""

    @cached_property
    def shortlist(self) -> dict[str, Kernel]:
        return {finished.trial.arm: finished.trial.variant.kernel for finished in self.passed(Stage.BLOCKING)}

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """All problems that the search may have measured."""
        operator, budgets = self.operator, self.target.budgets
        named = (*self.job.shapes, *operator.probes, *operator.clock_probes)
        shapes = dict.fromkeys((*named, *(problems.proxy(operator, self.dtype, shape, budgets) for shape in named)))
        layouts = range(len(operator.layouts))
        return tuple(problems.of(operator, self.dtype, shape, layout) for layout in layouts for shape in shapes)

    @property
    def final_problems(self) -> tuple[Problem, ...]:
        return ()


def task(found: Opened, dtype: str) -> PastTask:
    """Raises UsageError if the library is not in a product with a journal, JobError for a damaged journal."""
    if found.root is None or not journal.journal_path(found.root).is_file():
        raise UsageError(f"{found.root or found.library} has no journal of a search")
    history = journal.read(found.root)
    backend = backends.load(str(history.facts["runner"]), found.plugins)
    platform = replace(found.platform, vlens=tuple(found.card["platform"]["vlens"]))  # those of the job's target
    # a board model is a file; the board behind a clock is not contacted
    target = backend.reach(platform, "") if backend.deterministic else backend(platform, Native())
    shapes = tuple(found.operator.shapes.of(text) for text in words(history.facts, "shapes"))
    job = Job(found.operator.name, platform.name, history.dtypes, shapes, out=found.root)
    opened = journal.Journal(found.root, history, -1)
    return PastTask(job, found.operator, target, (), (), opened, Seed.draw(0), found.root, dtype=dtype)


def candidates(of: PastTask, carried: Sequence[VariantRecord]) -> tuple[Winners, list[int]]:
    """The variants that the dispatch chose among, and the numbers there of those that the library carries.

    Raises KeyError if the journal is of another product, UsageError if there was no search.
    """
    ended = (f for f in of.journal.history.replay() if isinstance(f, Finished) and f.outcome.ok)
    tried = {f.trial.variant.id: f.trial.variant for f in ended if f.trial.dtype == of.dtype}
    if not tried:
        raise UsageError(
            "the library was made without a search, which would have measured its variants",
            hint="for costs, make the library again without --no-search",
        )
    by_point = {(v.template.digest, v.point): v for v in tried.values() if not v.kernel.vlen}
    own = [by_point[one["digest"], Point.of(one["point"])].id for one in carried]
    notes = (data for name, data in of.journal.history.notes if name == evidence.NOTE and data["dtype"] == of.dtype)
    noted = ({one["id"]: one["specialisations"] for one in data["variants"]} for data in notes)
    alone = {name: one.get("specialisations", []) for one, name in zip(carried, own, strict=True)}
    among = [alone, *(variants for variants in noted if alone.keys() <= variants.keys())][-1]
    variants: list[Variant] = [replace(tried[name], specialisations=tuple(at)) for name, at in among.items()]
    direct = variants.pop() if variants[-1].template.name == offline.DIRECT else None
    return Winners(of.dtype, tuple(variants), (), direct), [[*among].index(name) for name in own]


def origin(found: Opened, dtype: str, number: int) -> str:
    """Where the blocking of a library's variant comes from, in words; empty for one without blocking.

    number: of the variant in the library
    """
    of = task(found, dtype)
    among, numbers = candidates(of, found.card["dtypes"][dtype]["variants"])
    variant, platform = among.all[numbers[number]], of.target.platform
    if not variant.blocking:
        return ""
    space = instantiate.blocking_space(of.operator, platform, variant.kernel)
    begun = (start.of_journal(of.journal.history, found.library) or {}).get(dtype, WarmStart())
    if any(one.template == variant.template.name and one.point == variant.point for one in (*begun.sure, *begun.hints)):
        return "an earlier search, with which this one began"
    by_caches = variant.blocking in instantiate.starts(of.operator, platform, variant.kernel, space)
    return "the sizes of the caches; no blocking that was tried did better" if by_caches else "the search"


def costs(found: Opened, problem: Problem, vlen: int, block: Mapping[str, int] | None = None) -> tuple[Costs, Costs]:
    """Costs of the library's variants: by the models that its tree was grown on, and as measured on this very problem.

    vlen: bits; 0: the only one; block: features of a block of the problem, to be predicted in its place
    """
    of = task(found, problem.dtype)
    among, numbers = candidates(of, found.card["dtypes"][problem.dtype]["variants"])
    vlen = vlen or of.target.vlens[0]
    known = evidence.load_costs(of, among)
    predicted: Costs = (None,) * len(among.all)
    if block or chosen_for(of.operator, problem):  # else `direct` serves, and models do not see such problems
        here = Candidates.of(of.operator, of.target.platform, among, vlen)
        rows, others = robust.weighed(of, among, known)[vlen], evidence.others(of, among.variants, vlen)
        predicted = choice.predicted(here, rows, others, {**quantities(of.operator, [problem]), **(block or {})})
    measured: Costs = next((row.costs for row in known[vlen] if row.problem.label == problem.label), ())
    if not measured:  # `direct` has trials of its own
        alone = {f.trial.variant.id: f.score.per_problem.get(problem.label) for f in of.passed(Stage.SMALLEST)}
        each = [alone.get(variant.id) for variant in among.all]
        measured = [None if samples is None else objective(samples, vlen) for samples in each]
    return [predicted[n] for n in numbers], [None if block else measured[n] for n in numbers]
