"""A core's costs for a prompt, by kinds of instructions, from the platform's board model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tensorop.model.number import NUMBERS
from tensorop.model.platform import Platform
from tensorop.specs import board
from tensorop.specs.board import BoardModel, Constant, Cycles

# Name -> instruction class, registers of the vector (0: scalar), and meaning.
_KINDS = {
    "fma": ("vfma", 1, "vector multiply-add"),
    "fma2": ("vfma", 2, "vector multiply-add, lmul 2"),
    "fma4": ("vfma", 4, "vector multiply-add, lmul 4"),
    "half-load": ("vload", 0.5, "load of half a vector"),
    "load": ("vload", 1, "load of a vector"),
    "load2": ("vload", 2, "load of a vector, lmul 2"),
    "load4": ("vload", 4, "load of a vector, lmul 4"),
    "fp-load": ("fload", 0, "load of one floating-point number"),
    "int-load": ("load", 0, "load into a general register"),
    "store": ("vstore", 1, "store of a vector"),
    "insert": ("vmove", 1, "move between a general register and a vector"),
    "splat": ("vsplat", 1, "copy of a scalar into all lanes"),
    "add": ("vfadd", 1, "vector add or multiply"),
    "reduce": ("vreduce", 1, "sum over a vector's lanes"),
    "int": ("alu", 0, "integer instruction, address"),
    "set": ("vset", 0, "change of vector length or type"),
    "prefetch": ("prefetch", 0, "prefetch"),
    "branch": ("branch", 0, "predicted branch"),
}


@dataclass(frozen=True)
class InstructionCost:
    """The cost of one kind of instruction. A unit's share is the part of it that is busy, times cycles."""

    name: str
    meaning: str
    slots: float  # issue slots
    shares: Mapping[str, float]  # unit -> share
    every: float  # cycles from one to the next of its kind, if nothing depends on it
    latency: float
    forward: float | None  # latency to the sum of a following multiply-add, if it differs
    remark: str  # the ranges of what is assumed

    def beside(self, other: InstructionCost, model: BoardModel) -> bool:
        """Whether an in-order core can issue both in one cycle."""
        shared = self.shares.keys() & other.shares.keys()
        return self.slots + other.slots <= model.core.issue_width.value and all(
            self.shares[unit] + other.shares[unit] <= 1
            if unit in model.whole
            else min(self.shares[unit], other.shares[unit]) < 1
            for unit in shared
        )


@dataclass(frozen=True)
class ModelledCore:
    """A modelled core and the costs of its instructions."""

    model: BoardModel
    instructions: Mapping[str, InstructionCost]

    def pairs(self, name: str) -> str:
        """The kinds that can issue in the same cycle as this one, in words."""
        own = self.instructions[name]
        alone = [other.name for other in self.instructions.values() if not own.beside(other, self.model)]
        beside = [other for other in self.instructions if other not in alone]
        if not alone:
            return "any"
        few = ", ".join(beside) or "nothing"
        return few if len(beside) <= len(alone) else f"all but {', '.join(alone)}"

    @property
    def chains(self) -> int:
        """Sums that must be in flight so that multiply-adds never wait for one of them."""
        fma = self.instructions["fma"]
        return -int(-(fma.forward or fma.latency) // fma.every)


def machine(platform: Platform, dtype: str) -> ModelledCore | None:
    """The core of a platform with vectors of the first VLEN; None without a board model."""
    if not platform.board:
        return None
    model = board.load(platform.board, f"platform '{platform.name}'")
    grouped = "lmul" in platform.settings
    left_out = {"half-load", "insert"} if grouped else {"fma2", "fma4", "load2", "load4", "set"}
    bits = 8 * NUMBERS[platform.formats(dtype).accumulator].size
    wide = platform.vlens[0] / model.dlen(platform.vlens[0])
    found = {name: _instruction(model, name, bits, wide) for name in _KINDS if name not in left_out}
    return ModelledCore(model, found)


def _instruction(model: BoardModel, name: str, bits: int, wide: float) -> InstructionCost:
    """bits: of an element; wide: VLEN in units of the data path"""
    kind, registers, meaning = _KINDS[name]
    cost = model.cost(kind)

    def number(of: Cycles | Constant | None, usual: float) -> float:
        if isinstance(of, Cycles):
            return of.at(board.LMULS.index("m1") + int(registers).bit_length() - 1, board.EEWS.index(bits)) * wide
        return of.eew.get(bits, of.value) if of else usual

    first, second = model.shared if model.shared and model.core.shared_ports.value else ("", "")  # are one port
    shares: dict[str, float] = {}
    for unit, cycles in ((cost.unit, cost.cycles), *([(cost.also.unit, cost.also.cycles)] if cost.also else [])):
        if unit is not None:
            shares[first if unit == second else unit] = number(cycles, 0) / model.units[unit]
    slots = number(cost.slots, 1)
    forward = number(cost.forward, 0) if cost.forward else None
    parts = {"cycles": cost.cycles, "latency": cost.latency}
    parts = {} if 0 < registers < 1 else parts  # no range is of a part of a register
    remarks = [f"{what} assumed{_range(of)}" for what, of in parts.items() if of is not None and of.assumed]
    every = max(*shares.values(), slots / model.core.issue_width.value)
    return InstructionCost(name, meaning, slots, shares, every, number(cost.latency, 0), forward, ", ".join(remarks))


def _range(of: Cycles | Constant) -> str:
    times = " times this" if isinstance(of, Cycles) else ""
    return f", {of.low:g} to {of.high:g}{times}"
