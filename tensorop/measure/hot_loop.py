"""The loop that takes most of a call's modelled cycles, with what each of its instructions waits for."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from tensorop.build import disassembly
from tensorop.measure.board import Executed
from tensorop.model.hot_loop import HotInstruction, HotLoop


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
    return HotLoop(times, waited(hottest) / (waited(known) or 1.0), tuple(each))
