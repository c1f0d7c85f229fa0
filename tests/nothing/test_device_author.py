"""What a language model is asked for on a GPU, and what is read of its answers without a compiler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tensorop.author import parse, rules
from tensorop.author.gate import Guard
from tensorop.author.rules import Example, Rule
from tensorop.cuda import kernels
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Outcome
from tensorop.specs import operators, platforms

GEMM, WMMA = operators.load("gemm"), platforms.load("cuda-wmma")
RULES = rules.rules("device_rules")
NUMBERS = {
    "threads": 64, "tile_m": 64, "tile_n": 8, "raster": 4, "resident": 1, "shared": 4096, "align_ab": 2, "align_c": 2,
    "c_size": 2, "a_along_m": 0, "b_along_k": 0,
}  # fmt: skip
FAMILY = KernelTemplate("gemm", "d", "llm", "s", "", {"operands": "pointers"}, ("value",), {"tile_m": (64,)})
EXAMPLE = (GEMM.folder / "device/prompts/example.cu.j2").read_text()


def refusal(example: Example) -> Outcome | None:
    head = {} if isinstance(example, str) else example
    text = f"{example}\n" if isinstance(example, str) else "(void)m;\n"
    own = {name: tuple(values) for name, values in head.get("tunables", {}).items()}
    template = replace(FAMILY, text=text, tunables={**FAMILY.tunables, **own})
    found = kernels.text(GEMM, WMMA, template, "bf16", {**NUMBERS, **{name: of[0] for name, of in own.items()}})
    return found if isinstance(found, Outcome) else None


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.guard}-{RULES.index(rule)}")
def test_the_gates_hold_each_rule(rule: Rule) -> None:
    outcome = refusal(rule.accepted)
    assert outcome is None, outcome
    outcome = refusal(rule.refused)
    assert outcome is not None
    assert outcome.message.startswith(f"{rule.guard}: "), outcome.message


def test_each_guard_of_a_body_has_a_rule_and_each_limit_its_number() -> None:
    assert {rule.guard for rule in RULES} == set(Guard) - {Guard.NEEDS}
    assert not [rule.sentence for rule in RULES if "$" in rule.sentence.replace("@ $`", "")]


def test_the_example_is_a_template() -> None:
    assert parse.parse(EXAMPLE, operator="gemm", name="llm-1", author="llm").facts["align_ab"] == "16"
