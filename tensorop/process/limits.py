"""What a process of ours that reads strangers' texts may have, set by itself before it reads a byte."""

from __future__ import annotations

import ctypes
import os
import resource
import signal

_PR_SET_PDEATHSIG = 1


def limit(which: int, most: int) -> None:
    """A limit (`resource.RLIMIT_...`), no higher than it was."""
    hard = resource.getrlimit(which)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(which, (most, most))


def ends_with(parent: int, how: signal.Signals) -> None:
    """From here on the kernel tells this process that its parent ended."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(how))
    alone(parent)


def alone(parent: int) -> None:
    """Ends this process where its parent has ended."""
    if os.getppid() != parent:
        os._exit(0)
