"""Holds a template's C against the grammar of `language.yaml`, before anything is proved of it.

Each expression is read as one kind: a size, data, an address, a predicate or a condition. So no text depends on how C
converts between them, and a statement has one effect. `author/addresses` may rely on all of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tree_sitter import Node

from tensorop.author.addresses.collectives import sentences
from tensorop.author.addresses.knowledge import LANES, Callables, Names
from tensorop.author.addresses.syntax import Term, changed, direct, every, inner, parameters, parts, term, text
from tensorop.author.addresses.values import TYPES
from tensorop.author.gate import Guard
from tensorop.author.grammar import Broken, Refusal
from tensorop.model.primitive import Collective, Primitives, shape_of

MOST_LITERAL = 1 << 31
SIZE, BOOL, DATA, PREDICATE, POINTER, SCALE = "a size", "a bool", "data", "a predicate", "an address", "alpha or beta"
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")
_RISING = ("<", "<=")
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CASTS = ("size_t", "ptrdiff_t")


class Reader:
    """Reads the statements of one template in its function."""

    def __init__(self, primitives: Primitives, callables: Callables, names: Names) -> None:
        self.callables, self.names, self.predicate = callables, names, primitives.predicate
        self.device = any(isinstance(one, Collective) for one in callables.values())
        self.scopes: list[dict[str, str]] = [{}]
        self.strides: set[str] = set()  # of the operands, by the contract
        self.paces: set[str] = set()

    def read(self, function: Node, body: Node, first: int, last: int) -> None:
        """Raises Broken for the first statement that is not of the language."""
        for name, stars, kind in parameters(function):
            self.scopes[0][name] = SCALE if kind in self.names.data and not stars else self._kind(kind, stars)
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
        """The strides and paces of an operator's contract; other comments have none (`c_gate` refuses a template's)."""
        for name, args in sentences(comment[3:-2]) if comment.startswith("/*@") else ():
            strides = args[2::2] if name in ("reads", "writes") else args if name == "paces" else ()
            names = {of[1] for of in strides if of[0] == "name"}
            self.strides |= names
            self.paces |= names if name == "paces" else set()

    # ---- statements

    def _statement(self, node: Node) -> None:
        try:
            match node.type:
                case "compound_statement":
                    self._block(inner(node))
                case "expression_statement":
                    for part in inner(node):
                        self._changes(term(part))
                case "declaration":
                    self._declaration(term(node))
                case "if_statement":
                    condition, then, other = (
                        node.child_by_field_name(name) for name in ("condition", "consequence", "alternative")
                    )
                    assert condition is not None
                    assert then is not None
                    self._condition(term(condition))
                    self._block([then])
                    if other is not None:
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

    def _declaration(self, of: Term) -> None:
        for name, stars, size, value in of[2]:
            made = value[1] if value is not None and value[0] == "call" else ""
            kind = POINTER if size is not None else self._kind(of[1], stars, made)
            if (hidden := self._of(name)) and (name in self.scopes[-1] or not kind is hidden is DATA):
                raise Broken("hiding", f"it declares '{name}', a name of the function or of a block around")
            if size is not None:
                items = value[1] if value is not None and value[0] == "row" else ()
                for item in items:
                    self._data(item)
            elif value is not None:
                self._is(kind, value)
            self.scopes[-1][name] = kind

    def _changes(self, of: Term) -> None:
        match of:
            case "two", ",", left, right:
                self._changes(left)
                self._changes(right)
            case "step", _, _, ("name", name) if self._of(name) in (SIZE, POINTER):
                pass
            case "call", name, arguments:
                self._call(name, arguments)
            case "cast", "void", 0, ("name", _):
                pass
            case "assign", ("" | "+" | "-" | "*") as operator, ("name", name), value:
                kind = self._of(name)
                if not kind:
                    raise Refusal(Guard.NAMES, f"it changes '{name}', which is declared elsewhere")
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
                raise Broken("change", f"a statement is {_words(of)}")

    # ---- loops

    def _loop(self, node: Node) -> None:
        self.scopes.append({})
        of_for = node.type == "for_statement"
        first, condition, update = (
            node.child_by_field_name(name) if of_for or name == "condition" else None
            for name in ("initializer", "condition", "update")
        )
        body = node.child_by_field_name("body")
        assert body is not None
        if first is not None:
            of = term(first)
            self._declaration(of) if of[0] == "declare" else self._changes(of)
        if condition is None:
            raise Broken("loop", "a loop has no test")
        if update is not None:
            self._changes(term(update))
        self._block(inner(body) if body.type == "compound_statement" else [body])
        self._test(term(condition), [*parts(update), *direct(body)], [*parts(update), *every(body)])
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
            case "two", operator, left, right if operator in _MIRRORED:
                if counter in _names(right):
                    operator, left, right = _MIRRORED[operator], right, left
                self._size(left)
                self._size(right)
                if counter in _names(right) or not _linear(left, counter):
                    raise Broken("loop", f"the test has '{counter}' not as one side's counter plus or minus a size")
                way = 1 if operator in _RISING else -1
            case _:
                raise Broken("loop", f"the test is {_words(of)}")
        if self._of(counter) is not SIZE:
            raise Broken("loop", f"the counter '{counter}' is not a size")
        steps = [one for one in once if changed(one) == counter]
        if len(steps) != sum(changed(one) == counter for one in anywhere):
            raise Broken("loop", f"'{counter}' is changed in a block of the loop's body")
        for one in steps:
            by = self._step(one)
            if by != way or (of[0] == "name" and (len(steps) > 1 or not _by_one(one))):
                raise Broken("loop", f"a turn does not move '{counter}' towards its bound by a constant step")

    def _step(self, of: Term) -> int:
        """1 or -1 for a step up or down by a constant, else 0."""
        match of:
            case "step", way, _, _:
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

    # ---- expressions

    def _is(self, kind: str, of: Term) -> None:
        """Refuses an expression that is not of the kind of the local that it becomes."""
        if kind is SIZE and of[0] == "call" and self._returns(of[1]) == "half":
            self._call(of[1], of[2])
            return
        reads = {SIZE: self._size, BOOL: self._flag, DATA: self._data, SCALE: self._data, POINTER: self._pointer}
        reads.get(kind, self._predicate)(of)

    def _condition(self, of: Term) -> None:
        """cond: atoms, all joined by && or all by ||."""
        join = of[1] if of[0] == "two" and of[1] in ("&&", "||") else ""
        if not join:
            self._atom(of)
            return
        for side in of[2:]:
            if side[:2] == ("two", "||" if join == "&&" else "&&") and not self.device:
                raise Broken("condition", "a condition mixes && and ||")
            self._condition(side)

    def _atom(self, of: Term) -> None:
        match of:
            case "one", "!", right:
                self._condition(right)
            case "two", operator, left, right if operator in _COMPARED:
                if any(self._kind_of(side) is SCALE for side in (left, right)):
                    scale, other = (left, right) if self._kind_of(left) is SCALE else (right, left)
                    if operator not in ("==", "!=") or other[0] != "number" or other[2] not in ("0", "1"):
                        raise Broken("condition", f"'{scale[1]}' is compared otherwise than with 0 or 1 by == or !=")
                    return
                self._size(left)
                self._size(right)
            case ("name", name) if self._of(name) is BOOL:
                pass
            case ("call", name, arguments) if self._returns(name) == "bool":
                self._call(name, arguments)
            case _:
                self._size(of)

    def _flag(self, of: Term) -> None:
        """The value of a bool: a condition, or 0 or 1."""
        if of[0] != "number" or of[2] not in ("0", "1", ""):
            self._condition(of)

    def _size(self, of: Term) -> None:
        match of:
            case ("number", int(value), digits) if digits == str(value) and -self.device <= value < MOST_LITERAL:
                pass
            case ("name", name) if self._of(name) is SIZE or (self.device and self._of(name) is BOOL):
                pass
            case ("name", name) if self._of(name) is PREDICATE and self.predicate in TYPES:
                pass
            case "two", ("+" | "-"), left, right:
                self._size(left)
                self._size(right)
            case "two", "*", left, right:
                self._product(left, right)
            case "two", ("/" | "%"), left, right:
                if right[0] == "number" and not right[1]:
                    raise Broken("division", "it divides by 0")
                self._size(left)
                self._size(right)
            case "two", ("<<" | ">>"), left, ("number", int(by), _) if by < 32:
                self._size(left)
            case "choice", condition, yes, no:
                self._smaller(condition, yes, no)
            case "cast", kind, 0, value if kind in _CASTS:
                self._size(value)
            case "call", name, arguments if name == LANES or self._returns(name) == SIZE:
                self._call(name, arguments)
            case (("item" | "at" | "part"), *_):
                raise Broken("data", f"a size or a condition depends on data, {_words(of)}")
            case ("name", name) if self._of(name) in (DATA, SCALE):
                raise Broken("data", f"a size or a condition depends on data, '{name}'")
            case ("name", name) if self._of(name) is POINTER:
                raise Broken("pointer", f"an address, '{name}', is used as a size")
            case "call", name, _ if self._returns(name) == DATA:
                raise Broken("data", f"a size or a condition depends on data, a call of '{name}'")
            case ("cast", _, 0, value) | ("one", _, value):
                self._size(value)
                raise Broken("size", f"where a size is expected stands {_words(of)}")
            case _:
                raise Broken("size", f"where a size is expected stands {_words(of)}")

    def _product(self, left: Term, right: Term) -> None:
        self._size(left)
        self._size(right)
        if not (self.device or self._unit(left) or self._unit(right)):
            raise Broken("size", "a product has no side that is a literal, lanes or a stride")

    def _unit(self, of: Term) -> bool:
        match of:
            case ("number", *_) | ("call", "lanes", ()):
                return True
            case ("name", name):
                return name == LANES or name in self.strides
            case "two", "*", left, right:
                return self._unit(left) and self._unit(right)
            case "two", "/", left, ("number", *_):
                return self._unit(left)
        return False

    def _smaller(self, condition: Term, yes: Term, no: Term) -> None:
        """a < b ? a : b, and the larger one alike."""
        if self.device:
            self._condition(condition)
        elif condition[0] != "two" or condition[1] not in _MIRRORED or {condition[2], condition[3]} != {yes, no}:
            raise Broken("size", "?: chooses otherwise than the smaller or the larger of two sizes")
        self._size(yes)
        self._size(no)

    def _data(self, of: Term) -> None:
        match of:
            case ("number", value, digits):
                if not (self.device or value == 0 or digits.lower().rstrip("f") in ("0.", "0.0", ".0")):
                    raise Broken("data", f"the literal {digits} is data")
            case ("name", name) if self._of(name) in (DATA, SCALE):
                pass
            case (("item" | "at"), *_):
                self._element(of)
            case "two", ("+" | "-" | "*"), left, right:
                self._data(left)
                self._data(right)
            case "call", name, arguments if self._returns(name) == DATA:
                self._call(name, arguments)
            case _ if self.device:
                self._device_data(of)
            case _:
                raise Broken("data", f"where data are expected stands {_words(of)}")

    def _device_data(self, of: Term) -> None:
        match of:
            case "part", value, ("x" | "y" | "z" | "w"):
                self._data(value)
            case "two", ">>", value, by:
                self._data(value)
                self._size(by)
            case "cast", kind, 0, value if kind in self.names.data:
                self._data(value)
            case "choice", condition, yes, no:
                self._condition(condition)
                self._data(yes)
                self._data(no)
            case _:
                raise Broken("data", f"where data are expected stands {_words(of)}")

    def _element(self, of: Term) -> None:
        if of[0] == "item":
            self._size(of[2])
        self._pointer(of[1])

    def _pointer(self, of: Term) -> None:
        match of:
            case ("name", name) if self._of(name) is POINTER:
                pass
            case "two", "+", left, right if self._kind_of(right) is POINTER:
                self._size(left)
                self._pointer(right)
            case "two", ("+" | "-"), left, right:
                self._pointer(left)
                self._size(right)
            case "item", rows, at:  # of an operand of pointers; the proof refuses any other
                self._pointer(rows)
                self._size(at)
            case "call", name, arguments if self._returns(name) == POINTER:
                self._call(name, arguments)
            case "choice", condition, yes, no if self.device:
                self._condition(condition)
                self._pointer(yes)
                self._pointer(no)
            case _:
                raise Broken("pointer", f"where an address is expected stands {_words(of)}")

    def _predicate(self, of: Term) -> None:
        match of:
            case ("name", name) if self._of(name) is PREDICATE:
                pass
            case "call", name, arguments if self._returns(name) == PREDICATE:
                self._call(name, arguments)
            case _ if self.predicate in TYPES:
                self._size(of)
            case _:
                raise Broken("statement", f"where a predicate is expected stands {_words(of)}")

    def _call(self, name: str, arguments: Sequence[Term]) -> None:
        called = self.callables.get(name)
        if name == LANES or called is None:  # c_gate refuses an unknown one
            return
        if isinstance(called, Collective):
            for (kind, _, mark), argument in zip(called.declared, arguments, strict=False):
                if argument[0] == "two" and argument[1] in (*_COMPARED, "&&", "||"):  # 0 or 1
                    self._condition(argument)
                elif mark != "&":  # the proof reads a changed local
                    self._is(POINTER if mark == "*" else self._kind(kind, 0), argument)
            return
        kinds = {"vector": DATA, "element": DATA, "pointer": POINTER, "matrix": POINTER, "predicate": PREDICATE}
        for kind, of in zip(called.args, arguments, strict=False):
            if (shape := shape_of(kind)) == "half":
                if of[0] == "call":
                    self._is(SIZE, of)
                else:
                    self._size(of)
            else:
                self._is(kinds.get(shape, SIZE), of)

    # ---- kinds

    def _kind(self, kind: str, stars: int, made: str = "") -> str:
        """The kind of a declared name. made: the primitive that its first value is of."""
        if stars or kind in self.names.addresses:
            return POINTER
        both = TYPES.keys() | self.names.vectors  # a set's predicates may have the type of its sizes or vectors
        if kind == self.predicate and (kind not in both or self._returns(made) == PREDICATE):
            return PREDICATE
        if kind in self.names.data or kind in self.names.vectors:
            return DATA
        return BOOL if kind == "bool" else SIZE

    def _returns(self, name: str) -> str:
        called = self.callables.get(name)
        if isinstance(called, Collective):
            return "bool" if called.returns == "bool" else self._kind(called.returns, 0)
        returns = called.returns if called is not None else ""
        return PREDICATE if returns == "pred" else returns if returns in ("half", "memory", "none", "") else DATA

    def _of(self, name: str) -> str:
        return next((scope[name] for scope in reversed(self.scopes) if name in scope), "")

    def _kind_of(self, of: Term) -> str:
        """The kind of the name that an expression begins with."""
        match of:
            case ("name", name):
                return self._of(name)
            case "two", ("+" | "-"), left, _:
                return self._kind_of(left)
        return ""


def _by_one(of: Term) -> bool:
    return bool(of[0] == "step" or (of[0] == "assign" and of[3][:2] == ("number", 1)))


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


def _words(of: Term) -> str:
    """What an expression is, for a message."""
    match of:
        case ("name", name):
            return f"'{name}'"
        case ("number", _, digits):
            return f"the literal {digits}"
        case "two", operator, _, _:
            return f"'{operator}'"
        case "one", operator, _:
            return f"'{operator}'"
        case "call", name, _:
            return f"a call of '{name}'"
        case "cast", kind, stars, _:
            return f"a cast to {kind}{' *' * (stars > 0)}"
    words = {"item": "an element", "at": "an element", "assign": "an assignment", "step": "++ or --", "choice": "'?:'"}
    return words.get(of[0], {"address": "'&'", "row": "a list", "part": "a part of a vector"}.get(of[0], f"{of[-1]}"))
