"""The rules that a prompt quotes are those of the gates: each rule's examples go through the real ones."""

from __future__ import annotations

import pytest

from tensorop.author import rules
from tensorop.author.gate import Guard, check_template
from tensorop.author.rules import Example, Rule
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Point
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import platforms
from tests.support.operators import gemm

RULES = rules.rules()


def refusal(example: Example, platform_name: str) -> Outcome | None:
    operator, platform = gemm(), platforms.load(platform_name)
    head = {"needs": (), "tunables": {}, **({} if isinstance(example, str) else example)}
    template = KernelTemplate(
        "gemm", "d", "llm", "s", f"{example}\n" if isinstance(example, str) else "(void)m;\n",
        {"a": "columns", "b": "scalars"}, tuple(head["needs"]),
        {"mr_vectors": (2,), "nr": (4,), **{name: tuple(values) for name, values in head["tunables"].items()}},
    )  # fmt: skip
    reserved = instantiate.reserved(operator, platform, "f32")
    if outcome := check_template(template, platform.primitives_of("f32"), reserved):
        return outcome
    point = instantiate.defaults(operator, platform, "f32", instantiate.micro_space(platform, template, "f32").at(0))
    found = Texts().kernel(operator, platform, instantiate.variant(operator, template, "f32", Point.of(point)))
    return found if isinstance(found, Outcome) else None


@pytest.mark.one_in(5)
@pytest.mark.parametrize("platform", ["avx2", "neon", "rvv"])
@pytest.mark.parametrize("rule", RULES, ids=lambda rule: f"{rule.guard}-{RULES.index(rule)}")
def test_the_gates_hold_each_rule(rule: Rule, platform: str) -> None:
    assert refusal(rule.accepted, platform) is None
    outcome = refusal(rule.refused, platform)
    assert outcome is not None
    assert (outcome.kind, outcome.where) == (Kind.REFUSED, "author")
    assert outcome.message.startswith(f"{rule.guard}: "), outcome.message


def test_each_guard_has_a_rule_and_each_limit_its_number() -> None:
    assert {rule.guard for rule in RULES} == set(Guard)
    assert not [rule.sentence for rule in RULES if "$" in rule.sentence.replace("@ $`", "")]
