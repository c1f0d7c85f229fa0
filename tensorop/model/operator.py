"""An operator, read from its folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from tensorop import paths
from tensorop.errors import UsageError
from tensorop.model.contract import Contract
from tensorop.model.device import DeviceInterface
from tensorop.model.expression import parse
from tensorop.model.interface import Interface
from tensorop.model.kernel import Constraint, Source
from tensorop.model.point import Value
from tensorop.model.record import Count, record
from tensorop.model.shape import Shape, Shapes
from tensorop.model.trial import Stage

# The parts of a search, in order: first those that make trials, then measurements in the library.
STAGES = (*(stage for stage in Stage if stage is not Stage.KERNELS), "side-by-side", "probes", "robust")
NEEDED = (Stage.MICRO, Stage.BLOCKING)

# What may follow a product in its call, in the order of its steps; the last three are activations.
Steps = tuple[Literal["scale_rows", "scale_columns", "bias", "residual", "relu", "gelu", "silu"], ...]

DRIVER = "driver.c.j2"  # an operator's template: the loops around a kernel


@dataclass(frozen=True)
class Tunables:
    """Tunables with their values and constraints. Expressions may use the platform's facts."""

    values: Mapping[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]


@record
class Direct:
    """The problems of the template `direct`."""

    suite: str  # its search uses the shapes of this suite
    always: Annotated[Count, Field(le=1 << 20)]  # flops up to which it always serves, without a choice
    serves: str  # condition for choosing it: an expression over plain features and the platform's facts
    # flops up to which it may always serve if models predict hardly any loss; 0: `always`
    unasked: Annotated[Count, Field(le=1 << 20)] = 0


@record
class Costs:
    """Terms of a variant's time: expressions over features, the variant's numbers and the platform's facts."""

    where: Mapping[str, str] = field(default_factory=dict)  # names for use in terms; each may use earlier ones
    terms: Mapping[str, str] = field(default_factory=dict)


@record
class Routine:
    """A function that computes some of the operator's problems, for libraries with a given interface."""

    interface: str  # the interface by which the operator's adapter calls these libraries
    where: str  # the problems that it computes: a condition on their dimensions and attributes

    def serves(self, sizes: Mapping[str, int]) -> bool:
        """Whether it computes a problem of these sizes; False where the condition divides by zero."""
        try:
            return bool(parse(self.where, dict.fromkeys(sizes, int)).value(sizes))
        except ZeroDivisionError:
            return False


@record
class Threads:
    """How a generated dispatch divides a call among threads."""

    dim: str  # each thread has a part of it; the first side of every operand that depends on it
    work: str  # multiply-adds of a call: an expression over dimensions, attributes and flags


@dataclass(frozen=True)
class Operator:
    """operator.yaml with the loaded reference.py."""

    name: str
    description: str
    folder: Path
    shapes: Shapes  # dimensions, attributes, and their notation
    dtypes: tuple[str, ...]
    stages: tuple[str, ...]  # the parts of its search, in order
    layouts: tuple[Mapping[str, Value], ...]  # options of problems; results are reported in the first
    seen: tuple[str, ...]  # names of `Contract.features`, in its order; the library's C computes these too
    derived: Mapping[str, str]  # further features for dispatch: expressions over `seen`, evaluated in Python and in C
    costs: Costs  # terms of the variants' cost model, beside those that all operators share
    micro: Mapping[str, str]  # dims of a micro-kernel's problem: expressions over a point and the platform's facts
    micro_layout: Mapping[str, Value]
    blocking: Tunables  # the second stage's tunables
    runtime: tuple[str, ...]  # blocking tunables that are dims of each call, so that they need no new build
    named: tuple[str, ...]  # those that a kernel template may name, which is then built for each of their values
    defaults: Mapping[str, str]  # of blocking tunables, for the first stage
    starts: tuple[
        Mapping[str, str], ...
    ]  # blockings by the caches' sizes, which a search tries first; the last in place
    streams: str  # tunable that says how many streams of an operand in place a kernel reads; empty: none does
    suites: Mapping[str, tuple[Shape, ...]]  # named lists of shapes, the usual one first
    probes: tuple[Shape, ...]  # shapes measured in addition to a suite, for the dispatch
    clock_probes: tuple[Shape, ...]  # further such shapes on a real clock
    classes: Mapping[str, str]  # kinds of problems: the first true expression over `features`; none: by size
    direct: Direct | None  # problems of the template `direct`, if the folder has it
    against: tuple[str, ...]  # its default baselines
    peers: tuple[str, ...]  # more baselines for jobs on this machine, which leave out those that need a download
    baselines: Mapping[str, str]  # its own baselines on top of a library: name -> interface that the library must have
    routines: Mapping[str, Routine]  # by the interface that its adapter has for the function
    reference: Contract  # the operator's own code
    uses: tuple[Path, ...] = ()  # folders of operators whose files it uses if it has none of the name
    kernels_of: Operator | None = None  # the operator of these folders, on whose terms shipped kernels are tried alone
    # name -> file of templates from `uses` and plug-in folders; they replace its own
    added: Mapping[str, Path] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()  # names for templates in addition to their tunables: sizes of the rendered tile
    threads: Threads | None = None  # None: a generated dispatch uses one thread
    epilogue: Steps = ()  # some of Steps, in their order
    device: DeviceInterface | None = None  # its calls on GPUs; None: it has no products for them
    extension: Path | None = None  # the folder of an operator that `extends` the one of `folder`: its product is larger

    @property
    def on_device(self) -> DeviceInterface:
        """Raises UsageError for an operator without products for GPUs."""
        if self.device is None:
            message = f"operator '{self.name}' has no GPU kernels: its operator.yaml has no section `device:`"
            raise UsageError(message, hint="use another operator, or a CPU platform")
        return self.device

    @property
    def slots(self) -> Source:
        """The header slots.h with names of a call's slots, for all C of this operator."""
        return Source((("slots.h", self.reference.slots(self.runtime)),))

    @property
    def prompts(self) -> tuple[Path, ...]:
        """Folders of the prompts for processors; those of `uses` too if its own says how its driver calls a kernel."""
        own = self.folder / "prompts"
        used = [folder / "prompts" for folder in self.uses]
        return (own, *used) if (own / "driver.md.j2").is_file() else (own,)

    @property
    def templates(self) -> tuple[Path, ...]:
        """Folders of its templates, its own folder first."""
        return self.folder, *self.uses

    @property
    def parts(self) -> tuple[Path, ...]:
        """Folders of its templates and of the generated parts, which it has where it has no file of the name.

        Around a driver of its own it has generated parts rather than those of `uses`, whose operands are others.
        """
        own = (self.extension, self.folder) if self.extension else (self.folder,)
        generated = (paths.generated_dir(),)
        return (*own, *generated, *self.uses) if (self.folder / DRIVER).is_file() else (*own, *self.uses, *generated)

    @cached_property
    def interface(self) -> Interface:
        """The terms of the generated parts."""
        return Interface.of(self)

    @property
    def features(self) -> dict[str, str]:
        """Name -> expression over `seen`, for all features."""
        return {**{name: name for name in self.seen}, **self.derived}

    @property
    def dims(self) -> tuple[str, ...]:
        return self.shapes.dims

    @property
    def usual(self) -> str:
        """Name of the default suite."""
        return next(iter(self.suites))

    @property
    def example(self) -> str:
        """A shape in the operator's notation, for messages."""
        plain = not self.shapes.attributes and not self.shapes.rules
        return self.shapes.text((64,) * len(self.dims) if plain else self.suites[self.usual][0])
