"""Arithmetic on integers, addresses and data, and conversions between C's types."""

from __future__ import annotations

from tensorop.author.addresses.linear import ZERO, number
from tensorop.author.addresses.path import Path
from tensorop.author.addresses.symbols import Symbols
from tensorop.author.addresses.values import Data, Int, PartialVector, Ptr, Value, ring, spelled
from tensorop.author.c_types import INT, LARGEST, SIZE, TYPES, common, limits_of
from tensorop.author.contracts import CallContract
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken, Refusal

OPERATORS = frozenset(("+", "-", "*", "/", "%", "<<", ">>"))


class Arithmetic:
    """The results of operators and conversions."""

    def __init__(self, contract: CallContract, symbols: Symbols) -> None:
        self._contract, self._symbols = contract, symbols

    def number(self, value: Value) -> Int:
        if isinstance(value, Int):
            return value
        raise Refusal(
            Guard.DATA,
            "an index, a count or another integer depends on loaded data; compute it from k, m, n, strides, lanes "
            "and counters",
        )

    def computed(self, path: Path, operator: str, a: Value, b: Value) -> Value:
        """The result of a binary operator. Raises Refusal if the operands do not allow it."""
        if isinstance(b, Ptr):
            a, b = b, a
        if isinstance(a, Ptr):
            moved = self.number(b).poly
            if a.type != a.operand.type:
                raise Refusal(Guard.BOUNDS, f"a {a.type} is moved in '{a.operand.name}', which holds {a.operand.type}")
            return a._replace(offset=None if a.offset is None or moved is None else ring(operator, a.offset, moved))
        if isinstance(a, (Data, PartialVector)) or isinstance(b, (Data, PartialVector)):
            return PartialVector(ZERO) if isinstance(a, PartialVector) or isinstance(b, PartialVector) else Data.NUMBER
        x, y = self.number(a), self.number(b)
        kind, p, q = common(x.type, y.type), x.poly, y.poly
        if operator in ("/", "%") and (q is None or not path.within(q, 1, LARGEST)):
            of = "that may have wrapped around" if q is None else spelled(q)
            raise Broken("division", f"the divisor {of} is not proved to be at least 1")
        if p is None or q is None:
            return Int(None, kind) if operator in ("/", "%", ">>") else path.fit(None, kind)
        if operator == "*":
            self._symbols.multiplied(path, p, q)
        if operator in ("+", "-", "*"):
            return path.fit(ring(operator, p, q), kind)
        if operator in ("<<", ">>"):
            by, kind = path.settled(q).constant, common(x.type, INT)
            assert by is not None  # the grammar's shifts are by literals
            q = number(1 << by)
            if operator == "<<":
                return path.fit(p * q, kind)
            operator = "/"
        if (quotient := self._symbols.divided(path, p, q)) is None:
            return Int(None, kind)
        return Int(quotient if operator == "/" else self._symbols.rest(path, p, q, quotient), kind)

    def converted(self, path: Path, value: Value, kind: str, stars: int) -> Value:
        """A value converted to a type with so many stars. Raises Refusal if that is not allowed."""
        of = self._contract
        if isinstance(value, Ptr) or stars or kind in of.addresses:
            if isinstance(value, Ptr) and (value.type, value.operand.stars) == (kind, max(stars, 1)):
                return value
            what = f"'{value.operand.name}' as {kind}" if isinstance(value, Ptr) else "a value that is not an address"
            raise Refusal(Guard.BOUNDS, f"it takes {what}; access this memory only as the type that it has")
        if kind == of.primitives.predicate and isinstance(value, Int) and not of.counted:
            return value
        if kind in of.data or kind in of.vectors:
            if isinstance(value, PartialVector) and kind in of.vectors:
                return value
            return value if value is Data.SCALE and kind == of.primitives.element else Data.NUMBER
        if value is Data.HALF and TYPES.get(kind) == SIZE:
            return value
        if kind not in TYPES:
            raise Refusal(Guard.BOUNDS, f"a value of another type is converted to {kind}")
        whole, wanted = self.number(value), TYPES[kind]
        if whole.poly is None or (kind != "bool" and wanted in (SIZE, whole.type)):
            return Int(whole.poly, wanted)
        low, high = (0, 1) if kind == "bool" else limits_of(wanted)
        return Int(whole.poly if path.within(whole.poly, low, high) else None, wanted)
