"""Converts the C parser's expressions and declarations to tuples, once for each text.

("number", int | None, text)      None: not an integer
("name", name)
("two", operator, left, right)    ("one", operator, of)
("step", +1 or -1, first, of)     ++ and --; first: postfix, so the value is the old one
("at", of)                        *of
("item", of, index)               ("address", of)
("call", name, arguments)         ("cast", type, stars, of)
("choice", condition, yes, no)    ("row", items)
("assign", operator, to, value)   operator: "" or that of +=, -=, ...
("declare", type, ((name, stars, size, value), ...))
("part", of, name)                of.x
("odd", what)                     unsupported syntax
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from tree_sitter import Node

Term = tuple[Any, ...]

_MOST = 1 << 15
_MADE: dict[tuple[str, bytes], Term] = {}


def term(node: Node) -> Term:
    """A node's expression or declaration as a tuple."""
    key = (node.type, node.text or b"")
    made = _MADE.get(key)
    if made is None:
        made = _term(node)
        if len(_MADE) >= _MOST:
            _MADE.clear()
        _MADE[key] = made
    return made


class Statement:
    """An expression or declaration; one object for each text.

    plain: it has no effect but memory accesses and a new value of `to`
    names: the names in it, if it is plain
    to, kind: the name that it sets; the type if it declares this name
    changes: names that a part of it changes
    wrong: the fault if the order or the number of these changes matters, else ""
    """

    __slots__ = ("changes", "kind", "names", "of", "plain", "to", "wrong")

    def __init__(self, of: Term) -> None:
        self.of, self.to, self.kind = of, "", ""
        value: Term = of
        match of:
            case "declare", str(kind), ((name, 0, None, tuple(first)),):
                self.to, self.kind, value = name, kind, first
            case "assign", "", ("name", name), first:
                self.to, value = name, first
            case ("assign", "", (("at" | "item"), *_) as place, first):
                value = ("two", ",", place, first)
        names: dict[str, None] = {}
        self.plain = value[0] != "declare" and _plain(value, names)
        self.names = tuple(names)
        self.changes: tuple[str, ...] = ()
        self.wrong = ""
        for part in _tops(of):
            changes: list[str] = []
            seen: Counter[str] = Counter()
            wrong = _changes(part, changes, seen, top=True, called=False)
            twice = next((name for name in changes if seen[name] > 1), None)
            if twice is not None:
                wrong = wrong or f"'{twice}' is changed and used in one expression; write two statements"
            self.changes, self.wrong = (*self.changes, *changes), self.wrong or wrong


def _tops(of: Term) -> Iterator[Term]:
    """The parts between commas."""
    if of[:2] == ("two", ","):
        yield from _tops(of[2])
        yield from _tops(of[3])
    else:
        yield of


def _changes(of: Term, changes: list[str], seen: Counter[str], *, top: bool, called: bool) -> str:
    """Collects the names that an expression changes, and counts all its names. The result is its fault, or ""."""
    parts: tuple[Term, ...]
    match of:
        case ("name", name):
            seen[name] += 1
            return ""
        case ("number", *_) | ("odd", *_):
            return ""
        case "call", _, parts:
            called = True
        case "declare", _, declared:
            parts = tuple(value for *_, value in declared if value is not None)
        case ("assign", _, to, _) | ("step", _, _, to):
            if called:
                return "an argument of a primitive changes a variable; primitives may evaluate arguments twice"
            if to[0] == "name" and not top:
                changes.append(to[1])
            elif to[0] != "name" and (of[0] == "step" or of[1]):
                inside: list[str] = []
                _changes(to, inside, Counter(), top=False, called=False)
                if inside:
                    return f"'{inside[0]}' is changed inside the target of an assignment; write two statements"
            parts = of[2:] if of[0] == "assign" else (to,)
        case "cast", _, _, one:
            parts = (one,)
        case "row", parts:
            pass
        case _:
            parts = tuple(part for part in of[1:] if isinstance(part, tuple))
    found = ""
    for part in parts:
        found = _changes(part, changes, seen, top=False, called=called) or found
    return found


_STATEMENTS: dict[int, Statement] = {}


def statement(node: Node) -> Statement:
    of = term(node)
    made = _STATEMENTS.get(id(of))
    if made is None or made.of is not of:
        if len(_STATEMENTS) >= _MOST:
            _STATEMENTS.clear()
        made = _STATEMENTS[id(of)] = Statement(of)
    return made


