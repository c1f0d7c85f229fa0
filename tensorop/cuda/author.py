"""A language model's kernel families: what it is asked, how an answer is judged, and what the cost model gets to know.

An answer is read and parsed as any template (author/llm/). `FamilyAuthor.judge` then checks its head, and at one
configuration of each layout its text: the gates, the execution on this machine's processor (executed.py), and nvcc
(compile.py). A family that passes is executed at more configurations, whose counts the model ranks (counted.py).
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any

import numpy as np

from tensorop.author import grammar, rules
from tensorop.author.llm import rounds, transcript
from tensorop.author.llm.prompt import DeviceBrief
from tensorop.cuda import compile as device
from tensorop.cuda import counted, kernels, standing
from tensorop.cuda.choose import Candidate
from tensorop.cuda.cost_file import cost_model
from tensorop.cuda.counted import CountedFamilies
from tensorop.cuda.executed import Execution
from tensorop.cuda.family import Family
from tensorop.errors import SpecError, TensoropError, UsageError
from tensorop.events import Event, Note, Phase
from tensorop.model.device import Key
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.process import barrier
from tensorop.provision.nvcc import Nvcc
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.specs import files as reading
from tensorop.toolchain import programs, tool

TEMPLATES = 6  # requested from a model in one job
POINTS = 6  # configurations of an accepted family that are executed and counted, in each layout
MOST_POINTS = 1 << 16  # configurations of a family, before its constraints
_REQUIRED = ("threads", "tile_m", "tile_n", "raster", "shared", "align_ab", "align_c")
# Names with which the library around a kernel would treat it in another way.
_RESERVED = frozenset(
    ["swap", "cluster", "cluster_m", "cluster_n", "split_k", "stays", "matrices", "overlapped", "operands"]
)
_EXAMPLE = "device/prompts/example.cu.j2"


def require(platform: Platform) -> None:
    """Raises UsageError for a platform whose kernels nothing can execute here."""
    if why := counted.missing(platform):
        raise UsageError(
            f"platform '{platform.name}' has no author yet: {why}",
            hint="use a platform whose primitives are executed there (docs/how-to/use-an-llm.md), or remove --author",
        )


def brief(
    operator: Operator, platform: Platform, given: dict[str, int], dtypes: Sequence[str], shapes: Sequence[str]
) -> DeviceBrief:
    """The facts of a job's prompt. Raises UsageError for a platform or an operator without one."""
    require(platform)
    folder = operator.folder / "device" / "prompts"
    if not (operator.folder / _EXAMPLE).is_file():
        raise UsageError(
            f"operator '{operator.name}' has no prompts for GPUs: there is no file {_EXAMPLE}",
            hint="add the prompts (CONTRIBUTING.md, An operator), or leave the model out",
        )
    return DeviceBrief(
        operator=operator,
        platform=platform,
        dtypes=tuple(dtypes),
        shapes=tuple(shapes),
        known={},
        example=(operator.folder / _EXAMPLE).read_text(encoding="utf-8"),
        folders=(folder, operator.folder / "prompts"),
        more={
            "given": given,
            "device": dict(platform.device or {}),
            "primitives": {name: one for name, (one, _) in kernels.primitives(platform).items()} | kernels.OWN,
            "types": {dtype: platform.primitives[0].types[dtype.removesuffix(kernels.FLOAT_C)] for dtype in dtypes},
            "cost": cost_model(operator).model,
            "most": MOST_POINTS,
            "rules": rules.rules("device_rules"),
            "language": grammar.language(),
        },
    )


