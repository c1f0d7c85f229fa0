"""A job: the checked options of one tuning command."""

from __future__ import annotations

import numbers
import shlex
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar

from tensorop.errors import UsageError
from tensorop.model.listed import NO_FILES, Listed
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.option import Option
from tensorop.model.platform import Platform

MOST_CONFIGURATIONS = 15  # in one answer
_DAY_S = 86400.0
_BUILD = Path("build")
_EXPECTED = {"str": "a text", "str | None": "a text, or None", "bool": "True or False"}


def _amount(text: str) -> float:
    """An amount of money. Raises ValueError."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"an amount must be a number; got {text!r}") from None


def _option(default: Any, help: str, metavar: str = "", **more: Any) -> Any:
    default_ = None if more.get("late") else default
    return field(default=default, metadata={"option": Option(help, metavar, default=default_, **more)})


@dataclass(frozen=True)
class Job:
    """The request of `tensorop <operator>`. Its fields are the options of the command line and of `tensorop.tune`."""

    GIVEN: ClassVar[str] = "the shapes given"  # `suite` of shapes that are not a text

    operator: str
    # fmt: off
    platform: str = _option(
        "native", "Tune for this platform; `tensorop platforms list` describes each.", "NAME", group="Target",
    )
    dtypes: tuple[str, ...] = _option(
        ("f32", "f64"), "Tune these element types.", "NAME,...", example="f32", group="Target",
        shown="f32,f64 where operator and platform support them", name="dtype", late=True,
    )
    shapes: tuple[tuple[int, ...], ...] = _option(  # sizes in the operator's order
        (), "Tune for these suites, shapes and files of shapes, separated by commas (docs/reference/shapes-file.md).",
        "SUITE|SHAPE|@FILE,...", group="Target", late=True,
    )
    suite: str = ""  # the suite's name, or a description of the shapes
    listed: Listed = NO_FILES  # calls of files among the shapes, with their weights
    layout: int = _option(
        0,
        "Tune for this layout of the operands first, by its number; `tensorop operators show NAME` lists them.", "N",
        example="1", group="Target", least=0, most=999,
    )
    c_dtype: str | None = _option(
        None,
        "Choose the element type of the result where the platform offers several: on GPUs, f32 for bf16 and f16.",
        "NAME", example="f32", group="Target",
    )
    math: str | None = _option(
        None,
        "Compute products of f32 in another way, on GPUs: tf32 rounds factors to 10 bits behind the point, 3xtf32 adds "
        "three such products.", "NAME", example="3xtf32", group="Target",
    )
    epilogue: bool = _option(
        False, "Build a library that can also scale rows and columns, add a bias and a residual, and apply ReLU, GELU "
        "or SiLU. On processors it serves all types but i8. Kernels for GPUs take three times as long to build.",
        group="Target",
    )
    budget_s: float | None = _option(
        120.0,
        "Limit the search to this time, which all dtypes share. Set-up, verification and the comparison with the "
        "baselines take extra time.", "TIME", example="5m", group="Search", shown="2m", late=True,
    )
    trials: int | None = _option(
        None, "Limit the search to N trials instead of a time.", "N", example="100", group="Search", least=1,
        most=10**9,
    )
    no_search: bool = _option(
        False,
        "Build a library of known winners without a search; nothing is measured but the final comparison. Where none "
        "is known, it has each template's first expected kernel. --warm-start names other winners.", group="Search",
    )
    only: str | None = _option(
        None, "Search this template alone, shipped or yours.", "TEMPLATE", example="outer", group="Search",
    )
    tuner: str = _option(
        "bayes", "Use this search strategy; `tensorop tuners list` describes each.", "NAME", example="random",
        group="Search",
    )
    author: str = _option(
        "offline",
        "Choose who writes the micro-kernels. offline: use the shipped ones. llm: ask a language model too (set "
        "TENSOROP_LLM_MODEL, and OPENAI_API_KEY or OPENAI_BASE_URL). manual: write each question to a file in "
        "OUT/work/llm/prompts and take the answer from OUT/work/llm/replies. replay: use recorded answers.",
        example="llm", group="Language model", choices=("offline", "llm", "manual", "replay"),
    )
    transcript: Path | None = _option(  # noqa: RUF009 - it is a field
        None, "Take the recorded answers from this folder: a transcript, or a run that has one.", "DIR",
        example="build/mine", group="Language model", must_be="folder", shown="OUT/work/llm",
    )
    withhold: tuple[str, ...] = _option(
        (), "Do without these shipped templates: not in the search, its warm start or a prompt.", "NAME,...",
        example="lanes", group="Language model",
    )
    leave_out: str | None = _option(
        None,
        "Leave this out of the questions to the model, to measure what it is worth (`tensorop author ablate`). facts: "
        "of the platform. feedback: what was measured. counters: what was measured besides costs. "
        "plan: of a template.",
        example="hints", group="Language model", choices=("facts", "hints", "feedback", "counters", "plan"),
    )
    author_timeout_s: float = _option(
        600.0, "Wait at most this long for one answer of the model.", "TIME", example="90s", group="Language model",
        shown="10m",
    )
    author_time_s: float | None = _option(
        None, "Wait at most this long for all answers of a job.", "TIME", example="1h", group="Language model",
        shown="three times --author-timeout",
    )
    author_calls: int = _option(
        12, "Ask the model at most N times, repairs included.", "N", example="6", group="Language model", least=1,
        most=10_000,
    )
    author_tokens: int = _option(
        200_000, "Stop asking when the model has read and written N tokens, as its endpoint counts them.", "N",
        example="50000", group="Language model", least=1, most=10**12,
    )
    author_cost: float | None = _option(
        None, "Stop asking when the answers of a job have cost this much, in the currency of --author-prices.",
        "AMOUNT", example="2.50", group="Language model", kind=_amount,
    )
    author_prices: Path | None = _option(  # noqa: RUF009 - it is a field
        None, "Read the model's price from this file (docs/how-to/use-an-llm.md), and record what each answer costs.",
        "FILE", example="prices.yaml", group="Language model", must_be="file",
    )
    author_configurations: int = _option(
        0,
        "Ask the model once, for each element type, for up to N configurations of the best shipped template. They are "
        "tried before the tuner's next ones.", "N", example="15", group="Language model", least=0,
        most=MOST_CONFIGURATIONS,
    )
    policy: str = _option(
        "greedy",
        "Let this policy choose what each question of a search asks for; `tensorop policies list` describes each.",
        "NAME", example="coverage", group="Language model",
    )
    policy_model: str | None = _option(
        None, "Let this model choose, with --policy model. It is asked at the author's endpoint.", "NAME",
        example="small-model", group="Language model",
    )
    jobs: int = _option(2, "Run up to N builds in parallel.", "N", example="4", group="Search", least=1, most=256)
    workers: str = _option(
        "", "Run trials in N processes, each with --jobs builds in parallel, or on the workers of a Dask scheduler "
        "(docs/how-to/distribute-trials.md).", "N|tcp://HOST:PORT", example="4", group="Search",
    )
    batch: int | None = _option(
        None,
        "Propose N candidates per round. Set it to make a search reproducible when --jobs or --workers changes.",
        "N", example="8", group="Search", shown="as many as run in parallel", least=1, most=4096,
    )
    seed: int = _option(
        0,
        "Seed the search and the verification calls. A full seed N:SECRET, as a run prints it, repeats the calls of "
        "that run.", "N|N:SECRET", example="7", group="Search", kind=str,
    )
    secret: int | None = None  # the secret part of a seed N:SECRET
    threads: int = _option(
        1, "Use N threads in the comparison with the baselines (only on platforms that are timed by a clock).", "N",
        example="4", group="Target", least=1, most=1024,
    )
    runner: str | None = _option(
        None,
        "Run programs on this machine, in an emulator, on boards, or by a backend of your own. null: dry run with "
        "simulated costs; nothing is built or executed.", "native|qemu|null|ssh://HOST[,ssh://HOST...]",
        example="ssh://user@board", group="Target", shown="as the platform file says",
    )
    plugins: tuple[Path, ...] = _option(
        (),
        "Also use the platforms/, primitives/, templates/, tuners/, backends/ and policies/ in this folder. You may "
        "repeat it.",
        "DIR", example="mine", group="Other", must_be="folder", multiple=True,
    )
    offline: bool = _option(False, "Download nothing; use only what is in the cache.", group="Other")
    out: Path = _option(  # noqa: RUF009 - it is a field
        _BUILD, "Write the product to this folder.", "DIR", example="build/mine", group="Output",
        shown="build/OPERATOR-PLATFORM", late=True,
    )
    fresh: bool = _option(
        False,
        "Discard the previous run in --out, also the language model's answers, and start again from its best "
        "configurations (see --warm-start).", group="Output",
    )
    warm_start: str = _option(
        "auto",
        "Start the search from known configurations. auto: the shipped ones and those that --fresh discards. none: no "
        "known ones. Or those of a journal, a file of configurations, a product or a folder of journals "
        "(docs/how-to/tune-my-shapes.md).", "auto|none|FILE|DIR", example="none", group="Search",
    )
    unsafe: bool = _option(
        False,
        "Run LLM-written kernels even where the target cannot sandbox them (docs/explanation/security.md). The "
        "product records it.", group="Language model",
    )
    # fmt: on
    given: frozenset[str] | None = None  # options that the user gave; None: those that differ from the defaults

    @staticmethod
    def options() -> Mapping[str, tuple[Field[Any], Option]]:
        """Name for the user (without the unit `_s`) -> field and option."""
        found = {one.name.removesuffix("_s"): one for one in fields(Job) if "option" in one.metadata}
        return {name: (one, one.metadata["option"]) for name, one in found.items()}

    def shapes_of(self, dtype: str) -> tuple[tuple[int, ...], ...]:
        """The shapes without those that the files list for other element types alone."""
        return tuple(shape for shape in self.shapes if self.listed.ways(shape, dtype))

    @property
    def chosen(self) -> frozenset[str]:
        """Names of the options that the user gave."""
        if self.given is not None:
            return self.given
        values = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        return frozenset(name.removesuffix("_s") for name, value, usual in values if value not in (None, usual))

    def command(self, shapes: str) -> str:
        """The command line of this job, quoted for a shell. shapes: value of --shapes"""
        words = ["tensorop", self.operator]
        for name, (one, option) in Job.options().items():
            spelled = option.name or name.replace("_", "-")
            value = getattr(self, one.name)
            if not {name, spelled} & self.chosen:
                continue
            if name == "shapes":
                value = shapes
            elif name == "seed" and self.secret is not None:
                value = f"{value}:{self.secret:032x}"
            elif one.name.endswith("_s"):
                value = f"{value:g}s"
            values = value if option.multiple else [",".join(value) if isinstance(value, tuple) else value]
            for each in values:
                words += [f"--{spelled}"] if value is True else [f"--{spelled}", str(each)]
        return shlex.join(words)

    def __post_init__(self) -> None:
        for one in fields(self):
            value, option = getattr(self, one.name), one.metadata.get("option", Option())
            if not _is(value, str(one.type), option):
                expected = option.range or _EXPECTED.get(str(one.type), "an integer")
                hint = f"e.g. {one.name}={option.example!r}" if option.example else None
                raise UsageError(f"{one.name} must be {expected}; got {value!r}", hint=hint)
        budget = self.budget_s
        if isinstance(budget, bool) or not (budget is None or (isinstance(budget, numbers.Real) and 0 < budget < 1e18)):
            raise UsageError(f"--budget must be a positive time; got {budget!r} seconds", hint="e.g. --budget 2m")
        cost = self.author_cost
        if cost is not None and not (isinstance(cost, numbers.Real) and 0 < cost < 1e9):
            raise UsageError(f"--author-cost must be a positive amount; got {cost!r}", hint="e.g. --author-cost 2.50")
        if cost is not None and self.author_prices is None:
            raise UsageError(
                "--author-cost needs the model's price", hint="add --author-prices FILE (docs/how-to/use-an-llm.md)"
            )
        for name, value in (("timeout", self.author_timeout_s), ("time", self.author_time_s)):
            if value is not None and not (isinstance(value, numbers.Real) and 0 < value <= _DAY_S):
                what = f"--author-{name} must be a positive time of at most a day; got {value!r} seconds"
                raise UsageError(what, hint=f"e.g. --author-{name} 5m")

    @staticmethod
    def usual_dtypes(operator: Operator, platform: Platform) -> tuple[str, ...]:
        """The default dtypes, of those that the platform's first primitives for real numbers have.

        They are f32 and f64; without these, all that operator and platform have in common.

        Raises UsageError if they have no dtype in common.
        """
        both = tuple(dtype for dtype in platform.dtypes if dtype in operator.dtypes)
        if not both:
            raise UsageError(
                f"platform '{platform.name}' supports {', '.join(platform.dtypes)}, and {operator.name} supports "
                f"{', '.join(operator.dtypes)}: they have no dtype in common",
                hint="choose another platform; `tensorop platforms list` shows them",
            )
        real = (one.types for one in platform.primitives if not all(NUMBERS[name].whole for name in one.types))
        types = next(real, both)
        first = tuple(dtype for dtype in both if dtype in types) or both
        return tuple(dtype for dtype in Job.dtypes if dtype in first) or first

    @staticmethod
    def folder(operator: str, platform: str) -> Path:
        """The default folder of the product."""
        return _BUILD / f"{operator}-{platform}"


def _is(value: Any, kind: str, option: Option) -> bool:
    """Whether a value has its field's type; True for types other than str, bool and int."""
    if kind.endswith(" | None") and value is None:
        return True
    match kind.removesuffix(" | None"):
        case "str":
            return isinstance(value, str) and (not option.choices or value in option.choices)
        case "bool":
            return isinstance(value, numbers.Integral) and value in (False, True)
        case "int":
            whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
            return whole and (option.most is None or (option.least or 0) <= value <= option.most)
    return True
