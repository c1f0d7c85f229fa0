"""What a language model is asked: whole prompts kept in tests/golden, and what a prompt must have.

A difference that is meant is accepted with `pytest tests/nothing/test_prompt.py --update-golden` and reviewed as diff.
"""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path

import pytest

from tensorop import settings
from tensorop.author import offline, parse, rules
from tensorop.author.llm import machine
from tensorop.author.llm.prompt import MAX_TOKENS, Brief, Lessons, example, opening, repair, token_limit, tokens
from tensorop.commands import prompt as asking
from tensorop.errors import UsageError
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate
from tensorop.specs import catalog, operators, platforms
from tests.support import commands
from tests.support.operators import gemm

GOLDEN = Path(__file__).parents[1] / "golden" / "prompts"
PROCESSORS = [name for name in catalog.names("platforms") if platforms.load(name).device is None]


def brief(platform: str, *dtypes: str) -> Brief:
    return asking.brief(gemm(), platforms.load(platform), dtypes or ("f32", "f64"), gemm().suites["quick"])


def system(platform: str, limit: int = MAX_TOKENS) -> str:
    return opening(brief(platform), Lessons(), limit)[0].text


@pytest.mark.parametrize("platform", ["cortex-a53", "avx512"])
def test_the_prompt_is_the_golden_one(platform: str, request: pytest.FixtureRequest) -> None:
    text = "\n".join(f"[{message.role}]\n{message.text}" for message in opening(brief(platform), Lessons()))
    path = GOLDEN / f"{platform}.md"
    if request.config.getoption("--update-golden"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert text == path.read_text(), f"{path.name} changed; if that is meant: pytest test_prompt.py --update-golden"


def test_attention_has_gemms_prompts_with_its_own_driver() -> None:
    of = operators.load("attention")
    text = opening(asking.brief(of, platforms.load("cortex-a53"), ("f32",), of.suites["quick"]), Lessons())[0].text
    assert text.startswith("You write micro-kernels for `attention`")
    assert "the driver is that of attention" in text
    assert "loops of Goto and BLIS" not in text
    assert "loops of Goto and BLIS" in system("cortex-a53")
    for section in ("## The function", "## Primitives", "## Rules", "## The core", "## Hint: tiling"):
        assert section in text


@pytest.mark.one_in(5)
@pytest.mark.parametrize("platform", PROCESSORS)
def test_every_platform_has_a_prompt_that_fits(platform: str) -> None:
    for dtype in platforms.load(platform).dtypes:
        messages = opening(brief(platform, dtype), Lessons())
        assert 3000 < tokens(*messages) < MAX_TOKENS
        assert "<!--" not in messages[0].text
        assert "None" not in messages[0].text
        assert "\n\n\n\n" not in messages[0].text


@pytest.mark.parametrize("platform", ["cortex-a53", "avx512", "rvv"])
def test_every_name_that_a_text_is_rendered_with_is_in_the_prompt(platform: str) -> None:
    target = platforms.load(platform)
    template = parse.parse(offline.example(*gemm().prompts), operator="gemm", name="example", author="offline")
    point = instantiate.micro_space(target, template, "f32").at(0)
    full = instantiate.defaults(gemm(), target, "f32", point)
    variant = instantiate.variant(gemm(), template, "f32", full)
    names, primitives = instantiate.kernel_context(gemm(), target, variant)
    kernel = (gemm().folder / "kernel.c.j2").read_text()
    around = kernel[: kernel.index('{% include "template" %}')]
    macros = re.findall(r"\{%- macro (\w+)\(", around)
    text = system(platform)
    inside = {"tile", "from_c", "added", "scaled", "put", "get"}  # of the operator's own use
    words = set(re.findall(r"`(\w+)(?:\(.*?\))?`", text))
    assert not ({*names, *primitives.with_aliases, *macros} - inside - set(template.tunables)) - words


def test_facts_of_a_core_decide_which_hints_there_are() -> None:
    names = "cortex-a53", "neon", "avx512"
    headings = {name: re.findall(r"^## Hint: (.*)$", system(name), re.MULTILINE) for name in names}
    assert "pairing loads with multiply-adds" in headings["cortex-a53"]
    assert "pairing loads with multiply-adds" not in headings["neon"]  # its loads pair with multiply-adds
    assert headings["avx512"] == ["tiling", "vectorisation", "layout", "pipelining", "prefetch"]
    hints = sorted((gemm().folder / "prompts" / "hints").glob("*.md.j2"))
    assert all(file.read_text().startswith("<!-- priority ") for file in hints)


def test_what_pairs_with_a_multiply_add_on_a_cortex_a53() -> None:
    core = machine.machine(platforms.load("cortex-a53"), "f32")
    assert core is not None
    assert core.pairs("fma") == "int-load, store, int, prefetch, branch"
    assert core.pairs("half-load") == "insert, int, branch"
    assert core.pairs("load") == "nothing"
    assert core.chains == 4
    assert machine.machine(platforms.load("avx512"), "f32") is None


def test_a_prompt_that_is_too_long_loses_its_least_important_sections() -> None:
    whole = system("cortex-a53")
    headings = re.findall(r"^## (.*)$", whole, re.MULTILINE)
    kept = {limit: re.findall(r"^## (.*)$", system("cortex-a53", limit), re.MULTILINE) for limit in (8000, 6500, 100)}
    assert set(kept[100]) < set(kept[6500]) < set(kept[8000]) < set(headings)
    assert kept[100] == ["Your answer", "The function", "Facts and types", "Primitives", "Rules"]
    assert "The core" in kept[6500]
    assert "Other ways to read A" not in kept[8000]
    assert tokens(*opening(brief("cortex-a53"), Lessons(), 6500)) <= 6500


def test_a_repair_quotes_the_rules_of_the_guard_that_refused() -> None:
    asked = opening(brief("avx2"), Lessons())
    said = "at mr_vectors=1 nr=2: names: it uses 'q', which its function does not declare: q += 1;"
    question = repair(brief("avx2"), asked, "an answer", Outcome(Kind.REFUSED, "author", said))[-1].text
    assert [rule.guard for rule in rules.rules() if rule.sentence in question] == ["names"]
    wrong = repair(brief("avx2"), asked, "an answer", Outcome(Kind.WRONG, "verify", "names: 2 elements"))[-1].text
    assert not [rule.guard for rule in rules.rules() if rule.sentence in wrong]


def test_a_limit_that_is_none_is_refused() -> None:
    known = dataclasses.replace(settings.read(), llm_prompt_tokens=None)
    assert token_limit(known) == MAX_TOKENS
    assert token_limit(dataclasses.replace(known, llm_prompt_tokens="8000")) == 8000
    for wrong in ("many", "12", "-1", "8e3"):
        with pytest.raises(UsageError, match="must be an integer from 1000"):
            token_limit(dataclasses.replace(known, llm_prompt_tokens=wrong))


def test_the_command_prints_what_would_be_sent(tmp_path: Path) -> None:
    options = "--platform", "cortex-a53", "--dtype", "f32", "--shapes", "33x7x5", "--format", "json"
    done = commands.tensorop("prompt", "gemm", *options, cwd=tmp_path)
    assert done.status == 0, done.stderr
    messages = json.loads(done.stdout)
    assert [message["role"] for message in messages] == ["system", "user"]
    assert "33x7x5" in messages[0]["content"]
    assert re.fullmatch(r"about \d+ tokens .*\n", done.stderr)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("gemm", "--platform", "cuda-sm90"), "platform 'cuda-sm90' has no author yet"),
        (("gemm", "--platform", "nowhere"), "unknown platform 'nowhere'"),
        (("nothing",), "unknown operator 'nothing'"),
        (("conv2d",), "needs prompts of the operator"),
        (("gemm", "--platform", "avx2", "--round", "2"), "--round 2: later questions say what a search has measured"),
        (("gemm", "--platform", "avx2", "--round", "0"), "--round"),
    ],
)
def test_wrong_usage_is_refused_in_a_sentence(arguments: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    assert sentence in commands.refused("prompt", *arguments, cwd=tmp_path)


def test_a_question_without_plans_has_none() -> None:
    left = asking.brief(gemm(), platforms.load("cortex-a53"), ("f32",), gemm().suites["quick"], "plan")
    with_, without = ("\n".join(one.text for one in opening(of, Lessons())) for of in (brief("cortex-a53"), left))
    assert "plan: |" in with_
    assert "plan" not in without
    for suffix in (".c.j2", ".cu.j2"):
        for template in offline.templates(gemm().folder, "gemm", suffix=suffix):
            shown = parse.parse(example(parse.written(template), "plan"), operator="gemm", name="x", author="llm")
            assert (shown.plan, shown.digest) == ("", template.digest)
