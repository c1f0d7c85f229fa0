"""Results of verification: of one call, of a grid on one target, of a negative control."""

from __future__ import annotations

import math
import re
import secrets
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tensorop.model.case import Case
from tensorop.model.trial import Kind, Outcome


@dataclass(frozen=True)
class Judgement(Outcome):
    """The outcome of one call, with its largest error."""

    # Largest error / its bound; at most 1 passes. It is infinite for an inexact element that must be exact, and for a
    # NaN in place of a number.
    worst: float = 0.0


@dataclass(frozen=True)
class Seed:
    """The public seed of a run and a secret from the OS, so that no candidate can know its inputs in advance.

    It is recorded as `public:secret` (hexadecimal); `Seed.parse` reads that, and the same calls can be repeated.
    """

    public: int
    secret: int

    @staticmethod
    def draw(public: int = 0, secret: int | None = None) -> Seed:
        return Seed(public, secrets.randbits(128) if secret is None else secret)

    @staticmethod
    def parts(text: str) -> tuple[int, int | None]:
        """Parses `PUBLIC` or `PUBLIC:SECRET`. Raises ValueError."""
        found = re.fullmatch(r"([+-]?[0-9]{1,30})(?::([0-9a-fA-F]{1,32}))?", text)
        if found is None:
            raise ValueError(f"expected an integer or N:SECRET, got '{text}'")
        return int(found[1]), int(found[2], 16) if found[2] else None

    @staticmethod
    def parse(text: str) -> Seed:
        """Parses `PUBLIC:SECRET`. Raises ValueError."""
        public, secret = Seed.parts(text)
        if secret is None:
            raise ValueError(f"expected N:SECRET, got '{text}'")
        return Seed(public, secret)

    def __str__(self) -> str:
        return f"{self.public}:{self.secret:032x}"

    def stream(self, *path: int) -> np.random.Generator:
        """A random generator that is independent for each path, e.g. (VLEN, number of the case)."""
        return np.random.default_rng(np.random.SeedSequence([abs(self.public), self.secret, *path]))


@dataclass(frozen=True)
class Verdict:
    """The result of a grid on one target."""

    outcome: Outcome
    vlen: int  # bits; 0: vectors of fixed width
    cases: int
    seed: str
    errors: tuple[float, ...] = ()  # of each judged call, as Judgement.worst
    threads: int = 1
    dtype: str = ""
    case: Case | None = None  # the failed case

    @property
    def ok(self) -> bool:
        return self.outcome.ok

    @property
    def worst(self) -> float:
        return max(self.errors, default=0.0)

    def to_json(self) -> dict[str, object]:
        plain = {name: getattr(self, name) for name in ("dtype", "vlen", "threads", "ok", "cases", "seed")}
        found = {"worst": self.worst, "median": median_error(self.errors)}
        errors = {name: error if math.isfinite(error) else None for name, error in found.items()}
        return {**plain, **errors, "outcome": {"kind": self.outcome.kind.value, "message": self.outcome.message}}


def median_error(errors: Sequence[float]) -> float:
    """The median of calls' largest errors, each over its bound. Exact calls are left out; 0 if all are exact."""
    return statistics.median([error for error in errors if error] or [0.0])


def error_text(errors: Sequence[float]) -> str:
    """A text such as `largest error 41% of its bound, median of calls 6%`."""
    return f"largest error {max(errors, default=0.0):.0%} of its bound, median of calls {median_error(errors):.0%}"


@dataclass(frozen=True)
class ControlResult:
    """The outcome of a negative control, a known-bad kernel; a correct one has `expected == (Kind.OK,)`."""

    name: str
    dtype: str
    fault: str
    expected: tuple[Kind, ...]
    outcome: Outcome

    @property
    def as_expected(self) -> bool:
        return self.outcome.kind in self.expected

    def to_json(self) -> dict[str, str]:
        return {"name": self.name, "dtype": self.dtype, "fault": self.fault, "ended": self.outcome.kind.value}


def controls_text(results: Iterable[ControlResult]) -> str:
    """A text such as `36 known-wrong kernels rejected, 1 correct accepted`."""
    accepted = [result.outcome.ok for result in results]
    rejected = accepted.count(False)
    words = f"{rejected} known-wrong kernels rejected" if rejected else "no known-wrong kernel was run"
    return f"{words}, {accepted.count(True)} correct accepted"
