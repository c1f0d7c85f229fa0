"""Starts a command as in a container whose policy forbids filters: python -m tests.support.without_seccomp COMMAND...

seccomp(2), and prctl's way to it, answer EPERM to it and to all it starts.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PRCTL, _SECCOMP = {"x86_64": (157, 317)}.get(platform.machine(), (167, 277))
_SET_NO_NEW_PRIVS, _SET_SECCOMP, _FILTER = 38, 22, 2


def forbid() -> None:
    """For this process, from now on. Raises OSError where that cannot be had."""
    code = b"".join(
        struct.pack("<HBBI", *line)
        for line in (
            (_LOAD, 0, 0, 0),  # the call's number
            (_EQUAL, 3, 0, _SECCOMP),
            (_EQUAL, 0, 3, _PRCTL),
            (_LOAD, 0, 0, 16),  # its first argument
            (_EQUAL, 0, 1, _SET_SECCOMP),
            (_RETURN, 0, 0, _ERRNO | errno.EPERM),
            (_RETURN, 0, 0, _ALLOW),
        )
    )
    libc = ctypes.CDLL(None, use_errno=True)
    held = ctypes.create_string_buffer(code)
    program = struct.pack("<HxxxxxxQ", len(code) // 8, ctypes.addressof(held))
    for words in ((_SET_NO_NEW_PRIVS, 1, 0, 0, 0), (_SET_SECCOMP, _FILTER, program, 0, 0)):
        if libc.prctl(*words) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


if __name__ == "__main__":
    forbid()
    os.execv(sys.argv[1], sys.argv[1:])
