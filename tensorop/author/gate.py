"""Checks a template without running it: the template itself here, the C that it renders to in `c_gate`.

A template is untrusted code. Its Jinja2 may compute with names, loops and macros. Its C may declare locals, compute,
loop, and call the platform's primitives by name. Everything that reaches beyond the kernel is refused. The C is
checked at every point, since a template can render differently at each. It is checked before the primitives' own C is
inserted, so no name of that C has to be allowed.

Every refusal begins with its guard's name (docs/explanation/security.md).
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
    """The guards, by the part of a template that each checks."""

    NEEDS = "needs"  # primitives that the platform lacks
    TUNABLES = "tunables"  # tunables with a name that is already used
    TEMPLATE = "template"  # Jinja2 statements, names and filters that are not allowed
    CHARACTERS = "characters"  # characters of the C that are not allowed
    SYNTAX = "syntax"  # text that a C parser does not read as statements of one function
    GRAMMAR = "grammar"  # kinds of statements, declarations and expressions that are not allowed
    CALLS = "calls"  # calls of anything but primitives
    TYPES = "types"  # types that are neither plain C types nor the primitives' own
    NAMES = "names"  # names that the kernel's function does not declare, or that primitives' own C uses
    STORAGE = "storage"  # arrays without a literal size, or too large ones
    POINTERS = "pointers"  # pointers made of numbers, or of other pointers' bytes
    BOUNDS = "bounds"  # memory accesses that are not proved to be inside their operands
    CONDITIONS = "conditions"  # conditions that do more than compare names, counters and small numbers
    DATA = "data"  # integers and conditions computed from loaded data
    LOCALS = "locals"  # locals that are read before they are written


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
FILTERS = frozenset((
    "abs", "first", "int", "join", "last", "length", "list", "lower", "max", "min", "reverse", "round", "sort",
    "string", "sum", "trim", "unique", "upper",
))  # fmt: skip
_HIDDEN = frozenset({"self", "context", "caller", "cycler", "joiner", "namespace", "lipsum"})


def check_template(
    template: KernelTemplate, primitives: Primitives, reserved: frozenset[str] = frozenset()
) -> Outcome | None:
    """Checks a template's source: missing primitives, forbidden statements and names. None if it passes.

    reserved: names that the operator's templates use; no tunable may have one of them.
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
    """The fault of a template's text, or None; cached, since every trial of a template needs it."""
    try:
        tree = jinja2.Environment(autoescape=False).parse(text)
        return next((refused(Guard.TEMPLATE, complaint) for complaint in _template_complaints(tree)), None)
    except jinja2.TemplateSyntaxError as error:
        return refused(Guard.TEMPLATE, f"line {error.lineno}: {error.message}")
    except RecursionError:
        return refused(Guard.TEMPLATE, "it is nested too deeply")
    except (ValueError, ArithmeticError, UnicodeError) as error:  # e.g. a number of thousands of digits
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
            case nodes.Filter(name=name) if name not in FILTERS:
                yield f"{line}the filter '{name}' is not allowed (allowed: {', '.join(sorted(FILTERS))})"
            case _ if not isinstance(node, _STATEMENTS + _EXPRESSIONS):
                yield f"{line}'{type(node).__name__.lower()}' is not allowed in a template"


def _walk(node: nodes.Node) -> Iterator[nodes.Node]:
    yield node
    for child in node.iter_child_nodes():
        yield from _walk(child)
