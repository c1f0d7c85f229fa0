"""`python -m tensorop.provision WHAT [ARCH]` fetches one piece into the cache; if it fails, it prints the error.

`emulator ARCH` fetches QEMU and a sysroot, and prints the command that runs the architecture's programs. The words of
the command are separated by ';', as CMake's CMAKE_CROSSCOMPILING_EMULATOR requires.

WHAT: all | objdump | mca | qemu | sysroot | emulator | libc | nvcc | openblas[@VERSION] | onednn | mkl | blis |
libxsmm.
ARCH: this machine's by default.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tensorop import errors
from tensorop.model.architecture import host_arch
from tensorop.provision import baseline, libc, llvm, nvcc, prewarm, qemu


def main(arguments: list[str]) -> None:
    """Fetches the piece that the arguments name. Raises TensoropError."""
    if not 1 <= len(arguments) <= 2:
        raise errors.UsageError("expected WHAT [ARCH]", hint=__doc__)
    what, arch = arguments[0], (arguments[1:] or [host_arch()])[0]
    pieces: dict[str, Callable[[], object]] = {
        "all": lambda: prewarm.bring(arch),
        "objdump": llvm.OBJDUMP.program,
        "qemu": lambda: qemu.qemu(arch),
        "sysroot": lambda: qemu.sysroot(arch),
        "emulator": lambda: sys.stdout.write(";".join(qemu.emulator(arch)) + "\n"),
        "mca": llvm.MCA.program,
        "nvcc": nvcc.nvcc,
        "libc": lambda: libc.warm(arch),
    }
    if what in pieces:
        pieces[what]()
        return
    for threads in (1, 2):  # different builds for some libraries
        baseline.baseline(what, arch, threads).bring()


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except errors.TensoropError as e:
        sys.stderr.write(f"{e.shown}\n")
        sys.exit(e.exit_status)
