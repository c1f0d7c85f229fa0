"""`judge`: checks and measures one kernel of a file on the same path as a trial, without a search or a product."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from tensorop import paths
from tensorop.author import c_file, offline
from tensorop.author.parse import MAX_TEXT, parse
from tensorop.backends import reach
from tensorop.commands import beside, operator_read
from tensorop.commands.advice import FAILED, PASSED, PASSED_TRUSTED
from tensorop.costs.expected import Expectation
from tensorop.errors import JobError, SpecError, UsageError, of_system
from tensorop.model.hot_loop import HotLoop
from tensorop.model.kernel import TRUSTED, Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Outcome, Samples, Stage, Trial
from tensorop.model.verdict import ControlResult, Seed
from tensorop.process import scratch
from tensorop.render import instantiate
from tensorop.space import problems
from tensorop.specs import files
from tensorop.specs.operators import TEMPLATE_SUFFIX
from tensorop.trial import company, confinement, judging
from tensorop.trial.calls import micro_problem
from tensorop.trial.evaluator import CALL_TIMEOUT_S, Evaluator, Prepared
from tensorop.trial.trial import carry_out, in_time
from tensorop.verify import controls

CONFIGURATIONS = 3
USUAL = 4e7  # without --shapes: flops of the largest measured shape, about a second under an emulator
_DIRECT = "direct"  # the value of `reads` for an operand that a template reads unpacked
_FUNCTIONS = frozenset({"min", "max", "and", "or", "not", "in"})


@dataclass(frozen=True)
class Figure:
    """The cost of one call."""

    of: str  # a problem, or the micro-kernel alone on packed operands
    vlen: int  # bits; 0 if the target has a fixed width
    cost: float
    unit: str
    speed: float  # flops per unit of cost
    speed_unit: str
    of_peak: float | None  # a share; None if the peak is unknown
    ratios: Mapping[str, float] = field(default_factory=dict)  # by baseline: this speed over its own in the same call


@dataclass(frozen=True)
class Configuration:
    """A judged configuration."""

    point: Point
    outcome: Outcome
    figures: tuple[Figure, ...] = ()  # empty unless it passed
    hot_loop: HotLoop | None = None  # of the micro-kernel alone


@dataclass(frozen=True)
class Submission:
    """A file to judge, and the settings."""

    file: Path
    operator: Operator
    platform: Platform
    dtype: str
    shapes: Sequence[Shape] = ()  # whole calls are measured with them; empty: the largest affordable usual shape
    configurations: int = CONFIGURATIONS  # at most so many
    call_timeout_s: float = CALL_TIMEOUT_S  # for each verification call
    seed: Seed = field(default_factory=Seed.draw)
    runner: str | None = None
    plugins: tuple[Path, ...] = ()  # the user's plug-in folders
    jobs: int = 2
    unsafe: bool = False  # run the kernel even on a target that cannot confine it
    trusted: bool = False  # the file is C of any kind, which no gate reads


@dataclass(frozen=True)
class Ruling:
    """The result for a file."""

    of: Submission
    template: KernelTemplate
    measured_by: str
    controls: tuple[ControlResult, ...]
    outcome: Outcome  # the first failure; OK if every judged configuration passed
    remarks: tuple[str, ...] = ()  # for the user
    legal: int = 0  # number of legal configurations
    chosen: tuple[Point, ...] = ()  # configurations to judge; those after a failure are not judged
    judged: tuple[Configuration, ...] = ()

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def next_step(self) -> str:
        """Advice for the author."""
        at = {"operator": shlex.quote(self.of.operator.name), "platform": shlex.quote(self.of.platform.name)}
        if not self.ok:
            return FAILED[self.outcome.kind].format(**at)
        if self.of.trusted:
            return PASSED_TRUSTED
        plugins = paths.plugin_options(("DIR", *self.of.plugins))
        return PASSED.format(plugins=plugins, name=self.template.name, dtype=self.of.dtype, **at)

    def to_json(self) -> dict[str, object]:
        return {
            "file": str(self.of.file),
            "operator": self.of.operator.name,
            "platform": self.of.platform.name,
            "dtype": self.of.dtype,
            "ok": self.ok,
            "outcome": _record(self.outcome),
            "next": self.next_step,
            "measured_by": self.measured_by,
            "legal_configurations": self.legal,
            "not_judged": [dict(point) for point in self.chosen[len(self.judged) :]],
            "configurations": [
                {
                    "point": dict(one.point),
                    "outcome": _record(one.outcome),
                    "figures": [{**asdict(figure), "vlen": figure.vlen or None} for figure in one.figures],
                    "hot_loop": asdict(one.hot_loop) if one.hot_loop else None,
                }
                for one in self.judged
            ],
            "controls": [control.to_json() for control in self.controls],
            "seed": str(self.of.seed),
            "remarks": list(self.remarks),
        }


def _record(outcome: Outcome) -> dict[str, str]:
    return {"stage": outcome.where, "kind": outcome.kind.value, "message": outcome.message, "log": outcome.log}


def judge(of: Submission, tell: Callable[[str], None] = lambda text: None) -> Ruling:
    """Judges a file's kernel at its seed configurations, then at points spread over its space, until one fails.

    A configuration that the gates or the compiler refuse ends before the negative controls. A trusted file's calls are
    compared with the operator's baselines.
    tell: called with a line when a step begins
    Raises SpecError and UsageError for an invalid file or shape, UsageError if the target cannot confine the kernel
    and `unsafe` is False, JobError if the negative controls fail.
    """
    operator, dtype = of.operator, of.dtype
    if not paths.shipped(operator.folder):
        operator_read.require_read(operator, of.platform, (dtype,), pretended=False)
    template = read(of)
    usual = _usual(operator, dtype, _DIRECT in template.reads.values())
    measured = tuple(problems.of(operator, dtype, shape) for shape in of.shapes or (usual,))
    target = reach(of.platform, of.runner, of.plugins)
    if target.simulated:
        raise UsageError(f"--runner {target.name} is a dry run and cannot check a kernel", hint="remove --runner")
    problems.require_affordable(operator, (dtype,), of.shapes, target.budgets.flops_per_s, len(target.vlens))
    remark = ""
    if not of.trusted:
        tell(f"sandbox: checking that {target.platform.name} can run untrusted code")
        remark = confinement.confined(target, f"{of.file} is untrusted code", of.unsafe)
    passed = Outcome(Kind.OK, "measure")
    ruling = Ruling(of, template, target.measured_by, (), passed, (remark,) if remark else ())
    space = judging.legal(operator, target.platform, template, dtype)
    if isinstance(space, Outcome):
        return replace(ruling, outcome=space)
    points = judging.chosen(template, space, of.configurations)
    ruling = replace(ruling, legal=space.size, chosen=points)
    with scratch.folder("judge") as folder:
        run = StageRun(dtype, Stage.MICRO, measured, of.seed)
        evaluator = Evaluator(operator, target, run, folder, call_timeout_s=of.call_timeout_s)
        tell("gates and compiler: building the first configuration")
        if (refused := _refused(evaluator, template, points[0])) is not None:
            return replace(ruling, judged=(Configuration(points[0], refused),), outcome=refused)
        tell("negative controls: verification must reject known-wrong kernels")
        shown = controls.ControlRun(operator, target.platform, target.runner, of.seed).run((dtype,), of.jobs)
        ruling = replace(ruling, controls=shown)
        for number, point in enumerate(points, 1):
            tell(f"configuration {number} of {len(points)}: {point}")
            ended = _one(evaluator, template, point)
            outcome = ruling.outcome if ended.outcome.ok else ended.outcome
            ruling = replace(ruling, judged=(*ruling.judged, ended), outcome=outcome)
            if not ended.outcome.ok:
                break
    if of.trusted and ruling.ok:
        tell(f"baselines: {', '.join(operator.against)}")
        found, remarks = beside.speeds(operator, target, measured, of.seed)
        judged = tuple(replace(one, figures=_compared(one.figures, found)) for one in ruling.judged)
        ruling = replace(ruling, judged=judged, remarks=remarks)
    return ruling


def _compared(figures: Sequence[Figure], found: beside.Speeds) -> tuple[Figure, ...]:
    """The figures, those of whole calls with their ratios."""
    ratios = ({name: of.speed / speed for name, speed in found.get((of.of, of.vlen), {}).items()} for of in figures)
    return tuple(replace(of, ratios=at) for of, at in zip(figures, ratios, strict=True))


def read(of: Submission) -> KernelTemplate:
    """The kernel of a submission's file. Raises UsageError and SpecError that name the file and the place in it."""
    file, operator, platform, dtype = of.file, of.operator, of.platform, of.dtype
    text = template_text(file, operator, of.trusted)
    name = re.sub(r"[^a-z0-9_]", "_", file.name.removesuffix(TEMPLATE_SUFFIX).removesuffix(c_file.SUFFIX).lower())[:30]
    name = name if name[:1].isalpha() else f"k_{name}"
    try:
        template = parse(text, operator=operator.name, name=name, author=offline.PLUGIN)
    except SpecError as error:
        raise SpecError(f"{file}: {error.message}", hint=error.hint) from None
    if of.trusted:
        template = replace(template, author=TRUSTED, files=c_file.with_headers(file))
    known = instantiate.facts(platform, dtype, {})
    expressions = " ".join(re.sub(r"'\w*'", "", text) for text in operator.micro.values())
    reads = {f"reads_{name}" for name in template.reads}
    wanted = set(re.findall(r"[A-Za-z_]\w*", expressions)) - _FUNCTIONS - reads
    lacking = sorted(wanted - known.keys() - operator.blocking.values.keys() - template.tunables.keys())
    if lacking:
        raise SpecError(
            f"{file}: key 'tunables': expected {' and '.join(lacking)} among them, "
            f"got {', '.join(template.tunables) or 'none'}",
            hint=f"for a tile of one fixed size give each one value, e.g. {lacking[0]}: [4]  "
            "(docs/how-to/write-a-kernel-template.md)",
        )
    return template


