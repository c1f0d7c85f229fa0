"""The `model:` section of a platform file: a core's pipeline, units, caches, and the costs of instruction classes.

Every number is a constant with its source. A constant without a source is `assumed: true` and has `low` and `high`;
modelled cycles are then also computed for several choices within these ranges (see board_scenarios).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log2
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from tensorop.model.platform import Cache
from tensorop.model.record import rule
from tensorop.specs import yamlfile
from tensorop.specs.board_alternative import Alternative, refused
from tensorop.specs.yamlfile import Record

# Classes of the plug-in's native/plugin/board.h, scalar and vector.
SCALAR_CLASSES = (
    "alu", "mul", "div", "branch", "load", "store", "fload", "fstore", "fadd", "fma", "fdiv", "fmove", "system",
    "fence", "atomic", "prefetch", "unknown", "vset", "vset_register",
)  # fmt: skip
VECTOR_CLASSES = (
    "vload", "vload_strided", "vload_indexed", "vload_segment", "vstore", "vstore_strided", "vstore_indexed",
    "vstore_segment", "valu", "vmul", "vmacc", "vwmacc", "vdiv", "vfadd", "vfma", "vfma_scalar", "vfwma", "vfdiv",
    "vreduce", "vreduce_ordered", "vgather", "vslide", "vsplat", "vmask", "vmove", "vunknown",
)  # fmt: skip
CLASSES = (*SCALAR_CLASSES, *VECTOR_CLASSES)
CONTIGUOUS = ("vload", "vload_segment", "vstore", "vstore_segment")  # a misaligned address takes extra cycles
LMULS = ("mf8", "mf4", "mf2", "m1", "m2", "m4", "m8")
EEWS = (8, 16, 32, 64)
_MOST_WAITING = 64  # outstanding misses; buffered stores


class _Known(Record):
    """A constant's source, and its range if it is assumed."""

    source: str = Field(min_length=1)  # source of the figure; of an assumed one, why it is assumed
    assumed: bool = False  # `true`: no source gives the figure, which lies between `low` and `high`
    low: float | None = Field(default=None, strict=False)  # least value; of a table, a factor on it
    high: float | None = Field(default=None, strict=False)  # largest value; of a table, a factor on it
    group: str | None = None  # assumed figures of one group are one unknown: all at `low`, or all at `high`
    # element width (8, 16, 32 or 64 bits) -> value for it; of a table, a factor on it
    eew: dict[int, float] = Field(default_factory=dict, strict=False)

    def _ranged(self, value: float, what: str, name: str) -> None:
        ranged = self.low is not None and self.high is not None
        rule(self.assumed == ranged, f"an assumed {what} has low and high, one with a source has neither")
        if self.low is not None and self.high is not None:
            kept = self.low <= value <= self.high
            rule(kept, f"low <= {name} <= high, got {self.low} <= {value} <= {self.high}")
        rule(set(self.eew) <= set(EEWS), f"expected element widths of {EEWS} as keys of eew")


class Constant(_Known):
    """A number."""

    value: float = Field(strict=False)  # the number of a constant

    @model_validator(mode="after")
    def _check(self) -> Constant:
        self._ranged(self.value, "constant", "value")
        return self


