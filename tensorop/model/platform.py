"""A resolved platform: its file merged with those of its parents."""

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
    source: str = ""  # source of the numbers

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
    static_cpu: str  # CPU of the harness; use one for each architecture, since libc is rebuilt for each CPU
    shared_target: str  # target of the library with its oldest glibc: `riscv64-linux-gnu.2.31`
    arch_flags: tuple[str, ...] = ()  # flags of every kernel: its instruction set
    flags: tuple[str, ...] = ("-O3", "-g0")  # further flags of every kernel, by default `[-O3, -g0]`


@record
class BaselineChoice:
    """The environment of a baseline on some machines."""

    environment: Mapping[str, str]  # variables of the library, such as `{OPENBLAS_CORETYPE: CORTEXA53}`
    vlen_min: Whole = 0  # shortest vector length (bits) of this choice
    dtypes: tuple[str, ...] = ()  # dtypes of this choice; empty: all
    remark: str = ""  # text that is printed beside the ratios


@dataclass(frozen=True)
class Platform:
    """The target of a job."""

    name: str
    lineage: tuple[str, ...]  # itself, parent, ..., root
    description: str
    arch: str  # a name of `architecture.ARCHITECTURES`
    primitives: tuple[PrimitiveSet, ...]  # in order of preference
    registers: int  # architectural vector registers
    vlens: tuple[int, ...]  # VLENs (bits) of tuning and results; one entry for ISAs of fixed width
    verify_vlens: tuple[int, ...]  # VLENs (bits) of verification
    fixed_vlen: int | None  # VLEN (bits) that kernels may rely on; None: they read it at run time
    requires: tuple[str, ...]  # CPU flags as in /proc/cpuinfo, for native runs
    compiler: Compiler
    runner: str  # name of its backend
    qemu_cpu: str  # QEMU's -cpu, with {vlen} in place of VLEN; "": no QEMU
    caches: Mapping[str, Cache]  # l1, l2 and so on, from the core outwards
    baselines: Mapping[str, tuple[BaselineChoice, ...]]  # by name, vlen_min ascending; see baseline_choice
    tunables: Mapping[str, tuple[int | str, ...]]  # values that replace those of operators' and templates' tunables
    streams: int = 32  # memory streams that the hardware prefetchers can follow at once
    board: Mapping[str, Any] | None = None  # the `model:` section with its caches, validated by tensorop.specs.board
    # facts of a GPU that runs the kernels; None: a processor of `arch` does
    device: Mapping[str, int | str] | None = None
    identity: Mapping[str, str] = field(default_factory=dict)  # key in /proc/cpuinfo -> text in its value on this core
    whole: str = ""  # all of it as one file, for products; set if a part is not shipped with tensorop

    @property
    def settings(self) -> Mapping[str, tuple[int, ...]]:
        """Settings of the preferred primitive set, e.g. {"lmul": (1, 2, 4)}."""
        return self.primitives[0].settings

    def leading(self, dtype: str) -> PrimitiveSet:
        """The first primitive set with a dtype; vectors of two sets do not mix. Raises SpecError if there is none."""
        found = next((one for one in self.primitives if dtype in one.types), None)
        if found is None:
            raise SpecError(f"platform '{self.name}' has no primitives for dtype '{dtype}'")
        return found

    @property
    def dtypes(self) -> tuple[str, ...]:
        """The dtypes that have primitives."""
        return tuple(dict.fromkeys(dtype for one in self.primitives for dtype in one.types))

    def primitives_of(self, dtype: str, chosen: Mapping[str, Value] | None = None) -> Primitives:
        """The primitives for a dtype with the settings in a point. Raises SpecError as PrimitiveSet.primitives_of."""
        return self.leading(dtype).primitives_of(dtype, chosen or {}, self.fixed_vlen)

    def formats(self, dtype: str) -> Formats:
        """The number formats of a dtype's operands and sums."""
        return self.leading(dtype).types[dtype].formats

    def lanes(self, dtype: str, chosen: Mapping[str, Value], vlen: int = 0) -> int:
        """Elements in a vector at a VLEN (bits; 0: the first of `vlens`) with the settings in a point.

        A fixed VLEN takes precedence.
        """
        return self.leading(dtype).lanes(dtype, chosen, self.fixed_vlen or vlen or self.vlens[0])

    @property
    def modelled_caches(self) -> tuple[str, ...]:
        """Cache levels of the board model; farther memory has one latency and one interval in it."""
        memory = self.board["memory"] if self.board else {}
        return tuple(level for level in self.caches if level in memory)

    @property
    def unmodelled_caches(self) -> tuple[str, ...]:
        """Cache levels that the board model treats as memory; empty without a model."""
        return tuple(level for level in self.caches if self.board and level not in self.modelled_caches)

    def at(self, vlen: int) -> Platform:
        """The platform with a fixed VLEN (bits); 0: the platform itself."""
        return replace(self, vlens=(vlen,), fixed_vlen=vlen) if vlen else self

    def baseline_choice(self, name: str, vlen: int, dtype: str) -> BaselineChoice:
        """The environment of a baseline at this VLEN (bits) for a dtype, e.g. OpenBLAS's fastest core type.

        `name` may include a version (`openblas@0.3.29`); it uses the entry of the plain name unless it has its own.
        The environment is empty if the platform has no entry.
        """
        choices = self.baselines.get(name) or self.baselines.get(name.partition("@")[0]) or ()
        fitting = [c for c in choices if c.vlen_min <= vlen and (not c.dtypes or dtype in c.dtypes)]
        return fitting[-1] if fitting else BaselineChoice({})
