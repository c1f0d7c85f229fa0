"""Every routine of `tensorop blas` uses several threads, is called by many at once, and after fork."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tensorop.toolchain import tool
from tests.support import products
from tests.support.judged_blas import ROUTINES

# Sizes of which each routine gives several threads work. Inputs are small integers, so most results are exact; those
# of one caller are those of all.
PROGRAM = """
#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <tensorop/blas.h>
#include <unistd.h>

enum { N = 512, M = 1792, ALL = M * M, CALLERS = 4 };
static real a[ALL], b[ALL], *want[ROUTINES];

static void call(int routine, real *c)
{
    const int upper = TENSOROP_UPPER, no = TENSOROP_NO_TRANS, col = TENSOROP_COL_MAJOR;
    const int left = TENSOROP_LEFT, whole = TENSOROP_NON_UNIT;
    for (int i = 0; i < ALL; ++i)
        c[i] = i % 5 - 2;
    switch (routine) {
    case 0: tensorop_Lgemm(col, no, no, N, N, N, 1, a, N, b, N, 1, c, N); break;
    case 1: tensorop_Lgemmtr(col, upper, no, no, N, N, 1, a, N, b, N, 1, c, N); break;
    case 2: tensorop_Lgemmt(col, upper, no, no, N, N, 1, a, N, b, N, 1, c, N); break;
    case 3: tensorop_Lsymm(col, left, upper, N, N, 1, a, N, b, N, 1, c, N); break;
    case 4: tensorop_Lsyrk(col, upper, no, N, N, 1, a, N, 1, c, N); break;
    case 5: tensorop_Lsyr2k(col, upper, no, N, N, 1, a, N, b, N, 1, c, N); break;
    case 6: tensorop_Ltrmm(col, left, upper, no, whole, N, N, 1, a, N, c, N); break;
    case 7: tensorop_Ltrsm(col, left, upper, no, whole, N, N, 1, a, N, c, N); break;
    case 8: tensorop_Lgemv(col, no, M, M, 1, a, M, b, 1, 1, c, 1); break;
    default: tensorop_Lger(col, M, M, 1, b, 1, b + M, 1, c, M);
    }
}

static int threads(void)
{
    int count = -2; /* . and .. */
    for (DIR *tasks = opendir("/proc/self/task"); readdir(tasks); ++count)
        ;
    return count;
}

/* How many calls, from routine `first` on, have another result than the same call of a caller alone. */
static int wrong(int first)
{
    int found = 0;
    real *c = malloc(ALL * sizeof *c);
    for (int i = 0; i < ROUTINES; ++i) {
        const int routine = (first + i) % ROUTINES;
        call(routine, c);
        found += memcmp(c, want[routine], ALL * sizeof *c) != 0;
    }
    free(c);
    return found;
}

static void *caller(void *first) { return (void *)(long)wrong((int)(long)first); }

static int ended(pid_t child)
{
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

int main(void)
{
    pthread_t each[CALLERS];
    pid_t children[2];
    for (int i = 0; i < ALL; ++i)
        a[i] = (i * 7 % 11 - 5) / 8.0, b[i] = i % 7 - 3;
    for (int i = 0; i < N; ++i)
        a[i + i * N] = 64;
    for (int i = 0; i < ROUTINES; ++i) {
        want[i] = malloc(ALL * sizeof(real));
        const pid_t child = fork(); /* without threads of an earlier call */
        if (child == 0) {
            call(i, want[i]);
            _exit(threads());
        }
        printf("%d ", ended(child));
    }
    for (int i = 0; i < ROUTINES; ++i)
        call(i, want[i]);
    for (int i = 0; i < CALLERS; ++i)
        if (pthread_create(&each[i], NULL, caller, (void *)(long)(i * 3)))
            return 1;
    for (int i = 0; i < 2; ++i) /* while others call */
        if ((children[i] = fork()) == 0) {
            alarm(120);
            _exit(wrong(i * 5));
        }
    for (int i = 0; i < CALLERS; ++i) {
        void *found;
        pthread_join(each[i], &found);
        printf("%ld ", (long)found);
    }
    printf("%d %d\\n", ended(children[0]), ended(children[1]));
    return 0;
}
"""
THREADS = 3


@pytest.mark.extended
@pytest.mark.parametrize(("letter", "real"), [("s", "float"), ("d", "double")])
def test_routines_share_threads_and_serve_many_callers_and_children(letter: str, real: str, tmp_path: Path) -> None:
    prefix = products.install("generic", tmp_path / "blas", operator="blas")
    (tmp_path / "main.c").write_text(PROGRAM.replace("tensorop_L", f"tensorop_{letter}"))
    flags = (f"-Dreal={real}", f"-DROUTINES={len(ROUTINES)}", "-I", f"{prefix}/include", "-L", f"{prefix}/lib")
    libraries = (f"-Wl,-rpath,{prefix}/lib", "-ltensorop_blas", "-lpthread")
    subprocess.run(tool.cc("-O1", *flags, "main.c", *libraries, "-o", "main"), check=True, cwd=tmp_path)
    environment = {**os.environ, "TENSOROP_NUM_THREADS": str(THREADS)}
    ran = subprocess.run([tmp_path / "main"], env=environment, check=True, capture_output=True, text=True, timeout=300)
    assert ran.stdout.split() == [str(THREADS)] * len(ROUTINES) + ["0"] * 6
