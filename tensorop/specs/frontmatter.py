"""Reads texts with a YAML head between two `---` lines.

Such texts are untrusted: the head is short, has no anchors, and must match a schema.
"""

from __future__ import annotations

from typing import TypeVar

from pydantic import Field

from tensorop.errors import SpecError
from tensorop.model.kernel import Constraint, Prior
from tensorop.specs import yamlfile, yamltext
from tensorop.specs.yamlfile import Record

MAX_HEAD = 12288  # the longest one here has some 8,300


class TemplateHead(Record):
    """The head of a template."""

    strategy: str = Field(min_length=1, max_length=1000)
    plan: str = Field(default="", max_length=2000)
    reads: dict[str, str] = Field(default_factory=dict)
    needs: tuple[str, ...] = Field(default=(), strict=False)
    tunables: dict[str, list[int | str]] = Field(max_length=12)
    constraints: tuple[Constraint, ...] = Field(default=(), strict=False, max_length=32)
    unseen: tuple[str, ...] = Field(default=(), strict=False, max_length=4)
    prior: Prior | None = None
    seed_configurations: tuple[dict[str, int | str], ...] = Field(default=(), strict=False, max_length=24)
    facts: dict[str, str] = Field(default_factory=dict, max_length=64)
    model: dict[str, str] = Field(default_factory=dict, max_length=64)
    ideas: dict[str, str] = Field(default_factory=dict, max_length=12)


class FunctionHead(TemplateHead):
    """The head of C with a function that is the kernel."""

    call: str = Field(min_length=1, max_length=1000)  # the call of the function


H = TypeVar("H", bound=TemplateHead)


def template(text: str, origin: str, kind: type[H]) -> tuple[H, str]:
    """The head of a template's text, and its body. Raises SpecError with origin, key and the expected value."""
    lines = text.replace("\r\n", "\n").split("\n")
    first = next((number for number, line in enumerate(lines) if line.strip()), len(lines))
    lines = lines[first:]
    if not lines or lines[0].rstrip() != "---":
        raise SpecError(f"{origin}: expected a head between two lines of '---', got {(lines or [''])[0][:60]!r}")
    end = next((number for number, line in enumerate(lines[1:], start=1) if line.rstrip() == "---"), None)
    if end is None:
        raise SpecError(f"{origin}: expected a line '---' at the end of the head, got none")
    head = "\n".join(lines[1:end])
    if len(head) > MAX_HEAD:
        raise SpecError(f"{origin}: the head has {len(head)} characters; at most {MAX_HEAD} are read")
    data = yamltext.parse(head, origin, aliases=False)
    return yamlfile.validate(kind, data, origin), "\n".join(lines[end + 1 :])
