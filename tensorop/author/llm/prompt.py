"""Makes prompts: the operator's contract, the platform's primitives and facts, an example, and earlier failures.

The prose is in the operator's folder, `templates/<op>/prompts/{system,template,repair}.md.j2`, with the example
`example.c.j2`; this module fills it in. The same brief gives the same messages.
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
MAX_DIAGNOSTIC = 300  # characters of one diagnostic

_DIAGNOSTIC = re.compile(r"^(?:.*?[:\s])?(?:fatal )?(error|warning|note): (.*)$", re.MULTILINE)
_PATH = re.compile(r"(?<![\w.)\]])(?:~|\.{1,2})?/[\w.+~-]+(?:/[\w.+~-]+)*/?|\b[A-Za-z]:\\\\\S+")
_SEED = re.compile(r",? ?\bseed -?\d+:[0-9a-f]{32}\b")


@dataclass(frozen=True)
class Brief:
    """Everything that a prompt is made of."""

    operator: str
    description: str
    folder: Path  # of the operator
    platform: Platform
    primitives: Primitives
    facts: Mapping[str, int | str]  # names that constraints may use
    example: str  # a whole template that works


@dataclass(frozen=True)
class Lessons:
    """The results of earlier rounds."""

    strategies: tuple[str, ...] = ()  # of templates that passed
    failures: tuple[str, ...] = ()  # newest last


def opening(brief: Brief, lessons: Lessons) -> tuple[Message, ...]:
    """The question for a new template."""
    recent = Lessons(lessons.strategies, lessons.failures[-MAX_FAILURES:])
    return (
        Message("system", _fill(brief, "system.md.j2")),
        Message("user", _fill(brief, "template.md.j2", told=recent)),
    )


def repair(brief: Brief, asked: tuple[Message, ...], answer: str, outcome: Outcome) -> tuple[Message, ...]:
    """The question for a repair of the same template: the conversation so far and the error."""
    question = _fill(brief, "repair.md.j2", outcome=outcome, log=outcome.log[-LOG_TAIL:])
    return (*asked, Message("assistant", answer), Message("user", question))


def repeatable(outcome: Outcome) -> Outcome:
    """The outcome as it may be sent to a model on another machine.

    Compilers quote files and name them, and a process can print anything. So a compiler's diagnostics are reduced to
    their texts, and a process's output is left out: only the outcome's own message stays. Paths are replaced. The run's
    seed is removed, since the operands of later calls follow from it.
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
