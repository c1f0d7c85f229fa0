"""A plain C file read as a kernel template: its head is in its first comment, and its names are written plainly.

    /*---
    strategy: ...
    reads: {a: rows, b: columns}
    tunables: {mr_vectors: [4], nr: [4]}
    ---*/
    ... statements of one function, primitives called by their names

What it becomes goes through the same gates as any template; nothing in it is a template's own language.
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
    """The template that says the same. names: what the operator's templates call numbers, beside the tunables.

    Line numbers of the body stay. Raises SpecError, naming origin, where the head is missing, not closed or broken.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != OPENS:
        raise SpecError(
            f"{origin}: expected a head that begins with '{OPENS}', got {lines[first][:60]!r}", hint=_EXAMPLE
        )
    last = next((number for number in range(first + 1, len(lines)) if lines[number].rstrip() == CLOSES), None)
    if last is None:
        raise SpecError(f"{origin}: line {first + 1}: the head has no closing line '{CLOSES}'", hint=_EXAMPLE)
    head = "\n".join(["---", *lines[first + 1 : last], "---"])
    tunables = frontmatter.template(f"{head}\n;\n", origin)[0].tunables
    return f"{head}\n{_plain(chr(10).join(lines[last + 1 :]), {*TYPES, *names, *tunables})}"


def _plain(body: str, names: set[str]) -> str:
    """The body with each of these names as a template's hole, and with no other hole."""
    body = re.sub(r"\{(?=[{%#])", "{ ", body)
    holes = re.compile(rf"({_COMMENT})|(?<![\w.])({'|'.join(map(re.escape, sorted(names)))})(?!\w)", re.DOTALL)

    def replacement(found: re.Match[str]) -> str:
        if found[1] is not None:
            return found[1]
        before = " " if body[found.start() - 1 : found.start()] == "{" else ""
        return f"{before}{{{{ {found[2]} }}}}"

    return holes.sub(replacement, body)
