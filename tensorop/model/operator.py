"""An operator, as its folder describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

from pydantic import Field, StrictInt

from tensorop.model.contract import Contract
from tensorop.model.kernel import Constraint, Source
from tensorop.model.point import Value
from tensorop.model.record import Count, record
from tensorop.model.shape import Shape, Shapes
from tensorop.model.trial import Stage

# The parts of a search, in their order: those that make trials, then what is measured in the library.
STAGES = (*Stage, "side-by-side", "probes", "robust")
NEEDED = (Stage.MICRO, Stage.BLOCKING)


@dataclass(frozen=True)
class Tunables:
    """Names with values, and what legal combinations satisfy. Expressions may use the platform's facts."""

    values: Mapping[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    # By name where searches begin, for each choice of the two-valued ones; others begin at the operator's default.
    prior: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)  # likewise, for one more blocking of the best kernel


@record
class Direct:
    """What the template `direct` serves. It is searched on the suite's shapes."""

    suite: str
    always: Annotated[Count, Field(le=1 << 20)]  # flops: problems up to this without a choice
    serves: str  # where it may be chosen: over features that are no expressions themselves, and the platform's facts
    unasked: Annotated[Count, Field(le=1 << 20)] = 0  # flops: up to this where it is hardly ever worse; 0: `always`


@record
class Costs:
    """What a variant's time is made of: expressions over features, its numbers and the platform's facts."""

    where: Mapping[str, str] = field(default_factory=dict)  # names for the terms; each may use those before it
    terms: Mapping[str, str] = field(default_factory=dict)
    absent: Mapping[str, StrictInt] = field(default_factory=dict)  # the values of tunables that a template lacks


@dataclass(frozen=True)
class Operator:
    """operator.yaml with its reference.py loaded."""

    name: str
    description: str
    folder: Path
    shapes: Shapes  # dimensions, attributes, how they are written
    dtypes: tuple[str, ...]
    stages: tuple[str, ...]  # the parts of its search, in order
    layouts: tuple[Mapping[str, Value], ...]
    seen: tuple[str, ...]  # names of `Contract.features`, in its order; the library's own C computes these too
    derived: Mapping[str, str]  # more that dispatch may split on: expressions over those, read in Python and in C
    costs: Costs  # terms of a variant's cost model; without any the dispatch knows what was measured alone
    micro: Mapping[str, str]  # dims of a micro-kernel's problem: expressions over a point and the platform's facts
    micro_layout: Mapping[str, Value]
    blocking: Tunables  # the second stage's tunables
    runtime: tuple[str, ...]  # those of them that a candidate takes with each call, after the dims, without a new build
    defaults: Mapping[str, str]  # of blocking tunables, for the first stage
    suites: Mapping[str, tuple[Shape, ...]]  # named lists of shapes, the usual one first
    probes: tuple[Shape, ...]  # measured beside a suite, so that the dispatch knows more than the suite's shapes
    clock_probes: tuple[Shape, ...]  # more of them on a real clock
    direct: Direct | None  # what the template `direct` serves, where the folder has it
    against: tuple[str, ...]  # its usual baselines
    baselines: Mapping[str, str]  # by name its own ones over a library, with the interface that each needs of it
    reference: Contract  # the operator's own code
    uses: tuple[Path, ...] = ()  # folders of operators whose templates serve where it has none of the name
    added: Mapping[str, Path] = field(default_factory=dict)  # templates of plug-in folders, before its own
    numbers: tuple[str, ...] = ()  # templates see them beside their tunables: sizes of the tile they are rendered for

    @property
    def slots(self) -> Source:
        """The header that names a call's slots, beside what is compiled of this operator."""
        return Source((("slots.h", self.reference.slots(self.runtime)),))

    @property
    def templates(self) -> tuple[Path, ...]:
        """Where its templates are, its own folder first."""
        return self.folder, *self.uses

    @property
    def features(self) -> dict[str, str]:
        """All of them, each with its expression over those that are seen."""
        return {**{name: name for name in self.seen}, **self.derived}

    @property
    def dims(self) -> tuple[str, ...]:
        return self.shapes.dims

    @property
    def usual(self) -> str:
        """The suite that is meant where none is named."""
        return next(iter(self.suites))

    @property
    def example(self) -> str:
        """A shape as it is written."""
        plain = not self.shapes.attributes and not self.shapes.rules
        return self.shapes.text((64,) * len(self.dims) if plain else self.suites[self.usual][0])
