"""Instructions that a kernel has no business with, and none of which a compiler makes of plain C and primitives."""

from __future__ import annotations

import re

from tensorop.build.disassembly import Line

_UNREADABLE = re.compile(r"<unknown>|\(bad\)|\.(?:byte|short|word|long|quad|inst|2byte|4byte|8byte)")
_X86 = re.compile(
    r"syscall|sysenter|sysexit\w*|sysret\w*|int|int1|int3|icebp|into|iret\w*|vmcall|vmmcall|vmfunc|enclu|enclv|encls"
    r"|rdtscp?|rdpmc|rdmsr|wrmsr|rdpru|rdrand|rdseed|rdpid|cpuid|xgetbv|xsetbv|rdpkru|wrpkru|(?:rd|wr)[fg]sbase\w*"
    r"|v?ldmxcsr|fldcw|fldenv|frstor|fxrstor\w*|xrstors?\w*|xbegin|xabort|xend|u?mwaitx?|umonitor|monitorx?|tpause"
    r"|in|ins[bwd]?|out|outs[bwd]?|hlt|cli|sti|clts|lgdt|lidt|lldt|lmsw|ltr|invd|wbinvd|invlpg|swapgs"
    r"|l?jmpf?\s*far|ljmp\w*|lcall\w*|retf\w*|lret\w*|senduipi|uiret|clui|stui|ptwrite\w*|str|sgdt|sidt|sldt|smsw"
)
_SYSTEM_X86 = re.compile(r"syscall|sysenter|int|vmcall|vmmcall|enclu")
_SEGMENT = re.compile(r"\b[fg]s:|^(?:[c-gs]s|[cd]r\d+),|,\s*(?:[cd]r\d+)$")
_RISCV = re.compile(
    r"ecall|ebreak|c\.ebreak|scall|sbreak|[msu]ret|mnret|dret|wfi|wrs\.\w+|sfence\.\w+|hfence\.\w+|sinval\.\w+|fence\.i"
    r"|rd(?:cycle|time|instret)h?|csr\w*|f[rs](?:csr|rm|flags)i?|hlvx?\.\w+|hsv\.\w+|cbo\.\w+"
)
_READABLE_CSRS = re.compile(r"\w+, (?:vlenb|vl|vtype)")
_AARCH64 = re.compile(
    r"svc|hvc|smc|hlt|dcps\d|drps|eret\w*|msr|mrs|msrr|mrrs|sys|sysl|sysp|at|dc|ic|tlbi|cfp|cpp|dvp|wf[ei]t?|sevl?"
    r"|brb|gcs\w+|tstart|ttest|tcommit|tcancel|ld64b|st64b\w*"
)


def system_call(arch: str, line: Line) -> bool:
    """Whether an instruction asks the kernel of the operating system, or what is below it, for something."""
    if arch == "x86_64":
        return _SYSTEM_X86.fullmatch(line.mnemonic) is not None
    return line.mnemonic in (("ecall", "scall") if arch == "riscv64" else ("svc", "hvc", "smc"))


def forbidden(arch: str, line: Line) -> str | None:
    """Why an instruction is refused, None where it is not."""
    name = line.mnemonic
    if _UNREADABLE.fullmatch(name):
        return "something that is no instruction"
    if system_call(arch, line):
        return f"a system call ({name})"
    if arch == "x86_64":
        if _SEGMENT.search(line.operands):
            return f"the thread's own memory or a control register ({name} {line.operands})"
        return f"the instruction {name}" if _X86.fullmatch(name) else None
    if arch == "riscv64":
        if name == "slti" and line.operands.startswith("zero,"):
            return "a mark of the measured region (slti x0)"
        if name == "csrr" and _READABLE_CSRS.fullmatch(line.operands):
            return None
        return f"the instruction {name} {line.operands}".rstrip() if _RISCV.fullmatch(name) else None
    if name == "hint" and int(line.operands.lstrip("#") or "0", 0) >= 96:
        return f"a mark of the measured region (hint {line.operands})"
    return f"the instruction {name} {line.operands}".rstrip() if _AARCH64.fullmatch(name) else None
