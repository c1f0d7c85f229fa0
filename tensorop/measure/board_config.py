"""The board model's configuration: a core's constants as the plug-in reads them, one number a scenario.

Lines `key numbers...`; native/plugin/config.c reads them and knows no core's number of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from operator import attrgetter

from tensorop.errors import JobError
from tensorop.specs.board import CLASSES, CONTIGUOUS, EEWS, LMULS, BoardModel, Constant, Cycles, Prefetcher
from tensorop.specs.board_alternative import SWITCHES


def text(
    model: BoardModel,
    vlen: int,
    scenarios: Sequence[Mapping[str, float]] = ({},),
    *,
    cold: bool = False,
    profile: bool = False,
) -> str:
    """The plug-in's configuration: lines `key numbers...`, with one number for each scenario where they may differ.

    cold: regions begin with empty caches; profile: stalls are reported by instruction too
    """
    values = _Values(model, tuple(scenarios))
    memory, units = model.memory, list(model.units)
    dram_writes = "memory.dram_write_interval" if memory.dram_write_interval else "memory.dram_interval"
    lines = [
        f"scenarios {len(values.scenarios)}",
        f"pipeline {model.pipeline}",
        f"vlen {vlen}",
        f"dlen {model.dlen(vlen)}",
        f"vl_dependent {int(model.vector.vl_dependent)}",
        f"cold {int(cold)}",
        *(["profile 1"] if profile else []),
        f"units {len(units)}",
        *values.line("mispredict", "core.mispredict"),
        *values.line("taken", "core.taken_branch"),
        *values.line("write_after_read", "core.write_after_read"),
        *values.line("chained", "core.chained", lambda x: float(x >= 0.5)),
        *values.line("shared_bias", "core.shared_ports", lambda x: 0.0 if x >= 0.5 else -1e30),
        *_stops(values, model),
        f"late_store_data {int(model.core.late_store_data is not None and model.core.late_store_data.value >= 0.5)}",
        *values.line("fma_blocks_load", "core.fma_blocks_load"),
        *(f"whole {units.index(name)}" for name in model.whole),
        f"vector_queue {model.core.vector_queue}",
        f"window {model.core.window}",
        f"line_shift {memory.l1.line.bit_length() - 1}",
        f"icache {memory.l1i.sets} {memory.l1i.ways}",
        f"boundary {model.core.boundary}",
        *values.line("split", "core.split"),
        f"cache 1 {memory.l1.sets} {memory.l1.ways}",
        f"cache 2 {memory.l2.sets} {model.l2_ways()}",
        *values.line(f"tlb 1 {memory.tlb.sets} {memory.tlb.ways}", "memory.tlb.miss"),
        *values.line(f"tlb 2 {memory.tlb2.sets} {memory.tlb2.ways}", "memory.tlb2.miss"),
        *values.line("latency 1", "memory.l2_latency"),
        *values.line("latency 2", "memory.dram_latency"),
        *values.line("interval 1", "memory.l2_interval"),
        *values.line("interval 2", "memory.dram_interval"),
        *values.line("write_interval 1", "memory.l2_write_interval"),
        *values.line("write_interval 2", dram_writes),
        *values.line("misses", "memory.misses", round),
        *values.line("store_buffer", "memory.store_buffer", round),
        *values.line("drain", "memory.drain"),
        f"write_streaming {memory.write_streaming}",
    ]
    for name in CLASSES:
        lines += _cost_lines(model, values, name, vlen, units)
    lines += _variant_lines(model, values)
    return "\n".join(lines) + "\n"


class _Values:
    """The model's constants in each scenario."""

    def __init__(self, model: BoardModel, scenarios: tuple[Mapping[str, float], ...]) -> None:
        self.model, self.scenarios = model, scenarios or ({},)
        known = {*model.assumed(), *SWITCHES}
        for key in (key for scenario in self.scenarios for key in scenario):
            if key not in known:
                raise JobError(f"board model {model.name} has no assumed constant '{key}'")

    def of(self, constant: Constant, key: str) -> list[float]:
        return [scenario.get(key, constant.value) for scenario in self.scenarios]

    def line(self, head: str, key: str, change: Callable[[float], float] = float) -> list[str]:
        """The line of the constant at a dotted key of the model; none if the model lacks it."""
        constant: Constant | None = attrgetter(key)(self.model)
        return [] if constant is None else [f"{head} {_numbers([change(x) for x in self.of(constant, key)])}"]


def _stops(values: _Values, model: BoardModel) -> list[str]:
    """The lines about loads that stop issue; none if they do so in no scenario, to save time."""
    key, own = "core.load_miss_stops", model.core.load_miss_stops
    stops = [scenario.get(key, own.value if own else 0.0) >= 0.5 for scenario in values.scenarios]
    return [f"load_miss_stops {_numbers([0.0 if x else -1e30 for x in stops])}"] if any(stops) else []


