"""Test calls of a set's primitives: every legal number of lanes, ordinary and special values, guarded arrays."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError
from tensorop.model.expression import evaluate, parse
from tensorop.model.number import NUMBERS, Number
from tensorop.model.primitive import ARGUMENTS, Formats, Primitive, Primitives, shape_of

ARRAYS = ("vector", "half", "element", "pointer", "matrix")
_BEFORE, _AFTER = 3, 5  # elements of poison before and after the elements that a primitive may write
_LEAST = 48  # cases of a primitive, at least
_LEAST_LANES, _LEAST_LANES_ULP = 100, 1000  # and lanes in all of them; of a primitive with a stated distance in ulp

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
    numbers: Mapping[str, int]  # vl, rows, cols, ldd, lds, lane, lanes, overflow
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
        of_format = {"overflow": NUMBERS[formats.accumulator].overflow}
        choices = [of_format | c for c in _choices(entry, lanes, rng) if legal(entry.primitive, c)]
        wanted = _LEAST_LANES if entry.primitive.ulp is None else _LEAST_LANES_ULP
        least = max(_LEAST, 2 * wanted // lanes)  # half of the lanes of a case are active, more or less
        for repeat in range(-(-least // max(len(choices), 1))):
            for i, numbers in enumerate(choices):
                yield PrimitiveCase(entry, numbers, _arrays(entry.primitive, formats, numbers, rng, repeat + i))


def legal(primitive: Primitive, numbers: Mapping[str, int]) -> bool:
    """True if these numbers satisfy the primitive's preconditions, but for those on lanes."""
    return all(
        evaluate(condition, numbers)
        for condition in primitive.preconditions
        if not any(condition in of_lanes(primitive, argument) for argument in primitive.args)
    )


def of_lanes(primitive: Primitive, argument: str) -> tuple[str, ...]:
    """The preconditions that each lane of an argument must satisfy: they name it."""
    if shape_of(argument) not in ("vector", "element"):
        return ()
    return tuple(one for one in primitive.preconditions if re.search(rf"\b{argument}\b", one))


def _choices(entry: PrimitiveEntry, lanes: int, rng: np.random.Generator) -> Iterator[dict[str, int]]:
    kinds = {shape_of(a) for a in entry.primitive.args}
    base = {"lanes": lanes, "vl": lanes, "count": lanes, "rows": lanes, "cols": lanes, "lane": entry.constant or 0}
    base |= {"readable": 1}
    if "matrix" in kinds:
        for rows, cols in _shapes(entry.primitive, lanes, rng):
            ldd, lds = max(rows, 1) + int(rng.integers(4)), max(cols, 1) + int(rng.integers(4))
            yield base | {"rows": rows, "cols": cols, "ldd": ldd, "lds": lds}
    elif kinds & {"predicate", "count"}:
        many = [2 * lanes + 1, 17 * lanes - 1] if "predicate" not in kinds else []  # counts are not limited by lanes
        for vl in [*range(lanes + 1), *many]:
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
            found = values(number, count, rng, flavour)
            if conditions := of_lanes(primitive, argument):
                found = _required(found, number, argument, conditions, numbers["overflow"], rng)
            out[argument] = (found, 0)
    return out


_POOL = 400  # values from which those that satisfy a precondition are chosen


def _required(
    found: Array, number: str, argument: str, conditions: tuple[str, ...], overflow: int, rng: np.random.Generator
) -> Array:
    """The lanes that satisfy the conditions, with others in the place of the rest. Raises SpecError if none does."""
    bound = 2 * NUMBERS[number].overflow
    whole = rng.integers(-bound, bound, _POOL, endpoint=True).astype(float)
    pool = np.concatenate([NUMBERS[number].encoded(whole), values(number, _POOL, rng, 0), found])
    checks = [parse(condition, {argument: int, "overflow": int}) for condition in conditions]

    def satisfies(value: float) -> bool:
        return all(check.value({argument: value, "overflow": overflow}) for check in checks)

    right = [satisfies(float(value)) for value in NUMBERS[number].decoded(pool)]
    if not any(right):
        raise SpecError(f"no number of the format {number} was found that satisfies {', '.join(conditions)}")
    return np.where(right[2 * _POOL :], found, rng.choice(pool[right], found.size))


def _poison(number: str, count: int) -> Array:
    """Distinct numbers. In floating-point formats they are values that no primitive computes from `values`."""
    return NUMBERS[number].encoded(np.arange(count) + (0 if NUMBERS[number].whole else 0.5 + 2.0**20))


def values(number: str, count: int, rng: np.random.Generator, flavour: int) -> Array:
    """Stored numbers of one flavour.

    Floating-point: ordinary; mixed with special values; tiny, down to denormals; near overflow; those whose powers of e
    are finite, and their ends; zeros.
    Integers: any; mixed with the extremes and 0, 1, -1; small.
    """
    kind = NUMBERS[number]
    if kind.whole:
        return _whole(kind, count, rng, flavour)
    largest = math.ldexp(2 - 2.0 ** (1 - kind.precision), kind.overflow - 1)
    least_normal = math.ldexp(1.0, kind.smallest + kind.precision - 1)
    plain = rng.standard_normal(count)
    match flavour % 7:
        case 1 | 3:
            special = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, kind.tiny, -kind.tiny, least_normal, -least_normal,
                                largest, -largest, 1.0, -1.0, 3.0])  # fmt: skip
            plain = np.where(rng.random(count) < 0.4, rng.choice(special, count), plain)
        case 2:
            least = kind.smallest + kind.precision - 1
            plain = plain * np.exp2(rng.integers(kind.smallest, least // 2, count).astype(float))
        case 4:
            plain = plain * np.exp2(rng.integers(kind.overflow // 2, kind.overflow - 2, count).astype(float))
        case 5:
            least = kind.smallest + kind.precision - 1
            ends = rng.choice(np.log(2) * np.array([kind.overflow, least, kind.smallest, kind.smallest - 1]), count)
            within = rng.uniform(np.log(2) * (kind.smallest - 2), np.log(2) * (kind.overflow + 1), count)
            plain = np.where(rng.random(count) < 0.3, ends * (1 + kind.unit * rng.integers(-9, 10, count)), within)
        case 6:
            plain = rng.choice([0.0, -0.0, -0.0, -0.0], count)
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
