"""Children and the terminal's Ctrl-C: it reaches this process alone."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from tensorop.process import children

_MANY = """
import os, signal, threading
from tensorop.process import children
signal.signal(signal.SIGINT, lambda *_: None)
done = threading.Event()
def press():
    while not done.wait(0.0002):
        os.killpg(0, signal.SIGINT)
presser = threading.Thread(target=press)
presser.start()
try:
    statuses = {children.run(["true"], timeout=60).returncode for _ in range(300)}
finally:
    done.set()
    presser.join()
assert statuses == {0}, statuses
"""


def test_none_hears_it_however_young() -> None:
    subprocess.run([sys.executable, "-c", _MANY], env=dict(os.environ), check=True, timeout=120, start_new_session=True)


_TOLD = """
import json, sys
from tensorop.process import children
from tensorop.runners import process
ask = [sys.executable, "-c", "import json, os; print(json.dumps(dict(os.environ)))"]
print(json.dumps([json.loads(children.run(ask, timeout=60).stdout), json.loads(process.run(ask, timeout_s=60).stdout)]))
"""
_SECRETS = (
    "OPENAI_API_KEY",
    "SOME_API_KEY",
    "HF_TOKEN",
    "github_token",
    "CLIENT_SECRET",
    "AWS_SECRET_ACCESS_KEY",
    "TOKEN",
)


YOUNG = """
import signal, subprocess, sys
from tensorop.cli import main
from tensorop.cli.ctrl_c import CtrlC
from tensorop.process import children

class Started(subprocess.Popen):
    def __init__(self, *args, **how):
        super().__init__(*args, **how)
        print(self.pid, flush=True)
        signal.raise_signal(signal.SIGTERM)  # as a process hears it whose other threads do not block it

subprocess.Popen = Started
try:
    with CtrlC(print):
        children.start(["/bin/sleep", "60"])
except KeyboardInterrupt as interrupt:
    main._interrupted(interrupt)
"""


def test_one_that_starts_while_all_are_killed_is_killed_too() -> None:
    done = subprocess.run([sys.executable, "-c", YOUNG], capture_output=True, text=True, timeout=30)
    assert done.returncode == 130, done.stderr
    number = int(done.stdout.split()[0])
    assert not psutil.pid_exists(number) or psutil.Process(number).status() == psutil.STATUS_ZOMBIE


def test_none_is_told_a_key() -> None:
    mine = {**os.environ, **dict.fromkeys(_SECRETS, "sk-0123456789"), "TOKENS": "seen", "KEYBOARD": "seen"}
    done = subprocess.run([sys.executable, "-c", _TOLD], env=mine, check=True, timeout=120, capture_output=True)
    for told in json.loads(done.stdout):
        assert "sk-0123456789" not in told.values()
        assert (told["TOKENS"], told["KEYBOARD"]) == ("seen", "seen")
        assert told["PATH"] == mine["PATH"]


def test_a_process_that_a_child_leaves_behind_is_not_waited_for() -> None:
    """It holds the child's pipes open, and is out of its group."""
    done = children.run(["sh", "-c", "setsid sleep 600 & echo $!; exit 3"], timeout=300)
    os.kill(int(done.stdout), signal.SIGKILL)
    assert done.returncode == 3


def test_what_a_child_says_and_is_given() -> None:
    copied = children.run(["sh", "-c", "tee /dev/stderr"], input="ä" * 300_000, timeout=60)
    assert copied.stdout == copied.stderr == "ä" * 300_000
    with pytest.raises(subprocess.TimeoutExpired):
        children.run(["sh", "-c", "exec >&- 2>&-; sleep 600"], timeout=0.1)
