"""Checks the C that a template renders to with a C parser, before the primitives' own C is inserted.

Allow lists exist for characters, kinds of syntax, names, calls, types and casts; everything else is refused. The
operator's own text around the template is parsed too: the template is part of one function, and may use this function's
parameters and locals.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import tree_sitter
import tree_sitter_c
from tree_sitter import Node

from tensorop.author import path_reader
from tensorop.author.addresses.prove import Function, prove
from tensorop.author.contracts import Callables, CallContract
from tensorop.author.gate import Guard, refused
from tensorop.author.grammar import Broken, Refusal
from tensorop.author.paths import Beyond, Tile
from tensorop.model.primitive import Collective, Primitives
from tensorop.model.trial import Outcome

MAX_REGION = 128 << 10  # bytes of rendered C; deeper nesting overflows the parser's own recursion
MAX_ARRAY = 1 << 9  # elements of a local array; 512 doubles fill a frame (model.kernel.MAX_FRAME)
MAX_STATEMENT = 1 << 13  # bytes of a statement without a body, or of a declaration

_STRANGE = re.compile(r"[^\t\n\x20-\x7e]")
_MARKS = re.compile(r"[\\#\"'`@$]|\?\?|%:|<%|%>|<:|:>")
# An unclosed comment matches to the end, so the search takes linear time.
_COMMENT = re.compile(r"/\*(?>.*?(?:\*/|\Z))|//[^\n]*", re.DOTALL)
_CONTRACT = re.compile(r"^ */\*@.*?\*/\n", re.DOTALL | re.MULTILINE)  # an operator's contract on its pointers
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_NODES_TEXT = """
comment compound_statement declaration init_declarator pointer_declarator array_declarator primitive_type
sized_type_specifier type_identifier type_qualifier type_descriptor abstract_pointer_declarator identifier
number_literal expression_statement assignment_expression binary_expression unary_expression update_expression
pointer_expression subscript_expression call_expression argument_list cast_expression conditional_expression
comma_expression parenthesized_expression sizeof_expression if_statement else_clause for_statement
while_statement do_statement switch_statement case_statement break_statement continue_statement return_statement
initializer_list true false
"""
_TOKENS_TEXT = """
( ) [ ] { } , ; : ? = + - * / % & | ^ ~ ! < > <= >= == != && || << >> ++ -- += -= *= /= %= &= |= ^= <<= >>= if
else for while do switch case default break continue return sizeof const restrict unsigned signed long short
"""
_PLAIN_TEXT = """
void char short int long unsigned signed float double bool size_t ptrdiff_t int8_t uint8_t int16_t uint16_t
int32_t uint32_t int64_t uint64_t
"""
_NODES, _TOKENS, _PLAIN = (frozenset(words.split()) for words in (_NODES_TEXT, _TOKENS_TEXT, _PLAIN_TEXT))

_LANGUAGE = tree_sitter.Language(tree_sitter_c.language())


def _refused_kinds(parts: bool) -> str:
    """Every kind of node that a template may not have, as alternatives of a query. parts: allows `v.x` of vectors."""
    kinds = []
    nodes, tokens = (_NODES | {"field_expression", "field_identifier"}, _TOKENS | {"."}) if parts else (_NODES, _TOKENS)
    for kind in range(_LANGUAGE.node_kind_count):
        name = _LANGUAGE.node_kind_for_id(kind)
        if name is None or not _LANGUAGE.node_kind_is_visible(kind):
            continue
        if _LANGUAGE.node_kind_is_named(kind):
            kinds += [] if name in nodes else [f"({name})"]
        elif name not in tokens:
            kinds.append(json.dumps(name))
    return " ".join(dict.fromkeys(kinds))


@lru_cache(maxsize=2)
def _looked_at(parts: bool) -> tree_sitter.Query:
    text = f"""
    [{_refused_kinds(parts)}] @refused (parenthesized_expression (compound_statement) @refused)
    [(expression_statement) (declaration) (return_statement)] @statement
    (call_expression) @call (call_expression function: (identifier) @callee)
    (cast_expression) @cast (identifier) @name (type_identifier) @type (primitive_type) @type (array_declarator) @array
    """
    return tree_sitter.Query(_LANGUAGE, text)


_DECLARATIONS = tree_sitter.Query(_LANGUAGE, "[(declaration) (parameter_declaration)] @declaration")


def marks(text: str) -> tuple[str, str]:
    """The comments before and after a template's text. A text cannot forge them: it cannot contain its own digest."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return f"/*{digest} begins*/", f"/*{digest} ends*/"


def marked(text: str, instead: str | None = None) -> str:
    """A template's text between its marks, for rendering; or another text between them."""
    begin, end = marks(text)
    return f"{begin}\n{text if instead is None else instead}{end}"


