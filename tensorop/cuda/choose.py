"""Chooses a library's few configurations: together they have the lowest predicted cost on a job's shapes."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tensorop.cuda.family import Column, Counted, Family
from tensorop.errors import JobError
from tensorop.model.device import DeviceInterface, Key
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Point, Value

COPY_CYCLES = 3000  # of a launch that copies operands to aligned rows, besides the time of the moved bytes
LEAST_GAIN = 0.005  # share of the geometric mean that one more variant must gain before seeds are taken,
LATER_GAIN = 0.0005  # and after them
HOPED = 0.1  # how much faster than the model says a seed may be (logarithm)
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
    def key(self) -> Key:
        """The layout that its kernel computes."""
        return self.family.call.key(self.numbers)

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

    call: DeviceInterface
    key: Key
    parts: tuple[ServingFamily, ...]

    @staticmethod
    def of(
        call: DeviceInterface,
        templates: Sequence[KernelTemplate],
        device: Mapping[str, int],
        key: Key,
        counted: Callable[[KernelTemplate, Key], Counted | None] = lambda template, key: None,
    ) -> Layout:
        """counted: what the configurations of templates did that others wrote"""
        parts = []
        for template in templates:
            counts = counted(template, key)
            if counts is not None and not counts:
                continue
            here = Family(call, template, {**device, **call.named(key)}, counts)
            swaps = here.grid.get("swap", np.zeros(here.size))
            parts.append(ServingFamily(here, np.flatnonzero(swaps == 0)))
            if swaps.any():
                across = Family(call, template, {**device, **call.named(call.across(key))})
                parts.append(ServingFamily(across, np.flatnonzero(across.grid["swap"] != 0)))
        return Layout(call, key, tuple(part for part in parts if part.numbers.size))

    @property
    def element(self) -> int:
        """The bytes of an element of the inputs."""
        return self.parts[0].family.given["in_size"]

    def candidate(self, place: int) -> Candidate:
        """The candidate at a place in the result of `costs`."""
        for part in self.parts:
            if place < part.numbers.size:
                return Candidate(part.family, int(part.numbers[place]))
            place -= part.numbers.size
        raise IndexError(place)

    @cached_property
    def kernels(self) -> NDArray[np.intp]:
        """A number of each candidate's kernel; candidates that only the launch tells apart have one."""
        families = list(dict.fromkeys(id(part.family) for part in self.parts))
        each = [
            part.family.kernels[part.numbers] * len(families) + families.index(id(part.family)) for part in self.parts
        ]
        return np.concatenate(each)

    def alike(self, place: int) -> list[int]:
        """The places of all candidates with the same kernel as this one."""
        return [int(at) for at in np.flatnonzero(self.kernels == self.kernels[place])]

    def costs(self, *sizes: int) -> Column:
        """Predicted cycles of a problem with contiguous rows, by candidate; infinite if a candidate cannot serve it."""
        call, size_of = self.call.numbers(sizes), self.element
        unaligned = []  # operands whose rows begin off 16 bytes: with the bytes of a row, and the number of elements
        for one in self.call.operands.values():
            rows, cols = self.call.sides(one, {**call, **self.call.named(self.key)})
            if one.align and cols * size_of % 16:
                unaligned.append((one, cols * size_of, rows * cols * self.call.repeats(call)))
        found = []
        for part in self.parts:
            cycles = part.family.predicted(call)[part.numbers]
            copies = part.family.template.reads["operands"] == "maps"  # only for these the library can copy operands
            wide = [(one.copied and copies, size, row % part.column(one.align) != 0) for one, row, size in unaligned]
            moved = sum((size * size_of * of for copied, size, of in wide if copied), np.zeros(1, dtype=np.int64))
            if moved.any():
                copying = moved * 2 // part.family.given["memory_a_cycle"] + COPY_CYCLES
                cycles = cycles + np.where(moved > 0, copying, 0)
            refused = np.logical_or.reduce([of for copied, _, of in wide if not copied] or [np.zeros(1, dtype=bool)])
            served = part.family.served(call)[part.numbers] != 0
            found.append(np.where(refused | ~served, np.inf, cycles))
        return np.concatenate(found)

    def universal(self) -> NDArray[np.bool_]:
        """Whether each candidate serves every alignment without a copy."""
        names = {one.align for one in self.call.operands.values() if one.align}
        each = [
            np.logical_and.reduce([part.column(name) <= self.element for name in names], initial=True)
            & (part.numbers >= 0)
            for part in self.parts
        ]
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
        """The places of candidates that have at most `most` kernels, and of at most twice as many candidates.

        The first one serves every alignment. Each further one lowers the mean cost most. Then, since the model can be
        wrong, follow the families' seeds, others that lower the mean cost most, and for each shape the best candidate
        with a new kernel.
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

        def full() -> bool:
            return len({int(self.kernels[place]) for place in found}) >= most

        def lower(best: Column, least: float) -> Column:
            while len(found) < 2 * most:
                means = np.minimum(costs, best[:, None]).mean(axis=0)
                if full():
                    means[~np.isin(self.kernels, self.kernels[found])] = np.inf
                place = int(np.argmin(means))
                if best.mean() - means[place] < least:
                    break
                found.append(place)
                best = np.minimum(best, costs[:, place])
            return best

        best = lower(best, LEAST_GAIN)
        hoped = best
        left = [place for place in self.seeds() if place not in failed and not {*self.alike(place)} & {*found}]
        while left and not full():  # first the one that helps most if it is faster than the model says
            means = np.minimum(costs[:, left] - HOPED, hoped[:, None]).mean(axis=0)
            found.append(left.pop(int(np.argmin(means))))
            best = np.minimum(best, costs[:, found[-1]])
            hoped = np.minimum(hoped, costs[:, found[-1]] - HOPED)
        lower(best, LATER_GAIN)
        for place in found:
            costs[:, self.alike(place)] = np.inf
        while not full() and np.isfinite(costs).any():
            for row in costs:
                if not full() and np.isfinite(row).any():
                    found.append(int(np.argmin(row)))
                    costs[:, self.alike(found[-1])] = np.inf
        return found
