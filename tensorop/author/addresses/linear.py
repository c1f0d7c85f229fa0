"""Integers as polynomials over symbols that are never negative, and proofs that a polynomial is at least 0.

A monomial of several symbols (`t * lanes`) is an unknown of its own. A proof subtracts multiples of known facts until
no coefficient is negative.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache

Monomial = tuple[str, ...]  # sorted names; () is the constant
Key = frozenset[tuple[Monomial, int]]

_MANY = 3  # negative terms from which their upper bounds alone are tried first
_DEEPEST = 7  # facts in one proof
_STEPS = 400  # steps of one search for a proof
_MOST_KNOWN = 1 << 16
_HUGE = 1 << 40  # facts with a constant above this are used only for goals that have one too


class Poly:
    """A polynomial with integer coefficients, none of which is 0."""

    __slots__ = ("_fixed", "_key", "terms")

    def __init__(self, terms: dict[Monomial, int]) -> None:
        self.terms = terms
        self._key: Key | None = None
        self._fixed: tuple[int, Poly] | None = None

    @property
    def key(self) -> Key:
        if self._key is None:
            self._key = frozenset(self.terms.items())
        return self._key

    def __hash__(self) -> int:
        return hash(self._key or self.key)

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Poly) and self.terms == other.terms)

    def __add__(self, other: Poly) -> Poly:
        return self.plus(other, 1) if other.terms else self

    def __sub__(self, other: Poly) -> Poly:
        return self.plus(other, -1) if other.terms else self

    def plus(self, other: Poly, times: int) -> Poly:
        terms = dict(self.terms)
        for monomial, factor in other.terms.items():
            value = terms.get(monomial, 0) + times * factor
            if value:
                terms[monomial] = value
            else:
                del terms[monomial]
        return Poly(terms)

    def __mul__(self, other: Poly) -> Poly:
        for one, many in ((other, self), (self, other)):
            factor = one.constant
            if factor is not None:
                if factor == 1:
                    return many
                return Poly({monomial: factor * mine for monomial, mine in many.terms.items()} if factor else {})
        terms: dict[Monomial, int] = {}
        for a, x in self.terms.items():
            for b, y in other.terms.items():
                monomial = tuple(sorted(a + b))
                terms[monomial] = terms.get(monomial, 0) + x * y
        return Poly({monomial: factor for monomial, factor in terms.items() if factor})

    @property
    def constant(self) -> int | None:
        """The value of a polynomial without symbols, else None."""
        if not self.terms:
            return 0
        return self.terms[()] if len(self.terms) == 1 and () in self.terms else None

    def by(self, symbol: str) -> tuple[Poly, Poly] | None:
        """Factor and rest without the symbol: self = factor * symbol + rest. None if it has a power of the symbol."""
        factor: dict[Monomial, int] = {}
        rest: dict[Monomial, int] = {}
        for monomial, value in self.terms.items():
            if symbol not in monomial:
                rest[monomial] = value
                continue
            left = list(monomial)
            left.remove(symbol)
            if symbol in left:
                return None
            factor[tuple(left)] = value
        return Poly(factor), Poly(rest)

    def replaced(self, symbol: str, by: Poly) -> Poly:
        """This polynomial with another one in a symbol's place."""
        if not any(symbol in monomial for monomial in self.terms):
            return self
        made = Poly({})
        for monomial, value in self.terms.items():
            one = Poly({tuple(name for name in monomial if name != symbol): value})
            for _ in range(monomial.count(symbol)):
                one = one * by
            made = made + one
        return made

    def fixed(self, symbol: str, value: int) -> Poly:
        """This polynomial with a number in a symbol's place; the last result is cached."""
        found = self._fixed
        if found is None or found[0] != value:
            found = self._fixed = value, self.replaced(symbol, number(value))
        return found[1]

    @property
    def symbols(self) -> set[str]:
        return {name for monomial in self.terms for name in monomial}


@lru_cache(maxsize=1024)
def number(value: int) -> Poly:
    return Poly({(): value} if value else {})


