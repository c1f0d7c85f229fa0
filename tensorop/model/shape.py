"""An operator's shapes: named dimensions and attributes, and their notation."""

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
    except SpecError:  # a division by zero satisfies no rule
        return False


@dataclass(frozen=True)
class Shapes:
    """The shapes of an operator."""

    dims: tuple[str, ...]  # names in order; values are 1 or more
    # Name -> default: a value, or an earlier name whose value it takes. Values are 0 or more.
    attributes: Mapping[str, int | str] = field(default_factory=dict)
    # Notation of a shape, e.g. `{m}x{n}x{k}`. A part in brackets is omitted if its attributes have their defaults, e.g.
    # `n{n}c{c}[u{u}]`. By default: the dimensions with `x` between them, then `[name{name}]` for each attribute.
    form: str = ""
    drawn: Mapping[str, tuple[int, ...]] = field(default_factory=dict)  # name -> its values in random shapes
    rules: tuple[Constraint, ...] = ()  # conditions of legal shapes

    @cached_property
    def names(self) -> tuple[str, ...]:
        return (*self.dims, *self.attributes)

    @cached_property
    def written(self) -> str:
        """The given or default form."""
        usual = "x".join(f"{{{name}}}" for name in self.dims) + "".join(f"[{a}{{{a}}}]" for a in self.attributes)
        return self.form or usual

    @property
    def help(self) -> str:
        """The form for messages: `mxnxk`, `n#c#[u#]`."""
        plain = self.written == "x".join(f"{{{name}}}" for name in self.dims)
        return re.sub(r"\{(\w+)\}", r"\1" if plain else "#", self.written)

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        text = re.escape(self.written).replace(r"\[", "(?:").replace(r"\]", ")?")
        return re.compile(_NAME.sub(r"(?P<\1>-?[0-9]{1,18})", text))

    def text(self, shape: Sequence[int]) -> str:
        """A shape in the operator's notation."""
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
        """Parses a shape without a check of its values; None if the text has another form."""
        found = self._pattern.fullmatch(text)
        values = {name: int(value) for name, value in found.groupdict().items() if value} if found else {}
        return tuple(self.filled(values).values()) if found else None

    def filled(self, given: Mapping[str, int]) -> dict[str, int]:
        """All values by name, in order. Attributes that are not given have their defaults, dimensions are 0."""
        values: dict[str, int] = {}
        for name in self.names:
            usual = self.attributes.get(name, 0)
            values[name] = given.get(name, values[usual] if isinstance(usual, str) else usual)
        return values

    def of(self, given: object) -> Shape:
        """A checked shape from text, numbers in order (attributes are optional), or names. Raises ValueError."""
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
        """The reason why a shape is illegal; empty for a legal one."""
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
        """A shape with these dimensions; names in `drawn` get random values from there. It may break a rule."""
        drawn = {name: int(rng.choice(values)) for name, values in self.drawn.items()}
        return tuple(self.filled({**dict(zip(self.dims, sides, strict=True)), **drawn}).values())
