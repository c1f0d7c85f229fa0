"""What is known of each architecture: one record of it, which everything that names architectures reads.

A new one needs a record here, a platform, a primitive set, and its part of eight files in native/: region.h, jail.h,
harness_state.c, view.c, qemu_jail.c, product/isa.h.j2, product/cpu.c.j2 and product/threads.c.j2. A board model needs
plugin/decode_ARCH.c too, which plugin/classes.c lists.
"""

from __future__ import annotations

import platform as _python_platform
import re
from dataclasses import dataclass
from re import Pattern

from tensorop import errors


def _words(*alternatives: str) -> Pattern[str]:
    return re.compile("|".join(alternatives))


@dataclass(frozen=True)
class Architecture:
    """One architecture, in everybody's spelling. Patterns of instructions are of LLVM's texts, x86-64's in Intel's
    syntax."""

    name: str  # as platform files and `uname -m` have it
    spellings: tuple[str, ...]  # how else `uname -m` and CMake call it
    elf_machine: str
    debian: str
    loader: str  # of its glibc
    static_cpu: str  # zig builds its start-up and support code anew for each CPU, so harnesses are linked with this one
    emulated_cpu: str  # QEMU's -cpu that has the most of it, for programs whose platform nobody named
    openblas: tuple[str, ...]  # wheels of it: OpenBLAS's version, the wheel's, pip's platform, digest
    compilers: str  # that build a product's sources: with __builtin_shufflevector, and RISC-V's vector intrinsics
    baseline: tuple[str, str]  # a CPU of zig's and the -march of GCC and Clang that is the same; "" for none
    cpu_option: str  # by which GCC and Clang take other CPUs
    objdump: str  # option of llvm-objdump; a newer LLVM's names of features are ignored by an older one
    jumps: Pattern[str]  # direct jumps and calls
    linked_jumps: tuple[int, ...]  # types of relocations of jumps within a function that are left to the linker
    absolute: int  # type of relocation: an address that a table holds
    relative: int  # the same, of a library's own that the loader writes
    chosen: int  # the same, that code of the library chooses (IRELATIVE)
    system_calls: Pattern[str]
    forbidden: Pattern[str]  # names of instructions that a kernel has no business with
    harmless: Pattern[str] | None  # whole instructions among these that are admitted
    marks: tuple[tuple[Pattern[str], str], ...]  # whole instructions that are refused, and what they are
    start_files: Pattern[str]  # whole instructions of which compilers' start files are made
    start_addresses: bool  # whether each of these shows the address that it takes or calls

    @property
    def multiarch(self) -> str:
        return f"{self.name}-linux-gnu"

    @property
    def static_triple(self) -> str:
        return f"{self.name}-linux-musl"


