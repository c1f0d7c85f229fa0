"""The jail on this machine: what no phase may do, whatever code is in its process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tensorop.model.architecture import host_arch
from tensorop.model.call import Access, Buffer, Call
from tensorop.provision import view, zig
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check, TargetLibrary
from tensorop.runners.ssh import Ssh
from tensorop.toolchain import harness
from tests.support import attacks, board, commands

NATIVE = Native()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return attacks.place(tmp_path)


def test_a_candidate_gets_nothing(tmp_path: Path, place: Path) -> None:
    attacks.refuses(NATIVE, attacks.candidate(tmp_path, place, host_arch()), place, session.Guest())


def test_threads_start_only_where_several_are_checked(tmp_path: Path, place: Path) -> None:
    attacks.threads_alone(NATIVE, attacks.candidate(tmp_path, place, host_arch()))


def test_a_candidate_gets_nothing_of_a_board(tmp_path: Path, place: Path) -> None:
    """This machine, reached by ssh: what a shell there is given closes the same jail."""
    with board.board(tmp_path / "board") as there:
        for shim in ("env", "cat", "uname", "getconf"):  # it is what it is, and emulates nothing
            (there.root / "bin" / shim).unlink()
        program = attacks.candidate(tmp_path, place, host_arch())
        tries = ("execute a program", "start a process", "open a socket", "make a file")
        attacks.refuses(Ssh("127.0.0.1", there.options), program, place, session.Guest(), tries)


ADAPTER = """#include "call.h"
#include <stddef.h>
static void call_f(const struct tensorop_bound *self, const struct tensorop_call *call) {
    *(double *)call->buffer[0] = (double)((long (*)(long))self->function)(call->flag[0]);
}
int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype, const char *prefix,
                  const char *suffix, void *(*lookup)(void *, const char *), void *handle) {
    *out = (struct tensorop_bound){call_f, lookup(handle, "attack")};
    return out->function ? 0 : -1;
}
"""


@pytest.fixture(scope="module")
def loader() -> Path:
    """The harness that opens libraries, as finalists, sensitivity, verification, comparison and threads use it."""
    return harness.dynamic_program(host_arch(), ADAPTER).path


def library(work: Path, at: Path, loading: str = "fork() >= 0") -> Path:
    """One that tries everything when it is called, and makes a file and a process when it is loaded."""
    cases = attacks.cases(at)
    text = f"""{attacks.BEFORE}
        static long loaded = -2;
        __attribute__((constructor)) static void load(void) {{
            loaded = open("{at}/made", O_WRONLY | O_CREAT, 0600) >= 0 || {loading} || executed() >= 0 ||
                socket(AF_INET, SOCK_STREAM, 0) >= 0 || syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0) >= 0;
        }}
        long attack(long number) {{
            long got = 0;
            switch (number) {{ {cases} case 1000: return loaded; }}
            return got;
        }}"""
    return shared(text, work)


def shared(text: str, work: Path) -> Path:
    (work / "attack.c").write_text(text)
    made = work / "libattack.so"
    argv = [str(zig.host_cc()), "-shared", "-fPIC", "-O1", "-w", str(work / "attack.c"), "-lpthread", "-o", str(made)]
    subprocess.run(argv, check=True)
    return made


def test_a_library_gets_nothing_when_it_is_loaded(tmp_path: Path, place: Path, loader: Path) -> None:
    at = library(tmp_path, place)
    guest = session.Guest(libraries=(TargetLibrary(str(at), "tensorop", "f64"),))
    call = Call((1,), flags=(1000,), buffers=(Buffer("out", Access.OUT, np.ones(1)),))
    (reply,) = session.run(NATIVE, loader, [Check(call)], guest=guest)
    assert reply.outcome.ok
    assert reply.outputs["out"][0] == 0
    assert [path.name for path in place.iterdir()] == ["there"]


# What /proc says of a process whose jail is closed; the latter only of one that root started.
STATE = (
    "CapEff:\\t0000000000000000",
    "NoNewPrivs:\\t1",
    "Seccomp:\\t2",
    "Max core file size 0 0 ",
    "Max open files 0 0 ",
    "Max processes 0 0 ",
    "Max address space 8589934592 8589934592 ",
    "Max file size 1073741824 1073741824 ",
)
LOST = ("Uid:\\t65534\\t65534\\t65534\\t65534", "Gid:\\t65534\\t65534\\t65534\\t65534", "Groups:\\t \\n")


def test_kernels_are_called_in_a_process_that_has_nothing(tmp_path: Path, loader: Path) -> None:
    wanted = [*STATE, *(LOST if os.geteuid() == 0 else ())]
    text = f"""
        #include <fcntl.h>
        #include <string.h>
        #include <unistd.h>
        static int files[2];
        __attribute__((constructor)) static void load(void) {{
            files[0] = open("/proc/self/status", O_RDONLY);
            files[1] = open("/proc/self/limits", O_RDONLY);
        }}
        static void state(char *to) {{
            static char found[1 << 14];
            for (int i = 0; i < 2; i++) {{
                long n = read(files[i], found, sizeof found - 1);
                for (long j = 0; j < n; j++)
                    if (i == 0 || found[j] != ' ' || found[j + 1] != ' ')
                        *to++ = found[j];
            }}
        }}
        static const char *const wanted[] = {{{", ".join(f'"{one}"' for one in wanted)}}};
        long attack(long number) {{
            static char all[1 << 15];
            if (!all[0])
                state(all);
            return strstr(all, wanted[number]) != NULL;
        }}"""
    guest = session.Guest(libraries=(TargetLibrary(str(shared(text, tmp_path)), "tensorop", "f64"),))
    out = Buffer("out", Access.OUT, np.zeros(1))
    asked = [Check(Call((1,), flags=(number,), buffers=(out,))) for number in range(len(wanted))]
    replies = session.run(NATIVE, loader, asked, guest=guest)
    assert [one for one, reply in zip(wanted, replies, strict=True) if reply.outputs["out"][0] != 1] == []


WITHOUT_SECCOMP = """
import sys
from pathlib import Path
from tensorop.runners import session
from tensorop.runners.native import Native
from tests.support import attacks
at = Path(sys.argv[1])
names = [name for name in attacks.ATTACKS if name.split()[0] in ("remove", "rename", "make", "truncate", "execute")]
for name, reply in zip(names, attacks.tried(Native(), Path(sys.argv[2]), names, session.Guest()), strict=True):
    print(name, reply.outcome.kind, reply.outputs["out"][0] if reply.outcome.ok else "")
