"""Loops: what each turn changes by the same amount is its first value and the turn's number times that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tree_sitter import Node

from tensorop.author.addresses.expressions import Expressions
from tensorop.author.addresses.knowledge import LANES, Refusal
from tensorop.author.addresses.linear import ONE, ZERO, Poly, number, symbol
from tensorop.author.addresses.syntax import Term, inner, statement, term
from tensorop.author.addresses.values import (
    KEPT,
    SIZE,
    Data,
    Int,
    Part,
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


class Loops(Expressions):
    """The ways out of a loop."""

    def _block(self, nodes: Sequence[Node], states: list[State]) -> list[State]:
        """The ways on behind a block's statements."""
        raise NotImplementedError

    def _simple(self, node: Node, states: list[State]) -> list[State]:
        """The ways on behind a statement without a body."""
        raise NotImplementedError

    @staticmethod
    def _apart(state: State, ways: Ways) -> list[State]:
        return [State(dict(state.env), state.facts.known(way.facts), state.ones | way.ones) for way in ways]

    def _loop(self, node: Node, state: State) -> list[State]:
        """The ways out of a loop. What each turn changes by the same amount is its first value and `t` times that."""
        condition = node.child_by_field_name("condition")
        update = node.child_by_field_name("update")
        body = node.child_by_field_name("body")
        assert body is not None
        of = None
        if condition is not None:
            said = statement(condition)
            of = said.of
            if said.wrong and not self.trusted:
                raise Refusal(Guard.BOUNDS, said.wrong, condition)
        steps: dict[str, Poly | None] = {}
        for part in (*_parts(of), *_parts(term(update) if update is not None else None), *_direct(body)):
            self._guess(state, part, steps)
        self.fresh += 1
        turn = f"t#{self.fresh}"
        self.turns.add(turn)
        held: dict[str, Value] = {}  # what is no number, where a turn makes less of it
        claimed = {name for name in steps if self._whole(state, state.env[name], most=KEPT)}
        for _ in range(16):
            head = self._head(state, steps, claimed, turn)
            head.env.update(held)
            before = dict(head.env)
            exits, ends = self._turn(node, state, head, of, body, update, turn)
            again = False
            for end in ends:
                for name, value in before.items():
                    now = end.env.get(name)
                    expected = next_turn(value, turn)
                    if now == expected and name not in claimed:
                        continue
                    if isinstance(value, (Data, Part, Pred)):
                        weaker = self._weaker(state, value, now, first=name not in held)
                        if weaker != value:
                            held[name], again = weaker, True
                        continue
                    if now == expected:
                        if not self._whole(end, now, most=KEPT):
                            claimed.discard(name)
                            again = True
                        continue
                    if nothing_known(value):
                        continue
                    step = step_between(value, now, turn)
                    # once by what a turn was seen to change, then nothing is known of it
                    steps[name] = None if name in steps or step is None or step.symbols - symbols_of(state) else step
                    if steps[name] is not None and self._whole(state, state.env[name], most=KEPT):
                        claimed.add(name)
                    else:
                        claimed.discard(name)
                    again = True
            if not again:
                return exits
        raise Refusal(Guard.BOUNDS, "a loop changes its counters in ways that nothing is known of", node)

    def _weaker(self, state: State, value: Value, now: Value | None, *, first: bool) -> Value:
        """What a name that is no number holds in any turn: as before the loop, or as a turn leaves it."""
        if isinstance(value, Pred) or Data.UNSET in (value, now):
            return Data.UNSET
        if isinstance(now, Part):
            lasting = value is Data.NUMBER and now.lanes.symbols <= self._lasting(state, LANES)
            return now if first and lasting else Part(ZERO)
        if isinstance(value, Part):
            return value
        return Data.NUMBER

    def _guess(self, state: State, of: Term, steps: dict[str, Poly | None]) -> None:
        """What a statement that each turn comes to once adds to a name."""
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
        """A number that has no other effect, if it is one here."""
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

    def _head(self, state: State, steps: Mapping[str, Poly | None], claimed: set[str], turn: str) -> State:
        """Where turn number t begins, whichever it is."""
        head = state.copy()
        t = symbol(turn)
        facts = []
        for name, step in steps.items():
            match state.env[name]:
                case Int(poly, kind):
                    now = None if poly is None or step is None else poly + t * step
                    if name not in claimed and kind != SIZE:
                        now = None
                    head.env[name] = Int(now, kind)
                    if now is not None and name in claimed:
                        low, high = limits_of(kind, KEPT)
                        facts += [now - number(low), number(high) - now]
                case Ptr(operand, offset, kind, stars):
                    moved = None if offset is None or step is None else offset + t * step
                    head.env[name] = Ptr(operand, moved, kind, stars)
                    if moved is not None and name in claimed:
                        facts += [moved, number(KEPT) - moved]
                case _:
                    pass
        head.facts = state.facts.known(self._known(fact, state) for fact in facts)
        return head

    def _turn(
        self, node: Node, before: State, head: State, of: Term | None, body: Node, update: Node | None, turn: str
    ) -> tuple[list[State], list[State]]:
        """The ways out of a loop, and to its next turn."""
        self.breaks.append((len(self.scopes), []))
        self.continues.append((len(self.scopes), []))
        yes, no = self._refused_at(node, probe := head.copy(), of)
        more = self._at_head(before, yes, turn)
        if more:
            head.facts = head.facts.known(more)
            yes, no = self._refused_at(node, probe := head.copy(), of)
        ends = self._block([body], self._apart(probe, yes)) + self.continues.pop()[1]
        if update is not None:
            ends = self._simple(update, ends)
        exits = self._apart(probe, no)
        count = self._count(before, yes, no, turn)
        if count is not None:
            exits = [self._after(before, exit_, turn, count) for exit_ in exits]
        return exits + self.breaks.pop()[1], ends

    def _refused_at(self, node: Node, state: State, of: Term | None) -> tuple[Ways, Ways]:
        if of is None:
            return [Way()], []
        try:
            return self._decide(state, of)
        except Refusal as refusal:
            refusal.node = refusal.node or node.child_by_field_name("condition")
            raise

    def _at_head(self, before: State, yes: Ways, turn: str) -> list[Poly]:
        """What holds whenever a loop's condition is asked: it held a turn ago, or this is the first time."""
        found = []
        same = self._lasting(before, turn)
        for fact in yes[0].facts if len(yes) == 1 else ():
            step = change(fact, turn) if fact.symbols <= same else None
            if step is not None:
                at = fact - step
                if before.facts.prove(self._known(at.replaced(turn, ZERO), before)):
                    found.append(self._known(at, before))
        for apart in yes[0].unequal if len(yes) == 1 else ():
            for distance in (apart, ZERO - apart):  # of two that come one nearer each turn it is never negative
                if (
                    apart.symbols <= same
                    and change(distance, turn) == number(-1)
                    and before.facts.prove(self._known(distance.replaced(turn, ZERO), before))
                ):
                    found.append(self._known(distance, before))
        return found

    def _lasting(self, before: State, turn: str) -> set[str]:
        """Symbols that say the same in every turn, and the turn's own."""
        found = {turn, LANES} | self.given | symbols_of(before)
        for name, (dividend, divisor) in self.quotients.items():  # what they are made of came first
            if dividend.symbols | divisor.symbols <= found - {turn}:
                found.add(name)
        return found

    def _count(self, before: State, yes: Ways, no: Ways, turn: str) -> Poly | None:
        """How many turns a loop has that ends by its condition, where that can be said."""
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


def _parts(of: Term | None) -> Iterable[Term]:
    """What an expression does each time, one after the other."""
    match of:
        case "two", operator, left, right if operator not in ("&&", "||"):
            yield from _parts(left)
            yield from _parts(right)
        case None:
            pass
        case _:
            yield of


def _direct(node: Node) -> Iterable[Term]:
    """The statements of a loop's own."""
    if node.type == "compound_statement":
        for child in node.named_children:
            yield from _direct(child)
    elif node.type == "expression_statement":
        for child in inner(node):
            yield from _parts(term(child))
