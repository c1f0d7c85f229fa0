"""What a language model is asked for on a GPU, and what is read of its answers without a compiler."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import parse, rules
from tensorop.author.gate import Guard
from tensorop.author.rules import Example, Rule
from tensorop.backends import reach
from tensorop.cuda import kernels
from tensorop.cuda.author import FamilyAuthor
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
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


@pytest.mark.parametrize(
    ("body", "numbers"),
    [
        ("if (k > 512) sums[0] = 0;", ("contains the number 512", "numbers up to 256, values of tunables included")),
        (
            "for (int i = 0; i < 8; ++i) { if (i * 512 + thread % 8 < k) sums[thread] = 0; }",
            ("by 512; multiply by at most 64", "(if (i % 8 == 0))", "iterations of `for (int i = 0; i < 8; ++i)`"),
        ),
        (
            "const int steps = (k + 511) / 512; for (int i = 0; i < steps; ++i) copies_commit();",
            ("it divides by 512; divide by at most 128", "(k + 511) / 512"),
        ),
        (
            "const int warp = thread / 32; if (k > warp * 512) sums[thread] = 0;",
            ("differs by up to 512 between the threads", "at most 320 is allowed", "(thread) / 32"),
        ),
        (
            "for (int i = 0; i < 4; ++i) if (k / 32 > i * 16) sums[thread] = 0;",
            ("by 512; multiply by at most 64", "(it is read as k - 512 * turn > 0)", "(k) / 32"),
        ),
    ],
)
def test_a_refused_condition_names_its_number_and_the_most(body: str, numbers: tuple[str, ...]) -> None:
    outcome = refusal(body)
    assert outcome is not None
    assert not [number for number in numbers if number not in outcome.message], outcome.message


def author(tmp_path: Path) -> FamilyAuthor:
    job = Job("gemm", "cuda-wmma", dtypes=("f16",), shapes=((64, 64, 64),), author="llm", out=tmp_path)
    return FamilyAuthor(job, GEMM, reach(WMMA), Seed.draw(), tmp_path)


@pytest.mark.parametrize(
    ("before", "after", "says"),
    [
        ("operands: pointers", "operands: maps", "operands: pointers"),
        ("needs: [word_copy", "needs: [wgmma, word_copy", "it needs wgmma"),
        ("raster: [4, 8]", "macs: [4096]\n  raster: [4]", "'macs' is a name of the library"),
        ("raster: [4, 8]", "matrices: [2]\n  raster: [4]", "'matrices' is a name of the library"),
        ('  tile_k: "32"\n', '  tile_k: "32"\n  k_products: "0"\n', "'k_products' is a name of the library"),
        ("  raster: [4, 8]\n", "", "neither a tunable nor a fact 'raster'"),
        ('align_ab: "16"', 'align_ab: "8"', "the fact align_ab is 8"),
        ("tile_k: ", "tile_k: nothing + ", "unknown name 'nothing'"),
        ("tile_m // 32 *", "tile_m // 0 *", "zero"),
        (
            "raster: [4, 8]",
            "\n  ".join(["raster: [4]", *(f"x{i}: [{', '.join(map(str, range(64)))}]" for i in range(3))]),
            "at most 65536",
        ),
    ],
)
def test_a_head_that_no_library_can_hold_is_refused(before: str, after: str, says: str, tmp_path: Path) -> None:
    assert before in EXAMPLE
    template = parse.parse(EXAMPLE.replace(before, after, 1), operator="gemm", name="llm-1", author="llm")
    outcome = author(tmp_path).judge(template)
    assert outcome.kind is Kind.REFUSED, outcome
    assert says in outcome.message


def test_the_example_is_a_template() -> None:
    assert parse.parse(EXAMPLE, operator="gemm", name="llm-1", author="llm").facts["align_ab"] == "16"
