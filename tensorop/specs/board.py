"""The `model:` section of a platform file: a core's pipeline, its units, what each instruction class costs, its caches.

Every number is a constant with its source. One that no source gives is `assumed: true` with `low` and `high`: the
modelled cycles are then computed for several choices inside those ranges too (see board_scenarios).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log2
from typing import Any, Literal

from pydantic import BaseModel, Field, model_validator

from tensorop.model.platform import Cache
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
CONTIGUOUS = ("vload", "vload_segment", "vstore", "vstore_segment")  # a misaligned address costs them more
LMULS = ("mf8", "mf4", "mf2", "m1", "m2", "m4", "m8")
EEWS = (8, 16, 32, 64)


class _Known(Record):
    """A figure and where it comes from; `eew` holds other values, of a table factors, for some element widths (bits).

    Assumed ones of one `group` are one unknown and move together: all at `low`, or all at `high`.
    """

    source: str = Field(min_length=1)
    assumed: bool = False
    low: float | None = Field(default=None, strict=False)
    high: float | None = Field(default=None, strict=False)
    group: str | None = None
    eew: dict[int, float] = Field(default_factory=dict, strict=False)

    def _ranged(self, value: float, what: str, name: str) -> None:
        if self.assumed != (self.low is not None and self.high is not None):
            raise ValueError(f"rule: an assumed {what} has low and high, one with a source has neither")
        if self.assumed and not (self.low <= value <= self.high):  # type: ignore[operator]
            raise ValueError(f"rule: low <= {name} <= high, got {self.low} <= {value} <= {self.high}")
        if any(width not in EEWS for width in self.eew):
            raise ValueError(f"rule: eew keys are element widths out of {EEWS}")


class Constant(_Known):
    """A number."""

    value: float = Field(strict=False)

    @model_validator(mode="after")
    def _check(self) -> Constant:
        self._ranged(self.value, "constant", "value")
        return self


class Cycles(_Known):
    """How long a vector instruction keeps its unit busy, by LMUL, where DLEN = VLEN.

    Fractions of a register cost as m1 unless given. With `assumed`, `low` and `high` are factors on the table, but for
    fractions given.
    """

    m1: float = Field(gt=0, strict=False)
    m2: float = Field(gt=0, strict=False)
    m4: float = Field(gt=0, strict=False)
    m8: float = Field(gt=0, strict=False)
    mf2: float | None = Field(default=None, gt=0, strict=False)
    mf4: float | None = Field(default=None, gt=0, strict=False)
    mf8: float | None = Field(default=None, gt=0, strict=False)

    @model_validator(mode="after")
    def _check(self) -> Cycles:
        self._ranged(1, "table", "1 for the factors of a table")
        if self.low is not None and self.low <= 0:
            raise ValueError(f"rule: the factors of a table are more than 0, got {self.low}")
        if not self.m1 <= self.m2 <= self.m4 <= self.m8:
            raise ValueError("rule: cycles do not fall with LMUL")
        return self

    def at(self, lmul: int, eew: int, factor: float = 1.0) -> float:
        """Cycles at an index of LMULS and of EEWS, for a factor out of the assumed range."""
        names = LMULS[lmul:4] if lmul < 4 else (LMULS[lmul],)
        name = next(name for name in names if getattr(self, name) is not None)
        own = 1.0 if name.startswith("mf") else factor
        return float(getattr(self, name)) * self.eew.get(EEWS[eew], 1.0) * own


class SecondUnit(Record):
    """A second unit of an instruction class, and how long it holds that one."""

    unit: str
    cycles: Cycles | Constant


class PerVlen(Record):
    """Cycles of a reduction at other VLENs than the one that its table was measured at.

    vlen      bits, of the table
    doubling  cycles more for each doubling of VLEN; null: cycles are proportional to VLEN, one element after the other
    """

    vlen: int = Field(ge=64, le=4096)
    doubling: float | None = Field(default=None, ge=0, strict=False)
    source: str = Field(min_length=1)

    def at(self, cycles: float, vlen: int) -> float:
        """Cycles at a VLEN (bits), out of the table's. A shorter one is not cheaper where each doubling adds."""
        if self.doubling is None:
            return cycles * vlen / self.vlen
        return cycles + self.doubling * max(0.0, log2(vlen / self.vlen))


