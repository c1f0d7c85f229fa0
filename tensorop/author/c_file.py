"""Reads a plain C file as a kernel template: the head is in the first comment, and names need no Jinja2 braces.

    /*---
    strategy: ...
    reads: {a: rows, b: columns}
    tunables: {mr_vectors: [4], nr: [4]}
    ---*/
    ... statements of one function, primitives called by their names

The resulting template passes the same gates as any other. Jinja2 syntax in the file has no effect.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from tensorop.errors import SpecError
from tensorop.specs import frontmatter

SUFFIX = ".c"
OPENS, CLOSES = "/*---", "---*/"
TYPES = ("element", "vector", "predicate", "compute", "compute_vector", "storage", "storage_vector")
_COMMENT = r"/\*(?>.*?(?:\*/|\Z))|//[^\n]*"
_EXAMPLE = (
    "begin it with /*--- and ---*/ around `strategy:`, `reads:`, `needs:` and `tunables:` "
    "(docs/how-to/write-a-kernel-template.md)"
)


def template_text(text: str, names: Iterable[str], origin: str) -> str:
    """The equivalent template. names: numbers that the operator's templates can use, beside the tunables.

    The body's line numbers stay. Raises SpecError, naming origin, if the head is missing, not closed or broken.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != OPENS:
        raise SpecError(
            f"{origin}: expected a head that begins with '{OPENS}', got {lines[first][:60]!r}", hint=_EXAMPLE
        )
    last = next((number for number in range(first + 1, len(lines)) if lines[number].rstrip() == CLOSES), None)
    if last is None:
        raise SpecError(
            f"{origin}: line {first + 1}: expected the line '{CLOSES}' at the end of the head, got none", hint=_EXAMPLE
        )
    head = "\n".join(["---", *lines[first + 1 : last], "---"])
    tunables = frontmatter.template(f"{head}\n;\n", origin)[0].tunables
    return f"{head}\n{_plain(chr(10).join(lines[last + 1 :]), {*TYPES, *names, *tunables})}"


def _plain(body: str, names: set[str]) -> str:
    """The body with each of these names as a Jinja2 expression `{{ name }}`, and without other Jinja2 syntax."""
    body = re.sub(r"\{(?=[{%#])", "{ ", body)
    holes = re.compile(rf"({_COMMENT})|(?<![\w.])({'|'.join(map(re.escape, sorted(names)))})(?!\w)", re.DOTALL)

    def replacement(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        before = " " if body[found.start() - 1 : found.start()] == "{" else ""
        return f"{before}{{{{ {found[2]} }}}}"

    return holes.sub(replacement, body)
