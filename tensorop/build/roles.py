"""What an instruction does, as far as the look at a loop needs it: loads, multiply-adds, jumps, spills."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from tensorop.build.disassembly import Line


class Role(StrEnum):
    LOAD = "load"  # a vector, or a scalar that is broadcast into a multiply-add
    FMA = "fma"  # vector multiply-add
    OTHER = "other"


@dataclass(frozen=True)
class Instruction:
    """at, target: as of `Line`; writes, reads: register names, v... for vectors and f... for scalars.

    spill: moves a vector between a register and the stack.
    """

    at: int
    role: Role = Role.OTHER
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    target: int | None = None
    spill: bool = False


def instruction(arch: str, line: Line) -> Instruction:
    """A line of the disassembly, of one of its three architectures."""
    return _READERS[arch](line)


_RISCV_FMA = re.compile(r"vfn?m(?:add|sub|acc|sac)\.v[vf]")
_RISCV_STORE = re.compile(r"vs(?:e|se|ux|ox|m|seg|\dr)[\w.]*")
_RISCV_WHOLE = re.compile(r"v[ls]\dr\w*\.v")


def _riscv64(line: Line) -> Instruction:
    """RISC-V with V 1.0, sections 7 and 13 of its specification."""
    name, operands = line.mnemonic, [part.strip() for part in line.operands.split(",")]
    if name in ("flw", "fld"):
        return Instruction(line.at, Role.LOAD, (operands[0],))
    spill = _RISCV_WHOLE.fullmatch(name) is not None and line.operands.endswith("(sp)")
    if name.startswith("vl"):
        return Instruction(line.at, Role.LOAD, (operands[0],), spill=spill)
    if _RISCV_STORE.fullmatch(name) and not name.startswith("vset"):
        return Instruction(line.at, Role.OTHER, (), (operands[0],), spill=spill)
    if _RISCV_FMA.fullmatch(name):
        return Instruction(line.at, Role.FMA, (operands[0],), (operands[1], operands[2], operands[0]))
    return Instruction(line.at, target=None if name == "jal" and operands[0] != "zero" else line.target)


_ARM_REGISTER = re.compile(r"\b[vqds](\d+)\b")


def _aarch64(line: Line) -> Instruction:
    """AArch64 with Advanced SIMD."""
    name, operands = line.mnemonic, line.operands
    registers = tuple(f"v{number}" for number in _ARM_REGISTER.findall(operands.split("[")[0]))
    stack = operands.partition("[")[2].startswith("sp") and operands.startswith("q")
    if name in ("ldr", "ldur", "ldp", "ldnp") and registers:
        return Instruction(line.at, Role.LOAD, registers, spill=stack)
    if name in ("ld1", "ld1r") and "}[" not in operands:
        return Instruction(line.at, Role.LOAD, registers)
    if name in ("fmla", "fmls"):
        every = tuple(f"v{number}" for number in _ARM_REGISTER.findall(operands))
        return Instruction(line.at, Role.FMA, every[:1], (*every[1:3], every[0]))
    spill = name in ("str", "stur", "stp") and stack
    return Instruction(line.at, target=line.target if name != "bl" else None, spill=spill)


_X86_LOADS = ("vmovup", "vmovap", "vmovdq", "vbroadcast", "vmovs", "movup", "movap", "vmovddup")
_X86_REGISTER = re.compile(r"\b[xyz]mm(\d+)\b")
_X86_STACK = re.compile(r"\[r[sb]p\b")


def _x86_64(line: Line) -> Instruction:
    """x86-64 with AVX, in Intel's syntax."""
    name, operands = line.mnemonic, line.operands
    if name.startswith("j"):
        return Instruction(line.at, target=line.target)
    registers = tuple(f"v{number}" for number in _X86_REGISTER.findall(operands))
    memory = "[" in operands
    stack = memory and _X86_STACK.search(operands) is not None
    if name.startswith(("vfmadd", "vfnmadd", "vfmsub", "vfnmsub")):
        return Instruction(line.at, Role.FMA, registers[:1], registers, spill=stack)
    if name.startswith(_X86_LOADS) and memory:
        if operands.split(",")[0].strip().startswith(("xmm", "ymm", "zmm")):
            return Instruction(line.at, Role.LOAD, registers[:1], spill=stack)
        return Instruction(line.at, Role.OTHER, (), registers, spill=stack and bool(registers))
    return Instruction(line.at, Role.OTHER, registers[:1], registers[1:])


_READERS: dict[str, Callable[[Line], Instruction]] = {"riscv64": _riscv64, "aarch64": _aarch64, "x86_64": _x86_64}
