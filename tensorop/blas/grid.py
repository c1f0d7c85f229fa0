"""The calls that judge one function. Each round's depend on the seed, the function and the round alone.

Round 0 has all flags on small and on larger sizes, each small size of level 1, sizes of zero, NaN and infinities in
operands, and every wrong argument. Round 1 has each size alone above 4,000, and all sizes large. Round 2 has the
corners: each size as 0 and 1 with all flags, pairs of scalars, steps of either sign, and the same inputs. Round 3 has
each size at each edge of usual tiles, and once between each two of them. All others are drawn.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from tensorop.blas.call import BlasCase
from tensorop.blas.routines import COMPLEX, Argument, BlasRoutine, Role, Storage, Structure
from tensorop.model.call import Placement

_SMALL = (1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13)
_TILES = (15, 16, 17, 23, 24, 25, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 81, 96, 97, 127, 128, 129, 191, 200, 257)
_EDGES = _TILES[:9]
_LARGE = (511, 513, 1023, 1025, 2049, 3001, 4097, 4100, 5003)
_LONG = (9_999, 10_007, 32_771, 70_001)  # vectors that threads share
_VERY_LARGE = 4_100
_MOST_IN_TURN = 36  # sizes of level 1 below it are all tried
_WHOLE = (70_001, 513, 311, 257, 150)
_STEPS = (1, 1, 1, 1, 2, 3, -1, -2, -5)
_SCALARS = (0.0, 1.0, -1.0)
_MOST_ORDINARY = 600.0  # of a drawn size that is not a large one
_MOST_ELEMENTS, _MOST_PRODUCTS = 400_000, 4_000_000
_MOST_OF_ONE = 1_100_000  # elements of one call of each size
_MOST_OF_WHOLE = 140_000_000  # products of the one call with all sizes large; complex ones take longer
_DRAWN = 16  # calls of a round
_OF_EACH = 3  # calls of round 1 for each size
_LEAST_OF_EACH = 6  # corners of each kind, of routines with few flags
_PEAK = 4096.0
_HUGE = {"s": 1e30, "c": 1e30, "d": 1e200, "z": 1e200}  # its square overflows
_ZEROS = 0.05  # part of the drawn calls with a size of zero


def _rng(seed: int, function: str, number: int) -> np.random.Generator:
    return np.random.default_rng([seed, zlib.crc32(function.encode()), number])


def cases(routine: BlasRoutine, dtype: str, layouts: Sequence[str], seed: int, number: int) -> Iterator[BlasCase]:
    """The calls of a round. layouts: ways to call the function"""
    rng = _rng(seed, routine.function(dtype), number)
    flags = routine.flags(dtype)
    sizes = [one.name for one in routine.of_role(Role.SIZE)]
    if number == 0:
        for layout, letters in itertools.product(layouts, itertools.product(*flags.values())):
            for among in (_SMALL, _EDGES):
                drawn = {name: int(rng.choice(among)) for name in sizes}
                plain = _drawn(rng, routine, dtype, layout, drawn)
                yield replace(plain, flags=dict(zip(flags, letters, strict=True)), shared=False)
        for name in sizes:
            yield _drawn(rng, routine, dtype, layouts[0], _emptied(routine, _small(rng, sizes), name))
        yield from _specials(rng, lambda: _drawn(rng, routine, dtype, str(rng.choice(layouts)), _small(rng, sizes)))
        for size in range(1, _MOST_IN_TURN if routine.level == 1 and sizes else 0):
            plain = _drawn(rng, routine, dtype, str(rng.choice(layouts)), {"n": size})
            yield plain if rng.random() < 0.5 else replace(plain, steps=dict.fromkeys(plain.steps, 1))
        for _ in range(0 if sizes else _DRAWN):
            yield _any(rng, routine, dtype, str(rng.choice(layouts)), sizes)
        # Libraries' CBLAS check enumerations in their own ways, so Fortran names are taken where there are any.
        for layout in layouts[:1] if routine.level > 1 else ():
            for one in routine.of_role(Role.FLAG, Role.SIZE, Role.LEADING, Role.INCREMENT):
                yield _wrong(rng, routine, dtype, layout, one)
    elif number == 1:
        for name, of_each in itertools.product(sizes, range(_OF_EACH)):
            most = _MOST_ELEMENTS if of_each else _MOST_OF_ONE
            large = _fitting(rng, routine, dtype, str(rng.choice(layouts)), name, _VERY_LARGE, most)
            if large is not None:
                # Fast paths are those of increments 1.
                yield _peaked(large if of_each != 1 else replace(large, steps=dict.fromkeys(large.steps, 1)))
        yield from _whole(rng, routine, dtype, str(rng.choice(layouts)), sizes)
    elif number == 2:
        yield from _corners(rng, routine, dtype, layouts, sizes)
    elif number == 3:
        turn = itertools.cycle(_letters(routine, dtype))
        between = [int(rng.integers(least + 1, size)) for least, size in itertools.pairwise(_TILES) if size - least > 1]
        for name, size, _ in itertools.product(sizes, sorted([*_TILES, *between]), range(4 - routine.level)):
            edge = _drawn(rng, routine, dtype, str(rng.choice(layouts)), {**_small(rng, sizes), name: size})
            if fits(edge := replace(edge, flags=next(turn), shared=False)):
                yield edge
                if routine.level == 1:
                    yield replace(edge, steps=dict.fromkeys(edge.steps, 1))
    else:
        for _ in range(_DRAWN):
            yield _any(rng, routine, dtype, str(rng.choice(layouts)), sizes)


def _letters(routine: BlasRoutine, dtype: str) -> list[dict[str, str]]:
    """Every choice of the flags."""
    flags = routine.flags(dtype)
    return [dict(zip(flags, one, strict=True)) for one in itertools.product(*flags.values())]


def _signed(case: BlasCase, sign: int) -> BlasCase:
    return replace(case, steps={name: sign * max(1, abs(step)) for name, step in case.steps.items()})


def _corners(
    rng: np.random.Generator, routine: BlasRoutine, dtype: str, layouts: Sequence[str], names: Sequence[str]
) -> Iterator[BlasCase]:
    letters = _letters(routine, dtype)
    for chosen in letters * max(1, _LEAST_OF_EACH // len(letters)):

        def made(sizes: dict[str, int], chosen: dict[str, str] = chosen) -> BlasCase:
            return replace(_drawn(rng, routine, dtype, str(rng.choice(layouts)), sizes), flags=chosen, shared=False)

        for name in names:
            yield (one := made(_small(rng, names) | {name: 1}))
            if one.steps and not _alone(routine):
                yield _signed(one, -1)
            empty = made(_emptied(routine, _small(rng, names), name))
            yield replace(empty, special={}, scalars={n: 0.0 if n == "beta" else v for n, v in empty.scalars.items()})
        signed = made(_small(rng, names))
        yield _signed(signed, 1)
        if signed.steps and not _alone(routine):
            yield _signed(signed, -1)
        size, alike = int(rng.choice(_SMALL)), made({})
        alike = replace(
            alike,
            sizes=dict.fromkeys(names, size),
            steps=dict.fromkeys(alike.steps, next(iter(alike.steps.values()), 1)),
            padding=dict.fromkeys(alike.padding, next(iter(alike.padding.values()), 0)),
            special={},
        )
        if _sharing(alike):
            yield replace(alike, shared=True)
    factors = routine.of_role(Role.SCALAR)
    for pair in itertools.product((0.0, 1.0, None), repeat=len(factors)):
        case = replace(_drawn(rng, routine, dtype, str(rng.choice(layouts)), _small(rng, names)), special={})
        given = {one.name: value for one, value in zip(factors, pair, strict=True) if value is not None}
        yield replace(case, scalars={**case.scalars, **given})
    for leading, chosen in itertools.product(routine.of_role(Role.LEADING), letters):  # the least may depend on flags
        yield replace(_wrong(rng, routine, dtype, layouts[0], leading), flags=chosen)


def _peaked(case: BlasCase) -> BlasCase:
    """The call with a last element so large that its loss shows beside the bound of long sums."""
    names = [name for name, one in case.routine.operands.items() if one.structure is Structure.GENERAL]
    if not names or any(one.kind == "array" for one in case.routine.operands.values()):
        return case
    return replace(case, special={names[0]: _PEAK}, salt=case.salt | 8)


def _small(rng: np.random.Generator, names: Sequence[str]) -> dict[str, int]:
    return {name: int(rng.choice(_SMALL)) for name in names}


def _any(rng: np.random.Generator, routine: BlasRoutine, dtype: str, layout: str, names: Sequence[str]) -> BlasCase:
    kind = rng.random()
    if kind > 0.8 and names:
        large = (*_LARGE, *_LONG) if routine.level == 1 else _LARGE
        found = _fitting(rng, routine, dtype, layout, str(rng.choice(names)), int(rng.choice(large)))
        if found is not None:
            return found
    sizes = _small(rng, names)
    for name in names if kind > 0.35 else ():
        size = int(rng.choice(_TILES) if rng.random() < 0.3 else _MOST_ORDINARY ** rng.random())
        if fits(tried := _drawn(rng, routine, dtype, layout, {**sizes, name: size})):
            sizes = dict(tried.sizes)
    if names and rng.random() < _ZEROS:
        sizes = _emptied(routine, sizes, str(rng.choice(names)))
    return _drawn(rng, routine, dtype, layout, sizes)


def _emptied(routine: BlasRoutine, sizes: dict[str, int], name: str) -> dict[str, int]:
    """Sizes with a zero. Libraries differ on y where a matrix has rows but no columns, so that both are zero there."""
    both = routine.level == 2 and name in ("m", "n")
    return sizes | dict.fromkeys([n for n in ("m", "n") if n in sizes] if both else [name], 0)


def _fitting(
    rng: np.random.Generator,
    routine: BlasRoutine,
    dtype: str,
    layout: str,
    name: str,
    size: int,
    most_elements: int = _MOST_ELEMENTS,
) -> BlasCase | None:
    """A call with this size, or the largest one that memory and time allow; None if these allow no large one."""
    others = _small(rng, [one.name for one in routine.of_role(Role.SIZE)])
    while size > max(_TILES):
        found = _drawn(rng, routine, dtype, layout, {**others, name: size})
        if fits(found, most_elements):
            return found
        size //= 2
    return None


def _whole(
    rng: np.random.Generator, routine: BlasRoutine, dtype: str, layout: str, names: Sequence[str]
) -> Iterator[BlasCase]:
    """A call with the largest equal sizes that memory and time allow: libraries use all threads for it."""
    most = _MOST_OF_WHOLE // (4 if dtype in COMPLEX else 1)
    tried = (_drawn(rng, routine, dtype, layout, dict.fromkeys(names, size)) for size in _WHOLE if names)
    yield from itertools.islice((one for one in tried if fits(one, most_products=most)), 1)


def fits(case: BlasCase, most_elements: int = _MOST_ELEMENTS, most_products: int = _MOST_PRODUCTS) -> bool:
    """Whether a call is small enough: memory of the operands, whole matrices, and products."""
    size, whole, written = 1, 1, 1
    for name, one in case.routine.operands.items():
        where = case.places[name]
        size, whole = max(size, where.size), max(whole, where.rows * where.columns)
        if one.written:
            written = where.rows * where.columns
    return max(size, whole) <= most_elements and written * _depth(case) <= most_products


def _depth(case: BlasCase) -> int:
    """The products that are added to one element of the result."""
    if case.routine.level < 3:
        return case.sizes.get("k", 1)
    order = case.places["a"].rows  # of the symmetric or triangular matrix
    return case.sizes.get("k", order)


def _alone(routine: BlasRoutine) -> bool:
    """Whether increments must be positive."""
    return sum(one.kind == "vector" for one in routine.operands.values()) == 1 and routine.level == 1


def _drawn(rng: np.random.Generator, routine: BlasRoutine, dtype: str, layout: str, sizes: dict[str, int]) -> BlasCase:
    names = routine.operands
    alone = _alone(routine)
    steps = {
        name: int(rng.choice([s for s in _STEPS if s > 0] if alone else _STEPS))
        for name, one in names.items()
        if one.kind == "vector"
    }
    read = [name for name, one in names.items() if not one.written and one.kind != "array"]
    if routine.level == 1 and not alone and read and rng.random() < 0.1:
        steps[str(rng.choice(read))] = 0
    padding = {
        name: int(rng.choice((0, 0, 1, 3, 8, 17)))
        for name, one in names.items()
        if one.kind == "matrix" and one.storage is not Storage.PACKED
    }
    flags = {name: str(rng.choice([*letters])) for name, letters in routine.flags(dtype).items()}
    made = BlasCase(
        routine,
        dtype,
        layout,
        flags,
        sizes or _small(rng, [one.name for one in routine.of_role(Role.SIZE)]),
        {one.name: _scalar(rng, one, dtype) for one in routine.of_role(Role.SCALAR)},
        int(rng.integers(2**31)),
        padding,
        steps,
        placement=Placement.END if rng.random() < 0.7 else Placement.START,
    )
    if rng.random() < 0.2 and _sharing(made):
        return replace(made, shared=True)
    return _special(rng, made)


def _special(rng: np.random.Generator, case: BlasCase) -> BlasCase:
    """In some calls, an operand has a NaN, an infinity, a zero, which libraries skip, or a large element."""
    if case.function in ("srotg", "drotg"):  # complex ones differ for a zero
        return replace(case, special={name: 0.0 for name in ("a", "b") if rng.random() < 0.3})
    value, names = float(rng.choice((math.nan, math.inf, 0.0, 0.0, _PEAK))), _ordinary(case)
    return case if not names or rng.random() > 0.25 else replace(case, special={str(rng.choice(names)): value})


def _ordinary(case: BlasCase, more: Sequence[Structure] = ()) -> list[str]:
    """The operands that can have a special element. more: further structures"""
    operands = case.routine.operands
    plain = all(one.kind != "array" for one in operands.values()) and all(case.sizes.values())
    return [
        name
        for name, one in operands.items()
        if plain
        and one.kind != "array"
        and (one.structure in (Structure.GENERAL, Structure.SYMMETRIC) or _has_one(case, name, more))
        and not case.unset(name)
    ]


def _has_one(case: BlasCase, name: str, more: Sequence[Structure]) -> bool:
    """Whether an operand of a further structure has an element: a unit triangle of one row has none."""
    return case.routine.operands[name].structure in more and bool(case.places[name].mask.any())


def _specials(rng: np.random.Generator, made: Callable[[], BlasCase]) -> Iterator[BlasCase]:
    """Calls with a NaN or an infinity in each operand, alone and beside a zero in each other one."""
    for lost in (math.nan, math.nan, math.inf, -math.inf):
        case = replace(made(), shared=False)
        # Divisions by infinity have finite results, and those by zero none.
        triangular = (Structure.TRIANGULAR,) if math.isnan(lost) else ()
        for name, other in itertools.product(_ordinary(case, triangular), _ordinary(case)):
            yield replace(case, special={other: 0.0, name: lost}, salt=int(rng.integers(2**31)))
    if case.routine.result == "real":
        yield replace(case, special={"x": _HUGE[case.dtype]})


def _sharing(case: BlasCase) -> bool:
    """Whether the second operand can be the first one: both are inputs with the same places."""
    operands = [*case.routine.operands.items()][:2]
    if len(operands) < 2 or any(one.written or one.kind == "array" for _, one in operands):
        return False
    (first, a), (second, b) = operands
    plain = a.structure is b.structure is Structure.GENERAL and case.real(first) == case.real(second)
    return plain and case.places[first] == case.places[second]


def _scalar(rng: np.random.Generator, one: Argument, dtype: str) -> complex:
    if rng.random() < 0.5:
        return float(rng.choice(_SCALARS))
    drawn = rng.uniform(0.1, 2, 2) * rng.choice((-1, 1), 2)
    if one.real or dtype not in COMPLEX:
        return float(drawn[0])
    plain = rng.random()  # a part that libraries may take for the whole
    return complex(rng.choice((0.0, 1.0)) if plain < 0.3 else drawn[0], 0.0 if plain > 0.9 else drawn[1])


def _wrong(rng: np.random.Generator, routine: BlasRoutine, dtype: str, layout: str, one: Argument) -> BlasCase:
    """A call with one argument that is refused; all others are plain."""
    sizes = _small(rng, [one.name for one in routine.of_role(Role.SIZE)])
    # A leading dimension below that of one row is refused by checks that are too weak.
    made = _drawn(rng, routine, dtype, layout, {name: max(2, size) for name, size in sizes.items()})
    plain = {name: abs(step) or 1 for name, step in made.steps.items()}
    return replace(made, wrong=one.name, shared=False, steps=plain, scalars=dict.fromkeys(made.scalars, 0.5))
