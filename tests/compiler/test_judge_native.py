"""`judge` on this machine: an honest kernel passes with its figures, and every way to fail ends as an outcome."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from tensorop.author import c_gate
from tensorop.author.gate import Guard
from tensorop.cli.judge_command import judge as command
from tensorop.commands import judge as judging
from tensorop.errors import UsageError
from tensorop.model import kernel
from tensorop.model.architecture import host_arch
from tensorop.model.point import Point
from tensorop.render import apart, instantiate, render
from tensorop.render.texts import Texts
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check
from tensorop.specs import native, operators, platforms
from tensorop.toolchain import compile as building
from tensorop.toolchain.compile import link_candidate
from tensorop.trial import confinement
from tensorop.verify import controls
from tests.attacks.test_replies import TEMPLATES
from tests.attacks.test_template_c import ATTACKS
from tests.support import commands, crashes, kernels
from tests.support.commands import ROOT, tensorop
from tests.support.templates import templates as shipped

GEMM = ("--operator", "gemm", "--platform", "native")
SMALL = ("--shapes", "24x17x33", "--configurations", "2")
PLAIN = re.search(
    r"```jinja\n(.*?)```", (ROOT / "docs" / "how-to" / "write-a-kernel-template.md").read_text(), re.DOTALL
)
IN_C = re.search(
    r"```c\n(/\*---.*?)```", (ROOT / "docs" / "how-to" / "write-a-kernel-template.md").read_text(), re.DOTALL
)
C_HEAD = "/*---\nstrategy: s\nreads: {a: rows, b: columns}\ntunables: {mr_vectors: [2], nr: [4]}\n---*/\n"


def plain() -> str:
    assert PLAIN is not None
    return PLAIN[1]


def in_c() -> str:
    assert IN_C is not None
    return IN_C[1]


def test_the_direct_variant_is_judged_on_whole_calls_alone(tmp_path: Path) -> None:
    file = operators.load("gemm").folder / "direct.c.j2"
    ended = tensorop("judge", str(file), *GEMM, "--configurations", "1", "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    (one,) = ended.json()["configurations"]
    assert [figure["of"] for figure in one["figures"]] == ["128x10x4"]


def test_an_honest_template_passes_with_its_figures(tmp_path: Path) -> None:
    (tmp_path / "plain.c.j2").write_text(plain())
    ended = tensorop("judge", "plain.c.j2", *GEMM, *SMALL, "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    found = ended.json()
    assert found["ok"]
    assert found["outcome"] == {"stage": "measure", "kind": "ok", "message": "", "log": ""}
    assert "tensorop gemm --plugins DIR --platform native" in found["next"]
    first, second = found["configurations"]
    assert (first["point"]["mr_vectors"], first["point"]["nr"]) == (2, 4)  # the file's own start
    assert second["point"] != first["point"]
    for one in (first, second):
        alone, whole = one["figures"]
        assert (whole["of"], whole["unit"], whole["speed_unit"]) == ("24x17x33", "ns", "GFLOP/s")
        for figure in (alone, whole):
            assert figure["cost"] > 0
            assert figure["speed"] > 0
            assert 0 < figure["of_peak"] < 1.1
        assert whole["speed"] == pytest.approx(2 * 24 * 17 * 33 / whole["cost"])
    assert {c["ended"] for c in found["controls"] if c["name"] != "honest"} >= {"wrong-result", "guard-page"}
    assert found["not_judged"] == []
    assert list(tmp_path.iterdir()) == [tmp_path / "plain.c.j2"]


def test_a_wrong_one_fails_at_verify_and_says_the_next_step(tmp_path: Path) -> None:
    (tmp_path / "wrong.c.j2").write_text(plain().replace("p < k; ++p", "p + 1 < k; ++p"))
    ended = tensorop("judge", "wrong.c.j2", *GEMM, *SMALL, cwd=tmp_path)
    assert ended.status == 1
    assert "wrong.c.j2 failed at stage verify: wrong-result" in ended.stdout
    assert re.search(r"case \d+ of \d+", ended.stdout)
    assert "next: the call in the message is the first wrong one" in ended.stdout
    bad = [one for one in controls.controls(operators.load("gemm")) if "ok" not in one.expected and not one.needs]
    count = len([one for one in bad if not one.dtypes or "f32" in one.dtypes])
    assert f"negative controls: {count} known-wrong kernels rejected" in ended.stdout


@pytest.fixture
def without_controls(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are judged above; here they would only take their time again."""
    monkeypatch.setattr(controls.ControlRun, "run", lambda *given: ())


