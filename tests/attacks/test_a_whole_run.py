"""A whole job whose model means harm: benchmarks/attack_run.py, with a few of the attacks, on this machine."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.compiler.test_llm_author import GOOD
from tests.support import hostile
from tests.support.commands import ROOT

ELSEWHERE = [path for path in Path("/").iterdir() if path.name not in ("etc", "srv", "boot", "tmp")]
OTHERS = [*ELSEWHERE, Path("/tmp")]  # where other tests, and whoever else works here, write meanwhile


@pytest.mark.extended
def test_a_job_survives_a_model_that_means_harm(tmp_path: Path) -> None:
    words = ["--platform", "generic", "--every", "25", "--but", *map(str, OTHERS)]
    argv = [sys.executable, str(ROOT / "benchmarks" / "attack_run.py"), *words]
    ended = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=500)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = json.loads(ended.stdout)
    assert told["found"] == {}
    assert told["answers"] > len(hostile.ANSWERS) // 25


def test_what_is_left_behind_is_seen(tmp_path: Path) -> None:
    """The lists are of the kind that would show it: each of them finds what was made meanwhile, and its end."""
    before = hostile.processes(), hostile.sockets(), hostile.files(None, ELSEWHERE)
    (tmp_path / "left").write_text("behind")
    sleeping = subprocess.Popen(["sleep", "100"], cwd=tmp_path)
    try:
        with hostile.endpoint(["hello"]):
            opened = hostile.sockets() - before[1]
        started = hostile.new(before[0], hostile.processes())
        mine = list(hostile.processes(None, tmp_path).values())
        made = hostile.new(before[2], hostile.files(None, ELSEWHERE))
    finally:
        sleeping.kill()
        sleeping.wait()
    assert any(name.startswith(f"{sleeping.pid} ") for name in started)
    assert mine == ["sleep 100"]
    assert any(name.startswith("tcp 0100007F:") for name in opened)
    assert str(tmp_path / "left") in made


def test_every_attack_beside_the_product_differs_from_it() -> None:
    assert len({*hostile.BESIDE.values(), GOOD}) == len(hostile.BESIDE) + 1
