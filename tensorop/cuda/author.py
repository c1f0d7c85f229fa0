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
from functools import cached_property, partial
from math import prod

import numpy as np

from tensorop.author import grammar, plans, policies, rules
from tensorop.author.llm import prompt, rounds
from tensorop.author.llm.prompt import DeviceBrief
from tensorop.author.llm.rounds import Aimed
from tensorop.cuda import compile as device
from tensorop.cuda import counted, kernels, standing, steered
from tensorop.cuda.choose import Candidate
from tensorop.cuda.cost_file import cost_model
from tensorop.cuda.counted import CountedFamilies
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.executed import Execution
from tensorop.cuda.family import Family
from tensorop.errors import TensoropError, UsageError
from tensorop.events import Event, Note, Phase
from tensorop.job import authoring, steering
from tensorop.job.authoring import JobAuthor
from tensorop.model.device import Key
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.steering import Choice, State, is_closed
from tensorop.model.trial import Kind, Outcome
from tensorop.process import barrier
from tensorop.provision import nvcc
from tensorop.provision.nvcc import Nvcc
from tensorop.store.journal import Journal

TEMPLATES = 6  # requested from a model in one job
POINTS = 6  # configurations of an accepted family that are executed and counted, in each layout
MOST_POINTS = 1 << 16  # configurations of a family, before its constraints
_REQUIRED = ("threads", "tile_m", "tile_n", "raster", "shared", "align_ab", "align_c")
# Names with which the library around a kernel would treat it in another way.
_RESERVED = frozenset({
    "swap", "cluster", "cluster_m", "cluster_n", "split_k", "stays", "matrices", "overlapped", "by_sums", "by_wave",
    "operands",
})  # fmt: skip
_EXAMPLE = "device/prompts/example.cu.j2"


def brief(
    operator: Operator, platform: Platform, dtypes: Sequence[str], shapes: Sequence[str], left_out: str = ""
) -> DeviceBrief:
    """The facts of a job's prompt. Raises UsageError for a platform or operator without one. left_out: as in Brief"""
    if why := counted.missing(platform):  # nothing can execute kernels here
        raise UsageError(
            f"platform '{platform.name}' has no author yet: {why}",
            hint="use a platform whose primitives are executed there (docs/how-to/use-an-llm.md), or remove --author",
        )
    folder = operator.folder / "device" / "prompts"
    if not (operator.folder / _EXAMPLE).is_file():
        raise UsageError(
            f"operator '{operator.name}' has no prompts for GPUs: there is no file {_EXAMPLE}",
            hint="add the prompts (CONTRIBUTING.md, An operator), or leave the model out",
        )
    if strange := [dtype for dtype in dtypes if kernels.kind(dtype) not in platform.primitives[0].types]:
        raise UsageError(
            f"no prompts for {', '.join(strange)}: a language model writes families of "
            f"{', '.join(platform.primitives[0].types)} for '{platform.name}'",
            hint="use another --dtype, or leave the model out",
        )
    return DeviceBrief(
        operator=operator,
        platform=platform,
        dtypes=tuple(dtypes),
        shapes=tuple(shapes),
        known={},
        example=prompt.example((operator.folder / _EXAMPLE).read_text(encoding="utf-8"), left_out),
        left_out=left_out,
        folders=(folder, operator.folder / "prompts"),
        more={
            "given": device_numbers(platform, dtypes[0]),
            "device": dict(platform.device or {}),
            "primitives": {name: one for name, (one, _) in kernels.primitives(platform, dtypes[0]).items()}
            | kernels.OWN,
            "types": {dtype: platform.primitives[0].types[kernels.kind(dtype)] for dtype in dtypes},
            "cost": cost_model(operator).model,
            "most": MOST_POINTS,
            "rules": rules.rules("device_rules"),
            "language": grammar.language(),
        },
    )


