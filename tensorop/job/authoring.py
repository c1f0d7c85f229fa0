"""A job's templates: the operator's own, and with the llm or replay author further ones, judged before they compete.

How a model's draft becomes a kernel, from top to bottom:

1. the model is asked for one, and once more where it fails (author/llm/rounds.py, prompt.py, transport.py)
2. the template in the answer is found and read (author/llm/reading.py; author/parse.py)
3. `judge` tries it at a few points as trials are carried out (trial/trial.py), and at each of these points
4. the gate reads the template (author/gate.py), a limited process renders it (render/apart.py), the gate reads the C
   (author/c_gate.py, author/addresses/), primitives become C (render/render.py): in this order in render/texts.py
5. a compiler makes an object, whose machine code is read (build/compile.py, build/gate.py), and a linker a program:
   `Target.build` (target.py)
6. it is verified, and in a search measured (trial/trial.py)
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop import settings
from tensorop.author import offline, parse
from tensorop.author.llm.prompt import Brief
from tensorop.author.llm.rounds import LlmAuthor, live, replay
from tensorop.author.llm.transcript import AuthorLimits
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
from tensorop.settings import Settings
from tensorop.store.journal import START_OVER, Journal
from tensorop.target import Target
from tensorop.trial import judging
from tensorop.trial.trial import FIRST_S, Evaluator, Limit, carry_out

TEMPLATES = 4  # asked of a model in one job
JUDGED_POINTS = 3  # of a new template's space, spread over it, before it may compete


@dataclass(frozen=True)
class JobAuthor:
    """Brings the templates of a job."""

    job: Job
    operator: Operator
    target: Target
    seed: Seed
    work: Path  # for candidates, and for what is asked of a model
    texts: Texts = field(default_factory=Texts)

    def templates(self, journal: Journal) -> Generator[Event, None, tuple[KernelTemplate, ...]]:
        """The operator's templates first, then the author's. A resumed run takes the author's from its journal."""
        job, operator = self.job, self.operator
        own = tuple(offline.templates(operator.folder, operator.name, operator.added))
        names = {template.name for template in own}
        for name in sorted(offline.files(operator.folder, operator.added).keys() - names):
            yield Note(f"template '{name}' has the same content as another template and is skipped")
        for template in _of_authors(journal):
            _require_sound(template, journal)
        kept = _kept(journal)
        if job.author == "offline" or kept:
            return (*own, *kept)
        source = "asking the language model" if job.author == "llm" else "reading recorded answers"
        yield Phase("author", f"{source} for up to {TEMPLATES} templates, in addition to the {len(own)} shipped ones")
        accepted: list[KernelTemplate] = []
        for answer in self._model().rounds(TEMPLATES, self.judge):
            name = answer.template.name if answer.template else f"answer {answer.number}"
            kind, message = answer.outcome.kind.value, answer.outcome.message
            journal.note("author", {"name": name, "repair": answer.repair, "kind": kind, "message": message[:1000]})
            if answer.outcome.ok and answer.template is not None:
                accepted.append(answer.template)
                yield Note(f"{name}: accepted; {answer.template.strategy.strip()}")
            else:
                yield Note(f"{name}{' (repaired)' if answer.repair else ''}: rejected: {kind}: {message[:200]}")
        if not accepted:
            yield Note(f"no template of --author {job.author} passed; the run uses the shipped templates")
        return (*own, *accepted)

    def judge(self, template: KernelTemplate) -> Outcome:
        """A new template at a few points of its space, through the very path of a trial, for the job's first dtype."""
        dtype = self.job.dtypes[0]
        space = judging.legal(self.operator, self.target.platform, template, dtype)
        if isinstance(space, Outcome):
            return space
        run = StageRun(dtype, Stage.MICRO, (), self.seed)
        evaluator = Evaluator(self.operator, self.target, run, self.work, self.texts)
        for index in judging.spread(space, JUDGED_POINTS):
            trial = Trial("judge", 0, Stage.MICRO, Variant(Kernel(template, dtype, space.at(index))))
            ended = carry_out(evaluator, trial, Limit(FIRST_S, "of a new template"))
            if not ended.outcome.ok:
                return replace(ended.outcome, message=f"at {trial.point}: {ended.outcome.message}")
        return Outcome(Kind.OK, "author")

    def _model(self) -> LlmAuthor:
        job, operator, platform = self.job, self.operator, self.target.platform
        dtype = job.dtypes[0]
        brief = Brief(
            operator=operator.name,
            description=operator.description,
            folder=operator.folder,
            platform=platform,
            primitives=platform.primitives_of(dtype),
            facts=instantiate.facts(platform, dtype, {}),
            example=offline.example(operator.folder),
        )
        environment = _environment(job)
        if job.author == "replay":
            return replay(brief, self.work / "llm", environment.llm_model or "recorded", seed=job.seed)
        limits = AuthorLimits(seconds=3 * job.author_timeout_s, call_seconds=job.author_timeout_s)
        return live(brief, environment, self.work, limits, seed=job.seed)


def reviser(job: Job, operator: Operator, target: Target) -> Revise | None:
    """What brings templates between the trials of a search, by what these told; no author does so far."""
    return None


def _of_authors(journal: Journal) -> list[KernelTemplate]:
    """Those of earlier runs that are no operator's own."""
    return [one for one in journal.history.templates.values() if one.author not in offline.AUTHORS]


def _kept(journal: Journal) -> tuple[KernelTemplate, ...]:
    """Those that are there from the start; later ones join where they did."""
    return tuple(one for one in _of_authors(journal) if one.digest not in journal.history.late)


def _require_sound(template: KernelTemplate, journal: Journal) -> None:
    """Raises JobError for a template of the journal that no author's answer could have been."""
    try:
        parse.check(template)
    except TensoropError as error:
        raise JobError(
            f"{journal.path} contains a template that no author could have written: {error}", hint=START_OVER
        ) from error


def require_author(job: Job, operator: Operator, journal: Journal | None = None) -> None:
    """Raises UsageError where the job's author cannot be asked: the operator has no prompts, no model or no endpoint is
    named, or none that a client could be made for. journal: of a run that goes on, which may have its templates
    already."""
    if job.author != Job.author and (journal is None or not _kept(journal)):
        if lacking := operator_read.prompts(operator):
            raise UsageError(
                f"--author {job.author} needs prompts of the operator, and {lacking[0]} is missing",
                hint="add the prompts (CONTRIBUTING.md, An operator), or remove --author",
            )
        if job.author == "replay":
            return  # its replies are recorded
        from tensorop.author.llm.transport import endpoint  # the client takes longer to load than a command takes

        endpoint(_environment(job))


def _environment(job: Job) -> Settings:
    found = settings.read()
    return replace(found, offline=found.offline or job.offline)
