"""A family of device kernels: its legal configurations as columns of numbers, and its model's predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import JobError, SpecError
from tensorop.model.device import DeviceInterface
from tensorop.model.expression import Expression, evaluate, parse
from tensorop.model.kernel import Constraint, KernelTemplate
from tensorop.model.point import Point, Value

Column = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]
Counted = Mapping[Point, Mapping[str, int]]


@dataclass(frozen=True)
class Family:
    """A template on a device for one layout."""

    call: DeviceInterface  # the operator's
    template: KernelTemplate
    given: Mapping[str, int]  # the device's numbers and the layout
    # Of families that others wrote: what a block of each executed configuration did. Others are not legal. By the
    # configuration without its late tunables.
    counted: Counted | None = None

    @cached_property
    def facts(self) -> dict[str, Expression]:
        """Each fact is an expression of tunables, `given`, and the facts before it."""
        return self._read("facts", self.template.facts, {})

    @cached_property
    def model(self) -> dict[str, Expression]:
        """Each entry is an expression of facts, the call, and the entries before it; the last is the cost in cycles."""
        if not self.template.model:
            raise SpecError(
                f"template '{self.template.name}': key 'model': expected expressions that predict its cost, got none"
            )
        return self._read(
            "model", self.template.model, dict.fromkeys((*self.call.call, *self.template.facts, *self.counters), int)
        )

    def _read(self, key: str, texts: Mapping[str, str], more: Mapping[str, type]) -> dict[str, Expression]:
        kinds: dict[str, type] = {**dict.fromkeys(self.given, int), **more}
        kinds |= {name: type(values[0]) for name, values in self.template.tunables.items()}
        found = {}
        for name, text in texts.items():
            if name in kinds:
                raise SpecError(
                    f"template '{self.template.name}': key '{key}.{name}': expected another name, since this one is "
                    "in use"
                )
            try:
                found[name] = parse(text, kinds)
            except SpecError as error:
                raise SpecError(f"template '{self.template.name}': key '{key}.{name}': {error.message}") from None
            kinds[name] = int
        return found

    @cached_property
    def grid(self) -> Columns:
        """The legal configurations: a column for each tunable and each fact. Raises JobError if there is none."""
        early = {name: values for name, values in self.template.tunables.items() if name in self._named}
        late = {name: values for name, values in self.template.tunables.items() if name not in self._named}
        found = self._with_facts(_product(early))
        for rule, constraint in self._rules:
            legal = rule.column({**self.given, **found}) != 0
            if not legal.any():
                raise JobError(
                    f"template '{self.template.name}': no configuration is legal on this platform: {constraint.reason}"
                )
            found = {name: column[legal] for name, column in found.items()}
        found = self._with_counters(found, list(early))
        count = len(next(iter(found.values())))
        return {name: np.repeat(column, self.late) for name, column in found.items()} | {
            name: np.tile(column, count) for name, column in _product(late).items()
        }

    @property
    def counters(self) -> tuple[str, ...]:
        """The names of what was counted."""
        return tuple(next(iter(self.counted.values()))) if self.counted else ()

    def _with_counters(self, columns: Columns, early: Sequence[str]) -> Columns:
        if self.counted is None:
            return columns
        rows = range(len(columns[early[0]]))
        points = [Point.of({name: _plain(columns[name][row]) for name in early}) for row in rows]
        kept = [row for row, point in enumerate(points) if point in self.counted]
        found = {name: column[kept] for name, column in columns.items()}
        return found | {name: np.array([self.counted[points[row]][name] for row in kept]) for name in self.counters}

    def early(self, point: Point) -> Point:
        """A configuration without its late tunables."""
        return Point.of({name: value for name, value in dict(point).items() if name in self._named})

    @cached_property
    def late(self) -> int:
        """The number of successive configurations with one kernel.

        They differ in tunables that no fact and no constraint reads: only the launch uses these.
        """
        return prod(len(values) for name, values in self.template.tunables.items() if name not in self._named)

    @cached_property
    def _named(self) -> frozenset[str]:
        of_facts = (one.names for one in self.facts.values())
        return frozenset[str]().union(*of_facts, *(rule.names for rule, _ in self._rules))

    @cached_property
    def _rules(self) -> list[tuple[Expression, Constraint]]:
        kinds: dict[str, type] = dict.fromkeys((*self.given, *self.template.facts), int)
        kinds |= {name: type(values[0]) for name, values in self.template.tunables.items()}
        return [(parse(one.must, kinds), one) for one in self.template.constraints]

    def _with_facts(self, columns: Columns) -> Columns:
        count = len(next(iter(columns.values())))
        for name, fact in self.facts.items():
            columns[name] = np.broadcast_to(fact.column({**self.given, **columns}), (count,))
        return columns

    def predicted(self, call: Mapping[str, int]) -> Column:
        """Predicted cycles of a call, by configuration of the grid."""
        grid = self.grid
        names: dict[str, Any] = {**self.given, **grid, **call}
        for name in self.call.call if "swap" in grid else ():
            if name in self.call.swap:
                names[name] = np.where(grid["swap"] != 0, evaluate(self.call.swap[name], call), call[name])
        for name, expression in self.model.items():
            names[name] = cycles = expression.column(names)
        return np.broadcast_to(cycles, (self.size,))

    def served(self, call: Mapping[str, int]) -> Column:
        """Whether each configuration of the grid serves a call, 0 or 1, by the operator's `serves`."""
        kinds = dict.fromkeys((*self.call.names, *self.call.launch), int)
        return np.broadcast_to(parse(self.call.serves, kinds).column({**self.given, **self.grid, **call}), (self.size,))

    def terms(self, place: int, call: Mapping[str, int]) -> dict[str, int]:
        """The values of the model's entries for the configuration at a place."""
        names: dict[str, Value] = {**self.numbers(place), **call}
        for name, expression in self.model.items():
            names[name] = int(expression.value(names))
        return {name: int(names[name]) for name in self.model}

    @cached_property
    def kernels(self) -> NDArray[np.intp]:
        """A number of each configuration's kernel: `unseen` tunables, as late ones, are of the launch alone."""
        names = [name for name in self.grid if name in self._named - {*self.template.unseen}]
        names += [name for name in self.template.facts if name not in names]
        rows = np.stack([np.unique(self.grid[name], return_inverse=True)[1] for name in names])
        return np.unique(rows, axis=1, return_inverse=True)[1].reshape(-1)

    @property
    def size(self) -> int:
        return len(next(iter(self.grid.values())))

    def point(self, number: int) -> Point:
        """The configuration at a place in the grid."""
        return Point.of({name: _plain(self.grid[name][number]) for name in self.template.tunables})

    def numbers(self, number: int) -> dict[str, Value]:
        """A configuration's tunables and facts, with `given`."""
        return {**self.given, **{name: _plain(column[number]) for name, column in self.grid.items()}}


def _plain(value: Any) -> Value:
    return str(value) if isinstance(value, str) else int(value)


def _product(values: Mapping[str, Sequence[Value]]) -> Columns:
    """All combinations of values, as columns."""
    if not values:
        return {}
    each = [np.array(choices) for choices in values.values()]
    places = np.indices([len(one) for one in each]).reshape(len(each), -1)
    return {name: one[at] for name, one, at in zip(values, each, places, strict=True)}
