"""Reads what decides the paths of a kernel's tiles: conditions, loops, and the sizes that these depend on."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from tree_sitter import Node

from tensorop.author.contracts import sentences
from tensorop.author.grammar import Broken
from tensorop.author.path_writer import Branch, NewValue, PathWriter, Repeat, Step
from tensorop.author.paths import Beyond, LaidOperand, Tile, compiled
from tensorop.author.terms import Term, changed, direct, inner, parameters, statements, term, text

_SIZES = ("size_t", "ptrdiff_t", "bool", "int", "unsigned", "uint64_t", "int64_t", "uint32_t", "int32_t")
_ONE = ("number", 1, "1")
_WORD = re.compile(r"[A-Za-z_]\w*")
_COMPARED = ("<", "<=", ">", ">=", "==", "!=")


def read(function: Node) -> tuple[str, Tile]:
    """The name of a function, and what decides its paths. Raises Broken, with the place, if it cannot be run."""
    name, rest = _named(function)
    if (known := _KNOWN.get(rest)) is not None:
        return name, known
    reader = _Reader(function)
    try:
        made = reader.tile()
        compiled(made.code)
    except _OfOthers:
        raise Broken("path", "a condition depends on what is not made of sizes", reader.at) from None
    except (SyntaxError, RecursionError, MemoryError):
        raise Broken("path", "its blocks are nested too deeply", reader.deepest) from None
    if len(_KNOWN) >= _MOST_KNOWN:
        _KNOWN.clear()
    return name, _KNOWN.setdefault(rest, made)


def place(function: Node, of: Beyond) -> Node:
    """The comparison or loop of a function that is beyond what is tried; the last one if all together are."""
    reader = _Reader(function)
    reader.tile()
    return reader.loops[of.loop - 1] if of.loop else reader.places.get(of.names, reader.asked[-1][1])


_KNOWN: dict[bytes, Tile] = {}
_MOST_KNOWN = 1 << 10


def _named(function: Node) -> tuple[str, bytes]:
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    assert declarator is not None
    of = declarator.child_by_field_name("declarator")
    assert of is not None
    whole = function.text or b""
    return text(of), whole[of.end_byte - function.start_byte :]


class _Reader:
    """Reads one function."""

    def __init__(self, function: Node) -> None:
        self.function = function
        self.scopes: list[dict[str, str]] = [{}]
        self.around: list[frozenset[str]] = []  # names of the conditions and loops around
        self.declared: dict[str, int] = {}  # local -> how many of them its declaration has around
        self.asked: list[tuple[frozenset[str], Node]] = []  # names in each comparison, and its statement
        # each assignment: the local, names of its value, and of the conditions since the declaration
        self.behind: list[tuple[str, frozenset[str]]] = []
        self.holds: list[str] = []
        self.operands: list[LaidOperand] = []
        self.asking = "({})"  # Python of a comparison
        self.places: dict[frozenset[str], Node] = {}  # the first statement that compares these arguments together
        self.loops: list[Node] = []
        self.at = self.deepest = function  # the statement that is read, and the first of the innermost block
        self.depth = 1
        self.chooses = b"?" in (function.text or b"")
        self.choosing = False  # whether the statement that is read may have one
        self.given = parameters(function)
        for name, stars, _ in self.given:
            if not stars:
                self.scopes[0][name] = name
                self.declared[name] = 0

    def tile(self) -> Tile:
        body = self.function.child_by_field_name("body")
        assert body is not None
        for node in body.named_children:
            if node.type == "comment" and text(node).startswith("/*@"):
                self._contract(text(node)[3:-2])
        self.asked.clear()  # the contract's facts
        self.asking = "(ADD({}) or path[-1])"
        read = self._block(inner(body))
        made_of = self._made_of()
        asked = [(frozenset().union(*(made_of[name] for name in names)), at) for names, at in self.asked]
        needed = frozenset().union(*(names for names, _ in asked))
        of_strides = {name: str(i) for i, one in enumerate(self.operands) for name in one.strides if name != "1"}
        sizes = [name for name, stars, kind in self.given if not stars and kind in _SIZES and name not in of_strides]
        given = [name for name, stars, _ in self.given if not stars and name in needed]
        laid = sorted({of_strides[name] for name in given if name in of_strides})
        operands = [self.operands[int(of)] for of in laid]
        of_strides = {name: str(laid.index(of)) for name, of in of_strides.items() if of in laid}
        sides = _WORD.findall(" ".join(side for one in operands for side in one.sides))
        arguments = sorted({of_strides.get(name, name) for name in given} | {name for name in sizes if name in sides})
        for names, at in asked:
            self.places.setdefault(frozenset(of_strides.get(name, name) for name in names if name in given), at)
        groups = {*self.places} | {frozenset((one,)) for one in arguments if not any(one in of for of in self.places)}
        groups.discard(frozenset())
        code = "\n    ".join([f"def run({', '.join([*given, 'LANES'])}):", *PathWriter(needed).lines(read)])
        known = {*arguments, *of_strides, "LANES"}
        return Tile(
            code,
            tuple(given),
            tuple(arguments),
            tuple(sorted((one for one in groups if not any(one < more for more in groups)), key=sorted)),
            tuple(name for name in sizes if name in arguments),
            tuple(operands),
            tuple(one for one in self.holds if known.issuperset(_WORD.findall(one))),
        )

    def _contract(self, written: str) -> None:
        for name, of in sentences(written):
            if name == "holds":
                self.holds.append(self._condition(of[0], set()))
            elif name in ("reads", "writes") and len(of) <= 6:
                (rows, apart), (columns, along) = [*zip(of[1::2], of[2::2], strict=False), (_ONE, _ONE)][:2]
                strides = [str(one[1]) for one in (apart, along) if one[0] == "name" or one == _ONE]
                if len(strides) == 2:
                    sides = self._side(rows), self._side(columns)
                    self.operands.append(LaidOperand(sides, (strides[0], strides[1])))

    def _side(self, of: Term) -> str:
        """A side of an operand; every number above 1 as 2, so that tiles of many widths share their paths."""
        return "2" if of[0] == "number" and of[1] > 1 else self._size(of, set())

    def _made_of(self) -> dict[str, set[str]]:
        """The names on which each local's and argument's value depends, by any way, with itself."""
        of = {name: {name} for name in self.declared}
        more = True
        while more:
            more = False
            for to, names in self.behind:
                deep = set().union(*(of[name] for name in names))
                more = more or not deep <= of[to]
                of[to] |= deep
        return of

    # ---- statements

    def _block(self, nodes: Sequence[Node]) -> tuple[Step, ...]:
        self.scopes.append({})
        if len(self.scopes) > self.depth and nodes:
            self.depth, self.deepest = len(self.scopes), nodes[0]
        found = tuple(one for node in nodes for one in self._statement(node))
        self.scopes.pop()
        return found

    def _statement(self, node: Node) -> Iterator[Step]:
        self.at = node
        match node.type:
            case "declaration" | "expression_statement":
                self.choosing = self.chooses and b"?" in (node.text or b"")
                for one in statements(node):
                    if one.of[0] == "declare":
                        if self.choosing or one.of[1] in _SIZES:
                            yield from self._declared(one.of)
                    elif self.choosing or self._of(changed(one.of)) is not None:  # most change data
                        yield from self._changed(one.of)
            case "compound_statement":
                yield from self._block(inner(node))
            case "if_statement":
                yield self._if(node)
            case "for_statement" | "while_statement":
                yield from self._loop(node)

    def _declared(self, of: Term) -> Iterator[Step]:
        for name, stars, size, value in of[2]:
            yield from self._choices(value)
            if not stars and size is None and of[1] in _SIZES:
                made = f"{name}__{len(self.declared)}"
                found = self._assigned(made, of[1], value or ("number", 0, "0"))
                self.scopes[-1][name], self.declared[made] = made, len(self.around)
                self.behind.append((made, found.names))
                yield replace(found, new=True)

    def _changed(self, of: Term) -> Iterator[Step]:
        yield from self._choices(of)
        match of:
            case "step", way, ("name", name):
                yield from self._set(name, "+" if way > 0 else "-", ("number", 1, "1"))
            case "assign", operator, ("name", name), value:
                yield from self._set(name, operator, value)

    def _set(self, name: str, operator: str, value: Term) -> Iterator[NewValue]:
        if (to := self._of(name)) is None:
            return  # data, or an address
        found = self._assigned(to, "", value if operator != "*" else ("two", "*", ("name", name), value))
        if operator in ("+", "-") and found.code is not None:
            found = replace(found, code=f"{to} {operator} {found.code}", adds=True)
        self.behind.append((to, found.names.union(*self.around[self.declared[to] :])))
        yield found

    def _assigned(self, to: str, kind: str, value: Term) -> NewValue:
        names: set[str] = set()
        try:
            code = self._condition(value, names) if kind == "bool" else self._size(value, names)
        except _OfOthers:
            return NewValue(to, None, frozenset(), self.at)
        return NewValue(to, code, frozenset(names), self.at)

    def _choices(self, of: Term | None) -> Iterator[Branch]:
        """Comparisons in values that decide no path: which of two sizes is the smaller."""
        for one in _choices_in(of) if self.choosing and of is not None else ():
            names: set[str] = set()
            code = self._condition(one[1], names)
            yield Branch(code, frozenset(names))

    def _if(self, node: Node) -> Branch:
        condition, then, other = map(node.child_by_field_name, ("condition", "consequence", "alternative"))
        assert condition is not None
        assert then is not None
        names: set[str] = set()
        code = self._condition(term(condition), names)
        self.around.append(frozenset(names))
        found = Branch(
            code, frozenset(names), self._block([then]), self._block(inner(other)) if other is not None else ()
        )
        self.around.pop()
        return found

    def _loop(self, node: Node) -> Iterator[Step]:
        of_for = node.type == "for_statement"
        first, condition, update, body = map(node.child_by_field_name, ("initializer", "condition", "update", "body"))
        assert condition is not None
        assert body is not None
        self.loops.append(node)
        self.choosing = self.chooses
        self.scopes.append({})
        if of_for and first is not None:
            if first.type == "declaration":
                yield from self._statement(first)
            else:
                for of in direct(first):
                    yield from self._changed(of)
        names: set[str] = set()
        match term(condition):
            case "two", ("<" | "<=") as operator, left, right:
                gap = f"{self._size(right, names)} - {self._size(left, names)}{' + 1' * (operator == '<=')}"
            case "two", (">" | ">=") as operator, left, right:
                gap = f"{self._size(left, names)} - {self._size(right, names)}{' + 1' * (operator == '>=')}"
            case other:
                gap = self._size(other, names)
        self.asked.append((frozenset(names), node))
        self.around.append(frozenset(names))
        steps = [one for of in direct(update) for one in self._changed(of)] if of_for else []
        found = (*self._block([body]), *steps)
        self.around.pop()
        self.scopes.pop()
        yield Repeat(gap, frozenset(names), found)

    # ---- expressions, as Python

    def _of(self, name: str) -> str | None:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return None

    def _condition(self, of: Term, names: set[str]) -> str:
        match of:
            case "two", ("&&" | "||") as operator, left, right:
                word = "and" if operator == "&&" else "or"
                return f"({self._condition(left, names)} {word} {self._condition(right, names)})"
            case "one", "!", right:
                return f"(not {self._condition(right, names)})"
            case "number", value, _:
                return str(value)
            case "two", operator, left, right if operator in _COMPARED:
                pass
            case _:
                operator, left, right = "!=", of, ("number", 0, "0")
        own: set[str] = set()
        code = self.asking.format(f"{self._size(left, own)} {operator} {self._size(right, own)}")
        self.asked.append((frozenset(own), self.at))
        names |= own
        return code

    def _size(self, of: Term, names: set[str]) -> str:
        match of:
            case "number", int(value), _:
                return str(value)
            case "name", name if (known := self._of(name)) is not None:
                names.add(known)
                return known
            case "name", "lanes":  # in a contract, before the local
                return "LANES"
            case "two", ("+" | "-" | "*" | "<<" | ">>" | "%") as operator, left, right:
                return f"({self._size(left, names)} {operator} {self._size(right, names)})"
            case "two", "/", left, right:
                return f"({self._size(left, names)} // {self._size(right, names)})"
            case "cast", _, 0, value:
                return self._size(value, names)
            case "choice", condition, yes, no:
                either = self._size(yes, names), self._size(no, names)
                return f"({either[0]} if {self._condition(condition, names)} else {either[1]})"
            case "call", _, ():  # lanes, or the predicate of a whole vector
                return "LANES"
            case "call", _, (value,):  # the predicate of a vector's first elements
                return f"min({self._size(value, names)}, LANES)"
        raise _OfOthers


class _OfOthers(Exception):
    """An expression that is not made of sizes."""


def _choices_in(of: Term) -> Iterator[Term]:
    """Each `?:` but those in calls of one argument: how much of a vector counts, and what is prefetched."""
    if of[:1] == ("call",) and len(of[2]) == 1:
        return
    if of[:1] == ("choice",):
        yield of
    for part in of[1:]:
        for one in part if isinstance(part, tuple) and part and isinstance(part[0], tuple) else (part,):
            if isinstance(one, tuple):
                yield from _choices_in(one)
