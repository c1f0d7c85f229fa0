"""The processes that strangers' templates are rendered in, against a template that broke out of Jinja's sandbox: here
a template is Python that the rendering's process runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tensorop.process import children, deadline
from tensorop.render import apart, render

RUNS_TEMPLATES = """
import os
from tensorop.render import render, resident
def ran(folder, template, outer, contexts, arities):
    names = {"context": contexts[0]}
    exec(template, names)
    return [str(names["said"])]
render.kernel_texts, render.read_ahead = ran, lambda *_: None
resident.main()
"""
PATIENCE_S = 60.0


@pytest.fixture(autouse=True)
def broken_out(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    apart.close()
    monkeypatch.setattr(apart, "_COMMAND", (sys.executable, "-c", RUNS_TEMPLATES))
    yield
    apart.close()


def ran(code: str, seconds: float = PATIENCE_S, **context: object) -> str:
    (said,) = apart.texts(Path(), code, "t", [context], {}, seconds)
    return said


def gone(number: int) -> bool:
    """Waits for a process to end."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        try:
            if psutil.Process(number).status() == psutil.STATUS_ZOMBIE:
                return True
        except psutil.NoSuchProcess:
            return True
        time.sleep(0.02)
    return False


def resident() -> int:
    assert apart._resident is not None
    return apart._resident.child.pid


MARK = "import builtins\nsaid = hasattr(builtins, 'mark')\nbuiltins.mark = 1\n"


def test_no_rendering_sees_what_another_did() -> None:
    assert [ran(MARK), ran(MARK), ran(MARK + "#")] == ["False"] * 3
    kept = resident()
    assert ran("import os; said = os.getppid()") != str(kept)
    assert resident() == kept


def test_nothing_open_and_no_key_reaches_a_rendering(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    code = """
import json, os
links = [f"/proc/self/fd/{i}" for i in range(64)]
said = json.dumps([os.readlink(link) for link in links if os.path.lexists(link)])
"""
    with Path(__file__).open() as mine:
        os.set_inheritable(mine.fileno(), True)
        for _ in range(2):
            answer = [to for to in json.loads(ran(code)) if to != "/dev/null"]
            assert len(answer) == 1
            assert answer[0].startswith("pipe:")
    assert "sk-0123456789" not in ran("said = open('/proc/self/environ').read()")


def test_limits_stand_before_anything_is_read() -> None:
    code = """
import json, resource
names = ("CPU", "AS", "FSIZE", "CORE", "NPROC")
said = json.dumps([resource.getrlimit(getattr(resource, "RLIMIT_" + name)) for name in names])
"""
    assert json.loads(ran(code)) == [[10, 10], [1 << 30] * 2, [0, 0], [0, 0], [0, 0]]
    status = ran("said = open('/proc/self/status').read()")
    blocked = next(line.split()[1] for line in status.splitlines() if line.startswith("SigBlk"))
    assert int(blocked, 16) & 1 << signal.SIGINT - 1


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("code", "complaint"),
    [
        ("x = b'x' * (2 << 30)", "more than 1024 MiB"),
        ("import os; os._exit(0)", "the rendering process crashed"),
        ("import os; os.abort()", "the rendering process crashed"),
        ("import os; os.kill(os.getppid(), 9)", "the rendering process crashed"),
        ("import os, psutil; os.kill(psutil.Process(os.getppid()).ppid(), 9)", "the rendering process crashed"),
        ("open('/tmp/never', 'wb', 0).write(b'x')", "File too large|Permission"),
        ("raise SystemExit", "the rendering process crashed"),
        ("1 / 0", "ZeroDivisionError"),
    ],
)  # fmt: skip
def test_what_a_rendering_does_to_itself_ends_it_alone(code: str, complaint: str) -> None:
    with pytest.raises(render.RenderError, match=complaint):
        ran(code)
    assert ran("said = 1") == "1"


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "reply",
    [
        "b'x' * 9",
        "b'[' * 100000 + b'\\n'",
        "b'x' * 9000000",
        "b'[\"texts\", [1]]\\n'",
        "b'[\"texts\", []]\\n'",
        "b'3\\n'",
    ],
)
def test_a_reply_is_text_or_nothing(reply: str) -> None:
    code = f"""
import os, stat
pipe = next(i for i in range(3, 64) if os.path.lexists(f'/proc/self/fd/{{i}}') and stat.S_ISFIFO(os.fstat(i).st_mode))
os.set_blocking(pipe, True)
rest = {reply}
while rest:
    rest = rest[os.write(pipe, rest):]
os._exit(0)
"""
    with pytest.raises(render.RenderError, match=r"crashed|other than text"):
        ran(code)
    assert ran("said = 2") == "2"


