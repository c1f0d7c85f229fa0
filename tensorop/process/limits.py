"""Resource limits that a process sets on itself before it reads untrusted text."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1


def limit(which: int, most: int) -> None:
    """Sets a limit (`resource.RLIMIT_...`), never higher than before."""
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def ends_with(parent: int, how: signal.Signals) -> None:
    """Asks the kernel for a signal when the parent process ends."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(how))
    alone(parent)


def alone(parent: int) -> None:
    """Ends this process if its parent has ended."""
    if os.getppid() != parent:
        os._exit(0)
