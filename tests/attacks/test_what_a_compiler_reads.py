"""An object is made of the source, tensorop's call.h and the compiler's own headers. What a template that nobody read
before names beside these cannot be seen by the compiler, and where no guard is to be had it is refused afterwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tensorop.model.kernel import Artifact, Source
from tensorop.model.trial import Kind, Outcome
from tensorop.provision import view, zig
from tensorop.toolchain import compile as building
from tests.support import kernels

KEY = "sk-of-somebody"
READS = {
    "an absolute include": '#include "{secret}"\n',
    "a way out of the folder": '#include "../../../../secret.h"\n',
    "an embedded file": 'const char text[] = {{\n#embed "{secret}"\n}};\n',
    "a system's header": "#include </usr/include/stdio.h>\n",
    "the accounts": '#include "/etc/passwd"\n',
    "the accounts, embedded": 'const char text[] = {{\n#embed "/etc/passwd"\n}};\n',
    "the environment": 'const char text[] = {{\n#embed "/proc/self/environ"\n}};\n',
}
ASSEMBLED = {
    "the assembler's include": '__asm__(".section .rodata\\n.incbin \\"{secret}\\"");\n',
    "the accounts by the assembler": '__asm__(".section .rodata\\n.incbin \\"/etc/passwd\\"");\n',
}
ASKED = '#if __has_include("{secret}")\n#error it is there\n#endif\n'
GUARDS = ["nl", "n", "l"]


def compiled(text: str, place: Path, guards: str | None = None) -> Artifact | Outcome:
    secret = place / "secret.h"
    secret.write_text(f"#error {KEY}\n")
    source = Source((("kernel.c", text.format(secret=secret) + "int x;\n"),))
    return building.compile_source(source, building.candidate_flags(kernels.platform()), work=place, guards=guards)


def works(guards: str) -> None:
    if not set(guards) <= set(view.guards()):
        pytest.skip(f"not to be had on this machine: {view.describe(guards)}")


@pytest.mark.parametrize("guards", GUARDS)
@pytest.mark.parametrize("what", READS | ASSEMBLED)
def test_a_compiler_behind_a_guard_sees_no_file_of_this_machine(tmp_path: Path, what: str, guards: str) -> None:
    works(guards)
    made = compiled((READS | ASSEMBLED)[what], tmp_path, guards)
    assert isinstance(made, Outcome), made
    # clang goes on without an embedded file that it does not find
    assert made.kind is Kind.COMPILE or made.message == "view: its C reads what the compiler did not list"
    assert KEY not in made.message + made.log
    assert "root:" not in made.message + made.log
    assert not list(tmp_path.rglob("kernel.o"))


@pytest.mark.parametrize("what", READS)
def test_what_read_a_file_of_this_machine_is_refused_where_there_is_no_guard(tmp_path: Path, what: str) -> None:
    made = compiled(READS[what], tmp_path, "")
    assert isinstance(made, Outcome), made
    assert made.kind in (Kind.REFUSED, Kind.COMPILE)
    if made.kind is Kind.REFUSED:
        assert made.message.startswith("view: its C reads ")
    assert not list(tmp_path.rglob("kernel.o"))


def test_a_compiler_with_a_root_of_its_own_does_not_know_what_files_there_are(tmp_path: Path) -> None:
    works("n")
    made = compiled(ASKED, tmp_path, "n")
    assert isinstance(made, Artifact), made


def test_behind_landlock_a_file_is_not_read_to_say_that_it_is_there(tmp_path: Path) -> None:
    works("l")
    made = compiled(ASKED, tmp_path, "l")
    assert isinstance(made, Artifact) or "it is there" not in made.log, made


@pytest.mark.parametrize("guards", [*GUARDS, "", None])
def test_headers_of_the_compiler_and_call_h_may_be_read(tmp_path: Path, guards: str | None) -> None:
    works(guards or "")
    text = "#include <immintrin.h>\n#include <stdint.h>\n#include <stddef.h>\n#include <math.h>\n"
    text += '#include "call.h"\n#include "own file.h"\nint x;\n'
    source = Source((("kernel.c", text), ("own file.h", "typedef int mine;\n")))
    flags = building.candidate_flags(kernels.platform())
    made = building.compile_source(source, flags, work=tmp_path, guards=guards)
    assert isinstance(made, Artifact), made
    assert sorted(path.name for path in made.path.parent.iterdir() if path.suffix in (".c", ".h", ".o")) == [
        "kernel.c",
        "kernel.o",
        "own file.h",
    ]


def test_other_headers_of_tensorop_are_none_of_a_kernels(tmp_path: Path) -> None:
    made = compiled('#include "harness.h"\n', tmp_path)
    assert isinstance(made, Outcome)
    assert made.kind is Kind.COMPILE


def test_a_compiler_finds_no_key_in_its_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    assert KEY not in zig.zig_environment().values()


def test_without_any_guard_the_compiler_is_started_as_it_is(tmp_path: Path) -> None:
    assert view.behind("", ["zig", "version"], tmp_path) == ("zig", "version")
    assert view.guards() in ("nl", "n", "l", "")
