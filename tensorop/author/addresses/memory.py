"""Checks memory accesses: each must be proved to be inside its operand."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tensorop.author.addresses.linear import ONE, ZERO, Poly, symbol
from tensorop.author.addresses.path import Path
from tensorop.author.addresses.symbols import Symbols
from tensorop.author.addresses.values import Data, Ptr, Value, spelled
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken, Refusal

_MOST_CASES = 64  # combinations of choices that one access may depend on
Places = Sequence[tuple[Poly, Poly]]  # the count of elements and their distance, by dimension


class Memory:
    """Checks reads and writes."""

    def __init__(self, symbols: Symbols) -> None:
        self._symbols = symbols

    def loaded(self, path: Path, at: Ptr) -> Value:
        self.reach(path, at, (), writes=False)
        return Data.NUMBER if at.operand.stars == 1 else Ptr(at.operand.pointed, ZERO, at.type)

    def near(self, path: Path, *offsets: Poly | None) -> None:
        """Refuses the address of an element that depends on a quotient which is 0 for all sizes that are verified."""
        of = self._symbols
        if not path.checked or of.places:
            return
        for name in [name for poly in offsets if poly is not None for name in poly.symbols & of.quotients.keys()]:
            if (least := of.least(name)) > of.most:
                raise Broken("division", f"an element's address depends on {name}, which is 0 for sizes below {least}")

    def reach(self, path: Path, at: Ptr, places: Places, *, writes: bool, some: bool = False) -> None:
        """Refuses an access that may leave its operand. some: counts may be 0; there is no access then."""
        if not path.checked:
            return
        offset, counts = at.offset or ZERO, tuple(count for count, _ in places)
        try:
            # A copy if counts may be 0, since such an access writes nothing.
            self._reach_once(path.under([count - ONE for count in counts]) if some else path, at, places, writes)
        except Refusal:  # each value of a choice alone may pass
            self._symbols.by_choice += 1
            cases = list(islice(self._symbols.cases_of((offset, *counts), ()), _MOST_CASES + 1))
            if at.offset is None or len(cases) in (1, _MOST_CASES + 1):
                raise
            for (offset, *counts_), facts in cases:
                facts = (*facts, *(count - ONE for count in counts_ if some))
                if not (under := path.under(facts)).excludes(facts):  # else the case is unreachable
                    apart = [(count, step) for count, (_, step) in zip(counts_, places, strict=True)]
                    self._reach_once(under, at._replace(offset=offset), apart, writes)

    def _reach_once(self, path: Path, at: Ptr, places: Places, writes: bool) -> None:
        operand = at.operand
        what = f"it {'writes' if writes else 'reads'} '{operand.name}'"
        if operand.dims is None:
            page = "docs/reference/template.md, 'What an operator says of its pointers'"
            raise Refusal(Guard.BOUNDS, f"{what}, whose size the operator's kernel.c.j2 does not state ({page})")
        if writes and (not operand.writes or operand.stars > 1):
            raise Refusal(Guard.BOUNDS, f"{what}, which is read-only; write only to C")
        if at.offset is None:
            how = "move a pointer by the same amount in each iteration, with a statement directly in the loop"
            raise Refusal(Guard.BOUNDS, f"{what} at an address that cannot be bounded; count in size_t, and {how}")
        if operand.flag and path.env.get(operand.flag) is Data.UNSET:
            if not writes:
                how = "declare it with '= {0}'"
                raise Refusal(Guard.LOCALS, f"'{operand.name}' may be read before it is written; {how}")
            whole = at.offset == ZERO and [one for _, one in places] == [ONE]
            if whole and path.prove(places[0][0] - operand.dims[0][0]):
                path.env[operand.flag] = Data.NUMBER
        self._inside(path, operand.dims, operand.room, at.offset, places, what)

    def _inside(
        self, path: Path, dims: Sequence[tuple[Poly, str]], room: Poly, offset: Poly, places: Places, what: str
    ) -> None:
        offset, extent, span = path.settled(offset), ONE, ONE
        counts: dict[str, Poly] = {}
        strided = {stride for _, stride in dims if stride and stride not in path.ones}
        for count, apart in places:
            apart, count = path.settled(apart), path.settled(count)
            names = [name for name in strided if apart == symbol(name)]
            if names and names[0] not in counts:
                counts[names[0]] = count
            else:
                span = span + (count - ONE) * apart
        for most, stride in dims:
            if stride not in strided:
                extent = extent + most - ONE
                continue
            split = offset.by(stride)
            if split is None:
                raise Refusal(Guard.BOUNDS, f"{what} at an offset with {stride} squared")
            factor, offset = split
            self._below(path, factor, counts.get(stride, ONE), most, what, f" times {stride}")
        if room != ZERO and places:
            self._below(path, offset, ONE, extent, what)
            extent = extent + room
        self._below(path, offset, span, extent, what)

    def _below(self, path: Path, place: Poly, count: Poly, extent: Poly, what: str, unit: str = "") -> None:
        if not path.prove(place):
            how = "count up from 0, or test before the access"
            raise Refusal(Guard.BOUNDS, f"{what} at {spelled(place)}{unit}, which is not proved to be 0 or more; {how}")
        end = place + count
        if not path.prove(extent - end):
            limit = f"which is not proved to be at most {spelled(extent)}"
            how = f"bound the loop (i + {spelled(count)} <= end), or load and store the rest with a tail"
            raise Refusal(Guard.BOUNDS, f"{what} up to {spelled(end)}{unit}, {limit}; {how}")
