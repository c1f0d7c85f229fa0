"""Search spaces: the legal points of a template on a platform, enumerated without rejection sampling."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import JobError, SpecError
from tensorop.model.expression import Expression, parse
from tensorop.model.kernel import Constraint
from tensorop.model.point import Point, Value

MAX_DIMENSIONS = 256  # the walk recurses for each dimension
MAX_POINTS = 1_000_000
MAX_NODES = 4_000_000
MAX_READ = 200_000_000  # characters of all constraints; evaluating more would take seconds


@dataclass(frozen=True)
class Exclusion:
    """The points that a constraint removes from the product of all dimensions, after the constraints before it.

    points: their number; example: the first refused assignment (tunables bound so far)
    """

    constraint: Constraint
    points: int
    example: Point

    def __str__(self) -> str:
        return f"{self.constraint.reason} ({self.constraint.must}): {self.points} points, e.g. {self.example}"


@dataclass(frozen=True)
class _Walk:
    """The legal points as rows of value numbers, and what the constraints refused."""

    rows: tuple[tuple[int, ...], ...]
    refusals: tuple[Exclusion, ...]


@dataclass(frozen=True)
class Space:
    """Named dimensions with ordered values, under constraints over them and over given facts.

    The constraints are checked depth-first as soon as their names are bound. Points come in the order of the
    dimensions, the last one fastest. Raises SpecError on a bad expression, JobError when the space is empty (with
    the reasons, counted) or too large to walk.
    """

    dimensions: tuple[tuple[str, tuple[Value, ...]], ...]
    constraints: tuple[Constraint, ...] = ()
    facts: tuple[tuple[str, Value], ...] = ()

    @staticmethod
    def of(
        dimensions: Mapping[str, Sequence[Value]],
        constraints: Sequence[Constraint] = (),
        facts: Mapping[str, Value] | None = None,
    ) -> Space:
        """The space over `dimensions`; it is walked at once, so that every fault shows here."""
        space = Space(
            tuple((name, tuple(values)) for name, values in dimensions.items()),
            tuple(constraints),
            tuple(sorted((facts or {}).items())),
        )
        space._check()
        if not space.size:
            counted = "; ".join(map(str, space.refusals())) or "a dimension has no values"
            raise JobError(
                f"no configuration satisfies the constraints (0 of {space.product}): {counted}",
                hint="add values to a tunable, or relax a constraint",
            )
        return space

    @property
    def product(self) -> int:
        """Number of points without constraints."""
        return prod(len(values) for _, values in self.dimensions)

    @property
    def size(self) -> int:
        return len(self._walk.rows)

    def refusals(self) -> tuple[Exclusion, ...]:
        """One entry for each constraint, in order; size + the sum of their points = product."""
        return self._walk.refusals

    def points(self) -> Iterator[Point]:
        return (self._point(row) for row in self._walk.rows)

    def at(self, index: int) -> Point:
        return self._point(self._walk.rows[index])

    def first(self, part: Mapping[str, Value]) -> Point | None:
        """The first legal point that agrees with `part`; None for unknown dimensions or values."""
        left = dict(part)
        try:
            wanted = [
                (axis, numbers[left.pop(name)]) for axis, (name, numbers) in enumerate(self._numbers) if name in left
            ]
        except KeyError:
            return None
        if left:
            return None
        found = next((row for row in self._walk.rows if all(row[axis] == number for axis, number in wanted)), None)
        return None if found is None else self._point(found)

    def nearest(self, part: Mapping[str, Value], agreeing: Mapping[str, Value] | None = None) -> Point:
        """The legal point nearest to `part`, of those that agree with `agreeing` if there are any."""
        away = self.distances(agreeing or {}) > 0
        return self.at(int(np.argmin(self.distances(part) + 1e6 * away)))

    def distances(self, part: Mapping[str, Value]) -> NDArray[np.float64]:
        """The distance of each legal point from `part`, in octaves, and 1 for each different word."""
        rows = np.asarray(self._walk.rows)
        far = np.zeros(len(rows))
        for axis, (name, values) in enumerate(self.dimensions):
            if name in part:
                far += np.array([_apart(value, part[name]) for value in values])[rows[:, axis]]
        return far

    def index(self, point: Point) -> int:
        """The number of a legal point. Raises KeyError for any other."""
        return self._order[self._row(point)]

    def __contains__(self, point: object) -> bool:
        try:
            return isinstance(point, Point) and self._row(point) in self._order
        except KeyError:
            return False

    def coordinates(self, index: int) -> tuple[int, ...]:
        """The number of each dimension's value at a legal point."""
        return self._walk.rows[index]

    def sample(self, rng: random.Random, count: int) -> list[Point]:
        """Up to `count` different legal points, drawn uniformly."""
        return [self.at(i) for i in rng.sample(range(self.size), min(count, self.size))]

    def neighbours(self, point: Point) -> list[Point]:
        """The nearest legal points along each dimension: one step up and down for numbers, every other word."""
        row = self._row(point)
        found = []
        for axis, (_, values) in enumerate(self.dimensions):
            here = row[axis]
            if any(isinstance(value, str) for value in values):
                ways: list[Sequence[int]] = [[other] for other in range(len(values)) if other != here]
            else:
                ways = [range(here - 1, -1, -1), range(here + 1, len(values))]
            for way in ways:
                for other in way:
                    candidate = (*row[:axis], other, *row[axis + 1 :])
                    if candidate in self._order:
                        found.append(self._point(candidate))
                        break
        return found

    @cached_property
    def _expressions(self) -> tuple[Expression, ...]:
        kinds: dict[str, type] = {name: type(value) for name, value in self.facts}
        for name, values in self.dimensions:
            kinds[name] = str if any(isinstance(value, str) for value in values) else int
        return tuple(parse(constraint.must, kinds) for constraint in self.constraints)

    @cached_property
    def _walk(self) -> _Walk:
        return _walked(self, self._expressions)

    @cached_property
    def _order(self) -> dict[tuple[int, ...], int]:
        return {row: index for index, row in enumerate(self._walk.rows)}

    @cached_property
    def _numbers(self) -> tuple[tuple[str, dict[Value, int]], ...]:
        return tuple((name, {value: i for i, value in enumerate(values)}) for name, values in self.dimensions)

    def _row(self, point: Point) -> tuple[int, ...]:
        if len(point) != len(self.dimensions):
            raise KeyError(str(point))
        return tuple(numbers[point[name]] for name, numbers in self._numbers)

    def _point(self, row: tuple[int, ...]) -> Point:
        return Point.of({name: values[i] for (name, values), i in zip(self.dimensions, row, strict=True)})

    def _check(self) -> None:
        facts = dict(self.facts)
        seen: set[str] = set()
        if len(self.dimensions) > MAX_DIMENSIONS:
            raise SpecError(f"expected at most {MAX_DIMENSIONS} tunables, got {len(self.dimensions)}")
        for name, values in self.dimensions:
            if name in seen or name in facts:
                raise SpecError(f"the tunable '{name}' is listed twice, or has the name of a platform fact")
            if len(set(values)) != len(values):
                raise SpecError(f"the tunable '{name}' lists a value twice: {list(values)}")
            if len({isinstance(value, str) for value in values}) > 1:
                raise SpecError(f"the tunable '{name}' mixes words and numbers: {list(values)}")
            seen.add(name)


