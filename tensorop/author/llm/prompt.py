"""What the model is told: the operator's contract, the platform's words and facts, an example, what failed.

The prose is in the operator's folder, `templates/<op>/prompts/{system,template,repair}.md.j2`, with the example
`example.c.j2`; here is only what fills it. Pure: the same brief gives the same messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import jinja2

from tensorop.author.llm.messages import Message
from tensorop.errors import SpecError
from tensorop.model.platform import Platform
from tensorop.model.primitive import Primitives
from tensorop.model.trial import Kind, Outcome

LOG_TAIL = 4096
MAX_FAILURES = 5
MAX_DIAGNOSTICS = 12
MAX_DIAGNOSTIC = 300  # characters of one

_DIAGNOSTIC = re.compile(r"^(?:.*?[:\s])?(?:fatal )?(error|warning|note): (.*)$", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.)\]])(?:~|\.{1,2})?/[\w.+~-]+(?:/[\w.+~-]+)*/?|\b[A-Za-z]:\\\\\S+")
_SEED = re.compile(r",? ?\bseed -?\d+:[0-9a-f]{32}\b")


@dataclass(frozen=True)
class Brief:
    """Everything a prompt is made of. facts: what constraints may name; example: a whole template that works."""

    operator: str
    description: str
    folder: Path  # of the operator
    platform: Platform
    primitives: Primitives
    facts: Mapping[str, int | str]
    example: str


@dataclass(frozen=True)
class Lessons:
    """What earlier rounds taught: strategies that are taken, and failures, newest last."""

    strategies: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()


def opening(brief: Brief, lessons: Lessons) -> tuple[Message, ...]:
    """The question for a new template."""
    recent = Lessons(lessons.strategies, lessons.failures[-MAX_FAILURES:])
    return (
        Message("system", _fill(brief, "system.md.j2")),
        Message("user", _fill(brief, "template.md.j2", told=recent)),
    )


def repair(brief: Brief, asked: tuple[Message, ...], answer: str, outcome: Outcome) -> tuple[Message, ...]:
    """The question for the same template, repaired: the conversation so far and what went wrong."""
    question = _fill(brief, "repair.md.j2", outcome=outcome, log=outcome.log[-LOG_TAIL:])
    return (*asked, Message("assistant", answer), Message("user", question))


def repeatable(outcome: Outcome) -> Outcome:
    """The outcome as a model is told it, whose machine is somebody else's.

    Compilers quote lines of the files they read and name them; a process prints what it likes. Of a compiler's
    diagnostics the texts alone are repeated, of a process nothing but the outcome's own sentence, without the run's
    seed: whoever knows it knows the operands of the calls to come.
    """
    if outcome.kind is not Kind.COMPILE:
        return replace(outcome, message=_without_paths(outcome.message), log="")
    texts = [f"{kind}: {_without_paths(text)[:MAX_DIAGNOSTIC]}" for kind, text in _DIAGNOSTIC.findall(outcome.log)]
    diagnostics = list(dict.fromkeys(texts))[:MAX_DIAGNOSTICS]
    first = next((text for text in diagnostics if text.startswith("error")), "the compiler refused it")
    return replace(outcome, message=first, log="\n".join(diagnostics))


def _without_paths(text: str) -> str:
    return _PATH.sub("[path]", _SEED.sub("", text))


def _fill(brief: Brief, name: str, **more: object) -> str:
    folder = brief.folder / "prompts"
    env = jinja2.Environment(
        loader=jinja2.FileSystemLoader(folder, encoding="utf-8-sig"), undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True, autoescape=False,
    )  # fmt: skip
    try:
        return env.get_template(name).render(brief=brief, **more)
    except jinja2.TemplateError as error:
        raise SpecError(f"{folder / name}: {error.message or type(error).__name__}") from error
