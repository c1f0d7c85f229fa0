"""Machine code that a kernel has no business with: refused before it is linked, and again before it is packaged."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from elftools.construct import Container
from elftools.elf.elffile import ELFFile

from tensorop import api
from tensorop.commands import opened, verify
from tensorop.errors import JobError, MissingTool
from tensorop.kits import export, processor
from tensorop.model.architecture import architecture, host_arch
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.package import library
from tensorop.package.sources import Sources, Unit
from tensorop.provision import llvm
from tensorop.provision.zig import zig_cc, zig_environment
from tensorop.specs import platforms
from tensorop.target import KitRequest
from tensorop.toolchain import disassembly, gate, needs
from tensorop.toolchain.disassembly import Instruction
from tests.support import kernels, products

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


def lines(text: str) -> list[Instruction]:
    return [Instruction(0, word.partition(" ")[0], word.partition(" ")[2]) for word in text.split("|")]


@pytest.mark.parametrize("arch", FORBIDDEN)
def test_instructions_are_refused_and_a_kernels_own_are_not(arch: str) -> None:
    of = architecture(arch)
    passed = [line for line in lines(FORBIDDEN[arch]) if disassembly.forbidden(of, line) is None]
    assert passed == []
    refused = [(line, said) for line in lines(FINE[arch]) if (said := disassembly.forbidden(of, line))]
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


def test_a_table_leads_to_where_an_instruction_begins(tmp_path: Path) -> None:
    table = '.pushsection .rodata,\\"a\\",@progbits\\n.quad 8b + 1\\n.popsection'
    body = f'(void)c; __asm__ volatile("8: movabs $0x50f050f050f, %%rax\\n{table}" ::: "rax");'
    refused = gate.check_object(kernels.built(body, tmp_path).path, relocated=True)
    assert refused is not None
    assert "an address points into an instruction of .text" in refused.message


def test_without_a_disassembler_nothing_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: object, **__: object) -> Path:
        raise MissingTool("no llvm-objdump", hint=llvm.OBJDUMP.hint)

    made = kernels.built("((double *)c->buffer[0])[0] = 41.5;", tmp_path)
    monkeypatch.setattr(llvm.LlvmTool, "program", absent)
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


def of(file: str, text: str, **more: object) -> None:
    """Compiles a file of a product as the part that it is."""
    unit = Unit(file, text, needs=needs.OF_FILE.get(file, needs.OPERATOR), **more)  # type: ignore[arg-type]
    library._compile(unit, Sources((), (), ()), kernels.platform())


PARTS = {
    "a constructor": "__attribute__((constructor)) static void early(void) { *(volatile int *)8 = 1; }",
    "a destructor": "__attribute__((destructor)) static void late(void) { tensorop_it = 1; }",
    "an entry before all": '__attribute__((section(".preinit_array"), used)) static void (*p)(void) = tensorop_way;',
    "an old constructor": '__attribute__((section(".ctors"), used)) static void (*p)(void) = tensorop_way;',
    "a function that code chooses": "static void *choose(void) { return tensorop_way; }"
    ' void tensorop_other(void) __attribute__((ifunc("choose")));',
    "a library's name": "int system(const char *); void tensorop_more(void) { system(0); }",
    "a name of everybody's": "void *malloc(unsigned long n) { (void)n; return 0; }",
    "a system call": 'void tensorop_more(void) { __asm__ volatile("syscall"); }',
    "a thread's own memory": "_Thread_local int tensorop_own; int tensorop_more(void) { return ++tensorop_own; }",
    "a section of its own": '__asm__(".pushsection .mine,\\"ax\\",@progbits\\nret\\n.popsection");',
}


@pytest.mark.parametrize("file", ["cpu.c", "dispatch_f32.c"])
@pytest.mark.parametrize("what", PARTS)
def test_no_part_of_a_product_holds(what: str, file: str) -> None:
    text = f"int tensorop_it; void tensorop_way(void) {{ tensorop_it = 2; }} {PARTS[what]}"
    with pytest.raises(JobError, match=f"cannot build {file} of the product: the object is refused: "):
        of(file, text)


def test_a_part_has_what_it_needs_and_not_what_others_need() -> None:
    asks = '{ unsigned a; __asm__ volatile("cpuid" : "=a"(a) : "a"(0) : "ebx", "ecx", "edx"); return (int)a; }'
    of("cpu.c", f"int tensorop_asks(void) {asks}")
    rounds = "{ __builtin_ia32_ldmxcsr(0x1f80); }"
    of("threads.c", f"void tensorop_rounds(void) {rounds}")
    free = "void free(void *); void tensorop_gives(void *p) { free(p); }"
    of("workspace.c", free)
    for file, text in (
        ("threads.c", f"int tensorop_asks(void) {asks}"),
        ("cpu.c", f"void tensorop_rounds(void) {rounds}"),
        ("dispatch_f32.c", free),
    ):
        with pytest.raises(JobError, match="the object is refused: "):
            of(file, text)


def test_what_an_operators_file_calls_is_what_its_product_says(tmp_path: Path) -> None:
    text = "double exp(double); double tensorop_more(double x) { return exp(x); }"
    with pytest.raises(JobError, match="it calls or reads 'exp'"):
        of("soft.c", text)
    unit = Unit("soft.c", text, needs=needs.OPERATOR.with_calls(["exp"]))
    library._compile(unit, Sources((), (), ()), kernels.platform())


# --- libraries of others ------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def product(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return products.install("generic", tmp_path_factory.mktemp("honest") / "gemm", ("f32",))


def relinked(folder: Path, more: str, *flags: str) -> None:
    """The product's library linked again with another file and other flags, without its list of exports."""
    file = folder / "more.c"
    file.write_text(more)
    whole = (folder / "lib/libtensorop_gemm.so").resolve()
    archive = folder / "lib/libtensorop_gemm.a"
    words = ["-target", platforms.load("generic").compiler.shared_target, "-shared", "-fPIC", "-O2", "-g0"]
    words += ["-fvisibility=hidden", "-Wl,-soname,libtensorop_gemm.so.0", "-Wl,--whole-archive", str(archive)]
    words += ["-Wl,--no-whole-archive", str(file), *flags, "-lpthread", "-o", str(whole)]
    subprocess.run([*zig_cc(), *words], env=zig_environment(), check=True, capture_output=True, timeout=120)
    file.unlink()


