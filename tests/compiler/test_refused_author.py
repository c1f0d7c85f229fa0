"""A job whose author cannot be had, or may not run here, ends before its folder is made."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import commands

REFUSED = {  # operator, environment -> a word of what is said, and whether the process is jailed
    "no model": ("gemm", {"TENSOROP_LLM_MODEL": ""}, "needs a model", True),
    "no address": ("gemm", {"OPENAI_BASE_URL": "somewhere"}, "OPENAI_BASE_URL must be an address", True),
    "no jail": ("gemm", {}, "runs kernels that a model wrote, and", False),
    "no prompts": ("conv2d", {}, "templates/conv2d/prompts/system.md.j2 is missing", True),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("why", REFUSED)
def test_a_job_whose_author_is_refused_leaves_nothing(why: str, tmp_path: Path) -> None:
    operator, changed, told, jailed = REFUSED[why]
    env = {"TENSOROP_LLM_MODEL": "m", "OPENAI_BASE_URL": "http://localhost:1/v1", "OPENAI_API_KEY": "k", **changed}
    words = [] if jailed else [sys.executable, "-m", "tests.support.without_seccomp"]
    words += [sys.executable, "-m", "tensorop", operator, "--author", "llm", "--platform", "native", "--out", "out"]
    done = subprocess.run(
        words, cwd=tmp_path, env=commands.environment(env), capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert list(tmp_path.iterdir()) == []
