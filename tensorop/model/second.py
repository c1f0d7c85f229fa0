"""Second operands of timed calls, which lie behind the first ones in their buffers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tensorop.model.call import Buffer
from tensorop.model.matrix import Array, Matrix
from tensorop.model.number import Number

LINE = 64  # bytes of a cache line
SMALL = 4096  # bytes of an operand up to which a longer one has a second one of other elements altogether


@dataclass(frozen=True)
class Factor:
    """An operand of a product."""

    matrix: Matrix
    along: bool  # whether its lines are along the side that sums run over
    number: Number


def shifts(factors: Sequence[Factor]) -> list[int]:
    """How many elements further on the second operand of each factor begins, in a little longer first one.

    It is as aligned as the first one where lines are longer than a cache line. The first factor is moved along the side
    that sums run over; the others are moved along their other side, and along that side by another number of steps. So
    the second product has nothing to do with the first one.
    """
    found: list[int] = []
    moved = 0  # steps of the first factor
    for factor in factors:
        ld, line = factor.matrix.ld, _line(factor.number.size)
        within = line if ld > line else 1
        if not found:
            found.append(within if factor.along else _up(ld, line))
            moved = within if factor.along else found[0] // ld
        elif factor.along:
            steps = (_up(n * ld, line) for n in itertools.chain((2, 3, 5, 7), itertools.count(8)))
            found.append(next(step for step in steps if step % ld != moved))
        else:
            found.append(within)
    return found


def longer(buffer: Buffer, shift: int, number: Number, rng: np.random.Generator, small: int = SMALL) -> Buffer:
    """The operand with more elements behind it, so that a second one begins `shift` elements further on.

    small: bytes of an operand up to which the second one has no element of the first
    """
    if buffer.data.nbytes <= small:
        shift = _up(buffer.data.size, _line(number.size))
    return replace(buffer, data=np.concatenate([buffer.data, numbers(number, shift, rng)]), shift=shift)


def followed(buffer: Buffer, second: Array) -> Buffer:
    """The operand with a second one behind it in its storage, aligned to a cache line relative to the first."""
    size = buffer.data.size
    if not size:
        return buffer
    shift = _up(size, _line(buffer.data.itemsize))
    gap = np.zeros_like(second, shape=shift - size)
    return replace(buffer, data=np.concatenate([buffer.data, gap, second]), shift=shift)


def numbers(number: Number, size: int, rng: np.random.Generator) -> Array:
    """N(0, 1), or integers of 8 bits."""
    return number.encoded(rng.integers(-128, 128, size) if number.whole else rng.standard_normal(size))


def _line(element: int) -> int:
    """Elements of a cache line."""
    return max(1, LINE // element)


def _up(count: int, line: int) -> int:
    return -(-count // line) * line
