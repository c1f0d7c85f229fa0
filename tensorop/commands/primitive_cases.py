"""Test calls of a set's primitives: every legal number of lanes, ordinary and special values, guarded arrays."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.model.expression import evaluate
from tensorop.model.number import NUMBERS, Number
from tensorop.model.primitive import ARGUMENTS, Formats, Primitive, Primitives, shape_of

ARRAYS = ("vector", "half", "element", "pointer", "matrix")
_BEFORE, _AFTER = 3, 5  # elements of poison before and after the elements that a primitive may write
_LEAST = 48  # cases of a primitive, at least

Array = NDArray[Any]


@dataclass(frozen=True)
class PrimitiveEntry:
    """A primitive that is compiled as one function."""

    number: int  # index in the table of the check program
    primitive: Primitive
    constant: int | None = None  # value of its constant argument, which gets an entry for each value


@dataclass(frozen=True)
class PrimitiveCase:
    """One call of a primitive."""

    entry: PrimitiveEntry
    numbers: Mapping[str, int]  # vl, rows, cols, ldd, lds, lane, lanes
    # Argument -> (elements, index of the element that its pointer addresses), in the order of the arguments.
    arrays: Mapping[str, tuple[Array, int]]

    def packed(self) -> bytes:
        """The call in the input format of the check program."""
        n = self.numbers
        parts = [struct.pack("<6q", self.entry.number, n["vl"], n["rows"], n["cols"], n["ldd"], n["lds"])]
        for elements, start in self.arrays.values():
            parts += [struct.pack("<2q", elements.nbytes, start * elements.itemsize), elements.tobytes()]
        return b"".join(parts)

    def result_size(self) -> int:
        """The number of elements in the program's result."""
        if self.entry.primitive.returns in ("memory", "none"):
            return next(iter(self.arrays.values()))[0].size
        return self.numbers["lanes"]


def entries(primitives: Primitives, fewest_lanes: int) -> tuple[PrimitiveEntry, ...]:
    """The entries of all primitives. A constant argument takes all values below the smallest number of lanes."""
    out: list[PrimitiveEntry] = []
    for primitive in primitives.by_name.values():
        if any(ARGUMENTS[a] == "constant" for a in primitive.args):
            out += [PrimitiveEntry(len(out) + i, primitive, value) for i, value in enumerate(range(fewest_lanes))]
        else:
            out.append(PrimitiveEntry(len(out), primitive))
    return tuple(out)