@lru_cache(maxsize=1024)
def symbol(name: str) -> Poly:
    return Poly({(name,): 1})


ZERO, ONE = number(0), number(1)

_MOST_BEGUN = 1 << 9  # kernels that share the object without facts
_BEGUN = itertools.count(1)
_PROVED: dict[tuple[frozenset[Key], Key], bool] = {}  # by facts and goal


class Facts:
    """Polynomials that are known to be at least 0. Immutable; `known` returns a cached object with more facts."""

    __slots__ = ("_about", "_bounded", "_chosen", "_more", "_most", "_proved", "facts")

    def __init__(self, facts: tuple[Poly, ...] = ()) -> None:
        self.facts = facts
        self._proved: dict[Key, bool] = {}
        self._bounded: tuple[tuple[Poly, ...], Facts] | None = None
        self._more: dict[tuple[Poly, ...], Facts] = {}
        self._chosen: dict[tuple[frozenset[Monomial], bool], tuple[list[Poly], frozenset[Key]]] = {}
        self._about: dict[Monomial, list[Poly]] | None = None
        self._most: dict[Monomial, int] | None = None

    def known(self, more: Iterable[Poly]) -> Facts:
        tight = tuple(fact for fact in map(tightened, more) if fact.constant is None or fact.constant < 0)
        if not tight:
            return self
        made = self._more.get(tight)
        if made is None:
            made = self._more[tight] = Facts(self.facts + tight)
        return made

    @staticmethod
    def none() -> Facts:
        """An object without facts. It is shared by up to _MOST_BEGUN kernels, with the results cached in it."""
        global _NOTHING
        if next(_BEGUN) % _MOST_BEGUN == 0:
            _NOTHING = Facts()
        return _NOTHING

    def bounded(self, limits: tuple[Poly, ...]) -> Facts:
        """These facts and the limits; cached, since a function's limits stay the same."""
        found = self._bounded
        if found is None or found[0] is not limits:
            found = self._bounded = limits, self.known(limits)
        return found[1]

    def shared(self, other: Facts) -> Facts:
        """The facts that both have."""
        its = set(other.facts)
        both = tuple(fact for fact in self.facts if fact in its)
        return self if len(both) == len(self.facts) else Facts(both)

    def prove(self, goal: Poly) -> bool:
        """Whether these facts prove that the goal is at least 0."""
        if min(goal.terms.values(), default=0) >= 0:
            return True
        found = self._proved.get(asked := goal._key or goal.key)
        if found is None:
            goal = tightened(goal)
            less = self._less(goal)
            if less is not None and self.prove(less):
                self._proved[asked] = True
                return True
            about = frozenset(goal.terms), abs(goal.terms.get((), 0)) >= _HUGE
            if (chosen := self._chosen.get(about)) is None:
                facts = _tightest(self._relevant(goal))
                chosen = self._chosen[about] = facts, frozenset(fact.key for fact in facts)
            key = chosen[1], goal.key
            found = _PROVED.get(key)
            if found is None:
                found = _Search(chosen[0]).holds(goal.terms, 1, _DEEPEST)
                if len(_PROVED) >= _MOST_KNOWN:
                    _PROVED.clear()
                _PROVED[key] = found
            self._proved[asked] = found
        return found

    def _less(self, goal: Poly) -> Poly | None:
        """A stronger goal: monomials with a constant upper bound are replaced by this bound. None if there are few."""
        if sum(factor < 0 for factor in goal.terms.values()) < _MANY:
            return None
        if (most := self._most) is None:
            most = {}
            for fact in self.facts:
                limit, names = fact.terms.get((), 0), [name for name in fact.terms if name]
                if len(names) == 1 and fact.terms[names[0]] == -1:
                    most[names[0]] = min(limit, most.get(names[0], limit))
            self._most = most
        names = [name for name, factor in goal.terms.items() if factor < 0 and name in most]
        if len(names) < _MANY:
            return None
        terms = {name: factor for name, factor in goal.terms.items() if name not in names}
        return Poly(terms) + number(sum(goal.terms[name] * most[name] for name in names))

    def _relevant(self, goal: Poly) -> Iterator[Poly]:
        """The facts that share a monomial with the goal, directly or through other facts."""
        if (about := self._about) is None:
            about = {}
            for fact in self.facts:
                for monomial in fact.terms:
                    about.setdefault(monomial, []).append(fact)
            self._about = about  # complete, since other threads read it
        huge = abs(goal.terms.get((), 0)) >= _HUGE
        seen: set[int] = set()
        left = [monomial for monomial in goal.terms if monomial]
        asked = set(left)
        for fact in self.facts:
            if fact.constant is not None:  # a contradiction: the code is unreachable
                yield fact
        while left:
            for fact in about.get(left.pop(), ()):
                if id(fact) not in seen and (huge or fact.terms.get((), 0) < _HUGE):
                    seen.add(id(fact))
                    yield fact
                    more = [monomial for monomial in fact.terms if monomial and monomial not in asked]
                    asked.update(more)
                    left += more