def ruled(file: Path, *more: str) -> tuple[int, Any]:
    """Exit status and JSON of the command in this process."""
    ended = CliRunner().invoke(command, [str(file), *GEMM, *SMALL, *more, "--format", "json"], catch_exceptions=False)
    return ended.exit_code, json.loads(ended.stdout)


@pytest.mark.usefixtures("without_controls")
def test_the_c_file_of_the_page_passes_and_its_template_says_the_same(tmp_path: Path) -> None:
    (tmp_path / "mine.c").write_text(in_c())
    status, found = ruled(tmp_path / "mine.c", "--template", str(tmp_path / "mine.c.j2"), "--configurations", "1")
    assert (status, found["ok"]) == (0, True), found["outcome"]
    operator, platform = operators.load("gemm"), platforms.load("native")
    texts = []
    for name in ("mine.c", "mine.c.j2"):
        template = judging.read(submission(tmp_path / name, "native"))
        point = Point.of(found["configurations"][0]["point"])
        variant = instantiate.variant(operator, template, "f32", point)
        contexts = [context for context, _ in instantiate.kernel_contexts(operator, platform, variant)]
        texts.append(render.kernel_texts(operator.folder, template.text, instantiate.KERNEL, contexts, {"full": 0}))
    assert texts[0] == texts[1]


@pytest.mark.extended
@pytest.mark.usefixtures("without_controls")
def test_the_example_that_authors_are_shown_passes() -> None:
    file = operators.load("gemm").folder / "prompts" / "example.c.j2"
    status, found = ruled(file, "--configurations", "3")
    assert (status, found["ok"]) == (0, True), found["outcome"]


KEEPS = """
static __attribute__((noinline)) double keeps(double next) {
    double kept[64];
    volatile double *at = kept;
    double before = at[9];
    at[9] = next;
    return before;
}
"""


def test_no_local_of_a_text_that_is_not_ours_keeps_anything(tmp_path: Path) -> None:
    """Read before it is written, a local is 0 in every call; and it is no larger than what is overwritten."""
    assert kernel.MAX_FRAME == 8 * c_gate.MAX_ARRAY
    shown = {}
    for flags in ((), kernel.CONFINED):
        source = replace(kernels.source("keeps(7); *(double *)c->buffer[1] = keeps(8);", before=KEEPS), flags=flags)
        made = building.compile_source(source, building.candidate_flags(kernels.platform()), work=tmp_path)
        program = link_candidate(made, arch="x86_64", work=tmp_path)
        (reply,) = session.run(Native(), program.path, [Check(kernels.axpy_call(2))])
        shown[flags] = float(reply.outputs["y"].view(np.float64)[0])
    assert shown == {(): 7, kernel.CONFINED: 0}
    large = replace(kernels.source("volatile char large[30000]; large[c->dim[0]] = 1;"), flags=kernel.CONFINED)
    refused = building.compile_source(large, building.candidate_flags(kernels.platform()), work=tmp_path)
    assert "stack frame size" in refused.log


def test_whose_text_it_is_decides_how_it_is_compiled(tmp_path: Path) -> None:
    operator, platform = operators.load("gemm"), platforms.load("generic")
    for author, flags in (("offline", ()), ("plug-in", kernel.CONFINED), ("llm", kernel.CONFINED)):
        template = replace(shipped["stream"], author=author)
        point = instantiate.micro_space(platform, template, "f32").at(0)
        variant = instantiate.variant(operator, template, "f32", point)
        text = Texts().kernel(
            operator, platform, replace(variant, kernel=replace(variant.kernel, template=shipped["stream"]))
        )
        assert instantiate.candidate(operator, platform, variant, text).flags == flags


