"""An operator's shapes: named dimensions and attributes, and how they are written."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from tensorop.errors import SpecError
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Constraint

Shape = tuple[int, ...]  # the dimensions in their order, then the attributes
LARGEST = 1 << 31
_NAME = re.compile(r"\\{(\w+)\\}")


def _holds(rule: Constraint, named: Mapping[str, int]) -> bool:
    try:
        return bool(evaluate(rule.must, named))
    except SpecError:  # a quotient that does not exist satisfies nothing
        return False


@dataclass(frozen=True)
class Shapes:
    """What an operator's shapes are."""

    dims: tuple[str, ...]  # names in order, each 1 or more
    # Names, each 0 or more, with the value of one that is left out, or the earlier name that it is then as large as.
    attributes: Mapping[str, int | str] = field(default_factory=dict)
    # How a shape is written, e.g. `{m}x{n}x{k}`. A part in brackets is left out where its attributes have those values,
    # e.g. `n{n}c{c}[u{u}]`. By default the dimensions with `x` between them, then `[name{name}]` for each attribute.
    form: str = ""
    drawn: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # values where shapes are made up
    rules: tuple[Constraint, ...] = ()  # what a shape must satisfy

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.dims, *self.attributes)

    @cached_property
    def written(self) -> str:
        """The form, given or usual."""
        usual = "x".join(f"{{{name}}}" for name in self.dims) + "".join(f"[{a}{{{a}}}]" for a in self.attributes)
        return self.form or usual

    @property
    def help(self) -> str:
        """The form for people: `mxnxk`, `n#c#[u#]`."""
        plain = self.written == "x".join(f"{{{name}}}" for name in self.dims)
        return re.sub(r"\{(\w+)\}", r"\1" if plain else "#", self.written)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        text = re.escape(self.written).replace(r"\[", "(?:").replace(r"\]", ")?")
        return re.compile(_NAME.sub(r"(?P<\1>-?[0-9]{1,18})", text))

    def text(self, shape: Sequence[int]) -> str:
        """A shape as it is written."""
        named = self.named(shape)
        if "[" not in self.written:
            return self.written.format(**named)

        def part(match: re.Match[str]) -> str:
            inside = re.findall(r"\{(\w+)\}", match[0])
            usual = (self.attributes[name] for name in inside)
            same = (named[u] if isinstance(u, str) else u for u in usual)
            return "" if all(named[name] == value for name, value in zip(inside, same, strict=True)) else match[0][1:-1]

        return re.sub(r"\[[^]]*\]", part, self.written).format(**named)

    def read(self, text: str) -> Shape | None:
        """A shape from its text, whatever its values; None where it is none."""
        found = self._pattern.fullmatch(text)
        values = {name: int(value) for name, value in found.groupdict().items() if value} if found else {}
        return tuple(self.filled(values).values()) if found else None

    def filled(self, given: Mapping[str, int]) -> dict[str, int]:
        """All values by name, in order; attributes that are not given have their usual values, dimensions 0."""
        values: dict[str, int] = {}
        for name in self.names:
            usual = self.attributes.get(name, 0)
            values[name] = given.get(name, values[usual] if isinstance(usual, str) else usual)
        return values

    def of(self, given: object) -> Shape:
        """A shape given as text, as numbers in order (attributes may be left out), or by names. Raises ValueError."""
        shape: Shape | None = None
        if isinstance(given, str):
            shape = self.read(given)
        elif isinstance(given, Mapping):
            if set(self.dims) <= given.keys() <= set(self.names):
                shape = tuple({**self.filled(given), **given}.values())
        elif isinstance(given, Sequence) and len(self.dims) <= len(given) <= len(self.names):
            shape = (*given, *list(self.filled(dict(zip(self.names, given, strict=False))).values())[len(given) :])
        if shape is None or not all(isinstance(value, int | np.integer) for value in shape):
            raise ValueError(f"expected a shape as {self.help}, got {given!r:.80}")
        if wrong := self.wrong(shape):
            raise ValueError(f"{given!r:.80}: {wrong}")
        return tuple(map(int, shape))

    def wrong(self, shape: Sequence[int]) -> str:
        """Why a shape is none of the operator's; empty where it is one."""
        named = self.named(shape)
        for name, value in named.items():
            least = 1 if name in self.dims else 0
            if not least <= value < LARGEST:
                return f"{name} is {value}; sides to tune for are between {least} and {LARGEST - 1}"
        return next((rule.reason for rule in self.rules if not _holds(rule, named)), "")

    def named(self, shape: Sequence[int]) -> dict[str, int]:
        """The values by name."""
        return dict(zip(self.names, shape, strict=True))

    def drawn_from(self, sides: Sequence[int], rng: np.random.Generator) -> Shape:
        """A shape of these dimensions, but for names with values to draw from; it may break a rule."""
        drawn = {name: int(rng.choice(values)) for name, values in self.drawn.items()}
        return tuple(self.filled({**dict(zip(self.dims, sides, strict=True)), **drawn}).values())
