"""What is written, chosen, rendered and built: template, kernel, variant, source, artifact."""

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
    """An expression over tunables and platform facts that legal points satisfy, and why."""

    must: str
    reason: str


@record
class Prior:
    """What is expected of points before one is tried."""

    cost: str  # an expression over tunables and the platform's facts, the less the better
    of: tuple[str, ...] = Field(default=(), max_length=4)  # the best point for each choice of these is tried, by cost
    apart: tuple[str, ...] = Field(default=(), max_length=2)  # of these: each choice has a kernel on whole problems


OURS = "offline"  # the author of what is shipped
# C of any other author: no local is read before it is written, so that none keeps anything from call to call, and
# frames lie within the stack that is overwritten between batches of calls (DENSE of native/harness_state.c).
MAX_FRAME = 4096  # bytes of an author's locals
_FRAME = 2 * MAX_FRAME + 10240  # as many of vectors spilled, and what our driver holds that the text is inlined to
CONFINED = ("-ftrivial-auto-var-init=zero", f"-Wframe-larger-than={_FRAME}", "-Werror=frame-larger-than")


@dataclass(frozen=True)
class KernelTemplate:
    """A family of micro-kernels: a Jinja2 body over primitives with free tunables."""

    operator: str  # what it computes
    name: str
    author: str  # offline (shipped) | plug-in | llm | replay
    strategy: str  # the idea in words
    text: str  # the Jinja2 body
    reads: Mapping[str, str] = field(default_factory=dict)  # how it walks its operands, as the operator defines it
    needs: tuple[str, ...] = ()  # primitives used
    tunables: Mapping[str, tuple[Value, ...]] = field(default_factory=dict)
    constraints: tuple[Constraint, ...] = ()
    # Tunables whose worth only whole problems show: a kernel for each value in `seed_configurations` is tried there.
    unseen: tuple[str, ...] = ()
    seed_configurations: tuple[Point, ...] = ()  # points, or parts of them, to try first; they change no result
    prior: Prior | None = None  # where searches begin that know of no earlier one
    parent: str = ""  # the digest of the template that it was made of; no part of its own
    # Of a device's kernel: name -> expression over tunables, the layout, the device and facts before it.
    facts: Mapping[str, str] = field(default_factory=dict)
    model: Mapping[str, str] = field(default_factory=dict)  # likewise of a call's dims; the last is the cost

    @property
    def read_facts(self) -> dict[str, str]:
        """How it walks its operands, under the names that an operator's expressions use, e.g. `reads_a`."""
        return {f"reads_{name}": how for name, how in self.reads.items()}

    @property
    def flags(self) -> tuple[str, ...]:
        """That C made of it is compiled with, beside the platform's."""
        return () if self.author == OURS else CONFINED

    @cached_property
    def digest(self) -> str:
        parts = (
            self.text,
            repr(sorted(self.tunables.items())),
            repr(self.constraints),
            repr(sorted(self.reads.items())),
        )
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Kernel:
    """A template with what its text is made for."""

    template: KernelTemplate
    dtype: str
    configuration: Point = Point(())  # the template's tunables and the set's settings; empty while it is searched
    vlen: int = 0  # bits of the vectors it is specialised for; 0: it asks for them

    @cached_property
    def id(self) -> str:
        return identity(self.template.digest, self.dtype, self.configuration.pairs, self.vlen)

    def at(self, vlen: int) -> Kernel:
        """The same, specialised for vectors of this many bits."""
        return replace(self, vlen=vlen)

    def __str__(self) -> str:
        return str(Variant(self))


@dataclass(frozen=True)
class Variant:
    """What is packaged: a kernel with its blocking."""

    kernel: Kernel
    blocking: Point = Point(())  # empty where the defaults hold
    specialisations: tuple[int, ...] = ()  # VLENs (bits) its kernel is also written for; no part of its identity

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
        """The same with its kernel specialised for vectors of this many bits."""
        return Variant(self.kernel.at(vlen), self.blocking)

    def __str__(self) -> str:
        specialised = f"for VLEN {self.kernel.vlen}" if self.kernel.vlen else ""
        return " ".join(part for part in (self.template.name, str(self.point), specialised) if part)


@dataclass(frozen=True)
class KernelText:
    """The C of one kernel as the gate admitted it: trials, journal and product share it, none renders it again."""

    variant: str  # the id of the variant it belongs to, as it is built (instantiate.as_built)
    kernel: str  # its tiles
    edge: str = ""  # the same on the shortest vectors, "" where there is none

    @property
    def id(self) -> str:
        return hashlib.sha256(f"{self.kernel}\0{self.edge}".encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Source:
    """Rendered C: file name -> text, the one to compile first. flags: of the compiler, beside the platform's."""

    files: tuple[tuple[str, str], ...]
    language: str = "c"
    flags: tuple[str, ...] = ()

    @property
    def digest(self) -> str:
        return hashlib.sha256(repr(self.files).encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Artifact:
    """A built object, executable or library with the command and log that made it, in the build cache."""

    path: Path
    key: str
    command: tuple[str, ...]
    log: str = ""
