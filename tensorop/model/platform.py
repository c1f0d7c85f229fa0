"""A platform, resolved: its file merged over its parents'."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

from pydantic import Field, model_validator

from tensorop.errors import SpecError
from tensorop.model.point import Value
from tensorop.model.primitive import Formats, Primitives, PrimitiveSet
from tensorop.model.record import Count, Whole, record, rule


@record
class Cache:
    """One level of cache."""

    size: Annotated[Count, Field(le=1 << 34)]  # bytes of the whole cache, a multiple of `ways` x `line`
    ways: Annotated[Count, Field(le=1 << 16)]  # associativity
    line: Annotated[Count, Field(le=1 << 16)] = 64  # bytes of a line, 64 by default
    shared_by: Annotated[Count, Field(le=1 << 16)] = 1  # cores that share the cache, 1 by default
    source: str = ""  # where the numbers are from

    @model_validator(mode="after")
    def _check(self) -> Cache:
        sets = self.size / (self.ways * self.line)
        rule(
            sets.is_integer(),
            f"expected ways x sets x line = size with a whole number of sets, got {self.ways} ways of lines "
            f"of {self.line} bytes in {self.size} bytes ({sets:.2f} sets)",
        )
        return self

    @property
    def sets(self) -> int:
        return self.size // (self.ways * self.line)


@record
class Compiler:
    """How objects, harness and product are compiled. Strings are zig/clang spellings."""

    static_target: str  # target of the statically linked test harness: `riscv64-linux-musl`
    static_cpu: str  # CPU of the harness; one for each architecture, since libc is rebuilt for each
    shared_target: str  # target of the library with its oldest glibc: `riscv64-linux-gnu.2.31`
    arch_flags: tuple[str, ...] = ()  # flags of every kernel: its instruction set
    flags: tuple[str, ...] = ("-O3", "-g0")  # further flags of every kernel, by default `[-O3, -g0]`


@record
class BaselineChoice:
    """The environment of a baseline on some machines."""

    environment: Mapping[str, str]  # variables of the library, such as `{OPENBLAS_CORETYPE: CORTEXA53}`
    vlen_min: Whole = 0  # the choice is for this vector length (bits) and longer ones
    dtypes: tuple[str, ...] = ()  # dtypes that it is for; all where empty
    remark: str = ""  # text to print beside the ratios


@dataclass(frozen=True)
class Platform:
    """Where kernels run. `lineage` is itself, parent, ..., root."""

    name: str
    lineage: tuple[str, ...]
    description: str
    arch: str  # a name of `architecture.ARCHITECTURES`
    primitives: tuple[PrimitiveSet, ...]  # in order of preference
    registers: int  # architectural vector registers
    vlens: tuple[int, ...]  # VLENs (bits) it is tuned and reported at; one entry for fixed-width ISAs
    verify_vlens: tuple[int, ...]  # VLENs its winners must pass
    fixed_vlen: int | None  # kernels may rely on this VLEN at least; None: they ask at run time
    requires: tuple[str, ...]  # CPU flags as in /proc/cpuinfo, for native runs
    compiler: Compiler
    runner: str  # the name of a backend
    qemu_cpu: str  # with {vlen} where it has one; "" for native
    caches: Mapping[str, Cache]  # l1, l2 and so on, outwards
    baselines: Mapping[str, tuple[BaselineChoice, ...]]  # by name, ascending in vlen_min; see baseline_choice
    tunables: Mapping[str, tuple[int | str, ...]]  # platform overrides of operator or template tunables
    streams: int = 32  # of memory that hardware prefetchers follow at once
    # the `model:` section with the caches it has, validated by tensorop.specs.board
    board: Mapping[str, Any] | None = None
    device: Mapping[str, int | str] | None = None  # what kernels run on where that is no processor of `arch`
    identity: Mapping[str, str] = field(default_factory=dict)  # line of /proc/cpuinfo -> text it holds on this core
    whole: str = ""  # all of it as one file where a part of it does not ship, for it travels with products then

    @property
    def settings(self) -> Mapping[str, tuple[int, ...]]:
        """Those of the set it prefers, e.g. {"lmul": (1, 2, 4)}."""
        return self.primitives[0].settings

    def leading(self, dtype: str) -> PrimitiveSet:
        """The first set that knows a dtype: vectors of two sets do not mix. Raises SpecError where none does."""
        found = next((one for one in self.primitives if dtype in one.types), None)
        if found is None:
            raise SpecError(f"platform '{self.name}' has no primitives for dtype '{dtype}'")
        return found

    @property
    def dtypes(self) -> tuple[str, ...]:
        """Those that it has primitives for."""
        return tuple(dict.fromkeys(dtype for one in self.primitives for dtype in one.types))

    def primitives_of(self, dtype: str, chosen: Mapping[str, Value] | None = None) -> Primitives:
        """The primitives for a dtype at the settings that a point chose. Raises SpecError as the set does."""
        return self.leading(dtype).primitives_of(dtype, chosen or {}, self.fixed_vlen)

    def formats(self, dtype: str) -> Formats:
        """The number formats of a dtype's operands and sums."""
        return self.leading(dtype).types[dtype].formats

    def lanes(self, dtype: str, chosen: Mapping[str, Value], vlen: int = 0) -> int:
        """Elements in a vector at a VLEN (bits; 0: the first) and the settings that a point chose; a fixed VLEN holds
        on longer ones too."""
        return self.leading(dtype).lanes(dtype, chosen, self.fixed_vlen or vlen or self.vlens[0])

    @property
    def modelled_caches(self) -> tuple[str, ...]:
        """The levels that its board model has; what is beyond is one latency and one interval there."""
        memory = self.board["memory"] if self.board else {}
        return tuple(level for level in self.caches if level in memory)

    @property
    def unmodelled_caches(self) -> tuple[str, ...]:
        """The levels that its board model does not tell from what is beyond; none without a model."""
        return tuple(level for level in self.caches if self.board and level not in self.modelled_caches)

    def at(self, vlen: int) -> Platform:
        """The platform where vectors are known to have this many bits; itself at 0."""
        return replace(self, vlens=(vlen,), fixed_vlen=vlen) if vlen else self

    def baseline_choice(self, name: str, vlen: int, dtype: str) -> BaselineChoice:
        """What a baseline runs under at this VLEN (bits) for a dtype, e.g. its core type by measurement.

        `name` may carry a version (`openblas@0.3.29`), which shares the entry of the name unless it has its own.
        An empty environment when the platform says nothing of it.
        """
        choices = self.baselines.get(name) or self.baselines.get(name.partition("@")[0]) or ()
        fitting = [c for c in choices if c.vlen_min <= vlen and (not c.dtypes or dtype in c.dtypes)]
        return fitting[-1] if fitting else BaselineChoice({})
