"""Loops. A name that each iteration changes by the same step is its first value plus iteration number times step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace

from tree_sitter import Node

from tensorop.author.addresses.expressions import Expressions
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.path import Path
from tensorop.author.addresses.values import Data, Int, PartialVector, Ptr, Value, Ways, poly_of, replaced
from tensorop.author.c_types import KEPT, SIZE, limits_of
from tensorop.author.contracts import LANES
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken, Refusal
from tensorop.author.terms import Term, changed, direct, every, field, term, text

_MOST_OF_HEAD = 80  # characters of a loop's head in messages
_MOST_PASSES = 32  # through a loop's body, until the assumptions hold


class Trace:
    """The statements of a text, and those that a path reaches."""

    def __init__(self) -> None:
        self.statements: dict[int, int] = {}  # the last byte of each, by its first
        self.reached: set[int] = set()  # the first bytes

    def unreached(self) -> list[tuple[int, int]]:
        """The bytes of each statement that is held for never executed, without those inside another."""
        found: list[tuple[int, int]] = []
        for first, last in sorted(self.statements.items()):
            if first not in self.reached and not (found and first < found[-1][1]):
                found.append((first, last))
        return found


class Loop:
    """One loop on one path, with assumptions on its iterations. They are weakened until an iteration confirms them."""

    def __init__(
        self, node: Node, before: Path, expressions: Expressions, trace: Trace, body: Callable[[list[Path]], list[Path]]
    ) -> None:
        """body: the paths at the end of an iteration, by those at its begin"""
        self._node, self._before, self._body, self._condition = node, before, body, term(field(node, "condition"))
        self._expressions, self._symbols, self._trace = expressions, expressions.symbols, trace
        self._turn = self._symbols.fresh("t")  # the symbol of an iteration's number
        self._symbols.turns.add(self._turn)
        self._symbols.heads[self._turn] = " ".join(text(node).partition("{")[0].split())[:_MOST_OF_HEAD]
        self._steps: dict[str, Poly | None] = {}  # the step of each name; None: unknown
        self._held: dict[str, Value] = {}  # values of names without a number, weakened
        # limits of names without a constant step; None: unknown
        self._between: dict[str, tuple[int, int] | None] = {}
        self._ends = False  # whether the last pass proved that the iterations end
        self._same = {LANES} | before.promises.given | before.symbols  # with one value in every iteration
        update, inside = node.child_by_field_name("update"), field(node, "body")
        once, anywhere = [*direct(update), *direct(inside)], [*direct(update), *every(inside)]
        often = Counter(map(changed, anywhere)) - Counter(map(changed, once))  # by what an `if` or a loop changes
        for part in once:
            if changed(part) not in often:
                self._guess(part)
        # names in `steps` that do not wrap around
        self._claimed = {name for name in self._steps if before.whole(before.env[name], most=KEPT)}

    def exits(self) -> list[Path]:
        """The paths after the loop. Raises Refusal."""
        admission, trace, blocks = self._expressions.admission, self._trace, self._expressions.scopes.blocks
        depth, reached, checked = len(blocks), trace.reached, self._before.checked
        weakened, failed = False, None
        for _ in range(_MOST_PASSES):
            asked, trace.reached = admission.asked.copy(), set()
            try:
                exits, again = self._passed(checked)
            except Refusal as refusal:  # the final assumptions may avoid it: they are found without checks
                del blocks[depth:]
                if failed or not checked or not self._symbols.places:
                    raise
                checked, weakened, failed, again = False, False, refusal, True
            else:
                weakened = weakened or again
                if failed and not (again or checked):
                    if not weakened:
                        raise failed
                    checked, again = True, True
            if not again:
                if checked and not self._ends:
                    raise Broken("loop", "nothing proves that the loop ends")
                trace.reached |= reached  # as the last pass found, whose assumptions hold
                return exits
            admission.asked = asked  # the records of a pass with wrong assumptions are dropped
        raise Refusal(Guard.BOUNDS, "a loop changes counters in a way that cannot be bounded; use a fixed step")

    # ---- assumptions

    def _revised(self, first: Mapping[str, Value], end: Path) -> bool:
        """Weakens the assumptions that an iteration contradicts. True if there was one."""
        again = False
        for name, value in first.items():
            now = end.env.get(name)
            expected = replaced(value, self._turn, symbol(self._turn) + ONE)
            if now == expected and name not in self._claimed:
                continue
            if isinstance(value, (Data, PartialVector)):
                weaker = self._weaker(value, now, first=name not in self._held)
                if weaker != value:
                    self._held[name], again = weaker, True
            elif now == expected:
                if not end.whole(now, most=KEPT):
                    self._claimed.discard(name)
                    again = True
            elif name in self._between:
                limits = self._between[name]
                self._between[name] = wider = limits and self._wider(end, now, limits)
                again = again or wider != limits
            elif poly_of(value) is not None:
                self._other_step(name, value, now)
                again = True
        return again

    def _other_step(self, name: str, old: Value, now: Value | None) -> None:
        """Assumes another step of a name: first the observed one, then limits, then nothing."""
        value, first, then, step = self._before.env[name], poly_of(old), poly_of(now), None
        same = getattr(old, "operand", None) is getattr(now, "operand", None)
        if name not in self._steps and same and first is not None and then is not None:
            step = then - first if (then - first).symbols <= self._before.symbols else None
        self._steps[name] = step
        self._claimed.discard(name)
        if step is not None and self._before.whole(value, most=KEPT):
            self._claimed.add(name)
        if step is None and self._symbols.places:
            self._between[name] = self._wider(self._before, value, (0, -1))

    def _wider(self, path: Path, value: Value | None, limits: tuple[int, int]) -> tuple[int, int] | None:
        """Limits that also include this value, from the loop's own numbers; None if none are proved."""
        if not isinstance(value, Int) or (poly := value.poly) is None:
            return None
        numbers = {int(one) for one in re.findall(rb"(?<![\w.])\d{1,3}(?![\w.])", self._node.text or b"")}
        marks = sorted({-1, 0, *numbers, *(one - 1 for one in numbers)})
        low = next((low for low in (0, -1) if low <= limits[0] and path.prove(poly - number(low))), None)
        high = next((high for high in marks if high >= limits[1] and path.prove(number(high) - poly)), None)
        return None if low is None or high is None else (low, high)

    def _weaker(self, value: Value, now: Value | None, *, first: bool) -> Value:
        """The value of a name without a number in every iteration: as before the loop, or as an iteration leaves it."""
        if Data.UNSET in (value, now):
            return Data.UNSET
        if isinstance(now, PartialVector):
            lasting = value is Data.NUMBER and now.lanes.symbols <= self._lasting() - {self._turn}
            return now if first and lasting else PartialVector(ZERO)
        return value if isinstance(value, PartialVector) else Data.NUMBER

    def _guess(self, of: Term) -> None:
        """Records the step of a name, from a statement that each iteration executes once."""
        match of:
            case "step", by, ("name", name):
                value: Term = ("number", 1, "1")
            case "assign", ("+" | "-") as sign, ("name", name), value:
                by = 1 if sign == "+" else -1
            case _:
                return
        if isinstance(self._before.env.get(name), (Int, Ptr)):
            with suppress(Refusal):  # it depends on locals of the loop
                if (step := poly_of(self._expressions.value(replace(self._before, checked=False), value))) is not None:
                    self._steps[name] = (self._steps.get(name) or ZERO).plus(step, by)

    # ---- one iteration

    def _head(self) -> Path:
        """The path at the begin of any iteration t."""
        before, head, t, facts = self._before, self._before.under(), symbol(self._turn), []
        for name, step in self._steps.items():
            claimed, value = name in self._claimed, before.env[name]
            first = poly_of(value)
            now = None if first is None or step is None else first + t * step
            if isinstance(value, Ptr):
                head.env[name] = value._replace(offset=now)
                if now is not None and claimed:
                    facts += [now, number(KEPT) - now]
            elif isinstance(value, Int) and (limits := self._between.get(name)) is not None:
                low, high = limits
                made = f"{name}@{self._turn}"
                self._symbols.ranges[made] = (name, self._node.start_byte), high - low + 1
                head.env[name] = Int(symbol(made) + number(low), value.type)
                facts.append(number(high - low) - symbol(made))
            elif isinstance(value, Int):
                now = now if claimed or value.type == SIZE else None
                head.env[name] = Int(now, value.type)
                if now is not None and claimed:
                    low, high = limits_of(value.type, KEPT)
                    grows = step is not None and min(step.terms.values(), default=0) >= 0
                    if self._symbols.places and grows and first is not None and before.prove(first):
                        low = 0  # as before the first iteration
                    facts += [now - number(low), number(high) - now]
        head.learn(facts)
        head.env.update(self._held)
        return head

    def _passed(self, checked: bool) -> tuple[list[Path], bool]:
        """Interprets one iteration with the assumptions: the paths after the loop, and whether these had to change."""
        head = self._head()
        head.checked, first = checked, dict(head.env)
        yes, no = self._tested(probe := head.under())
        if more := self._at_head(yes):
            head.learn(more)
            yes, no = self._tested(probe := head.under())
        self._ends = all(any(self._falls(fact) for fact in way.facts) for way in yes)
        ends = self._body(probe.ways(yes))
        exits = probe.ways(no)
        if (count := self._count(yes, no)) is not None:
            exits = [self._after(exit_, count) for exit_ in exits]
        return exits, True in [self._revised(first, end) for end in ends]

    def _tested(self, path: Path) -> tuple[Ways, Ways]:
        expressions = self._expressions
        expressions.testing = expressions.admission.of_loop = True
        try:
            return expressions.decide(path, self._condition)
        finally:
            expressions.testing = expressions.admission.of_loop = False

    def _change(self, fact: Poly) -> Poly | None:
        """The amount that each iteration adds to a polynomial; None if it differs between iterations."""
        fact = self._before.settled(fact)
        split = fact.by(self._turn) if fact.symbols <= self._lasting() else None
        return split and split[0]

    def _falls(self, fact: Poly) -> bool:
        """Whether a condition on going on falls by 1 or more in each iteration, so that it once does not hold."""
        step = self._change(fact)
        return step is not None and self._before.facts.prove(ZERO - step - ONE)

    def _at_head(self, yes: Ways) -> list[Poly]:
        """Facts that hold whenever a loop's condition is read: it held one iteration ago, or this is the first time."""
        if len(yes) != 1:
            return []
        steps = [(fact, self._change(fact)) for fact in yes[0].facts]
        found = [fact - step for fact, step in steps if step is not None]
        for apart in yes[0].unequal:  # what falls by 1 per iteration until it is 0
            found += [one for one in (apart, ZERO - apart) if self._change(one) == number(-1)]
        return [fact for fact in found if self._before.prove(fact.replaced(self._turn, ZERO))]

    def _lasting(self) -> set[str]:
        """The symbols with one value in every iteration, and the symbol of the iteration's number."""
        return self._symbols.made_from(self._same) | {self._turn}

    def _count(self, yes: Ways, no: Ways) -> Poly | None:
        """The number of iterations of a loop that ends by its condition; None if unknown."""
        if len(yes) != 1 or len(no) != 1 or len(yes[0].facts) != 1:
            return None
        step, first = self._change(yes[0].facts[0]), yes[0].facts[0].replaced(self._turn, ZERO)
        if step is None or (by := step.constant) is None or by >= 0:
            return None
        first = self._before.settled(first)
        if (value := first.constant) is not None:
            return number(max(value // -by + 1, 0))
        return first + ONE if by == -1 and self._before.facts.prove(first + ONE) else None

    def _after(self, exit_: Path, count: Poly) -> Path:
        env = {name: replaced(value, self._turn, count) for name, value in exit_.env.items()}
        made = Path(exit_.promises, env, self._before.facts, exit_.ones, exit_.checked)
        made.learn(fact.replaced(self._turn, count) for fact in exit_.facts.facts[len(self._before.facts.facts) :])
        return made
