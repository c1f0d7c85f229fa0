"""The measured state of a kernel: numbers for policies, and the actions that it leaves."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tensorop.author import regions
from tensorop.author.plans import Counted
from tensorop.model.hot_loop import HotLoop
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Value
from tensorop.model.steering import ALL, BODY, HEAD, OF_DEVICES, OF_PROCESSORS, PLACES

_IN_PARTS = ("load_low(", "load_half(", "with_high(")  # primitives that load a vector in parts
_DEPENDENT = ("compute", "load_l1", "write_after_read")  # causes of stalls that another order of instructions avoids
_OF_CORE = ("in_order", "issue_width", "l1_prefetch", "fma_lane", "broadcast", "streams", "settings")


@dataclass(frozen=True)
class Measured:
    """What was measured of one kernel. counters, loop, planned: as in Standing"""

    cost: float
    bound: float | None
    counters: Mapping[str, float]
    loop: HotLoop | None = None
    planned: Counted | None = None

    def shared(self, group: str) -> dict[str, float]:
        return {name.partition(".")[2]: n for name, n in self.counters.items() if name.startswith(f"{group}.")}

    @property
    def in_parts(self) -> bool:
        """Whether the compiled code loads vectors in parts: its second halves go through integer registers."""
        counts = self.shared("instructions")
        return 0 < 0.9 * counts.get("vector_load", 0.0) <= counts.get("int_load", 0.0)


def features(of: Measured, known: Mapping[str, Value]) -> dict[str, float]:
    """The state of a kernel as numbers. What was not measured is absent. known: of the core, as in a brief"""
    counts, waits, misses = (of.shared(group) for group in ("instructions", "stalls", "misses"))
    found = {name: float(known[name]) for name in _OF_CORE if isinstance(known.get(name), int | float)}
    if of.bound:
        found["over_bound"] = math.log(max(of.cost / of.bound, 1.0))
    sums, every = counts.get("vector_fma", 0.0) + counts.get("fp_fma", 0.0), sum(counts.values())
    if sums:
        loads = sum(counts.get(name, 0.0) for name in ("vector_load", "fp_load", "int_load"))
        cycles = every / max(found.get("issue_width", 1.0), 1.0) + sum(waits.values())
        found |= {"loads": loads / sums, "integer": counts.get("alu", 0.0) / every}
        found |= {name: counts.get(name, 0.0) / sums for name in ("prefetch", "branch", "vector_other")}
        found |= {f"stall.{cause}": amount / cycles for cause, amount in waits.items()}
        found["dependent"] = sum(waits.get(cause, 0.0) for cause in _DEPENDENT) / cycles
        found |= {f"misses.{level}": 1000 * number / sums for level, number in misses.items()}
        found["misses"] = 1000 * sum(misses.values()) / sums
    if (plan := of.planned) is not None:
        found |= {"registers": plan.registers / int(known["registers"])} if "registers" in known else {}
        found |= {"planned": math.log(plan.cycles / plan.alone)} if plan.cycles and plan.alone else {}
    if of.loop:
        found["spills"] = float(of.loop.on_stack)
        if analysis := of.loop.analysis:
            found["dependent"] = analysis.waits.get("register dependencies", 0.0) / 100
            found["busiest"] = analysis.busiest / max(analysis.cycles, 1.0)
    return found


def legal(
    template: KernelTemplate, known: Mapping[str, float], *, device: bool = False, in_parts: bool = False
) -> list[tuple[str, str]]:
    """Actions with their regions, without those that the measured state excludes; all if it excludes all.

    in_parts: as of Measured; then `pair` is excluded in the regions whose text has such loads
    """
    elsewhere = OF_PROCESSORS if device else OF_DEVICES
    named = regions.names(template)
    paired = {name for name, text in regions.parts(template) if in_parts and any(one in text for one in _IN_PARTS)}
    every = [
        (action, region)
        for action, places in PLACES.items()
        if action not in elsewhere
        for region in dict.fromkeys(place if template.regions or place in (HEAD, ALL) else BODY for place in places)
        if region in (HEAD, ALL, *named)
    ]
    left = [pair for pair in every if not (pair[0] == "pair" and pair[1] in paired)]
    return [pair for pair in left if not excluded(pair[0], known)] or every


def excluded(action: str, known: Mapping[str, float]) -> str:
    """Why an action cannot pay in this state; empty if it may. What was not measured excludes nothing."""
    renamed = known.get("in_order", 1.0) == 0 and known.get("dependent", 1.0) < 0.02
    wrong = {
        "prefetch": (known.get("misses", 1.0) < 0.5, "nothing misses"),
        "tile": (known.get("registers", 0.0) >= 0.95 and known.get("spills", 1.0) == 0, "no register is free"),
        "pipeline": (renamed, "the core renames registers, and nothing waits for an operand"),
        "reorder": (renamed, "the core renames registers, and nothing waits for an operand"),
        "swizzle": (known.get("conflicts", 1.0) == 0, "no load of shared memory conflicts"),
        "stage": (known.get("stall.latency", 1.0) < 0.1, "the stages hide the latency of copies"),
        "pair": (known.get("issue_width", 2.0) <= 1, "the core issues one instruction a cycle"),
        "address": (known.get("integer", 1.0) < 0.1, "less than a tenth of the instructions are integer ones"),
    }
    is_so, why = wrong.get(action, (False, ""))
    return why if is_so else ""