SEEN = '__attribute__((visibility("default")))'
LIBRARIES = {
    "a constructor": (
        "__attribute__((constructor)) static void early(void) { *(volatile int *)8 = 1; }",
        "DT_INIT_ARRAY",
    ),
    "an empty one": ('__attribute__((constructor)) static void early(void) { __asm__ volatile(""); }', "DT_INIT_ARRAY"),
    "one that sets a byte": (
        "static volatile char it; __attribute__((constructor)) static void early(void) { it = 1; }",
        "DT_INIT_ARRAY",
    ),
    "one that calls": (
        'char *getenv(const char *); __attribute__((constructor)) static void early(void) { getenv("x"); }',
        "DT_INIT_ARRAY",
    ),
    "two": (
        "static volatile int it; __attribute__((constructor)) static void early(void) { it = 1; }"
        "__attribute__((constructor(200))) static void first(void) { it = 2; }",
        "DT_INIT_ARRAY has 2 entries",
    ),
    "a destructor": (
        "static volatile int it; __attribute__((destructor)) static void late(void) { it = 1; }",
        "DT_FINI_ARRAY|__cxa_atexit",
    ),
    "a function that code chooses": (
        "static int one(void) { return 1; } static void *choose(void) { return one; }"
        ' int tensorop_other(void) __attribute__((ifunc("choose"), visibility("default")));',
        "IFUNC|is resolved by code",
    ),
    "a name of everybody's": (f"{SEEN} void *malloc(unsigned long n) {{ (void)n; return 0; }}", "it exports 'malloc'"),
    "a command": (
        f'int system(const char *); {SEEN} int tensorop_more(void) {{ return system("x"); }}',
        "'system', which none of its parts needs",
    ),
    "a system call": (f'{SEEN} void tensorop_f(void) {{ __asm__ volatile("syscall"); }}', "a system call"),
    "names without end": (
        "\n".join(f"{SEEN} void tensorop_{number}(void) {{ }}" for number in range(10_000)),
        "names, expected at most 10000",
    ),
    "code without end": (
        f'{SEEN} void tensorop_f(void) {{ __asm__ volatile(".rept 700000\\nnop\\n.endr"); }}',
        "more code than is read",
    ),
}


