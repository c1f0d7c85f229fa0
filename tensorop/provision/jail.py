"""The plug-in that confines QEMU (native/qemu_jail.c), built for this machine once a source and compiler."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

from tensorop import paths, settings
from tensorop.provision import cache, zig
from tensorop.provision.targets import host_arch, target

NAME = "jail.so"
_FLAGS = ("-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-fomit-frame-pointer")
_FILES = ("qemu_jail.c", "jail.h", "plugin/qemu_plugin_api.h")


def plugin() -> Path:
    """The shared object QEMU loads. Raises MissingTool without a compiler, JobError when the cache cannot be written.

    It is linked without a C library, whose functions it finds in QEMU's own: so zig need not make one for this machine.
    """
    return _plugin(settings.read().cache)


@functools.cache
def _plugin(root: Path) -> Path:
    triple = target(host_arch()).static_triple
    native = paths.native_dir()
    made_of = [(native / name).read_bytes() for name in _FILES]
    words = "\0".join((triple, zig.zig_version(), *_FLAGS)).encode()
    key = hashlib.sha256(words + b"\0".join(made_of)).hexdigest()[:16]

    def fill(folder: Path) -> None:
        made = folder / "jail.o"
        zig.build(*_FLAGS, "-target", triple, "-c", str(native / "qemu_jail.c"), "-o", str(made), what=what)
        zig.build("-target", triple, "-shared", "-nostdlib", str(made), "-o", str(folder / NAME), what=what)
        made.unlink()

    # Nothing is fetched, so it is built offline too.
    folder, what = root / "plugin" / f"jail-{key}", "the plug-in that confines QEMU"
    return cache.entry(folder, fill, what=what, command="tensorop doctor", offline=False, doing="building") / NAME
