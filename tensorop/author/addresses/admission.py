"""Limits a kernel's conditions: together they may distinguish only few sizes, so that verification covers all cases."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from tree_sitter import Node

from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol, tightened
from tensorop.author.addresses.path import Path, Promises
from tensorop.author.addresses.symbols import MOST_AHEAD, MOST_COMPARED, MOST_OF_BLOCK, MOST_STEP, Symbols
from tensorop.author.addresses.values import spelled
from tensorop.author.contracts import LANES
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken, Refusal

MOST_TIMES = 16  # the largest factor of `lanes` in a condition
_MOST_LANES_COMPARED = 256  # the largest constant in a condition on `lanes` alone
MOST_TOGETHER = 128  # the largest sum of constants in all conditions; sizes up to this sum are verified one by one
MOST_APART = 320  # elements by which the threads of a block may differ: the longer side of a tile
MOST_WITH_SCALES = 16  # the largest constant in a condition beside tests of alpha and beta
_GIVEN_TURNS = 1 << 40  # a limit above this shows only that a counter does not wrap around
_MOST_MODES = 2  # an argument up to this is one of few modes, no size
_MOST_STATES = 768  # combinations of values of locals that are neither counters nor constant


@dataclass
class Together:
    """Counters that conditions compare with each other."""

    counters: set[str] = field(default_factory=set)
    numbers: dict[Poly, int] = field(default_factory=dict)  # the largest number by compared counters
    ends: dict[Poly, int] = field(default_factory=dict)  # the same of tests of a block's loops
    exact: bool = False  # whether some condition on an argument compares by ==
    steps: set[int] = field(default_factory=set)  # factors in conditions with the function's arguments


@dataclass
class Asked:
    """The conditions so far."""

    of: dict[Poly, dict[str, int]] = field(default_factory=dict)  # those on arguments, with their counters' factors
    together: dict[str, Together] = field(default_factory=dict)  # by counter
    states: dict[tuple[str, int], int] = field(default_factory=dict)  # values by local and loop that they depend on
    divided: int = 1  # they distinguish a number at most by its remainder by this
    # by size that an `if` compares with numbers: the largest; 0 for alpha and beta
    picked: dict[str, int] = field(default_factory=dict)
    crowded: Refusal | None = None  # of the first condition with which these are too many; it comes after all others

    def copy(self) -> Asked:
        picked = dict(self.picked)
        return Asked(dict(self.of), dict(self.together), dict(self.states), self.divided, picked, self.crowded)


class Admission:
    """Records the conditions of one kernel, and refuses one that distinguishes too many sizes."""

    def __init__(self, promises: Promises, symbols: Symbols) -> None:
        self._promises, self._symbols, self.asked = promises, symbols, Asked()
        self.at: Node | None = None  # the statement that is read
        self.of_loop = False  # whether the condition is a loop's test
        self._ordered = self._strict = False  # whether it compares by <, <=, > or >= in a block of threads; by < or >

    @property
    def _most_together(self) -> int:
        return 2 * MOST_OF_BLOCK if self._symbols.places else MOST_TOGETHER

    def admit(self, path: Path, operator: str, apart: Poly) -> None:
        """Refuses a condition on anything but names, counters, lanes and small numbers. It compares `apart` with 0."""
        of = self._symbols
        self._ordered = bool(of.places) and operator not in ("==", "!=")
        self._strict = operator in ("<", ">")
        divided = {name for q in apart.symbols & of.quotients.keys() for name in of.quotients[q][0].symbols}
        made = min(apart.symbols & of.choices.keys(), default="")
        if made and not divided & of.choices.keys():
            chosen, cases = of.choices[made]
            for value in dict.fromkeys(value for _, value in cases):
                self.admit(path, operator, apart.replaced(made, value + symbol(made) - chosen))
            return
        if apart in self.asked.of:
            return
        self._remembered(operator, apart)
        if of.places and apart.symbols <= of.turns:
            # threads' numbers and iterations alone: only the limit on all conditions together applies
            mine = _part(apart, of.places)
            if self._hidden_together(apart - mine, self._spread(mine)) is None:
                return
        if of.places and self._of_few_places(path, apart):
            return
        plain, spread = self._plain(path, apart)
        if isinstance(plain, str):
            wrong: str | None = plain
        elif plain.symbols & of.choices.keys():  # a choice inside a quotient
            self.admit(path, operator, plain)
            return
        else:
            self._remembered(operator, plain)
            compared = plain if of.places or plain.symbols & self._promises.given else apart
            wrong = self._hidden(plain) or self._far_divided(apart) or self._hidden_together(compared, spread)
        if wrong is None:
            return
        if strides := apart.symbols & self._promises.strides:
            name = min(strides)
            wrong = f"'{name}' is a stride; compare strides only with 1: if ({name} == 1)"
        if isinstance(plain, Poly) and plain.symbols - apart.symbols:
            wrong += f" (it is read as {spelled(plain)} {operator} 0)"
        raise Refusal(Guard.CONDITIONS, f"the condition {spelled(apart)} {operator} 0 is not allowed: {wrong}")

    def pick_sizes(self, path: Path, apart: Poly) -> None:
        """Records the sizes that a condition of a block compares with a number inside their range, each with this
        number."""
        self.pick(self._sizes_of_block(path, apart))

    def _sizes_of_block(self, path: Path, apart: Poly) -> dict[str, int]:
        """What differs between threads is no size, nor is the end of a tile."""
        of, promises = self._symbols, self._promises
        behind = of.behind(apart)
        number = abs(apart.terms.get((), 0))
        if behind & of.places or any(name in behind and number == length for name, length in promises.tiles.items()):
            return {}
        if not number or path.prove(apart) or path.prove(ZERO - apart):
            return {}
        names = (behind & promises.given) | self._bounding(path, behind & of.turns)
        names -= promises.strides | promises.tiles.keys()
        names = {name for name in names if not path.within(symbol(name), 0, _MOST_MODES)}
        return {promises.counted.get(name, name): number for name in names}

    def _bounding(self, path: Path, turns: set[str]) -> set[str]:
        """The sizes that bound these numbers of iterations: which of these there are depends on the sizes alone.

        A number that nothing bounds stands for itself, one below a constant for nothing.
        """
        of, given = self._symbols, self._promises.given
        found: set[str] = set()
        left, seen = set(turns), set[str]()
        while left:
            seen.add(turn := left.pop())
            facts = [fact for fact in path.facts.facts if fact.terms.get((turn,), 0) < 0]
            limits = [of.behind(fact) for fact in facts if fact.terms.get((), 0) < _GIVEN_TURNS]
            behind = set[str]().union(*limits) - self._promises.strides
            found |= behind & given
            left |= behind & of.turns - seen
            if not behind & (given | of.turns) - {turn} and not path.within(symbol(turn), 0, _MOST_STATES):
                found.add(turn)
        return found

    def pick(self, names: Mapping[str, int]) -> None:
        """Refuses conditions of a block that together pick one combination of several numbers: no call may have it.

        Of a processor's tiles verification calls each path (`author.paths`).
        """
        if not self._symbols.places:
            return
        picked = self.asked.picked
        picked |= {name: max(number, picked.get(name, 0)) for name, number in names.items()}
        sizes = {name for name in picked if name in self._promises.given | self._symbols.turns}
        scales = picked.keys() - sizes
        if len(sizes) > 1 or (len(scales) > 1 and max(picked.values()) > MOST_WITH_SCALES):
            what = " and ".join(f"'{name}'" for name in sorted(sizes | scales))
            self.asked.crowded = self.asked.crowded or Broken(
                "path", f"conditions compare {what} with numbers", self.at
            )

    def _remembered(self, operator: str, apart: Poly) -> None:
        """Refuses a condition that distinguishes too many values of a loop's locals.

        A primitive's result may be compared with one size only.
        """
        of, message = self._symbols, f"the condition {spelled(apart)} {operator} 0 is not allowed"
        made = apart.symbols & of.made_of.keys()
        sizes = apart.symbols & (self._promises.given - self._promises.steps.keys())
        if made and (len(made) > 1 or not sizes):
            raise Refusal(Guard.CONDITIONS, f"{message}: compare the result of one primitive with one size")
        for name in of.behind(apart) & of.ranges.keys():
            local, states = of.ranges[name]
            self.asked.states[local] = max(states, self.asked.states.get(local, 1))
        if (states := math.prod(self.asked.states.values())) > _MOST_STATES:
            raise Refusal(
                Guard.CONDITIONS,
                f"{message}: together with earlier conditions, locals that a loop changes in several ways distinguish "
                f"{states} states",
            )

    @property
    def _most_divided(self) -> int:
        """The largest lower bound of an argument from which a quotient in a condition is not 0."""
        return 2 * MOST_STEP if self._ordered else self._symbols.most

    @property
    def _allowed_here(self) -> str:
        most = self._symbols.most
        return f"compare names and counters with names and numbers up to {most}, values of tunables included"

    def _plain(self, path: Path, apart: Poly) -> tuple[Poly | str, int]:
        """A condition without quotients and threads' numbers, or the fault in these; and the spread of threads."""
        of = self._symbols
        if self._promises.lanes == 1:
            apart = apart.replaced(LANES, ONE)
        for name in reversed(of.quotients):  # a quotient of a quotient first
            if name not in apart.symbols or name in of.places:
                continue
            found = self._remainder(apart, name)
            if found is None:
                if of.least(name) > self._most_divided:
                    by, most = of.quotients[name][1], (self._most_divided + 1) // 2
                    return f"it divides by {spelled(by)}; divide by at most {most}", 0
                return f"a division encodes another number in it; {self._allowed_here}", 0
            apart = found
        mine = _part(apart, of.places)
        if mine.terms and not path.within(mine, -MOST_APART, MOST_APART):
            part = f"its part {spelled(mine)} differs by up to {self._spread(mine)} between the threads of a block"
            how = "let an iteration take fewer steps of K, and the next iteration a thread's next ones"
            return f"{part}, at most {MOST_APART} is allowed; {how}", 0
        return apart - mine, min(self._spread(mine), MOST_APART)

    def _spread(self, mine: Poly) -> int:
        """The largest absolute value of a sum of threads' numbers."""
        return sum(abs(factor) * (self._symbols.most_of(Poly({one: 1})) or 0) for one, factor in mine.terms.items())

    def _of_few_places(self, path: Path, apart: Poly) -> bool:
        """Whether threads and iterations add one of few numbers to a condition whose rest is allowed."""
        own = self._symbols.made_from(self._symbols.turns)
        mine = _part(apart, own)
        both = mine, mine + number(apart.terms.get((), 0))
        rest = apart - next((one for one in both if path.within(one, -MOST_APART, MOST_APART)), ZERO)
        if rest.symbols & (own | self._symbols.quotients.keys()):
            return False
        return self._hidden(rest) is None and self._hidden_together(rest, MOST_APART) is None

    def _hidden(self, apart: Poly) -> str | None:
        """The fault of a condition alone: too large a number, a product, a stride in a sum."""
        of, allowed, strides = self._symbols, self._allowed_here, self._promises.strides
        constant = apart.terms.get((), 0)
        most = _MOST_LANES_COMPARED if apart.symbols <= {LANES} else of.most // self._elements(apart)
        if abs(constant) > most and not self._whole_iterations(apart, abs(constant)):
            more = f"; let copies be at most {of.most} of K ahead, or whole iterations" if of.places else ""
            return f"it contains the number {abs(constant)}; {allowed}{more}"
        for monomial, factor in apart.terms.items():
            if strides.intersection(monomial) and (len(monomial) > 1 or abs(factor) != 1 or len(apart.symbols) > 1):
                return allowed
            counted = [name for name in monomial if name != LANES and name not in self._promises.paces]
            if len(counted) > 1 or monomial.count(LANES) > 1:
                return f"it contains a product; {allowed}"
            if counted and counted[0] not in of.turns:
                if len(monomial) > 1:
                    return f"it multiplies '{counted[0]}' by lanes; {allowed}"
                if abs(factor) != 1:
                    return f"it multiplies '{counted[0]}' by {abs(factor)}; {allowed}"
            elif LANES in monomial and abs(factor) > MOST_TIMES:
                return f"it multiplies lanes by {abs(factor)}; multiply by at most {MOST_TIMES}"
            elif monomial and abs(factor) > (most_step := self._most_step(apart)):
                return (
                    f"it multiplies '{monomial[0]}' by {abs(factor)}; multiply by at most {most_step}: let an "
                    f"iteration take at most {most_step} steps of K, and do what is for more of them every few "
                    f"iterations (if (i % {-(-abs(factor) // most_step)} == 0))"
                )
        return allowed if apart.symbols & strides and abs(constant) > 1 else None

    def _most_step(self, apart: Poly) -> int:
        """The largest factor of a counter."""
        return MOST_STEP // self._elements(apart) if self._ordered else MOST_COMPARED

    def _whole_iterations(self, apart: Poly, number: int) -> bool:
        """Whether a block's condition asks for an iteration so much of K ahead: by < or >, and a multiple of its step.

        So the calls of verification find each number that it can distinguish, unlike one of any value.
        """
        steps = [abs(factor) for monomial, factor in apart.terms.items() if self._symbols.turns.intersection(monomial)]
        if not (self._ordered and steps and apart.symbols & self._promises.given):
            return False
        of_step = min(number % max(steps), -number % max(steps))  # 1: the last iteration may be a part
        return of_step <= 1 and number * self._elements(apart) <= MOST_AHEAD

    def _elements(self, apart: Poly) -> int:
        """The elements in one step of a condition's counters."""
        steps = self._promises.steps
        return max((steps[name] for name in apart.symbols & steps.keys()), default=1)

    def _counters(self, apart: Poly) -> set[str]:
        return apart.symbols - self._promises.given - self._symbols.quotients.keys() - {LANES}

    def _far_divided(self, apart: Poly) -> str | None:
        """The fault if the conditions so far distinguish a number by its remainder by a large divisor, else None."""
        dividing = (self._counters(apart) | self._symbols.quotients.keys()) - self._symbols.places
        factors = [factor for monomial, factor in apart.terms.items() if dividing.intersection(monomial)]
        self.asked.divided = math.lcm(self.asked.divided, *factors)
        if self.asked.divided <= self._most_together:
            return None
        return (
            "together with earlier conditions, it distinguishes a number by its remainder modulo "
            f"{self.asked.divided}; at most {self._most_together} is allowed"
        )

    def _hidden_together(self, apart: Poly, spread: int) -> str | None:
        """The fault if the conditions so far encode a large number, else None.

        Counters can carry a number from one condition to another, so connected conditions add up.
        """
        of, together = self._symbols, self.asked.together
        counters = self._counters(apart)
        steps: dict[str, int] = {}
        for monomial, factor in apart.terms.items():
            steps.update((name, factor * self._elements(apart)) for name in monomial if name in counters)
        if apart.symbols - counters - {LANES}:
            behind = {one for name in apart.symbols for one in of.made_of.get(name, ())} & of.turns - of.places
            self.asked.of[apart] = {**dict.fromkeys(behind, max(steps.values(), default=1)), **steps}
            for name, step in steps.items():
                group = together.get(name, Together({name}))
                exact = group.exact or not self._ordered
                group = replace(group, steps=group.steps | {abs(step)}, exact=exact)
                together.update(dict.fromkeys(group.counters, group))
        elif counters:
            lanes = abs(apart.terms.get((LANES,), 0)) * (self._promises.lanes or 1)
            most = abs(apart.terms.get((), 0)) + lanes + spread
            if len(counters) == 1:  # one counter: its largest number counts
                apart, most = symbol(*counters), -(-most // abs(steps[min(counters)]))
            ends = self.of_loop and self._ordered and len(counters) == 1
            # the largest number of an iteration is one less
            found = Together(ends={apart: most - self._strict}) if ends else Together(numbers={apart: most})
            for other in (together.get(name, Together({name})) for name in counters):
                found.counters |= other.counters
                found.steps |= other.steps
                found.exact |= other.exact
                found.numbers = _largest(found.numbers, other.numbers)
                found.ends = _largest(found.ends, other.ends)
            together.update(dict.fromkeys(found.counters, found))
        for steps in self.asked.of.values():
            groups = [(abs(step), together.get(name, Together())) for name, step in steps.items()]
            numbers = sum(step * sum(group.numbers.values()) for step, group in groups)
            whole = sum(step * sum(_largest(group.numbers, group.ends).values()) for step, group in groups)
            most = self._most_together
            far = most if any(group.exact for _, group in groups) else max(most, MOST_AHEAD)
            for many, at_most in ((numbers, most), (whole, far)):
                if many > at_most:
                    return (
                        f"together with earlier conditions, it encodes the number {many} in counters (iterations times "
                        f"their step, summed over the loops that share it); at most {at_most} is allowed"
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
        of = self._symbols
        dividend, divisor = of.quotients[name]
        by = divisor.constant
        split = apart.by(name)
        if by is None or split is None or (factor := split[0].constant) is None or of.least(name) > self._most_divided:
            return None
        rest = split[1]
        if rest.symbols <= of.turns and (of.places or rest.symbols or not rest.terms.get((), 0)):
            return tightened(dividend * number(factor) + divisor * rest)
        if factor % by:
            return None
        left = apart + (dividend - divisor * symbol(name)) * number(factor // by)
        return left if left.symbols <= of.turns | of.choices.keys() else None


def _largest(a: Mapping[Poly, int], b: Mapping[Poly, int]) -> dict[Poly, int]:
    return {one: max(a.get(one, 0), b.get(one, 0)) for one in {**a, **b}}


def _part(apart: Poly, own: set[str]) -> Poly:
    """The terms of a condition that have only these symbols; not the constant."""
    return Poly({one: factor for one, factor in apart.terms.items() if one and own.issuperset(one)})
