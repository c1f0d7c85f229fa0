"""A whole job that asks a real llama.cpp server: its tiny random language model writes noise, and the job delivers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tensorop.author.llm import accounting
from tensorop.author.llm.messages import Failure, Message, Request
from tensorop.author.llm.transport import Endpoint, Http
from tests.support import tiny_llama
from tests.support.commands import ROOT, environment, tensorop

JOB = ("gemm", "--platform", "generic", "--dtype", "f32", "--shapes", "8x8x8", "--trials", "2", "--warm-start", "none")


SHORT = {"TENSOROP_LLM_PROMPT_TOKENS": "1000"}  # a token is a byte here, so the least of a prompt is long enough


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running server."""
    path = tmp_path_factory.mktemp("llama") / "tiny.gguf"
    tiny_llama.write(path)
    argv = [sys.executable, "-m", "tests.support.tiny_llama", str(path)]
    with subprocess.Popen(argv, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as running:
        assert running.stdout is not None
        try:
            yield running.stdout.readline().strip()
        finally:
            running.kill()


@pytest.mark.extended
def test_noise_of_a_real_server_is_recorded_and_the_job_delivers(server: str, tmp_path: Path) -> None:
    env = environment({"OPENAI_BASE_URL": f"{server}/v1", "TENSOROP_LLM_MODEL": "tiny", "NO_PROXY": "*", **SHORT})
    ended = tensorop(
        *JOB, "--author", "llm", "--author-calls", "3", "--author-timeout", "60s", "--out", "out", cwd=tmp_path, env=env
    )
    assert ended.status == 0, ended.stderr
    assert (tmp_path / "out/lib/libtensorop_gemm.so").is_file()
    found = accounting.account(tmp_path / "out")
    assert [call.failed_at for call in found.calls] == ["template"] * 3, found
    assert all(call.prompt_tokens > 1000 and call.completion_tokens > 0 for call in found.calls)
    assert "answer 1: rejected: refused" in ended.stderr


@pytest.mark.extended
def test_a_prompt_longer_than_the_context_is_a_failure_that_says_so(server: str) -> None:
    where = Endpoint("tiny", "none", f"{server}/v1")
    answer = Http(where).complete(Request("tiny", (Message("user", "x" * 70_000),)), 60.0)
    assert isinstance(answer, Failure)
    assert "context" in answer.outcome.message
