"""Temporary folders: gone after their block and their process, and after a killed one's successor."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.support.commands import environment

MADE = """
import sys, time
from tensorop.process import scratch
with scratch.folder("a") as made:
    (made / "file").write_text("x")
    print(made, flush=True)
    time.sleep(float(sys.argv[1]))
"""


def start(place: Path, seconds: float) -> subprocess.Popen[str]:
    argv = [sys.executable, "-c", MADE, str(seconds)]
    return subprocess.Popen(argv, env=environment({"TMPDIR": str(place)}), stdout=subprocess.PIPE, text=True)


def told(child: subprocess.Popen[str]) -> Path:
    assert child.stdout is not None
    return Path(child.stdout.readline().strip())


def test_what_a_killed_process_left_goes_and_a_living_ones_stays(tmp_path: Path) -> None:
    strange = tmp_path / f"tensorop-{os.getuid()}-link"
    strange.symlink_to(tmp_path)
    (tmp_path / f"tensorop-{os.getuid()}-young").mkdir()  # another process is about to lock it
    with start(tmp_path, 600) as killed, start(tmp_path, 600) as living:
        lost, kept = told(killed), told(living)
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert (lost / "file").is_file()
        with start(tmp_path, 0) as last:
            gone = told(last)
            assert last.wait() == 0
        assert not lost.exists()
        assert not lost.parent.exists()
        assert not gone.parent.exists()
        assert (kept / "file").is_file()
        living.kill()
    assert strange.is_symlink()
    assert (tmp_path / f"tensorop-{os.getuid()}-young").is_dir()


def test_an_end_that_runs_nothing_else_can_clear_it(tmp_path: Path) -> None:
    made = MADE.split("    time")[0] + "    scratch.clear()\n    import os; os._exit(0)\n"
    argv = [sys.executable, "-c", made]
    done = subprocess.run(argv, env=environment({"TMPDIR": str(tmp_path)}), capture_output=True, text=True, check=True)
    assert done.stdout.strip()
    assert list(tmp_path.iterdir()) == []
