"""A job's templates: the operator's own, and those of the llm or replay author, which are judged before the search.

How a model's draft becomes a kernel, step by step:

1. the model is asked for a template, and for one repair if it fails (author/llm/rounds.py, prompt.py, transport.py)
2. the template in the answer is found and parsed (author/llm/reading.py; author/parse.py)
3. `judge` tries it at a few points, by the code of trials (trial/trial.py); steps 4 to 6 are done at each point
4. the gate checks the template (author/gate.py), a limited process renders it (render/apart.py), the gate checks the C
   (author/c_gate.py, author/addresses/), primitives become C (render/render.py): in this order in render/texts.py
5. a compiler makes an object, whose machine code is checked (build/compile.py, build/gate.py), and a linker makes a
   program: `Target.build` (target.py)
6. the program is verified, and measured in a search (trial/trial.py)
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop.author import offline, parse
from tensorop.author.llm import rounds
from tensorop.author.llm.rounds import LlmAuthor
from tensorop.commands import prompt
from tensorop.errors import JobError, TensoropError
from tensorop.events import Event, Note, Phase
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Outcome, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render.texts import Texts
from tensorop.search.arms import Revise
from tensorop.store.journal import START_OVER, Journal
from tensorop.target import Target
from tensorop.trial import judging
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.trial import FIRST_S, Limit, carry_out

TEMPLATES = 4  # requested from a model in one job
JUDGED_POINTS = 3  # points across a new template's space at which it is judged before the search


@dataclass(frozen=True)
class JobAuthor:
    """Provides the templates of a job."""

    job: Job
    operator: Operator
    target: Target
    seed: Seed
    work: Path  # the folder of candidates and of a model's recorded calls
    texts: Texts = field(default_factory=Texts)

    def templates(self, journal: Journal) -> Generator[Event, None, tuple[KernelTemplate, ...]]:
        """The operator's templates, then the author's. A resumed run reads the author's from its journal."""
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
        """Tries a new template at a few points of its space, by the code of trials, for the job's first dtype."""
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
        brief = prompt.brief(operator, platform, job.dtypes, job.shapes)
        return rounds.of_job(job, brief, self.work)


def reviser(job: Job, operator: Operator, target: Target) -> Revise | None:
    """A function that adds templates during a search, from the results of trials; None: no author does so yet."""
    return None


def _of_authors(journal: Journal) -> list[KernelTemplate]:
    """The journal's templates that are not the operator's own."""
    return [one for one in journal.history.templates.values() if one.author not in offline.AUTHORS]


def _kept(journal: Journal) -> tuple[KernelTemplate, ...]:
    """The authors' templates from the start of the run; later ones join during the search again."""
    return tuple(one for one in _of_authors(journal) if one.digest not in journal.history.late)


def _require_sound(template: KernelTemplate, journal: Journal) -> None:
    """Raises JobError for a template of the journal that breaks a rule for authors' templates."""
    try:
        parse.check(template)
    except TensoropError as error:
        raise JobError(
            f"{journal.path} contains a template that no author could have written: {error}", hint=START_OVER
        ) from error


def require_author(job: Job, operator: Operator, journal: Journal | None = None) -> None:
    """Raises UsageError if the job's author cannot work: without prompts of the operator, a model, or a valid endpoint.

    journal: of a resumed run; if it has the author's templates, no author is needed
    """
    if job.author != Job.author and (journal is None or not _kept(journal)):
        prompt.require_prompts(operator, f"--author {job.author}")
        rounds.require(job)
