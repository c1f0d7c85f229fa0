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
    """Names with values, and what legal combinations satisfy; expressions may use the platform's facts.

    prior: by name where searches begin, for each choice of the two-valued ones; the others' is the operator's default
    beside: by name what `prior` is replaced by where one more blocking of the best kernel begins
    """

    values: Mapping[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]
    prior: Mapping[str, str] = field(default_factory=dict)
    beside: Mapping[str, str] = field(default_factory=dict)


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
    """operator.yaml with its reference.py loaded.

    shapes: dimensions, attributes, how they are written
    stages: the parts of its search, in order
    seen: names of `Contract.features`, in its order, which the library's own C computes too
    derived: further features that dispatch may split on: expressions over those, read in Python and in C alike
    costs: the terms of a variant's cost model; without any, the dispatch knows only what was measured
    micro: dims of the first stage's problem, expressions over a point and the platform's facts
    blocking: the second stage's tunables, with defaults for the first
    numbers: what templates see as numbers beside their tunables: sizes of the tile they are rendered for
    runtime: those of them that a candidate takes with each call, after the dims; they need no new build
    suites: named lists of shapes, the usual one first
    probes: shapes a search for a suite measures beside it, so that the dispatch knows more than the suite's own
    clock_probes: more of them on a real clock
    direct: which problems the template `direct` serves, where the folder has it
    against: its usual baselines; baselines: by name its own ones over a library, with the interface each wants of it
    added: templates of plug-in folders, by name, beside those of its own folder; one of the same name replaces it
    reference: the operator's own code; uses: folders of operators whose templates serve where it has none of the name
    """

    name: str
    description: str
    folder: Path
    shapes: Shapes
    dtypes: tuple[str, ...]
    stages: tuple[str, ...]
    layouts: tuple[Mapping[str, Value], ...]
    seen: tuple[str, ...]
    derived: Mapping[str, str]
    costs: Costs
    micro: Mapping[str, str]
    micro_layout: Mapping[str, Value]
    blocking: Tunables
    runtime: tuple[str, ...]
    defaults: Mapping[str, str]
    suites: Mapping[str, tuple[Shape, ...]]
    probes: tuple[Shape, ...]
    clock_probes: tuple[Shape, ...]
    direct: Direct | None
    against: tuple[str, ...]
    baselines: Mapping[str, str]
    reference: Contract
    uses: tuple[Path, ...] = ()
    added: Mapping[str, Path] = field(default_factory=dict)
    numbers: tuple[str, ...] = ()

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