def test_time_is_up_for_the_rendering_alone() -> None:
    begun: list[str] = []
    other = threading.Thread(target=lambda: begun.append(ran("import time; time.sleep(3); said = 'whole'")))
    other.start()
    with pytest.raises(render.RenderError, match="took more than 1 s"):
        ran("while True: pass", seconds=1)
    with deadline.within(0.5) as common, pytest.raises(render.RenderError):
        ran("while True: pass #")
    assert common.struck
    other.join()
    assert begun == ["whole"]
    templates = psutil.Process(resident()).children()
    assert all(gone(rendering.pid) for template in templates for rendering in template.children())


def test_a_rendering_starts_nothing_and_where_root_does_it_goes_with_it() -> None:
    starts = "import os; child = os.fork(); child or os.execlp('sleep', 'sleep', '600'); said = child"
    if os.getuid() == 0:  # whom a limit on processes does not bind
        assert gone(int(ran(starts)))
    else:
        with pytest.raises(render.RenderError, match="BlockingIOError"):
            ran(starts)


def test_threads_get_their_own() -> None:
    found: dict[int, list[str]] = {}

    def several(thread: int) -> None:
        found[thread] = [ran(f"said = [{thread % 2}, context['n']]", n=100 * thread + i) for i in range(8)]

    threads = [threading.Thread(target=several, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {t: [f"[{t % 2}, {100 * t + i}]" for i in range(8)] for t in range(4)}


def test_one_that_was_killed_is_replaced() -> None:
    said = "import os; said = os.getppid()"
    first, before = ran(said), resident()
    os.kill(before, signal.SIGKILL)
    assert ran("said = 'at once'") == "at once"
    assert gone(before)
    assert gone(int(first))
    second = ran(said)
    assert second != first
    assert resident() != before
    os.kill(int(second), signal.SIGKILL)
    assert ran("said = 'at once'") == "at once"
    assert gone(int(second))
    assert ran(said) not in (first, second)


def test_it_ends_with_all_children_and_only_then() -> None:
    ran("said = 0")
    before = resident()
    threading.Timer(0.5, children.end).start()
    try:
        with pytest.raises(children.Cancelled):
            ran("import time; time.sleep(60)")
        with pytest.raises(children.Cancelled):
            ran("said = 0")
    finally:
        children.allow()
    assert ran("said = 0") == "0"
    assert gone(before)


STARTS = """
import os, sys, threading, time
from pathlib import Path
from tensorop.render import apart
apart._COMMAND = (sys.executable, "-c", {code!r})
names = "import os; said = [os.getpid(), os.getppid()]"
def begin():
    said = apart.texts(Path(), names, "t", [{{}}], {{}})
    print(said[0].strip("[]").replace(",", ""), apart._resident.child.pid, flush=True)
thread = threading.Thread(target=begin)  # the resident outlives the thread that started it
thread.start()
thread.join()
before = apart._resident
time.sleep(0.3)
begin()
assert apart._resident is before
{end}
"""


FORKS = "left = os.fork(); left or time.sleep(600); print(left, flush=True); os._exit(0)"  # it holds the socket


@pytest.mark.one_in(3)
@pytest.mark.parametrize("end", ["pass", "os._exit(0)", "os.kill(os.getpid(), 9)", "raise SystemExit(3)", FORKS])
def test_none_outlives_the_command(end: str) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", STARTS.format(code=RUNS_TEMPLATES, end=end)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        first, second = child.stdout.readline().split(), child.stdout.readline().split()
        child.wait()
        assert first[1:] == second[1:]
        assert all(gone(int(number)) for number in (*first, *second))
    finally:
        if end == FORKS:
            assert child.stdout is not None
            os.kill(int(child.stdout.readline()), signal.SIGKILL)
        child.kill()
        child.wait()
