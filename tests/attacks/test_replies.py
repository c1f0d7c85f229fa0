"""Replies that break what reads, renders or judges them: each is an outcome, and the author goes on.

They go through the very path of a model's answer: found in the reply, read, judged as a trial is, on this machine.
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tensorop.author.llm import reading, secret
from tensorop.author.llm.messages import Failure, ModelReply, Request
from tensorop.author.llm.prompt import Brief
from tensorop.author.llm.rounds import LlmAuthor
from tensorop.backends import reach
from tensorop.commands import prompt
from tensorop.errors import SpecError
from tensorop.job import authoring
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tests.support.commands import ROOT

OPERATOR, PLATFORM = operators.load("gemm"), platforms.load("generic")
HEAD = """---
strategy: rank-1 updates
reads: {a: columns, b: scalars}
needs: [zero, fma, mul, load, store]
tunables: {mr_vectors: [2], nr: [3]}
---
"""
BODY = "    (void)a;\n{{ update_c() }}\n"
TUNABLES = "tunables: {mr_vectors: [2], nr: [3]}"


def with_tunables(text: str) -> str:
    return HEAD.replace(TUNABLES, f"tunables: {{{text}}}") + BODY


def with_head(text: str) -> str:
    return HEAD.replace(TUNABLES, f"{TUNABLES}\n{text}") + BODY


def with_body(text: str) -> str:
    return HEAD + text


TEMPLATES = {
    "a left-deep sum": with_body("{{ " + "1+" * 20000 + "1 }}"),
    "a left-deep join": with_body("{{ " + "1~" * 6000 + "1 }}"),
    "a left-deep difference of attributes": with_body("{{ mr_vectors" + ".x" * 20000 + " }}"),
    "left-deep calls": with_body("{{ mr_vectors" + "()" * 20000 + " }}"),
    "left-deep filters": with_body("{{ 1" + "|abs" * 12000 + " }}"),
    "right-deep not": with_body("{{ " + "not " * 15000 + "1 }}"),
    "4000 brackets": with_body("{{ " + "(" * 4000 + "1" + ")" * 4000 + " }}"),
    "4000 lists": with_body("{{ " + "[" * 4000 + "]" * 4000 + " }}"),
    "4000 loops": with_body("{% for i in [1] %}" * 1500 + "x" + "{% endfor %}" * 1500),
    "a chain of else": with_body("{% if 0 %}" + "{% elif 0 %}" * 1500 + "{% endif %}"),
    "an integer of 5000 digits": with_body("{{ " + "9" * 5000 + " }}"),
    "a number that does not end": with_body("{{ 1e99999999 }}"),
    "a power": with_body("{{ 9 ** 9 ** 9 ** 9 }}"),
    "a product of lists": with_body("{{ [0] * 99999999999 }}"),
    "a flood": with_body("{% for i in range(99999) %}{{ 'x' * 99999 }}{% endfor %}"),
    "a flood by a macro": with_body(
        "{% macro f(n) %}{% for i in range(99999) %}xxxxxxxxxxxxxxxxxxxxxxx{% endfor %}{% endmacro %}{{ f(1) }}"
    ),
    "a macro that calls itself": with_body("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}"),
    "a macro that doubles": with_body("{% macro f(x) %}{{ f(x ~ x) }}{% endmacro %}{{ f('x') }}"),
    "a format of width": with_body("{{ '%99999999999d' % 1 }}"),
    "4000 braces in C": with_body("{" * 4000 + "}" * 4000),
    "4000 parentheses in C": with_body("a[0] = " + "(" * 4000 + "1" + ")" * 4000 + ";"),
    "primitives in primitives": HEAD.replace("[zero", "[fma_vv_tail, zero")
    + "c[0] = "
    + "fma_vv_tail(" * 60
    + "1"
    + ", 1, 1, 1)" * 60
    + ";",
    "a deep expression in C": with_body("a[0] = " + "-" * 20000 + "1;"),
    "half of a character": with_body("x\ud800"),
    "a zero byte": with_body("x\x00"),
    "a date": with_head("seed_configurations: [{mr_vectors: 2020-13-45}]").replace("seed_configurations", "needs"),
    "a tag": with_head("seed_configurations: [{mr_vectors: !!int abc}]"),
    "an integer of 5000 digits in the head": with_tunables("mr_vectors: [" + "9" * 5000 + "], nr: [1]"),
    "4000 brackets in the head": with_head("seed_configurations: " + "[" * 4000),
    "no mr_vectors": with_tunables("nr: [3]"),
    "no nr": with_tunables("mr_vectors: [3]"),
    "no tunables": with_tunables(""),
    "mr_vectors is a word": with_tunables("mr_vectors: [two], nr: [3]"),
    "nr 0": with_tunables("mr_vectors: [2], nr: [0]"),
    "mr_vectors 0": with_tunables("mr_vectors: [0], nr: [3]"),
    "mr_vectors below 0": with_tunables("mr_vectors: [-4], nr: [3]"),
    "ku 1048576": with_tunables("mr_vectors: [2], nr: [3], ku: [1048576]"),
    "ku 0": with_tunables("mr_vectors: [2], nr: [3], ku: [0]"),
    "mr_vectors 4096": with_tunables("mr_vectors: [4096], nr: [4096]"),
    "mr_vectors 1024": with_tunables("mr_vectors: [1024], nr: [64], ku: [4096]"),
    "a tunable of the blocking": with_tunables("mr_vectors: [2], nr: [3], kc: [9]"),
    "a tunable that is a fact": with_tunables("mr_vectors: [2], nr: [3], l1: [999999]"),
    "a tunable that is a word": with_tunables("mr_vectors: [2], nr: [3], fma: [1]"),
    "a tunable that is a setting of the loop": with_tunables("mr_vectors: [2], nr: [3], range: [1]"),
    "a deep constraint": with_head("constraints: [{must: '" + "-" * 498 + "1', reason: x}]"),
    "a constraint that never holds": with_head("constraints: [{must: '0', reason: x}]"),
    "a constraint on nothing known": with_head("constraints: [{must: 'zz == 1', reason: x}]"),
    "a huge space": HEAD.replace(
        TUNABLES,
        "tunables: {mr_vectors: [2], nr: [3], " + ", ".join(f"t{i}: {list(range(64))}" for i in range(10)) + "}",
    )
    + BODY,
    "a huge space, slow to walk": with_head(
        "constraints: ["
        + ", ".join("{must: '" + " + ".join(["t0"] * 100) + " >= 0', reason: x}" for _ in range(20))
        + "]"
    ).replace(
        TUNABLES, "tunables: {mr_vectors: [2], nr: [3], t1: %s, t2: %s, t3: %s, t0: %s}" % ((list(range(64)),) * 4)
    ),
    "operands in a way nobody knows": HEAD.replace("a: columns, b: scalars", "a: diagonals, b: knots") + BODY,
    "operands not said": HEAD.replace("reads: {a: columns, b: scalars}\n", "") + BODY,
    "a word that needs more": with_body("{{ fma() }}"),
    "an undefined name": with_body("{{ nothing }}"),
    "an import": with_body("{% import 'kernel.c.j2' as k %}"),
    "an include of itself": with_body("{% include 'template' %}"),
    "a division by zero": with_body("{{ 1 // 0 }}"),
    "an index beyond": with_body("{{ [1][99] }}"),
    "a type that does not fit": with_body("{{ 'x' + 1 }}"),
    "a name of Python": with_body("{{ ''.__class__.__mro__ }}"),
    "a format of Python": with_body("{{ '{0.__class__}'.format(1) }}"),
    "nothing": "",
    "a head alone": HEAD,
    "half a head": HEAD[:60],
    "only lines": "---\n---\n",
    "only fences": "```\n" * 999,
    "prose": "I cannot help with that.",
    "escapes in its strategy": HEAD.replace("rank-1", '"\\x1b[2J').replace("updates", 'updates"') + BODY,
    "bidi marks in its strategy": HEAD.replace("rank-1", "\u202erank-1") + BODY,
    "a megabyte": with_body("x" * (1 << 20)),
}


class Says:
    """A transport that answers with each text once."""

    def __init__(self, *texts: str) -> None:
        self.texts = list(texts)

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        return ModelReply(self.texts.pop(0))


@pytest.fixture(scope="module")
def brief() -> Brief:
    return prompt.brief(OPERATOR, PLATFORM, ("f32",), ((24, 24, 24),))


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("replies")


def judge(template: KernelTemplate, work: Path) -> Outcome:
    job = Job("gemm", platform="generic", dtypes=("f32",), shapes=((24, 24, 24),), out=work)
    return authoring.JobAuthor(job, OPERATOR, reach(PLATFORM, None), Seed.draw(1), work).judge(template)


@pytest.mark.one_in(5)
@pytest.mark.parametrize("name", TEMPLATES)
def test_a_reply_is_an_outcome(name: str, brief: Brief, work: Path) -> None:
    answer = TEMPLATES[name] if name == "prose" else f"```\n{TEMPLATES[name]}\n```"
    author = LlmAuthor(brief, Says(answer), "m")
    one = next(author.rounds(1, lambda template: judge(template, work)))
    assert one.outcome.kind not in (Kind.OK, Kind.LOST, Kind.NOISY), one.outcome
    assert one.outcome.message
    assert str(Path.home()) not in one.outcome.message + one.outcome.log
    assert str(work) not in one.outcome.message + one.outcome.log


# Each is read by a program that the kernel ends after CPU_S seconds of a processor: with time that grows with the
# square of the length they take minutes.
CPU_S = 30
LONG = 250_000
KEY = "1sk-abcdefghij"
READERS = {
    "spaces in a key": f"secret.Scrubber({KEY!r})('1' + ' ' * {LONG})",
    "spaces in its bytes": f"secret.Scrubber({KEY!r})('49' + ' ' * {LONG} + '115' + ' ' * {LONG})",
    "spaces in each of its forms": f"[secret.Scrubber({KEY!r})(c + ' ' * {LONG}) for c in {KEY + '%&#x5749'!r}]",
    "a key again and again": f"secret.Scrubber({KEY!r})({KEY!r} * {LONG // len(KEY)})",
    "a key that is half a key": f"secret.Scrubber('a' * 1000 + 'b')('a' * {LONG})",
    "marks without a width": f"secret.Scrubber({KEY!r})('1' + chr(0x200b) * {LONG} + '\\n' * {LONG})",
    "waves": f"reading.template_text('~' * {LONG} + '`')",
    "ticks": f"reading.template_text('`' * {LONG} + 'x`')",
    "thoughts": f"reading.template_text('<think>' * {LONG // 7})",
    "fences of all lengths": f"reading.template_text('\\n'.join('`' * (3 + at % 700) for at in range({LONG // 350})))",
    "empty lines": f"parsed('\\n' * {LONG})",
    "lines of three": f"parsed('---\\n' * {LONG // 4})",
    "a head of brackets": "parsed('---\\n' + '[' * 8000 + '\\n---\\nx')",
    "a refusal of one word": f"refusal.read(b'supported ' * {LONG}).options(['seed'])",
    "a refusal of places": f"refusal.read(b'\\'loc\\': [' * {LONG}).room(4096)",
    "a diagnostic": f"prompt.repeatable(Outcome(Kind.COMPILE, 'b', 'm', ': /a' * {LONG}))",
    "what is not printed": f"printable('\\x1b' * {LONG})",
}
PROGRAM = """
import resource
from tensorop.author.llm import prompt, reading, refusal, secret
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.trial import Kind, Outcome
from tensorop.specs.printable import printable
def parsed(text):
    try:
        parse(text, operator="gemm", name="x", author="llm")
    except SpecError:
        pass