def refused(own: Path, said: str) -> None:
    if host_arch() == "x86_64":  # the plain platform's; in Python it is read because no manifest says it was verified
        with pytest.raises(JobError, match=f"(is refused|cannot be read): .*({said})"):
            api.load(own)
    with pytest.raises(JobError, match=f"(is refused|cannot be read): .*({said})") as caught:
        opened.open_product(own).require_fit()
    assert caught.value.hint
    with pytest.raises(JobError, match=r"is refused|cannot be read"):
        list(verify.quick(*products.reached(own), Seed.draw()))


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", LIBRARIES)
def test_a_library_of_others_is_read_before_it_is_loaded(what: str, product: Path, tmp_path: Path) -> None:
    text, said = LIBRARIES[what]
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    relinked(own, text)
    refused(own, said)


def test_a_library_that_looks_elsewhere(product: Path, tmp_path: Path) -> None:
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    relinked(own, "", "-Wl,-rpath,/tmp/evil")
    refused(own, "/tmp/evil")
    more = tmp_path / "libevil.so"
    words = [*zig_cc(), "-target", platforms.load("generic").compiler.shared_target, "-shared", "-O2", "-o", str(more)]
    words += ["-Wl,-soname,libevil.so", "-x", "c", "-"]
    text = f"{SEEN} int tensorop_evil(void) {{ return 1; }}"
    subprocess.run(words, env=zig_environment(), input=text.encode(), check=True, capture_output=True, timeout=60)
    relinked(own, f"int tensorop_evil(void); {SEEN} int tensorop_g(void) {{ return tensorop_evil(); }}", str(more))
    refused(own, "it needs the library 'libevil.so'")


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("tag", "value", "said"),
    [
        (0x0C, 0x1800, "DT_INIT, at 0x1800"),
        (0x16, 0, "TEXTREL"),
        (0x1E, 4, "TEXTREL"),
        (0x6FFFFEFC, 1, "DT_AUDIT makes the loader load another library"),
        (0x7FFFFFFF, 1, "DT_FILTER makes the loader load another library"),
    ],
)
def test_what_a_loader_is_told(tag: int, value: int, said: str, product: Path, tmp_path: Path) -> None:
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    whole = (own / "lib/libtensorop_gemm.so").resolve()
    data = bytearray(whole.read_bytes())
    at = data.index(struct.pack("<QQ", 0x1E, 8))  # DT_FLAGS: BIND_NOW
    data[at : at + 16] = struct.pack("<QQ", tag, value)
    whole.write_bytes(data)
    refused(own, said)


def section(data: bytearray, name: str) -> tuple[int, Container]:
    """Where the header of a section lies, and what it says."""
    elf = ELFFile(io.BytesIO(bytes(data)))
    found = next((number, one.header) for number, one in enumerate(elf.iter_sections()) if one.name == name)
    return elf["e_shoff"] + found[0] * elf["e_shentsize"], found[1]


def changed(data: bytearray, kind: int, *change: tuple[int, int], like: int = 0) -> None:
    """Words of the program header of a kind (offset in it, value); like: first all of that of another kind."""
    at = {struct.unpack_from("<I", data, at)[0]: at for at in range(64, 64 + 56 * data[0x38], 56)}
    if like:
        data[at[kind] : at[kind] + 56] = data[at[like] : at[like] + 56]
    for offset, value in change:
        struct.pack_into("<I" if offset < 8 else "<Q", data, at[kind] + offset, value)


def other_names(data: bytearray) -> None:
    """Sections tell of a table of names that no loader reads; the loader's names another library."""
    header, names = section(data, ".dynstr")
    begin, size = names["sh_offset"], names["sh_size"]
    struct.pack_into("<Q", data, header + 24, len(data))
    data += data[begin : begin + size]
    data[(at := data.index(b"libc.so.6", begin)) : at + 9] = b"evil.so.6"


def relocation(data: bytearray, at: int | None, kind: int, name: int) -> None:
    own = section(data, ".rela.dyn")[1]["sh_offset"]
    place = struct.unpack_from("<Q", data, own)[0] if at is None else at
    struct.pack_into("<QQQ", data, own, place, name << 32 | kind, 0x1800)


