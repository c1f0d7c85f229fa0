"""Turns a draft and a point into readable C: the only place, with the prompts, where Jinja2 runs.

A draft is text from a stranger: it is rendered in Jinja2's sandbox, an undefined name is an error, and all it can
call are the words of the platform's vocabulary and the macros of the operator's templates.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from string import Template
from typing import Any

import clang_format
import jinja2
from jinja2.sandbox import ImmutableSandboxedEnvironment

from tensorop.errors import TensoropError
from tensorop.model.primitive import Vocabulary, Word

C_STYLE = "{BasedOnStyle: LLVM, IndentWidth: 4, ColumnLimit: 110}"
MAX_OUTPUT = 4 << 20  # bytes of C; a template that loops is stopped by the caller's time limit, one that floods by this


class RenderError(TensoropError):
    """A template is wrong at this point; `message` names template, line and cause."""


def environment(folder: Path, texts: Mapping[str, str] | None = None, *, html: bool = False) -> jinja2.Environment:
    """Templates of a folder, plus texts by name (e.g. `draft`). html: what is filled in is escaped."""
    loader = jinja2.ChoiceLoader([jinja2.DictLoader(dict(texts or {})), jinja2.FileSystemLoader(folder)])
    env = ImmutableSandboxedEnvironment(
        loader=loader,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=html,
    )
    env.globals["refuse"] = _refuse
    return env


def words(vocabulary: Vocabulary) -> dict[str, Callable[..., str]]:
    """The vocabulary as functions from argument texts to C text."""
    return functions(vocabulary.spoken)


def functions(words: Mapping[str, Word]) -> dict[str, Callable[..., str]]:
    """Words as such functions."""
    return {name: _speak(word) for name, word in words.items()}


def _speak(word: Word) -> Callable[..., str]:
    template = Template(word.c)

    def say(*args: object) -> str:
        if len(args) != len(word.args):
            raise RenderError(
                f"primitive '{word.name}' takes {len(word.args)} arguments ({', '.join(word.args)}), got {len(args)}"
            )
        return template.substitute(dict(zip(word.args, map(str, args), strict=True)))

    return say


def _refuse(reason: str) -> str:
    raise RenderError(reason)


def text(env: jinja2.Environment, template: str, context: Mapping[str, Any]) -> str:
    """One template rendered; raises RenderError."""
    try:
        out = env.get_template(template).render(dict(context))
    except jinja2.TemplateError as error:
        line = getattr(error, "lineno", None)
        where = f"{getattr(error, 'name', None) or template}" + (f", line {line}" if line else "")
        raise RenderError(f"{where}: {error.message or type(error).__name__}") from None
    except (TypeError, ValueError, ZeroDivisionError, OverflowError, AttributeError) as error:
        raise RenderError(f"{template}: {error}") from None
    if len(out) > MAX_OUTPUT:
        raise RenderError(f"{template}: rendered to {len(out)} bytes, more than {MAX_OUTPUT}")
    return out


def renderer(folder: Path, draft: str) -> Callable[[str, Mapping[str, Any], Vocabulary], str]:
    """A folder's templates with a draft among them, as a function of template and context (which has the words)."""
    env = environment(folder, {"draft": draft})
    return lambda template, context, _: text(env, template, context)


# Where every version of the wheel keeps it; the function that says so changed its name.
_CLANG_FORMAT = Path(clang_format.__file__).parent / "data" / "bin" / "clang-format"


def formatted(source: str) -> str:
    """C text laid out by clang-format, as the product ships it; a kernel is meant to be read."""
    done = subprocess.run(
        [str(_CLANG_FORMAT), f"-style={C_STYLE}", "-assume-filename=kernel.c"],
        input=source,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    if done.returncode != 0:
        raise RenderError(f"clang-format: {done.stderr.strip()[:500]}")
    return done.stdout