def _numbers(values: Sequence[float]) -> str:
    texts = {x: f"{x:.9g}" for x in set(values)}  # most scenarios have equal numbers
    return " ".join(texts[x] for x in values)


def _cost_lines(model: BoardModel, values: _Values, name: str, vlen: int, units: list[str]) -> list[str]:
    """Costs of an instruction class. Assumed ranges are shared by classes that refer to another with `like`."""
    cost = model.cost(name)
    own = model.costs[name]

    def key(part: str) -> str:
        mine = own.like is None or part.partition(".")[0] in own.model_fields_set
        return f"costs.{name if mine else own.like}.{part}"

    assert cost.cycles is not None
    assert cost.latency is not None
    lines = []
    count = 1
    if cost.unit is not None:
        lines.append(f"unit {name} {units.index(cost.unit)}")
        count = model.units[cost.unit]
        if model.shared and cost.unit in model.shared:
            other = model.shared[1 - model.shared.index(cost.unit)]
            lines.append(f"shared {name} {units.index(other)}")

    def factors(part: str) -> list[float]:
        return [s.get(key(part), 1.0) for s in values.scenarios]

    def taken(cycles: Cycles, lmul: int, eew: int, factor: float) -> float:
        at = cycles.at(lmul, eew, factor)
        return cost.per_vlen.at(at, vlen) if cost.per_vlen else at * vlen / model.dlen(vlen)

    def busy(what: str, part: str, cycles: Cycles | Constant, count: int) -> Iterator[str]:
        if isinstance(cycles, Cycles):
            by_scenario = factors(part)
            for lmul in range(len(LMULS)):
                for eew in range(len(EEWS)):
                    by_factor = {f: taken(cycles, lmul, eew, f) / count for f in set(by_scenario)}
                    yield f"price {name} {lmul} {eew} {what} {_numbers([by_factor[f] for f in by_scenario])}"
            return
        yield f"price {name} * * {what} {_numbers([x / count for x in values.of(cycles, key(part))])}"
        for width, value in cycles.eew.items():
            yield f"price {name} * {EEWS.index(width)} {what} {_numbers([value / count] * len(values.scenarios))}"

    lines += busy("occupancy", "cycles", cost.cycles, count)
    if name in CONTIGUOUS:
        part = "misaligned" if cost.misaligned else "cycles"
        lines += busy("misaligned", part, cost.misaligned or cost.cycles, count)
    if cost.also is not None:
        lines.append(f"also {name} {units.index(cost.also.unit)}")
        lines += busy("also", "also.cycles", cost.also.cycles, model.units[cost.also.unit])
    issue = values.of(model.core.issue_width, "core.issue_width")
    for lmul in range(len(LMULS)):
        slots = [1.0] * len(issue)
        if isinstance(cost.slots, Cycles):
            slots = [cost.slots.at(lmul, 2, f) for f in factors("slots")]
        elif cost.slots is not None:
            slots = values.of(cost.slots, key("slots"))
        lines.append(f"price {name} {lmul} * slot {_numbers([n / w for n, w in zip(slots, issue, strict=True)])}")
    latency = values.of(cost.latency, key("latency"))
    forward = values.of(cost.forward, key("forward")) if cost.forward else latency
    lines.append(f"price {name} * * latency {_numbers(latency)}")
    lines.append(f"price {name} * * forward {_numbers(forward)}")
    for width, value in cost.latency.eew.items():
        lines.append(f"price {name} * {EEWS.index(width)} latency {_numbers([value] * len(values.scenarios))}")
        if cost.forward is None:
            lines.append(f"price {name} * {EEWS.index(width)} forward {_numbers([value] * len(values.scenarios))}")
    return lines


def _variant_lines(model: BoardModel, values: _Values) -> list[str]:
    """Numbers the distinct sets of prefetchers; scenarios with equal ones share a cache simulation."""
    memory = model.memory
    found = {"l1_prefetch": memory.l1_prefetch, "l2_prefetch": memory.l2_prefetch}
    behaviours = [tuple(_behaviour(s, name, p) for name, p in found.items()) for s in values.scenarios]
    lines = []
    for variant, both in enumerate(dict.fromkeys(behaviours)):
        lines.append(f"variant {variant} {_numbers([float(b == both) for b in behaviours])}")
        for level, words in enumerate(both, start=1):
            if words:
                lines.append(f"prefetch {variant} {level} {words}")
    return lines


def _behaviour(scenario: Mapping[str, float], name: str, prefetcher: Prefetcher | None) -> str:
    """A prefetcher's line in the configuration; empty if the scenario has none."""
    if prefetcher is None or scenario.get(f"memory.{name}.present", prefetcher.present.value) < 0.5:
        return ""
    scalar = int(scenario.get(f"memory.{name}.scalar_only", prefetcher.scalar_only) >= 0.5)
    return f"{prefetcher.streams} {prefetcher.distance} {prefetcher.train} {scalar}"
