"""The board models order the published kernels as they were measured, on small products already."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tensorop.specs import yamlfile

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "benchmarks" / "board_model"


@pytest.mark.parametrize(("platform", "model"), [("spacemit-k1", "spacemit-x60"), ("cortex-a53", "cortex-a53")])
@pytest.mark.extended
def test_the_order_of_the_published_points_holds_in_every_scenario(platform, model):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, FOLDER / "points.py", platform, "--size", "128"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment)
    assert done.stderr == ""
    title, table, verdict = done.stdout.strip().split("\n\n")
    assert re.fullmatch(rf"{model} \d+, not calibrated", title)
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    points = yamlfile.read(FOLDER / "points" / f"{platform}.yaml")["points"]
    assert [row[0] for row in rows] == [point["name"] for point in points]
    for _, _, best, interval, width in rows:
        low, high = map(float, interval.split(" to "))
        assert 0 < low <= float(best) <= high
        assert width.endswith(" %")
    # Sizes published are larger, so that speeds may lie outside; the tile alone has no size. Nothing else is wrong.
    found = verdict.splitlines()
    outside = [line for line in found if re.fullmatch(r".*: [\d.]+ lies outside", line)]
    assert not [line for line in outside if line.startswith("16x15 m2 in level 1: ")]
    assert found == (outside or ["every published speed inside, every order kept, no interval beyond 35 %"])
    assert done.returncode == (1 if outside else 0)