def unmarked(source: str, text: str) -> str:
    """Rendered C without the marks and the contracts."""
    begin, end = marks(text)
    return _CONTRACT.sub("", source).replace(f"{begin}\n", "").replace(begin, "").replace(end, "")


@dataclass(frozen=True)
class _Places:
    """What messages say of places in a template's C."""

    source: str
    text: str  # the template's
    line_at: Callable[[int], int]

    def at(self, place: int) -> str:
        """The template's line, with its number; the line of C if the template's is unknown."""
        if line := self.line_at(place):
            return f"line {line}: {_line(self.text, sum(len(one) + 1 for one in self.text.split(chr(10))[: line - 1]))}"
        return _line(self.source, place)


@dataclass(frozen=True)
class Checked:
    """A kernel's C that passed."""

    source: str
    # the places of statements that were not checked, since nothing executes them
    unchecked: list[tuple[int, int]] = field(default_factory=list)
    tiles: dict[str, Tile] = field(default_factory=dict)  # what decides their paths, by the names of their functions

    def trapped(self, trap: str = "__builtin_trap();") -> str:
        """The source with a trap in each place that was not checked: that must not be compiled."""
        source = self.source
        for first, last in sorted(self.unchecked, reverse=True):
            source = source[:first] + trap + source[last:]
        return source


def read(
    source: str,
    text: str,
    primitives: Primitives,
    callables: Callables,
    line_at: Callable[[int], int] = lambda _: 0,
    lanes: Collection[int] = (),
) -> Checked | Outcome:
    """The source, or its refusal.

    source: a kernel rendered with `marked(text)` as its template; primitives are calls by name (`callables`).
    line_at: the line of `text` from which a place of the source comes, 0 if it is unknown; asked for a refusal only
    lanes: numbers of elements of a vector, for which the paths of its tiles are found; none: its paths are not read
    """
    checked = Checked(source)
    places = _Places(source, text, line_at)
    try:
        found = next(_complaints(places, _Rules.of(primitives, callables), checked, lanes), None)
    except RecursionError:
        found = Guard.SYNTAX, "it is nested too deeply"
    return checked if found is None else refused(*found)


_Complaint = tuple[Guard, str]
_Read = set[bytes]  # checked calls


def _complaints(places: _Places, rules: _Rules, checked: Checked, lanes: Collection[int]) -> Iterator[_Complaint]:
    source = places.source
    if strange := _STRANGE.search(source):
        yield Guard.CHARACTERS, f"its C has the character {strange[0]!r}: {places.at(strange.start())}"
    begin, end = marks(places.text)
    at = 0
    regions = []
    while (start := source.find(begin, at)) >= 0:
        at = source.find(end, start)
        if at < 0:
            yield Guard.SYNTAX, "its text does not end where it began"
            return
        regions.append((start, start + len(begin), at, at + len(end)))
        yield from _text(places, start + len(begin), at)
    if not regions:
        yield Guard.SYNTAX, "its text does not appear in the source"
    tree = tree_sitter.Parser(_LANGUAGE).parse(source.encode("ascii", "replace"))
    if tree.root_node.has_error:
        yield Guard.SYNTAX, f"it is no C: {places.at(_first_error(tree.root_node))}"
    read: _Read = set()
    found = [_Region(places, tree.root_node, place, rules, read) for place in regions]
    for region in found:
        yield from region.complaints()
    for region in found:  # only if the checks above found nothing
        yield from region.addresses(checked.unchecked)
    for region in found if lanes else ():
        yield from region.paths(lanes, checked.tiles)


def _text(places: _Places, first: int, last: int) -> Iterator[_Complaint]:
    region = places.source[first:last]
    if len(region) > MAX_REGION:
        yield Guard.SYNTAX, f"it renders to {len(region)} characters; at most {MAX_REGION} are read"
    without_comments = _COMMENT.sub(lambda comment: re.sub(r"[^\n]", " ", comment[0]), region)  # offsets stay
    if mark := _MARKS.search(without_comments):
        yield Guard.CHARACTERS, f"its C has {mark[0]!r}: {places.at(first + mark.start())}"
    if (contract := region.find("/*@")) >= 0:
        yield Guard.CHARACTERS, f"its C has '/*@', which begins an operator's contract: {places.at(first + contract)}"
    if backslash := re.search(r"\\|\?\?", region):  # may join lines, also in a comment
        yield Guard.CHARACTERS, f"its C has {backslash[0]!r}: {places.at(first + backslash.start())}"


