"""Turns a template and a point into readable C: the only place, with the prompts, where Jinja2 runs.

A template is text from a stranger: it is rendered in Jinja2's sandbox, an undefined name is an error, and all it can
call are the platform's primitives and the macros of the operator's templates. In a kernel's text a
primitive stays a call of its name (`calls`), so that the gate reads it as one; `expand` puts its C there afterwards.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

import clang_format
import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from tensorop.errors import TensoropError
from tensorop.model.primitive import Primitive, Primitives
from tensorop.process import children
from tensorop.render import words
from tensorop.specs import files
from tensorop.specs.printable import printable

C_STYLE = "{BasedOnStyle: LLVM, IndentWidth: 4, ColumnLimit: 110}"
MAX_OUTPUT = 4 << 20  # characters; a template that loops is stopped by a limit of time, one that floods by this
MAX_KERNEL = 1 << 20  # of a template's C


Folders = Path | tuple[Path, ...]  # of templates; one that several have is the first folder's


class RenderError(TensoropError):
    """A template is wrong at this point; `message` names template, line and cause."""


class _Environment(ImmutableSandboxedEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """What a mapping holds goes before its methods: a tunable may be called `items`."""
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


class _Files(jinja2.FileSystemLoader):
    """Templates of folders that may be somebody else's."""

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        for folder in self.searchpath:
            path = Path(folder, *jinja2.loaders.split_template_path(template))
            if os.path.lexists(path):
                try:
                    files.require(path, files.TEXT)
                except OSError as error:
                    raise RenderError(f"{path} cannot be read: {error.strerror}") from None
                break
        return super().get_source(environment, template)


def environment(folder: Folders, texts: Mapping[str, str] | None = None, *, html: bool = False) -> jinja2.Environment:
    """Templates of a folder, plus texts by name (e.g. `template`). html: what is filled in is escaped."""
    loader = jinja2.ChoiceLoader([jinja2.DictLoader(dict(texts or {})), _Files(folder, encoding="utf-8-sig")])
    env = _Environment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=html,
        finalize=_shown if html else None,
    )
    env.globals["refuse"] = _refuse
    return env


def _shown(value: object) -> object:
    """What is filled into a page: texts of others turn no line round in it either."""
    if isinstance(value, Markup):
        return Markup(printable(str(value)))
    return printable(value) if isinstance(value, str) else value


def functions(primitives: Primitives) -> dict[str, Callable[..., str]]:
    """The primitives as functions from argument texts to C text, for templates of ours alone."""
    return {name: _function(primitive) for name, primitive in primitives.with_aliases.items()}


def _function(primitive: Primitive) -> Callable[..., str]:
    template = Template(primitive.c)

    def call(*args: object) -> str:
        if len(args) != len(primitive.args):
            raise RenderError(
                f"primitive '{primitive.name}' takes {len(primitive.args)} arguments "
                f"({', '.join(primitive.args)}), got {len(args)}"
            )
        return template.substitute(dict(zip(primitive.args, map(str, args), strict=True)))

    return call


def _refuse(reason: str) -> str:
    raise RenderError(reason)


def text(env: jinja2.Environment, template: str, context: Mapping[str, object], most: int = MAX_OUTPUT) -> str:
    """One template rendered, stopped where it grows beyond `most` characters; raises RenderError."""
    pieces: list[str] = []
    size = 0
    try:
        for piece in env.get_template(template).generate(dict(context)):
            pieces.append(piece)
            size += len(piece)
            if size > most:
                raise RenderError(f"{template}: rendered to more than {most} characters")
    except jinja2.TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"{getattr(error, 'name', None) or template}" + (f", line {line}" if line else "")
        raise RenderError(f"{where}: {error.message or type(error).__name__}") from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError) as error:
        raise RenderError(f"{template}: {error}") from None
    return "".join(pieces)


def c_text(env: jinja2.Environment, template: str, context: Mapping[str, object]) -> str:
    """The same of C by templates of ours: what they fill in of texts from outside is no code. Raises RenderError."""
    return text(env, template, words.encoded(context))


@lru_cache(maxsize=16)
def of_operator(folder: Folders) -> jinja2.Environment:
    """An operator's own templates, read once and where they changed: that takes longer than rendering them."""
    return environment(folder)


@lru_cache(maxsize=16)
def _with_template(folder: Folders, template: str) -> jinja2.Environment:
    return environment(folder, {"template": template})


def read_ahead(folder: Folders, template: str, outer: str) -> None:
    """Reads what `kernel_texts` will need. Raises what Jinja2 does."""
    env = _with_template(folder, template)
    for name in (outer, "template"):
        env.get_template(name)


