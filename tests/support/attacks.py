"""What a jailed process must not be able to do, as C that tries it; each says whether it got through."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from tensorop.model.call import Access, Buffer, Call, Reply
from tensorop.model.trial import Kind
from tensorop.runners import session
from tensorop.runners.base import Need, Runner
from tensorop.runners.protocol import Check
from tests.support import kernels

BEFORE = """
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
static void *thread(void *given) { return given; }
static int spawned(void) {
    pthread_t made;
    return pthread_create(&made, NULL, thread, NULL) == 0 ? 0 : -1;
}
static int executed(void) {
    char *const argv[] = {"/bin/true", NULL};
    return execve(argv[0], argv, argv + 1);
}
static long ended(long pid) {
    if (pid == 0)
        _exit(0);
    return pid;
}
"""

# name -> an expression that is below zero when it was refused; the calls of libc's that would get in the way are raw
ATTACKS: Mapping[str, str] = {
    "execute a program": "executed()",
    "start a process": "ended(fork())",
    "start a process in shared memory": "ended(syscall(SYS_clone, CLONE_VM | CLONE_VFORK | SIGCHLD, 0, 0, 0, 0))",
    "start a thread": "spawned()",
    "leave the network namespace": "syscall(SYS_unshare, CLONE_NEWNET)",
    "open a socket": "socket(AF_INET, SOCK_STREAM, 0)",
    "open a local socket": "socket(AF_UNIX, SOCK_STREAM, 0)",
    "trace its parent": "syscall(SYS_ptrace, PTRACE_ATTACH, getppid(), 0, 0)",
    "be traced": "syscall(SYS_ptrace, PTRACE_TRACEME, 0, 0, 0)",
    "read its parent's memory": "syscall(SYS_process_vm_readv, getppid(), 0, 0, 0, 0, 0)",
    "make a file": 'open("PLACE/made", O_WRONLY | O_CREAT, 0600)',
    "write a file": 'open("PLACE/there", O_WRONLY)',
    "truncate a file": 'open("PLACE/there", O_RDONLY | O_TRUNC)',
    "remove a file": 'syscall(SYS_unlinkat, AT_FDCWD, "PLACE/there", 0)',
    "rename a file": 'syscall(SYS_renameat2, AT_FDCWD, "PLACE/there", AT_FDCWD, "PLACE/made", 0)',
    "make a folder": 'syscall(SYS_mkdirat, AT_FDCWD, "PLACE/made", 0700)',
    "make a link": 'syscall(SYS_symlinkat, "/etc", AT_FDCWD, "PLACE/made")',
    "change a file's mode": 'syscall(SYS_fchmodat, AT_FDCWD, "PLACE/there", 0777)',
    "open a file through io_uring": "syscall(425, 8, 0)",
    "open a file by a newer call": 'syscall(437, AT_FDCWD, "PLACE/there", (uint64_t[3]){O_RDWR, 0, 0}, 24)',
    "read what free reads": 'open("/proc/sys/vm/overcommit_memory", O_RDONLY)',
    "signal its parent": "kill(getppid(), 0)",
    "signal everybody": "kill(-1, 0)",
    "load a program into the kernel": "syscall(SYS_bpf, 0, 0, 0)",
    "mount": 'syscall(SYS_mount, "none", "/mnt", "tmpfs", 0, 0)',
}


def place(folder: Path) -> Path:
    """A folder with one file, both of which anybody may change: only the jail is in the way."""
    made = folder / "place"
    made.mkdir()
    made.chmod(0o777)
    (made / "there").write_text("untouched")
    (made / "there").chmod(0o666)
    return made


def cases(at: Path) -> str:
    """The attacks as cases of a switch that set `got`."""
    return "\n".join(
        f"case {i}: got = {attack.replace('PLACE', str(at))}; break;" for i, attack in enumerate(ATTACKS.values())
    )


def candidate(work: Path, at: Path, arch: str) -> Path:
    """A program whose candidate makes the attack that flag 0 says."""
    body = f"long got = 0; switch (c->flag[0]) {{ {cases(at)} }} *(double *)c->buffer[0] = (double)got;"
    return kernels.program(body, work, arch=arch, before=BEFORE)


def tried(runner: Runner, program: Path, names: Sequence[str], guest: session.Guest) -> list[Reply]:
    numbers = list(ATTACKS)
    out = Buffer("out", Access.OUT, np.zeros(1))
    calls = [Check(Call((1,), flags=(numbers.index(name),), buffers=(out,))) for name in names]
    return session.run(runner, program, calls, guest=guest, give_up_after=len(calls) + 1)


def refuses(
    runner: Runner, program: Path, at: Path, guest: session.Guest, tries: Sequence[str] = tuple(ATTACKS)
) -> None:
    """Every attack (of those named) is refused, by the end of its process or by an error, and leaves nothing."""
    greeting = session.hello(runner, program, guest=guest)
    assert greeting is not None
    assert greeting.jailed
    allowed = {"start a thread"} if Need.THREADS in guest.needs else set()
    allowed |= {"read what free reads"} if Need.READS in guest.needs else set()
    allowed |= {"start a process"} if Need.FORKS in guest.needs else set()
    names = [name for name in tries if name not in allowed]
    for name, reply in zip(names, tried(runner, program, names, guest), strict=True):
        if reply.outcome.ok:
            assert reply.outputs["out"][0] < 0, name
        else:
            assert reply.outcome.kind is Kind.CRASH, (name, reply.outcome)
            said = reply.outcome.message  # ssh does not tell a signal from a lost connection
            assert "forbidden system call" in said or said == "ended twice without a word", (name, reply.outcome)
    assert [path.name for path in at.iterdir()] == ["there"]
    assert (at / "there").read_text() == "untouched"
    assert (at / "there").stat().st_mode & 0o777 == 0o666


def threads_alone(runner: Runner, program: Path) -> None:
    """With several threads under check, threads can be started, and processes still cannot. What a thread's free asks
    for is refused by an error, which it bears."""
    names = [
        "start a thread",
        "read what free reads",
        "start a process",
        "start a process in shared memory",
        "execute a program",
    ]
    thread, read, *others = tried(runner, program, names, session.Guest(threads=2))
    assert thread.outcome.ok, thread.outcome
    assert thread.outputs["out"][0] == 0
    assert read.outcome.ok, read.outcome
    assert read.outputs["out"][0] < 0
    assert all(not other.outcome.ok for other in others)
