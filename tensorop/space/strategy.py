"""Search strategies: what a tuner is, and finding one by its file's name.

A strategy is one Python file in a `tuners/` folder with

    DESCRIPTION: str                                    one line
    OPTIONS: dict[str, tuple[str, default]]             keyword -> (help, default)
    class Tuner:                                        see `Strategy`
        def __init__(self, space, seed, **options)

It imports `tensorop.model` and `tensorop.space` only. What it asks depends on space, seed, options, and the told
history alone, so that a search resumes by telling it the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tensorop.errors import SpecError, UsageError, unknown_name
from tensorop.model.point import Point
from tensorop.space import Space
from tensorop.specs import catalog, pymodule

Option = int | float | str


class Strategy(Protocol):
    """Asks for points and is told their cost."""

    def ask(self, n: int = 1) -> list[Point]:
        """Up to n legal points never asked before; [] when the space is exhausted."""

    def tell(self, point: Point, cost: float | None) -> None:
        """The cost (> 0, lower is better) of a point, asked for or not; None when its trial failed."""


@dataclass(frozen=True)
class Tuner:
    """A strategy's file, loaded."""

    name: str
    path: Path
    description: str
    options: Mapping[str, tuple[str, Option]]
    factory: Any

    def make(self, space: Space, seed: int, options: Mapping[str, Option] | None = None) -> Strategy:
        """A fresh strategy; raises UsageError on an option the tuner does not have, and where a library is missing."""
        for name in options or {}:
            if name not in self.options:
                raise unknown_name(f"option of the tuner {self.name}", name, self.options)
        try:
            strategy: Strategy = self.factory(space, seed, **dict(options or {}))
        except ImportError as error:
            raise UsageError(f"the tuner {self.name}: {error}", hint="install that, or choose another") from error
        return strategy


def names(extra: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """The tuners there are, the user's folders included."""
    return catalog.names("tuners", extra)


def load(name: str, extra: tuple[Path, ...] = ()) -> Tuner:
    """The tuner of that name. Raises UsageError when there is none, SpecError when its file breaks the contract."""
    path = catalog.find("tuners", name, extra)
    module = pymodule.load(path, f"tensorop_tuner_{name}")
    description = getattr(module, "DESCRIPTION", None)
    options = getattr(module, "OPTIONS", None)
    factory = getattr(module, "Tuner", None)
    if not isinstance(description, str):
        raise SpecError(f"{path}: DESCRIPTION is {description!r}; expected a line of text")
    if not isinstance(options, dict) or not all(isinstance(v, tuple) and len(v) == 2 for v in options.values()):
        raise SpecError(f"{path}: OPTIONS is {options!r}; expected name -> (help, default)")
    if not callable(getattr(factory, "ask", None)) or not callable(getattr(factory, "tell", None)):
        raise SpecError(f"{path}: no class Tuner with ask(n) and tell(point, cost)")
    return Tuner(name, path, description, options, factory)