STACK_NOTE, RELRO, DYNAMIC, LOAD = 0x6474E551, 0x6474E552, 2, 1
CODE = 1 | 4  # flags of a segment
TAMPERED: dict[str, tuple[Callable[[bytearray], object], str]] = {
    "no sections": (lambda d: d.__setitem__(slice(0x3C, 0x40), bytes(4)), "is no instruction in a section of code"),
    "code that is called data": (
        lambda d: struct.pack_into("<Q", d, section(d, ".text")[0] + 8, 2),
        "is no instruction in a section of code",
    ),
    "less code than there is": (
        lambda d: struct.pack_into("<Q", d, section(d, ".text")[0] + 32, 16),
        "is no instruction in a section of code",
    ),
    "two dynamic sections": (lambda d: changed(d, RELRO, like=DYNAMIC), "it has 2 dynamic sections"),
    "a dynamic section elsewhere": (lambda d: changed(d, DYNAMIC, (16, 0x2000)), "expected one in a segment"),
    "names that sections do not tell": (other_names, "it needs the library 'evil.so.6'"),
    "a segment on the code": (
        lambda d: changed(d, RELRO, (0, LOAD), (4, CODE), (8, 0), (16, 0x3000), (32, 4096), (40, 4096)),
        "a segment lies on another one, at 0x3000",
    ),
    "a stack that is executed": (lambda d: changed(d, STACK_NOTE, (4, CODE)), "PT_GNU_STACK can be"),
    "relocations without end": (
        lambda d: struct.pack_into("<Q", d, d.index(struct.pack("<QQ", 9, 24)) - 8, 24 * 20_000),  # before DT_RELAENT
        "20000 relocations, expected at most 10000",
    ),
    "no word of the stack": (lambda d: changed(d, STACK_NOTE, (0, 0)), "no stack is executed"),
    "a loader that changes what it reads": (
        lambda d: relocation(d, section(d, ".dynamic")[1]["sh_addr"] + 8, 8, 0),
        "the loader changes what it runs",
    ),
    "a name beyond the names": (lambda d: relocation(d, None, 6, 60), "a name that is none of its own"),
}


@pytest.mark.one_in(5)
@pytest.mark.parametrize("what", TAMPERED)
def test_a_library_is_what_a_loader_sees(what: str, product: Path, tmp_path: Path) -> None:
    if host_arch() != "x86_64":
        pytest.skip("the bytes are those of x86-64")
    change, said = TAMPERED[what]
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    whole = (own / "lib/libtensorop_gemm.so").resolve()
    data = bytearray(whole.read_bytes())
    change(data)
    whole.write_bytes(data)
    refused(own, said)


def test_an_honest_library_is_loaded_whoever_linked_it(product: Path, tmp_path: Path) -> None:
    opened.open_product(product).require_fit()
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    relinked(own, "")
    opened.open_product(own).require_fit()
    if host_arch() != "x86_64" or shutil.which("gcc") is None:
        pytest.skip("no gcc for x86-64 is here")
    archive, whole = own / "lib/libtensorop_gemm.a", (own / "lib/libtensorop_gemm.so").resolve()
    words = ["gcc", "-shared", "-o", whole, "-Wl,--whole-archive", archive, "-Wl,--no-whole-archive", "-lpthread"]
    subprocess.run(words, check=True, capture_output=True, timeout=60)
    opened.open_product(own).require_fit()  # with gcc's start files