print(session.hello(Native(), Path(sys.argv[2])).jailed)
"""


def test_landlock_stands_where_there_is_no_seccomp(tmp_path: Path, place: Path) -> None:
    if "l" not in view.guards():
        pytest.skip("not to be had on this machine: Landlock")
    program = attacks.candidate(tmp_path, place, host_arch())
    words = [sys.executable, "-c", WITHOUT_SECCOMP, str(place), str(program)]
    argv = [sys.executable, "-m", "tests.support.without_seccomp", *words]
    done = subprocess.run(argv, cwd=commands.ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    *told, jailed = done.stdout.splitlines()
    assert jailed == "False"
    assert len(told) == 7
    assert [line for line in told if not line.endswith(" ok -1.0")] == []
    assert [path.name for path in place.iterdir()] == ["there"]


@pytest.mark.parametrize(("api", "threads"), [("tensorop", 1), ("tensorop", 2), ("cblas", 1), ("blas", 1)])
def test_a_library_gets_nothing_when_it_is_called(
    tmp_path: Path, place: Path, loader: Path, api: str, threads: int
) -> None:
    at = library(tmp_path, place, "0" if api == session.JUDGED else "fork() >= 0")
    guest = session.Guest(libraries=(TargetLibrary(str(at), api, "f64"),), threads=threads)
    attacks.refuses(NATIVE, loader, place, guest)