resource.setrlimit(resource.RLIMIT_CPU, (%d, %d))
for text in %r:
    eval(text)
"""


def test_what_reads_an_answer_takes_time_as_its_length() -> None:
    program = PROGRAM % (CPU_S, CPU_S, list(READERS.values()))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-500:]


@pytest.mark.parametrize(
    "said", [KEY, "1 S\nk - a\u200bbcdefghij", "49 115 107 45 97 98 99 100 101 102 103 104 105 106"]
)
def test_a_key_is_taken_out_where_lines_break_it(said: str) -> None:
    assert secret.Scrubber(KEY)(f"a{said} b {said}c") == "a[key] b [key]c"
    assert secret.Scrubber(KEY)(f"ab {said[:-2]}") == f"ab {said[:-2]}"


# --- the process that reads ---------------------------------------------------------------------------------------

GOOD = f"```\n{HEAD}{BODY}```"


def read(seconds: float = reading.SECONDS) -> str:
    return reading.template(GOOD, operator="gemm", name="llm-1", author="llm", seconds=seconds).strategy


def test_reading_ends_when_its_time_is_up(monkeypatch: pytest.MonkeyPatch) -> None:
    assert read() == "rank-1 updates"
    monkeypatch.setattr(reading, "_COMMAND", (sys.executable, "-c", "import time; time.sleep(600)"))
    with pytest.raises(SpecError, match=r"reading the model's answer took more than 0\.2 s"):
        read(0.2)
    monkeypatch.setattr(reading, "_COMMAND", (sys.executable, "-c", "import os; os.abort()"))
    with pytest.raises(SpecError, match="the process that reads the model's answer crashed"):
        read()


def test_ctrl_c_ends_reading() -> None:
    program = (
        "import signal, sys; from tests.attacks.test_replies import read, reading; read(); "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "  # a shell's background jobs begin without
        "reading._COMMAND = (sys.executable, '-c', 'import time; time.sleep(600)'); "
        "print('reads', flush=True); read(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "reads\n"
        child.send_signal(signal.SIGINT)
        try:
            _, said = child.communicate(timeout=60)
        finally:
            child.kill()
    assert "KeyboardInterrupt" in said
    assert child.returncode != 0
