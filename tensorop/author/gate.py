"""What a template may say, checked without running it: first the template, then the C it renders to.

A template is text from a stranger. Its Jinja2 may compute with names, loops and macros; its C may declare locals,
compute, loop, and call the platform's primitives by their names. Everything that reaches beyond the kernel is refused.
The C is what counts: it is read at every point, for a template may say one thing at one point and another elsewhere,
and it is read before the primitives' own C is put in, so that what is no primitive's name is nobody's business there.

Every refusal begins with the name of the guard that made it (docs/explanation/security.md).
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from functools import lru_cache

import jinja2
from jinja2 import nodes

from tensorop.model.kernel import KernelTemplate
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Kind, Outcome


class Guard(StrEnum):
    """What refuses a template, by what it looks at."""

    NEEDS = "needs"  # primitives that the platform lacks
    TUNABLES = "tunables"  # names that are somebody else's
    TEMPLATE = "template"  # statements, names and filters of the template
    CHARACTERS = "characters"  # what the C is written in
    SYNTAX = "syntax"  # what a C parser does not read as statements of one function
    GRAMMAR = "grammar"  # kinds of statements, declarations and expressions
    CALLS = "calls"  # of anything but primitives
    TYPES = "types"
    NAMES = "names"  # what the kernel's function does not declare, and what primitives call their own
    STORAGE = "storage"  # arrays whose size is not a number
    POINTERS = "pointers"  # made of numbers, or of other pointers' bytes
    BOUNDS = "bounds"  # accesses of memory that nothing shows to lie inside their operands
    CONDITIONS = "conditions"  # what is no comparison of names, counters and small numbers
    DATA = "data"  # whole numbers and conditions made of what was loaded
    LOCALS = "locals"  # read before they are written


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


def check_template(
    template: KernelTemplate, primitives: Primitives, reserved: frozenset[str] = frozenset()
) -> Outcome | None:
    """The template as it was written: primitives it needs and lacks, statements and names it must not use.

    reserved: names that the operator's templates use, which no tunable of a template may take.
    """
    missing = [name for name in template.needs if name not in primitives.with_aliases]
    if missing:
        return refused(Guard.NEEDS, f"it needs {', '.join(missing)}, which this platform's primitives do not have")
    shadowed = sorted(template.tunables.keys() & (primitives.with_aliases.keys() | _HIDDEN))
    if shadowed:
        return refused(Guard.TUNABLES, f"its tunable '{shadowed[0]}' has the name of a primitive")
    taken = sorted(template.tunables.keys() & reserved)
    if taken:
        return refused(Guard.TUNABLES, f"its tunable '{taken[0]}' has a name that templates around it use")
    return _template(template.text)


@lru_cache(maxsize=64)
def _template(text: str) -> Outcome | None:
    """A text's own fault; every trial of a template asks for it."""
    try:
        tree = jinja2.Environment(autoescape=False).parse(text)
        return next((refused(Guard.TEMPLATE, complaint) for complaint in _template_complaints(tree)), None)
    except jinja2.TemplateSyntaxError as error:
        return refused(Guard.TEMPLATE, f"line {error.lineno}: {error.message}")
    except RecursionError:
        return refused(Guard.TEMPLATE, "it is nested too deeply")
    except (ValueError, ArithmeticError, UnicodeError) as error:  # a number of thousands of digits, say
        return refused(Guard.TEMPLATE, f"it cannot be read: {error}"[:300])


def refused(guard: Guard, message: str) -> Outcome:
    return Outcome(Kind.REFUSED, "author", f"{guard.value}: {message}")


def _template_complaints(tree: nodes.Template) -> Iterator[str]:
    for node in _walk(tree):
        line = f"line {node.lineno}: "
        match node:
            case nodes.Getattr(attr=attr) | nodes.Getitem(arg=nodes.Const(value=str(attr))) if "_" in attr[:1]:
                yield f"{line}'{attr}' is not for templates to read"
            case nodes.Name(name=name) if name in _HIDDEN or name.startswith("_"):
                yield f"{line}'{name}' is not for templates to use"
            case nodes.Filter(name=name) if name not in _FILTERS:
                yield f"{line}the filter '{name}' is not allowed (allowed: {', '.join(sorted(_FILTERS))})"
            case _ if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
                yield f"{line}'{type(node).__name__.lower()}' is not allowed in a template"


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _walk(child)