def _plain(of: Term, names: dict[str, None]) -> bool:
    match of[0]:
        case "name":
            names[of[1]] = None
            return True
        case "number":
            return True
        case "call":
            return all(_plain(one, names) for one in of[2])
        case "two":
            return of[1] in ("+", "-", "*", ",") and _plain(of[2], names) and _plain(of[3], names)
        case "at" | "item":
            return all(_plain(one, names) for one in of[1:])
    return False


def text(node: Node | None) -> str:
    return node.text.decode("ascii", "replace") if node is not None and node.text is not None else ""


def inner(node: Node) -> list[Node]:
    """The named children of a node, except comments."""
    return [child for child in node.named_children if child.type != "comment"]


def _term(node: Node) -> Term:
    parts = inner(node)
    match node.type:
        case "identifier":
            return "name", text(node)
        case "number_literal":
            return "number", _whole(text(node)), text(node)
        case "true" | "false":
            return "number", int(node.type == "true"), ""
        case "parenthesized_expression":
            return _term(parts[0])
        case "comma_expression":
            return "two", ",", _term(parts[0]), _term(parts[1])
        case "binary_expression":
            return _two(_operator(node), _term(parts[0]), _term(parts[1]))
        case "unary_expression":
            return "one", _operator(node), _term(parts[0])
        case "update_expression":
            up = 1 if _operator(node) == "++" else -1
            first = node.children[0].is_named
            return "step", up, first, _term(parts[0])
        case "pointer_expression":
            return ("at" if node.children[0].type == "*" else "address"), _term(parts[0])
        case "field_expression" if _operator(node) == ".":
            return "part", _term(parts[0]), text(node.child_by_field_name("field"))
        case "subscript_expression":
            return "item", _term(parts[0]), _term(parts[1])
        case "call_expression":
            arguments = node.child_by_field_name("arguments")
            given = inner(arguments) if arguments is not None else []
            return "call", text(node.child_by_field_name("function")), tuple(_term(one) for one in given)
        case "cast_expression":
            kind = node.child_by_field_name("type")
            base = kind.child_by_field_name("type") if kind is not None else None
            return "cast", _spaced(text(base)), text(kind).count("*"), _term(parts[-1])
        case "conditional_expression":
            return "choice", _term(parts[0]), _term(parts[1]), _term(parts[2])
        case "assignment_expression":
            return "assign", _operator(node).removesuffix("="), _term(parts[0]), _term(parts[1])
        case "sizeof_expression":
            return "number", None, ""
        case "initializer_list":
            return "row", tuple(_term(one) for one in parts)
        case "declaration":
            of = _spaced(text(node.child_by_field_name("type")))
            return "declare", of, tuple(_declared(one) for one in node.children_by_field_name("declarator"))
        case _:
            return "odd", node.type.replace("_", " ")


def _two(operator: str, left: Term, right: Term) -> Term:
    """A binary expression; a rendered `+ 0` is dropped."""
    return left if operator == "+" and right == ("number", 0, "0") else ("two", operator, left, right)


def _declared(node: Node) -> tuple[str, int, str | None, Term | None]:
    """A declarator's name, stars, array size and initializer."""
    stars = 0
    size: str | None = None
    value: Term | None = None
    at: Node | None = node
    while at is not None and at.type != "identifier":
        if at.type == "init_declarator":
            first = at.child_by_field_name("value")
            value = _term(first) if first is not None else None
        elif at.type == "array_declarator":
            size = text(at.child_by_field_name("size")) if size is None else "?"
        stars += at.type == "pointer_declarator"
        at = at.child_by_field_name("declarator")
    return text(at), stars, size, value


def parameters(function: Node) -> list[tuple[str, int, str]]:
    """Name, stars and type of each parameter of a function."""
    declarator = function.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator")
    given = declarator.child_by_field_name("parameters") if declarator is not None else None
    found = []
    for node in given.named_children if given is not None else ():
        if node.type == "parameter_declaration" and (to := node.child_by_field_name("declarator")) is not None:
            name, stars, size, _ = _declared(to)
            found.append((name, stars + (size is not None), _spaced(text(node.child_by_field_name("type")))))
    return found


def _operator(node: Node) -> str:
    found = node.child_by_field_name("operator")
    return found.type if found is not None else ""


def _spaced(kind: str) -> str:
    return " ".join(kind.split())


def _whole(literal: str) -> int | None:
    """The value of an integer literal; None for any other literal."""
    plain = literal.lower().rstrip("ul")
    try:
        if plain.startswith("0x"):
            return int(plain, 16)
        return int(plain, 8) if len(plain) > 1 and plain.startswith("0") and plain.isdecimal() else int(plain)
    except ValueError:
        return None
