"""Renders a template at a point to readable C. Besides the prompts, only this module runs Jinja2.

A template is untrusted text. It is rendered in Jinja2's sandbox, an undefined name is an error, and it can call only
the platform's primitives and the macros of the operator's templates. In a kernel's text a primitive stays a call of its
name (`PrimitiveCall`), so that the gate reads a call; then `expand` replaces it by its C.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from string import Template
from typing import Any

import clang_format
import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment
from markupsafe import Markup

from tensorop.errors import TensoropError, of_system
from tensorop.model.primitive import Primitive, Primitives
from tensorop.process import children
from tensorop.render import words
from tensorop.specs import files
from tensorop.specs.printable import printable

C_STYLE = "{BasedOnStyle: LLVM, IndentWidth: 4, ColumnLimit: 110}"
MAX_OUTPUT = 4 << 20  # characters; a limit of time stops a template that loops, this one a flood of output
MAX_KERNEL = 1 << 20  # characters of a template's C


Folders = Path | tuple[Path, ...]  # of templates; the first folder that has a template provides it


class RenderError(TensoropError):
    """A template is wrong at this point; `message` names template, line and cause."""


class _Environment(ImmutableSandboxedEnvironment):
    def getattr(self, obj: Any, attribute: str) -> Any:
        """Prefers the items of a mapping to its methods: a tunable may be called `items`."""
        return obj[attribute] if isinstance(obj, dict) and attribute in obj else super().getattr(obj, attribute)


class _Files(jinja2.FileSystemLoader):
    """Loads templates from folders that may be untrusted."""

    def get_source(self, environment: jinja2.Environment, template: str) -> Any:
        for folder in self.searchpath:
            path = Path(folder, *jinja2.loaders.split_template_path(template))
            if os.path.lexists(path):
                with of_system(RenderError, f"{path} cannot be read"):
                    files.require(path, files.TEXT)
                break
        return super().get_source(environment, template)


def environment(folder: Folders, texts: Mapping[str, str] | None = None, *, html: bool = False) -> jinja2.Environment:
    """Jinja2 with the templates of a folder and texts by name (e.g. `template`). html: escapes inserted values."""
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
    """A value for a page, with escapes for control characters and marks of direction in untrusted texts."""
    if isinstance(value, Markup):
        return Markup(printable(str(value)))
    return printable(value) if isinstance(value, str) else value


class PrimitiveText:
    """A primitive in tensorop's own templates: called with argument texts, it returns its C.

    support: the C that a file must have before the first call
    """

    def __init__(self, primitive: Primitive) -> None:
        self._primitive, self._template, self.support = primitive, Template(primitive.c), primitive.support

    def __call__(self, *args: object) -> str:
        primitive = self._primitive
        if len(args) != len(primitive.args):
            raise RenderError(
                f"primitive '{primitive.name}' takes {len(primitive.args)} arguments "
                f"({', '.join(primitive.args)}), got {len(args)}"
            )
        return self._template.substitute(dict(zip(primitive.args, map(str, args), strict=True)))


def functions(primitives: Primitives) -> dict[str, PrimitiveText]:
    """The primitives as functions from argument texts to C text, for tensorop's own templates only."""
    return {name: PrimitiveText(primitive) for name, primitive in primitives.with_aliases.items()}


def _refuse(reason: str) -> str:
    raise RenderError(reason)


def text(env: jinja2.Environment, template: str, context: Mapping[str, object], most: int = MAX_OUTPUT) -> str:
    """Renders one template, and stops beyond `most` characters. Raises RenderError."""
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
    """Renders C from a template of tensorop's own. Raises RenderError.

    Texts from outside are encoded, so that they cannot become code.
    """
    return text(env, template, words.encoded(context))


@lru_cache(maxsize=16)
def of_operator(folder: Folders) -> jinja2.Environment:
    """An operator's own templates. They are cached, since reading takes longer than rendering.

    Changed files are read again.
    """
    return environment(folder)


@lru_cache(maxsize=16)
def _with_template(folder: Folders, template: str) -> jinja2.Environment:
    return environment(folder, {"template": template})


def read_ahead(folder: Folders, template: str, outer: str) -> None:
    """Reads the templates of `kernel_texts` early. Raises Jinja2's errors."""
    env = _with_template(folder, template)
    for name in (outer, "template"):
        env.get_template(name)


