"""Detects this machine's GPU."""

from __future__ import annotations

import ctypes
import logging
from collections.abc import Mapping

from tensorop.process import waiting

log = logging.getLogger("tensorop")
_ANSWER_S = 60.0  # several GPUs take seconds to initialise
_MAJOR, _MINOR = 75, 76  # attributes of a device, by CUDA's driver API


def attached(device: Mapping[str, int | str]) -> str | None:
    """The name of this machine's first GPU; None without one, or if a platform's `device:` excludes its architecture.

    A driver that does not answer counts as no GPU, with a warning.
    """
    try:
        return waiting.within(_ANSWER_S, lambda: _attached(device))
    except TimeoutError:
        log.warning("the driver of the GPU does not answer within %g s: no GPU is used", _ANSWER_S)
        return None


def _attached(device: Mapping[str, int | str]) -> str | None:
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None
    first, major, minor = ctypes.c_int(), ctypes.c_int(), ctypes.c_int()
    if (
        driver.cuInit(0)
        or driver.cuDeviceGet(ctypes.byref(first), 0)
        or driver.cuDeviceGetAttribute(ctypes.byref(major), _MAJOR, first)
        or driver.cuDeviceGetAttribute(ctypes.byref(minor), _MINOR, first)
    ):
        return None
    if not int(device["least"]) <= 10 * major.value + minor.value <= int(device["most"]):
        return None
    name = ctypes.create_string_buffer(100)
    known = driver.cuDeviceGetName(name, len(name), first) == 0
    return name.value.decode(errors="replace") if known else "a GPU"
