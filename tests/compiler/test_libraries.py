"""The product's libraries, built for each architecture."""

import subprocess
import sys

import pytest

from tensorop import paths
from tensorop.model.kernel import Artifact, Source
from tensorop.model.trial import Kind, Outcome
from tensorop.package import library
from tensorop.package.library import Member
from tensorop.provision import zig
from tensorop.toolchain import shared_library
from tests.support import kernels, shared_objects

API = """#include "tensorop/api.h"
#include <pthread.h>
static void *nothing(void *p) { return p; }
int hidden(void) { pthread_t t; return pthread_atfork(0, 0, 0) || pthread_create(&t, 0, nothing, 0); }
__attribute__((visibility("default"))) int tensorop_answer(void) { return hidden() == 0 ? 42 : 0; }
__attribute__((visibility("default"))) int not_public(void) { return 1; }
"""
OVER = """int tensorop_answer(void);
__attribute__((visibility("default"))) int answer_(void) { return tensorop_answer(); }
"""
HEADER = ("tensorop/api.h", "int tensorop_answer(void);\n")
ARCHES = pytest.mark.parametrize("arch", ["x86_64", "riscv64", "aarch64"])


def member(text, name, arch, work) -> Member:
    made = library.compile_member(Source(((name, text), HEADER)), kernels.platform(arch), f"{name[:-2]}.o", work=work)
    assert isinstance(made, Member), made
    return made


def shared(arch, work) -> Artifact:
    made = library.shared_library(
        [member(API, "api.c", arch, work)],
        kernels.platform(arch),
        library.SharedLibrary("libanswer.so.0", "libanswer.so.0", ["tensorop_answer"]),
        work=work,
    )
    assert isinstance(made, Artifact), made
    return made


@ARCHES
def test_only_public_names_are_visible_and_the_glibc_floor_holds(tmp_path, arch):
    made = shared(arch, tmp_path).path
    assert shared_library.facts(made).exports == {"tensorop_answer"}
    assert shared_objects.soname(made) == "libanswer.so.0"
    assert shared_objects.glibc(made) <= (2, 31)


@ARCHES
def test_a_library_names_no_folder_of_the_machine_that_made_it(tmp_path, arch):
    made = shared(arch, tmp_path).path.read_bytes()
    for place in (tmp_path, paths.cache_dir(), sys.prefix):
        assert str(place).encode() not in made


@ARCHES
def test_the_same_sources_give_the_same_bits_wherever_they_are_built(tmp_path, arch):
    first, second = (shared(arch, tmp_path / name) for name in ("a", "a much longer folder"))
    assert first.path != second.path
    assert first.path.read_bytes() == second.path.read_bytes()
    archives = [
        library.static_archive([member(API, "api.c", arch, tmp_path / n)], file="libanswer.a", work=tmp_path / n)
        for n in ("a", "b")
    ]
    assert archives[0].path.read_bytes() == archives[1].path.read_bytes()


def test_a_library_over_another_finds_it_beside_itself(tmp_path):
    below = shared("x86_64", tmp_path)
    over = library.shared_library(
        [member(OVER, "over.c", "x86_64", tmp_path)],
        kernels.platform(),
        library.SharedLibrary("libover.so", "libover.so", ["answer_"], over=[below]),
        work=tmp_path,
    )
    assert isinstance(over, Artifact), over
    assert "libanswer.so.0" in shared_library.facts(over.path).needed
    folder = tmp_path / "installed"
    folder.mkdir()
    for built in (below, over):
        (folder / built.path.name).write_bytes(built.path.read_bytes())
    (tmp_path / "main.c").write_text("int answer_(void); int main(void) { return answer_() != 42; }")
    program = tmp_path / "main"
    build = [zig.host_cc(), tmp_path / "main.c", folder / "libover.so", f"-Wl,-rpath,{folder}", "-o", program]
    subprocess.run([*build, f"-Wl,-rpath-link,{folder}"], check=True)
    assert subprocess.run([program]).returncode == 0


def test_two_objects_of_one_archive_keep_both(tmp_path):
    members = [member(API, "api.c", "x86_64", tmp_path), member(OVER, "over.c", "x86_64", tmp_path)]
    made = library.static_archive(members, file="lib.a", work=tmp_path)
    assert isinstance(made, Artifact)
    listed = subprocess.run([str(zig.zig()), "ar", "t", made.path], capture_output=True, text=True, check=True)
    assert listed.stdout.split() == ["api.o", "over.o"]


def test_an_undefined_name_is_an_outcome(tmp_path):
    made = library.shared_library(
        [member(OVER, "over.c", "x86_64", tmp_path)],
        kernels.platform(),
        library.SharedLibrary("libover.so", "libover.so", ["answer_"]),
        work=tmp_path,
    )
    assert isinstance(made, Outcome)
    assert made.kind is Kind.COMPILE
    assert "tensorop_answer" in made.log
