"""A failure is told to the endpoint without anything of this machine in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.author.llm.prompt import repeatable
from tensorop.model.kernel import Source
from tensorop.model.trial import Kind, Outcome
from tensorop.toolchain import compile as building
from tests.support import kernels


@pytest.mark.parametrize(
    "line",
    [
        '#include "{secret}"',
        'char text[] = {{\n#embed "{secret}"\n}}; int wrong = text;',
        "int f(void) {{ return {secret}; }}",
        '__asm__(".include \\"{secret}\\"");',
        '_Static_assert(0, "stop"); void *p = missing_name;',
    ],
)
def test_a_compile_error_repeats_no_line_and_no_path(tmp_path: Path, line: str) -> None:
    secret = tmp_path / "key.txt"
    secret.write_text("sk-quoted-from-a-file one two\n")
    source = Source((("kernel.c", line.format(secret=secret) + "\n"),))
    made = building.compile_source(source, building.candidate_flags(kernels.platform()), work=tmp_path / "w")
    assert isinstance(made, Outcome), made
    told = repeatable(made)
    assert told.kind is Kind.COMPILE
    assert told.message
    for text in (told.message, told.log):
        assert str(tmp_path) not in text
        assert "key.txt" not in text
        assert "sk-quoted" not in text
        assert "kernel.c:" not in text
        assert "|" not in text  # lines and carets


def test_what_a_process_prints_is_not_repeated() -> None:
    crashed = Outcome(
        Kind.CRASH, "verify", "ended by SIGSEGV in /home/me/out/work/x", "root:x:0:0:root:/root:/bin/bash"
    )
    told = repeatable(crashed)
    assert (told.kind, told.where, told.log) == (Kind.CRASH, "verify", "")
    assert told.message == "ended by SIGSEGV in [path]"


def test_sentences_without_paths_stay() -> None:
    said = "2 of 9 elements are wrong: m=3 n=4, 5 GFLOP/s, error 2.5e-3 (a/b)"
    assert repeatable(Outcome(Kind.WRONG, "verify", said)).message == said


def test_the_seed_stays_here() -> None:
    """Who knows it knows the operands of all calls to come."""
    said = f"3x4x5 f32: C[0,0] is 1.0, should be 2.0 (case 3 of 80, 3x4x5 f32, seed 0:{7:032x})"
    assert repeatable(Outcome(Kind.WRONG, "verify", said)).message == said[: said.index(", seed")] + ")"