class _Rules:
    """The names and types that a template's C may use, given the platform's primitives."""

    def __init__(self, primitives: Primitives, callables: Callables) -> None:
        # functions whose accesses are proved to be in bounds, with the places of what nothing executes there
        self.proved: dict[tuple[bytes, int], list[tuple[int, int]]] = {}
        self.callables, self.contract = callables, CallContract.of(primitives, callables)
        self.types = _PLAIN | set(_IDENTIFIER.findall(" ".join(primitives.types)))
        self.types |= self.contract.vectors | self.contract.addresses
        self.collective = any(isinstance(one, Collective) for one in callables.values())
        if self.collective:  # each primitive is a function of its own
            self.own = frozenset(callables)
            return
        texts = (one.c for one in (*callables.values(), *primitives.by_name.values()))
        bodies = " ".join(re.sub(r"\$\w+|\$\{\w+\}", " ", text) for text in texts)
        supports = " ".join((primitives.support, *(one.support for one in primitives.by_name.values())))
        helpers = re.findall(r"\b([A-Za-z_]\w*)\s*\(", _COMMENT.sub(" ", supports))
        self.own = (frozenset(_IDENTIFIER.findall(bodies)) | frozenset(helpers)) - self.types - _TOKENS - {"lanes"}

    @staticmethod
    def of(primitives: Primitives, callables: Callables) -> _Rules:
        """Made once for each set of primitives, and cached: trials use few sets."""
        parts = (
            *primitives.types,
            primitives.lanes,
            primitives.support,
            *((name, one.c, one.args, one.returns, one.meaning) for name, one in callables.items()),
            *(
                (one.accesses, one.template) if isinstance(one, Collective) else one.preconditions
                for one in callables.values()
            ),
        )
        found = _RULES.get(parts) or _Rules(primitives, callables)
        if parts not in _RULES and len(_RULES) >= _MOST_RULES:
            _RULES.clear()
        return _RULES.setdefault(parts, found)


_RULES: dict[tuple[object, ...], _Rules] = {}  # by the parts of primitives that the rules depend on
_MOST_RULES = 32


