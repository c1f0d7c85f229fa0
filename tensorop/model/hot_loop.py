"""The loop that takes most of a call's modelled cycles, with what each of its instructions waits for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

_STACK = re.compile(r"[\[(]%?[re]?sp\b")  # `[sp, #16]`, `8(sp)`, `16(%rsp)`


@dataclass(frozen=True)
class HotInstruction:
    """An instruction of the loop, as llvm-objdump writes it."""

    text: str
    stalls: Mapping[str, float]  # cycles that issue waits for it in one run, by cause


@dataclass(frozen=True)
class HotLoop:
    """Instructions that follow each other and ran equally often."""

    runs: int
    part: float  # of all stall cycles of the call
    instructions: Sequence[HotInstruction]

    @property
    def on_stack(self) -> int:
        """Instructions that address the stack."""
        return sum(_STACK.search(one.text) is not None for one in self.instructions)
