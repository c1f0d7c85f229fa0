"""AArch64 with Advanced SIMD: loads, multiply-adds and jumps of an object's code.

Source: Arm Architecture Reference Manual, section C4.1, A64 instruction set encoding.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tensorop.build.instruction import Instruction, Role
from tensorop.build.words import aarch64_words

_SP = 31


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _jump(at: int, word: int) -> int | None:
    if word & 0xFF000010 == 0x54000000 or word & 0x7E000000 == 0x34000000:  # b.cond, cbz, cbnz
        return at + 4 * _signed(word >> 5 & 0x7FFFF, 19)
    if word & 0x7E000000 == 0x36000000:  # tbz, tbnz
        return at + 4 * _signed(word >> 5 & 0x3FFF, 14)
    if word & 0xFC000000 == 0x14000000:  # b
        return at + 4 * _signed(word & 0x3FFFFFF, 26)
    return None


def _single(word: int) -> bool:
    """ldr of a q, d or s register: unsigned offset, or unscaled, indexed and by register."""
    unsigned = word & 0x3F400000 == 0x3D400000
    unscaled = word & 0x3F600000 == 0x3C400000
    register = word & 0x3F600C00 == 0x3C600800
    return unsigned or unscaled or register


def _pair(word: int) -> bool:
    return word & 0x3E400000 == 0x2C400000


def _structure(word: int) -> int:
    """Registers that ld1 (one to four) or ld1r writes; 0 for other words."""
    if word & 0xBF600000 == 0x0C400000 or word & 0xBFE00000 == 0x0CC00000:
        return {0b0111: 1, 0b1010: 2, 0b0110: 3, 0b0010: 4}.get(word >> 12 & 15, 0)
    if word & 0xBF60E000 == 0x0D40C000 and not word >> 21 & 1:
        return 1
    return 0


def _fma(word: int) -> bool:
    vector = word & 0xBFA0FC00 == 0x0E20CC00 or word & 0xBFA0FC00 == 0x0EA0CC00  # fmla, fmls
    element = word & 0xBF80B400 == 0x0F801000  # fmla, fmls by element
    return vector or element


def decode(code: bytes, relocated: Mapping[int, int]) -> Iterator[Instruction]:
    """relocated: targets that only the linker writes into the words, by offset of the jump."""
    for at, word in aarch64_words(code):
        rd, rn, rm = word & 31, word >> 5 & 31, word >> 16 & 31
        quad_store = word & 0xFFC00000 == 0x3D800000 or word & 0xFFC00000 == 0xAD000000
        quad_load = word & 0xFFC00000 == 0x3DC00000 or word & 0xFFC00000 == 0xAD400000
        if _pair(word):
            writes = (f"v{rd}", f"v{word >> 10 & 31}")
            yield Instruction(at, Role.LOAD, writes, spill=quad_load and rn == _SP)
        elif _single(word):
            yield Instruction(at, Role.LOAD, (f"v{rd}",), spill=quad_load and rn == _SP)
        elif n := _structure(word):
            yield Instruction(at, Role.LOAD, tuple(f"v{(rd + i) % 32}" for i in range(n)))
        elif _fma(word):
            yield Instruction(at, Role.FMA, (f"v{rd}",), (f"v{rn}", f"v{rm}", f"v{rd}"))
        else:
            target = _jump(at, word)
            yield Instruction(
                at,
                target=relocated.get(at, target) if target is not None else None,
                spill=quad_store and rn == _SP,
            )