@pytest.mark.parametrize("name", ["libtensorop_cblas.so.0", "libm.so.6"])
def test_what_a_library_brings_with_it_is_read_too(name: str, product: Path, tmp_path: Path) -> None:
    """The file that the loader finds, not the one that the product's link leads to."""
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    (own / "lib" / name).unlink(missing_ok=True)
    honest = sorted((own / "lib").glob("libtensorop_cblas.so.0.*"))[0]
    (own / "lib/libtensorop_cblas.so").unlink()
    (own / "lib/libtensorop_cblas.so").symlink_to(honest.name)
    text, said = LIBRARIES["a constructor"]
    (tmp_path / "early.c").write_text(text + f"{SEEN} int tensorop_evil(void) {{ return 1; }}")
    words = [*zig_cc(), "-target", platforms.load("generic").compiler.shared_target, "-shared", "-fPIC", "-O2"]
    words += [f"-Wl,-soname,{name}", "early.c", "-o", str(own / "lib" / name)]
    subprocess.run(words, env=zig_environment(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    uses = f"int tensorop_evil(void); {SEEN} int tensorop_g(void) {{ return tensorop_evil(); }}"
    relinked(own, uses, "-Wl,-rpath,$ORIGIN", str(own / "lib" / name))
    refused(own, f"it needs {own}/lib/{name}: .*{said}")
    alone = shutil.copytree(own, tmp_path / "alone", symlinks=True)
    shutil.rmtree(alone / "share", ignore_errors=True)
    if host_arch() == "x86_64":
        with pytest.raises(JobError, match=f"it needs .*{name}: .*{said}"):
            api.load(alone / "lib/libtensorop_gemm.so")


def test_what_programs_load_is_what_was_judged(product: Path, tmp_path: Path) -> None:
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    loaded = own / "lib/libtensorop_gemm.so.0"
    data = loaded.read_bytes()
    loaded.unlink()
    loaded.write_bytes(data)  # a copy, as where there are no links
    (own / "lib/libtensorop_gemm.so").unlink()
    (own / "lib/libtensorop_gemm.so").write_bytes(data)
    opened.open_product(own).require_fit()
    loaded.write_bytes(data + b"x")
    with pytest.raises(JobError, match=r"so\.0 is refused: it is another file than libtensorop_gemm\.so"):
        list(verify.quick(*products.reached(own), Seed.draw()))


def test_without_a_disassembler_a_library_is_loaded_and_said_to_be_unread(
    product: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if host_arch() != "x86_64":
        pytest.skip("the plain platform is one of x86-64")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    with pytest.warns(UserWarning, match=r"was not read either: llvm-objdump is absent \(apt-get install llvm"):
        api.load(product)


def test_an_archive_of_others_is_read_too(product: Path, tmp_path: Path) -> None:
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    (tmp_path / "early.c").write_text("int it; __attribute__((constructor)) static void early(void) { it = 1; }")
    words = [*zig_cc(), "-target", platforms.load("generic").compiler.shared_target, "-c", "early.c", "-o", "early.o"]
    subprocess.run(words, env=zig_environment(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    archive = own / "lib/libtensorop_gemm.a"
    words = [*zig_cc()[:-1], "ar", "rcsD", str(archive), "early.o"]
    subprocess.run(words, env=zig_environment(), cwd=tmp_path, check=True, capture_output=True, timeout=60)
    with pytest.raises(JobError, match=r"gemm\.a is refused: early\.o: section \.init_array"):
        opened.open_product(own).require_fit()
    with pytest.raises(JobError, match="is refused"):
        export.export(processor.read(opened.open_product(own)), tmp_path / "kit", KitRequest())


def member(name: str, data: bytes, size: object = None) -> bytes:
    fields = name.ljust(16), "0".ljust(32), str(len(data) if size is None else size).ljust(10), "`\n"
    return "".join(fields).encode() + data + b"\n" * (len(data) % 2)


def hidden(archive: bytes, other: bytes) -> bytes:
    """An index that leads into the table of names, where there is an object that no member is."""

    def index(at: int) -> bytes:
        return member("/", struct.pack(">II", 1, at) + b"tensorop_f\0\0")

    return archive[:8] + index(8 + len(index(0)) + 64) + member("//", b"x/\n\n" + member("e.o/", other)) + archive[8:]


ARCHIVES: dict[str, tuple[str, Callable[[bytes, bytes], bytes], str]] = {
    "a system call": ('__asm__ volatile("syscall");', lambda a, o: a + member("e.o/", o), "a system call"),
    "a name of everybody's": (
        "} void *malloc(unsigned long n) { (void)n; return 0;",
        lambda a, o: a + member("e.o/", o),
        "it defines 'malloc'",
    ),
    "an object that only the index knows": ("", hidden, "its index names byte 152, where no member begins"),
    "a size with a mark": ("", lambda a, o: a + member("e.o/", o, f"0_{len(o)}"), "expected a member at byte"),
    "a size beyond the end": ("", lambda a, o: a + member("e.o/", o, 10**9), "expected a member at byte"),
    "a rest": ("", lambda a, o: a + b"x" * 59, "expected a member at byte"),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("what", ARCHIVES)
def test_an_archive_is_what_a_linker_sees(what: str, product: Path, tmp_path: Path) -> None:
    text, change, said = ARCHIVES[what]
    if host_arch() != "x86_64":
        pytest.skip("the instruction is one of x86-64")
    made = tmp_path / "e.o"
    words = [*zig_cc(), "-target", platforms.load("generic").compiler.shared_target, "-fPIC", "-x", "c", "-", "-c"]
    text = f"void tensorop_f(void) {{ {text} }}"
    subprocess.run([*words, "-o", made], env=zig_environment(), input=text.encode(), check=True, timeout=60)
    own = shutil.copytree(product, tmp_path / "gemm", symlinks=True)
    archive = own / "lib/libtensorop_gemm.a"
    archive.write_bytes(change(archive.read_bytes(), made.read_bytes()))
    with pytest.raises(JobError, match=rf"gemm\.a (is refused|cannot be read): .*{said}"):
        opened.open_product(own).require_fit()
