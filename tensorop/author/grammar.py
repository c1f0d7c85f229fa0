"""The rules of the templates' language, from `language.yaml`, and the refusals that name them."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tree_sitter import Node

from tensorop.author.gate import Guard
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File, Record


class Sentence(Record):
    """One rule of the language."""

    guard: str  # the name of a guard (gate.Guard)
    rule: str
    honest: str  # how an honest template writes it


class LanguageFile(File):
    grammar: str
    device: str
    rules: dict[str, Sentence]


@cache
def language() -> LanguageFile:
    path = Path(__file__).with_name("language.yaml")
    return yamlfile.validate(LanguageFile, yamlfile.read(path), str(path))


class Refusal(Exception):
    """The guard that refuses a kernel, the reason and the node."""

    def __init__(self, guard: Guard, message: str, node: Node | None = None) -> None:
        super().__init__(message)
        self.guard, self.message, self.node = guard, message, node


class Broken(Refusal):
    """A refusal by a rule of the language."""

    def __init__(self, rule: str, what: str, node: Node | None = None) -> None:
        of = language().rules[rule]
        super().__init__(Guard(of.guard), f"rule '{rule}': {what}; write {of.honest}", node)
