"""Parses a template's text to a KernelTemplate. A text that breaks a rule is refused with a reason, never repaired."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from typing import Any

from tensorop.author import plans, regions
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Point
from tensorop.model.steering import PLACES
from tensorop.specs import frontmatter, yamlfile

MAX_BODY = 64 << 10
MAX_VALUES = 64
MAX_NUMBER = 1 << 12
MAX_TEXT = 256 << 10  # characters of a template, head included

_NAME = re.compile(r"[a-z][a-z0-9_]{0,31}")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_WORD = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]{0,31}")
# A template's prose is rendered in a comment of its C. So it may not end the comment, change the direction of text or
# move a cursor.
_NO_PROSE = ("\\", "*/", "/*", "??/", "{{", "{%", "{#")


def parse(text: str, *, operator: str, name: str, author: str) -> KernelTemplate:
    """The template in `text`: YAML between `---` lines, then a Jinja2 body.

    Raises SpecError naming the template, the key and what was expected.
    """
    origin = f"template '{name}'"
    if len(text) > MAX_TEXT:
        raise SpecError(f"{origin}: {len(text)} characters; at most {MAX_TEXT} are read")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise SpecError(f"{origin}: invalid Unicode (a lone surrogate) at offset {error.start}") from None
    head, body = frontmatter.template(text, origin, frontmatter.TemplateHead)
    body, marks = regions.parted(body, origin)
    own: dict[str, Any] = {
        "operator": operator,
        "name": name,
        "author": author,
        "strategy": " ".join(head.strategy.split()),
        "text": body,
        "regions": marks,
        "tunables": {tunable: tuple(values) for tunable, values in head.tunables.items()},
        "seed_configurations": tuple(Point.of(start) for start in head.seed_configurations),
    }
    found = KernelTemplate(**{**yamlfile.shared(head, KernelTemplate), **own})
    check(found)
    return found


def written(template: KernelTemplate) -> str:
    """A text that parses to the template's content: what an author is shown of it, and edits."""
    plain = asdict(template)
    head = {name: plain[name] for name in ("strategy", "plan", "reads", "needs", "tunables", "constraints", "prior")}
    head |= {"unseen": template.unseen, "seed_configurations": [dict(one) for one in template.seed_configurations]}
    head |= {"facts": template.facts, "model": template.model}
    text = json.dumps({name: value for name, value in head.items() if value})
    return f"---\n{yamlfile.dump(json.loads(text))}---\n{regions.marked(template)}"


def check(template: KernelTemplate) -> None:
    """The rules for every template, from any source.

    Raises SpecError naming the template, the key and what was expected.
    """
    origin = f"template '{template.name}'"
    if not _LABEL.fullmatch(template.name):
        raise SpecError(f"template '{template.name[:60]}': expected a name of letters, digits, '_' and '-'")
    for prose in (template.strategy, *(c.reason for c in template.constraints)):
        if not prose.isprintable() or any(mark in prose for mark in _NO_PROSE):
            raise SpecError(f"{origin}: '{prose[:60]}' has characters that are not allowed in a sentence")
    plans.parse(template.plan, origin)
    for key, word in template.reads.items():
        if not _NAME.fullmatch(key) or not _WORD.fullmatch(word):
            raise SpecError(f"{origin}: key 'reads': expected names and single words, got '{key}: {word}'")
    for tunable, values in template.tunables.items():
        _check_tunable(origin, tunable, values)
    prior = (*template.prior.of, *template.prior.apart) if template.prior else ()
    named: tuple[tuple[str, Iterable[str], Callable[[str], object], str], ...] = (
        ("facts", template.facts, _NAME.fullmatch, "lower-case names"),
        ("model", template.model, _NAME.fullmatch, "lower-case names"),
        ("needs", template.needs, _NAME.fullmatch, "names of primitives"),
        ("unseen", template.unseen, template.tunables.__contains__, "names of its tunables"),
        ("prior", prior, lambda name: name.isidentifier() and len(name) <= 32, "names of tunables or settings"),
    )
    for tunable, idea in template.ideas.items():
        action, _, region = idea.partition(" ")
        if tunable not in template.tunables or region not in PLACES.get(action, ()):
            expected = "a tunable with an action and one of its regions, such as `ku: unroll counters`"
            raise SpecError(f"{origin}: key 'ideas': expected {expected}, got '{tunable[:40]}: {idea[:60]}'")
    for key, names, is_good, expected in named:
        if (wrong := next((name for name in names if not is_good(name)), None)) is not None:
            raise SpecError(f"{origin}: key '{key}': expected {expected}, got '{wrong[:60]}'")
    if not template.text.strip():
        raise SpecError(f"{origin}: expected C text after the head, got none")
    if len(template.text) > MAX_BODY:
        raise SpecError(f"{origin}: the body has {len(template.text)} characters; at most {MAX_BODY} are read")


def _check_tunable(origin: str, name: str, values: Sequence[int | str]) -> None:
    key = f"{origin}: key 'tunables.{name[:40]}'"
    if not _NAME.fullmatch(name):
        raise SpecError(f"{key}: expected a lower-case name of at most 32 characters")
    if not 0 < len(values) <= MAX_VALUES:
        raise SpecError(f"{key}: expected 1 to {MAX_VALUES} values, got {len(values)}")
    for value in values:
        if isinstance(value, str) and not _WORD.fullmatch(value):
            raise SpecError(f"{key}: expected numbers or single words, got '{value[:60]}'")
        if isinstance(value, int) and abs(value) > MAX_NUMBER:
            raise SpecError(f"{key}: expected numbers up to {MAX_NUMBER}, got {value}")
