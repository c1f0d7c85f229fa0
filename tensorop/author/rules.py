"""The rules for templates, from `rules.yaml`: one table, which prompts quote and a test holds against the gates."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from string import Template

from tensorop.author import c_gate, gate
from tensorop.author.addresses import admission, symbols
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File, Record

Example = str | dict[str, list[str] | dict[str, list[int]]]  # a body, or keys of a head


class Rule(Record):
    """One rule."""

    guard: str  # the name of the guard (gate.Guard) that refuses a template that breaks it
    rule: str  # its sentence, with `$names` of the gates' limits
    accepted: Example
    refused: Example

    @property
    def sentence(self) -> str:
        """The rule with the limits that the gates hold."""
        return Template(self.rule).safe_substitute(
            filters=", ".join(sorted(gate.FILTERS)),
            region=c_gate.MAX_REGION >> 10,
            statement=c_gate.MAX_STATEMENT >> 10,
            array=c_gate.MAX_ARRAY,
            number=symbols.MOST_COMPARED,
            together=admission.MOST_TOGETHER + symbols.MOST_COMPARED,
            block=symbols.MOST_OF_BLOCK,
            step=symbols.MOST_STEP,
            ahead=symbols.MOST_AHEAD,
            apart=admission.MOST_APART,
        )


class RuleFile(File):
    rules: list[Rule]


@cache
def rules(name: str = "rules") -> tuple[Rule, ...]:
    """All rules, in the order in which the gates hold them. name: of the table, `device_rules` for kernels of a GPU"""
    path = Path(__file__).with_name(f"{name}.yaml")
    return tuple(yamlfile.validate(RuleFile, yamlfile.read(path), str(path)).rules)
