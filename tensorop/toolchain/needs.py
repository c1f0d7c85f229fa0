"""The needs of each part of a library besides code and constants: external names, instructions, memory.

The gate refuses an object that has more than its part needs. This detects injected C, and foreign objects with
unexpected contents.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

# A compiler may replace a loop by these calls.
COMPILER_CALLS = frozenset({"memcpy", "memset", "memmove"})
OWN = "tensorop_"  # prefix of the names by which the parts of a product call each other, and of no others


@dataclass(frozen=True)
class Needs:
    """The needs of one part."""

    calls: frozenset[str] = COMPILER_CALLS  # names of the C library and the loader that it may use
    instructions: re.Pattern[str] = field(default=re.compile(r"(?!)"))  # those that it may have, unlike kernels
    keeps: bool = True  # has memory between calls
    among: bool = True  # calls other parts, and defines their callees, by names that begin with `tensorop_`

    def with_calls(self, names: Iterable[str]) -> Needs:
        return replace(self, calls=self.calls | frozenset(names))


def _needs(names: str, instructions: str = r"(?!)") -> Needs:
    return Needs(COMPILER_CALLS | frozenset(names.split()), re.compile(instructions))


_PRINTS = "fprintf fputs fputc fwrite stderr"
KERNEL = Needs(keeps=False, among=False)
OPERATOR = _needs(f"{_PRINTS} memcmp bcmp strlen strcmp __errno_location")  # the operator's own C: dispatch, plain C
# By file: the C of every product (native/product/).
OF_FILE = {
    "api.c": _needs(
        f"{_PRINTS} getenv strtol sched_getaffinity __sched_cpucount pthread_once __errno_location"
    ),
    "cpu.c": _needs(f"{_PRINTS} getauxval syscall prctl pthread_once __errno_location", "(cpuid|xgetbv) ?"),
    "threads.c": _needs(
        "pthread_once pthread_atfork pthread_create pthread_attr_init pthread_attr_destroy pthread_attr_setdetachstate "
        "pthread_cond_init pthread_cond_broadcast pthread_cond_signal pthread_cond_wait pthread_mutex_init "
        "pthread_mutex_lock pthread_mutex_unlock pthread_setcancelstate pthread_sigmask sigdelset sigfillset",
        # rounding, flushing and exceptions of a thread's floating-point arithmetic
        r"v?ldmxcsr .*|fldcw .*|fr(rm|flags|csr) \w+|fs(rm|flags|csr) .*|csrs fflags, \w+"
        r"|mrs x\d+, FP[CS]R|msr FP[CS]R, x(\d+|zr)",
    ),
    "workspace.c": _needs(
        "free posix_memalign madvise pthread_once pthread_key_create pthread_getspecific pthread_setspecific "
        "__errno_location"
    ),
    "card.c": Needs(),
}  # fmt: skip
# The host part of a library for a device, which opens a driver.
DEVICE = _needs(f"{_PRINTS} memcmp bcmp strtol aligned_alloc free getenv dlopen dlsym pthread_once")
# Names that compilers' runtimes and glibc's headers add to a library that another compiler built.
RUNTIME = frozenset(
    {"_ITM_registerTMCloneTable", "_ITM_deregisterTMCloneTable", "__gmon_start__", "__cxa_finalize", "__cxa_atexit"}
)
_CHECKED = """
__register_atfork __stack_chk_fail __stack_chk_guard __fprintf_chk __memcpy_chk __memset_chk __memmove_chk
__tls_get_addr
"""
ALL = RUNTIME.union(_CHECKED.split(), *(part.calls for part in (KERNEL, OPERATOR, *OF_FILE.values())))
