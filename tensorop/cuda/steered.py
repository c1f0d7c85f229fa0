"""What the next question for a family asks for: a policy's choice, from what blocks of executed families do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from tensorop.author import state
from tensorop.author.llm.accounting import stage_of
from tensorop.author.llm.rounds import Round
from tensorop.cuda import standing
from tensorop.cuda.choose import Layout, Shape
from tensorop.cuda.counted import CountedFamilies
from tensorop.cuda.standing import ExecutedConfiguration
from tensorop.model.device import DeviceInterface
from tensorop.model.kernel import KernelTemplate
from tensorop.model.steering import LADDER, Parent, PastQuestion, cost_reward

_MOST_REGISTERS = 255  # of a thread (CUDA C++ Programming Guide, compute capabilities)


@dataclass(frozen=True)
class ExecutedFamily:
    """A family with the geometric mean of its predicted cycles, and what its cheapest configuration does."""

    template: KernelTemplate
    cost: float
    cheapest: ExecutedConfiguration

    @property
    def parent(self) -> Parent:
        known = features(self.cheapest)
        legal = state.legal(self.template, known, device=True)
        return Parent(self.template.digest, self.template.name, self.cost, known, tuple(legal))


def families(
    call: DeviceInterface,
    found: CountedFamilies,
    given: Mapping[str, int],
    shapes: Sequence[Shape],
    registers: Mapping[str, int],
) -> list[ExecutedFamily]:
    """The executed families, the cheapest first."""
    key, largest, every = call.keys[0], max(shapes, key=prod), []
    for one in found.templates:
        if found.of(one, key):
            layout = Layout.of(call, (one,), given, key, found.of)
            cost = float(np.exp(np.mean([np.log(layout.costs(*shape).min()) for shape in shapes])))
            place = int(np.argmin(layout.costs(*largest)))
            every.append(
                ExecutedFamily(one, cost, standing.configuration(layout.parts[0].family, place, largest, registers))
            )
    return sorted(every, key=lambda one: one.cost)


def features(of: ExecutedConfiguration) -> dict[str, float]:
    """Shares of the four terms of a block's cost, conflicts of loads from shared memory, and room."""
    terms = {"products": of.products, "shared": of.shared, "copies": of.copies, "latency": of.latency}
    found = {f"stall.{name}": amount / max(sum(terms.values()), 1) for name, amount in terms.items()}
    found |= {"conflicts": of.conflicts / max(of.shared, 1), "occupancy": of.occupancy / 100, "waves": float(of.waves)}
    return found | ({"registers": of.registers / _MOST_REGISTERS} if of.registers else {})


def history(answered: Sequence[Round], known: Sequence[ExecutedFamily]) -> list[PastQuestion]:
    """What became of the questions; of a question and its repair the last answer counts."""
    by_name = {one.template.name: one for one in known}
    by_digest = {one.template.digest: one for one in known}
    found = []
    for one in {answer.number: answer for answer in answered}.values():
        if not one.outcome.ok:
            stage = stage_of(one.outcome.where) if one.template else "template"
            found.append(PastQuestion(one.choice, one.outcome.kind, reward=LADDER[stage]))
            continue
        child = by_name.get(one.template.name) if one.template else None
        before = by_digest.get(one.choice.parent)
        if child is None or before is None:
            digest = child.template.digest if child else ""
            found.append(PastQuestion(one.choice, one.outcome.kind, digest))
            continue
        reward = cost_reward(before.cost, child.cost, None)
        gain = before.cost / child.cost
        found.append(PastQuestion(one.choice, one.outcome.kind, child.template.digest, gain, reward))
    return found