class Cycles(_Known):
    """Cycles for which a vector instruction keeps its unit busy, by LMUL, for DLEN = VLEN; otherwise x VLEN / DLEN."""

    m1: float = Field(gt=0, strict=False)  # cycles at LMUL 1
    m2: float = Field(gt=0, strict=False)  # cycles at LMUL 2, not fewer
    m4: float = Field(gt=0, strict=False)  # cycles at LMUL 4, not fewer
    m8: float = Field(gt=0, strict=False)  # cycles at LMUL 8, not fewer
    # cycles at LMUL 1/2; by default as m1, and no factor of a range applies
    mf2: float | None = Field(default=None, gt=0, strict=False)
    mf4: float | None = Field(default=None, gt=0, strict=False)  # the same at LMUL 1/4
    mf8: float | None = Field(default=None, gt=0, strict=False)  # the same at LMUL 1/8

    @model_validator(mode="after")
    def _check(self) -> Cycles:
        self._ranged(1, "table", "1 for the factors of a table")
        rule(self.low is None or self.low > 0, f"the factors of a table are more than 0, got {self.low}")
        rule(self.m1 <= self.m2 <= self.m4 <= self.m8, "cycles do not fall with LMUL")
        return self

    def at(self, lmul: int, eew: int, factor: float = 1.0) -> float:
        """Cycles at an index of LMULS and one of EEWS. factor: from the assumed range"""
        names = LMULS[lmul:4] if lmul < 4 else (LMULS[lmul],)
        name = next(name for name in names if getattr(self, name) is not None)
        own = 1.0 if name.startswith("mf") else factor
        return float(getattr(self, name)) * self.eew.get(EEWS[eew], 1.0) * own


class SecondUnit(Record):
    """A second unit of an instruction class, and its busy cycles."""

    unit: str  # a key of `units`
    cycles: Cycles | Constant  # cycles that the instruction holds it


class PerVlen(Record):
    """Cycles of a reduction at VLENs other than that of its table."""

    vlen: int = Field(ge=64, le=4096)  # VLEN (bits) of the table
    # cycles more for each doubling of that VLEN; by default the cycles are proportional to VLEN
    doubling: float | None = Field(default=None, ge=0, strict=False)
    source: str = Field(min_length=1)  # source of the numbers

    def at(self, cycles: float, vlen: int) -> float:
        """Cycles at a VLEN (bits). cycles: from the table; with `doubling`, shorter VLENs take as many"""
        if self.doubling is None:
            return cycles * vlen / self.vlen
        return cycles + self.doubling * max(0.0, log2(vlen / self.vlen))


class Cost(Record):
    """An instruction class: its unit, busy cycles and latency."""

    like: str | None = None  # another class, from which missing keys are taken
    unit: str | None = None  # a key of `units`; null: none
    # cycles for which the unit is busy: a constant for a scalar class, a table for a vector class
    cycles: Cycles | Constant | None = None
    latency: Constant | None = None  # cycles from issue to the use of the result; for a load that hits level 1
    forward: Constant | None = None  # latency to the addend of a following multiply-add, if it is shorter
    slots: Cycles | Constant | None = None  # issue slots, 1 by default
    also: SecondUnit | None = None  # a second unit, with `unit` and `cycles`; in order only
    # table of further cycles of a contiguous vector access across `core.boundary`; by default `cycles` again
    misaligned: Cycles | None = None
    # reductions: `vlen` (bits) of the table, and further cycles for each `doubling` of it (without it the cycles are
    # proportional to VLEN); with `source`
    per_vlen: PerVlen | None = None


class Tlb(Record):
    """A data TLB with pages of 4 KiB."""

    entries: int = Field(gt=0, le=8192)  # pages that it holds, `ways` x a power of two
    ways: int = Field(gt=0)  # associativity
    miss: Constant  # cycles for an access whose page is not in it; for `tlb2` a page-table walk
    source: str = Field(min_length=1)  # source of the numbers

    @model_validator(mode="after")
    def _check(self) -> Tlb:
        whole = self.sets * self.ways == self.entries
        rule(whole and not self.sets & (self.sets - 1), "entries = ways x sets, sets a power of two")
        return self

    @property
    def sets(self) -> int:
        return self.entries // self.ways


class Prefetcher(Record):
    """A hardware prefetcher into one level."""

    present: Constant  # 1: the core has it; 0: it has none
    streams: int = Field(ge=1, le=32)  # streams that it follows at once
    distance: int = Field(ge=1, le=32)  # lines that it fetches ahead
    train: int = Field(ge=1, le=16)  # accesses of a stream before it begins
    scalar_only: bool = False  # `true`: vector accesses do not train it
    source: str = Field(min_length=1)  # source of the numbers


