"""Machine code that a kernel has no business with: refused before it is linked, and again before it is packaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.build import gate, instructions
from tensorop.build.disassembly import Line
from tensorop.errors import JobError, MissingTool
from tensorop.model.trial import Kind
from tensorop.package import library
from tensorop.package.sources import Sources, Unit
from tensorop.provision import objdump
from tests.support import kernels

FORBIDDEN = {
    "x86_64": "syscall|sysenter|int 128|int3|rdtsc|rdtscp|rdpmc|cpuid|wrpkru|rdpkru|xgetbv|wrfsbase rax|rdfsbase rax"
    "|mov rax, qword ptr fs:[0]|mov rax, qword ptr fs:[rdi + 8]|mov fs, ax|mov rax, cr0|vldmxcsr dword ptr [rax]"
    "|ldmxcsr dword ptr [rax]|rdrand rax|in al, dx|out dx, al|hlt|xbegin 0x10|retfq|iretq|<unknown> |.byte 0x06|(bad) "
    "|mov qword ptr gs:[0], rax|vmcall|swapgs",
    "riscv64": "ecall|ebreak|slti zero, zero, 1042|rdcycle a0|rdtime a0|rdinstret a0|csrw 1, a0|csrr a0, cycle|fence.i"
    "|csrrw a0, vstart, a1|fsrm a0|frflags a0|csrwi vxrm, 2|wfi|mret|sret|cbo.zero (a0)|<unknown> ",
    "aarch64": "svc #0|hvc #1|smc #0|hint #101|mrs x0, TPIDR_EL0|msr FPCR, x0|mrs x0, CNTVCT_EL0|dc zva, x0|ic ivau, x0"
    "|sys #3, c7, c5, #1, x0|wfe|wfi|hlt #1|eret|at s1e0r, x0|.word 0xd4000001|<unknown> ",
}
FINE = {
    "x86_64": "vfmadd231ps ymm0, ymm1, ymmword ptr [rdi]|mov rax, qword ptr [rsp + 8]|ud2|vzeroupper|ret|inc rax"
    "|prefetcht0 byte ptr [rsi + 64]|vinserti128 ymm0, ymm1, xmm2, 1|movss xmm0, dword ptr [rip]|cmovs eax, ecx",
    "riscv64": "csrr a0, vlenb|vsetvli a0, a1, e32, m1, ta, ma|slti a0, a1, 5|vle32.v v8, (a0)|unimp|fence rw, rw|ret",
    "aarch64": "fmla v0.4s, v1.4s, v2.s[0]|nop|hint #34|brk #0x1|prfm pldl1keep, [x0]|ldp q0, q1, [x0]|ret",
}
OBJECTS = {
    "a jump into an instruction": '__asm__ volatile("jmp 1f + 1\\n1: mov $0x050f, %%eax" ::: "eax");',
    "a jump out of its section": '__asm__ volatile("jmp . + 0x10000000");',
    "a jump between the bytes of a call": '__asm__ volatile("jne 1f + 2\\n1: movabs $0x50f050f050f, %%rax" ::: "rax");',
}
SECTIONS = {
    ".deplibs": '.pushsection .deplibs,\\"MS\\",@llvm_dependent_libraries,1\\n.asciz \\"m\\"\\n.popsection',
    ".linker-options": '.pushsection .linker-options,\\"e\\",@llvm_linker_options\\n.asciz \\"a\\"\\n.popsection',
    ".mine": '.pushsection .mine,\\"ax\\",@progbits\\nret\\n.popsection',
    ".note.mine": '.pushsection .note.mine,\\"a\\",@note\\n.long 1\\n.popsection',
    ".preinit_array": '.pushsection .preinit_array,\\"aw\\",@preinit_array\\n.quad 0\\n.popsection',
    ".data.rel.ro": '.pushsection .data.rel.ro,\\"aw\\",@progbits\\n.quad 0\\n.popsection',
}


def lines(text: str) -> list[Line]:
    return [Line(0, word.partition(" ")[0], word.partition(" ")[2]) for word in text.split("|")]


@pytest.mark.parametrize("arch", FORBIDDEN)
def test_instructions_are_refused_and_a_kernels_own_are_not(arch: str) -> None:
    passed = [line for line in lines(FORBIDDEN[arch]) if instructions.forbidden(arch, line) is None]
    assert passed == []
    refused = [(line, said) for line in lines(FINE[arch]) if (said := instructions.forbidden(arch, line))]
    assert refused == []


@pytest.mark.parametrize("what", OBJECTS)
def test_jumps_to_where_no_instruction_begins_are_refused(tmp_path: Path, what: str) -> None:
    refused = gate.check_object(kernels.built(f"(void)c; {OBJECTS[what]}", tmp_path).path)
    assert refused is not None
    assert refused.kind is Kind.OBJECT
    assert "a jump into an instruction or out of its section" in refused.message


@pytest.mark.parametrize("section", SECTIONS)
def test_sections_beyond_code_and_constants_are_refused(tmp_path: Path, section: str) -> None:
    refused = gate.check_object(kernels.built("(void)c;", tmp_path, before=f'__asm__("{SECTIONS[section]}");').path)
    assert refused is not None
    assert f"section {section} " in refused.message


def test_an_entry_in_the_middle_of_an_instruction_is_refused(tmp_path: Path) -> None:
    text = '__asm__(".globl tensorop_candidate_1\\n.set tensorop_candidate_1, tensorop_candidate_0 + 1");'
    body = "((unsigned *)c->buffer[0])[0] = 0x050f050fu;"
    refused = gate.check_object(kernels.built(body, tmp_path, before=text).path)
    assert refused is not None
    assert "instructions overlap" in refused.message


def test_without_a_disassembler_nothing_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(**_: object) -> Path:
        raise MissingTool("no llvm-objdump", hint=objdump.HINT)

    made = kernels.built("((double *)c->buffer[0])[0] = 41.5;", tmp_path)
    monkeypatch.setattr(objdump, "objdump", absent)
    with pytest.raises(MissingTool, match="no llvm-objdump"):
        gate.check_object(made.path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("__attribute__((constructor)) void early(void) { } void way(void) { }", "array|early"),
        ("int system(const char *); void way(void) { system(0); }", "'system'"),
        ('void way(void) { __asm__ volatile("syscall"); }', "system call"),
        ("static int n; int way(void) { return ++n; }", ".bss"),
    ],
)
def test_a_products_kernel_is_read_before_it_is_packaged(text: str, said: str) -> None:
    with pytest.raises(JobError, match=f"the object is refused: .*({said})"):
        library._compile(Unit("k.c", text, tuned=True, entries=("way",)), Sources((), (), ()), kernels.platform())