def template_text(file: Path, operator: Operator, trusted: bool = False) -> str:
    """The text of a template file, or of a C file turned into a template. Raises UsageError and SpecError as `read`."""
    if trusted and not file.name.endswith(c_file.SUFFIX):
        raise UsageError(
            f"--trusted takes a C file (*{c_file.SUFFIX}); got {file}",
            hint="leave out --trusted: the gates read a template, which needs no trust",
        )
    if not file.name.endswith((TEMPLATE_SUFFIX, c_file.SUFFIX)):
        raise UsageError(
            f"{file}: expected a kernel template (*{TEMPLATE_SUFFIX}) or a C file (*{c_file.SUFFIX})",
            hint="docs/how-to/write-a-kernel-template.md has an example of each",
        )
    with of_system(UsageError, f"{file}: cannot be read", "check its permissions"):
        if not file.is_file():
            what = "it is not a file" if file.exists() else "the file does not exist"
            raise UsageError(f"{file}: {what}", hint=f"pass a kernel template (*{TEMPLATE_SUFFIX}) or a C file")
        if (size := file.stat().st_size) > 4 * MAX_TEXT:
            raise SpecError(f"{file} is too large: {size} bytes; a kernel has at most {MAX_TEXT} characters")
        text = files.text(file, 4 * MAX_TEXT)
    if not file.name.endswith(c_file.SUFFIX):
        return text
    return (c_file.trusted_text if trusted else c_file.template_text)(text, operator.numbers, str(file))


