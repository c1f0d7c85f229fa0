"""What a candidate's end leaves: no core, no emulator's core, no log, neither where a command runs nor where it keeps
temporary files, and nothing of a command that was killed once another has run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import crashes
from tests.support.commands import Watched, kill_group, tensorop


@pytest.mark.extended
@pytest.mark.skipif(not crashes.may_leave_cores(), reason="no process here may leave a core")
def test_a_crash_leaves_no_file(tmp_path: Path) -> None:
    crashes.nothing_is_left("native", crashes.made(tmp_path), ("a store", "an end"))


def test_what_a_killed_command_left_the_next_one_removes(tmp_path: Path) -> None:
    places = crashes.made(tmp_path)
    here, temporary = places
    (here / "hangs.c").write_text(crashes.HEAD + crashes.LONG)
    (here / "crashes.c").write_text(crashes.HEAD + crashes.CRASHES["a load"])
    before = crashes.listed(places)
    env = {"TMPDIR": str(temporary)}
    killed = Watched(*crashes.judge("native", "hangs.c", "--timeout", "5m"), cwd=here, env=env)
    killed.until("configuration 1 of")
    killed.until(lambda: any(temporary.iterdir()))
    kill_group(killed.child)
    killed.child.wait()
    assert crashes.listed(places) != before
    ended = tensorop(*crashes.judge("native", "crashes.c"), cwd=here, env=env)
    assert ended.status == 1, ended.stderr
    assert crashes.listed(places) == before