@dataclass
class FamilyAuthor:
    """The author of one job."""

    job: Job
    operator: Operator
    platform: Platform
    compiler: Nvcc
    given: dict[str, int]  # the device's numbers, for families
    shipped: Sequence[KernelTemplate]
    found: CountedFamilies = field(default_factory=CountedFamilies)
    registers: dict[str, int] = field(default_factory=dict)  # of compiled configurations, by template and early point
    answers: list[dict[str, Any]] = field(default_factory=list)  # every answer with its outcome, for the manifest
    model: str = ""  # the language model's name

    def __post_init__(self) -> None:
        self.seed = _seed(self.job)
        self.call = self.operator.on_device
        self.dtypes = [dtype + kernels.FLOAT_C * (self.job.c_dtype == "f32") for dtype in self.job.dtypes]
        self.execution = Execution(self.operator, self.platform, self.seed, (self.job.out / "work").absolute())
        self._reserved = _RESERVED | {
            *self.given, *self.call.names, *counted.NAMES, *cost_model(self.operator).model
        }  # fmt: skip

    def confine(self) -> str:
        """A remark for the user. Raises UsageError if this machine confines no kernels and the user did not consent."""
        program = tool.required(programs.sample_program(self.platform), "the smallest kernel")
        lacks = session.weaknesses(Native(), session.hello(Native(), program.path))
        if lacks and not self.job.unsafe:
            raise UsageError(
                f"--author {self.job.author} executes kernels that a model wrote, and this machine cannot sandbox "
                f"them: {'; '.join(lacks)}",
                hint="use a machine that can, or add --unsafe to run them with all your rights",
            )
        return f"--unsafe: {'; '.join(lacks)}; untrusted kernels run with all your rights" if lacks else ""

    def families(self) -> Iterator[Event]:
        """Asks for families, judges them and executes those that pass; `found` has them then."""
        job = self.job
        shapes = [self.operator.shapes.text(shape) for shape in job.shapes]
        facts = brief(self.operator, self.platform, self.given, self.dtypes, shapes)
        if remark := self.confine():
            yield Note(remark)
        if job.fresh and job.author == "llm":  # as in jobs for processors
            transcript.discard(job.out / transcript.OF_RUN)
        model = rounds.of_job(job, facts, (job.out / "work").absolute())
        self.model = model.model
        if model.recording is not None and not model.recording.replays:
            model.recording.begin(replace(model.recording.head, model=model.model, seed=job.seed, before=TEMPLATES))
        sources = {"llm": "asking the language model", "manual": "taking answers from work/llm/replies"}
        source = sources.get(job.author, "reading recorded answers")
        yield Phase("author", f"{source} for up to {TEMPLATES} kernel families")
        for answer in model.rounds(TEMPLATES, self.judge):
            name = answer.template.name if answer.template else f"answer {answer.number}"
            kind, message = answer.outcome.kind.value, answer.outcome.message
            self.answers.append({"name": name, "repair": answer.repair, "kind": kind, "message": message[:1000]})
            if answer.outcome.ok and answer.template is not None:
                yield Note(f"{name}: accepted; {answer.template.strategy.strip()}")
                yield Phase("execution", f"{POINTS} configurations of {name} in each layout, on this processor")
                yield from map(Note, self._count(counted.modelled(answer.template, self.operator)))
                parts = self.found, self.shipped, self.given, job.shapes, self.registers
                if (now := standing.standing(self.call, *parts)) is not None:
                    model.brief = replace(facts, more={**facts.more, "standing": now})
            elif answer.outcome.kind is Kind.LOST:
                yield Note(f"{name}: no answer: {message[:300]}")
            else:
                yield Note(f"{name}{' (repaired)' if answer.repair else ''}: rejected: {kind}: {message[:300]}")
        if not self.found.found:
            yield Note(f"no family of --author {job.author} passed; the library has the shipped ones")

    def judge(self, template: KernelTemplate) -> Outcome:
        """The outcome of a new family: its head, then one configuration in each layout."""
        refused = barrier.guarded("author", self._head, template)
        if isinstance(refused, Outcome):
            return refused
        each = []
        for number, layout in enumerate(self.call.keys):
            family = barrier.guarded("author", self._family, template, layout)
            if isinstance(family, Outcome):
                return family
            places = _places(family, len(self.call.keys))
            each.append(Candidate(family, places[number % len(places)]))
        dtypes = [self.dtypes[number % len(self.dtypes)] for number in range(len(each))]
        first = self._gated(each[0], dtypes[0])
        if first.ok:
            first = self._compiled(each[0], dtypes[0])  # nvcc's own words, before another compiler's
        if not first.ok:
            return replace(first, message=f"{_at(each[0], dtypes[0])}: {first.message}")
        for check in (self._gated, self.execution.verdict, self._compiled):
            with ThreadPoolExecutor(self.job.jobs) as pool:
                outcomes = list(pool.map(check, each, dtypes))
            for one, dtype, outcome in zip(each, dtypes, outcomes, strict=True):
                if not outcome.ok:
                    return replace(outcome, message=f"{_at(one, dtype)}: {outcome.message}")
        return Outcome(Kind.OK, "author")

    def _head(self, template: KernelTemplate) -> Outcome | None:
        """The refusal of a head that the library or the cost model could not work with."""
        if template.reads.get("operands") != "pointers":
            return _refused("its head says `reads: {operands: pointers}` for every family")
        if lacking := kernels.missing(self.platform, template):
            return _refused(f"needs: it needs {', '.join(lacking)}, which {self.platform.name} does not have")
        own = {*template.tunables, *template.facts}
        if taken := sorted(own & self._reserved):
            return _refused(f"tunables: '{taken[0]}' is a name of the library or of its cost model; take another")
        if absent := [name for name in _REQUIRED if name not in own]:
            return _refused(f"it has neither a tunable nor a fact '{absent[0]}'; expected {', '.join(_REQUIRED)}")
        if (size := prod(map(len, template.tunables.values()))) > MOST_POINTS:
            return _refused(f"tunables: they have {size} combinations; at most {MOST_POINTS} are read")
        return None

    def _family(self, template: KernelTemplate, layout: Key) -> Family | Outcome:
        try:
            found = Family(
                self.call, counted.modelled(template, self.operator), {**self.given, **self.call.named(layout)}
            )
            numbers = found.numbers(0)
        except (TensoropError, ArithmeticError, ValueError) as error:
            return _refused(str(error))
        for name, values in {"align_ab": (2, 16), "align_c": (2,)}.items():
            if not np.isin(np.asarray(found.grid[name], dtype=float), values).all():
                return _refused(f"the fact {name} is {numbers[name]}; expected {' or '.join(map(str, values))}")
        return found

    def _gated(self, one: Candidate, dtype: str) -> Outcome:
        text = kernels.text(self.operator, self.platform, one.template, dtype, one.numbers)
        return text if isinstance(text, Outcome) else Outcome(Kind.OK, "gate")

    def _compiled(self, one: Candidate, dtype: str) -> Outcome:
        text = kernels.text(self.operator, self.platform, one.template, dtype, one.numbers)
        built = (
            text if isinstance(text, Outcome) else device.build(text, device.codes(self.platform, dtype), self.compiler)
        )
        if isinstance(built, Outcome):
            return built
        self.registers[f"{one.template.name} {one.family.early(one.point)}"] = built.registers
        return Outcome(Kind.OK, "build")

    def facts(self) -> dict[str, Any]:
        """The author's part of a product's facts."""
        shipped = [
            template for template in self.found.templates if (template.digest, self.call.keys[0]) in self.found.found
        ]
        return {
            "author": rounds.original(self.job, (self.job.out / "work").absolute()),
            "model": self.model,
            "seed": str(self.seed),
            "answers": self.answers,
            "templates": counted.to_records(shipped),
        }

    def _count(self, template: KernelTemplate) -> list[str]:
        """Executes configurations of a family in all layouts and keeps their counts; remarks about those that fail."""
        self.found = replace(self.found, templates=(*self.found.templates, template))
        todo = []
        for layout in self.call.keys:
            family = self._family(template, layout)
            if isinstance(family, Family):
                todo += [Candidate(family, place) for place in _places(family, POINTS)]
        with ThreadPoolExecutor(self.job.jobs) as pool:
            outcomes = list(pool.map(self._executed, todo))
        remarks = []
        for one, outcome in zip(todo, outcomes, strict=True):
            if isinstance(outcome, Outcome):
                remarks.append(f"{_at(one, self.dtypes[0])}: {outcome.kind.value}: {outcome.message[:300]}")
            else:
                self.found.add(one, outcome)
        return remarks

    def _executed(self, one: Candidate) -> dict[str, int] | Outcome:
        verdict = self.execution.verdict(one, self.dtypes[0])
        return self.execution.counts(one, self.dtypes[0]) if verdict.ok else verdict