class PrimitiveCall:
    """A primitive in a template: called with argument texts, it returns the C text of a call of its name."""

    __slots__ = ("_arity", "_name")

    def __init__(self, name: str, arity: int) -> None:
        self._name, self._arity = name, arity

    def __call__(self, *args: object) -> str:
        if len(args) != self._arity:
            raise RenderError(f"primitive '{self._name}' takes {self._arity} arguments, got {len(args)}")
        return f"{self._name}({', '.join(map(str, args))})"

    def __str__(self) -> str:
        return self._name  # the default has an address, which differs between renderings

    __repr__ = __str__


def kernel_texts(
    folder: Folders, template: str, outer: str, contexts: Sequence[Mapping[str, object]], arities: Mapping[str, int]
) -> list[str]:
    """Renders a folder's template with a kernel template among its texts, in each of these contexts of plain data.

    arities: primitives by name with their numbers of arguments; they stay calls. Raises RenderError.
    """
    env = _with_template(folder, template)
    calls = {name: PrimitiveCall(name, arity) for name, arity in arities.items()}
    return [text(env, outer, {**context, **calls}, MAX_KERNEL) for context in contexts]


_COMMENT = r"//[^\n]*|(?>/\*.*?\*/)"  # atomic: a sequence of comments matches in one way only
_MARKS = re.compile(rf"({_COMMENT})|([()\[\]{{}},])", re.DOTALL)
_DEEPEST = 64  # nested calls of primitives in arguments


def expand(source: str, primitives: Mapping[str, Primitive]) -> str:
    """The C text with each call of a primitive replaced by the primitive's C, innermost first, after their `support`.

    source: without literals, backslashes and trigraphs, which the gate refuses. Raises RenderError if a call has a
    wrong number of arguments.
    """
    names = "|".join(sorted(map(re.escape, primitives), key=len, reverse=True))
    calls = re.compile(rf"{_COMMENT}|(?<![\w.])({names})(?:\s|{_COMMENT})*+\(", re.DOTALL)
    bodies = {name: (Template(primitive.c), primitive.args) for name, primitive in primitives.items()}
    called: dict[str, None] = {}
    made = _expanded(source, calls, bodies, called, 0)
    supports = dict.fromkeys(primitives[name].support for name in called)
    return "\n".join([*filter(None, supports), made])


def _expanded(
    source: str,
    calls: re.Pattern[str],
    bodies: Mapping[str, tuple[Template, tuple[str, ...]]],
    called: dict[str, None],
    depth: int,
) -> str:
    if depth > _DEEPEST:
        raise RenderError(f"calls of primitives are nested more than {_DEEPEST} deep")
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
        called[found[1]] = None
        if len(args) != len(names):
            raise RenderError(
                f"primitive '{found[1]}' takes {len(names)} arguments ({', '.join(names)}), got {len(args)}"
            )
        values = (_expanded(arg, calls, bodies, called, depth + 1).strip() for arg in args)
        out.append(template.substitute(dict(zip(names, values, strict=True))))
        if len(out[-1]) > MAX_KERNEL:  # a primitive may repeat an argument, at each level
            raise RenderError(f"its primitives expand to more than {MAX_KERNEL} characters")
    out.append(source[at:])
    return "".join(out)


def _arguments(source: str, at: int) -> tuple[list[str], int]:
    """The arguments after the opening bracket, without comments, and the position after the closing bracket."""
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
    raise RenderError("the call of a primitive has no closing bracket")


# The path in every version of the wheel; the wheel's function for it was renamed.
_CLANG_FORMAT = Path(clang_format.__file__).parent / "data" / "bin" / "clang-format"


@lru_cache(maxsize=64)  # a job stages its product twice
def formatted(source: str) -> str:
    """C text formatted by clang-format as in the product, since a kernel should be readable."""
    command = [str(_CLANG_FORMAT), f"-style={C_STYLE}", "-assume-filename=kernel.c"]
    done = children.run(command, input=source, timeout=120)
    if done.returncode != 0:
        raise RenderError(f"clang-format: {done.stderr.strip()[:500]}")
    return done.stdout