class MemoryModel(Record):
    """The memory hierarchy. l1 and l2 come from the platform's `caches:` (see specs.inherit).

    Latencies are cycles from load to use for a scalar integer load; other loads take longer by the difference of their
    latencies in level 1. Intervals are cycles between lines. A third level is not modelled: the range of dram_latency
    covers it, since a model of it contradicted published measurements of a core.
    """

    l1: Cache
    l2: Cache
    l2_latency: Constant  # cycles from load to use for an integer load that hits level 2
    l2_interval: Constant  # cycles between lines that arrive from level 2
    dram_latency: Constant  # cycles from load to use for an integer load that misses level 2
    dram_interval: Constant  # cycles between lines that arrive from DRAM
    l2_write_interval: Constant | None = None  # cycles between lines written to level 2; by default none
    dram_write_interval: Constant | None = None  # cycles on the bus for a written line; by default as for reads
    misses: Constant  # maximum number of outstanding line misses
    store_buffer: Constant  # entries of the store buffer in front of level 1
    drain: Constant  # cycles for a store to move from the buffer to level 1
    share: Constant | None = None  # share of level 2's ways that the measured core uses alone, up to 1
    # consecutive whole-line stores after which lines are no longer read first; 0: they always are
    write_streaming: int = Field(default=0, ge=0, le=64)
    tlb: Tlb  # the first TLB for data, see [tlb](#tlb-tlb2)
    tlb2: Tlb  # the second TLB for data
    l1i: Cache  # level 1 of instructions, with the keys of [caches](#caches)
    l1_prefetch: Prefetcher | None = None  # prefetcher into level 1, see [prefetchers](#l1_prefetch-l2_prefetch)
    l2_prefetch: Prefetcher | None = None  # prefetcher into level 2

    @model_validator(mode="after")
    def _check(self) -> MemoryModel:
        l1, l2, l1i, share = self.l1, self.l2, self.l1i, self.share
        rule(l1.line == l2.line, f"levels 1 and 2 of `caches` have one line size, got {l1.line} and {l2.line}")
        rule(l2.size >= l1.size, f"level 2 of `caches` is not smaller than level 1, got {l2.size} and {l1.size}")
        wanted = f"l1i has lines of {l1.line} bytes and a power of two of sets, got {l1i.line} and {l1i.sets}"
        rule(l1i.line == l1.line and not l1i.sets & (l1i.sets - 1), wanted)
        rule(self.l2_latency.value <= self.dram_latency.value, "l2_latency <= dram_latency")
        one = share is None or (not share.assumed and 0 < share.value <= 1)
        rule(one, "share is one number over 0 and up to 1; caches do not differ between scenarios")
        for name, of in (("misses", self.misses), ("store_buffer", self.store_buffer)):
            rule(1 <= of.value <= _MOST_WAITING, f"{name} lies between 1 and {_MOST_WAITING}")
            if of.low is not None and of.high is not None:
                rule(
                    1 <= of.low <= of.high <= _MOST_WAITING,
                    f"the range of {name} must lie between 1 and {_MOST_WAITING}",
                )
        return self


class Vector(Record):
    """The VLENs with which the core exists, and its data path for each, in bits."""

    vlen: tuple[int, ...] = Field(min_length=1, strict=False)  # VLENs (bits) with which the core exists
    dlen: tuple[int, ...] = Field(min_length=1, strict=False)  # data path (bits) for each of them
    vl_dependent: bool  # `true`: cycles depend on vl; `false`: they depend on VLEN only
    source: str = Field(min_length=1)  # source of the numbers

    @model_validator(mode="after")
    def _check(self) -> Vector:
        vlens, dlens = len(self.vlen), len(self.dlen)
        rule(vlens == dlens, f"one dlen a vlen, got {dlens} for {vlens}")
        for vlen, dlen in zip(self.vlen, self.dlen, strict=True):
            rule(dlen <= vlen, f"dlen <= vlen, got {dlen} > {vlen}")
            powers = not vlen & (vlen - 1) and not dlen & (dlen - 1)
            rule(powers and 64 <= vlen <= 4096, "vlen and dlen must be powers of two, vlen from 64 to 4096")
        return self