ENDS = {  # body -> stage, kind, a word of the message
    "#include <stdio.h>\n": ("author", "refused", "characters: "),
    "system(a);\n": ("author", "refused", "calls: "),
    "{{ '#' }} c[0] = 1;\n": ("author", "refused", ": "),
    "const element x = zero(full); c[0] = x;\n": ("build", "compile-failed", ""),
    "for (;;) c[0] = 0;\n": ("author", "refused", "grammar: "),
    crashes.LONG: ("verify", "timeout", "case 1 of"),
    "c[0] = a[k * lda + 4096];\n": ("author", "refused", "bounds: "),
    "c[n * ldc + 4096] = 0;\n": ("author", "refused", "bounds: "),
}


@pytest.mark.usefixtures("without_controls")
@pytest.mark.parametrize("body", ENDS)
def test_every_way_to_fail_is_an_outcome(body: str, tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text(f"{C_HEAD}{body}")
    status, found = ruled(tmp_path / "k.c", "--timeout", "1s")
    stage, kind, word = ENDS[body]
    assert (status, found["ok"]) == (1, False)
    outcome = found["outcome"]
    assert (outcome["stage"], outcome["kind"]) == (stage, kind), outcome
    assert word in outcome["message"]
    assert found["next"]
    if kind == "compile-failed":
        assert "error" in outcome["log"]


@pytest.mark.parametrize("body", ["__m512 x = _mm512_setzero_ps();\n", '#include "mine.h"\n', "float x = 1, x = 2;\n"])
def test_what_the_gates_or_the_compiler_refuse_ends_before_the_controls(
    body: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controls.ControlRun, "run", lambda *given: pytest.fail("controls were run"))
    (tmp_path / "k.c").write_text(f"{C_HEAD}{body}")
    status, found = ruled(tmp_path / "k.c")
    assert (status, found["controls"]) == (1, [])
    assert ("add --trusted" in found["next"]) == (found["outcome"]["kind"] == "refused")


def avx2() -> tuple[Path, tuple[str, ...]]:
    platform = platforms.load("avx2")
    if host_arch() != platform.arch or native.missing_flags(platform):
        pytest.skip("this machine lacks AVX2")
    return ROOT / "examples" / "kernel", ("--trusted", "--platform", "avx2")


@pytest.mark.covers("example kernel")
def test_c_with_intrinsics_and_a_header_is_judged_and_compared(tmp_path: Path) -> None:
    folder, words = avx2()
    ended = tensorop("judge", folder / "avx2.c", *GEMM, *words, *SMALL, "--format", "json", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    (one,) = ended.json()["configurations"]
    alone, whole = one["figures"]
    assert alone["cost"] > 0
    assert ended.json()["controls"]
    compared = {remark.split()[0] for remark in ended.json()["remarks"]} | whole["ratios"].keys()
    assert compared == set(operators.load("gemm").against)
    assert all(ratio > 0 for ratio in whole["ratios"].values())


TRUSTED_ENDS = {  # in place of a text of the example -> stage, kind, a word of message or log, a word of the next step
    ("(beta != 0)", "(beta == 1)"): ("verify", "wrong-result", "case ", "the first wrong one"),
    ("a + 8 * i, rows[i]", "a + 8 * i + 4096, rows[i]"): ("verify", "guard-page", "case ", "outside an operand"),
    ('"masks.h"', '"mask.h"'): ("build", "compile-failed", "own/avx2.c:7:10", "beside the file that includes them"),
    ("sum[j][i]);", "sum[j][i]"): ("build", "compile-failed", "own/avx2.c:", "compiler's messages"),
    ("static inline void tile", "void tile"): ("build", "object-refused", "the global 'tile_16x4'", "`static`"),
}


@pytest.mark.one_in(3)
@pytest.mark.usefixtures("without_controls")
@pytest.mark.parametrize(("before", "after"), TRUSTED_ENDS)
def test_every_way_in_which_trusted_c_fails_is_an_outcome(before: str, after: str, tmp_path: Path) -> None:
    folder, words = avx2()
    for file in folder.iterdir():
        (tmp_path / file.name).write_text(file.read_text().replace(before, after))
    stage, kind, word, step = TRUSTED_ENDS[before, after]
    status, found = ruled(tmp_path / "avx2.c", *words)
    outcome = found["outcome"]
    assert (status, outcome["stage"], outcome["kind"]) == (1, stage, kind), outcome
    assert word in f"{outcome['message']}{outcome['log']}"
    assert step in found["next"]


# what gemm's kernels do declare, or what asks for names that only the other test's function has
ELSEWHERE = {"c[0] = k != 0;\n"}


def submission(file: Path, platform: str) -> judging.Submission:
    given = operators.load("gemm"), platforms.load(platform), "f32"
    return judging.Submission(file, *given, ((24, 24, 24),), configurations=1)


@pytest.mark.parametrize("suffix", [".c.j2", ".c"])
@pytest.mark.usefixtures("without_controls")
def test_templates_that_attack_are_refused_before_anything_is_built(
    suffix: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(confinement, "confined", lambda *given: "")
    monkeypatch.setattr(apart, "texts", render.kernel_texts)  # its limits have tests of their own
    file = tmp_path / f"attack{suffix}"
    # in C alone what a template would compute in a comment stays one
    known = [body for body, _ in ATTACKS if body not in ELSEWHERE and not (suffix == ".c" and "// comment{{" in body)]
    for body in known[:: 3 if suffix == ".c.j2" else 6]:  # a template takes its time to be compiled
        head = C_HEAD if suffix == ".c" else C_HEAD.replace("/*---", "---").replace("---*/", "---")
        file.write_text(head + body, newline="")
        ruling = judging.judge(submission(file, "rvv"))
        assert (ruling.outcome.kind.value, ruling.outcome.where) == ("refused", "author"), (body, ruling.outcome)
        assert ruling.outcome.message.partition(": ")[0] in set(Guard), (body, ruling.outcome)


@pytest.mark.usefixtures("without_controls")
def test_what_breaks_readers_is_an_outcome_or_a_usage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "confined", lambda *given: "")
    file = tmp_path / "reply.c.j2"
    ends = set()
    for text in list(TEMPLATES.values())[
        ::5
    ]:  # each takes its time; all of them go through the author's path elsewhere
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        with contextlib.suppress(UsageError):
            ruling = judging.judge(submission(file, "generic"))
            assert not ruling.ok
            assert ruling.to_json()["next"]
            ends.add(ruling.outcome.where)
    assert "author" in ends


def test_without_a_jail_it_is_refused_unless_that_is_wanted(tmp_path: Path) -> None:
    (tmp_path / "k.c").write_text(f"{C_HEAD}c[0] = 0;\n")
    words = [sys.executable, "-m", "tests.support.without_seccomp", sys.executable, "-m", "tensorop", "judge", "k.c"]
    told = []
    for more in ((), ("--unsafe",)):
        argv = [*words, *GEMM, *SMALL, *more]
        done = subprocess.run(
            argv, cwd=tmp_path, env=commands.environment(), capture_output=True, text=True, timeout=300
        )
        told.append((done.returncode, done.stdout, done.stderr))
    assert told[0][0] == 2, told[0]
    assert "k.c is untrusted code, and" in told[0][2]
    assert "add --unsafe" in told[0][2]
    assert "negative controls" not in told[0][2]
    assert told[1][0] == 1, told[1]  # it ran, and is wrong
    assert "failed at stage verify" in told[1][1]
    assert "with all your rights" in told[1][1]