def _apart(one: Value, other: Value) -> float:
    if isinstance(one, str) or isinstance(other, str):
        return float(one != other)
    return abs(math.log2((1 + abs(one)) / (1 + abs(other))))


def _walked(space: Space, expressions: Sequence[Expression]) -> _Walk:
    """A depth-first walk over the dimensions. A constraint is checked once all its tunables are bound."""
    dimensions = space.dimensions
    depth_of = {name: depth for depth, (name, _) in enumerate(dimensions, 1)}
    # constraints by depth; at depth 0 those over facts alone
    due: list[list[int]] = [[] for _ in range(len(dimensions) + 1)]
    for number, expression in enumerate(expressions):
        due[max((depth_of[name] for name in expression.names if name in depth_of), default=0)].append(number)
    below = [prod(len(values) for _, values in dimensions[depth:]) for depth in range(len(due))]
    bound: dict[str, Value] = dict(space.facts)
    rows: list[tuple[int, ...]] = []
    refused = [0] * len(expressions)
    examples: list[Point | None] = [None] * len(expressions)
    steps = read = 0

    def holds(depth: int) -> bool:
        nonlocal read
        for number in due[depth]:
            read += len(expressions[number].text)
            try:
                if expressions[number].value(bound):
                    continue
            except ZeroDivisionError:
                pass  # a division by zero satisfies no constraint
            if examples[number] is None:
                examples[number] = Point.of({name: bound[name] for name, _ in dimensions[:depth]})
            refused[number] += below[depth]
            return False
        return True

    def descend(depth: int, row: tuple[int, ...]) -> None:
        nonlocal steps
        if depth == len(dimensions):
            rows.append(row)
            return
        name, values = dimensions[depth]
        for number, value in enumerate(values):
            steps += 1
            if steps > MAX_NODES or len(rows) >= MAX_POINTS or read > MAX_READ:
                raise JobError(
                    f"the space of {space.product} configurations is too large to enumerate "
                    f"({len(rows)} legal ones after {steps} steps)",
                    hint="give the tunables fewer values, or list those that constraints use first",
                )
            bound[name] = value
            if holds(depth + 1):
                descend(depth + 1, (*row, number))
        del bound[name]

    if holds(0):
        descend(0, ())
    each = zip(space.constraints, refused, examples, strict=True)
    return _Walk(
        tuple(rows), tuple(Exclusion(of, count, example) for of, count, example in each if example is not None)
    )
