"""The loop that takes most of a call's time.

A board model counts how often each instruction runs. A clock counts nothing; so on platforms that a clock measures, it
is the innermost loop of the program's machine code.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tensorop.measure import loop_analysis
from tensorop.measure.board import Executed
from tensorop.model.architecture import architecture
from tensorop.model.hot_loop import HotInstruction, HotLoop
from tensorop.toolchain import disassembly
from tensorop.toolchain.disassembly import Instruction

_MULTIPLIES = re.compile(r"mul|madd|msub|ml[as]|macc|mmla|dot|dpb|dpw")
_ENDS = re.compile(r"ret\w*|jmp\w*|call\w*|b|bl|br|blr|(?:c\.)?j(?:al|r|alr)?")  # of straight code, or calls


def hot_loop(program: Path, profile: Sequence[Executed]) -> HotLoop | None:
    """The loop with most instructions and stall cycles together; None without a profile.

    program: linked to fixed addresses. Raises as `disassembly.disassembled`.
    """
    runs: Counter[int] = Counter()
    stalls: dict[int, Counter[str]] = defaultdict(Counter)
    for one in profile:  # blocks may overlap
        runs[one.address] += one.runs
        stalls[one.address].update(one.stalls)
    code = {instruction.at: instruction for _, section in disassembly.disassembled(program) for instruction in section}
    known = sorted(address for address in runs if address in code)
    loops: list[list[int]] = []
    for address in known:
        before = loops[-1][-1] if loops else -1
        if before in code and before + code[before].size == address and runs[before] == runs[address]:
            loops[-1].append(address)
        else:
            loops.append([address])
    if not loops:
        return None

    def waited(loop: Sequence[int]) -> float:
        return sum(stalls[address].total() for address in loop)

    hottest = max(loops, key=lambda loop: waited(loop) + len(loop) * runs[loop[0]])
    times = runs[hottest[0]]
    each = [
        HotInstruction(str(code[at]).strip(), {why: round(cycles / times, 2) for why, cycles in stalls[at].items()})
        for at in hottest
    ]
    return HotLoop(tuple(each), times, waited(hottest) / (waited(known) or 1.0))


def innermost(program: Path) -> tuple[Instruction, ...]:
    """The innermost loop with the most multiplications, and of several the shortest; () without one.

    A loop is code that ends with a jump to its first instruction, is entered there alone, and does not end before.
    Raises as `disassembly.disassembled`.
    """
    loops: list[tuple[Instruction, ...]] = []
    for _, code in disassembly.disassembled(program):
        place = {one.at: number for number, one in enumerate(code)}
        jumps = [(number, place[one.target]) for number, one in enumerate(code) if one.target in place]
        inner: list[tuple[int, int]] = []
        for end, begin in sorted((jump for jump in jumps if jump[1] <= jump[0]), key=lambda jump: jump[0] - jump[1]):
            if any(_ENDS.fullmatch(one.mnemonic) for one in code[begin : end + 1]):
                continue
            if any(begin < to <= end and not begin <= source <= end for source, to in jumps):
                continue
            if not any(begin <= first and last <= end for first, last in inner):
                inner.append((begin, end))
                loops.append(code[begin : end + 1])

    def multiplications(loop: Sequence[Instruction]) -> int:
        return sum(_MULTIPLIES.search(one.mnemonic) is not None for one in loop)

    best = max(loops, key=lambda loop: (multiplications(loop), -len(loop)), default=())
    return best if multiplications(best) else ()


def analysed_loop(program: Path, arch: str, cpu: str) -> HotLoop | None:
    """The innermost loop, with a static analysis or the reason why there is none; None without such a loop.

    program: a micro-kernel alone; cpu: as in `loop_analysis.analysed`. Raises as `disassembly.disassembled`.
    """
    if not (code := innermost(program)):
        return None
    plain = tuple(HotInstruction(str(one).strip()) for one in code)
    found = loop_analysis.analysed(code, architecture(arch), cpu)
    if isinstance(found, str):
        return HotLoop(plain, unanalysed=found)
    analysis, each = found
    return HotLoop(tuple(replace(one, ports=busy) for one, busy in zip(plain, each, strict=True)), analysis=analysis)
