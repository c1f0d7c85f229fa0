"""What a job shows at a terminal of 80 columns, and at once."""

from __future__ import annotations

import os
import pty
import re
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

from tests.support.commands import environment

JOB = ("gemm", "--runner", "null", "--platform", "generic", "--dtype", "f32,f64", "--shapes", "64x64x64")


def at_a_terminal(*words: str, cwd: Path, columns: int = 80) -> str:
    """Everything a command writes to a terminal."""
    ours, theirs = pty.openpty()
    ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    env = {**environment(), "TERM": "xterm", "COLUMNS": str(columns)}
    argv = [sys.executable, "-m", "tensorop", *words]
    with subprocess.Popen(argv, cwd=cwd, env=env, stdout=theirs, stderr=theirs, stdin=theirs) as child:
        os.close(theirs)
        shown = b""
        while True:
            try:
                data = os.read(ours, 1 << 16)
            except OSError:  # the other side is closed
                break
            shown += data
        assert child.wait() == 0, shown.decode()
    os.close(ours)
    return shown.decode()


def test_a_sign_of_life_comes_first_and_stages_stand_in_their_order(tmp_path: Path) -> None:
    shown = at_a_terminal(*JOB, "--trials", "40", "--out", "out", cwd=tmp_path)
    assert shown.startswith("tensorop gemm: starting")
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown).replace("\r", "\n")
    ended = re.findall(r"^ +([a-z -]+ f\d\d): (\d+\.\d\dx the first), \d+ trials?,.* taken; .* by ", text, re.MULTILINE)
    assert [stage for stage, _ in ended][:2] == ["micro f32", "blocking f32"]
    assert [stage for stage, _ in ended] == sorted((s for s, _ in ended), key=lambda s: s[-3:])
    moving = [line for line in re.split(r"[\r\n]+", text) if re.match(r"(micro-kernel|blocking) f\d\d  \d", line)]
    assert moving
    assert max(map(len, moving)) <= 80
