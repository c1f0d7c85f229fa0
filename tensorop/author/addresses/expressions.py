"""The values of expressions, the facts that follow from conditions, and the changes of statements without a body."""

from __future__ import annotations

from tensorop.author.addresses.admission import Admission
from tensorop.author.addresses.arithmetic import OPERATORS, Arithmetic
from tensorop.author.addresses.calls import Calls
from tensorop.author.addresses.collectives import Collectives
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.memory import Memory
from tensorop.author.addresses.path import Path, Scopes
from tensorop.author.addresses.symbols import Symbols
from tensorop.author.addresses.values import Data, Int, OperandMemory, Ptr, Value, Way, Ways, poly_of
from tensorop.author.c_types import INT, SIZE, common, limits_of
from tensorop.author.contracts import LANES, CallContract
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.author.terms import Term
from tensorop.model.primitive import Collective, Primitive

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Expressions:
    """Evaluates the expressions and conditions of one function."""

    def __init__(self, contract: CallContract, symbols: Symbols, scopes: Scopes, admission: Admission) -> None:
        self._contract, self.symbols, self.scopes, self.admission = contract, symbols, scopes, admission
        self._arithmetic, self._memory = Arithmetic(contract, symbols), Memory(symbols)
        self.testing = False  # a loop's test, or that of a smaller size
        self._calls = Calls(contract, self._arithmetic, self._memory)
        parts = self._arithmetic, self._memory, symbols, scopes
        self._collectives = Collectives(contract, self.value, self.decide, parts)

    def value(self, path: Path, of: Term) -> Value:
        kind = of[0]
        if kind == "name":
            found = path.env.get(of[1])
            if found is None:
                raise Refusal(Guard.BOUNDS, f"'{of[1]}' has no known value here")
            if found is Data.UNSET and path.checked:
                raise Refusal(
                    Guard.LOCALS, f"'{of[1]}' may be read before it is written; initialize it in its declaration"
                )
            return found
        if kind == "call":
            return self._called(path, of[1], of[2])
        if kind == "two" and of[1] in OPERATORS:
            return self._arithmetic.computed(path, of[1], self.value(path, of[2]), self.value(path, of[3]))
        if kind in ("item", "at"):
            return self._memory.loaded(path, self._place(path, of))
        if kind == "number":
            return Data.NUMBER if of[1] is None else Int(number(of[1]), INT)
        match of:
            case "two" | "one", *_:
                return self.symbols.either(path, *self.decide(path, of))
            case "part", vector, _:
                self.value(path, vector)
                return Data.NUMBER
            case "cast", kind, stars, value:
                found = self.value(path, value)
                return found if kind == "void" else self._arithmetic.converted(path, found, kind, stars)
            case "choice", condition, yes, no:
                return self._choice(path, condition, yes, no)
        raise Refusal(Guard.GRAMMAR, f"a {kind} is not allowed here")

    def _called(self, path: Path, name: str, arguments: tuple[Term, ...]) -> Value:
        called = self._contract.callables.get(name)
        if name == LANES and not arguments:
            return Int(symbol(LANES), SIZE if path.promises.lanes is None else INT)
        if isinstance(called, Collective):
            return self._collectives.result(path, called, arguments)
        if not isinstance(called, Primitive) or len(arguments) != len(called.args):
            raise Refusal(Guard.CALLS, f"its C calls '{name}', which is not a primitive")
        return self._calls.result(path, called, [self.value(path, one) for one in arguments])

    def _place(self, path: Path, of: Term) -> Ptr:
        """The address of an element."""
        place = self.value(path, of[1])
        if of[0] == "item":
            place = self._arithmetic.computed(path, "+", place, self.value(path, of[2]))
        if not isinstance(place, Ptr) or place.type in self._contract.addresses:
            raise Refusal(Guard.BOUNDS, "a value that is not a pointer is dereferenced")
        self._memory.near(path, place.offset)
        return place

    def _choice(self, path: Path, condition: Term, yes: Term, no: Term) -> Value:
        before = self.testing
        self.testing = before or {*condition[2:]} == {yes, no}  # the smaller or the larger of two picks no number
        if_yes, if_no = self.decide(path, condition)
        self.testing = before
        under_a, under_b = self.second(path, if_yes), self.second(path, if_no)
        a, b = self.value(under_a, yes), self.value(under_b, no)
        if isinstance(a, Ptr) and isinstance(b, Ptr):
            if a._replace(offset=None) != b._replace(offset=None):
                raise Refusal(Guard.BOUNDS, "?: chooses between two operands; write an if")
            if a.offset is None or b.offset is None:
                return a._replace(offset=None)
            offset = self.symbols.chosen(path, (), (), negative=True)
            return a._replace(offset=self.symbols.cases(offset, (if_yes, a.offset), (if_no, b.offset)))
        if isinstance(a, Data) or isinstance(b, Data):
            return Data.NUMBER
        x, y = self._arithmetic.number(a), self._arithmetic.number(b)
        kind, p, q = common(x.type, y.type), x.poly, y.poly
        if x == y:
            return Int(p, kind)
        if p is None or q is None or not (under_a.whole(x) and under_b.whole(y)):
            return Int(None, kind)
        negative = not (under_a.prove(p) and under_b.prove(q))
        if negative and not kind.signed:
            return Int(None, kind)
        limits = [number(limit) for limit in limits_of(kind)] if negative else [ZERO]
        high = [one for one in (p, q) if under_a.prove(one - p) and under_b.prove(one - q)]
        low = [one for one in (p, q) if under_a.prove(p - one) and under_b.prove(q - one)]
        made = self.symbols.chosen(path, limits[:1] + low, limits[1:] + high, negative)
        return Int(self.symbols.cases(made, (if_yes, p), (if_no, q)), kind)

    # ---- conditions

    def decide(self, path: Path, of: Term) -> tuple[Ways, Ways]:
        """The ways on which a condition holds, and those on which it does not."""
        match of:
            case "two", "&&", left, right:
                yes, no = self.decide(path, left)
                then_yes, then_no = self.decide(self.second(path, yes), right)
                both = [a.and_then(b) for a in yes for b in then_yes]
                return both, no + [a.and_then(b) for a in yes for b in then_no]
            case "two", "||", left, right:
                return self.decide(path, ("two", "&&", ("one", "!", left), ("one", "!", right)))[::-1]
            case "one", "!", right:
                return self.decide(path, right)[::-1]
            case "two", operator, left, right if operator in _COMPARISONS:
                return self._compared(path, operator, left, right)
            case ("number", int(value), _):
                return ([Way()], []) if value else ([], [Way()])
        return self._compared(path, "!=", of, ("number", 0, "0"))

    def second(self, path: Path, ways: Ways) -> Path:
        """The path on which what follows a condition is read."""
        return path.under(*((ways[0].facts, ways[0].ones) if len(ways) == 1 else ()))

    def _compared(self, path: Path, operator: str, left: Term, right: Term) -> tuple[Ways, Ways]:
        a, b = self.value(path, left), self.value(path, right)
        if Data.SCALE in (a, b):
            self.admission.pick({left[1] if a is Data.SCALE else right[1]: 0})
            return [Way()], [Way()]
        x, y = self._arithmetic.number(a), self._arithmetic.number(b)
        signed = x.type.signed and y.type.signed
        if x.poly is None or y.poly is None or (path.checked and not (path.whole(x, signed) and path.whole(y, signed))):
            if not path.checked:
                return [Way()], [Way()]
            how = "counters are size_t (an int cannot hold every k) and change by the same amount in each iteration"
            if self.symbols.places:
                how = "count the iterations: const int steps = (k + 63) / 64; and i < steps, not i * 64 < k"
            raise Refusal(
                Guard.CONDITIONS,
                "a condition compares a number whose value cannot be bounded (it may have wrapped around); compare "
                f"k, m, n, lanes, numbers up to {self.symbols.most} and counters; {how}",
            )
        apart = x.poly - y.poly
        if path.checked:
            self.admission.admit(path, operator, apart)
            if not self.testing:
                self.admission.pick_sizes(path, apart)
        return self._ways_of(path, operator, apart)

    def _ways_of(self, path: Path, operator: str, apart: Poly) -> tuple[Ways, Ways]:
        if operator not in ("==", "!="):
            apart = path.settled(apart)
            if operator in (">", ">="):
                apart = ZERO - apart
            least = ONE if operator in ("<", ">") else ZERO
            return [Way((ZERO - apart - least,))], [Way((apart - ONE + least,))]
        same, other = self._equal(path, apart)
        return (same, other) if operator == "==" else (other, same)

    def _equal(self, path: Path, apart: Poly) -> tuple[Ways, Ways]:
        """The ways on which a number is 0, and those on which it is not."""
        made, cases = self.symbols.choices.get(min(apart.symbols, default=""), (ZERO, []))
        if cases and made == apart and all(value.constant is not None for _, value in cases):
            self.symbols.by_choice += 1
            ways = [[Way(facts) for facts, value in cases if (value == ZERO) is zero] for zero in (True, False)]
            is_0, is_not = (one if len(one) < 2 else [Way()] for one in ways)
            return is_0, is_not
        strides = path.promises.strides
        ones = frozenset(name for name in strides if apart in (symbol(name) - ONE, ONE - symbol(name)))
        apart = path.settled(apart)
        back = ZERO - apart
        if apart == ZERO:
            return [Way()], []
        for one, reverse in ((apart, back), (back, apart)):
            if path.facts.prove(one):
                return [Way((reverse,), ones)], [Way((one - ONE,))]
        return [Way((apart, back), ones)], [Way(unequal=(apart,))]

    # ---- statements without a body

    def execute(self, path: Path, of: Term) -> None:
        """Changes the path as a declaration, a change or a call does."""
        match of:
            case "declare", kind, names:
                for name, stars, size, value in names:
                    self.scopes.declare(path, name, kind, stars + (size is not None))
                    path.env[name] = Data.UNSET  # an initializer that uses the name means this local
                    if size is not None:
                        self._declare_array(path, name, kind, stars, size, value)
                    elif name == LANES and not path.checked:
                        path.env[name] = Int(symbol(LANES), SIZE)
                    elif value is not None:
                        self._hold(path, name, self.value(path, value), kind, stars)
            case "step", by, to:
                self._write(path, to, self._arithmetic.computed(path, "+", self.value(path, to), Int(number(by), INT)))
            case "assign", operator, to, value:
                new = self.value(path, value)
                self._write(
                    path, to, self._arithmetic.computed(path, operator, self.value(path, to), new) if operator else new
                )
            case _:
                self.value(path, of)

    def _hold(self, path: Path, name: str, value: Value, kind: str, stars: int) -> None:
        value = self._arithmetic.converted(path, value, kind, stars)
        if name == LANES and poly_of(value) != symbol(name):
            raise Refusal(Guard.NAMES, "'lanes' is the number of elements of a vector; choose another name")
        path.env[name] = value

    def _declare_array(self, path: Path, name: str, kind: str, stars: int, size: str, value: Term | None) -> None:
        elements = self._contract.data | self._contract.vectors if self.symbols.places else self._contract.data
        if stars or kind not in elements or not size.isdecimal():
            own = self._contract.primitives.element
            raise Refusal(Guard.BOUNDS, f"'{name}' is an array of another type; use arrays of {own}")
        flag = f"{name}[{len(self.scopes.blocks)}]"
        for item in value[1] if value is not None and value[0] == "row" else ():
            self.value(path, item)
        path.env[name] = Ptr(OperandMemory(name, kind, 1, ((number(int(size)), ""),), True, flag), ZERO, kind)
        path.env[flag] = Data.UNSET if value is None else Data.NUMBER
        self.scopes.blocks[-1][flag] = kind, stars

    def _write(self, path: Path, to: Term, value: Value) -> None:
        if to[0] == "name":
            self._hold(path, to[1], value, *self.scopes.type_of(to[1]))
        else:
            self._memory.reach(path, self._place(path, to), (), writes=True)
