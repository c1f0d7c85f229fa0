"""The lock that keeps tests of the clock alone."""

import subprocess
import sys
import threading

import pytest

from tests.support.commands import environment
from tests.support.turnstile import Turnstile

WAIT = 30


def entering(folder, *, alone):
    """A thread that goes in, tells so, and stays until it is told to leave."""
    went_in, leave = threading.Event(), threading.Event()

    def visit():
        turnstile = Turnstile(folder)
        turnstile.enter(alone=alone)
        went_in.set()
        leave.wait(WAIT)
        turnstile.leave()

    threading.Thread(target=visit, daemon=True).start()
    return went_in, leave


def test_many_are_inside_together(tmp_path):
    first, second = entering(tmp_path, alone=False), entering(tmp_path, alone=False)
    assert first[0].wait(WAIT)
    assert second[0].wait(WAIT)
    first[1].set()
    second[1].set()


@pytest.mark.parametrize("later", [True, False])
def test_one_alone_is_alone_and_is_not_overtaken(tmp_path, later):
    inside, leave = entering(tmp_path, alone=False)
    assert inside.wait(WAIT)
    alone, leave_alone = entering(tmp_path, alone=True)
    assert not alone.wait(0.2)
    last, leave_last = entering(tmp_path, alone=later)
    assert not last.wait(0.2)
    leave.set()
    # Of two that want to be alone either may go first.
    if later:
        assert alone.wait(WAIT) or last.wait(WAIT)
        assert not (alone.is_set() and last.is_set())
    else:
        assert alone.wait(WAIT)
        assert not last.wait(0.2)
    leave_alone.set()
    leave_last.set()
    assert last.wait(WAIT)
    assert alone.wait(WAIT)


def test_who_is_inside_stays_without_waiting(tmp_path):
    turnstile = Turnstile(tmp_path)
    turnstile.enter(alone=True)
    turnstile.enter(alone=True)
    turnstile.leave()
    other, leave = entering(tmp_path, alone=True)
    assert other.wait(WAIT)
    leave.set()


@pytest.mark.extended
def test_a_session_that_ends_between_two_tests_of_the_clock_keeps_nobody_waiting(tmp_path):
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = clock\n")
    hooks = "TURNSTILE, pytest_runtest_protocol, pytest_sessionfinish, pytest_sessionstart"
    (tmp_path / "conftest.py").write_text(f"from tests.conftest import {hooks}\n")
    fails = "import pytest\npytestmark = pytest.mark.clock\ndef test_1(): assert 0\ndef test_2(): pass\n"
    (tmp_path / "test_clock.py").write_text(fails)
    many = "".join(f"def test_{i}(): time.sleep(0.1)\n" for i in range(40))
    (tmp_path / "test_other.py").write_text(f"import time\n{many}")
    argv = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "--dist", "loadfile", str(tmp_path)]
    ended = subprocess.run(argv, cwd=tmp_path, env=environment(), capture_output=True, text=True, timeout=WAIT * 2)
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert "1 failed" in ended.stdout
