"""Plans of templates: their grammar, what the checker counts, and counts of compiled kernels."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from tensorop.author import offline, parse, plans
from tensorop.author.llm import machine
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Value
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate
from tensorop.specs import operators, platforms
from tensorop.store import journal
from tensorop.trial import judging
from tests.nothing.test_revising import FIRST, TRIALS, WIDEST, Model, model, printed, started

_ = model  # the fixture

GEMM = operators.load("gemm")
SHIPPED = {one.name: one for one in offline.templates(GEMM.folder, "gemm") if one.name != offline.DIRECT}
PAIRS = Path(__file__).resolve().parents[2] / "benchmarks" / "results" / "pairs"
LOADS = ("load", "fp-load", "half-load", "int-load")


def checked(template: KernelTemplate, platform: str) -> Outcome | None:
    of = platforms.load(platform)
    space = judging.legal(GEMM, of, template, "f32")
    assert not isinstance(space, Outcome)
    return judging.planned(of, template, "f32", space)


def point(text: str) -> dict[str, Value]:
    pairs = (word.split("=") for word in text.split())
    return {name: int(value) for name, value in pairs}


@pytest.mark.parametrize("platform", ["cortex-a53", "cortex-a72", "spacemit-k1"])
def test_plans_of_shipped_templates_agree_with_counts_of_their_compiled_code(platform: str) -> None:
    """An instruction may load two vectors, and loads around the loop add to those of its steps."""
    of = platforms.load(platform)
    core = machine.machine(of, "f32")
    assert core is not None
    lines = gzip.decompress((PAIRS / f"{platform}-f32.jsonl.gz").read_bytes()).splitlines()
    states = {(row["template"], row["before"]): row["features"] for row in map(json.loads, lines)}
    assert {name for name, _ in states} <= SHIPPED.keys()
    for (name, text), features in states.items():
        at = point(text)
        plan = plans.parse(SHIPPED[name].plan, name)
        found = plans.counted(plan, {**instantiate.facts(of, "f32", at), **at}, core)
        planned = sum(found.loads.get(kind, 0) for kind in LOADS) / found.multiply_adds
        assert 0.5 <= features["loads"] / planned <= 1.3, (name, text)
        assert found.registers <= of.registers, (name, text)
        assert found.cycles is not None
        every = core.instructions[f"fma{at['lmul']}" if at.get("lmul", 1) != 1 else "fma"].every
        fewest = max(found.cycles / 2, found.multiply_adds * every)
        assert math.log(fewest / (found.multiply_adds * every)) <= features["over_bound"], (name, text)


@pytest.mark.parametrize("name", SHIPPED)
def test_plans_of_shipped_templates_hold(name: str) -> None:
    template = SHIPPED[name]
    assert template.plan
    assert parse.parse(parse.written(template), operator="gemm", name=name, author="offline").plan == template.plan
    for platform in ("cortex-a53", "spacemit-k1", "avx2"):
        if not instantiate.missing_primitives(platforms.load(platform), template, "f32"):
            assert checked(template, platform) is None


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("to registers, ahead ahead", "to registers, ahead 40", "registers: "),
        ("allocate C (mr_vectors, nr)", "allocate C (1, 1)", "chains: 1 sums in flight; "),
        (
            "copy B (nr) from l1 to registers, as scalars",
            "copy B (99 * nr) from l1 to registers, as scalars",
            "loads: ",
        ),
        ("allocate C (mr_vectors, nr) in registers\n", "", "registers: the result of the product is neither"),
        ("copy B (nr)", "copy B (nrr)", "'nrr'"),
    ],
)
def test_a_refuted_plan_names_the_number_that_it_breaks(old: str, new: str, says: str) -> None:
    outer = SHIPPED["outer"]
    assert outer.plan.count(old) == 1
    found = checked(replace(outer, plan=outer.plan.replace(old, new)), "cortex-a53")
    assert found is not None
    assert found.kind is Kind.REFUSED
    assert found.message.startswith("plan: ")
    assert says in found.message, found.message


DEVICE = """allocate S (64, 64) in registers
allocate O (64, 64) in registers
allocate K (2, 64, 72) in shared
loop k by 64
  wait 0
  copy K (64, 64) from global to shared, ahead 1
  copy K (64, 64) from shared to registers
  compute S += Q * K steps 64
  compute P = softmax S
  reshape P
  compute O += P * V steps 64
end
"""


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("", "", ""),
        ("  wait 0\n", "", "line 6: K is read from shared memory before a wait"),
        ("shared, ahead 1", "shared", "line 7: K is read from shared memory before a wait"),
        ("wait 0", "wait 1", "line 7: the wait leaves 1 copies, and K was copied 1 ahead"),
        (
            "  compute P = softmax S\n  reshape P\n  compute O += P",
            "  compute O += S",
            "line 9: S is the result of a product",
        ),
        ("(2, 64, 72)", "(40, 64, 72)", "shared memory: 368640 bytes, of at most 200000"),
        ("O (64, 64)", "O (640, 64)", "registers: 352 sums in each thread"),
    ],
)
def test_a_plan_for_a_device_needs_waits_and_reshapes(old: str, new: str, says: str) -> None:
    plan = plans.parse(DEVICE.replace(old, new, 1), "x")
    assert plans.counted(plan, {"threads": 128, "shared_most": 200000}).wrong.startswith(says or "")
    assert bool(plans.counted(plan, {"threads": 128, "shared_most": 200000}).wrong) == bool(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("keep C", "line 1: expected one of allocate, loop"),
        ("copy A to registers", "expected `copy NAME (SIZES) from LEVEL to LEVEL, OPTION VALUE`"),
        ("copy A (1) from l1 to l9", "expected a level registers, l1"),
        ("copy A (1) from l1 to registers, soon 1", "got 'soon'"),
        ("loop k by 1\ncompute C += A * B", "line 1: the loop has no 'end'"),
        ("end", "'end' without a loop"),
        ("wait 1", "no line computes a product"),
        ("wait 1\n" * 21, "21 lines; at most 20 are read"),
    ],
)
def test_a_plan_that_does_not_parse_says_what_was_expected(text: str, says: str) -> None:
    with pytest.raises(SpecError, match="key 'plan'") as found:
        plans.parse(text, "template 'x'")
    assert says in str(found.value)


def test_a_plan_is_not_answered_twice_and_a_refuted_one_goes_back_with_its_number(model: Model, tmp_path: Path) -> None:
    plan = "plan: |\n" + "".join(
        f"  {line}\n" for line in SHIPPED["outer"].plan.replace("ahead ahead", "ahead 0").splitlines()
    )
    plan = plan.replace("loop k by ku", "loop k")
    first, again = (text.replace("reads:", f"{plan}reads:", 1) for text in (FIRST, WIDEST))
    large = again.replace("copy A (mr_vectors)", "copy A (90)")
    assert first.count("plan:") == large.count("plan:") == 1
    model.answers = tuple(f"```\n{text}```\n" for text in (first, again, large))
    text = printed(started(tmp_path / "out", *TRIALS, "--trials", "4", "--author", "llm", "--author-calls", "3"))
    notes = [data for name, data in journal.read(tmp_path / "out").notes if name == "author"]
    assert [one["kind"] for one in notes] == ["ok", "refused", "refused"], text
    assert "plan: it is that of llm-1, word for word; plan something else" in notes[1]["message"]
    assert "it is that of llm-1" in model.asked[2]
    assert "plan: at mr_vectors=2 nr=8, registers: " in notes[2]["message"]