class Cost(Record):
    """One instruction class: its unit, how long it holds it, and when its result can be used.

    unit       a key of `units`, or null for none
    cycles     a Constant for scalar classes, a table by LMUL for vector ones
    latency    cycles from issue to the use of the result; for loads, of a level 1 hit
    forward    the latency seen by the addend of a following multiply-add, where shorter
    slots      issue slots it takes, one when absent
    also       a second unit it takes with the first, and for how long; in order only
    misaligned cycles more for an access of CONTIGUOUS that crosses `core.boundary`; as many as `cycles` when absent
    per_vlen   for a reduction: how its cycles change with the number of elements; not at all when absent
    like       another class whose fields these are where absent
    """

    like: str | None = None
    unit: str | None = None
    cycles: Cycles | Constant | None = None
    latency: Constant | None = None
    forward: Constant | None = None
    slots: Cycles | Constant | None = None
    also: SecondUnit | None = None
    misaligned: Cycles | None = None
    per_vlen: PerVlen | None = None


class Tlb(Record):
    """A TLB for data, 4 KiB pages: entries, ways, and the cycles an access waits when the page is not in it.

    The first level's `miss` is a hit of the second, the second's a walk of the tables.
    """

    entries: int = Field(gt=0, le=8192)
    ways: int = Field(gt=0)
    miss: Constant
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Tlb:
        sets = self.entries // self.ways
        if sets * self.ways != self.entries or sets & (sets - 1):
            raise ValueError("rule: entries = ways x sets, sets a power of two")
        return self


class Prefetcher(Record):
    """A hardware prefetcher into one level. `present` is 1 or 0 (assumed: 0 to 1)."""

    present: Constant
    streams: int = Field(ge=1, le=32)
    distance: int = Field(ge=1, le=32)
    train: int = Field(ge=1, le=16)
    scalar_only: bool = False
    source: str = Field(min_length=1)


class MemoryModel(Record):
    """What is beyond the core. l1 and l2 are the platform's `caches:` (see specs.inherit).

    l2_latency, dram_latency      load to use of a scalar integer load, in cycles; other loads wait as much longer as
                                  in level 1
    l2_interval, dram_interval    cycles between lines arriving from there
    l2_write_interval             cycles between lines written to level 2, beside those arriving; none when absent
    dram_write_interval           cycles a line written to DRAM keeps its bus; as one read when absent
    misses                        lines a core waits for at once
    drain                         cycles a store needs to leave the buffer into level 1
    share                         of level 2's ways that the measured core has to itself, 0 to 1
    l1i                           level 1 of instructions
    write_streaming               so many lines in a row stored to, the next is not read first; 0: every line is
    """

    l1: Cache
    l2: Cache
    l2_latency: Constant
    l2_interval: Constant
    dram_latency: Constant
    dram_interval: Constant
    l2_write_interval: Constant | None = None
    dram_write_interval: Constant | None = None
    misses: Constant
    store_buffer: Constant
    drain: Constant
    share: Constant | None = None
    write_streaming: int = Field(default=0, ge=0, le=64)
    tlb: Tlb
    tlb2: Tlb
    l1i: Cache
    l1_prefetch: Prefetcher | None = None
    l2_prefetch: Prefetcher | None = None

    @model_validator(mode="after")
    def _check(self) -> MemoryModel:
        if self.l1.line != self.l2.line:
            raise ValueError(
                f"rule: levels 1 and 2 of `caches` have one line size, got {self.l1.line} and {self.l2.line}"
            )
        if self.l2.size < self.l1.size:
            raise ValueError(
                f"rule: level 2 of `caches` is not smaller than level 1, got {self.l2.size} and {self.l1.size}"
            )
        if self.l1i.line != self.l1.line or self.l1i.sets & (self.l1i.sets - 1):
            raise ValueError(
                f"rule: l1i has lines of {self.l1.line} bytes and a power of two of sets, got {self.l1i.line} and "
                f"{self.l1i.sets}"
            )
        if self.l2_latency.value > self.dram_latency.value:
            raise ValueError("rule: l2_latency <= dram_latency")
        if self.share is not None and (self.share.assumed or not 0 < self.share.value <= 1):
            raise ValueError("rule: share is one number over 0 and up to 1; caches do not differ between scenarios")
        for name, most in (("misses", 64), ("store_buffer", 64)):
            if not 1 <= getattr(self, name).value <= most:
                raise ValueError(f"rule: {name} lies between 1 and {most}")
            if getattr(self, name).assumed and not 1 <= getattr(self, name).low <= getattr(self, name).high <= most:
                raise ValueError(f"rule: the range of {name} lies between 1 and {most}")
        return self


