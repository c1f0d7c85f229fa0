"""What the compiler made of a kernel's inner loop: how far its loads are ahead of their uses, and what it spilled.

    python benchmarks/loops.py DIR        # the kernels of a finished product

A source that loads ahead says nothing: schedulers gather the loads in front of the multiply-adds again. So the distance
is read from the object. A kernel is compiled for several ways to read its operands and, for edges, several tiles; of
each way the loop with the most multiply-adds is printed, which is the whole tile's.
"""

from __future__ import annotations

import bisect
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from elftools.elf.elffile import ELFFile

from tensorop.specs import files
from tensorop.toolchain import disassembly
from tensorop.toolchain.disassembly import Instruction
from tensorop.toolchain.finished import archive_members


@dataclass(frozen=True)
class Loop:
    """An innermost loop with multiply-adds.

    function: the one it is in, "" in a stripped file; at: byte offset in its section, an address in a linked file
    instructions, fmas, loads: in one iteration
    distances: for each vector load with a use in a multiply-add, the multiply-adds issued between it and its first use,
    across the loop's end where the use is in the next iteration
    scalar_distances: the same for loads into scalar registers, where the architecture has them apart (RISC-V)
    spills: moves of vectors to and from the stack
    """

    function: str
    at: int
    instructions: int
    fmas: int
    loads: int
    distances: tuple[int, ...]
    scalar_distances: tuple[int, ...]
    spills: int

    @property
    def least(self) -> int | None:
        """The shortest distance, in multiply-adds; None when no loaded vector is multiplied."""
        return min(self.distances, default=None)


def inner_loops(path: Path) -> tuple[Loop, ...]:
    """Every innermost loop of an object or library that has multiply-adds, in order.

    Empty for what is neither x86-64, AArch64 nor RISC-V. Raises ELFError, OSError for what is no ELF file, MissingTool
    without a disassembler.
    """
    with files.opened(path, files.LIBRARY) as stream:
        elf = ELFFile(stream)
        arch = disassembly.architecture(elf)
        functions = _functions(elf)
    if arch is None:
        return ()
    found = []
    for name, lines in disassembly.disassembled(path):
        code = [_READERS[arch.name](line) for line in lines]
        found += list(_loops(code, functions.get(name, ([], []))))
    return tuple(found)


def _functions(elf: ELFFile) -> dict[str, tuple[list[int], list[str]]]:
    """Section -> where its functions begin, ascending, and their names."""
    found: dict[str, list[tuple[int, str]]] = {}
    for symbol in disassembly.symbols(elf):
        if symbol["st_info"]["type"] == "STT_FUNC" and isinstance(symbol["st_shndx"], int):
            name = elf.get_section(symbol["st_shndx"]).name
            found.setdefault(name, []).append((symbol["st_value"], symbol.name))
    return {name: ([at for at, _ in sorted(rows)], [word for _, word in sorted(rows)]) for name, rows in found.items()}


def _loops(code: Sequence[LoopStep], functions: tuple[list[int], list[str]]) -> Iterator[Loop]:
    """Innermost loops: from the target of a jump back to the jump, with no other such pair inside."""
    index = {instruction.at: i for i, instruction in enumerate(code)}
    pairs = sorted(
        {
            (index[instruction.target], i)
            for i, instruction in enumerate(code)
            if instruction.target is not None and instruction.target <= instruction.at and instruction.target in index
        },
        key=lambda pair: pair[1] - pair[0],
    )
    inner: list[tuple[int, int]] = []
    for start, end in pairs:
        if not any(start <= s and e <= end for s, e in inner):
            inner.append((start, end))
            place = bisect.bisect_right(functions[0], code[start].at) - 1
            loop = _measure(code[start : end + 1], functions[1][place] if place >= 0 else "")
            if loop.fmas:
                yield loop


def _measure(body: Sequence[LoopStep], function: str) -> Loop:
    loads = [i for i, instruction in enumerate(body) if instruction.role is Role.LOAD]
    uses = [(r, d) for i in loads for r in body[i].writes if (d := _distance(body, i, r)) is not None]
    return Loop(
        function=function,
        at=body[0].at,
        instructions=len(body),
        fmas=sum(i.role is Role.FMA for i in body),
        loads=len(loads),
        distances=tuple(d for register, d in uses if register.startswith("v")),
        scalar_distances=tuple(d for register, d in uses if register.startswith("f")),
        spills=sum(i.spill for i in body),
    )


def _distance(body: Sequence[LoopStep], load: int, register: str) -> int | None:
    """Multiply-adds between a load and the first that reads its register; None when it is overwritten unread."""
    between = 0
    for step in range(1, len(body) + 1):
        instruction = body[(load + step) % len(body)]
        if instruction.role is Role.FMA:
            if register in instruction.reads:
                return between
            between += 1
        elif register in instruction.reads or register in instruction.writes:
            return None
    return None


class Role(StrEnum):
    LOAD = "load"  # a vector, or a scalar that is broadcast into a multiply-add
    FMA = "fma"  # vector multiply-add
    OTHER = "other"