class CoreModel(Record):
    """Properties of the whole pipeline. Switches are 1 or 0."""

    issue_width: Constant  # instructions a cycle
    mispredict: Constant  # cycles lost by a mispredicted branch (the predictor is a two-bit counter)
    taken_branch: Constant  # cycles lost by a correctly predicted taken branch
    write_after_read: Constant  # cycles for which a vector load waits after the last reader of its destination
    chained: Constant  # 1: registers of a group become ready one by one; 0: all with the last
    shared_ports: Constant  # 1: the units in `shared` are one port; 0: they are separate
    # in order only; 1: a store issues before its data and waits in the store buffer; 0: it waits at issue
    late_store_data: Constant | None = None
    load_miss_stops: Constant | None = None  # in order only; 1: an integer load that misses level 1 stops issue
    fma_blocks_load: Constant | None = None  # cycles after a multiply-add in which no vector or FP load can issue
    # bytes: a contiguous vector access across a boundary takes longer (`misaligned`)
    boundary: int = Field(ge=1, le=4096)
    split: Constant | None = None  # cycles for each element of a vector access with misaligned elements
    vector_queue: int = Field(ge=0, le=64)  # vector instructions that may wait while scalar instructions go on
    window: int = Field(default=0, ge=0, le=1024)  # out of order only: instructions in flight


