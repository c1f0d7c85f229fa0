"""The peak of a board model's core: multiply-adds alone."""

from __future__ import annotations

from collections.abc import Mapping

from tensorop.model.number import NUMBERS
from tensorop.specs import board
from tensorop.specs.board import BoardModel, Cycles

_FMA = "vfma"
_LMULS: Mapping[str, int] = {"m1": 1, "m2": 2, "m4": 4, "m8": 8}


def best(model: BoardModel, vlen: int, number: str) -> float:
    """Flops per cycle at the best LMUL. A cost table that does not grow belongs to vectors without LMUL."""
    cycles = model.cost(_FMA).cycles
    grouped = isinstance(cycles, Cycles) and cycles.m8 > cycles.m1
    return max(modelled_peak(model, vlen, number, lmul) for lmul in (_LMULS if grouped else ("m1",)))


def modelled_peak(model: BoardModel, vlen: int, number: str, lmul: str = "m1") -> float:
    """Flops per cycle of a model's core that executes only multiply-adds of a format at an LMUL."""
    bits = 8 * NUMBERS[number].size
    cost = model.cost(_FMA)
    eew = board.EEWS.index(bits)
    lanes = _LMULS[lmul] * vlen / bits
    units = model.units[cost.unit] if cost.unit else 1
    assert cost.cycles is not None
    if isinstance(cost.cycles, Cycles):
        busy = cost.cycles.at(board.LMULS.index(lmul), eew) * (vlen / model.dlen(vlen)) / units
    else:
        busy = cost.cycles.eew.get(bits, cost.cycles.value) / units
        lanes = vlen / bits
    issue = 1 / model.core.issue_width.value
    return 2 * lanes / max(busy, issue)
