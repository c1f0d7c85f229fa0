"""Handles Ctrl-C and other stop signals at once, even if the main thread is busy. Child processes never get them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

from tensorop.process import children
from tensorop.process.stopping import StopRequest, interrupt

INTERRUPTED = 130  # exit status
PATIENCE_S = 5.0  # time for the main thread to clean up after a stop signal
_HEARD = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class CtrlC:
    """Handles stop signals inside a `with` block.

    The first SIGINT asks `stop`, if given, to end early, and shows its message. A further SIGINT, SIGTERM or SIGHUP
    kills every child and raises KeyboardInterrupt in the main thread. If the main thread does not end within
    PATIENCE_S, the process exits.

    say: shows a line; called from any thread
    at_last: restores the screen before that exit
    """

    def __init__(
        self, say: Callable[[str], None], stop: StopRequest | None = None, at_last: Callable[[], object] = lambda: None
    ) -> None:
        self._say, self._stop, self._at_last = say, stop, at_last
        self._before: dict[int, Any] = {}
        self._asked = False
        self._pipe: tuple[int, int] | None = None

    def __enter__(self) -> CtrlC:
        if threading.current_thread() is not threading.main_thread():
            return self  # only the main thread may set signal handlers
        self._pipe = os.pipe()
        os.set_blocking(self._pipe[1], False)
        self._fd_before = signal.set_wakeup_fd(self._pipe[1], warn_on_full_buffer=False)
        for number in _HEARD:
            if signal.getsignal(number) is not signal.SIG_IGN:  # a shell ignores SIGINT for background jobs
                self._before[number] = signal.signal(number, self._in_main_thread)
        threading.Thread(target=self._listen, args=(self._pipe[0],), name="ctrl-c", daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._pipe is None:
            return
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._fd_before)
        os.close(self._pipe[1])  # the listener reads the end of the pipe and closes its side

    def _listen(self, pipe: int) -> None:
        asked = False
        while heard := os.read(pipe, 1):
            number = heard[0]
            if number not in self._before:
                continue
            if number == signal.SIGINT and self._stop is not None and not asked:
                asked = True
                self._say(self._stop.ask())
            elif self._stop is not None and self._stop.shielded:
                self._say("please wait: the library is being moved to its folder")
            else:
                children.end(for_good=True)
                threading.Thread(target=self._last_resort, name="last-resort", daemon=True).start()
        os.close(pipe)

    def _in_main_thread(self, number: int, frame: object) -> None:
        if number == signal.SIGINT and self._stop is not None and not self._asked:
            self._asked = True
        elif self._stop is None or not self._stop.shielded:
            children.end(for_good=True)
            interrupt()

    def _last_resort(self) -> None:
        time.sleep(PATIENCE_S)
        while self._stop is not None and self._stop.shielded:
            time.sleep(0.1)
        children.kill_the_rest()
        with contextlib.suppress(Exception):
            self._at_last()
            self._say("interrupted; run the same command again to resume" if self._stop else "interrupted")
        if self._stop is not None and self._stop.scratch is not None:
            shutil.rmtree(self._stop.scratch, ignore_errors=True)
        os._exit(INTERRUPTED)