def _seed(job: Job) -> Seed:
    """The seed of the calls that verify. The same folder keeps it, since questions about failures follow from it.

    --fresh asks anew, so it draws another.
    """
    path = job.out / "work" / "seed"
    if job.secret is None and not job.fresh:
        with contextlib.suppress(OSError, SpecError, ValueError, TypeError):
            kept = Seed.parse(reading.text(path, reading.TEXT).strip())
            if kept.public == job.seed:
                return kept
    drawn = Seed.draw(job.seed, job.secret)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{drawn}\n", encoding="utf-8")
    return drawn


def _places(family: Family, count: int) -> list[int]:
    """Places of configurations with different kernels: the seed configurations, then some that are spread over all."""
    found: dict[int, None] = {}
    for seed in family.template.seed_configurations:
        known = {name: value for name, value in dict(seed).items() if name in family.grid}
        same = np.logical_and.reduce(
            [family.grid[name] == value for name, value in known.items()] or [np.array([True])]
        )
        for place in np.flatnonzero(same)[:1]:
            found.setdefault(int(place) // family.late * family.late)
    kernels_ = family.size // family.late
    for number in range(count):
        found.setdefault(kernels_ * number // count * family.late)
    return list(found)[:count]


def _at(one: Candidate, dtype: str) -> str:
    layout = ", ".join(f"{name} = {value}" for name, value in zip(one.family.call.layouts, one.key, strict=True))
    return f"{one.template.name} at {one.point}, {dtype}, {layout}"


def _refused(message: str) -> Outcome:
    return Outcome(Kind.REFUSED, "author", message)
