"""The cost model of families that others wrote: over what their kernels did when they were executed on this machine.

An author's own model could claim any speed, so it is not used. `device/counted.yaml` of an operator has the terms.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tensorop.author import offline, parse
from tensorop.cuda.choose import Candidate
from tensorop.cuda.cost_file import cost_model
from tensorop.cuda.executed import COUNTERS, meanings
from tensorop.errors import JobError, SpecError
from tensorop.model.device import DeviceInterface, Key
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.store import records
from tensorop.store.journal import START_OVER, Journal

NOTE = "counted"  # the journal's note of a family's executed configurations
NAMES = tuple(f"{part}_{name}" for part in ("k", "end") for name in COUNTERS)
_Counted = dict[tuple[str, Key], dict[Point, Mapping[str, int]]]  # by digest and layout


@dataclass(frozen=True)
class CountedFamilies:
    """The families of others, and what a block of each executed configuration did."""

    templates: list[KernelTemplate] = field(default_factory=list)  # their model is the operator's
    found: _Counted = field(default_factory=dict)

    def of(self, template: KernelTemplate, key: Key) -> Mapping[Point, Mapping[str, int]] | None:
        """The counts of a template's configurations in a layout; None for a shipped template, which needs none."""
        if template.author in offline.AUTHORS:
            return None
        return self.found.get((template.digest, key), {})

    def add(self, one: Candidate, counts: Mapping[str, int]) -> dict[str, Any]:
        """Adds the counts of a configuration; a row of the journal's note of them."""
        point = one.family.early(one.point)
        self.found.setdefault((one.template.digest, one.key), {})[point] = dict(counts)
        return {"layout": list(one.key), "point": dict(point), "counts": dict(counts)}

    def record(self, one: Candidate) -> dict[str, Any]:
        """A variant's counts, for the manifest; empty for a shipped template."""
        counts = self.of(one.template, one.key)
        return {"counted": dict(counts[one.family.early(one.point)])} if counts else {}


def modelled(template: KernelTemplate, operator: Operator) -> KernelTemplate:
    """The template with the operator's cost model in place of its own."""
    return replace(template, model=cost_model(operator).model)


def of_journal(journal: Journal, templates: Sequence[KernelTemplate], operator: Operator) -> CountedFamilies:
    """The families among a job's templates, with their counts in its journal. Raises JobError for a damaged note."""
    found = CountedFamilies([modelled(one, operator) for one in templates if one.author not in offline.AUTHORS])
    try:
        for data in (data for name, data in journal.history.notes if name == NOTE):
            for row in data["rows"]:
                key = str(data["template"]), tuple(map(int, row["layout"]))
                counts = {name: int(row["counts"][name]) for name in NAMES}
                found.found.setdefault(key, {})[records.point_of(row["point"])] = counts
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobError(f"{journal.path}: its note '{NOTE}' is invalid: {error}", hint=START_OVER) from error
    return found


def to_records(templates: Iterable[KernelTemplate]) -> list[dict[str, Any]]:
    return [records.template_record(template) for template in templates]


def of_product(part: Mapping[str, Any], operator: Operator) -> tuple[KernelTemplate, ...]:
    """The templates of others in a product. part: the operator's part of its manifest, which may be untrusted text.

    Raises SpecError, KeyError, ValueError or TypeError for one that no author could have written.
    """
    found = tuple(modelled(records.template_of(one), operator) for one in part["facts"].get("templates", ()))
    for template in found:
        if template.author in offline.AUTHORS:
            raise SpecError(f"template '{template.name}' is not one of a product's own")
        parse.check(template)
    return found


def of_variants(part: Mapping[str, Any], call: DeviceInterface) -> _Counted:
    """The counts in a product's manifest, by whole points. Raises as `of_product`."""
    found: _Counted = {}
    for of_dtype in part["dtypes"].values():
        for one in of_dtype["variants"]:
            if "counted" in one:
                counts = {name: int(one["counted"][name]) for name in NAMES}
                key = (str(one["digest"]), call.key(one))
                found.setdefault(key, {})[Point.of(one["point"])] = counts
    return found


def missing(platform: Platform) -> str:
    """Why a platform has no author; empty if it has one."""
    lacking = [one.name for one in platform.primitives if meanings(one) is None]
    return f"nothing executes the primitives of {', '.join(lacking)} on a processor" if lacking else ""