class Vector(Record):
    """VLENs the core exists with and the data path of each, in bits."""

    vlen: tuple[int, ...] = Field(min_length=1, strict=False)
    dlen: tuple[int, ...] = Field(min_length=1, strict=False)
    vl_dependent: bool
    source: str = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Vector:
        if len(self.vlen) != len(self.dlen):
            raise ValueError(f"rule: one dlen a vlen, got {len(self.dlen)} for {len(self.vlen)}")
        for vlen, dlen in zip(self.vlen, self.dlen, strict=True):
            if dlen > vlen:
                raise ValueError(f"rule: dlen <= vlen, got {dlen} > {vlen}")
            if vlen & (vlen - 1) or dlen & (dlen - 1) or not 64 <= vlen <= 4096:
                raise ValueError("rule: vlen and dlen are powers of two, vlen from 64 to 4096")
        return self


class CoreModel(Record):
    """What the whole pipeline has.

    issue_width        instructions a cycle
    mispredict         cycles lost by a branch guessed wrongly (a two-bit counter guesses)
    taken_branch       cycles lost by a taken branch guessed rightly
    write_after_read   cycles a vector load waits after the last reader of its destination
    chained            1: registers of a group are ready one after the other; 0: all with the last
    shared_ports       1: the units of `shared` are one port; 0: they are apart
    late_store_data    1: a store issues before its data, which it awaits in the store buffer, and keeps no load from
                       its register; 0: it waits at issue. In order only
    load_miss_stops    1: an integer load that misses level 1 stops issue until its line is there; 0 when absent. In
                       order only
    boundary           bytes: a contiguous vector access that crosses one takes longer (Cost.misaligned)
    split              cycles an element of a vector access with misaligned elements takes; nothing more when absent
    fma_blocks_load    so many cycles after a multiply-add no load of a vector or FP register can issue; any when absent
    vector_queue       vector instructions that may wait while the scalar side goes on; 0: it stops too
    window             out of order only: instructions in flight
    """

    issue_width: Constant
    mispredict: Constant
    taken_branch: Constant
    write_after_read: Constant
    chained: Constant
    shared_ports: Constant
    late_store_data: Constant | None = None
    load_miss_stops: Constant | None = None
    fma_blocks_load: Constant | None = None
    boundary: int = Field(ge=1, le=4096)
    split: Constant | None = None
    vector_queue: int = Field(ge=0, le=64)
    window: int = Field(default=0, ge=0, le=1024)


