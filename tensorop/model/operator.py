"""An operator, as its folder describes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tensorop.model.kernel import Constraint
from tensorop.model.point import Value


@dataclass(frozen=True)
class Tunables:
    """Names with values, and what legal combinations satisfy; expressions may use the platform's facts."""

    values: Mapping[str, tuple[Value, ...]]
    constraints: tuple[Constraint, ...]


@dataclass(frozen=True)
class Operator:
    """operator.yaml with its reference.py loaded.

    dims: names in order; features: expressions over dims and layout that dispatch may split on
    micro: dims of the first stage's problem, expressions over a point and the platform's facts
    blocking: the second stage's tunables, with defaults for the first
    at_call: those of them that a candidate takes with each call, after the dims; they need no new build
    suites: named lists of shapes
    probes: shapes a search for a suite measures beside it, so that the dispatch knows more than the suite's own
    api: calling interface of baselines in adapter.c
    reference: the module of templates/<op>/reference.py (oracle, grids, work)
    """

    name: str
    description: str
    folder: Path
    dims: tuple[str, ...]
    dtypes: tuple[str, ...]
    layouts: tuple[Mapping[str, Value], ...]
    features: Mapping[str, str]
    micro: Mapping[str, str]
    micro_layout: Mapping[str, Value]
    blocking: Tunables
    at_call: tuple[str, ...]
    defaults: Mapping[str, str]
    suites: Mapping[str, tuple[tuple[int, ...], ...]]
    probes: tuple[tuple[int, ...], ...]
    api: str
    reference: ModuleType
