"""Loops. A name that each iteration changes by the same step is its first value plus iteration number times step."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from tree_sitter import Node

from tensorop.author.addresses.expressions import Expressions
from tensorop.author.addresses.knowledge import LANES, Refusal, Together
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.syntax import Term, changed, direct, every, parts, term, text
from tensorop.author.addresses.values import (
    KEPT,
    SIZE,
    Data,
    Int,
    PartialVector,
    Pred,
    Ptr,
    State,
    Value,
    Way,
    Ways,
    change,
    limits_of,
    next_turn,
    nothing_known,
    replaced,
    ring,
    step_between,
    symbols_of,
)  # fmt: skip
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken

_MOST_OF_HEAD = 80  # characters of a loop's head in messages
_MOST_PASSES = 32  # through a loop's body, until the assumptions hold


@dataclass
class _Assumed:
    """The assumptions on a loop's iterations. They are weakened until an iteration confirms them."""

    turn: str  # the symbol of an iteration's number
    loop: int  # the byte at which the loop begins
    marks: Sequence[int]  # candidates for limits, from the numbers in the loop's text
    steps: dict[str, Poly | None] = field(default_factory=dict)  # the step of each name; None: unknown
    claimed: set[str] = field(default_factory=set)  # names in `steps` that do not wrap around
    held: dict[str, Value] = field(default_factory=dict)  # values of names without a number, weakened
    # limits of names without a constant step; None: unknown
    between: dict[str, tuple[int, int] | None] = field(default_factory=dict)
    ends: bool = False  # whether the last pass proved that the iterations end