class BoardModel(Record):
    """A whole `model:` section.

    whole   units whose cycles are not shared: an instruction starts only where what it takes fits into the cycle
    shared  two units that may be one port, see CoreModel.shared_ports
    alternatives  name -> a behaviour the model does not assume, see board_alternative
    indicative    dtype -> why figures of it only indicate: its intervals are too wide to claim anything
    """

    name: str
    version: int = Field(ge=1)
    calibrated: bool
    description: str
    pipeline: Literal["inorder", "ooo"]
    clock_ghz: Constant
    vector: Vector
    core: CoreModel
    units: dict[str, int] = Field(min_length=1)
    shared: tuple[str, str] | None = Field(default=None, strict=False)
    whole: tuple[str, ...] = Field(default=(), strict=False)
    costs: dict[str, Cost]
    memory: MemoryModel
    alternatives: dict[str, Alternative] = Field(default_factory=dict)
    indicative: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> BoardModel:
        if len(self.units) > 16 or any(n < 1 for n in self.units.values()):
            raise ValueError("rule: at most 16 units, at least one of each")
        unknown = sorted(set(self.costs) - set(CLASSES))
        if unknown:
            raise ValueError(f"rule: costs are of known classes, got {', '.join(unknown)}")
        missing = [name for name in CLASSES if name not in self.costs]
        if missing:
            raise ValueError(f"rule: every class has a cost, missing {', '.join(missing)}")
        for name in (*(self.shared or ()), *self.whole):
            if name not in self.units:
                raise ValueError(f"rule: shared and whole name units, got {name}")
        for name in CLASSES:
            cost = self.cost(name)
            if cost.unit is not None and cost.unit not in self.units:
                raise ValueError(f"rule: the unit of {name} is a key of units, got {cost.unit}")
            if cost.also is not None and cost.also.unit not in self.units:
                raise ValueError(f"rule: the unit of {name}.also is a key of units, got {cost.also.unit}")
            if cost.cycles is None or cost.latency is None:
                raise ValueError(f"rule: {name} has cycles and latency, its own or those of `like`")
            if isinstance(cost.cycles, Cycles) != (name in VECTOR_CLASSES):
                raise ValueError(f"rule: cycles of {name} are {'a table by LMUL' if name in VECTOR_CLASSES else 'one'}")
        for name in CLASSES:
            own = self.costs[name]
            if own.misaligned and name not in CONTIGUOUS:
                raise ValueError(f"rule: misaligned is of {', '.join(CONTIGUOUS)}, got {name}")
            if own.per_vlen and not name.startswith("vreduce"):
                raise ValueError(f"rule: per_vlen is of vreduce and vreduce_ordered, got {name}")
        if self.core.boundary & (self.core.boundary - 1):
            raise ValueError(f"rule: boundary is a power of two, got {self.core.boundary}")
        in_order = self.whole or self.core.fma_blocks_load or any(self.cost(name).also for name in CLASSES)
        if self.pipeline == "ooo" and in_order:
            raise ValueError("rule: whole, also and fma_blocks_load are of cores that issue in order")
        if self.pipeline == "ooo" and self.core.window < 1:
            raise ValueError("rule: an out-of-order core has a window")
        if self.pipeline == "ooo" and self.core.load_miss_stops is not None:
            raise ValueError("rule: load_miss_stops is of cores that issue in order")
        for name, alternative in self.alternatives.items():
            if (broken := refused(name, alternative, self)) is not None:
                raise ValueError(f"rule: {broken}")
        return self

    def cost(self, name: str) -> Cost:
        """A class's cost with the fields of `like` filled in (one step: a `like` names a class without one)."""
        cost = self.costs[name]
        if cost.like is None:
            return cost
        base = self.costs.get(cost.like)
        if base is None or base.like is not None:
            raise ValueError(f"rule: {name} is like a class that stands for itself, got {cost.like}")
        own = {key: getattr(cost, key) for key in cost.model_fields_set if key != "like"}
        return base.model_copy(update=own)

    def l2_ways(self) -> int:
        """Ways of level 2 that the measured core has to itself."""
        share = self.memory.share.value if self.memory.share else 1.0
        return max(1, round(self.memory.l2.ways * share))

    def dlen(self, vlen: int) -> int:
        """Bits of data path at a VLEN; the nearest modelled ratio where this VLEN is not listed."""
        pairs = dict(zip(self.vector.vlen, self.vector.dlen, strict=True))
        if vlen in pairs:
            return pairs[vlen]
        nearest = min(pairs, key=lambda known: (abs(known - vlen), known))
        return max(vlen * pairs[nearest] // nearest, 1)

    def assumed(self) -> dict[str, Constant | Cycles]:
        """The constants without a source, by dotted key, in file order."""
        return {key: item for key, item in _walk(self, "") if item.assumed}

    def unknowns(self) -> dict[str, tuple[str, ...]]:
        """What is not known: group, or the constant's own key -> the keys that move with it."""
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


def load(section: Mapping[str, Any], origin: str) -> BoardModel:
    """A `model:` section as a record; raises SpecError naming origin, key and the rule broken."""
    return yamlfile.validate(BoardModel, dict(section), origin)
