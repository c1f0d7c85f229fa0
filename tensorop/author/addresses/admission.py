"""Limits a kernel's conditions: together they may distinguish only few sizes, so that verification covers all cases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

from tensorop.author.addresses.calls import Calls
from tensorop.author.addresses.knowledge import LANES, Refusal, Together
from tensorop.author.addresses.knowledge import MOST_COMPARED as MOST_COMPARED
from tensorop.author.addresses.knowledge import MOST_OF_BLOCK as MOST_OF_BLOCK
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol, tightened
from tensorop.author.addresses.values import State, spelled
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken

MOST_TIMES = 16  # the largest factor of `lanes` in a condition
_MOST_LANES_COMPARED = 256  # the largest constant in a condition on `lanes` alone
MOST_TOGETHER = 128  # the largest sum of constants in all conditions; sizes up to this sum are verified one by one
MOST_APART = 320  # elements by which the threads of a block may differ: the longer side of a tile
MOST_WITH_SCALES = 16  # the largest constant in a condition beside tests of alpha and beta
_MOST_STATES = 768  # combinations of values of locals that are neither counters nor constant


class Admission(Calls):
    """Records the conditions of one kernel, and refuses one that distinguishes too many sizes."""

    @property
    def together_most(self) -> int:
        return 2 * MOST_OF_BLOCK if self.places else MOST_TOGETHER

    def _admit(self, state: State, operator: str, apart: Poly) -> None:
        """Refuses a condition on anything but names, counters, lanes and small numbers. It compares `apart` with 0."""
        divided = {name for q in apart.symbols & self.quotients.keys() for name in self.quotients[q][0].symbols}
        made = min(apart.symbols & self.choices.keys(), default="")
        if made and not divided & self.choices.keys():
            chosen, cases = self.choices[made]
            for value in dict.fromkeys(value for _, value in cases):
                self._admit(state, operator, apart.replaced(made, value + symbol(made) - chosen))
            return
        if apart in self.asked:
            return
        self._remembered(operator, apart)
        wrong: str | None
        if (
            self.places and apart.symbols <= self.turns
        ):  # threads' numbers and iterations alone: only the limit on all conditions together applies
            mine = self._mine(apart, self.places)
            if self._hidden_together(apart - mine, self._spread(mine)) is None:
                return
        if self.places and self._of_few_places(state, apart):
            return
        plain, spread = self._plain(state, apart)
        if isinstance(plain, str):
            wrong = plain
        elif plain.symbols & self.choices.keys():  # a choice inside a quotient
            self._admit(state, operator, plain)
            return
        else:
            self._remembered(operator, plain)
            wrong = self._hidden(plain) or self._far_divided(apart)
            compared = plain if self.places or plain.symbols & self.given else apart
            wrong = wrong or self._hidden_together(compared, spread)
        if wrong is None:
            return
        if strides := apart.symbols & self.strides:
            name = min(strides)
            wrong = f"'{name}' is a stride; compare strides only with 1: if ({name} == 1)"
        if isinstance(plain, Poly) and plain.symbols - apart.symbols:
            wrong += f" (it is read as {spelled(plain)} {operator} 0)"
        raise Refusal(
            Guard.CONDITIONS,
            f"the condition {spelled(apart)} {operator} 0 is not allowed: {wrong}",
        )

    def _sizes_of(self, state: State, apart: Poly) -> dict[str, int]:
        """The sizes that a condition compares with a number inside their range, each with this number."""
        behind = {
            name
            for made in apart.symbols & self.choices.keys()
            for facts, _ in self.choices[made][1]
            for fact in facts
            for name in fact.symbols
        }
        names = (apart.symbols | behind) & self.given - self.strides
        for name in apart.symbols & self.quotients.keys():
            names |= self.quotients[name][0].symbols & self.given
        names = names or apart.symbols & self.turns
        constant = abs(apart.terms.get((), 0))
        if behind:
            return dict.fromkeys(names, self.most)
        if not constant or LANES in apart.symbols or self._prove(state, apart) or self._prove(state, ZERO - apart):
            return {}  # no number, or the least or the most that the size can be
        return dict.fromkeys(names, constant)

    def _pick(self, names: Mapping[str, int]) -> None:
        """Refuses conditions that together pick one combination of several numbers: no call may have it."""
        self.picked |= {name: max(number, self.picked.get(name, 0)) for name, number in names.items()}
        sizes = {name for name in self.picked if name in self.given | self.turns}
        scales = self.picked.keys() - sizes
        if len(sizes) > 1 or (len(scales) > 1 and max(self.picked.values()) > MOST_WITH_SCALES):
            what = " and ".join(f"'{name}'" for name in sorted(sizes | scales))
            raise Broken("path", f"conditions compare {what} with numbers")

    def _remembered(self, operator: str, apart: Poly) -> None:
        """Refuses a condition on hidden bits, and one that distinguishes too many values of a loop's locals.

        A primitive's result may be compared with one size only.
        """
        message = f"the condition {spelled(apart)} {operator} 0 is not allowed"
        behind = self._behind(apart)
        if behind & self.hidden:
            raise Refusal(Guard.CONDITIONS, f"{message}: it depends on a bit operation; compare counters and sizes")
        made, sizes = apart.symbols & self.made_of.keys(), apart.symbols & (self.given - self.steps.keys())
        if made and (len(made) > 1 or not sizes):
            raise Refusal(Guard.CONDITIONS, f"{message}: compare the result of one primitive with one size")
        for name in behind & self.ranges.keys():
            of, states = self.ranges[name]
            self.state_counts[of] = max(states, self.state_counts.get(of, 1))
        if math.prod(self.state_counts.values()) > _MOST_STATES:
            raise Refusal(
                Guard.CONDITIONS,
                f"{message}: together with earlier conditions, locals that a loop changes in several ways distinguish "
                f"{math.prod(self.state_counts.values())} states",
            )

    def _behind(self, apart: Poly) -> set[str]:
        """The symbols of a condition, and all symbols that these were made of."""
        found: set[str] = set()
        left = set(apart.symbols)
        while left:
            name = left.pop()
            found.add(name)
            more = set(self.made_of.get(name, ()))
            for poly in self.quotients.get(name, ()):
                more |= poly.symbols
            for _, value in self.choices.get(name, (ZERO, []))[1]:
                more |= value.symbols
            left |= more - found
        return found

    @property
    def _allowed_here(self) -> str:
        return f"compare names and counters with names and numbers up to {self.most}, values of tunables included"

    def _plain(self, state: State, apart: Poly) -> tuple[Poly | str, int]:
        """A condition without quotients and threads' numbers, or the fault in these; and the spread of threads."""
        if self.fixed == 1:
            apart = apart.replaced(LANES, ONE)
        for name in reversed(self.quotients):  # a quotient of a quotient first
            if name not in apart.symbols or name in self.places:
                continue
            found = self._remainder(apart, name)
            if found is None:
                if self._least(name) > self.most:
                    by = self.quotients[name][1]
                    return f"it divides by {spelled(by)}; divide by at most {(self.most + 1) // 2}", 0
                return f"a division encodes another number in it; {self._allowed_here}", 0
            apart = found
        mine = self._mine(apart, self.places)
        if not mine.terms:
            return apart, 0
        if not self._within(state, mine, -MOST_APART, MOST_APART):
            return (
                f"its part {spelled(mine)} differs by up to {self._spread(mine)} between the threads of a block, at "
                f"most {MOST_APART} is allowed; let one iteration take fewer steps of K, and give a thread its next "
                "ones in the next iteration",
                0,
            )
        return apart - mine, min(self._spread(mine), MOST_APART)

    @staticmethod
    def _mine(apart: Poly, own: set[str]) -> Poly:
        """The terms of a condition that have only these symbols; not the constant."""
        return Poly({one: factor for one, factor in apart.terms.items() if one and own.issuperset(one)})

    def _spread(self, mine: Poly) -> int:
        """The largest absolute value of a sum of threads' numbers."""
        most = (abs(factor) * (self._highest(Poly({one: 1})) or 0) for one, factor in mine.terms.items())
        return sum(most)

    def _of_few_places(self, state: State, apart: Poly) -> bool:
        """Whether threads and iterations add one of few numbers to a condition whose rest is allowed."""
        own = set(self.turns)
        for name, (dividend, divisor) in self.quotients.items():  # in the order in which they were made
            if dividend.symbols | divisor.symbols <= own:
                own.add(name)
        mine = self._mine(apart, own)
        both = mine, mine + number(apart.terms.get((), 0))
        few = (one for one in both if self._within(state, one, -MOST_APART, MOST_APART))
        rest = apart - next(few, ZERO)
        if rest.symbols & (own | self.quotients.keys()):
            return False
        return self._hidden(rest) is None and self._hidden_together(rest, MOST_APART) is None

    def _hidden(self, apart: Poly) -> str | None:
        allowed = self._allowed_here
        most = _MOST_LANES_COMPARED if apart.symbols <= {LANES} else self.most // self._elements(apart)
        if abs(apart.terms.get((), 0)) > most:
            more = f"; let copies be at most {self.most} of K ahead" if self.places else ""
            return f"it contains the number {abs(apart.terms[()])}; {allowed}{more}"
        for monomial, factor in apart.terms.items():
            if any(name in self.strides for name in monomial) and (
                len(monomial) > 1 or abs(factor) != 1 or apart.symbols != {monomial[0]}
            ):
                return allowed
            counted = [name for name in monomial if name != LANES and name not in self.paces]
            if len(counted) > 1 or (monomial.count(LANES) > 1):
                return f"it contains a product; {allowed}"
            if counted and counted[0] not in self.turns and len(monomial) == 1:
                if abs(factor) != 1:
                    return f"it multiplies '{counted[0]}' by {abs(factor)}; {allowed}"
            elif counted and counted[0] not in self.turns:
                return f"it multiplies '{counted[0]}' by lanes; {allowed}"
            elif LANES in monomial and abs(factor) > MOST_TIMES:
                return f"it multiplies lanes by {abs(factor)}; multiply by at most {MOST_TIMES}"
            elif monomial and abs(factor) > MOST_COMPARED:
                return (
                    f"it multiplies '{monomial[0]}' by {abs(factor)}; multiply by at most {MOST_COMPARED}: let an "
                    f"iteration take at most {MOST_COMPARED} steps of K, and do what is for more of them every few "
                    f"iterations (if (i % {-(-abs(factor) // MOST_COMPARED)} == 0))"
                )
        if any(apart.symbols & {name} for name in self.strides):
            constant = apart.terms.get((), 0)
            if abs(constant) > 1:
                return allowed
        return None

    def _elements(self, apart: Poly) -> int:
        """The elements in one step of a condition's counters."""
        return max((self.steps[name] for name in apart.symbols & self.steps.keys()), default=1)

    def _counters(self, apart: Poly) -> set[str]:
        return apart.symbols - self.given - self.quotients.keys() - {LANES}

    def _far_divided(self, apart: Poly) -> str | None:
        """The fault if the conditions so far distinguish a number by its remainder by a large divisor, else None."""
        dividing = (self._counters(apart) | self.quotients.keys()) - self.places
        for monomial, factor in apart.terms.items():
            if dividing.intersection(monomial):
                self.divided = math.lcm(self.divided, factor)
        if self.divided > self.together_most:
            return (
                "together with earlier conditions, it distinguishes a number by its remainder modulo "
                f"{self.divided}; at most {self.together_most} is allowed"
            )
        return None

    def _hidden_together(self, apart: Poly, spread: int) -> str | None:
        """The fault if the conditions so far encode a large number, else None.

        Counters can carry a number from one condition to another, so connected conditions add up.
        """
        counters = self._counters(apart)
        steps: dict[str, int] = {}
        for monomial, factor in apart.terms.items():
            steps.update((name, factor * self._elements(apart)) for name in monomial if name in counters)
        if apart.symbols - counters - {LANES}:
            behind = {one for name in apart.symbols for one in self.made_of.get(name, ())} & self.turns - self.places
            self.asked[apart] = {**dict.fromkeys(behind, max(self.steps.values(), default=1)), **steps}
            for name, step in steps.items():
                of = self.together.get(name, Together({name}))
                self.together.update(dict.fromkeys(of.counters, replace(of, steps=of.steps | {abs(step)})))
        elif counters:
            number = abs(apart.terms.get((), 0)) + abs(apart.terms.get((LANES,), 0)) * (self.fixed or 1) + spread
            if len(counters) == 1:  # one counter: its largest number counts
                apart, number = symbol(*counters), -(-number // abs(steps[min(counters)]))
            found = Together(numbers={apart: number})
            for other in (self.together.get(name, Together({name})) for name in counters):
                found.counters |= other.counters
                found.steps |= other.steps
                found.numbers = {**other.numbers, **found.numbers, apart: max(number, other.numbers.get(apart, 0))}
            self.together.update(dict.fromkeys(found.counters, found))
        for steps in self.asked.values():
            groups = [(abs(step), self.together.get(name, Together())) for name, step in steps.items()]
            large = sum(step * sum(group.numbers.values()) for step, group in groups)
            if large > self.together_most:
                return (
                    f"together with earlier conditions, it encodes the number {large} in counters (iterations times "
                    f"their step, summed over the loops that share it); at most {self.together_most} is allowed"
                )
            if uneven := next((sorted(group.steps) for _, group in groups if len(group.steps) > 1), None):
                return (
                    "together with earlier conditions, it compares one counter in steps of "
                    f"{' and of '.join(map(str, uneven))}; use one step"
                )
        return None

    def _remainder(self, apart: Poly, name: str) -> Poly | None:
        """A condition without a quotient: on its dividend instead, or without the remainder that has the quotient.

        None if the condition may encode another number.
        """
        dividend, divisor = self.quotients[name]
        by = divisor.constant
        split = apart.by(name)
        if by is None or split is None or (factor := split[0].constant) is None or self._least(name) > self.most:
            return None
        rest = split[1]
        if rest.symbols <= self.turns and (self.places or rest.symbols or not rest.terms.get((), 0)):
            return tightened(dividend * number(factor) + divisor * rest)
        if factor % by:
            return None
        left = apart + (dividend - divisor * symbol(name)) * number(factor // by)
        return left if left.symbols <= self.turns | self.choices.keys() else None
