"""Holds a template's C against the grammar of `language.yaml`, before anything is proved of it.

Each expression is read as one kind: a size, data, an address, a predicate or a condition. So no text depends on how C
converts between them, and a statement has one effect. `author/addresses` may rely on all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from tensorop.author.contracts import LANES, sentences
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken, Refusal
from tensorop.author.language_expressions import DATA, MIRRORED, POINTER, SCALE, SIZE, ExpressionReader, words_of
from tensorop.author.terms import Term, changed, direct, every, field, inner, parameters, statements, term, text

_RISING = ("<", "<=")
_MOST_READ = 1 << 16  # statements whose kinds are remembered


class Reader(ExpressionReader):
    """Reads the statements of one template in its function."""

    def read(self, function: Node, body: Node, first: int, last: int) -> None:
        """Raises Broken for the first statement that is not of the language."""
        for name, stars, kind in parameters(function):
            self.scopes[0][name] = SCALE if kind in self.contract.data and not stars else self._kind(kind, stars)
        self.scopes.append({})
        for node in body.named_children:
            if node.start_byte >= last:
                break
            if node.type == "comment":
                self._contract(text(node))
            elif node.start_byte >= first:
                self._statement(node)
            elif node.type == "declaration":
                of = term(node)
                for name, stars, _, value in of[2]:
                    made = value[1] if value is not None and value[0] == "call" else ""
                    self.scopes[-1][name] = self._kind(of[1], stars, made)

    def _contract(self, comment: str) -> None:
        """The strides, paces and threads of an operator's contract; other comments have none (`c_gate` refuses a
        template's)."""
        for name, args in sentences(comment[3:-2]) if comment.startswith("/*@") else ():
            strides = args[2::2] if name in ("reads", "writes") else args if name == "paces" else ()
            names = {of[1] for of in strides if of[0] == "name"}
            self.strides |= names
            self.paces |= names if name == "paces" else set()
            self.threads |= {args[0][1]} if name == "counts" else set()
            self.laid = frozenset(self.strides)

    # ---- statements

    def _statement(self, node: Node) -> None:
        try:
            match node.type:
                case "compound_statement":
                    self._block(inner(node))
                case "expression_statement" | "declaration":
                    self._simple(node)
                case "if_statement":
                    self._condition(term(field(node, "condition")))
                    self._block([field(node, "consequence")])
                    if (other := node.child_by_field_name("alternative")) is not None:
                        self._block(inner(other))
                case "for_statement" | "while_statement":
                    self._loop(node)
                case kind:
                    raise Broken("statement", f"its C has a {kind.replace('_', ' ')}")
        except Broken as broken:
            broken.node = broken.node or node
            raise

    def _block(self, nodes: Sequence[Node]) -> None:
        self.scopes.append({})
        for node in nodes:
            self._statement(node)
        self.scopes.pop()

    def _simple(self, node: Node | None) -> None:
        read = self.contract.read
        for one in statements(node):
            key = None
            if one.plain and not self.device:  # texts of tiles share many statements
                key = one, one.to and self._of(one.to), self.laid, *map(self._of, one.names)
            if one.of[0] == "declare":
                self._declaration(one.of, key in read)
            elif key not in read:
                self._changes(one.of)
            if key is not None:
                if len(read) >= _MOST_READ:
                    read.clear()
                read.add(key)

    def _declaration(self, of: Term, read: bool) -> None:
        """read: whether the values are known to be of the language"""
        for name, stars, size, value in of[2]:
            made = value[1] if value is not None and value[0] == "call" else ""
            kind = POINTER if size is not None else self._kind(of[1], stars, made)
            if (hidden := self._of(name)) and (name in self.scopes[-1] or not kind is hidden is DATA):
                raise Broken("hiding", f"it declares '{name}', a name of the function or of a block around")
            if size is not None:
                items = value[1] if value is not None and value[0] == "row" else ()
                for item in items:
                    self._data(item)
            elif value is not None and not read:
                self._is(kind, value)
            self.scopes[-1][name] = kind
            if kind is SIZE and value is not None and self._of_thread(value):
                self.threads.add(name)

    def _changes(self, of: Term) -> None:
        match of:
            case "step", _, ("name", name) if self._of(name) in (SIZE, POINTER) and name not in self.factors:
                self.threads.discard(name)
            case "call", name, arguments:
                self._call(name, arguments)
            case "cast", "void", 0, ("name", _):
                pass
            case "assign", ("" | "+" | "-" | "*") as operator, ("name", name), value:
                kind = self._of(name)
                if not kind:
                    raise Refusal(Guard.NAMES, f"it changes '{name}', which is declared elsewhere")
                if name in self.factors:
                    raise Broken("size", f"'{name}', a thread's number that is multiplied by a size, changes")
                self.threads.discard(name)
                if kind is POINTER and operator:
                    kind = SIZE if operator != "*" else ""
                if operator == "*" and kind is SIZE:
                    self._product(("name", name), value)
                    return
                if operator and kind not in (SIZE, DATA, SCALE):
                    raise Broken("change", f"'{operator}=' changes {kind or 'an address'}")
                self._is(kind, value)
            case "assign", ("" | "+" | "-" | "*"), (("item" | "at"), *_) as place, value:
                self._element(place)
                self._data(value)
            case _:
                raise Broken("change", f"a statement is {words_of(of)}")

    # ---- loops

    def _loop(self, node: Node) -> None:
        self.scopes.append({})
        of_for = node.type == "for_statement"
        first, condition, update = (
            node.child_by_field_name(name) if of_for or name == "condition" else None
            for name in ("initializer", "condition", "update")
        )
        body = field(node, "body")
        self._simple(first)
        if condition is None:
            raise Broken("loop", "a loop has no test")
        self._simple(update)
        self._block(inner(body) if body.type == "compound_statement" else [body])
        self._test(term(condition), [*direct(update), *direct(body)], [*direct(update), *every(body)])
        self.scopes.pop()

    def _test(self, of: Term, once: Sequence[Term], anywhere: Sequence[Term]) -> None:
        """Refuses a loop that is not shown to end by its form."""
        if self.device and of[:2] == ("two", "&&"):
            for first, more in ((of[2], of[3]), (of[3], of[2])):
                try:
                    self._test(first, once, anywhere)
                except Broken:
                    continue
                self._condition(more)
                return
        counted = [name for name in dict.fromkeys(_names(of)) if any(changed(one) == name for one in anywhere)]
        if len(counted) != 1:
            many = " and ".join(f"'{name}'" for name in counted) or "nothing"
            raise Broken("loop", f"each turn changes {many} of the test, not one counter")
        (counter,) = counted
        match of:
            case ("name", _):
                way = -1
            case "two", operator, left, right if operator in MIRRORED:
                if counter in _names(right):
                    operator, left, right = MIRRORED[operator], right, left
                self._size(left)
                self._size(right)
                if counter in _names(right) or not _linear(left, counter):
                    raise Broken("loop", f"the test has '{counter}' not as one side's counter plus or minus a size")
                way = 1 if operator in _RISING else -1
            case _:
                raise Broken("loop", f"the test is {words_of(of)}")
        if self._of(counter) is not SIZE:
            raise Broken("loop", f"the counter '{counter}' is not a size")
        steps = [one for one in once if changed(one) == counter]
        if len(steps) != sum(changed(one) == counter for one in anywhere):
            raise Broken("loop", f"'{counter}' is changed in a block of the loop's body")
        for one in steps:
            by = self._step(one)
            by_one = one[0] == "step" or (one[0] == "assign" and one[3][:2] == ("number", 1))
            if by != way or (of[0] == "name" and (len(steps) > 1 or not by_one)):
                raise Broken("loop", f"a turn does not move '{counter}' towards its bound by a constant step")

    def _step(self, of: Term) -> int:
        """1 or -1 for a step up or down by a constant, else 0."""
        match of:
            case "step", way, _:
                return int(way)
            case "assign", ("+" | "-") as sign, _, by if self._constant(by):
                return 1 if sign == "+" else -1
        return 0

    def _constant(self, by: Term) -> bool:
        match by:
            case ("number", int(value), _):
                return value >= 1
            case ("name", name):
                return name == LANES or (self.device and name in self.paces)
            case ("call", name, ()):
                return bool(name == LANES)
            case "two", "*", left, right:
                return self._constant(left) and self._constant(right)
        return False


def _names(of: Term) -> Iterator[str]:
    if of[:1] == ("name",):
        yield of[1]
    for part in of[1:]:
        if isinstance(part, tuple):
            yield from _names(part)


def _linear(of: Term, counter: str) -> bool:
    match of:
        case ("name", name):
            return bool(name == counter)
        case "two", "+", left, right if counter not in _names(left):
            return _linear(right, counter)
        case "two", ("+" | "-"), left, right:
            return counter not in _names(right) and _linear(left, counter)
    return False
