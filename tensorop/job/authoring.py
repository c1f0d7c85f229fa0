"""A job's templates: the operator's own, and those of a language model, or of a recording or a user who plays one.

Some are asked for before the search, others during it (revising.py). How a draft becomes a kernel, step by step:

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

import contextlib
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path

from tensorop.author import offline, parse, policies
from tensorop.author.llm import rounds
from tensorop.author.llm.manual import ManualTransport
from tensorop.author.llm.prompt import AnyBrief, repeatable
from tensorop.author.llm.rounds import Aimed, LlmAuthor, Round
from tensorop.author.llm.transcript import RecordedTransport
from tensorop.commands import prompt
from tensorop.device_target import for_device
from tensorop.errors import JobError, TensoropError, UsageError, unknown_name
from tensorop.events import Event, Note, Phase
from tensorop.job.revising import AskingPlan, Reviser
from tensorop.job.standing import Standings
from tensorop.job.steering import Steering
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.stage_run import StageRun
from tensorop.model.steering import Choice
from tensorop.model.trial import Finished, Kind, Limit, Outcome, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.provision import llvm
from tensorop.render.texts import Texts
from tensorop.search.arms import Remarks, Revise
from tensorop.store.journal import START_OVER, Journal
from tensorop.target import Target
from tensorop.trial import judging
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.roof import Roof
from tensorop.trial.trial import FIRST_S, carry_out

TEMPLATES = 4  # requested from a model before the search
JUDGED_POINTS = 3  # points of a new template at which it is judged: its seed configurations, then others
NOTE, _QUESTION = "author", "question"  # the journal's notes of an answer, and of a question during the search


@dataclass(frozen=True)
class JobAuthor:
    """Provides the templates of a job."""

    job: Job
    operator: Operator
    target: Target
    seed: Seed
    work: Path  # the folder of candidates and of a model's recorded calls
    texts: Texts = field(default_factory=Texts)
    answered: list[Round] = field(default_factory=list)  # before the search

    def templates(self, journal: Journal) -> Generator[Event, None, tuple[KernelTemplate, ...]]:
        """The operator's templates, then the author's. A resumed run reads the author's from its journal."""
        job, operator = self.job, self.operator
        for template in _of_authors(journal):
            _require_sound(template, journal)
        shipped = own(operator, job, self.target)
        if self.target.measures:
            names = {template.name for template in offline.templates(operator.folder, operator.name, operator.added)}
            for name in sorted(offline.files(operator.folder, operator.added).keys() - names):
                yield Note(f"template '{name}' has the same content as another template and is skipped")
        if job.author == offline.AUTHOR:
            return shipped
        if job.author == "replay" and (head := self.recording.head).model and head.seed != job.seed:
            differs = f"--seed {job.seed} differs from the recording's, which is {head.seed}"
            yield Note(f"{differs}: the search tries other configurations, and may make another library")
        for request in RecordedTransport(self.work / "llm", None).in_flight if job.author == "llm" else ():
            yield Note(f"a call was in flight when the last process ended: {request.place}; it is made again")
        if (kept := _kept(journal)) and not self.goes_on:
            with contextlib.suppress(UsageError):  # a resumed run needs no endpoint for what it has
                early = {place: outcome for place, outcome in _noted(journal).items() if place[0] <= self.before}
                self.model.relearn(early)
            return (*shipped, *kept)
        if remark := self._analyser():
            yield Note(remark)
        if self.before:
            source = "asking the language model" if job.author == "llm" else "reading recorded answers"
            also = f"in addition to the {len(shipped)} shipped ones"
            yield Phase("author", f"{source} for up to {self.before} templates, {also}")
        if not self.recording.replays:
            head = replace(self.recording.head, model=self.model.model, seed=job.seed, before=self.before)
            head = replace(head, left_out=job.leave_out or "", configurations=job.author_configurations)
            self.recording.begin(replace(head, verification=str(self.seed)))
        accepted: list[KernelTemplate] = []
        for answer in self.model.rounds(self.before, self.judge, self.aim):
            if answer.choice.typed:
                fields: dict[str, object] = {"number": answer.number, "trials": 0, **asdict(answer.choice)}
                _note_once(journal, _QUESTION, fields)
            _note(journal, answer)
            yield Note(described(answer))
            self.answered.append(answer)
            if answer.outcome.ok and answer.template is not None:
                accepted.append(answer.template)
                yield from self.accepted(answer.template, journal)
        if self.before and not accepted:
            yield Note(f"no template of --author {job.author} passed; the run uses the shipped templates")
        return (*shipped, *accepted)

    @property
    def goes_on(self) -> bool:
        """Whether a resumed run that has templates asks for further ones before the search."""
        return False

    def aim(self, number: int) -> Aimed | None:
        """What the question for this template asks for before the search; None if no further one is asked."""
        return Aimed()

    def accepted(self, template: KernelTemplate, journal: Journal) -> Iterator[Event]:
        """Does what an accepted template needs before the next question."""
        return iter(())

    def judge(self, template: KernelTemplate, dtype: str = "") -> Outcome:
        """Tries a new template at a few points of its space, by the code of trials. dtype: by default the first"""
        dtype = dtype or self.job.dtypes[0]
        space = judging.legal(self.operator, self.target.platform, template, dtype)
        if isinstance(space, Outcome):
            return space
        if template.author in offline.AUTHORS:  # with configurations of the author
            return judging.configured(template, space)
        if refused := judging.planned(self.target.platform, template, dtype, space):
            return refused
        run = StageRun(dtype, Stage.MICRO, (), self.seed)
        evaluator = Evaluator(self.operator, self.target, run, self.work, self.texts)
        for point in judging.chosen(template, space, JUDGED_POINTS):
            trial = Trial("judge", 0, Stage.MICRO, Variant(Kernel(template, dtype, point)))
            ended = carry_out(evaluator, trial, Limit(FIRST_S, "of a new template"))
            if not ended.outcome.ok:
                return replace(ended.outcome, message=f"at {trial.point}: {ended.outcome.message}")
        return Outcome(Kind.OK, "author")

    def _analyser(self) -> str:
        """Fetches the program that analyses loops on a clock; the reason if it is absent."""
        target = self.target
        if (
            not target.measures
            or target.deterministic
            or target.simulated
            or not target.llvm_cpu
            or self.job.author == "replay"
        ):
            return ""
        try:
            llvm.MCA.program(offline=self.job.offline or None)
        except JobError as error:  # also of a cache that cannot be written
            return f"questions to the model have no static analysis of its loop: {error.message}"
        return ""

    @property
    def before(self) -> int:
        """The number of templates that are asked for before the search; further ones are asked for during it."""
        recorded = 0 if self.job.author == "manual" else self.recording.head.before
        return min(TEMPLATES, max(1, self.job.author_calls // 3)) if recorded is None else recorded

    @cached_property
    def model(self) -> LlmAuthor:
        """The language model, or a recording of one. Raises UsageError if the environment sets no usable endpoint."""
        return rounds.of_job(self.job, self.brief, self.work)

    @cached_property
    def brief(self) -> AnyBrief:
        """The facts of its questions."""
        job, operator, platform = self.job, self.operator, self.target.platform
        return prompt.brief(operator, platform, job.dtypes, job.shapes, job.leave_out or "")

    @property
    def recording(self) -> RecordedTransport:
        assert self.model.recording is not None
        return self.model.recording


def own(operator: Operator, job: Job, target: Target) -> tuple[KernelTemplate, ...]:
    """The operator's templates that the job uses. Raises UsageError for an unknown name, or if none is left."""
    found = target.templates(operator, job.dtypes)
    names, withheld = [template.name for template in found], job.withhold
    if job.only is not None:
        withheld = tuple(name for name in names if name != job.only)
    for name in (*job.withhold, *([job.only] if job.only is not None else [])):
        if name not in names:
            raise unknown_name(f"template of {operator.name}", name, names)
    if {*names} == {*withheld}:
        raise UsageError(f"--withhold leaves no template of {operator.name}", hint=f"keep one of {', '.join(names)}")
    return tuple(template for template in found if template.name not in withheld)


def recorded_seed(job: Job) -> Seed | None:
    """The seed of verification in the transcript to replay; None if it has none, or the user names one."""
    if job.author != "replay" or job.secret is not None:
        return None
    recorded = RecordedTransport(rounds.transcript(job) or job.out / "work" / "llm", None).head.verification
    return Seed.parse(recorded) if recorded else None


def reviser(author: JobAuthor, journal: Journal, remarks: Remarks) -> Revise | None:
    """A function that adds templates during a search, from the results of trials; None if the author does not."""
    if author.job.author == offline.AUTHOR:
        return None
    try:
        model = author.model
    except UsageError:  # a resumed run needs no endpoint for what it has
        return None
    searches: dict[str, Reviser] = {}

    def revise(dtype: str, ended: Sequence[Finished], spent: float) -> Sequence[KernelTemplate]:
        if dtype not in searches:
            searches[dtype] = _reviser(author, model, journal, remarks, dtype)
        return searches[dtype](ended, spent)

    return revise


def _reviser(author: JobAuthor, model: LlmAuthor, journal: Journal, remarks: Remarks, dtype: str) -> Reviser:
    """The reviser of one dtype; each has the same part of the questions."""
    job, target, place = author.job, author.target, author.job.dtypes.index(dtype)
    bound = Roof(target).bound(dtype, target.vlens)
    standing = Standings(job, author.operator, target, author.seed, author.work, author.texts, dtype, bound)
    whole, parts = job.author_calls - author.before, len(job.dtypes)
    questions = whole * (place + 1) // parts - whole * place // parts
    if author.recording.replays:
        questions = len(author.recording.requests)
    plan = AskingPlan(dtype, place == 0, bound, author.before, questions, job.author_configurations)

    def note(answer: Round) -> None:
        _note(journal, answer)
        remarks.now.append(described(answer))

    def note_question(number: int, trials: int, choice: Choice) -> None:
        fields: dict[str, object] = {"number": number, "trials": trials, **(asdict(choice) if choice.typed else {})}
        if choice.typed and (_QUESTION, fields) not in journal.history.notes:
            remarks.now.append(f"question {number}: {choice}: {choice.reason}")
        _note_once(journal, _QUESTION, fields)

    asked = ManualTransport(author.work / "llm") if job.author == "manual" else None
    judge, known = partial(author.judge, dtype=dtype), _noted(journal)
    steering = _steering(author, standing, bound)
    return Reviser(model, author.recording, judge, steering, plan, known, note, note_question, remarks, manual=asked)


def _steering(author: JobAuthor, standing: Standings, bound: float | None) -> Steering:
    """What asks the job's policy. A replay has the recorded choices, and asks none."""
    job = author.job
    transport = rounds.chooser(job) if job.policy_model and job.author != "replay" else None
    policy = policies.load(job.policy, job.plugins)
    return Steering(policy, standing, author.brief, bound, job.seed, transport, job.policy_model or "")


def described(answer: Round) -> str:
    """A line for the user."""
    template, outcome = answer.template, answer.outcome
    name = _name(answer)
    if outcome.ok and template is not None and template.author in offline.AUTHORS:
        return f"{name}: {len(template.seed_configurations)} are tried next"
    if outcome.ok and template is not None:
        return f"{name}: accepted; {template.strategy.strip()}"
    return f"{name}{' (repaired)' if answer.repair else ''}: rejected: {outcome.kind.value}: {outcome.message[:200]}"


def _name(answer: Round) -> str:
    if answer.template is None:
        return f"answer {answer.number}"
    return ("configurations of " if answer.template.author in offline.AUTHORS else "") + answer.template.name


def _note(journal: Journal, answer: Round) -> None:
    name = _name(answer)
    kind, message = answer.outcome.kind.value, repeatable(answer.outcome).message
    fields = {"number": answer.number, "name": name, "repair": answer.repair, "kind": kind, "message": message[:1000]}
    _note_once(journal, NOTE, fields)


def _note_once(journal: Journal, name: str, fields: dict[str, object]) -> None:
    """A resumed run gets to the same facts again."""
    if (name, fields) not in journal.history.notes:
        journal.note(name, fields)


def _noted(journal: Journal) -> Mapping[tuple[int, int], Outcome]:
    """(number, repair) -> outcome of an answer in an earlier process."""
    notes = [data for name, data in journal.history.notes if name == NOTE and isinstance(data, dict)]
    known = [data for data in notes if {"number", "repair", "kind"} <= data.keys() and data["kind"] in list(Kind)]
    return {
        (data["number"], data["repair"]): Outcome(Kind(data["kind"]), "author", str(data.get("message", "")))
        for data in known
    }


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


def require_author(job: Job, operator: Operator, target: Target, journal: Journal | None = None) -> None:
    """Raises UsageError if the job's author cannot work: without prompts of the operator, a model, or a valid endpoint.

    journal: of a resumed run; if it has the author's templates, no author is needed
    """
    if job.author != Job.author and (journal is None or not _kept(journal)):
        if (device := for_device(target)) is not None:
            device.brief(operator, job.dtypes, job.shapes)
        else:
            prompt.require_prompts(operator, f"--author {job.author}")
            policies.load(job.policy, job.plugins)
        rounds.require(job)
