"""Arithmetic on integers, addresses and data."""

from __future__ import annotations

from collections.abc import Iterable

from tensorop.author.addresses.knowledge import Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.memory import Memory
from tensorop.author.addresses.values import (
    INT,
    LARGEST,
    SIGNED_SIZE,
    SIZE,
    TYPES,
    Data,
    Int,
    PartialVector,
    Pred,
    Ptr,
    State,
    Value,
    Ways,
    common,
    limits_of,
    ring,
    spelled,
)  # fmt: skip
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken


class Arithmetic(Memory):
    """The results of operators and conversions."""

    def _as_int(self, value: Value) -> Int:
        match value:
            case Int():
                return value
            case Pred(count):
                if self.predicate in TYPES:
                    return Int(count, SIZE)
                raise Refusal(
                    Guard.BOUNDS, "a predicate is used as a number; use predicates only as arguments of primitives"
                )
            case Ptr():
                raise Refusal(Guard.BOUNDS, "an address is used as a number; use addresses only to access memory")
        raise Refusal(
            Guard.DATA,
            "an index, a count or another integer depends on loaded data; compute it from k, m, n, strides, lanes "
            "and counters",
        )

    def _computed(self, state: State, operator: str, a: Value, b: Value) -> Value:
        """The result of a binary operator. Raises Refusal if the operands do not allow it."""
        if isinstance(a, Ptr) or isinstance(b, Ptr):
            return self._pointer_computed(state, operator, a, b)
        if isinstance(a, (Data, PartialVector)) or isinstance(b, (Data, PartialVector)):
            moved = self.places and operator == ">>" and isinstance(b, Int)  # extracts an element from a word
            if Data.HALF in (a, b) or not (moved or operator in ("+", "-", "*")) or Data.NOTHING in (a, b):
                raise Refusal(
                    Guard.DATA,
                    f"'{operator}' is applied to loaded data; use only +, - and * on elements",
                )
            return PartialVector(ZERO) if isinstance(a, PartialVector) or isinstance(b, PartialVector) else Data.NUMBER
        x, y = self._as_int(a), self._as_int(b)
        kind = common(x.type, y.type)
        if x.poly is None or y.poly is None:
            return Int(None, kind)
        p, q = x.poly, y.poly
        if operator == "*":
            self._multiplied(state, p, q)
        if operator in ("+", "-", "*"):
            return Int(self._fit(state, ring(operator, p, q), kind), kind)
        by = self._known(q, state).constant
        if operator == "<<" and by is not None and 0 <= by < 32:
            kind = common(x.type, INT)
            return Int(self._fit(state, p * number(1 << by), kind), kind)
        if operator == ">>" and by is not None and 0 <= by < 32:
            operator, q, kind = "/", number(1 << by), common(x.type, INT)
        if operator in ("/", "%"):
            if not (self.trusted or self._within(state, q, 1, LARGEST)):
                raise Broken("division", f"the divisor {spelled(q)} is not proved to be at least 1")
            quotient = self._divided(state, x, p, q)
            if quotient is not None:
                return Int(quotient if operator == "/" else self._rest(state, p, q, quotient), kind)
        return Int(None, kind)

    def _divided(self, state: State, x: Int, p: Poly, q: Poly) -> Poly | None:
        """The quotient p / q if p >= 0 and q >= 1 are proved, else None."""
        p, q = self._known(p, state), self._known(q, state)
        for monomial in p.terms:
            self._product(state, monomial)
        if not (self._whole(state, Int(p, SIZE)) and self._within(state, q, 1, LARGEST)):
            return None
        if (of := p.constant) is not None and (by := q.constant) is not None:
            return number(of // by)
        name = self.quotient_of.get((p, q))
        if name is None:
            self.fresh += 1
            name = self.quotient_of[p, q] = f"q#{self.fresh}"
            self.quotients[name] = p, q
        whole = symbol(name)
        state.facts = state.facts.known([p - q * whole, q * whole + q - ONE - p, p - whole])
        if (by := q.constant) is not None and (highest := self._highest(p)) is not None:
            self.places.add(name)
            self.turns.add(name)
            self.highest[whole], self.highest[p - q * whole] = highest // by, min(highest, by - 1)
            state.facts = state.facts.known([number(highest // by) - whole])
        return whole

    def _rest(self, state: State, p: Poly, q: Poly, quotient: Poly) -> Poly:
        """The remainder p % q. For a thread's number and a constant it is a new symbol, as the thread's number is."""
        p, by = self._known(p, state), self._known(q, state).constant
        highest = self._highest(p)
        if by is None or highest is None:
            return p - quotient * q
        name = self.rest_of.setdefault((p, by), f"r#{len(self.rest_of)}")
        rest = symbol(name)
        self.places.add(name)
        self.turns.add(name)
        self.highest[rest] = min(highest, by - 1)
        whole = quotient * number(by) + rest
        state.facts = state.facts.known([p - whole, whole - p, number(self.highest[rest]) - rest])
        return rest

    def _highest(self, p: Poly) -> int | None:
        """An upper bound of a number that is made of threads' numbers alone; None for any other."""
        if (known := self.highest.get(p)) is not None or not p.symbols or not p.symbols <= self.places:
            return known
        found = 0
        for monomial, factor in p.terms.items():
            most = self.highest.get(symbol(monomial[0])) if len(monomial) == 1 else None if monomial else 1
            if most is None:
                return None
            found += max(factor, 0 if monomial else factor) * most
        return found

    def _multiplied(self, state: State, p: Poly, q: Poly) -> None:
        """Adds bounds of a product: a thread's number times y is at most the largest such number times y."""
        for mine, other in ((p, q), (q, p)):
            if (
                other.constant is None
                and mine.symbols <= self.places
                and self._whole(state, Int(other, SIGNED_SIZE), False)
            ):
                most = self._highest(mine)
                if most is not None and self._prove(state, mine):
                    product = mine * other
                    state.facts = state.facts.known([product, number(most) * other - product])

    def _product(self, state: State, monomial: tuple[str, ...]) -> None:
        """Adds a bound: a counter below a divisor, times the quotient by this divisor, is below the dividend."""
        for counter, name in (monomial, monomial[::-1]) if len(monomial) == 2 else ():
            if counter in self.turns and name in self.quotients:
                dividend, divisor = self.quotients[name]
                if state.facts.prove(divisor - ONE - symbol(counter)) and state.facts.prove(dividend - ONE):
                    product = Poly({monomial: 1})
                    state.facts = state.facts.known([dividend - ONE - product, dividend - symbol(name) - product])

    def _pointer_computed(self, state: State, operator: str, a: Value, b: Value) -> Value:
        if isinstance(b, Ptr):
            a, b = b, a
            if operator != "+":
                raise Refusal(Guard.BOUNDS, f"'{operator}' is applied to an address; only + and - are allowed")
        assert isinstance(a, Ptr)
        if operator not in ("+", "-"):
            raise Refusal(Guard.BOUNDS, f"'{operator}' is applied to an address; only + and - are allowed")
        by = self._as_int(b).poly
        self._by_elements(a)
        offset = None if a.offset is None or by is None else ring(operator, a.offset, by)
        return a._replace(offset=offset)

    def _by_elements(self, at: Ptr) -> None:
        """Refuses arithmetic on a pointer whose type is not its operand's."""
        if (at.type, at.stars) != (at.operand.type, at.operand.stars) and not self.trusted:
            raise Refusal(
                Guard.BOUNDS, f"a pointer to {at.type} is moved in '{at.operand.name}', which holds {at.operand.type}"
            )

    def _converted(self, state: State, value: Value, kind: str, stars: int) -> Value:
        """A value converted to a type with so many stars. Raises Refusal if that is not allowed."""
        if stars or kind in self.addresses:
            own = isinstance(value, Ptr) and value.type == kind and not stars  # an address that is a number in C
            if not isinstance(value, Ptr) or not (own or (stars and value.type not in self.addresses)):
                if self.trusted:
                    return Data.ODD
                raise Refusal(Guard.BOUNDS, "a value that is not an address is converted to an address")
            return value._replace(type=kind, stars=max(stars, 1))
        if isinstance(value, Ptr):
            raise Refusal(Guard.BOUNDS, "an address is converted to a value that is not an address")
        if kind in self.data or kind in self.vectors:
            if value is Data.HALF:
                raise Refusal(
                    Guard.DATA, "half of a vector is used as a number; use halves only as arguments of primitives"
                )
            if isinstance(value, Pred) and kind == self.predicate:
                return value
            if isinstance(value, PartialVector) and kind in self.vectors:
                return value
            return value if value is Data.SCALE and kind == self.element else Data.NUMBER
        if kind == self.predicate and isinstance(value, Pred):
            return value
        if value is Data.HALF and TYPES.get(kind) == SIZE:
            return value
        if kind not in TYPES:
            if self.trusted or kind == "void":
                return Data.ODD if not isinstance(value, Pred) else value
            raise Refusal(Guard.BOUNDS, f"a value of another type is converted to {kind}")
        if isinstance(value, Data) and self.trusted:
            return Int(None, TYPES[kind])
        whole, wanted = self._as_int(value), TYPES[kind]
        if kind == "bool":
            return Int(whole.poly if whole.poly is not None and self._within(state, whole.poly, 0, 1) else None, wanted)
        if whole.poly is None or wanted == SIZE or wanted == whole.type:
            return Int(whole.poly, wanted)
        return Int(whole.poly if self._within(state, whole.poly, *limits_of(wanted)) else None, wanted)

    def _chosen(self, state: State, low: Iterable[Poly], high: Iterable[Poly], negative: bool = False) -> Poly:
        """A new number between all of `low` and all of `high`. negative: it may be below 0, unlike a symbol."""
        self.fresh += 1
        made = symbol(f"x#{self.fresh}") - (symbol(f"y#{self.fresh}") if negative else ZERO)
        facts = [made - one for one in low] + [one - made for one in high]
        state.facts = state.facts.known(self._known(fact, state) for fact in facts)
        return made

    def _either(self, state: State, yes: Ways, no: Ways) -> Int:
        """A number that is 1 on the paths `yes` and 0 on the paths `no`."""
        made = self._chosen(state, [ZERO], [ONE])
        self._cases(made, (yes, ONE), (no, ZERO))
        return Int(made, INT)

    def _cases(self, made: Poly, *chosen: tuple[Ways, Poly]) -> None:
        """Records the facts that hold for each value of a choice."""
        self.choices[min(made.symbols)] = made, [(way.facts, value) for ways, value in chosen for way in ways]