_NOTHING = Facts()


def _tightest(facts: Iterable[Poly]) -> list[Poly]:
    """The facts without those that follow from another fact with a smaller constant."""
    found: dict[Key, Poly] = {}
    for fact in facts:
        key = fact.key - {((), fact.terms.get((), 0))}
        if (other := found.get(key)) is None or fact.terms.get((), 0) < other.terms.get((), 0):
            found[key] = fact
    return list(found.values())


def tightened(fact: Poly) -> Poly:
    """An equivalent fact for integers: the factors have no common divisor."""
    common = math.gcd(*(factor for monomial, factor in fact.terms.items() if monomial))
    if common <= 1:
        return fact
    terms = {monomial: factor // common for monomial, factor in fact.terms.items()}  # the constant rounds down
    return Poly({monomial: factor for monomial, factor in terms.items() if factor})


class _Search:
    """The search for one proof: it subtracts multiples of facts from the goal until no factor is negative."""

    def __init__(self, facts: list[Poly]) -> None:
        self.facts, self.left = [fact.terms for fact in facts], _STEPS

    def holds(
        self, goal: Mapping[Monomial, int], scale: int, depth: int, done: frozenset[Monomial] = frozenset()
    ) -> bool:
        """Whether goal + scale - 1 >= 0 is proved. The goal is `scale` times the asked polynomial, which is an integer.

        done: monomials that facts removed; no further fact may add them again
        """
        negative = [monomial for monomial, factor in goal.items() if factor < 0 and monomial]
        if not negative and goal.get((), 0) > -scale:
            return True
        self.left -= 1
        if depth == 0 or self.left < 0:
            return False
        if negative:
            negative.sort(key=len, reverse=True)  # products first: their facts also have the other monomials
            of_each = ([(one, fact) for fact in self.facts if fact.get(one, 0) < 0] for one in negative)
            choices = min(of_each, key=len)
        else:
            choices = [
                (monomial, fact)
                for fact in self.facts
                if any(factor < 0 for factor in fact.values())
                for monomial in (fact or ((),))
                if fact.get(monomial, 0) > 0 and goal.get(monomial, 0) > 0
            ]
        if any(len(fact) == 1 and fact.get((), 0) < 0 for fact in self.facts):
            return True  # the facts contradict each other: the code is unreachable
        ways = []
        for monomial, fact in choices:
            if any(fact.get(name, 0) > 0 for name in done):
                continue
            mine, its = abs(goal[monomial]), abs(fact[monomial])
            common = math.gcd(mine, its)
            mine, its = mine // common, its // common
            less = Poly({name: its * factor for name, factor in goal.items()}).plus(Poly(fact), -mine).terms
            ways.append((sum(factor < 0 for factor in less.values()), less, scale * its, monomial))
        return any(
            self.holds(less, times, depth - 1, done | {monomial} if negative else done)
            for _, less, times, monomial in sorted(ways, key=lambda way: way[0])
        )
