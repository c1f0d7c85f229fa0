"""Children and the terminal's Ctrl-C: it reaches this process alone."""

from __future__ import annotations

import os
import subprocess
import sys

_MANY = """
import os, signal, threading
from tensorop import children
signal.signal(signal.SIGINT, lambda *_: None)
done = threading.Event()
def press():
    while not done.wait(0.0002):
        os.killpg(0, signal.SIGINT)
presser = threading.Thread(target=press)
presser.start()
try:
    statuses = {children.run(["true"]).returncode for _ in range(300)}
finally:
    done.set()
    presser.join()
assert statuses == {0}, statuses
"""


def test_none_hears_it_however_young() -> None:
    subprocess.run([sys.executable, "-c", _MANY], env=dict(os.environ), check=True, timeout=120, start_new_session=True)