class PrimitiveCall:
    """A primitive in a template: called with argument texts, it gives the C text of a call of its name."""

    __slots__ = ("_arity", "_name")

    def __init__(self, name: str, arity: int) -> None:
        self._name, self._arity = name, arity

    def __call__(self, *args: object) -> str:
        if len(args) != self._arity:
            raise RenderError(f"primitive '{self._name}' takes {self._arity} arguments, got {len(args)}")
        return f"{self._name}({', '.join(map(str, args))})"

    def __str__(self) -> str:
        return self._name  # an address would tell one rendering from another

    __repr__ = __str__


def kernel_texts(
    folder: Folders, template: str, outer: str, contexts: Sequence[Mapping[str, object]], arities: Mapping[str, int]
) -> list[str]:
    """A folder's template with a kernel template among its texts, in each of these contexts of plain data; primitives,
    by name and number of arguments, stay calls. Raises RenderError."""
    env = _with_template(folder, template)
    calls = {name: PrimitiveCall(name, arity) for name, arity in arities.items()}
    return [text(env, outer, {**context, **calls}, MAX_KERNEL) for context in contexts]


_COMMENT = r"//[^\n]*|(?>/\*.*?\*/)"  # atomic: there is one way to read a row of comments
_MARKS = re.compile(rf"({_COMMENT})|([()\[\]{{}},])", re.DOTALL)
_DEEPEST = 64  # calls of primitives in arguments of primitives


def expand(source: str, primitives: Mapping[str, Primitive]) -> str:
    """The C text with each call of a primitive replaced by the primitive's C, innermost first.

    source: without literals, backslashes and trigraphs, as the gate leaves it. Raises RenderError where a call has
    another number of arguments than its primitive.
    """
    names = "|".join(sorted(map(re.escape, primitives), key=len, reverse=True))
    calls = re.compile(rf"{_COMMENT}|(?<![\w.])({names})(?:\s|{_COMMENT})*+\(", re.DOTALL)
    return _expanded(
        source, calls, {name: (Template(primitive.c), primitive.args) for name, primitive in primitives.items()}, 0
    )


def _expanded(
    source: str, calls: re.Pattern[str], bodies: Mapping[str, tuple[Template, tuple[str, ...]]], depth: int
) -> str:
    if depth > _DEEPEST:
        raise RenderError(f"primitives stand in each other's arguments more than {_DEEPEST} deep")
    if "(" not in source:
        return source
    out: list[str] = []
    at = 0
    while (found := calls.search(source, at)) is not None:
        if found[1] is None:  # a comment
            out.append(source[at : found.end()])
            at = found.end()
            continue
        out.append(source[at : found.start()])
        args, at = _arguments(source, found.end())
        template, names = bodies[found[1]]
        if len(args) != len(names):
            raise RenderError(
                f"primitive '{found[1]}' takes {len(names)} arguments ({', '.join(names)}), got {len(args)}"
            )
        values = (_expanded(arg, calls, bodies, depth + 1).strip() for arg in args)
        out.append(template.substitute(dict(zip(names, values, strict=True))))
        if len(out[-1]) > MAX_KERNEL:  # a primitive may say an argument twice, and so on down
            raise RenderError(f"its primitives expand to more than {MAX_KERNEL} characters")
    out.append(source[at:])
    return "".join(out)


def _arguments(source: str, at: int) -> tuple[list[str], int]:
    """The arguments from behind the opening bracket, without their comments, and where the closing one ends."""
    args: list[str] = []
    arg, depth = "", 1
    for mark in _MARKS.finditer(source, at):
        arg += source[at : mark.start()]
        at = mark.end()
        if mark[1] is not None:
            arg += " "
            continue
        depth += (mark[0] in "([{") - (mark[0] in ")]}")
        if depth == 0:
            return ([*args, arg] if args or arg.strip() else []), at
        if depth == 1 and mark[0] == ",":
            args.append(arg)
            arg = ""
        else:
            arg += mark[0]
    raise RenderError("a primitive's brackets are not closed")


# Where every version of the wheel keeps it; the function that says so changed its name.
_CLANG_FORMAT = Path(clang_format.__file__).parent / "data" / "bin" / "clang-format"


@lru_cache(maxsize=64)  # a job stages its product twice
def formatted(source: str) -> str:
    """C text laid out by clang-format, as the product ships it; a kernel is meant to be read."""
    command = [str(_CLANG_FORMAT), f"-style={C_STYLE}", "-assume-filename=kernel.c"]
    done = children.run(command, input=source, timeout=120)
    if done.returncode != 0:
        raise RenderError(f"clang-format: {done.stderr.strip()[:500]}")
    return done.stdout
