"""examples/torch runs, and computes with a library what torch computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import ROOT, environment

pytest.importorskip("torch")


def ran(*words: str | Path) -> str:
    command = [sys.executable, ROOT / "examples" / "torch" / words[0], *words[1:]]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_runs(made: Path) -> None:
    assert float(ran("transformer.py", made).removeprefix("largest difference: ")) < 1e-5


@pytest.mark.parametrize("pages", [False, True])
def test_tokens_that_are_written_one_by_one_are_torch_s(made: Path, pages: bool) -> None:
    assert ran("decode.py", made, *["--pages"] * pages).startswith("120 of 120 tokens are torch's")
