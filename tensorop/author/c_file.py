"""Reads a plain C file as a kernel template: the head is in the first comment, and names need no Jinja2 braces.

    /*---
    strategy: ...
    reads: {a: rows, b: columns}
    tunables: {mr_vectors: [4], nr: [4]}
    ---*/
    ... statements of one function, primitives called by their names

The resulting template passes the same gates as any other. Jinja2 syntax in the file has no effect.

A trusted file is C of any kind, which no gate reads. Its head has one more key, `call`: the call of the function that
is the kernel, e.g. `call: my_tile(m, k, a, b, c, ldc)`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from pathlib import Path

from tensorop.errors import SpecError
from tensorop.specs import files, frontmatter, yamlfile
from tensorop.specs.frontmatter import FunctionHead, TemplateHead

SUFFIX = ".c"
OPENS, CLOSES = "/*---", "---*/"
TYPES = ("element", "vector", "predicate", "compute", "compute_vector", "storage", "storage_vector")
_COMMENT = r"/\*(?>.*?(?:\*/|\Z))|//[^\n]*"
_HEAD = "begin it with /*--- and ---*/ around `strategy:`, `reads:`, `needs:` and `tunables:`"
_EXAMPLE = (
    f"{_HEAD} (docs/how-to/write-a-kernel-template.md); if it is C of your own, with intrinsics, functions or headers, "
    "add --trusted (docs/how-to/judge-a-kernel.md)"
)
_TRUSTED = f"{_HEAD}, and `call:`, the call of your function (docs/how-to/judge-a-kernel.md)"
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"\n]+)"', re.MULTILINE)
_FOLDER = "own"  # of a trusted file and its headers, below the folder where a kernel is compiled
_NAME = re.compile(r"[\w.+-]+")


def template_text(text: str, names: Iterable[str], origin: str) -> str:
    """The equivalent template. names: numbers that the operator's templates can use, beside the tunables.

    The body's line numbers stay. Raises SpecError, naming origin, if the head is missing, not closed or broken.
    """
    head, body = _parted(text, origin, _EXAMPLE)
    return f"{head}\n{_plain(body, {*TYPES, *names, *_read(head, origin, TemplateHead, _EXAMPLE).tunables})}"


def trusted_text(text: str, names: Iterable[str], origin: str) -> str:
    """The template whose body is the call of a trusted file's function. Raises SpecError as `template_text`."""
    head = _read(_parted(text, origin, _TRUSTED)[0], origin, FunctionHead, _TRUSTED)
    own = head.model_dump(mode="json", exclude={"call"}, exclude_defaults=True)
    return f"---\n{yamlfile.dump(own)}---\n{_plain(head.call, {*TYPES, *names, *head.tunables})};\n"


def with_headers(file: Path) -> tuple[tuple[str, str], ...]:
    """A trusted file and the headers that it includes by quoted names: (path, text), the file first.

    The compiler finds each at its place relative to the others. It reports a header that does not exist, unless the
    preprocessor skips the line. Raises SpecError for a name that it could not find, and for files that are no text.
    """
    found: dict[Path, str] = {}
    waiting = [Path(os.path.abspath(file))]
    while waiting:
        if (path := waiting.pop()) in found:
            continue
        if not _NAME.fullmatch(path.name):
            raise SpecError(f"{path}: a file to compile has letters, digits and '_.+-' in its name", hint="rename it")
        found[path] = files.text(path, files.TEXT)
        for name in _INCLUDE.findall(found[path]):
            if os.path.isabs(name):
                raise SpecError(f"{path}: expected headers by paths relative to this file, got '{name}'")
            header = Path(os.path.normpath(path.parent / name))
            waiting += [header] if header.is_file() else []
    root = os.path.commonpath([path.parent for path in found])
    return tuple((f"{_FOLDER}/{path.relative_to(root)}", text) for path, text in found.items())


def _parted(text: str, origin: str, hint: str) -> tuple[str, str]:
    """The head as a template has it, and the lines after it."""
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), 0)
    if lines[first].rstrip() != OPENS:
        raise SpecError(f"{origin}: expected a head that begins with '{OPENS}', got {lines[first][:60]!r}", hint=hint)
    last = next((number for number in range(first + 1, len(lines)) if lines[number].rstrip() == CLOSES), None)
    if last is None:
        wrong = f"expected the line '{CLOSES}' at the end of the head, got none"
        raise SpecError(f"{origin}: line {first + 1}: {wrong}", hint=hint)
    return "\n".join(["---", *lines[first + 1 : last], "---"]), "\n".join(lines[last + 1 :])


def _read(head: str, origin: str, kind: type[frontmatter.H], hint: str) -> frontmatter.H:
    try:
        return frontmatter.template(f"{head}\n;\n", origin, kind)[0]
    except SpecError as error:
        raise SpecError(error.message, hint=error.hint or hint) from None


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
