"""RISC-V with the V extension: loads, multiply-adds and jumps of an object's code.

Source: RISC-V unprivileged ISA, chapters RV32I, C, F, D; RISC-V V 1.0, sections 7 and 13.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorop.build.instruction import Instruction, Role
from tensorop.build.words import riscv_words

_VECTOR_WIDTHS = (0, 5, 6, 7)
_SP = 2


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _pick(word: int, *fields: tuple[int, int, int]) -> int:
    """Gathers (from bit, width, to bit) fields."""
    return sum(((word >> start & ((1 << width) - 1)) << to) for start, width, to in fields)


def _jump(at: int, word: int) -> int | None:
    if word & 0x7F == 0x63:
        return at + _signed(_pick(word, (8, 4, 1), (25, 6, 5), (7, 1, 11), (31, 1, 12)), 13)
    if word & 0xFFF == 0x6F:  # jal x0
        return at + _signed(_pick(word, (21, 10, 1), (20, 1, 11), (12, 8, 12), (31, 1, 20)), 21)
    if word & 3 == 1 and word >> 13 & 7 in (6, 7) and word < 0x10000:  # c.beqz, c.bnez
        return at + _signed(_pick(word, (3, 2, 1), (10, 2, 3), (2, 1, 5), (5, 2, 6), (12, 1, 8)), 9)
    if word & 3 == 1 and word >> 13 & 7 == 5 and word < 0x10000:  # c.j
        fields = ((3, 3, 1), (11, 1, 4), (2, 1, 5), (7, 1, 6), (6, 1, 7), (9, 2, 8), (8, 1, 10), (12, 1, 11))
        return at + _signed(_pick(word, *fields), 12)
    return None


def _scalar_load(word: int) -> str | None:
    """The floating-point register that a scalar load writes."""
    if word & 3 == 3:
        return f"f{word >> 7 & 31}" if word & 0x7F == 0x07 and word >> 12 & 7 in (2, 3) else None
    if word & 3 == 0 and word >> 13 == 1:  # c.fld
        return f"f{8 + (word >> 2 & 7)}"
    if word & 3 == 2 and word >> 13 == 1:  # c.fldsp
        return f"f{word >> 7 & 31}"
    return None


def decode(code: bytes, relocated: Mapping[int, int]) -> Iterator[Instruction]:
    """relocated: targets that only the linker writes into the words, by offset of the jump."""
    for at, word in riscv_words(code):
        scalar = _scalar_load(word)
        if scalar is not None:
            yield Instruction(at, Role.LOAD, (scalar,))
            continue
        opcode, vd, rs1, vs2, funct3 = word & 0x7F, word >> 7 & 31, word >> 15 & 31, word >> 20 & 31, word >> 12 & 7
        if word & 3 == 3 and opcode in (0x07, 0x27) and funct3 in _VECTOR_WIDTHS:
            if opcode == 0x07:
                yield Instruction(at, Role.LOAD, (f"v{vd}",), spill=_whole(word) and rs1 == _SP)
            else:
                yield Instruction(at, Role.OTHER, (), (f"v{vd}",), spill=_whole(word) and rs1 == _SP)
        elif word & 3 == 3 and opcode == 0x57 and funct3 in (1, 5) and word >> 26 & 0x38 == 0x28:
            multiplier = f"v{rs1}" if funct3 == 1 else f"f{rs1}"
            yield Instruction(at, Role.FMA, (f"v{vd}",), (multiplier, f"v{vs2}", f"v{vd}"))
        else:
            target = _jump(at, word)
            yield Instruction(at, target=relocated.get(at, target) if target is not None else None)


def _whole(word: int) -> bool:
    """vl<n>r.v and vs<n>r.v, by which compilers spill vectors."""
    return word >> 26 & 3 == 0 and word >> 20 & 31 == 8
