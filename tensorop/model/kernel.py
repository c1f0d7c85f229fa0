"""Templates, kernels and variants, and the C sources and artifacts made from them."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pydantic import Field

from tensorop.model.point import Point, Value, identity
from tensorop.model.record import record


@record
class Constraint:
    """A condition of legal points: an expression over tunables and platform facts, and its reason."""

    must: str
    reason: str


@record
class Prior:
    """An estimate of points' costs before any trial."""

    cost: str  # expression over tunables and the platform's facts; lower is better
    # tunables: the cheapest point for each combination is tried, by cost
    of: tuple[str, ...] = Field(default=(), max_length=4)
    # tunables: each combination gets a kernel on whole problems
    apart: tuple[str, ...] = Field(default=(), max_length=2)


OURS = "offline"  # the author of shipped templates
TRUSTED = "trusted"  # the author of C that the user wants no gate to read
# Flags for C of other authors. Locals are initialised and frames lie in the part of the stack that is overwritten
# between batches (DENSE in native/harness_state.c), so that a kernel cannot keep data from call to call there.
MAX_FRAME = 4096  # bytes of locals in an author's kernel
# as many for spilled vectors, and the locals of our driver, into which kernels are inlined
_FRAME = 2 * MAX_FRAME + 10240
CONFINED = ("-ftrivial-auto-var-init=zero", f"-Wframe-larger-than={_FRAME}", "-Werror=frame-larger-than")


@dataclass(frozen=True)
class RegionMark:
    """Where a region of a template's text begins."""

    name: str
    line: int  # lines of the text before it


@dataclass(frozen=True)
class KernelTemplate:
    """A family of micro-kernels: a Jinja2 body over primitives with free tunables."""

    operator: str  # the operator's name
    name: str
    author: str  # offline (shipped) | plug-in | trusted | llm | replay
    strategy: str  # its idea, in words
    text: str  # the Jinja2 body
    reads: Mapping[str, str] = field(default_factory=dict)  # operand -> how it is read, in the operator's words
    needs: tuple[str, ...] = ()  # primitives that it uses
    tunables: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    # Tunables whose effect only whole problems show: a kernel for each value in `seed_configurations` is tried there.
    unseen: tuple[str, ...] = ()
    # points, or parts of points, to try first; they are not part of the digest
    seed_configurations: tuple[Point, ...] = ()
    prior: Prior | None = None  # the start of searches without earlier results
    files: tuple[tuple[str, str], ...] = ()  # C of a trusted author: (path, text); kernels include the first one
    parent: str = ""  # digest of the template from which it was derived; not part of its own digest
    regions: tuple[RegionMark, ...] = ()  # in order; not part of the digest
    # tunable -> action and region that a change of it stands for, for `author pairs`; not part of the digest
    ideas: Mapping[str, str] = field(default_factory=dict)
    plan: str = ""  # what it keeps, moves and computes (author/plans.py); not part of the digest
    # Kernels for a device (GPU) only: name -> expression over tunables, the layout, the device and earlier facts.
    facts: Mapping[str, str] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)  # as facts, also over a call's dims; the last is the cost

    @property
    def read_facts(self) -> dict[str, str]:
        """`reads` with the names that an operator's expressions use, e.g. `reads_a`."""
        return {f"reads_{name}": how for name, how in self.reads.items()}

    @property
    def flags(self) -> tuple[str, ...]:
        """Compiler flags for its C, in addition to the platform's."""
        return () if self.author in (OURS, TRUSTED) else CONFINED

    @cached_property
    def digest(self) -> str:
        parts = (
            self.text,
            repr(sorted(self.tunables.items())),
            repr(self.constraints),
            repr(sorted(self.reads.items())),
            *(repr(one) for one in self.files),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Kernel:
    """A template with a dtype, a configuration and a VLEN."""

    template: KernelTemplate
    dtype: str
    # the template's tunables and the primitive set's settings; empty in an arm of the search
    configuration: Point = Point(())
    vlen: int = 0  # bits; 0: the kernel reads VLEN at run time, else it is specialised for this one

    @cached_property
    def id(self) -> str:
        return identity(self.template.digest, self.dtype, self.configuration.pairs, self.vlen)

    def at(self, vlen: int) -> Kernel:
        """The kernel specialised for vectors of this many bits."""
        return replace(self, vlen=vlen)

    def __str__(self) -> str:
        return str(Variant(self))


@dataclass(frozen=True)
class Variant:
    """A kernel with its blocking; libraries consist of variants."""

    kernel: Kernel
    blocking: Point = Point(())  # empty: the defaults
    # VLENs (bits) for which its kernel is also specialised; not part of its identity
    specialisations: tuple[int, ...] = ()

    @cached_property
    def id(self) -> str:
        return identity(self.kernel.id, self.blocking.pairs)

    @property
    def template(self) -> KernelTemplate:
        return self.kernel.template

    @property
    def point(self) -> Point:
        """Configuration and blocking."""
        return Point.of({**self.kernel.configuration, **self.blocking})

    def at(self, vlen: int) -> Variant:
        """The variant with its kernel specialised for vectors of this many bits."""
        return Variant(self.kernel.at(vlen), self.blocking)

    def __str__(self) -> str:
        specialised = f"for VLEN {self.kernel.vlen}" if self.kernel.vlen else ""
        return " ".join(part for part in (self.template.name, str(self.point), specialised) if part)


@dataclass(frozen=True)
class KernelText:
    """The C of one kernel that passed the gate. Trials, journal and product share it; it is rendered once."""

    variant: str  # id of its variant, as instantiate.as_built returns it
    kernel: str  # C of the kernel
    edge: str = ""  # C of the kernel for edges, with the shortest vectors; "": none

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.kernel}\0{self.edge}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """Rendered C."""

    files: tuple[tuple[str, str], ...]  # (file name, text); the first one is compiled
    language: str = "c"
    flags: tuple[str, ...] = ()  # compiler flags, in addition to the platform's
    driver: Source | None = None  # C that is compiled apart and linked to this, the same for many sources

    @property
    def parts(self) -> tuple[Source, ...]:
        """What is compiled apart, the kernel's part first."""
        return (self,) if self.driver is None else (self, self.driver)

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.files).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Artifact:
    """A built object, executable or library in the build cache, with its compiler command and log."""

    path: Path
    key: str
    command: tuple[str, ...]
    log: str = ""