class Loops(Expressions):
    """Interprets loops."""

    def _block(self, nodes: Sequence[Node], states: list[State]) -> list[State]:
        """The states after a block's statements."""
        raise NotImplementedError

    def _simple(self, node: Node, states: list[State]) -> list[State]:
        """The states after a statement without a body."""
        raise NotImplementedError

    def _apart(self, state: State, ways: Ways) -> list[State]:
        """The states on paths that can be taken, as far as the facts show."""
        return [
            State(dict(state.env), state.facts.known(way.facts), state.ones | way.ones)
            for way in ways
            if not any(state.facts.prove(ZERO - fact - ONE) for fact in way.facts)
        ]

    def unreached(self) -> list[tuple[int, int]]:
        """The bytes of each statement that is held for never executed, without those inside another."""
        found: list[tuple[int, int]] = []
        for first, last in sorted(self.statements.items()):
            if first not in self.reached and not (found and first < found[-1][1]):
                found.append((first, last))
        return found

    def _loop(self, node: Node, state: State) -> list[State]:
        """The states after a loop. In iteration t, a name with a constant step is its first value plus t * step."""
        condition = node.child_by_field_name("condition")
        update = node.child_by_field_name("update")
        body = node.child_by_field_name("body")
        assert body is not None
        of = term(condition) if condition is not None else None
        self.fresh += 1
        assumed = _Assumed(f"t#{self.fresh}", node.start_byte, _marks(node))
        self.turns.add(assumed.turn)
        self.loops[assumed.turn] = " ".join(text(node).partition("{")[0].split())[:_MOST_OF_HEAD]
        once, anywhere = [*parts(update), *direct(body)], [*parts(update), *every(body)]
        often = Counter(map(changed, anywhere)) - Counter(map(changed, once))  # by what an `if` or a loop changes
        for part in once:
            if changed(part) not in often:
                self._guess(state, part, assumed.steps)
        assumed.claimed |= {name for name in assumed.steps if self._whole(state, state.env[name], most=KEPT)}

        def passed() -> tuple[list[State], bool]:
            """Interprets one iteration with the assumptions; the second result is whether these had to change."""
            head = self._head(state, assumed)
            before = dict(head.env)
            exits, ends = self._turn(node, state, head, of, assumed)
            changes = [self._revised(state, assumed, before, end) for end in ends]
            return exits, any(changes)

        again_known = False
        depth = len(self.scopes)
        reached = self.reached
        for _ in range(_MOST_PASSES):
            asked, self.reached = self._asked(), set()
            try:
                exits, again = passed()
            except Refusal:  # the final assumptions may avoid it
                del self.scopes[depth:]
                if again_known or self.trusted or not self.places or not self._assumed_at_last(passed):
                    raise
                again_known = again = True
            if not again and (assumed.ends or self.trusted):
                self.reached |= reached  # as the last pass found, whose assumptions hold
                return exits
            if not again:
                raise Broken("loop", "nothing proves that the loop ends", node)
            # The records of a pass with wrong assumptions are dropped.
            self.asked, self.together, self.state_counts, self.divided, self.picked = asked
        raise Refusal(Guard.BOUNDS, "a loop changes counters in a way that cannot be bounded; use a fixed step", node)

    def _asked(
        self,
    ) -> tuple[dict[Poly, dict[str, int]], dict[str, Together], dict[tuple[str, int], int], int, dict[str, int]]:
        return dict(self.asked), dict(self.together), dict(self.state_counts), self.divided, dict(self.picked)

    def _assumed_at_last(self, passed: Callable[[], tuple[list[State], bool]]) -> bool:
        """Repeats passes without checks until the assumptions hold. True if they had to change and hold now."""
        depth = len(self.scopes)
        self.trusted, changed = True, False
        try:
            for _ in range(_MOST_PASSES):
                if not passed()[1]:
                    return changed
                changed = True
        except Refusal:
            pass
        finally:
            self.trusted = False
            del self.scopes[depth:]
        return False

    def _revised(self, state: State, assumed: _Assumed, before: Mapping[str, Value], end: State) -> bool:
        """Weakens the assumptions that an iteration contradicts. True if there was one."""
        again = False
        for name, value in before.items():
            now = end.env.get(name)
            expected = next_turn(value, assumed.turn)
            if now == expected and name not in assumed.claimed:
                continue
            if isinstance(value, (Data, PartialVector, Pred)):
                weaker = self._weaker(state, value, now, first=name not in assumed.held)
                if weaker != value:
                    assumed.held[name], again = weaker, True
            elif now == expected:
                if not self._whole(end, now, most=KEPT):
                    assumed.claimed.discard(name)
                    again = True
            elif name in assumed.between:
                limits = assumed.between[name]
                assumed.between[name] = wider = limits and self._wider(end, now, limits, assumed.marks)
                again = again or wider != limits
            elif not nothing_known(value):
                self._other_step(state, assumed, name, step_between(value, now, assumed.turn))
                again = True
        return again

    def _other_step(self, state: State, assumed: _Assumed, name: str, step: Poly | None) -> None:
        """Assumes another step of a name: first the observed one, then limits, then nothing."""
        if name in assumed.steps or (step is not None and step.symbols - symbols_of(state)):
            step = None
        assumed.steps[name] = step
        if step is not None and self._whole(state, state.env[name], most=KEPT):
            assumed.claimed.add(name)
        else:
            assumed.claimed.discard(name)
        if step is None and self.places:
            assumed.between[name] = self._wider(state, state.env[name], (0, -1), assumed.marks)

    def _wider(
        self, state: State, value: Value | None, limits: tuple[int, int], marks: Sequence[int]
    ) -> tuple[int, int] | None:
        """Limits that also include this value, from the loop's own numbers; None if none are proved."""
        if not isinstance(value, Int) or value.poly is None:
            return None
        least, most = limits
        low = next((low for low in (0, -1) if low <= least and self._prove(state, value.poly - number(low))), None)
        high = next((high for high in marks if high >= most and self._prove(state, number(high) - value.poly)), None)
        return None if low is None or high is None else (low, high)

    def _weaker(self, state: State, value: Value, now: Value | None, *, first: bool) -> Value:
        """The value of a name without a number in every iteration: as before the loop, or as an iteration leaves it."""
        if isinstance(value, Pred) or Data.UNSET in (value, now):
            return Data.UNSET
        if isinstance(now, PartialVector):
            lasting = value is Data.NUMBER and now.lanes.symbols <= self._lasting(state, LANES)
            return now if first and lasting else PartialVector(ZERO)
        if isinstance(value, PartialVector):
            return value
        return Data.NUMBER

    def _guess(self, state: State, of: Term, steps: dict[str, Poly | None]) -> None:
        """Records the step of a name, from a statement that each iteration executes once."""
        match of:
            case "step", by, _, ("name", name):
                change: Poly | None = number(by)
            case "assign", ("+" | "-") as sign, ("name", name), value:
                change = self._quietly(state, value)
                change = change if change is None or sign == "+" else ZERO - change
            case _:
                return
        if isinstance(state.env.get(name), (Int, Ptr)) and change is not None:
            steps[name] = (steps.get(name) or ZERO) + change

    def _quietly(self, state: State, of: Term) -> Poly | None:
        """The number of an expression without side effects, else None."""
        match of:
            case ("number", value, _):
                return None if value is None else number(value)
            case ("name", name):
                value = state.env.get(name)
                return value.poly if isinstance(value, Int) else None
            case "two", ("+" | "-" | "*") as operator, left, right:
                a, b = self._quietly(state, left), self._quietly(state, right)
                return None if a is None or b is None else ring(operator, a, b)
        return None

    def _head(self, state: State, assumed: _Assumed) -> State:
        """The state at the begin of any iteration t."""
        head = state.copy()
        t = symbol(assumed.turn)
        facts = []
        for name, step in assumed.steps.items():
            claimed = name in assumed.claimed
            match state.env[name]:
                case Int(_, kind) if (limits := assumed.between.get(name)) is not None:
                    low, high = limits
                    made = f"{name}@{assumed.turn}"
                    self.ranges[made] = (name, assumed.loop), high - low + 1
                    head.env[name] = Int(symbol(made) + number(low), kind)
                    facts.append(number(high - low) - symbol(made))
                case Int(poly, kind):
                    now = None if poly is None or step is None else poly + t * step
                    if not claimed and kind != SIZE:
                        now = None
                    head.env[name] = Int(now, kind)
                    if now is not None and claimed:
                        low, high = limits_of(kind, KEPT)
                        grows = step is not None and min(step.terms.values(), default=0) >= 0
                        if self.places and grows and poly is not None and self._prove(state, poly):
                            low = 0  # as before the first iteration
                        facts += [now - number(low), number(high) - now]
                case Ptr(operand, offset, kind, stars):
                    moved = None if offset is None or step is None else offset + t * step
                    head.env[name] = Ptr(operand, moved, kind, stars)
                    if moved is not None and claimed:
                        facts += [moved, number(KEPT) - moved]
                case _:
                    pass
        head.facts = state.facts.known(self._known(fact, state) for fact in facts)
        head.env.update(assumed.held)
        return head

    def _turn(
        self, node: Node, before: State, head: State, of: Term | None, assumed: _Assumed
    ) -> tuple[list[State], list[State]]:
        """The states after a loop, and those at the begin of its next iteration."""
        turn, body, update = assumed.turn, node.child_by_field_name("body"), node.child_by_field_name("update")
        assert body is not None
        yes, no = self._refused_at(node, probe := head.copy(), of)
        more = self._at_head(before, yes, turn)
        if more:
            head.facts = head.facts.known(more)
            yes, no = self._refused_at(node, probe := head.copy(), of)
        assumed.ends = all(any(self._falls(before, fact, turn) for fact in way.facts) for way in yes)
        ends = self._block([body], self._apart(probe, yes))
        if update is not None:
            ends = self._simple(update, ends)
        exits = self._apart(probe, no)
        count = self._count(before, yes, no, turn)
        if count is not None:
            exits = [self._after(before, exit_, turn, count) for exit_ in exits]
        return exits, ends

    def _falls(self, before: State, fact: Poly, turn: str) -> bool:
        """Whether a condition on going on falls by 1 or more in each iteration, so that it once does not hold."""
        fact = self._known(fact, before)
        step = change(fact, turn) if fact.symbols <= self._lasting(before, turn) else None
        return step is not None and before.facts.prove(ZERO - step - ONE)

    def _refused_at(self, node: Node, state: State, of: Term | None) -> tuple[Ways, Ways]:
        if of is None:
            return [Way()], []
        self.testing = True
        try:
            return self._decide(state, of)
        except Refusal as refusal:
            refusal.node = refusal.node or node.child_by_field_name("condition")
            raise
        finally:
            self.testing = False

    def _at_head(self, before: State, yes: Ways, turn: str) -> list[Poly]:
        """Facts that hold whenever a loop's condition is read: it held one iteration ago, or this is the first time."""
        found = []
        same = self._lasting(before, turn)
        for fact in yes[0].facts if len(yes) == 1 else ():
            step = change(fact, turn) if fact.symbols <= same else None
            if step is not None:
                at = fact - step
                if before.facts.prove(self._known(at.replaced(turn, ZERO), before)):
                    found.append(self._known(at, before))
        for apart in yes[0].unequal if len(yes) == 1 else ():
            for distance in (apart, ZERO - apart):  # falls by 1 per iteration until it is 0
                if (
                    apart.symbols <= same
                    and change(distance, turn) == number(-1)
                    and before.facts.prove(self._known(distance.replaced(turn, ZERO), before))
                ):
                    found.append(self._known(distance, before))
        return found

    def _lasting(self, before: State, turn: str) -> set[str]:
        """The symbols with one value in every iteration, and the symbol of the iteration's number."""
        found = {turn, LANES} | self.given | symbols_of(before)
        for name, (dividend, divisor) in self.quotients.items():  # in the order in which they were made
            if dividend.symbols | divisor.symbols <= found - {turn}:
                found.add(name)
        return found

    def _count(self, before: State, yes: Ways, no: Ways, turn: str) -> Poly | None:
        """The number of iterations of a loop that ends by its condition; None if unknown."""
        if len(yes) != 1 or len(no) != 1 or len(yes[0].facts) != 1:
            return None
        fact = self._known(yes[0].facts[0], before)
        step, first = change(fact, turn), fact.replaced(turn, ZERO)
        if not fact.symbols <= self._lasting(before, turn):
            return None
        if step is None or (by := step.constant) is None or by >= 0:
            return None
        if (value := first.constant) is not None:
            return number(max(value // -by + 1, 0))
        return first + ONE if by == -1 and before.facts.prove(first + ONE) else None

    def _after(self, before: State, exit_: State, turn: str, count: Poly) -> State:
        env = {name: replaced(value, turn, count) for name, value in exit_.env.items()}
        later = [fact.replaced(turn, count) for fact in exit_.facts.facts[len(before.facts.facts) :]]
        return State(env, before.facts.known(later), exit_.ones)


def _marks(node: Node) -> list[int]:
    """-1, 0, the numbers in a loop's text, and each of these minus 1; sorted."""
    numbers = {int(one) for one in re.findall(rb"(?<![\w.])\d{1,3}(?![\w.])", node.text or b"")}
    return sorted({-1, 0, *numbers, *(one - 1 for one in numbers)})
