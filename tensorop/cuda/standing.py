"""What a language model gets to know of its families before the next question: their costs, and what decides them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tensorop.author import parse, regions
from tensorop.cuda.choose import Layout, Shape
from tensorop.cuda.counted import CountedFamilies
from tensorop.cuda.family import Family
from tensorop.model.device import DeviceInterface
from tensorop.model.kernel import KernelTemplate
from tensorop.store import records

_MOST_SHAPES = 12
_KEYS = ("strategy", "reads", "needs", "tunables", "facts", "constraints", "seed_configurations")
_THREADS = 2048  # of a multiprocessor
_PLAIN = 4  # cycles of shared memory for a tile's load without conflicts


@dataclass(frozen=True)
class ShapeRow:
    """Predicted cycles of a shape: of the shipped families, and of each family of the author."""

    shape: str
    shipped: int
    own: tuple[int, ...]


@dataclass(frozen=True)
class ExecutedConfiguration:
    """What one configuration needs; cycles are of one block in 1024 steps of K."""

    point: str
    registers: int  # 0: not compiled
    blocks: int  # that a multiprocessor holds
    occupancy: float  # per cent of its threads
    waves: int
    products: int
    shared: int
    conflicts: int  # those of `shared` that bank conflicts cost
    copies: int
    latency: int
    instructions: tuple[int, ...]  # products, tile loads, copies of a word, elements alone, waits


@dataclass(frozen=True)
class FamilyStanding:
    """The author's families beside the shipped ones."""

    names: tuple[str, ...]
    rows: tuple[ShapeRow, ...]
    name: str  # of the best family, then its text
    text: str
    shape: str  # that waves are for
    configurations: tuple[ExecutedConfiguration, ...]
    parts: Sequence[tuple[str, str]] = ()  # name and lines of each of its regions


def standing(
    call: DeviceInterface,
    found: CountedFamilies,
    shipped: Sequence[KernelTemplate],
    given: Mapping[str, int],
    shapes: Sequence[Shape],
    registers: Mapping[str, int],
    to_change: KernelTemplate | None = None,
) -> FamilyStanding | None:
    """None before a family was executed.

    registers: of compiled configurations, by template and early point; to_change: shown in place of the best
    """
    shapes = shapes[:_MOST_SHAPES]
    key = call.keys[0]
    theirs = Layout.of(call, shipped, given, key)
    executed = [one for one in found.templates if found.of(one, key)]
    if not executed:
        return None
    own = [Layout.of(call, (one,), given, key, found.of) for one in executed]
    costs = np.array([[layout.costs(*shape).min() for layout in (theirs, *own)] for shape in shapes])
    at = int(np.argmin(np.log(costs[:, 1:]).sum(axis=0)))
    if to_change is not None:
        at = next(number for number, one in enumerate(executed) if one.digest == to_change.digest)
    best, family = executed[at], own[at].parts[0].family
    largest = max(shapes, key=prod)
    places = range(0, family.size, family.late)
    return FamilyStanding(
        names=tuple(one.name for one in executed),
        rows=tuple(
            ShapeRow(_text(shape), int(row[0]), tuple(map(int, row[1:])))
            for shape, row in zip(shapes, costs, strict=True)
        ),
        name=best.name,
        text=whole(best) if to_change is None else parse.written(to_change),
        shape=_text(largest),
        configurations=tuple(configuration(family, place, largest, registers) for place in places),
        parts=regions.parts(best),
    )


def whole(template: KernelTemplate) -> str:
    """A template's text with its head, as an author writes it. JSON is YAML too."""
    record = {**records.template_record(template), "facts": dict(template.facts)}
    head = "\n".join(f"{key}: {json.dumps(record[key])}" for key in _KEYS if record.get(key))
    return f"---\n{head}\n---\n{regions.marked(template)}"


def configuration(family: Family, place: int, shape: Shape, registers: Mapping[str, int]) -> ExecutedConfiguration:
    numbers = family.numbers(place)
    terms = family.terms(place, family.call.numbers(shape))
    counts = {name: int(numbers[name]) for name in family.counters}
    return ExecutedConfiguration(
        point=str(family.early(family.point(place))),
        registers=registers.get(f"{family.template.name} {family.early(family.point(place))}", 0),
        blocks=terms["cost_held"],
        occupancy=100 * terms["cost_held"] * int(numbers["threads"]) / _THREADS,
        waves=terms["cost_waves"],
        products=terms["cost_math"],
        shared=counts["k_shared_cycles"],
        conflicts=counts["k_shared_cycles"] - _PLAIN * counts["k_tile_loads"],
        copies=terms["cost_loads"],
        latency=terms["cost_late"],
        instructions=(
            counts["k_products"],
            counts["k_tile_loads"],
            counts["k_copied_bytes"] // 16,
            counts["k_single"],
            counts["k_waits"],
        ),
    )


def _text(shape: Shape) -> str:
    return "x".join(map(str, shape))
