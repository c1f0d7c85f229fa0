"""Instruction words that a kernel has no business with, found without a disassembler."""

from __future__ import annotations

import re
from collections.abc import Iterator

Finding = tuple[int, str]  # byte offset, what it is

_X86 = re.compile(rb"\x0f\x05|\x0f\x34|\xcd\x80")


def riscv_words(code: bytes) -> Iterator[tuple[int, int]]:
    """(offset, word) of each instruction: 2 bytes long when its two low bits are not 11, else 4.

    Source: RISC-V unprivileged ISA, section 1.5 (longer encodings are not used by any ratified extension).
    """
    at = 0
    while at + 2 <= len(code):
        half = int.from_bytes(code[at : at + 2], "little")
        if half & 3 != 3:
            yield at, half
            at += 2
        else:
            yield at, int.from_bytes(code[at : at + 4], "little")
            at += 4


def aarch64_words(code: bytes) -> Iterator[tuple[int, int]]:
    """(offset, word) of each instruction."""
    for at in range(0, len(code) - 3, 4):
        yield at, int.from_bytes(code[at : at + 4], "little")


def riscv_forbidden(code: bytes) -> Finding | None:
    """ecall, or a HINT with which the measured region is marked (slti with rd = x0, see native/region.h)."""
    for at, word in riscv_words(code):
        if word == 0x00000073:
            return at, "a system call (ecall)"
        if word & 0x7FFF == 0x2013:
            return at, "a mark of the measured region (slti x0)"
    return None


def aarch64_forbidden(code: bytes) -> Finding | None:
    """svc, hvc, smc, or a HINT with which the measured region is marked (hint #96 and above, see native/region.h)."""
    for at, word in aarch64_words(code):
        if word & 0xFFE0001C == 0xD4000000 and word & 3:
            return at, "a system call (svc, hvc or smc)"
        if word & 0xFFFFF01F == 0xD503201F and (word >> 5) & 0x7F >= 96:
            return at, "a mark of the measured region (hint)"
    return None


def x86_suspects(code: bytes) -> Finding | None:
    """The bytes of syscall, sysenter or int 0x80, wherever they lie."""
    found = _X86.search(code)
    return None if found is None else (found.start(), "a system call (syscall, sysenter or int 0x80)")
