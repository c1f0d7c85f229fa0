"""A job: one command's wishes, checked."""

from __future__ import annotations

import numbers
from dataclasses import dataclass, fields
from pathlib import Path

from tensorop.errors import UsageError
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform

_RANGES = {"jobs": (1, 256), "threads": (1, 1024), "batch": (1, 4096), "trials": (1, 2**63 - 1)}


@dataclass(frozen=True)
class Job:
    """What `tensorop <operator>` was asked for; the one place of the defaults of command line and `tune`.
    None: found from the platform.

    shapes: dims in the operator's order; suite: its name, where they are one's
    budget_s: seconds of search; trials: search trials instead of seconds
    author_timeout_s: for one answer of a model with all retries; all answers together have three times that
    threads: checked for correctness and, on a real clock, measured; jobs: builds side by side, in each worker
    workers: processes to start here, or the address of a Dask scheduler that has some; "": trials are carried out here
    batch: trials that a search asks for at once; None: as many as are carried out side by side
    warm_start: auto | none | the path of a journal, a file of winners or a folder of such (tensorop/warm)
    unsafe: a model's kernels run even where nothing confines them
    c_dtype: of the result; None: what goes with each of dtypes
    given: options that the user gave, by their names; None: those that are not as by default
    """

    operator: str
    platform: str = "native"
    dtypes: tuple[str, ...] = ("f32", "f64")
    shapes: tuple[tuple[int, ...], ...] = ()
    suite: str = ""
    budget_s: float | None = 120.0
    trials: int | None = None
    tuner: str = "bayes"
    author: str = "offline"
    author_timeout_s: float = 600.0
    jobs: int = 2
    workers: str = ""
    batch: int | None = None
    seed: int = 0
    secret: int | None = None
    threads: int = 1
    runner: str | None = None
    plugins: tuple[Path, ...] = ()
    offline: bool = False
    out: Path = Path("build")
    fresh: bool = False
    warm_start: str = "auto"
    unsafe: bool = False
    c_dtype: str | None = None
    given: frozenset[str] | None = None

    @property
    def chosen(self) -> frozenset[str]:
        """Names of the options that the user gave."""
        if self.given is not None:
            return self.given
        values = ((field.name, getattr(self, field.name), field.default) for field in fields(self))
        return frozenset(name.removesuffix("_s") for name, value, usual in values if value not in (None, usual))

    def __post_init__(self) -> None:
        for name in ("operator", "platform", "tuner", "author", "workers", "warm_start"):
            if not isinstance(value := getattr(self, name), str):
                raise UsageError(f"{name} is {value!r}", hint="expected a text")
        for name in ("runner", "c_dtype"):
            if not isinstance(value := getattr(self, name), str | None):
                raise UsageError(f"{name} is {value!r}", hint="expected a text, or None")
        for name in ("offline", "fresh", "unsafe"):
            if not isinstance(value := getattr(self, name), numbers.Integral) or value not in (False, True):
                raise UsageError(f"{name} is {value!r}", hint="expected True or False")
        if not isinstance(self.seed, numbers.Integral) or isinstance(self.seed, bool):
            raise UsageError(f"seed is {self.seed!r}", hint="expected an integer")
        for name, (least, most) in _RANGES.items():
            value = getattr(self, name)
            if value is not None and (
                isinstance(value, bool) or not (isinstance(value, numbers.Integral) and least <= value <= most)
            ):
                raise UsageError(f"{name} is {value!r}", hint=f"expected an integer from {least} to {most}")
        budget = self.budget_s
        if isinstance(budget, bool) or not (budget is None or (isinstance(budget, numbers.Real) and 0 < budget < 1e18)):
            raise UsageError(f"the budget is {self.budget_s!r} seconds", hint="expected a positive time, e.g. 120")

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
        return Path("build") / f"{operator}-{platform}"
