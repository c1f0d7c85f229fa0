"""What a draft may say, checked without running it: first the template, then the C it renders to.

A draft is text from a stranger. Its template may compute with names, loops and macros; its C may declare locals,
compute, loop, and speak the platform's words. Everything that reaches beyond the kernel is refused: preprocessor
lines, assembler, strings, storage, attributes, any call that is not a word's. The C is what counts: it is checked
at every point, for a template may say one thing at one point and another elsewhere.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import jinja2
from jinja2 import nodes

from tensorop.model.kernel import Draft
from tensorop.model.primitive import Vocabulary
from tensorop.model.trial import Kind, Outcome

MAX_REGION = 1 << 20  # bytes of C one rendering of a draft may have

_STATEMENTS = (
    nodes.Template, nodes.Output, nodes.TemplateData, nodes.For, nodes.If, nodes.Assign, nodes.AssignBlock,
    nodes.Macro, nodes.With,
)  # fmt: skip
_EXPRESSIONS = (
    nodes.Name, nodes.Const, nodes.TemplateData, nodes.Tuple, nodes.List, nodes.Dict, nodes.Pair, nodes.CondExpr,
    nodes.Filter, nodes.Test, nodes.Call, nodes.Keyword, nodes.Getattr, nodes.Getitem, nodes.Slice, nodes.Concat,
    nodes.Compare, nodes.Operand, nodes.Add, nodes.Sub, nodes.Mul, nodes.FloorDiv, nodes.Mod, nodes.And, nodes.Or,
    nodes.Not, nodes.Neg, nodes.Pos,
)  # fmt: skip
_FILTERS = frozenset((
    "abs", "first", "int", "join", "last", "length", "list", "lower", "max", "min", "reverse", "round", "sort",
    "string", "sum", "trim", "unique", "upper",
))  # fmt: skip
_HIDDEN = frozenset({"self", "context", "caller", "cycler", "joiner", "namespace", "lipsum"})

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_FORBIDDEN = frozenset((
    "asm", "goto", "static", "extern", "register", "typedef", "struct", "union", "enum", "volatile", "inline", "typeof",
    "auto", "thread_local", "alignas", "constexpr", "setjmp", "longjmp", "alloca",
))  # fmt: skip
_MARKS = ("#", '"', "'", "`", "@", "$", "%:", "<%", "%>", "<:", ":>", "({", "/*", "*/")
_SPEAKING = frozenset({"if", "else", "for", "while", "do", "switch", "case", "return", "sizeof"})
_CAST_LENGTH = 120
_TYPES = (
    "void char short int long unsigned signed float double size_t ptrdiff_t int8_t uint8_t int16_t uint16_t int32_t "
    "uint32_t int64_t uint64_t intptr_t uintptr_t const restrict"
)


def check_template(draft: Draft, vocabulary: Vocabulary) -> Outcome | None:
    """The draft as it was written: words it needs and lacks, statements and names it must not use."""
    missing = [word for word in draft.needs if word not in vocabulary.spoken]
    if missing:
        return refused(f"it needs {', '.join(missing)}, which this platform's primitives do not have")
    shadowed = sorted(draft.tunables.keys() & (vocabulary.spoken.keys() | _HIDDEN))
    if shadowed:
        return refused(f"its tunable '{shadowed[0]}' has the name of a primitive")
    try:
        tree = jinja2.Environment(autoescape=False).parse(draft.text)
    except jinja2.TemplateSyntaxError as error:
        return refused(f"line {error.lineno}: {error.message}")
    except RecursionError:
        return refused("its template is nested too deeply")
    return next((refused(complaint) for complaint in _template_complaints(tree)), None)


def admit(
    draft: Draft, vocabulary: Vocabulary, render: Callable[[Draft], str], also: Sequence[Vocabulary] = ()
) -> str | Outcome:
    """The C a draft becomes at one point, once all of it has been read; the refusal where it breaks a rule.

    also: further vocabularies it is rendered with.
    render: the whole source with the draft's text in its place; what it raises is passed on.
    """
    outcome = check_template(draft, vocabulary)
    if outcome is not None:
        return outcome
    digest = hashlib.sha256(draft.text.encode()).hexdigest()  # a text cannot contain its own digest
    begin, end = f"/*{digest} begins*/", f"/*{digest} ends*/"
    source = render(replace(draft, text=f"{begin}\n{draft.text}{end}"))
    regions = {part.split(end, 1)[0] for part in source.split(begin)[1:]}
    if not regions:
        return refused("its text does not appear in the source")
    rules = _Rules((vocabulary, *also))
    for region in sorted(regions):
        for complaint in rules.complaints(region):
            return refused(complaint)
    return source.replace(f"{begin}\n", "").replace(begin, "").replace(end, "")


def refused(message: str) -> Outcome:
    return Outcome(Kind.REFUSED, "author", message)


def _template_complaints(tree: nodes.Template) -> Iterator[str]:
    for node in _walk(tree):
        line = f"line {node.lineno}: "
        match node:
            case nodes.Getattr(attr=attr) | nodes.Getitem(arg=nodes.Const(value=str(attr))) if "_" in attr[:1]:
                yield f"{line}'{attr}' is not for drafts to read"
            case nodes.Name(name=name) if name in _HIDDEN or name.startswith("_"):
                yield f"{line}'{name}' is not for drafts to use"
            case nodes.Filter(name=name) if name not in _FILTERS:
                yield f"{line}the filter '{name}' is not allowed (allowed: {', '.join(sorted(_FILTERS))})"
            case _ if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
                yield f"{line}'{type(node).__name__.lower()}' is not allowed in a draft"


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _walk(child)


class _Rules:
    """What the C of a draft may hold, given the platform's words."""

    def __init__(self, vocabularies: Sequence[Vocabulary]) -> None:
        spoken = " ".join(text for v in vocabularies for text in (*(word.c for word in v.words.values()), v.lanes))
        spoken = re.sub(r"\$\w+|\$\{\w+\}", " ", spoken)  # the arguments of the words
        self.callable = frozenset(re.findall(r"([A-Za-z_]\w*)\s*\(", spoken)) | _SPEAKING
        own = [(v.element, v.vector, v.predicate, v.packed, v.packed_vector, v.stored_vector) for v in vocabularies]
        kinds = " ".join([*(kind for kinds in own for kind in kinds), _TYPES])
        self.known = frozenset(_IDENTIFIER.findall(spoken)) | frozenset(_IDENTIFIER.findall(kinds))
        names = "|".join(sorted(frozenset(_IDENTIFIER.findall(kinds)) | (self.known & _casts(spoken))))
        self.cast = re.compile(rf"\(\s*(?:(?:{names})\b[\s*]*)+\)\Z")

    def complaints(self, region: str) -> Iterator[str]:
        if len(region) > MAX_REGION:
            yield f"it renders to {len(region)} characters; at most {MAX_REGION} are read"
            return
        if "\\" in region or "??" in region or not region.isascii() or "\0" in region:
            yield "its C has a backslash, a trigraph or a character beyond ASCII"
        code = _COMMENT.sub(" ", region)
        if re.search(r"//[^\n]*\Z", region) and not region.endswith("\n"):
            yield "its last line is a comment that would swallow what follows"
        for mark in _MARKS:
            if mark in code:
                yield f"its C has {mark!r}: {_line(code, mark)}"
        for name in sorted(set(_IDENTIFIER.findall(code)) - self.known):
            if name in _FORBIDDEN or name.startswith("_"):
                yield f"its C uses '{name}': {_line(code, name)}"
        for match in re.finditer(r"([A-Za-z_]\w*|[\])])\s*\(", code):
            if match[1] not in ")]":
                if match[1] not in self.callable:
                    yield f"its C calls '{match[1]}', which is no primitive: {_line(code, match[0])}"
            elif not self.cast.search(code, max(0, match.start() - _CAST_LENGTH), match.end(1)):
                yield f"its C calls an expression: {_line(code, match[0])}"
        if not _balanced(code):
            yield "its brackets do not match: it would leave the function it stands in"


def _casts(spoken: str) -> frozenset[str]:
    """Single type names the words cast to, e.g. a mask type."""
    return frozenset(re.findall(r"\(\s*([A-Za-z_]\w*_t|__\w+)\s*\)", spoken))


def _balanced(code: str) -> bool:
    closing = {")": "(", "]": "[", "}": "{"}
    stack: list[str] = []
    for bracket in re.findall(r"[()\[\]{}]", code):
        if bracket in "([{":
            stack.append(bracket)
        elif not stack or stack.pop() != closing[bracket]:
            return False
    return not stack


def _line(code: str, what: str) -> str:
    return next((line.strip()[:120] for line in code.split("\n") if what in line), what.strip()[:120])