def _usual(operator: Operator, dtype: str, direct: bool) -> tuple[int, ...]:
    """The largest shape of at most USUAL flops in the usual suite, or for a direct kernel in the direct variant's."""
    suite = operator.suites[operator.direct.suite if direct and operator.direct else operator.usual]
    return max(problems.within(operator, dtype, suite, USUAL), key=lambda s: problems.work(operator, dtype, s))


def _stages(template: KernelTemplate) -> tuple[Stage, ...]:
    """A kernel that reads operands unpacked is judged in whole calls only, others as a micro-kernel first."""
    return (Stage.SMALLEST,) if _DIRECT in template.reads.values() else (Stage.MICRO, Stage.BLOCKING)


def _variant(evaluator: Evaluator, template: KernelTemplate, point: Point) -> Variant | Outcome:
    """A configuration with the blocking that should cost least, or its refusal."""
    operator, platform = evaluator.operator, evaluator.target.platform
    kernel = Kernel(template, evaluator.run.dtype, point)
    try:
        space = instantiate.blocking_space(operator, platform, kernel)
    except JobError as error:
        return Outcome(Kind.REFUSED, "author", f"no blocking fits the tile of this configuration: {error.message}")
    expectation = Expectation(operator, platform, evaluator.run.problems, evaluator.target.vlens)
    return Variant(kernel, expectation.ranked(kernel, space)[0])


def _refused(evaluator: Evaluator, template: KernelTemplate, point: Point) -> Outcome | None:
    """The failure of a configuration that cannot be built, else None."""
    variant, stage = _variant(evaluator, template, point), _stages(template)[0]
    if isinstance(variant, Outcome):
        return variant
    at = replace(evaluator, run=replace(evaluator.run, stage=stage))
    found = in_time("prepare", judging.PATIENT, 0.0, at.prepare, Trial("judge", 0, stage, variant))
    return found if isinstance(found, Outcome) else None if isinstance(found, Prepared) else found.outcome


def _one(evaluator: Evaluator, template: KernelTemplate, point: Point) -> Configuration:
    """Judges a configuration at its stages, which use the same program."""
    variant = _variant(evaluator, template, point)
    if isinstance(variant, Outcome):
        return Configuration(point, variant)
    figures: list[Figure] = []
    outcome, hottest = Outcome(Kind.OK, "measure"), None
    for stage in _stages(template):
        at = replace(evaluator, run=replace(evaluator.run, stage=stage), inputs={})
        trial = Trial("judge", 0, stage, variant)
        ended = carry_out(at, trial, judging.PATIENT)
        if not ended.outcome.ok:
            return Configuration(variant.point, ended.outcome)
        outcome = ended.outcome
        if stage is Stage.MICRO:
            hottest = company.hot_loop(at, trial)
        figures += _figures(evaluator, stage, variant, ended.score.per_problem)
    return Configuration(variant.point, outcome, tuple(figures), hottest)


def _figures(evaluator: Evaluator, stage: Stage, variant: Variant, found: Mapping[str, Samples]) -> Iterator[Figure]:
    target, operator = evaluator.target, evaluator.operator
    by_label: dict[str, Problem] = {p.label: p for p in evaluator.run.problems}
    for label, samples in found.items():
        for vlen in target.vlens:
            alone = stage is Stage.MICRO
            problem = micro_problem(operator, target.platform, variant, vlen) if alone else by_label[label]
            cost = samples.at(vlen)
            speed = float(operator.reference.work(problem)) / cost
            share = evaluator.roof.share(evaluator.run.dtype, vlen, speed)
            name = f"micro-kernel alone, {problem.shape}" if alone else problem.shape
            yield Figure(name, vlen, cost, samples.unit, speed, target.speed, share)
