"""Converts the C parser's expressions and declarations to tuples, once for each text.

("number", int | None, text)      None: not an integer
("name", name)
("two", operator, left, right)    ("one", operator, of)
("step", +1 or -1, of)            ++ and --
("at", of)                        *of
("item", of, index)
("call", name, arguments)         ("cast", type, stars, of)
("choice", condition, yes, no)    ("row", items)
("assign", operator, to, value)   operator: "" or that of +=, -=, ...
("declare", type, ((name, stars, size, value), ...))
("part", of, name)                of.x
("odd", what)                     unsupported syntax
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tree_sitter import Node

Term = tuple[Any, ...]

_MOST = 1 << 15
_MADE: dict[tuple[str, bytes], tuple[Statement, ...]] = {}
_MOST_PARAMETERS = 1 << 8
_PARAMETERS: dict[str, list[tuple[str, int, str]]] = {}


class Statement:
    """A change, a call or a declaration; one object for each text.

    plain: it has no effect but memory accesses and a new value of `to`
    names: the names in it, if it is plain
    to, kind: the name that it sets; the type if it declares this name
    """

    __slots__ = ("kind", "names", "of", "plain", "to")

    def __init__(self, of: Term) -> None:
        self.of, self.to, self.kind = of, "", ""
        value: Term = of
        match of:
            case "declare", str(kind), ((name, 0, None, tuple(first)),):
                self.to, self.kind, value = name, kind, first
            case "assign", "", ("name", name), first:
                self.to, value = name, first
            case ("assign", "", (("at" | "item"), *_) as place, first):
                value = ("call", "", (place, first))
        names: dict[str, None] = {}
        self.plain = _plain(value, names)
        self.names = tuple(names)


def statements(node: Node | None) -> tuple[Statement, ...]:
    """The statements of a declaration, or those of an expression that commas separate."""
    if node is None:
        return ()
    key = (node.type, node.text or b"")
    made = _MADE.get(key)
    if made is None:
        if len(_MADE) >= _MOST:
            _MADE.clear()
        made = _MADE[key] = tuple(map(Statement, _changes(node)))
    return made


def _changes(node: Node) -> Iterator[Term]:
    if node.type in ("expression_statement", "comma_expression", "parenthesized_expression"):
        for part in inner(node):
            yield from _changes(part)
    else:
        yield term(node)


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
            return of[1] in ("+", "-", "*") and _plain(of[2], names) and _plain(of[3], names)
        case "at" | "item":
            return all(_plain(one, names) for one in of[1:])
    return False


def text(node: Node | None) -> str:
    return node.text.decode("ascii", "replace") if node is not None and node.text is not None else ""


def field(node: Node, name: str) -> Node:
    """The part of a node that C's syntax requires there."""
    found = node.child_by_field_name(name)
    assert found is not None
    return found


def inner(node: Node) -> list[Node]:
    """The named children of a node, except comments."""
    return [child for child in node.named_children if child.type != "comment"]


def term(node: Node) -> Term:
    """A node's expression or declaration as a tuple."""
    kind = node.type
    if kind == "identifier":
        return "name", text(node)
    if kind == "number_literal":
        return "number", _whole(text(node)), text(node)
    parts = inner(node)
    match kind:
        case "true" | "false":
            return "number", int(node.type == "true"), ""
        case "parenthesized_expression":
            return term(parts[0])
        case "binary_expression":
            return _two(_operator(node), term(parts[0]), term(parts[1]))
        case "unary_expression":
            return "one", _operator(node), term(parts[0])
        case "update_expression":
            return "step", (1 if _operator(node) == "++" else -1), term(parts[0])
        case "pointer_expression":
            return ("at", term(parts[0])) if _operator(node) == "*" else ("odd", "'&'")
        case "field_expression" if _operator(node) == ".":
            return "part", term(parts[0]), text(node.child_by_field_name("field"))
        case "subscript_expression":
            return "item", term(parts[0]), term(parts[1])
        case "call_expression":
            arguments = node.child_by_field_name("arguments")
            given = inner(arguments) if arguments is not None else []
            return "call", text(node.child_by_field_name("function")), tuple(term(one) for one in given)
        case "cast_expression":
            to = node.child_by_field_name("type")
            base = to.child_by_field_name("type") if to is not None else None
            return "cast", _spaced(text(base)), text(to).count("*"), term(parts[-1])
        case "conditional_expression":
            return "choice", term(parts[0]), term(parts[1]), term(parts[2])
        case "assignment_expression":
            return "assign", _operator(node).removesuffix("="), term(parts[0]), term(parts[1])
        case "initializer_list":
            return "row", tuple(term(one) for one in parts)
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
            value = term(first) if first is not None else None
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
    key = text(given)
    if (found := _PARAMETERS.get(key)) is not None:
        return found
    found = []
    for node in given.named_children if given is not None else ():
        if node.type == "parameter_declaration" and (to := node.child_by_field_name("declarator")) is not None:
            name, stars, size, _ = _declared(to)
            found.append((name, stars + (size is not None), _spaced(text(node.child_by_field_name("type")))))
    if len(_PARAMETERS) >= _MOST_PARAMETERS:
        _PARAMETERS.clear()
    return _PARAMETERS.setdefault(key, found)


def direct(node: Node | None) -> Iterator[Term]:
    """The changes that each execution of a statement or an expression makes once."""
    if node is not None and node.type == "compound_statement":
        for child in inner(node):
            yield from direct(child)
    elif node is not None and (node.type == "expression_statement" or not node.type.endswith("_statement")):
        yield from (one.of for one in statements(node))


def every(node: Node) -> Iterator[Term]:
    """Every change in a statement."""
    if node.type == "expression_statement":
        yield from direct(node)
    elif node.type == "for_statement":
        for name in ("initializer", "update"):
            yield from direct(node.child_by_field_name(name))
    for child in node.named_children:
        if child.type.endswith("_statement") or child.type == "else_clause":
            yield from every(child)


def changed(of: Term) -> str:
    """The name that a change is of; empty for an element, a call or a declaration."""
    to: Term = of[2] if of[0] in ("step", "assign") else ()
    return str(to[1]) if to and to[0] == "name" else ""


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
