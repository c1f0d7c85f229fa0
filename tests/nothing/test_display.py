"""What a job shows at a terminal of 80 columns, and at once."""

from __future__ import annotations

import io
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator, Sequence
from fcntl import ioctl
from pathlib import Path

from rich.console import Console

from tensorop.cli.progress import _Bar, _Lines
from tensorop.events import Building, Trying
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.point import Point
from tensorop.model.search_events import EndReason, SearchEnded, TrialEnded
from tensorop.model.trial import Finished, Kind, Outcome, Score, Stage, Trial
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
    line = (
        r"^ +([a-z -]+ f\d\d): \d+ trials?.* in \d+:\d\d \(\d+ a minute\).*; best: "
        r"(\d+\.\d\d times as fast as the first trial), .* by "
    )
    ended = re.findall(line, text, re.MULTILINE)
    assert [stage for stage, _ in ended][:2] == ["micro f32", "blocking f32"]
    assert [stage for stage, _ in ended] == sorted((s for s, _ in ended), key=lambda s: s[-3:])
    assert "\nmicro f32: trying micro-kernels alone, on packed operands" in text
    assert "\nblocking f64: trying cache blocks for the best micro-kernels, in whole calls" in text
    moving = [line for line in re.split(r"[\r\n]+", text) if re.match(r"(micro-kernel|blocking) f\d\d  \d", line)]
    assert moving
    assert max(map(len, moving)) <= 80


KERNEL = Kernel(
    KernelTemplate("gemm", "outer", "offline", "", "", {}, (), {}, ()), "f32", Point.of(mr_vectors=1, nr=15)
)


def tried(costs: Sequence[float | None], bound: float | None) -> Iterator[Trying]:
    """What a search says of trials that pass at these costs, or fail."""
    best: Finished | None = None
    for number, cost in enumerate(costs, 1):
        outcome = Outcome(Kind.OK if cost else Kind.WRONG, "measure")
        ended = Finished(Trial(str(number), 0, Stage.BLOCKING, Variant(KERNEL)), outcome, Score(cost))
        best = ended if cost and (best is None or cost < (best.score.cost or 0.0)) else best
        event = TrialEnded(ended, best, replayed=False, trials=number, left=37.0)
        yield Trying("blocking", "f32", "modelled cycles/kflop", event, bound=bound)


def test_the_moving_line_tells_how_the_search_goes_in_80_columns() -> None:
    seconds = 0.0
    console = Console(file=io.StringIO(), width=80, force_terminal=True)
    view = _Bar(console, lambda: seconds)
    for event, then in zip(tried([200.0, None, 160.0, 150.0, 125.0], 100.0), (10, 20, 30, 70, 100), strict=True):
        seconds = then
        view.show(event)
    line = view.line().plain
    # 60 s before the last trial the best was that of second 30, 160; the first passed at 200
    whole = "blocking f32  1:30  0:37 left  5 tried  80% of peak  28.0% faster than 60 s ago"
    assert line.startswith(whole)
    assert len(whole) <= 80
    assert "1 failed" in line
    seconds = 150.0  # a minute without anything better
    view.show(list(tried([125.0], 100.0))[-1])
    assert "20.0% faster than 60 s ago" in view.line().plain  # 150 was the best at second 90
    view.show(Trying("blocking", "f32", "", SearchEnded(EndReason.BUDGET, None, 6, 1.0)))
    assert view.gain() == ""


def test_where_the_peak_is_not_known_nothing_is_said_of_it() -> None:
    view = _Bar(Console(file=io.StringIO(), width=80, force_terminal=True), lambda: 0.0)
    for event in tried([200.0, 100.0], None):
        view.show(event)
    assert "of peak" not in view.line().plain
    assert "2 tried  2.0 times the first  outer" in view.line().plain


def test_kernels_that_are_built_are_counted_on_a_terminal_and_every_half_minute_elsewhere() -> None:
    seconds, out = 0.0, io.StringIO()
    bar = _Bar(Console(file=io.StringIO(), width=80, force_terminal=True), lambda: 0.0)
    lines = _Lines(Console(file=out, width=80))
    lines.now = lambda: seconds
    lines.last = 0.0
    for number in range(1, 5):
        seconds = 20.0 * number
        for view in (bar, lines):
            view.show(Building(number, 224, 250.0 - number))
    assert "kernel 4 of 224, about 4 minutes left" in str(bar.line())
    assert out.getvalue().split("\n") == [f"  kernel {n} of 224, about 4 minutes left" for n in (2, 4)] + [""]
    assert str(Building(3, 8, 40.4)) == "kernel 3 of 8, about 40 seconds left"