class BoardModel(Record):
    """A whole `model:` section."""

    name: str  # name of the model; by default `NAME, after PARENT VERSION` in a child that changes a number
    version: int = Field(ge=1)  # increase it whenever a number changes
    calibrated: bool  # whether the constants were fitted to a board
    description: str  # the core, and the sources of the numbers
    pipeline: Literal["inorder", "ooo"]  # `inorder`: issues in order; `ooo`: out of order
    clock_ghz: Constant  # GHz, for figures that were published as times
    vector: Vector  # vector lengths and data paths, see [vector](#vector)
    core: CoreModel  # the pipeline, see [core](#core)
    units: dict[str, int] = Field(min_length=1)  # execution unit -> number of them; at most 16 units
    # two units that `core.shared_ports` makes one port
    shared: tuple[str, str] | None = Field(default=None, strict=False)
    whole: tuple[str, ...] = Field(default=(), strict=False)  # units of which each cycle belongs to one instruction
    costs: dict[str, Cost]  # instruction class -> its cost, see [costs](#costs)
    memory: MemoryModel  # caches, DRAM, TLBs and prefetchers, see [memory](#memory)
    # name -> unsettled behaviour, see [alternatives](#alternatives); null: drops that of the parent
    alternatives: dict[str, Alternative] = Field(default_factory=dict)
    indicative: dict[str, str] = Field(default_factory=dict)  # dtype -> reason why its intervals are too wide

    @model_validator(mode="after")
    def _check(self) -> BoardModel:
        few = len(self.units) <= 16 and all(n >= 1 for n in self.units.values())
        rule(few, "at most 16 units, at least one of each")
        unknown = sorted(set(self.costs) - set(CLASSES))
        rule(not unknown, f"expected costs of known instruction classes, got {', '.join(unknown)}")
        missing = [name for name in CLASSES if name not in self.costs]
        rule(not missing, f"every instruction class needs a cost; missing {', '.join(missing)}")
        for name in (*(self.shared or ()), *self.whole):
            rule(name in self.units, f"shared and whole name units, got {name}")
        for name in CLASSES:
            self._check_cost(name)
        boundary = self.core.boundary
        rule(not boundary & (boundary - 1), f"boundary must be a power of two, got {boundary}")
        if self.pipeline == "ooo":
            in_order = self.whole or self.core.fma_blocks_load or any(self.cost(name).also for name in CLASSES)
            rule(not in_order, "whole, also and fma_blocks_load are only for in-order cores")
            rule(self.core.window >= 1, "an out-of-order core needs a window")
            rule(self.core.load_miss_stops is None, "load_miss_stops is only for in-order cores")
        for name, alternative in self.alternatives.items():
            broken = refused(name, alternative, self)
            rule(broken is None, str(broken))
        return self

    def _check_cost(self, name: str) -> None:
        own, cost, table = self.costs[name], self.cost(name), name in VECTOR_CLASSES
        for key, unit in (("", cost.unit), (".also", cost.also.unit if cost.also else None)):
            rule(unit is None or unit in self.units, f"the unit of {name}{key} must be a key of units, got {unit}")
        whole = cost.cycles is not None and cost.latency is not None
        rule(whole, f"{name} needs cycles and latency, of its own or by `like`")
        rule(isinstance(cost.cycles, Cycles) == table, f"cycles of {name} are {'a table by LMUL' if table else 'one'}")
        rule(not own.misaligned or name in CONTIGUOUS, f"misaligned is of {', '.join(CONTIGUOUS)}, got {name}")
        reduces = name.startswith("vreduce")
        rule(not own.per_vlen or reduces, f"per_vlen is allowed only for vreduce and vreduce_ordered, got {name}")

    def cost(self, name: str) -> Cost:
        """A class's cost with missing fields from `like`. A class named in `like` has no `like` itself."""
        cost = self.costs[name]
        if cost.like is None:
            return cost
        base = self.costs.get(cost.like, cost)
        rule(base.like is None, f"`like` of {name} must name a class without `like`, got {cost.like}")
        own = {key: getattr(cost, key) for key in cost.model_fields_set if key != "like"}
        return base.model_copy(update=own)

    def l2_ways(self) -> int:
        """Ways of level 2 that the measured core uses alone."""
        share = self.memory.share.value if self.memory.share else 1.0
        return max(1, round(self.memory.l2.ways * share))

    def dlen(self, vlen: int) -> int:
        """Width of the data path (bits) at a VLEN; for an unlisted VLEN by the ratio of the nearest one."""
        pairs = dict(zip(self.vector.vlen, self.vector.dlen, strict=True))
        if vlen in pairs:
            return pairs[vlen]
        nearest = min(pairs, key=lambda known: (abs(known - vlen), known))
        return max(vlen * pairs[nearest] // nearest, 1)

    def assumed(self) -> dict[str, Constant | Cycles]:
        """Dotted key -> assumed constant, in file order."""
        return {key: item for key, item in _walk(self, "") if item.assumed}

    def unknowns(self) -> dict[str, tuple[str, ...]]:
        """Unknowns: group (or key of a constant without one) -> keys of its constants, which vary together."""
        groups: dict[str, list[str]] = {}
        for key, item in self.assumed().items():
            groups.setdefault(item.group or key, []).append(key)
        return {name: tuple(keys) for name, keys in groups.items()}


def _walk(record: Any, prefix: str) -> Iterator[tuple[str, Constant | Cycles]]:
    if isinstance(record, Constant | Cycles):
        yield prefix, record
    elif isinstance(record, BaseModel):
        for name in type(record).model_fields:
            yield from _walk(getattr(record, name), f"{prefix}.{name}" if prefix else name)
    elif isinstance(record, dict):
        for name, item in record.items():
            yield from _walk(item, f"{prefix}.{name}")


def load(section: Mapping[str, object], origin: str) -> BoardModel:
    """A `model:` section as a record. Raises SpecError with origin, key and the broken rule."""
    return yamlfile.validate(BoardModel, dict(section), origin)
