"""The board models order the published kernels as they were measured, on small products already."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "board_model" / "points.py"


@pytest.mark.parametrize(("platform", "model"), [("spacemit-k1", "spacemit-x60"), ("cortex-a53", "cortex-a53")])
def test_the_order_of_the_published_points_holds_in_every_scenario(platform, model):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, SCRIPT, platform, "--size", "192"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stdout.startswith(f"{model} "), done.stderr
    assert "not calibrated" in done.stdout
    assert "is not slower than" not in done.stdout
    # sizes published are larger; the tile alone has no size
    assert "the interval is" not in done.stdout
    assert "16x15 m2 in level 1: " not in done.stdout
