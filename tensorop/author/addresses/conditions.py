"""Conditions: the facts if they hold, and if they do not."""

from __future__ import annotations

from tensorop.author.addresses.admission import Admission
from tensorop.author.addresses.knowledge import Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Poly, symbol
from tensorop.author.addresses.syntax import Term
from tensorop.author.addresses.values import Data, State, Value, Way, Ways
from tensorop.author.gate import Guard

COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")


class Conditions(Admission):
    """The facts that follow from conditions."""

    def _decide(self, state: State, of: Term) -> tuple[Ways, Ways]:
        """The paths on which a condition holds, and those on which it does not. Its side effects change `state`."""
        match of:
            case "two", "&&", left, right:
                yes, no = self._decide(state, left)
                then_yes, then_no = self._second(state, yes, right)
                both = [a.and_then(b) for a in yes for b in then_yes]
                return both, no + [a.and_then(b) for a in yes for b in then_no]
            case "two", "||", left, right:
                yes, no = self._decide(state, left)
                then_yes, then_no = self._second(state, no, right)
                return yes + [a.and_then(b) for a in no for b in then_yes], [a.and_then(b) for a in no for b in then_no]
            case "one", "!", right:
                yes, no = self._decide(state, right)
                return no, yes
            case "two", operator, left, right if operator in COMPARISONS:
                return self._compared(state, operator, left, right)
            case ("number", int(value), _):
                return ([Way()], []) if value else ([], [Way()])
        return self._compared(state, "!=", of, ("number", 0, "0"))

    def _second(self, state: State, ways: Ways, of: Term) -> tuple[Ways, Ways]:
        under = self._under(state, ways)
        found = self._decide(under, of)
        if under.env != state.env:
            raise Refusal(Guard.BOUNDS, "the second operand of && or || changes a local; write an if")
        return found

    def _under(self, state: State, ways: Ways) -> State:
        """The state in which the second half of a condition is read; this half may have no side effect."""
        under = state.copy()
        if len(ways) == 1:
            under.facts, under.ones = under.facts.known(ways[0].facts), under.ones | ways[0].ones
        return under

    def _compared(self, state: State, operator: str, left: Term, right: Term) -> tuple[Ways, Ways]:
        a, b = self._value(state, left), self._value(state, right)
        if isinstance(a, Data) or isinstance(b, Data):
            self._scale_compared(operator, a, b, left, right)
            if not self.trusted:
                self._pick({left[1] if a is Data.SCALE else right[1]: 0})
            return [Way()], [Way()]
        x, y = self._as_int(a), self._as_int(b)
        signed = x.type.signed and y.type.signed
        if self.trusted and (x.poly is None or y.poly is None):
            return [Way()], [Way()]
        if not self.trusted and not (self._whole(state, x, signed) and self._whole(state, y, signed)):
            how = (
                "counters are size_t (an int cannot hold every k) and change by the same amount in each iteration, "
                "also in the last one (i += lanes)"
            )
            if self.places:
                how = "count the iterations: const int steps = (k + 63) / 64; and i < steps, not i * 64 < k"
            raise Refusal(
                Guard.CONDITIONS,
                "a condition compares a number whose value cannot be bounded (it may have wrapped around); compare "
                f"k, m, n, lanes, numbers up to {self.most} and counters; {how}",
            )
        assert x.poly is not None
        assert y.poly is not None
        apart = x.poly - y.poly
        if not self.trusted:
            self._admit(state, operator, apart)
        if not (self.trusted or self.places or self.testing):
            self._pick(self._sizes_of(state, apart))
        return self._ways_of(state, operator, apart)

    def _ways_of(self, state: State, operator: str, apart: Poly) -> tuple[Ways, Ways]:
        ones = frozenset(
            name
            for name in self.strides
            if operator in ("==", "!=") and apart in (symbol(name) - ONE, ONE - symbol(name))
        )
        made, cases = self.choices.get(min(apart.symbols, default=""), (ZERO, []))
        numbers = all(value.constant is not None for _, value in cases)
        if cases and made == apart and numbers and operator in ("==", "!="):
            self.by_choice += 1
            ways = [[Way(facts) for facts, value in cases if (value == ZERO) is zero] for zero in (True, False)]
            is_0, is_not = (one if len(one) < 2 else [Way()] for one in ways)
            return (is_0, is_not) if operator == "==" else (is_not, is_0)
        apart = self._known(apart, state)
        back = ZERO - apart
        match operator:
            case "<":
                return [Way((back - ONE,))], [Way((apart,))]
            case "<=":
                return [Way((back,))], [Way((apart - ONE,))]
            case ">":
                return [Way((apart - ONE,))], [Way((back,))]
            case ">=":
                return [Way((apart,))], [Way((back - ONE,))]
        same = Way((apart, back), ones)
        other = Way()
        if apart == ZERO:
            found: tuple[Ways, Ways] = [Way()], []
            return found if operator == "==" else (found[1], found[0])
        if state.facts.prove(apart):
            same, other = Way((back,), ones), Way((apart - ONE,))
        elif state.facts.prove(back):
            same, other = Way((apart,), ones), Way((back - ONE,))
        else:
            other = Way(unequal=(apart,))
        return ([same], [other]) if operator == "==" else ([other], [same])

    def _scale_compared(self, operator: str, a: Value, b: Value, left: Term, right: Term) -> None:
        if self.trusted:
            return
        scale, other, other_term = (a, b, right) if a is Data.SCALE else (b, a, left)
        if scale is Data.SCALE and operator in ("==", "!=") and other_term[0] == "number" and is_0_or_1(other_term):
            return
        if scale is Data.SCALE or other is Data.SCALE:
            raise Refusal(Guard.CONDITIONS, "compare alpha and beta only with 0 and 1, with == or !=: if (beta == 0)")
        raise Refusal(
            Guard.DATA,
            "a condition depends on loaded data; use k, m, n, lanes and counters in conditions, and primitives (max) "
            "to choose between values",
        )


def is_0_or_1(literal: Term) -> bool:
    try:
        return (literal[1] if literal[1] is not None else float(literal[2].rstrip("fFlL"))) in (0, 1)
    except ValueError:
        return False