@dataclass(frozen=True)
class FamilyAuthor(JobAuthor):
    """The author of one job; the journal gets what the families that it accepted did."""

    found: CountedFamilies = field(default_factory=CountedFamilies)
    registers: dict[str, int] = field(default_factory=dict)  # of compiled configurations, by template and early point

    @property
    def before(self) -> int:
        return TEMPLATES

    @property
    def goes_on(self) -> bool:
        """Whether a question of an earlier process has no answer yet: all questions come before the search.

        The families that passed are judged again, so that the next question is the same as without an end between.
        """
        if self.job.author == "replay":
            return False
        with contextlib.suppress(UsageError):  # a resumed run needs no endpoint for what it has
            return bool(self.recording.in_flight)
        return False

    @cached_property
    def brief(self) -> DeviceBrief:
        shapes = map(self.operator.shapes.text, self.job.shapes)
        return brief(
            self.operator, self.target.platform, kernels.dtypes(self.job), tuple(shapes), self.job.leave_out or ""
        )

    @property
    def _given(self) -> dict[str, int]:
        return device_numbers(self.target.platform, self.brief.dtypes[0], self.job.epilogue)

    @cached_property
    def _compiler(self) -> Nvcc:
        return nvcc.nvcc(offline=self.job.offline or None)

    @cached_property
    def _reserved(self) -> frozenset[str]:
        call, cost = self.operator.on_device, cost_model(self.operator)
        return _RESERVED | {*self._given, *call.names, *counted.NAMES, *cost.model}

    @cached_property
    def _execution(self) -> Execution:
        return Execution(self.operator, self.target.platform, self.seed, self.work)

    def accepted(self, template: KernelTemplate, journal: Journal) -> Iterator[Event]:
        """Executes configurations of a family; the next question shows what they cost."""
        yield Phase("execution", f"{POINTS} configurations of {template.name} in each layout, on this processor")
        yield from map(Note, self._count(counted.modelled(template, self.operator), journal))
        self._show(None)

    def _show(self, to_change: KernelTemplate | None) -> None:
        """The next question shows this family, or the best one."""
        shipped = authoring.own(self.operator, self.job, self.target)
        parts = self.found, shipped, self._given, self.job.shapes, self.registers
        if (now := standing.standing(self.operator.on_device, *parts, to_change)) is not None:
            self.model.brief = replace(self.brief, more={**self.brief.more, "standing": now})

    def aim(self, number: int) -> Aimed | None:
        """What the policy chooses among the executed families; a new family without one, or without a typed action."""
        recording = self.recording
        known = steered.families(self.operator.on_device, self.found, self._given, self.job.shapes, self.registers)
        if recording.replays:
            of_number = (one.choice for one in recording.requests if one.seed - self.model.seed == number)
            choice: Choice | None = next(of_number, Choice())
        elif not known:
            return Aimed()
        else:
            past = steered.history(self.answered, known)
            policy, job = policies.load(self.job.policy, self.job.plugins), self.job
            transport = rounds.chooser(job) if job.policy_model else None
            asks = partial(steering.ask, transport, job.policy_model or "")
            parents = sorted((one.parent for one in known), key=lambda one: (is_closed(one.digest, past), one.cost))
            left = self.before - number + 1
            choice = policy.choose(
                State(tuple(parents[: policy.parents]), None, left, job.seed + 1000 * number, asks), past
            )
        if choice is None:
            return None
        current = next((one.template for one in known if one.template.digest == choice.parent), None)
        if not choice.typed or current is None:
            return Aimed()
        current = replace(current, model={})
        self._show(current)
        return Aimed(choice, current)

    def judge(self, template: KernelTemplate, dtype: str = "") -> Outcome:
        """The outcome of a new family: its head, then one configuration in each layout, of all types in turn."""
        refused = barrier.guarded("author", self._head, template)
        if isinstance(refused, Outcome):
            return refused
        each = []
        for number, layout in enumerate(self.operator.on_device.keys):
            family = barrier.guarded("author", self._family, template, layout)
            if isinstance(family, Outcome):
                return family
            places = _places(family, len(self.operator.on_device.keys))
            each.append(Candidate(family, places[number % len(places)]))
            if wrong := barrier.guarded("author", _planned, template, [Candidate(family, one) for one in places]):
                return wrong
        dtypes = [self.brief.dtypes[number % len(self.brief.dtypes)] for number in range(len(each))]
        # nvcc's own words on the first one, before another compiler's
        steps = (self._compiled, 1), (self._gated, None), (self._execution.verdict, None), (self._compiled, None)
        for check, some in steps:
            with ThreadPoolExecutor(self.job.jobs) as pool:
                outcomes = list(pool.map(check, each[:some], dtypes))
            for one, dtype, outcome in zip(each, dtypes, outcomes, strict=False):
                if not outcome.ok:
                    return replace(outcome, message=f"{_at(one, dtype)}: {outcome.message}")
        return Outcome(Kind.OK, "author")

    def _head(self, template: KernelTemplate) -> Outcome | None:
        """The refusal of a head that the library or the cost model could not work with."""
        if template.reads.get("operands") != "pointers":
            return _refused("its head says `reads: {operands: pointers}` for every family")
        if lacking := kernels.missing(self.target.platform, template):
            return _refused(f"needs: it needs {', '.join(lacking)}, which {self.target.platform.name} does not have")
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
            call = self.operator.on_device
            found = Family(call, counted.modelled(template, self.operator), {**self._given, **call.named(layout)})
            numbers = found.numbers(0)
        except (TensoropError, ArithmeticError, ValueError) as error:
            return _refused(str(error))
        for name, values in {"align_ab": (2, 16), "align_c": (2,)}.items():
            if not np.isin(np.asarray(found.grid[name], dtype=float), values).all():
                return _refused(f"the fact {name} is {numbers[name]}; expected {' or '.join(map(str, values))}")
        return found

    def _gated(self, one: Candidate, dtype: str) -> Outcome:
        text = kernels.text(self.operator, self.target.platform, one.template, dtype, one.numbers)
        return text if isinstance(text, Outcome) else Outcome(Kind.OK, "gate")

    def _compiled(self, one: Candidate, dtype: str) -> Outcome:
        text = kernels.text(self.operator, self.target.platform, one.template, dtype, one.numbers)
        if isinstance(text, Outcome):
            return text
        built = device.build(text, device.codes(self.target.platform, dtype), self._compiler)
        if isinstance(built, Outcome):
            return built
        self.registers[f"{one.template.name} {one.family.early(one.point)}"] = built.registers
        return Outcome(Kind.OK, "build")

    def _count(self, template: KernelTemplate, journal: Journal) -> list[str]:
        """Executes configurations of a family in all layouts, once in a run; remarks about those that fail."""
        self.found.templates.append(template)
        known = counted.of_journal(journal, (), self.operator).found
        if before := {key: counts for key, counts in known.items() if key[0] == template.digest}:
            self.found.found.update(before)
            return []
        todo = []
        for layout in self.operator.on_device.keys:
            family = self._family(template, layout)
            if isinstance(family, Family):
                todo += [Candidate(family, place) for place in _places(family, POINTS)]
        with ThreadPoolExecutor(self.job.jobs) as pool:
            outcomes = list(pool.map(self._executed, todo))
        remarks, rows = [], []
        for one, outcome in zip(todo, outcomes, strict=True):
            if isinstance(outcome, Outcome):
                remarks.append(f"{_at(one, self.brief.dtypes[0])}: {outcome.kind.value}: {outcome.message[:300]}")
            else:
                rows.append(self.found.add(one, outcome))
        journal.note(counted.NOTE, {"template": template.digest, "rows": rows})
        return remarks

    def _executed(self, one: Candidate) -> dict[str, int] | Outcome:
        verdict = self._execution.verdict(one, self.brief.dtypes[0])
        return self._execution.counts(one, self.brief.dtypes[0]) if verdict.ok else verdict


def _planned(template: KernelTemplate, each: Sequence[Candidate]) -> Outcome | None:
    """The refusal of a plan that holds at none of these configurations."""
    plan = plans.parse(template.plan, f"template '{template.name}'")
    wrong = [plans.counted(plan, one.numbers).wrong for one in each] if plan else []
    return _refused(f"plan: at {each[0].point}, {wrong[0]}") if wrong and all(wrong) else None


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
