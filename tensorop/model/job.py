"""A job: one command's wishes, checked."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from tensorop.errors import UsageError
from tensorop.model.operator import Operator
from tensorop.model.option import Option
from tensorop.model.platform import Platform

_DAY_S = 86400.0
_BUILD = Path("build")
_EXPECTED = {"str": "a text", "str | None": "a text, or None", "bool": "True or False"}


def _option(default: Any, help: str, metavar: str = "", **more: Any) -> Any:
    default_ = None if more.get("late") else default
    return field(default=default, metadata={"option": Option(help, metavar, default=default_, **more)})


@dataclass(frozen=True)
class Job:
    """What `tensorop <operator>` was asked for; its fields are the options of command line and `tensorop.tune`."""

    operator: str
    platform: str = _option("native", "What to tune for; `tensorop platforms list` says what each is.", "NAME")
    dtypes: tuple[str, ...] = _option(
        ("f32", "f64"),
        "Element types; by default f32 and f64, or what operator and platform have.",
        "NAME,...",
        name="dtype",
        late=True,
    )
    shapes: tuple[tuple[int, ...], ...] = _option(  # sizes in the operator's order
        (), "Suites of the operator and shapes, by default its first suite.", "SUITE|SHAPE,...", late=True
    )
    suite: str = ""  # what the shapes are called together
    c_dtype: str | None = _option(
        None, "Type of the result, where a platform has a choice: f32 beside bf16 and f16 on GPUs.", "NAME"
    )
    budget_s: float | None = _option(
        120.0,
        "Search time of all dtypes together, e.g. 90s, 3m or 1h30m, by default 2m; set-up, verification and comparison "
        "are extra.",
        "TIME",
        late=True,
    )
    trials: int | None = _option(None, "Search trials instead of a time.", "N", least=1, most=10**9)
    tuner: str = _option("bayes", "Search strategy; `tensorop tuners list` says what each is.", "NAME")
    author: str = _option(
        "offline",
        "Who writes micro-kernels: those shipped; a language model too (TENSOROP_LLM_MODEL, OPENAI_API_KEY or "
        "OPENAI_BASE_URL); a recorded one.",
        choices=("offline", "llm", "replay"),
    )
    author_timeout_s: float = _option(
        600.0,
        "Longest wait for one answer of a model, e.g. 90s; all of a job's have three times that.",
        "TIME",
        shown="10m",
    )
    jobs: int = _option(2, "Builds side by side.", least=1, most=256)
    workers: str = _option(
        "",
        "Carry trials out in N processes, or on the workers of a Dask scheduler (docs/how-to/distribute-trials.md); "
        "--jobs is then "
        "side by side in each of N.",
        "N|tcp://HOST:PORT",
    )
    batch: int | None = _option(
        None,
        "Trials asked for at once, by default as many as run side by side; they decide the search's path.",
        "N",
        least=1,
        most=4096,
    )
    seed: int = _option(
        0,
        "Of everything random; whole, as a job printed it, it repeats the calls that kernels are judged on.",
        "N|N:SECRET",
        kind=str,
    )
    secret: int | None = None  # the other half of a whole seed
    threads: int = _option(1, "Threads of the comparison, where a clock measures.", least=1, most=1024)
    runner: str | None = _option(
        None,
        "Where programs run, or a backend of your own; by default the platform says. null: simulated costs, nothing is "
        "built.",
        "native|qemu|null|ssh://HOST[,ssh://HOST...]",
    )
    plugins: tuple[Path, ...] = _option(
        (),
        "Folder with platforms/, primitives/, templates/, tuners/, backends/ of your own; may be given several times.",
        must_be="folder",
        multiple=True,
    )
    offline: bool = _option(False, "Download nothing: use what is in the cache.")
    out: Path = _option(  # noqa: RUF009 - it is a field
        _BUILD, "The product's folder, by default build/OPERATOR-PLATFORM.", "DIR", late=True
    )
    fresh: bool = _option(False, "Forget what --out holds and start over, by its winners unless --warm-start says.")
    warm_start: str = _option(
        "auto",
        "Where the search begins: at shipped winners and those that --fresh forgets; at none; at those of a journal, a "
        "file of winners, a product or a folder of journals (docs/how-to/tune-my-shapes.md).",
        "auto|none|FILE|DIR",
    )
    unsafe: bool = _option(
        False,
        "Run a model's kernels even on a target that cannot confine them (docs/explanation/security.md); "
        "the product says so.",
    )
    given: frozenset[str] | None = None  # options that the user gave; None: those that are not as by default

    @staticmethod
    def options() -> Mapping[str, tuple[Field[Any], Option]]:
        """By the name that a user gives, where a time has no unit."""
        found = {one.name.removesuffix("_s"): one for one in fields(Job) if "option" in one.metadata}
        return {name: (one, one.metadata["option"]) for name, one in found.items()}

    @property
    def chosen(self) -> frozenset[str]:
        """Names of the options that the user gave."""
        if self.given is not None:
            return self.given
        values = ((one.name, getattr(self, one.name), one.default) for one in fields(self))
        return frozenset(name.removesuffix("_s") for name, value, usual in values if value not in (None, usual))

    def __post_init__(self) -> None:
        for one in fields(self):
            value, option = getattr(self, one.name), one.metadata.get("option", Option())
            if not _is(value, str(one.type), option):
                expected = option.range or _EXPECTED.get(str(one.type), "an integer")
                raise UsageError(f"{one.name} is {value!r}", hint=f"expected {expected}")
        budget = self.budget_s
        if isinstance(budget, bool) or not (budget is None or (isinstance(budget, numbers.Real) and 0 < budget < 1e18)):
            raise UsageError(f"the budget is {budget!r} seconds", hint="expected a positive time, e.g. 120 or 2m")
        if not isinstance(self.author_timeout_s, numbers.Real) or not 0 < self.author_timeout_s <= _DAY_S:
            what = f"--author-timeout is {self.author_timeout_s!r} seconds"
            raise UsageError(what, hint="expected a positive time, at most a day, e.g. 5m")

    @staticmethod
    def usual_dtypes(operator: Operator, platform: Platform) -> tuple[str, ...]:
        """What is tuned where no dtype is named: of the usual ones those that operator and platform both have, or else
        all that both have. Raises UsageError where there is none."""
        both = tuple(dtype for dtype in platform.dtypes if dtype in operator.dtypes)
        if not both:
            raise UsageError(
                f"platform '{platform.name}' is for {', '.join(platform.dtypes)}; "
                f"{operator.name} has {', '.join(operator.dtypes)}",
                hint="name another platform; `tensorop platforms list` has them",
            )
        return tuple(dtype for dtype in Job.dtypes if dtype in both) or both

    @staticmethod
    def folder(operator: str, platform: str) -> Path:
        """Where the product goes when nobody says."""
        return _BUILD / f"{operator}-{platform}"


def _is(value: Any, kind: str, option: Option) -> bool:
    """Whether a value is of its field's type, where that is a simple one."""
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
