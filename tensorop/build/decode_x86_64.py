"""x86-64 with AVX: loads, multiply-adds and jumps out of objdump's listing."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from tensorop.build.instruction import Instruction, Role
from tensorop.runners import process

_LINE = re.compile(r"^\s*([0-9a-f]+):\t(\S+)\s*(.*)$")
_LOADS = ("vmovup", "vmovap", "vmovdq", "vbroadcast", "vmovs", "movup", "movap", "vmovddup")
_REGISTER = re.compile(r"\b[xyz]mm(\d+)\b")
_SPILL = re.compile(r"\[r[sb]p[+\]-]")


def available() -> bool:
    """Whether there is a disassembler; without binutils nothing is known of an object for x86-64."""
    return shutil.which("objdump") is not None


def decode_file(path: Path) -> Iterator[tuple[str, list[Instruction]]]:
    """Each section with code and its instructions; nothing when objdump is absent or fails."""
    listed = process.run(
        [shutil.which("objdump") or "objdump", "-d", "--no-show-raw-insn", "-M", "intel", str(path)],
        timeout_s=60,
        environment={},
        stdout_cap=64 << 20,
    )
    name = ""
    section: list[Instruction] = []
    for line in listed.stdout.decode(errors="replace").splitlines():
        if line.startswith("Disassembly of section"):
            yield name, section
            name, section = line.removeprefix("Disassembly of section ").rstrip(":"), []
        elif match := _LINE.match(line):
            section.append(_one(int(match[1], 16), match[2], match[3].partition("#")[0]))
    yield name, section


def _one(at: int, mnemonic: str, operands: str) -> Instruction:
    if mnemonic.startswith("j"):
        first = operands.split(" ")[0]
        return Instruction(at, target=int(first, 16) if re.fullmatch(r"[0-9a-f]+", first) else None)
    registers = tuple(f"v{number}" for number in _REGISTER.findall(operands))
    memory = "[" in operands
    stack = memory and _SPILL.search(operands) is not None
    if mnemonic.startswith(("vfmadd", "vfnmadd", "vfmsub", "vfnmsub")):
        return Instruction(at, Role.FMA, registers[:1], registers, spill=stack)
    if mnemonic.startswith(_LOADS) and memory:
        if operands.split(",")[0].strip().startswith(("xmm", "ymm", "zmm")):
            return Instruction(at, Role.LOAD, registers[:1], spill=stack)
        return Instruction(at, Role.OTHER, (), registers, spill=stack and bool(registers))
    return Instruction(at, Role.OTHER, registers[:1], registers[1:])
