"""A job's templates: the operator's own, and with the llm or replay author further ones, judged before they compete."""

from __future__ import annotations

import dataclasses
from collections.abc import Generator
from pathlib import Path

from tensorop import settings
from tensorop.author import offline, parse
from tensorop.author.llm import author as llm
from tensorop.author.llm.limits import Limits
from tensorop.author.llm.prompt import Brief
from tensorop.author.llm.rounds import LlmAuthor
from tensorop.commands import operator_read
from tensorop.errors import JobError, TensoropError, UsageError
from tensorop.events import Event, Note, Phase
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Outcome, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.search.arms import Revise
from tensorop.store.journal import START_OVER, Journal
from tensorop.target import Target
from tensorop.trial import judging
from tensorop.trial.trial import FIRST_S, Evaluator, Limit, carry_out

TEMPLATES = 4  # asked of a model in one job
JUDGED_POINTS = 3  # of a new template's space, spread over it, before it may compete


def templates(
    job: Job, operator: Operator, target: Target, journal: Journal, seed: Seed, work: Path, texts: Texts | None = None
) -> Generator[Event, None, tuple[KernelTemplate, ...]]:
    """The operator's templates first, then the author's. A resumed run takes the author's from its journal."""
    own = tuple(offline.templates(operator.folder, operator.name, operator.added))
    for name in sorted(offline.files(operator.folder, operator.added).keys() - {template.name for template in own}):
        yield Note(f"template '{name}' says what another says: left out")
    for template in _told(journal):
        _require_sound(template, journal)
    kept = _kept(journal)
    if job.author == "offline" or kept:
        return (*own, *kept)
    yield Phase("author", f"{job.author} writes up to {TEMPLATES} templates beside the {len(own)} there are")
    writer = _writer(job, operator, target, work)
    accepted: list[KernelTemplate] = []
    for answer in writer.rounds(TEMPLATES, lambda template: judge(job, operator, target, template, seed, work, texts)):
        name = answer.template.name if answer.template else f"answer {answer.number}"
        outcome = answer.outcome
        message = outcome.message[:1000]
        journal.note("author", {"name": name, "repair": answer.repair, "kind": outcome.kind.value, "message": message})
        if outcome.ok and answer.template is not None:
            accepted.append(answer.template)
            yield Note(f"{name}: passes; {answer.template.strategy.strip()}")
        else:
            yield Note(f"{name}{' repaired' if answer.repair else ''}: {outcome.kind.value}: {outcome.message[:200]}")
    if not accepted:
        yield Note(f"the {job.author} author brought nothing that passes; the run goes on with the shipped templates")
    return (*own, *accepted)


def reviser(job: Job, operator: Operator, target: Target) -> Revise | None:
    """What brings templates between the trials of a search, by what these told; no author does so far."""
    return None


def _told(journal: Journal) -> list[KernelTemplate]:
    """Those of earlier runs that are no operator's own."""
    return [one for one in journal.history.templates.values() if one.author not in offline.AUTHORS]


def _kept(journal: Journal) -> tuple[KernelTemplate, ...]:
    """Those that are there from the start; later ones join where they did."""
    return tuple(one for one in _told(journal) if one.digest not in journal.history.late)


def _require_sound(template: KernelTemplate, journal: Journal) -> None:
    """Raises JobError for a template of the journal that no author's answer could have been."""
    try:
        parse.check(template)
    except TensoropError as error:
        raise JobError(f"{journal.path} was changed: {error}", hint=START_OVER) from error


def require_author(job: Job, operator: Operator, journal: Journal | None = None) -> None:
    """Raises UsageError where the job's author cannot be asked: the operator has no prompts, no model or no endpoint is
    named, or none that a client could be made for. journal: of a run that goes on, which may have its templates
    already."""
    if job.author != Job.author and (journal is None or not _kept(journal)):
        if lacking := operator_read.prompts(operator):
            raise UsageError(
                f"--author {job.author}: {lacking[0]} is missing",
                hint="add the operator's prompts (CONTRIBUTING.md, An operator), or leave --author out",
            )
        from tensorop.author.llm.transport import endpoint  # the client takes longer to load than a command takes

        environment = settings.read()
        endpoint(dataclasses.replace(environment, offline=environment.offline or job.offline))


def judge(
    job: Job,
    operator: Operator,
    target: Target,
    template: KernelTemplate,
    seed: Seed,
    work: Path,
    texts: Texts | None = None,
) -> Outcome:
    """A new template at a few points of its space, through the very path of a trial, for the job's first dtype."""
    dtype = job.dtypes[0]
    space = judging.legal(operator, target.platform, template, dtype)
    if isinstance(space, Outcome):
        return space
    evaluator = Evaluator(operator, target, StageRun(dtype, Stage.MICRO, (), seed), work, texts or Texts())
    for index in judging.spread(space, JUDGED_POINTS):
        trial = Trial("judge", 0, Stage.MICRO, Variant(Kernel(template, dtype, space.at(index))))
        ended = carry_out(evaluator, trial, Limit(FIRST_S, "before it may compete"))
        if not ended.outcome.ok:
            return dataclasses.replace(ended.outcome, message=f"at {trial.point}: {ended.outcome.message}")
    return Outcome(Kind.OK, "author")


def _writer(job: Job, operator: Operator, target: Target, work: Path) -> LlmAuthor:
    dtype, platform = job.dtypes[0], target.platform
    brief = Brief(
        operator=operator.name,
        description=operator.description,
        folder=operator.folder,
        platform=platform,
        primitives=platform.primitives_of(dtype),
        facts=instantiate.facts(platform, dtype, {}),
        example=offline.example(operator.folder),
    )
    if job.author == "replay":
        return llm.replay(brief, work / "llm", settings.read().llm_model or "recorded", seed=job.seed)
    environment = settings.read()
    environment = dataclasses.replace(environment, offline=environment.offline or job.offline)
    limits = Limits(seconds=3 * job.author_timeout_s, call_seconds=job.author_timeout_s)
    return llm.live(brief, environment, work, limits=limits, seed=job.seed)
