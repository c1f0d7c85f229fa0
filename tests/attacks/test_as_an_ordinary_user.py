"""What guards do without root's privileges. Where root runs the suite, as CI does, these tests run once more as an
ordinary user; where an ordinary user does, they have run as one already."""

from __future__ import annotations

import os
import re
import sys

import pytest

from tests.support import ordinary

WHOLE_RUN = "tests/attacks/test_a_whole_run.py::test_a_job_survives_a_model_that_means_harm"
TESTS = (
    "tests/attacks/test_build_cache.py",
    "tests/attacks/test_rendering_apart.py::test_a_rendering_starts_nothing_and_where_root_does_it_goes_with_it",
    "tests/attacks/test_rendering_apart.py::test_limits_stand_before_anything_is_read",
    "tests/attacks/test_what_a_compiler_reads.py",
    "tests/compiler/test_jail.py",
    "tests/compiler/test_job.py::test_an_out_without_permission",
)
BY_SSH = "tests/compiler/test_jail.py::test_a_candidate_gets_nothing_of_a_board"  # nobody may not log in
SKIPPED = re.compile(r"SKIPPED .*: (needs root to give a folder|not to be had on this machine)")


@pytest.mark.skipif(os.geteuid() != 0, reason="this user is an ordinary one: these tests run beside this one")
@pytest.mark.parametrize(
    "tests", [TESTS, pytest.param((WHOLE_RUN,), marks=pytest.mark.extended)], ids=["guards", "run"]
)
def test_guards_hold_for_an_ordinary_user_too(tests: tuple[str, ...]) -> None:
    if why := ordinary.absent():
        pytest.skip(why)
    words = [sys.executable, "-m", "pytest", "-n", "0", "-p", "no:cacheprovider", *tests, f"--deselect={BY_SSH}"]
    ended = ordinary.run(words)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    skipped = [line for line in ended.stdout.splitlines() if line.startswith("SKIPPED")]
    assert [line for line in skipped if not SKIPPED.match(line)] == []
