"""What a language model is asked for on a GPU, and what is read of its answers without a compiler."""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Generator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tensorop.author import offline, parse, rules
from tensorop.author.addresses.symbols import MOST_AHEAD
from tensorop.author.gate import Guard
from tensorop.author.llm import reading
from tensorop.author.llm.rounds import Round
from tensorop.author.rules import Example, Rule
from tensorop.backends import reach
from tensorop.cuda import kernels
from tensorop.cuda.author import FamilyAuthor, _places
from tensorop.cuda.choose import Candidate
from tensorop.cuda.family import Family
from tensorop.cuda.standing import ExecutedConfiguration
from tensorop.cuda.steered import ExecutedFamily, history
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.steering import Choice
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tensorop.store.journal import Journal

GEMM, WMMA = operators.load("gemm"), platforms.load("cuda-wmma")
RULES = rules.rules("device_rules")
NUMBERS = {
    "threads": 64, "tile_m": 64, "tile_n": 8, "raster": 4, "resident": 1, "shared": 4096, "align_ab": 2, "align_c": 2,
    "c_size": 2, "in_size": 2, "a_along_m": 0, "b_along_k": 0,
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
            "for (int i = 0; i < 8; ++i) { if (i * 1024 + thread % 8 < k) sums[thread] = 0; }",
            ("by 1024; multiply by at most 512", "(if (i % 2 == 0))", "iterations of `for (int i = 0; i < 8; ++i)`"),
        ),
        (
            "for (int i = 0; i < 8; ++i) { if (i * 512 + thread % 8 < k) sums[thread] = 0; }",
            ("encodes the number 3584", "at most 2048"),
        ),
        (
            "const int steps = (k + 1023) / 1024; for (int i = 0; i < steps; ++i) copies_commit();",
            ("it divides by 1024; divide by at most 512", "(k + 1023) / 1024"),
        ),
        (
            "const int warp = thread / 32; if (k > warp * 512) sums[thread] = 0;",
            ("differs by up to 512 between the threads", "at most 320 is allowed", "(thread) / 32"),
        ),
        (
            "for (int i = 0; i < 4; ++i) if (k / 32 > i * 32) sums[thread] = 0;",
            ("by 1024; multiply by at most 512", "(it is read as k - 1024 * turn > 0)", "(k) / 32"),
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
        ("  wait 0\n", "", "A is read from shared memory before a wait"),
        ("A (a_rows, a_cols)", "A (99, a_rows, a_cols)", "plan: at "),
        ("A (a_rows, a_cols)", "A (99, a_rows, a_cols)", "shared memory: "),
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


DIALOGUE = Path(__file__).parents[1] / "data" / "transcripts" / "cuda-wmma-feedback-1.tar.xz"

LOOPS = {
    4: ("for (int s = {{ slots }}; (s - {{ slots }}) * {{ span }} < k; ++s) {\n", "slots", "span"),
    6: ("for (int i = {{ iters }}; (i - {{ iters }}) * 128 < k; ++i) {\n", "iters", "128"),
}


def recorded(number: int, tmp_path: Path) -> KernelTemplate:
    """The template of a recorded answer, whose loop counts from 0, as the rule `loop` asks since."""
    with tarfile.open(DIALOGUE) as archive:
        archive.extractall(tmp_path, filter="data")
    text = json.loads((tmp_path / f"{number:03d}.json").read_text())["reply"]["text"]
    head, whole, step = LOOPS[number]
    assert text.count(head) == 1
    counted = f"const int steps = (k + {{{{ {step} - 1 }}}}) / {{{{ {step} }}}};\n"
    counted += "for (int turn = 0; turn < steps; ++turn) {\n"
    text = text.replace(head, f"{counted}    const int {head[9]} = turn + {{{{ {whole} }}}};\n")
    return reading.template(text, operator="gemm", name="llm-1", author="llm")


@pytest.mark.parametrize("number", [4, 6])
def test_recorded_answers_with_steps_of_512_and_of_128_of_k_pass_the_gates(number: int, tmp_path: Path) -> None:
    template, written = recorded(number, tmp_path), author(tmp_path)
    for layout in GEMM.on_device.keys:
        family = written._family(template, layout)
        assert isinstance(family, Family), family
        one = Candidate(family, _places(family, 1)[0])
        found = kernels.text(GEMM, WMMA, template, "bf16", one.numbers)
        assert isinstance(found, str), found.message


def test_each_layout_is_called_with_more_of_k_than_conditions_can_distinguish() -> None:
    tile = {"mr": 8, "nr": 8, "ku": 32}
    cases = GEMM.reference.quick_grid("bf16", tile | {"deep": MOST_AHEAD}, np.random.default_rng(1))
    deep = {
        tuple(case.problem.options[name] for name in ("layout", "ta", "tb"))
        for case in cases
        if case.problem.dims["k"] > MOST_AHEAD
    }
    assert len(deep) == 8


def test_what_blocks_of_a_family_do_decides_which_actions_are_open() -> None:
    wmma = next(one for one in offline.templates(GEMM.folder, "gemm", suffix=".cu.j2") if one.name == "wmma")
    free = ExecutedConfiguration("", 50, 3, 19.0, 1, 384, 512, 0, 2816, 100, (64, 128, 4096, 0, 16))
    parent = ExecutedFamily(wmma, 100.0, free).parent
    left = {action for action, _ in parent.legal}
    assert left >= {"tile", "split", "unroll", "edge", "fresh"}
    assert not left & {"swizzle", "stage", "pair", "prefetch", "vectorise"}
    bound = ExecutedFamily(wmma, 100.0, replace(free, conflicts=128, latency=5600)).parent
    assert {action for action, _ in bound.legal} - left == {"swizzle", "stage"}
    child = replace(wmma, name="llm-2", text=f"{wmma.text}/* again */\n")
    known = [ExecutedFamily(child, 50.0, free), ExecutedFamily(wmma, 100.0, free)]
    asked = Choice(wmma.digest, "tile", "head")
    refused = Outcome(Kind.REFUSED, "author", "no")
    ends = [Round(2, 0, None, refused, asked), Round(2, 1, child, Outcome(Kind.OK, "author"), asked)]
    ends += [Round(3, 0, wmma, refused, asked), Round(4, 0, None, refused, asked)]
    past = history(ends, known)
    assert [(one.gain, one.template) for one in past] == [(2.0, child.digest), (None, ""), (None, "")]
    assert [one.reward > 0 for one in past] == [True, False, False]
    assert [one.reward for one in past[1:]] == [-0.8, -1.0]


@pytest.mark.extended
def test_a_resumed_run_asks_what_waits_for_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FamilyAuthor, "judge", lambda *_: Outcome(Kind.OK, "author"))
    monkeypatch.setattr(FamilyAuthor, "accepted", lambda *_: iter(()))
    job = replace(author(tmp_path).job, author="manual", author_calls=6)

    def run() -> set[str]:
        found: list[KernelTemplate] = []

        def ended() -> Generator[object, None, None]:
            found.extend((yield from FamilyAuthor(job, GEMM, reach(WMMA), Seed.draw(), tmp_path).templates(journal)))

        with Journal.open(tmp_path, {}) as journal:
            assert [*ended()]
            for template in found:
                journal.template(template)
        return {template.name for template in found if template.author == "llm"}

    for number in range(1, 4):
        assert run() == {f"llm-{one}" for one in range(1, number)}
        reply = tmp_path / "llm" / "replies" / f"{number:04d}.md"
        assert (tmp_path / "llm" / "prompts" / reply.name).exists()
        another = EXAMPLE.replace("plan: |\n", f"plan: |\n  allocate X ({number}) in registers\n")
        reply.write_text(f"```\n{another}\n{{# {number} #}}\n```\n")
        os.utime(reply, (0, 0))
