"""Checks memory accesses: each must be proved to be inside its operand."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tensorop.author.addresses.knowledge import Knowledge, Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Poly, symbol
from tensorop.author.addresses.values import Data, OperandMemory, Ptr, State, Value, nowhere, spelled
from tensorop.author.gate import Guard

_MOST_CASES = 64  # combinations of choices that one access may depend on


class Memory(Knowledge):
    """Checks reads and writes."""

    def _loaded(self, state: State, value: Value) -> Value:
        if not isinstance(value, Ptr) or value.type in self.addresses:
            raise Refusal(Guard.BOUNDS, "a value that is not a pointer is dereferenced")
        self._near(value.offset)
        self._reach(state, value, (), writes=False)
        if value.stars > 1:
            return Ptr(value.operand.of or nowhere(value), ZERO, value.type, value.stars - 1)
        return Data.NUMBER

    def _reach(
        self, state: State, at: Ptr, places: Sequence[tuple[Poly, Poly]], *, writes: bool, some: bool = False
    ) -> None:
        """Refuses an access that may leave its operand.

        places: the count of elements and their distance, by dimension
        some: counts may be 0; there is no access then
        """
        if self.trusted:
            return
        offset, counts = at.offset or ZERO, tuple(count for count, _ in places)
        try:
            # A copy if counts may be 0, since such an access writes nothing.
            under = self._with(state, [count - ONE for count in counts]) if some else state
            self._reach_once(under, at, places, writes)
        except Refusal:  # each value of a choice alone may pass
            self.by_choice += 1
            cases = list(islice(self._cases_of((offset, *counts), (), ()), _MOST_CASES + 1))
            if at.offset is None or len(cases) in (1, _MOST_CASES + 1):
                raise
            for (offset, *counts_), facts in cases:
                facts = (*facts, *(count - ONE for count in counts_ if some))
                under = self._with(state, facts)
                if any(self._prove(under, ZERO - fact - ONE) for fact in facts):
                    continue  # the case is unreachable
                apart = [(count, step) for count, (_, step) in zip(counts_, places, strict=True)]
                self._reach_once(under, at._replace(offset=offset), apart, writes)

    def _with(self, state: State, facts: Iterable[Poly]) -> State:
        return State(dict(state.env), state.facts.known(self._known(fact, state) for fact in facts), state.ones)

    def _cases_of(
        self, polys: tuple[Poly, ...], facts: tuple[Poly, ...], links: tuple[Poly, ...]
    ) -> Iterator[tuple[tuple[Poly, ...], tuple[Poly, ...]]]:
        """The polynomials and facts for each combination of the choices in them."""
        names = {name for poly in (*polys, *facts) for name in poly.symbols} & self.choices.keys()
        if not names:
            yield polys, (*facts, *links)
            return
        name = max(names, key=lambda one: int(one.partition("#")[2]))
        made, cases = self.choices[name]
        for known, value in cases:
            by = value + symbol(name) - made
            replaced = tuple(fact.replaced(name, by) for fact in (*facts, *known))
            again = tuple(poly.replaced(name, by) for poly in polys)
            yield from self._cases_of(again, replaced, (*links, made - value, value - made))

    def _reach_once(self, state: State, at: Ptr, places: Sequence[tuple[Poly, Poly]], writes: bool) -> None:
        operand = at.operand
        verb = "writes" if writes else "reads"
        if operand.dims is None:
            raise Refusal(
                Guard.BOUNDS,
                f"it {verb} '{operand.name}', whose size the operator's kernel.c.j2 does not state "
                "(docs/reference/template.md, 'What an operator says of its pointers')",
            )
        if (at.type, at.stars) != (operand.type, operand.stars):
            raise Refusal(
                Guard.BOUNDS,
                f"it {verb} '{operand.name}' as {at.type}; access this memory only as {operand.type}",
            )
        if writes and (not operand.writes or operand.stars > 1):
            raise Refusal(Guard.BOUNDS, f"it writes '{operand.name}', which is read-only; write only to C")
        if at.offset is None:
            raise Refusal(
                Guard.BOUNDS,
                f"it {verb} '{operand.name}' at an address that cannot be bounded; count in size_t, and move a "
                "pointer by the same amount in each iteration, with a statement directly in the loop",
            )
        if operand.flag and state.env.get(operand.flag) is Data.UNSET:
            size = operand.dims[0][0]
            if not writes:
                raise Refusal(
                    Guard.LOCALS,
                    f"'{operand.name}' may be read before it is written; declare it with '= {{0}}'",
                )
            if (
                len(places) == 1
                and places[0][1] == ONE
                and at.offset == ZERO
                and self._prove(state, places[0][0] - size)
            ):
                state.env[operand.flag] = Data.NUMBER
        self._inside(state, operand, at.offset, places, verb)

    def _inside(
        self, state: State, operand: OperandMemory, offset: Poly, places: Sequence[tuple[Poly, Poly]], verb: str
    ) -> None:
        offset = self._known(offset, state)
        assert operand.dims is not None
        extent = ONE
        counts: dict[str, Poly] = {}
        span = ONE
        strided = {stride for _, stride in operand.dims if stride and stride not in state.ones}
        for count, apart in places:
            apart, count = self._known(apart, state), self._known(count, state)
            names = [name for name in strided if apart == symbol(name)]
            if names and names[0] not in counts:
                counts[names[0]] = count
            else:
                span = span + (count - ONE) * apart
        for most, stride in operand.dims:
            if stride not in strided:
                extent = extent + most - ONE
                continue
            split = offset.by(stride)
            if split is None:
                raise Refusal(Guard.BOUNDS, f"it {verb} '{operand.name}' at an offset with {stride} squared")
            factor, offset = split
            self._below(state, factor, counts.get(stride, ONE), most, f"{verb} '{operand.name}'", f" times {stride}")
        if operand.room != ZERO and places:
            self._below(state, offset, ONE, extent, f"{verb} '{operand.name}'", "")
            extent = extent + operand.room
        self._below(state, offset, span, extent, f"{verb} '{operand.name}'", "")

    def _below(self, state: State, place: Poly, count: Poly, extent: Poly, what: str, unit: str) -> None:
        if not self._prove(state, place):
            raise Refusal(
                Guard.BOUNDS,
                f"it {what} at {spelled(place)}{unit}, which is not proved to be 0 or more; count up from 0, or "
                "test before the access",
            )
        end = place + count
        if not self._prove(state, extent - end):
            raise Refusal(
                Guard.BOUNDS,
                f"it {what} up to {spelled(end)}{unit}, which is not proved to be at most {spelled(extent)}; "
                f"bound the loop (i + {spelled(count)} <= end), or load and store the rest with a tail",
            )
