"""Chooses a library's few configurations: together they have the lowest predicted cost on a job's shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tensorop.cuda.family import Column, Counted, Family
from tensorop.errors import JobError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Point, Value

LAYOUTS = ((0, 0), (0, 1), (1, 0), (1, 1))  # whether A is contiguous along M, and B along K
COPY_CYCLES = 3000  # of a launch that copies operands to aligned rows, besides the time of the moved bytes
LEAST_GAIN = 0.005  # share of the geometric mean that one more variant must gain
Shape = tuple[int, ...]


@dataclass(frozen=True)
class Candidate:
    """A configuration: a place in its family's grid."""

    family: Family
    number: int

    @property
    def template(self) -> KernelTemplate:
        return self.family.template

    @cached_property
    def point(self) -> Point:
        return self.family.point(self.number)

    @cached_property
    def numbers(self) -> dict[str, Value]:
        return self.family.numbers(self.number)

    @property
    def label(self) -> str:
        return f"{self.template.name} {self.point}"


@dataclass(frozen=True)
class ServingFamily:
    """Configurations of a family that serve a layout. If they swap operands, the family has the swapped layout."""

    family: Family
    numbers: NDArray[np.intp]

    def column(self, name: str) -> Column:
        return np.asarray(self.family.grid[name][self.numbers], dtype=np.float64)


@dataclass(frozen=True)
class Layout:
    """All configurations that serve problems of one layout."""

    a_along_m: int
    b_along_k: int
    parts: tuple[ServingFamily, ...]

    @staticmethod
    def of(
        templates: Sequence[KernelTemplate],
        device: Mapping[str, int],
        a_along_m: int,
        b_along_k: int,
        counted: Callable[[KernelTemplate, int, int], Counted | None] = lambda template, a, b: None,
    ) -> Layout:
        """counted: what the configurations of templates did that others wrote"""
        parts = []
        for template in templates:
            counts = counted(template, a_along_m, b_along_k)
            if counts is not None and not counts:
                continue
            here = Family(template, {**device, "a_along_m": a_along_m, "b_along_k": b_along_k}, counts)
            swaps = here.grid.get("swap", np.zeros(here.size))
            parts.append(ServingFamily(here, np.flatnonzero(swaps == 0)))
            if swaps.any():  # C' = B' A': operands stored along K stay so
                across = Family(template, {**device, "a_along_m": 1 - b_along_k, "b_along_k": 1 - a_along_m})
                parts.append(ServingFamily(across, np.flatnonzero(across.grid["swap"] != 0)))
        return Layout(a_along_m, b_along_k, tuple(part for part in parts if part.numbers.size))

    def candidate(self, place: int) -> Candidate:
        """The candidate at a place in the result of `costs`."""
        for part in self.parts:
            if place < part.numbers.size:
                return Candidate(part.family, int(part.numbers[place]))
            place -= part.numbers.size
        raise IndexError(place)

    def alike(self, place: int) -> list[int]:
        """The places of all candidates with the same kernel as this one."""
        one, found, first = self.candidate(place), [], 0
        for part in self.parts:
            if part.family is one.family:
                same = part.numbers // one.family.late == one.number // one.family.late
                found += [first + int(at) for at in np.flatnonzero(same)]
            first += part.numbers.size
        return found

    def costs(self, m: int, n: int, k: int, batch: int = 1) -> Column:
        """Predicted cycles of a problem with contiguous rows, by candidate; infinite if a candidate cannot serve it."""
        call = {"m": m, "n": n, "k": k, "batch": batch}
        unaligned_a = (m if self.a_along_m else k) % 8 != 0
        unaligned_b = (k if self.b_along_k else n) % 8 != 0
        moved = (m * k * unaligned_a + k * n * unaligned_b) * 2 * batch
        found = []
        for part in self.parts:
            cycles = part.family.predicted(call)[part.numbers]
            if moved:
                copying = moved * 2 // part.family.given["memory_a_cycle"] + COPY_CYCLES
                cycles = cycles + copying * (part.column("align_ab") > 2)
            found.append(np.where((part.column("align_c") > 2) & (n % 8 != 0), np.inf, cycles))
        return np.concatenate(found)

    def universal(self) -> NDArray[np.bool_]:
        """Whether each candidate serves every alignment without a copy."""
        each = [(part.column("align_ab") <= 2) & (part.column("align_c") <= 2) for part in self.parts]
        return np.concatenate(each)

    def seeds(self) -> list[int]:
        """The places of the families' legal seed configurations, in each family's order."""
        found, first, names = [], 0, [part.family.template.name for part in self.parts]
        for part in self.parts:
            grid = part.family.grid
            template = part.family.template
            for rank, seed in enumerate(template.seed_configurations):
                same = np.logical_and.reduce([grid[name][part.numbers] == value for name, value in dict(seed).items()])
                found += [(names.index(template.name), rank, first + int(at)) for at in np.flatnonzero(same)[:1]]
            first += part.numbers.size
        return [place for _, _, place in sorted(found)]

    def chosen(self, shapes: Sequence[Shape], most: int, failed: Collection[int] = ()) -> list[int]:
        """The places of at most `most` candidates.

        The first one serves every alignment. Each further one lowers the mean cost most. Then, since the model can be
        wrong, follow the families' seeds, and for each shape the best candidate with a new kernel.
        failed: places that must not be chosen. Raises JobError if no candidate serves every alignment.
        """
        costs = np.log(np.array([self.costs(*shape) for shape in shapes]))
        costs[:, list(failed)] = np.inf
        first = np.where(self.universal(), costs.sum(axis=0), np.inf)
        found = [int(np.argmin(first))]
        if not np.isfinite(first[found[0]]):
            raise JobError(
                "no kernel for unaligned operands could be built, and a library needs one", hint="see the errors above"
            )
        best = costs[:, found[0]]
        while len(found) < most:
            means = np.minimum(costs, best[:, None]).mean(axis=0)
            place = int(np.argmin(means))
            if best.mean() - means[place] < LEAST_GAIN:
                break
            found.append(place)
            best = np.minimum(best, costs[:, place])
        for place in self.seeds():
            if len(found) < most and place not in failed and not {*self.alike(place)} & {*found}:
                found.append(place)
        for place in found:
            costs[:, self.alike(place)] = np.inf
        while len(found) < most and np.isfinite(costs).any():
            for row in costs:
                if len(found) < most and np.isfinite(row).any():
                    found.append(int(np.argmin(row)))
                    costs[:, self.alike(found[-1])] = np.inf
        return found