@dataclass(frozen=True)
class LoopStep:
    """What an instruction does, as far as the look at a loop needs it. at, target: as of `Instruction`; writes, reads:
    register names, v... for vectors and f... for scalars; spill: moves a vector between a register and the stack."""

    at: int
    role: Role = Role.OTHER
    writes: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    target: int | None = None
    spill: bool = False


_RISCV_FMA = re.compile(r"vfn?m(?:add|sub|acc|sac)\.v[vf]")
_RISCV_STORE = re.compile(r"vs(?:e|se|ux|ox|m|seg|\dr)[\w.]*")
_RISCV_WHOLE = re.compile(r"v[ls]\dr\w*\.v")


def _riscv64(line: Instruction) -> LoopStep:
    """RISC-V with V 1.0, sections 7 and 13 of its specification."""
    name, operands = line.mnemonic, [part.strip() for part in line.operands.split(",")]
    if name in ("flw", "fld"):
        return LoopStep(line.at, Role.LOAD, (operands[0],))
    spill = _RISCV_WHOLE.fullmatch(name) is not None and line.operands.endswith("(sp)")
    if name.startswith("vl"):
        return LoopStep(line.at, Role.LOAD, (operands[0],), spill=spill)
    if _RISCV_STORE.fullmatch(name) and not name.startswith("vset"):
        return LoopStep(line.at, Role.OTHER, (), (operands[0],), spill=spill)
    if _RISCV_FMA.fullmatch(name):
        return LoopStep(line.at, Role.FMA, (operands[0],), (operands[1], operands[2], operands[0]))
    return LoopStep(line.at, target=None if name == "jal" and operands[0] != "zero" else line.target)


_ARM_REGISTER = re.compile(r"\b[vqds](\d+)\b")


def _aarch64(line: Instruction) -> LoopStep:
    """AArch64 with Advanced SIMD."""
    name, operands = line.mnemonic, line.operands
    registers = tuple(f"v{number}" for number in _ARM_REGISTER.findall(operands.split("[")[0]))
    stack = operands.partition("[")[2].startswith("sp") and operands.startswith("q")
    if name in ("ldr", "ldur", "ldp", "ldnp") and registers:
        return LoopStep(line.at, Role.LOAD, registers, spill=stack)
    if name in ("ld1", "ld1r") and "}[" not in operands:
        return LoopStep(line.at, Role.LOAD, registers)
    if name in ("fmla", "fmls"):
        every = tuple(f"v{number}" for number in _ARM_REGISTER.findall(operands))
        return LoopStep(line.at, Role.FMA, every[:1], (*every[1:3], every[0]))
    spill = name in ("str", "stur", "stp") and stack
    return LoopStep(line.at, target=line.target if name != "bl" else None, spill=spill)


_X86_LOADS = ("vmovup", "vmovap", "vmovdq", "vbroadcast", "vmovs", "movup", "movap", "vmovddup")
_X86_REGISTER = re.compile(r"\b[xyz]mm(\d+)\b")
_X86_STACK = re.compile(r"\[r[sb]p\b")


def _x86_64(line: Instruction) -> LoopStep:
    """x86-64 with AVX, in Intel's syntax."""
    name, operands = line.mnemonic, line.operands
    if name.startswith("j"):
        return LoopStep(line.at, target=line.target)
    registers = tuple(f"v{number}" for number in _X86_REGISTER.findall(operands))
    memory = "[" in operands
    stack = memory and _X86_STACK.search(operands) is not None
    if name.startswith(("vfmadd", "vfnmadd", "vfmsub", "vfnmsub")):
        return LoopStep(line.at, Role.FMA, registers[:1], registers, spill=stack)
    if name.startswith(_X86_LOADS) and memory:
        if operands.split(",")[0].strip().startswith(("xmm", "ymm", "zmm")):
            return LoopStep(line.at, Role.LOAD, registers[:1], spill=stack)
        return LoopStep(line.at, Role.OTHER, (), registers, spill=stack and bool(registers))
    return LoopStep(line.at, Role.OTHER, registers[:1], registers[1:])


_READERS: dict[str, Callable[[Instruction], LoopStep]] = {"riscv64": _riscv64, "aarch64": _aarch64, "x86_64": _x86_64}


def main() -> None:
    print("kernel, and of one iteration: instructions, multiply-adds, loads, least and mean distance, spills")
    for archive in sorted((Path(sys.argv[1]) / "lib").glob("libtensorop_*.a")):
        for name, data in archive_members(files.read(archive, files.LIBRARY)):
            for way, loop in hottest(data).items():
                distances = f"{min(loop.distances)} {sum(loop.distances) / len(loop.distances):.1f}"
                print(f"{way or name}: {loop.instructions} {loop.fmas} {loop.loads} {distances} {loop.spills}")


def hottest(data: bytes) -> dict[str, Loop]:
    """The loop with the most multiply-adds of each way, by its functions' name without the last word, the tile."""
    found: dict[str, Loop] = {}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "kernel.o"
        file.write_bytes(data)
        for loop in inner_loops(file):
            way = loop.function.rpartition("_")[0]
            if loop.distances and (way not in found or loop.fmas > found[way].fmas):
                found[way] = loop
    return found


if __name__ == "__main__":
    main()
