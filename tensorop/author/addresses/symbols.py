"""The symbols that a proof makes besides the names of the text: what each stands for, and its bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.path import Path
from tensorop.author.addresses.values import Int, Ways, spelled
from tensorop.author.c_types import INT, SIGNED_SIZE, SIZE

MOST_COMPARED = 64  # the largest constant in a condition
MOST_OF_BLOCK = 256  # the length of a tile; for blocks of threads it replaces MOST_COMPARED
MOST_STEP = 512  # of K in an iteration of a block of threads, where a condition compares by < or >
MOST_AHEAD = 2048  # of K in whole iterations ahead, in such a condition; verification calls more
_SYMBOL = re.compile(r"(\w+)@t#\d+|\b[a-z]#\d+")  # of what a text does not name
_MOST_NESTED = 8  # quotients of quotients


class Symbols:
    """The made symbols of one function."""

    def __init__(self) -> None:
        self.turns: set[str] = set()  # numbers of iterations, and `places`
        self.heads: dict[str, str] = {}  # by number of an iteration: the head of its loop
        self.places: set[str] = set()  # threads' numbers in their block, and numbers made of these
        self.highest: dict[Poly, int] = {}  # upper bounds of these
        self.quotients: dict[str, tuple[Poly, Poly]] = {}
        self.rests: dict[str, tuple[Poly, int]] = {}  # dividend and divisor
        self.choices: dict[str, tuple[Poly, list[tuple[tuple[Poly, ...], Poly]]]] = {}  # the facts for each value
        self.made_of: dict[str, set[str]] = {}  # the symbols of the arguments, by symbol of a primitive's result
        # by symbol of a local with few values in a loop: the local, the loop's position, the number of values
        self.ranges: dict[str, tuple[tuple[str, int], int]] = {}
        self.by_choice = 0  # the number of uses of `choices`
        self._of: dict[tuple[Poly, Poly], str] = {}  # a symbol of `quotients` or `rests` by dividend and divisor
        self._fresh = 0

    def fresh(self, letter: str) -> str:
        self._fresh += 1
        return f"{letter}#{self._fresh}"

    @property
    def most(self) -> int:
        """The largest constant in a condition."""
        return MOST_OF_BLOCK if self.places else MOST_COMPARED

    def readable(self, message: str) -> str:
        """A message with names of the text in place of the proof's symbols."""
        heads: list[str] = []

        def named(found: re.Match[str]) -> str:
            if (name := found[0]) in self.quotients:
                dividend, divisor = map(spelled, self.quotients[name])
                return f"({dividend}) / {f'({divisor})' if ' ' in divisor else divisor}"
            if name in self.rests:
                return f"({spelled(self.rests[name][0])}) % {self.rests[name][1]}"
            if name in self.heads and self.heads[name] not in heads:
                heads.append(self.heads[name])
            return found[1] or ("turn" if name in self.heads else "thread" if name[0] == "n" else "choice")

        for _ in range(_MOST_NESTED):
            message = _SYMBOL.sub(named, message)
        return message + "".join(f"; turn is the iterations of `{head}`" for head in heads)

    # ---- threads

    def thread(self, path: Path, number_: Poly, count: Poly) -> None:
        """Records that a symbol is the number of one of `count` threads."""
        self._place(number_, (count.constant or 0) - 1)
        path.learn([count - ONE - number_])

    def _place(self, of: Poly, highest: int) -> None:
        self.places |= of.symbols
        self.turns |= of.symbols
        self.highest[of] = highest

    def most_of(self, p: Poly) -> int | None:
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

    # ---- quotients

    def divided(self, path: Path, p: Poly, q: Poly) -> Poly | None:
        """The quotient p / q, where q >= 1 is proved; None if p >= 0 is not."""
        p, q = path.settled(p), path.settled(q)
        for monomial in p.terms:
            self._below_dividend(path, monomial)
        if not path.whole(Int(p, SIZE)):
            return None
        if (of := p.constant) is not None and (by := q.constant) is not None:
            return number(of // by)
        if (name := self._of.get((p, q))) is None:
            name = self._of[p, q] = self.fresh("q")
            self.quotients[name] = p, q
        whole = symbol(name)
        path.learn([p - q * whole, q * whole + q - ONE - p, p - whole])
        if (by := q.constant) is not None and (highest := self.most_of(p)) is not None:
            self._place(whole, highest // by)
            self.highest[p - q * whole] = min(highest, by - 1)
            path.learn([number(highest // by) - whole])
        return whole

    def rest(self, path: Path, p: Poly, q: Poly, quotient: Poly) -> Poly:
        """The remainder p % q. For a thread's number and a constant it is a new symbol, as the thread's number is."""
        p, by = path.settled(p), path.settled(q).constant
        highest = self.most_of(p)
        if by is None or highest is None:
            return p - quotient * q
        if (name := self._of.get((p, ZERO - number(by)))) is None:
            name = self._of[p, ZERO - number(by)] = self.fresh("r")
            self.rests[name] = p, by
        rest = symbol(name)
        self._place(rest, min(highest, by - 1))
        whole = quotient * number(by) + rest
        path.learn([p - whole, whole - p, number(self.highest[rest]) - rest])
        return rest

    def least(self, name: str) -> int:
        """A lower bound of the kernel's argument if a quotient is not 0."""
        dividend, divisor = self.quotients[name]
        wanted = (divisor.constant or self.most) + abs(dividend.terms.get((), 0))
        found = 1
        for monomial, factor in dividend.terms.items():
            for one in monomial:
                if one in self.quotients:
                    found = max(found, self.least(one) * -(-wanted // abs(factor)))
        return max(found, wanted)

    # ---- products

    def multiplied(self, path: Path, p: Poly, q: Poly) -> None:
        """Adds bounds of a product: a thread's number times y is at most the largest such number times y."""
        for mine, other in ((p, q), (q, p)):
            if other.constant is None and mine.symbols <= self.places and path.whole(Int(other, SIGNED_SIZE), False):
                most = self.most_of(mine)
                if most is not None and path.prove(mine):
                    path.learn([mine * other, number(most) * other - mine * other])

    def _below_dividend(self, path: Path, monomial: tuple[str, ...]) -> None:
        """Adds a bound: a counter below a divisor, times the quotient by this divisor, is below the dividend."""
        for counter, name in (monomial, monomial[::-1]) if len(monomial) == 2 else ():
            if counter in self.turns and name in self.quotients:
                dividend, divisor = self.quotients[name]
                if path.facts.prove(divisor - ONE - symbol(counter)) and path.facts.prove(dividend - ONE):
                    product = Poly({monomial: 1})
                    path.learn([dividend - ONE - product, dividend - symbol(name) - product])

    # ---- choices

    def chosen(self, path: Path, low: Iterable[Poly], high: Iterable[Poly], negative: bool = False) -> Poly:
        """A new number between all of `low` and all of `high`. negative: it may be below 0, unlike a symbol."""
        made = symbol(name := self.fresh("x")) - (symbol(f"y{name[1:]}") if negative else ZERO)
        path.learn([*(made - one for one in low), *(one - made for one in high)])
        return made

    def cases(self, made: Poly, *chosen: tuple[Ways, Poly]) -> Poly:
        """Records the facts that hold for each value of a choice."""
        self.choices[min(made.symbols)] = made, [(way.facts, value) for ways, value in chosen for way in ways]
        return made

    def either(self, path: Path, yes: Ways, no: Ways) -> Int:
        """A number that is 1 on the paths `yes` and 0 on the paths `no`."""
        return Int(self.cases(self.chosen(path, [ZERO], [ONE]), (yes, ONE), (no, ZERO)), INT)

    def cases_of(
        self, polys: tuple[Poly, ...], facts: tuple[Poly, ...], links: tuple[Poly, ...] = ()
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
            yield from self.cases_of(again, replaced, (*links, made - value, value - made))

    def behind(self, apart: Poly) -> set[str]:
        """The symbols of a condition, and all symbols that these were made of."""
        found: set[str] = set()
        left = set(apart.symbols)
        while left:
            found.add(name := left.pop())
            polys = [*self.quotients.get(name, ()), *(value for _, value in self.choices.get(name, (ZERO, []))[1])]
            left |= {one for poly in polys for one in poly.symbols}.union(self.made_of.get(name, ())) - found
        return found

    def made_from(self, found: set[str]) -> set[str]:
        """These symbols, and the quotients that are made of them alone."""
        found = set(found)
        for name, (dividend, divisor) in self.quotients.items():  # in the order in which they were made
            if dividend.symbols | divisor.symbols <= found:
                found.add(name)
        return found
