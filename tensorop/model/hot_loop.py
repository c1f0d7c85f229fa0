"""The loop that takes most of a call's time, with what each of its instructions waits for or keeps busy."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_STACK = re.compile(r"[\[(]%?[re]?sp\b")  # `[sp, #16]`, `8(sp)`, `16(%rsp)`


@dataclass(frozen=True)
class HotInstruction:
    """An instruction of the loop, as llvm-objdump writes it."""

    text: str
    # Under a board model: cycles that issue waits for it in one run, by cause.
    stalls: Mapping[str, float] = field(default_factory=dict)
    # On a clock, if the loop was analysed: cycles for which it keeps each port busy.
    ports: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class LoopAnalysis:
    """A simulation of a loop whose data are in L1, in cycles."""

    by: str  # whose model of which core
    cycles: float  # of one of many iterations
    once: float  # of one iteration alone: its longest chain of dependent instructions
    ports: Mapping[str, float]  # port -> cycles of one iteration for which it is busy
    waits: Mapping[str, float]  # cause -> per cent of all cycles in which it delays an instruction

    @property
    def busiest(self) -> float:
        """Cycles of one iteration for which the busiest port is busy."""
        return max(self.ports.values(), default=0.0)


@dataclass(frozen=True)
class HotLoop:
    """Instructions that follow each other: under a board model counted, on a clock the innermost loop of the code."""

    instructions: Sequence[HotInstruction]
    runs: int = 0  # 0: not counted
    part: float = 0.0  # of all stall cycles of the call
    analysis: LoopAnalysis | None = None
    unanalysed: str = ""  # on a clock, why there is no analysis

    @property
    def mix(self) -> Mapping[str, int]:
        """Mnemonic -> its number, the largest first."""
        return dict(Counter(one.text.split()[0] for one in self.instructions).most_common())

    @property
    def on_stack(self) -> int:
        """Instructions that address the stack."""
        return sum(_STACK.search(one.text) is not None for one in self.instructions)
