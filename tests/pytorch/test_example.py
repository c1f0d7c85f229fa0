"""examples/torch runs, and computes with a library what torch computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import ROOT, environment

pytest.importorskip("torch")


def test_the_example_runs(made: Path) -> None:
    program = ROOT / "examples" / "torch" / "transformer.py"
    done = subprocess.run(
        [sys.executable, program, made], env=environment(), capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout.removeprefix("largest difference: ")) < 1e-5
