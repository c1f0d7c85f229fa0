"""The plug-in that confines QEMU (native/qemu_jail.c), built for this machine once a source and compiler."""

from __future__ import annotations

from pathlib import Path

from tensorop import settings
from tensorop.provision import zig

_FLAGS = ("-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-fomit-frame-pointer")
_HEADERS = ("jail.h", "plugin/qemu_plugin_api.h")


def plugin() -> Path:
    """The shared object QEMU loads; it finds the C library's functions in QEMU's own. Raises as `zig.own`."""
    what = "the plug-in that confines QEMU"
    return zig.own(settings.read().cache, "qemu_jail.c", _HEADERS, "jail.so", "-shared", _FLAGS, what)