def cases(all_entries: Iterable[PrimitiveEntry], formats: Formats, lanes: int) -> Iterator[PrimitiveCase]:
    """Calls that satisfy the primitives' preconditions; the same for the same arguments."""
    for entry in all_entries:
        rng = np.random.default_rng([0, entry.number, lanes])
        choices = [c for c in _choices(entry, lanes, rng) if legal(entry.primitive, c)]
        for repeat in range(-(-_LEAST // max(len(choices), 1))):
            for i, numbers in enumerate(choices):
                yield PrimitiveCase(entry, numbers, _arrays(entry.primitive, formats, numbers, rng, repeat + i))


def legal(primitive: Primitive, numbers: Mapping[str, int]) -> bool:
    """True if these numbers satisfy the primitive's preconditions."""
    return all(evaluate(condition, numbers) for condition in primitive.preconditions)


def _choices(entry: PrimitiveEntry, lanes: int, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    kinds = {shape_of(a) for a in entry.primitive.args}
    base = {"lanes": lanes, "vl": lanes, "count": lanes, "rows": lanes, "cols": lanes, "lane": entry.constant or 0}
    base |= {"readable": 1}
    if "matrix" in kinds:
        for rows, cols in _shapes(entry.primitive, lanes, rng):
            ldd, lds = max(rows, 1) + int(rng.integers(4)), max(cols, 1) + int(rng.integers(4))
            yield base | {"rows": rows, "cols": cols, "ldd": ldd, "lds": lds}
    elif kinds & {"predicate", "count"}:
        for vl in range(lanes + 1):
            apart = int(rng.integers(1, 5)) if "leading dimension" in kinds else 0
            yield base | {"vl": vl, "count": vl, "ldd": 0, "lds": apart}
    else:
        yield base | {"ldd": 0, "lds": 0}
        if entry.primitive.returns == "none":
            yield base | {"ldd": 0, "lds": 0, "readable": 0}


def _shapes(primitive: Primitive, lanes: int, rng: np.random.Generator) -> list[tuple[int, int]]:
    """Blocks to transpose, as (rows, cols): all for up to 8 lanes; else the corners, and heights with random widths."""
    if "rows" not in primitive.args:
        return [(lanes, lanes)] * 4
    if lanes <= 8:
        return [(r, c) for r in range(lanes + 1) for c in range(lanes + 1)]
    some = rng.permutation(lanes + 1)
    corners = [(0, 0), (0, lanes), (lanes, 0), (1, lanes), (lanes, 1), (lanes, lanes)]
    step = max(1, lanes // 32)
    return corners + [(r, int(some[r])) for r in range(0, lanes + 1, step)]


def _arrays(
    primitive: Primitive, formats: Formats, numbers: Mapping[str, int], rng: np.random.Generator, flavour: int
) -> dict[str, tuple[Array, int]]:
    lanes, vl, rows, cols = (numbers[k] for k in ("lanes", "vl", "rows", "cols"))
    out: dict[str, tuple[Array, int]] = {}
    first = next((a for a in primitive.args if shape_of(a) in ARRAYS), None)
    for argument in primitive.args:
        kind, number = shape_of(argument), formats.of(argument)
        if kind not in ARRAYS:
            continue
        if argument == first and primitive.returns == "memory":
            extent = (cols - 1) * numbers["ldd"] + rows if kind == "matrix" else vl
            extent = max(extent, 0) if rows and cols else 0
            # in every second case the last writable element is the last one before the guard page
            total = _BEFORE + extent + (_AFTER + lanes if flavour % 2 else 0)
            out[argument] = (_poison(number, total), _BEFORE)
        elif primitive.returns == "none":
            # points to the last element before the guard page if `readable`, else to the page, which must not fault
            out[argument] = (values(number, 4, rng, flavour), 4 - numbers["readable"])
        elif kind == "matrix":
            extent = (rows - 1) * numbers["lds"] + cols if rows and cols else 0
            out[argument] = (values(number, extent, rng, flavour), 0)
        else:
            reach = (vl - 1) * max(numbers["lds"], 1) + 1 if vl else 0
            count = {"vector": lanes, "half": lanes // 2, "element": 1, "pointer": reach}[kind]
            out[argument] = (values(number, count, rng, flavour), 0)
    return out


def _poison(number: str, count: int) -> Array:
    """Distinct numbers. In floating-point formats they are values that no primitive computes from `values`."""
    return NUMBERS[number].encoded(np.arange(count) + (0 if NUMBERS[number].whole else 0.5 + 2.0**20))


def values(number: str, count: int, rng: np.random.Generator, flavour: int) -> Array:
    """Stored numbers of one flavour.

    Floating-point: ordinary; mixed with special values; tiny, down to denormals; near overflow.
    Integers: any; mixed with the extremes and 0, 1, -1; small.
    """
    kind = NUMBERS[number]
    if kind.whole:
        return _whole(kind, count, rng, flavour)
    largest = math.ldexp(2 - 2.0 ** (1 - kind.precision), kind.overflow - 1)
    least_normal = math.ldexp(1.0, kind.smallest + kind.precision - 1)
    plain = rng.standard_normal(count)
    match flavour % 5:
        case 1 | 3:
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, kind.tiny, -kind.tiny, least_normal, -least_normal,
                                largest, -largest, 1.0, -1.0, 3.0])  # fmt: skip
            plain = np.where(rng.random(count) < 0.4, rng.choice(special, count), plain)
        case 2:
            least = kind.smallest + kind.precision - 1
            plain = plain * np.exp2(rng.integers(kind.smallest, least // 2, count).astype(float))
        case 4:
            plain = plain * np.exp2(rng.integers(kind.overflow // 2, kind.overflow - 2, count).astype(float))
    return kind.encoded(plain)


def _whole(kind: Number, count: int, rng: np.random.Generator, flavour: int) -> Array:
    info = np.iinfo(kind.storage)  # type: ignore[type-var]
    plain = rng.integers(info.min, info.max, count, endpoint=True)
    match flavour % 3:
        case 1:
            plain = np.where(rng.random(count) < 0.4, rng.choice([info.min, info.max, 0, 1, -1], count), plain)
        case 2:
            plain = rng.integers(-9, 10, count)
    return kind.encoded(plain)
