"""The record of each architecture. All code that depends on an architecture reads it here.

A new architecture needs a record here, a platform, a primitive set, and a section in eight files of native/: region.h,
jail.h, harness_state.c, view.c, qemu_jail.c, product/isa.h.j2, product/cpu.c.j2 and product/threads.c.j2. A board model
also needs plugin/decode_ARCH.c and an entry in plugin/classes.c.
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
    """One architecture. Patterns match instructions as LLVM prints them (x86-64: in Intel syntax)."""

    name: str  # the name in platform files and of `uname -m`
    spellings: tuple[str, ...]  # other names in `uname -m` and CMake
    elf_machine: str  # e_machine of ELF files
    debian: str  # Debian's name of the architecture
    loader: str  # path of glibc's dynamic loader
    static_cpu: str  # CPU of all harnesses: zig rebuilds its start-up and support code for each CPU
    emulated_cpu: str  # QEMU's -cpu with the most features, for programs without a platform
    openblas: tuple[str, ...]  # its wheels: versions of OpenBLAS and of the wheel, pip's platform, SHA-256
    intrinsics: str  # the compiler's header of intrinsics, where it takes long to read; empty: it does not
    compilers: str  # that build a product: with __builtin_shufflevector, and RISC-V's vector intrinsics
    baseline: tuple[str, str]  # a CPU in zig's spelling and the equal -march of GCC and Clang; "": none
    cpu_option: str  # option of GCC and Clang for other CPUs
    objdump: str  # option of llvm-objdump; an older LLVM ignores features that it does not know
    syntax: str  # the directive with which LLVM's assembler reads llvm-objdump's text; empty: none
    jumps: Pattern[str]  # direct jumps and calls
    linked_jumps: tuple[int, ...]  # relocation types of jumps within a function that the linker resolves
    absolute: int  # relocation type of an address in a table
    relative: int  # relocation type of a library's own address, written by the loader
    chosen: int  # relocation type of an address that code of the library chooses (IRELATIVE)
    system_calls: Pattern[str]
    forbidden: Pattern[str]  # mnemonics that a kernel must not have
    harmless: Pattern[str] | None  # whole instructions that are allowed although `forbidden` matches
    marks: tuple[tuple[Pattern[str], str], ...]  # refused whole instructions, each with a description
    start_files: Pattern[str]  # whole instructions of compilers' start files
    start_addresses: bool  # whether each of these contains the address that it uses or calls

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
    intrinsics="immintrin.h",
    compilers="GCC 12, Clang 12, zig or a later one",
    baseline=("", ""),
    cpu_option="-march",
    objdump="--x86-asm-syntax=intel",
    syntax=".intel_syntax noprefix",
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
    intrinsics="arm_neon.h",
    compilers="GCC 12, Clang 12, zig or a later one",
    baseline=("baseline", "armv8-a"),
    cpu_option="-mcpu",
    objdump="--mattr=+v8.6a,+fullfp16,+fp16fml,+dotprod,+bf16,+i8mm",
    syntax="",
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
    intrinsics="",
    compilers="GCC 14, Clang 17, zig or a later one",
    baseline=("baseline_rv64", "rv64gc"),
    cpu_option="-mcpu",
    objdump="--mattr=+m,+a,+f,+d,+c,+v,+zba,+zbb,+zbs",
    syntax="",
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
    """The architecture with this e_machine; None for an unknown one."""
    return _ELF_MACHINES.get(machine)


def of_uname(machine: str) -> str:
    """The architecture's name for an output of `uname -m`."""
    return _SPELLINGS.get(machine.lower(), machine.lower())


def host_arch() -> str:
    """The architecture of this machine: x86_64, aarch64, riscv64, ..."""
    return of_uname(_python_platform.machine())