class _Region:
    """One occurrence of a template's text, with the comments that mark it. read: calls that passed before."""

    def __init__(
        self, places: _Places, root: Node, place: tuple[int, int, int, int], rules: _Rules, read: _Read
    ) -> None:
        self.places, self.source, self.rules, self.read = places, places.source, rules, read
        _, self.first, self.last, _ = place
        opening, closing = (_comment(root, *ends) for ends in (place[:2], place[2:]))
        same = opening is not None and closing is not None and opening.parent == closing.parent
        self.body = opening.parent if same and opening is not None else None
        self.function = self.body
        while self.function is not None and self.function.type != "function_definition":
            self.function = self.function.parent

    def complaints(self) -> Iterator[_Complaint]:
        if self.body is None or self.function is None or self.body.type != "compound_statement":
            yield Guard.SYNTAX, "it leaves the function it stands in, or swallows what follows"
            return
        outside, mine = set[str](), set[str]()
        for node in tree_sitter.QueryCursor(_DECLARATIONS).captures(self.function).get("declaration", ()):
            (mine if self.first <= node.start_byte < self.last else outside).update(_declared(node))
        cursor = tree_sitter.QueryCursor(_looked_at(self.rules.collective))
        cursor.set_byte_range(self.first, self.last)
        found = {
            kind: [node for node in nodes if self.first <= node.start_byte < self.last]
            for kind, nodes in cursor.captures(self.body).items()
        }
        for node in found.get("refused", ()):
            what = node.type.replace("_", " ") if node.is_named else f"'{node.type}'"
            yield Guard.GRAMMAR, f"its C has {what}: {self._at(node)}"
        for kind in ("statement", "call", "cast"):  # calls and casts can be outside statements, e.g. in conditions
            for node in found.get(kind, ()):
                if node.end_byte - node.start_byte > MAX_STATEMENT:
                    yield Guard.SYNTAX, f"a {kind} has more than {MAX_STATEMENT} characters: {self._at(node)}"
        yield from self._types(found.get("type", ()))
        yield from self._arrays(found.get("array", ()))
        for node in found.get("call", ()):
            if (text := node.text or b"") not in self.read:
                yield from self._call(node)
                self.read.add(text)
        yield from self._names(found, outside, mine)

    def addresses(self, unchecked: list[tuple[int, int]]) -> Iterator[_Complaint]:
        """Checks that memory accesses are in bounds, and the values that conditions depend on.

        unchecked: gets the places of statements that nothing executes
        """
        body, function = self.body, self.function
        if body is None or function is None or body.parent != function:
            yield Guard.BOUNDS, "the operator's template has it in a block of its own, not in its function's"
            return
        # Configurations share many functions that differ only in the function's name.
        declarator = function.child_by_field_name("declarator")
        names = declarator.child_by_field_name("parameters") if declarator is not None else None
        start = (names or function).start_byte
        text = self.source[start : function.end_byte]
        key = hashlib.sha256(text.encode()).digest(), self.first - body.start_byte
        if (known := self.rules.proved.get(key)) is not None:
            unchecked += [(start + first, start + last) for first, last in known]
            return
        try:
            found = prove(Function(function, self.first, self.last), self.rules.contract)
            self.rules.proved[key] = [(first - start, last - start) for first, last in found]
            unchecked += found
        except Refusal as refusal:
            yield refusal.guard, f"{refusal.message}: {self._at(refusal.node or body)}"

    def paths(self, lanes: Collection[int], tiles: dict[str, Tile]) -> Iterator[_Complaint]:
        """Checks that verification can call each path. tiles: gets what decides the paths of the text's function"""
        assert self.function is not None
        try:
            name, tile = path_reader.read(self.function)
            for count in lanes:
                tile.paths(count)
            tiles[name] = tile
        except Broken as broken:
            node = path_reader.place(self.function, broken) if isinstance(broken, Beyond) else broken.node
            yield broken.guard, f"{broken.message}: {self._at(node or self.function)}"

    def _names(self, found: Mapping[str, Sequence[Node]], outside: set[str], mine: set[str]) -> Iterator[_Complaint]:
        for name in sorted(mine):
            if name in self.rules.own or name in self.rules.types or name.startswith("_"):
                what = "a word of the primitives' own C or of the compiler; take another"
                yield Guard.NAMES, f"it declares '{name}', {what}"
        used = Counter(node.text for node in found.get("name", ()))
        used.subtract(node.text for node in found.get("callee", ()))
        own = {name.encode() for name in outside | mine if name not in self.rules.own and not name.startswith("_")}
        for text in sorted(text for text, count in used.items() if count and text is not None and text not in own):
            node = next(node for node in found["name"] if node.text == text)
            yield Guard.NAMES, f"it uses '{_text_of(node)}', which its function does not declare: {self._at(node)}"

    def _types(self, types: Sequence[Node]) -> Iterator[_Complaint]:
        for node in types:
            if (text := _text_of(node)) not in self.rules.types:
                yield Guard.TYPES, f"it uses the type '{text}': {self._at(node)}"

    def _arrays(self, arrays: Sequence[Node]) -> Iterator[_Complaint]:
        for node in arrays:
            size = node.child_by_field_name("size")
            text = _text_of(size) if size is not None else ""
            if not re.fullmatch(r"[1-9]\d{0,8}", text) or int(text) > MAX_ARRAY:
                yield Guard.STORAGE, f"an array has no size in numbers up to {MAX_ARRAY}: {self._at(node)}"

    def _call(self, call: Node) -> Iterator[_Complaint]:
        function, arguments = call.child_by_field_name("function"), call.child_by_field_name("arguments")
        if function is None or arguments is None or function.type != "identifier":
            yield Guard.CALLS, f"its C calls an expression: {self._at(call)}"
            return
        name = _text_of(function)
        primitive = self.rules.callables.get(name)
        if primitive is None:
            yield Guard.CALLS, f"its C calls '{name}', which is no primitive: {self._at(call)}"
            return
        given = [node for node in arguments.named_children if node.type != "comment"]
        taken = primitive.declared if isinstance(primitive, Collective) else primitive.args
        if len(given) != len(taken):
            yield Guard.CALLS, f"'{name}' takes {len(taken)} arguments, not {len(given)}: {self._at(call)}"

    def _at(self, node: Node) -> str:
        return self.places.at(node.start_byte)


def _comment(root: Node, first: int, last: int) -> Node | None:
    """The comment with exactly this range of bytes, or None."""
    node = root.descendant_for_byte_range(first, last)
    return node if node and (node.type, node.start_byte, node.end_byte) == ("comment", first, last) else None


def _declared(declaration: Node) -> Iterator[str]:
    """The names that a declaration or a parameter declares."""
    for declarator in declaration.children_by_field_name("declarator"):
        node: Node | None = declarator
        while node is not None and node.type != "identifier":
            node = node.child_by_field_name("declarator")
        if node is not None:
            yield _text_of(node)


def _first_error(root: Node) -> int:
    node = root
    while True:
        wrong = next((child for child in node.children if child.is_error or child.is_missing or child.has_error), None)
        if wrong is None or wrong.is_error or wrong.is_missing:
            return (wrong or node).start_byte
        node = wrong


def _text_of(node: Node) -> str:
    return node.text.decode("ascii", "replace") if node.text is not None else ""


def _line(source: str, at: int) -> str:
    begin = source.rfind("\n", 0, at) + 1
    end = source.find("\n", at)
    return _STRANGE.sub(_spelled, source[begin : end if end >= 0 else len(source)][:200].strip()[:120])


def _spelled(found: re.Match[str]) -> str:
    return found[0].encode("unicode_escape").decode()