_MARK = "a mark of the measured region"
_X86_64 = Architecture(
    name="x86_64",
    spellings=("amd64", "AMD64"),
    elf_machine="EM_X86_64",
    debian="amd64",
    loader="/lib64/ld-linux-x86-64.so.2",
    static_cpu="x86_64_v2",
    emulated_cpu="max",
    openblas=(
        "0.3.34 0.3.34.481.3 manylinux_2_28_x86_64 0595f94cd58c1f8a0d90c975621f4587337a003916b1979e834ebdf2cb5d9504",
        "0.3.29 0.3.29.265.1 manylinux_2_17_x86_64 0ce4eec40cf03af80fea68493fe7174a8d534b3c01bcb35e460f678d2e24676a",
    ),
    compilers="GCC 12, Clang 12, zig or a later one",
    baseline=("", ""),
    cpu_option="-march",
    objdump="--x86-asm-syntax=intel",
    jumps=re.compile(r"(?:j|call|loop)\w*"),
    linked_jumps=(),
    absolute=1,
    relative=8,
    chosen=37,
    system_calls=re.compile(r"syscall|sysenter|int|vmcall|vmmcall|enclu"),
    forbidden=_words(
        r"syscall|sysenter|sysexit\w*|sysret\w*|int|int1|int3|icebp|into|iret\w*|vmcall|vmmcall|vmfunc|enclu|enclv",
        r"encls|rdtscp?|rdpmc|rdmsr|wrmsr|rdpru|rdrand|rdseed|rdpid|cpuid|xgetbv|xsetbv|rdpkru|wrpkru",
        r"(?:rd|wr)[fg]sbase\w*|v?ldmxcsr|fldcw|fldenv|frstor|fxrstor\w*|xrstors?\w*|xbegin|xabort|xend|u?mwaitx?",
        r"umonitor|monitorx?|tpause|in|ins[bwd]?|out|outs[bwd]?|hlt|cli|sti|clts|lgdt|lidt|lldt|lmsw|ltr|invd|wbinvd",
        r"invlpg|swapgs|l?jmpf?\s*far|ljmp\w*|lcall\w*|retf\w*|lret\w*|senduipi|uiret|clui|stui|ptwrite\w*|str|sgdt",
        r"sidt|sldt|smsw",
    ),
    harmless=None,
    marks=(
        (
            re.compile(r"\S+ .*\b[fg]s:.*|\S+ (?:[c-gs]s|[cd]r\d+),.*|\S+ .*,\s*(?:[cd]r\d+)"),
            "the thread's own memory or a control register",
        ),
    ),
    start_files=_words(
        r"(endbr64|ret|leave|nopw?|xchg) ?.*|(lea|sub|add|sar|shr|test|cmp|push|pop|and|xor|or|je|jne|jmp|call) .*",
        r"mov \w+, .*|mov byte ptr \[rip .*\], 1",
    ),
    start_addresses=True,
)
_AARCH64 = Architecture(
    name="aarch64",
    spellings=("arm64",),
    elf_machine="EM_AARCH64",
    debian="arm64",
    loader="/lib/ld-linux-aarch64.so.1",
    static_cpu="baseline",
    emulated_cpu="max",
    openblas=(
        "0.3.34 0.3.34.481.3 manylinux_2_28_aarch64 e085dddbc5b9aa130f83def515d31c440e69f387a90c7e63b154a5575b4466bc",
        "0.3.29 0.3.29.265.1 manylinux_2_17_aarch64 c6edc3bfa73060e5cb31c4bbb03c92e1cd83c52e3dba4493de448f1ca9e1ef10",
    ),
    compilers="GCC 12, Clang 12, zig or a later one",
    baseline=("baseline", "armv8-a"),
    cpu_option="-mcpu",
    objdump="--mattr=+v8.6a,+fullfp16,+fp16fml,+dotprod,+bf16,+i8mm",
    jumps=re.compile(r"b|bl|b\.\w+|cbn?z|tbn?z"),
    linked_jumps=(),
    absolute=257,
    relative=1027,
    chosen=1032,
    system_calls=re.compile(r"svc|hvc|smc"),
    forbidden=_words(
        r"svc|hvc|smc|hlt|dcps\d|drps|eret\w*|msr|mrs|msrr|mrrs|sys|sysl|sysp|at|dc|ic|tlbi|cfp|cpp|dvp|wf[ei]t?|sevl?",
        r"brb|gcs\w+|tstart|ttest|tcommit|tcancel|ld64b|st64b\w*",
    ),
    harmless=None,
    marks=((re.compile(r"hint (?!#?(?:\d|[1-8]\d|9[0-5]|0x[0-5]?[0-9a-f])$).*"), _MARK),),
    start_files=_words(
        r"(ret|nop|paciasp|autiasp) ?.*",
        r"(adrp|add|sub|asr|lsr|cmp|cbz|cbnz|b|b\.\w+|bl|br|blr|ldr|ldrb|ldp|mov|hint|bti) .*",
        r"(stp|str) x.*\[sp.*|strb .*",
    ),
    start_addresses=False,
)
_RISCV64 = Architecture(
    name="riscv64",
    spellings=(),
    elf_machine="EM_RISCV",
    debian="riscv64",
    loader="/lib/ld-linux-riscv64-lp64d.so.1",
    static_cpu="baseline_rv64+v",
    emulated_cpu="rv64,v=true,vext_spec=v1.0,vlen=256,elen=64",
    openblas=(
        "0.3.34 0.3.34.481.3 manylinux_2_39_riscv64 b27d19793b78825a5cd8a116771815ed29a651658fc4c03bcdd4b50542ceee46",
    ),
    compilers="GCC 14, Clang 17, zig or a later one",
    baseline=("baseline_rv64", "rv64gc"),
    cpu_option="-mcpu",
    objdump="--mattr=+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbs",
    jumps=re.compile(r"(?:c\.)?(?:b(?:eq|ne|lt|ge|gt|le)u?z?|j|jal)"),
    linked_jumps=(16, 17, 44, 45),  # R_RISCV_BRANCH, _JAL, _RVC_BRANCH, _RVC_JUMP: with relaxation
    absolute=2,
    relative=3,
    chosen=58,
    system_calls=re.compile(r"ecall|scall"),
    forbidden=_words(
        r"ecall|ebreak|c\.ebreak|scall|sbreak|[msu]ret|mnret|dret|wfi|wrs\.\w+|sfence\.\w+|hfence\.\w+|sinval\.\w+",
        r"fence\.i|rd(?:cycle|time|instret)h?|csr\w*|f[rs](?:csr|rm|flags)i?|hlvx?\.\w+|hsv\.\w+|cbo\.\w+",
    ),
    harmless=re.compile(r"csrr \w+, (?:vlenb|vl|vtype)"),
    marks=((re.compile(r"slti zero,.*"), _MARK),),
    start_files=_words(
        r"(ret|nop) ?.*|(auipc|addi?|sub|srai|srli|beqz|bnez|j|jr|jal|jalr|ld|lbu|lb|mv|li|lui|call|tail) .*",
        r"sd (ra|s0), .*\(sp\)|sb .*",
    ),
    start_addresses=False,
)

ARCHITECTURES = {one.name: one for one in (_X86_64, _AARCH64, _RISCV64)}
_SPELLINGS = {word.lower(): one.name for one in ARCHITECTURES.values() for word in one.spellings}
_ELF_MACHINES = {one.elf_machine: one for one in ARCHITECTURES.values()}


def architecture(name: str) -> Architecture:
    """The record of an architecture. Raises UsageError for an unknown one."""
    if name not in ARCHITECTURES:
        raise errors.unknown_name("architecture", name, ARCHITECTURES)
    return ARCHITECTURES[name]


def of_elf(machine: str) -> Architecture | None:
    """By what an ELF file says of its machine; None for one that is not known."""
    return _ELF_MACHINES.get(machine)


def of_uname(machine: str) -> str:
    """What `uname -m` says, in our spelling."""
    return _SPELLINGS.get(machine.lower(), machine.lower())


def host_arch() -> str:
    """The architecture of this machine: x86_64, aarch64, riscv64, ..."""
    return of_uname(_python_platform.machine())
