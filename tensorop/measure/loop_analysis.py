"""Static analysis of a loop by llvm-mca: it simulates iterations on LLVM's model of the core, with all data in L1."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from tensorop.errors import SpecError
from tensorop.model.architecture import Architecture
from tensorop.model.hot_loop import LoopAnalysis
from tensorop.provision import llvm
from tensorop.runners import process
from tensorop.specs import jsontext
from tensorop.toolchain.disassembly import Instruction

HOST = "native"  # this machine's core
_ITERATIONS = 100
_LABEL = "loop"
_TIMEOUT_S = 30.0
_MOST = 16 << 20  # bytes of output
_HOST_CPU = re.compile(r"Host CPU: (\S+)")
_NO_MODEL = re.compile(r"generic.*|x86-64.*|")
_TARGET = re.compile(r"\S+(?: <[^>]*>)?$")
_WAITS = re.compile(
    r"^ *-? *(Resource Pressure|Register Dependencies|Memory Dependencies) +\[ *([\d.]+)% \]", re.MULTILINE
)
# LLVM's models of Zen count a shuffle for a broadcast from memory, which these cores do in the load: a loop with two
# multiply-adds for each broadcast runs at 98 % of Zen 4's peak, where its model allows 67 %.
_BROADCAST = re.compile(r"v(?:p?broadcast\w+) ([xyz])(mm\d+), \w+ ptr (.*)")
_WIDTHS = {"x": "xmmword", "y": "ymmword", "z": "zmmword"}

Ports = Mapping[str, float]  # port -> cycles


class _Unable(Exception):
    """The reason why a loop is not analysed."""


def analysed(loop: Sequence[Instruction], arch: Architecture, cpu: str) -> tuple[LoopAnalysis, list[Ports]] | str:
    """The analysis, and the cycles for which each instruction keeps ports busy; else the reason why there is none.

    cpu: LLVM's name of the core, HOST, or empty if it is unknown
    """
    try:
        return _analysed(loop, arch, cpu)
    except _Unable as reason:
        return str(reason)
    except (SpecError, ValueError, LookupError, TypeError) as error:  # another version may write other JSON
        return f"the output of {llvm.MCA.name} cannot be read: {error!s:.200}"


def _analysed(loop: Sequence[Instruction], arch: Architecture, cpu: str) -> tuple[LoopAnalysis, list[Ports]]:
    if (program := llvm.MCA.found()) is None:
        raise _Unable(f"{llvm.MCA.name} {llvm.MCA.least} or newer is not installed")
    if cpu == HOST:
        host = _HOST_CPU.search(_run([str(program), "--version"]))
        cpu = host[1] if host else ""
    if _NO_MODEL.fullmatch(cpu):
        raise _Unable(f"LLVM has no model of this core{f' ({cpu})' if cpu else ''}")
    text = "\n".join([arch.syntax, f"{_LABEL}:", *(_line(one, cpu) for one in loop), ""])
    argv = [str(program), f"-mtriple={arch.name}", f"-mcpu={cpu}", f"-iterations={_ITERATIONS}"]
    region = _region(_run([*argv, "-json"], text))
    once = _region(_run([*argv[:-1], "-iterations=1", "-json"], text))
    waits = _WAITS.findall(_run([*argv, "-bottleneck-analysis"], text))
    *each, ports = _ports(region, len(loop))
    found = LoopAnalysis(
        by=f"llvm-mca's model of {cpu}",
        cycles=region["SummaryView"]["TotalCycles"] / _ITERATIONS,
        once=once["SummaryView"]["TotalCycles"],
        ports=ports,
        waits={name.lower(): float(percent) for name, percent in waits},
    )
    return found, each


def _line(one: Instruction, cpu: str) -> str:
    if one.target is not None:
        return f"{one.mnemonic} {_TARGET.sub(_LABEL, one.operands)}"
    if cpu.startswith("znver") and (load := _BROADCAST.fullmatch(str(one))):
        return f"vmovups {load[1]}{load[2]}, {_WIDTHS[load[1]]} ptr {load[3]}"
    return str(one)


def _run(argv: Sequence[str], text: str = "") -> str:
    talk = process.Talk(stdin=(text.encode(),), stdout_cap=_MOST)
    ended = process.run(argv, timeout_s=_TIMEOUT_S, talk=talk, environment={"PATH": "/usr/bin:/bin"})
    if "not a recognized processor" in ended.stderr:
        raise _Unable("LLVM does not know this core")
    if ended.status != 0 or ended.timed_out:
        first = next(iter(ended.stderr.strip().splitlines()), "it did not end")
        raise _Unable(f"{llvm.MCA.name} cannot analyse it: {first[:200]}")
    return ended.stdout.decode("utf-8", "replace")


def _region(output: str) -> dict[str, Any]:
    found = jsontext.loads(output)
    region: dict[str, Any] = found["CodeRegions"][0]
    return {**region, "Resources": found["TargetInfo"]["Resources"]}


def _ports(region: Mapping[str, Any], count: int) -> list[Ports]:
    """The busy ports of each instruction, then those of the loop. Of a port with several units it is one's mean."""
    names = [name.partition(".")[0] for name in region["Resources"]]
    busy: list[Counter[str]] = [Counter() for _ in range(count + 1)]
    for use in region["ResourcePressureView"]["ResourcePressureInfo"]:
        name = names[use["ResourceIndex"]]
        busy[use["InstructionIndex"]][name] += use["ResourceUsage"] / names.count(name)
    return [{name: round(cycles, 3) for name, cycles in one.items()} for one in busy]
