"""Conditions: the facts if they hold, and if they do not."""

from __future__ import annotations

from tensorop.author.addresses.admission import Admission
from tensorop.author.addresses.arithmetic import Arithmetic
from tensorop.author.addresses.linear import ONE, ZERO, Poly, symbol
from tensorop.author.addresses.path import Evaluate, Path
from tensorop.author.addresses.symbols import Symbols
from tensorop.author.addresses.values import Data, Way, Ways
from tensorop.author.gate import Guard
from tensorop.author.grammar import Refusal
from tensorop.author.terms import Term

_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Conditions:
    """The facts that follow from conditions. value: of an expression on a path."""

    def __init__(self, value: Evaluate, arithmetic: Arithmetic, admission: Admission, symbols: Symbols) -> None:
        self._value, self._arithmetic, self._admission, self._symbols = value, arithmetic, admission, symbols
        self.testing = False  # a loop's test

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
        a, b = self._value(path, left), self._value(path, right)
        if Data.SCALE in (a, b):
            self._admission.pick({left[1] if a is Data.SCALE else right[1]: 0})
            return [Way()], [Way()]
        x, y = self._arithmetic.number(a), self._arithmetic.number(b)
        signed = x.type.signed and y.type.signed
        if x.poly is None or y.poly is None or (path.checked and not (path.whole(x, signed) and path.whole(y, signed))):
            if not path.checked:
                return [Way()], [Way()]
            how = (
                "counters are size_t (an int cannot hold every k) and change by the same amount in each iteration, "
                "also in the last one (i += lanes)"
            )
            if self._symbols.places:
                how = "count the iterations: const int steps = (k + 63) / 64; and i < steps, not i * 64 < k"
            raise Refusal(
                Guard.CONDITIONS,
                "a condition compares a number whose value cannot be bounded (it may have wrapped around); compare "
                f"k, m, n, lanes, numbers up to {self._symbols.most} and counters; {how}",
            )
        apart = x.poly - y.poly
        if path.checked:
            self._admission.admit(path, operator, apart)
            if not self.testing:
                self._admission.pick_sizes(path, apart)
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
        made, cases = self._symbols.choices.get(min(apart.symbols, default=""), (ZERO, []))
        if cases and made == apart and all(value.constant is not None for _, value in cases):
            self._symbols.by_choice += 1
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
