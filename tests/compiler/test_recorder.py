"""The recorder of BLAS calls: kinds and counts are exact, in threads, processes and scopes of libraries."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tensorop import tuning
from tensorop.blas import recorder, records
from tensorop.blas.routines import COMPLEX, Argument, BlasInterface, BlasRoutine, Role, functions
from tensorop.provision import zig
from tensorop.specs import platforms
from tests.support.commands import finish, start, tensorop, wait_for
from tests.support.operators import gemm
from tests.support.shared_objects import glibc

LINE = re.compile(r"(.+) calls=(\d+) seconds=\d+\.\d{9}")
# a BLAS that does nothing; its CBLAS calls its Fortran names, as that of netlib does
BLAS = """
void dgemm_(void) {}
double ddot_(void) { return 2.5; }
void cblas_dgemm(void) { dgemm_(); }
"""
PROGRAM = r"""
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
double ddot_(const int *n, const double *x, const int *incx, const double *y, const int *incy);
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
            const int *ldc);
void cblas_dgemm(int layout, int ta, int tb, int m, int n, int k, double alpha, const double *a, int lda,
                 const double *b, int ldb, double beta, double *c, int ldc);

static void call(int n)
{
    double one = 1, *a = &one;
    dgemm_("n", "T", &n, &n, &n, a, a, &n, a, &n, a, a, &n);
}

static void *work(void *unused)
{
    for (int i = 0; i < 2000; i++)
        call(1 + i % 4);
    return unused;
}

int main(int count, char **words)
{
    double x = 0;
    int one = 1, back = -1, kinds = count > 1 ? atoi(words[1]) : 0;
    pthread_t threads[4];
    if (fork() == 0) { /* before any call */
        work(NULL);
        _exit(0);
    }
    wait(NULL);
    if (kinds < 0)
        raise(SIGKILL);
    if (chdir("/"))
        return 1;
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    int child = fork();
    if (child == 0) {
        work(NULL);
        _exit(0);
    }
    waitpid(child, NULL, 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    cblas_dgemm(101, 111, 112, 3, 4, 5, 1, &x, 5, &x, 5, 0, &x, 4);
    double sum = ddot_(&one, &x, &one, &x, &back);
    for (int n = 2; n < kinds + 2; n++)
        ddot_(&n, &x, &one, &x, &one);
    return sum == 2.5 ? 7 : 1;
}
"""


def built(folder: Path, name: str, text: str, *words: str) -> Path:
    (folder / f"{name}.c").write_text(text)
    argv = [str(zig.host_cc()), f"{name}.c", "-w", "-O1", "-o", name, *words]
    subprocess.run(argv, cwd=folder, check=True, timeout=120)
    return folder / name


@pytest.fixture(scope="module")
def library() -> Path:
    return recorder.library(platforms.load("native")).path


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    built(folder, "libblas.so", BLAS, "-shared", "-fPIC")
    return built(folder, "program", PROGRAM, "libblas.so", "-Wl,-rpath,$ORIGIN", "-lpthread")


def kinds(file: Path) -> dict[str, int]:
    lines = [line for line in file.read_text().splitlines() if not line.startswith("#")]
    found = [LINE.fullmatch(line) for line in lines]
    assert all(found), lines
    return {match[1]: int(match[2]) for match in found if match}


def run(library: Path, record: Path, *words: object, **how: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TENSOROP_RECORD": str(record), "LD_PRELOAD": str(library)}
    argv = list(map(str, words))
    return subprocess.run(argv, env=environment, text=True, capture_output=True, timeout=120, **how)  # type: ignore[call-overload, no-any-return]


def test_threads_and_a_forked_process_count_together(library: Path, program: Path, tmp_path: Path) -> None:
    """A call inside a call counts once, and flags are in upper case."""
    ended = run(library, Path("calls.txt"), program, cwd=tmp_path)
    assert (ended.returncode, ended.stderr) == (7, "")
    assert kinds(tmp_path / "calls.txt") == {
        **{f"dgemm layout=col transa=N transb=T m={n} n={n} k={n}": 6 * 500 for n in (1, 2, 3, 4)},
        "dgemm layout=row transa=N transb=T m=3 n=4 k=5": 1,
        "ddot n=1 incx=1 incy=-1": 1,
    }
    assert [path.name for path in tmp_path.iterdir()] == ["calls.txt"]


def test_a_forked_process_writes_its_calls_where_the_parent_is_killed(
    library: Path, program: Path, tmp_path: Path
) -> None:
    assert run(library, tmp_path / "calls.txt", program, -1).returncode == -signal.SIGKILL
    assert set(kinds(tmp_path / "calls.txt").values()) == {500}


def test_the_kinds_of_calls_are_bounded(library: Path, program: Path, tmp_path: Path) -> None:
    run(library, tmp_path / "calls.txt", program, 20_000)
    found, text = kinds(tmp_path / "calls.txt"), (tmp_path / "calls.txt").read_text()
    beyond = re.search(r"^# beyond 16384 kinds of calls: calls=(\d+) seconds=", text, re.MULTILINE)
    assert beyond
    assert (len(found), sum(found.values()) + int(beyond[1])) == (16384, 6 * 2000 + 2 + 20_000)


NUMPY = """
import sys
import numpy as np
for kind, count in (("f4", 2), ("f8", 3)):
    a, b = np.ones((7, 5), kind), np.ones((5, 11), kind)
    for _ in range(count):
        assert (a @ b == 5).all()
assert (a.T @ np.ones((7, 3))).shape == (5, 3)
assert sys.argv[1:] == ["--out", "x"]
"""


@pytest.mark.covers("command record")
def test_a_program_of_numpy_is_recorded_by_the_command(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(NUMPY)
    words = ("record", "--out", "calls.txt", "--", sys.executable, "a.py", "--out", "x")
    ended = tensorop(*words, cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    found = {kind: count for kind, count in kinds(tmp_path / "calls.txt").items() if "gemm" in kind}
    assert found == {
        "sgemm layout=row transa=N transb=N m=7 n=11 k=5": 2,
        "dgemm layout=row transa=N transb=N m=7 n=11 k=5": 3,
        "dgemm layout=row transa=T transb=N m=5 n=3 k=7": 1,
    }
    assert "next: tensorop gemm --shapes @calls.txt tunes for them" in ended.stderr
    listed = tuning.listed(gemm(), f"@{tmp_path / 'calls.txt'}")
    assert sorted((one.dtype, one.shape) for one in listed.calls) == [
        ("f32", (7, 11, 5)),
        ("f64", (5, 3, 7)),
        ("f64", (7, 11, 5)),
    ]


def test_started_processes_are_recorded_and_a_status_is_kept(program: Path, tmp_path: Path) -> None:
    ended = tensorop("record", "--", "sh", "-c", f"{program}; {program}; exit 3", cwd=tmp_path)
    assert ended.status == 3, ended.stderr
    assert kinds(tmp_path / "calls.txt")["ddot n=1 incx=1 incy=-1"] == 2
    words = ("record", "--format", "json", "--", "sh", "-c", f"echo hello; {program}")
    shown = tensorop(*words, cwd=tmp_path)
    assert (shown.status, shown.stderr) == (7, "hello\n")
    assert (shown.json()["kinds"], shown.json()["calls"], shown.json()["record"]) == (6, 6 * 2000 + 2, "calls.txt")
    nothing = tensorop("record", "--out", "no.txt", "--", "true", cwd=tmp_path)
    assert nothing.status == 1
    assert "no call was recorded" in nothing.stderr
    assert not (tmp_path / "no.txt").exists()


def test_the_library_is_written_for_programs_elsewhere(library: Path, tmp_path: Path) -> None:
    ended = tensorop("record", "--library", "new/recorder.so", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    assert (tmp_path / "new/recorder.so").read_bytes() == library.read_bytes()
    assert glibc(library) <= (2, 31)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "record needs either -- PROGRAM or --library FILE"),
        (("--library", "a.so", "--", "true"), "record needs either -- PROGRAM or --library FILE"),
        (("--platform", "rvv", "--", "true"), "--platform rvv has no effect on a program of this machine"),
        (("--", "no-such-program"), "there is no program 'no-such-program'"),
        (("--out", "no/calls.txt", "--", "true"), "cannot write no/calls.txt: No such file or directory"),
    ],
)
def test_refused(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ended = tensorop("record", *words, cwd=tmp_path)
    assert (ended.status, said in ended.stderr) == (2, True), ended.stderr


def test_a_record_that_cannot_be_written_leaves_the_program_alone(library: Path, program: Path, tmp_path: Path) -> None:
    ended = run(library, tmp_path / "nowhere" / "calls.txt", program)
    assert ended.returncode == 7
    assert ended.stderr.count("tensorop record: cannot write") == 1
    assert run(library, Path(), program, cwd=tmp_path).returncode == 7  # TENSOROP_RECORD=. is a folder


def test_records_of_processes_are_joined(tmp_path: Path) -> None:
    head = "# tensorop record 1\n"
    (tmp_path / "1").write_text(f"{head}sgemm m=1 calls=2 seconds=0.5\nddot n=1 calls=1 seconds=2.0\n")
    (tmp_path / "2").write_text(
        f"{head}sgemm m=1 calls=1 seconds=4.0\n# beyond 9 kinds of calls: calls=1 seconds=1.0\n"
    )
    found = records.join([tmp_path / "1", tmp_path / "2"], tmp_path / "out")
    assert found == records.Recorded(2, 4, 6.5, ("beyond 9 kinds of calls: calls=1 seconds=1.0",))
    lines = (tmp_path / "out").read_text().splitlines()
    assert lines[1:3] == ["sgemm m=1 calls=3 seconds=4.500000000", "ddot n=1 calls=1 seconds=2.000000000"]


@pytest.mark.extended
def test_the_record_can_be_read_while_the_program_runs(library: Path, tmp_path: Path) -> None:
    text = "import time, numpy as np\na = np.ones((9, 9))\nwhile True:\n    a @ a\n    time.sleep(0.01)\n"
    environment = {**os.environ, "TENSOROP_RECORD": str(tmp_path / "calls.txt"), "LD_PRELOAD": str(library)}
    with subprocess.Popen([sys.executable, "-c", text], env=environment) as child:
        try:
            until = time.monotonic() + 60
            before = 0
            for least in (1, 2):  # the first record, and a later one
                while time.monotonic() < until:
                    found = kinds(tmp_path / "calls.txt") if (tmp_path / "calls.txt").exists() else {}
                    count = found.get("dgemm layout=row transa=N transb=N m=9 n=9 k=9", 0)
                    if count > before:
                        break
                    time.sleep(0.05)
                assert count > before, least
                before = count
        finally:
            child.kill()


def _argument(number: int, argument: Argument, interface: BlasInterface, dtype: str) -> str:
    """What the caller passes, and the callee expects: an address, or a value of its own."""
    if not interface.by_value(argument, dtype):
        return f"(void *)&pool[{number}]"
    if argument.role is Role.FLAG:
        return f"{112 if argument.name.startswith('trans') else 121}"
    return f"{number + 2}{'.5f' if argument.role is Role.SCALAR else ''}"


def _function(interface: BlasInterface, routine: BlasRoutine, dtype: str) -> tuple[str, str, str]:
    """Prototype, definition and call of one name. The definition counts arguments that the call does not have."""
    lengths = [] if interface.cblas else [f"size_t length{n}" for n, _ in enumerate(routine.of_role(Role.FLAG))]
    parameters = [*interface.parameters(routine, dtype), *lengths]
    given = [_argument(number, one, interface, dtype) for number, one in enumerate(routine.arguments)]
    names = [one.name for one in routine.arguments]
    if interface.laid_out(routine):
        given, names = ["101", *given], ["layout", *names]
    if interface.cblas and routine.result == "element" and dtype in COMPLEX:
        given, names = [*given, "(void *)&pool[9]"], [*names, "result"]
    given, names = [*given, *("1" for _ in lengths)], [*names, *(f"length{n}" for n, _ in enumerate(lengths))]
    returns, symbol = interface.returns(routine, dtype), interface.symbol(routine, dtype)
    head = f"{returns} {symbol}({', '.join(parameters)})"
    checks = "".join(f"    mistakes += {name} != {value};\n" for name, value in zip(names, given, strict=True))
    value, result = ("", "") if returns == "void" else ("    return 7;\n", "mistakes += 7 != ")
    return (
        f"{head};\n",
        f"{head}\n{{\n    called++;\n{checks}{value}}}\n",
        f"    {result}{symbol}({', '.join(given)});\n",
    )


@pytest.mark.extended
def test_ctrl_c_ends_the_program_and_keeps_the_record(tmp_path: Path) -> None:
    text = (
        "import time, numpy as np\na, until = np.ones((9, 9)), time.time() + 2\n"
        "while time.time() < until:\n    a @ a\nopen('ready', 'w')\ntime.sleep(600)\n"
    )
    child = start("record", "--", sys.executable, "-c", text, cwd=tmp_path)
    wait_for((tmp_path / "ready").exists, child)
    os.kill(child.pid, signal.SIGINT)
    ended = finish(child)
    assert ended.status == 130, ended.stderr
    assert "next: tensorop gemm" in ended.stderr
    assert kinds(tmp_path / "calls.txt")["dgemm layout=row transa=N transb=N m=9 n=9 k=9"] > 1


POOLS = """
import multiprocessing
import numpy as np
def work(n):
    a, b = np.ones((n, n)), np.ones((n, 2 * n))
    return [a @ b for _ in range(10)][0][0, 0]
if __name__ == "__main__":
    for kind in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(kind).Pool(2) as pool:
            assert pool.map(work, [5, 6, 7, 8]) == [5, 6, 7, 8]
            pool.close()
            pool.join()
"""


@pytest.mark.extended
def test_processes_of_pools_are_recorded_however_they_are_started(tmp_path: Path) -> None:
    (tmp_path / "pools.py").write_text(POOLS)
    ended = tensorop("record", "--", sys.executable, "pools.py", cwd=tmp_path)
    assert ended.status == 0, ended.stderr
    found = {kind: count for kind, count in kinds(tmp_path / "calls.txt").items() if kind.startswith("dgemm")}
    assert found == {f"dgemm layout=row transa=N transb=N m={n} n={2 * n} k={n}": 30 for n in (5, 6, 7, 8)}


@pytest.mark.extended
def test_every_name_passes_every_argument_on(library: Path, tmp_path: Path) -> None:
    every = [_function(one, *of) for one in recorder.INTERFACES for of in functions().values()]
    head = (
        "#include <stddef.h>\n#include <stdint.h>\n#include <stdio.h>\n"
        "extern int64_t pool[];\nextern int mistakes, called;\n" + "".join(prototype for prototype, _, _ in every)
    )
    # a letter where a flag is read, and a small number where an integer is
    state = "int64_t pool[32] = {" + ", ".join(["'N'"] * 32) + "};\nint mistakes, called;\n"
    built(tmp_path, "libblas.so", head + state + "".join(body for _, body, _ in every), "-shared", "-fPIC")
    main = "int main(void)\n{\n" + "".join(call for _, _, call in every)
    main += '    printf("%d %d\\n", called, mistakes);\n    return 0;\n}\n'
    program = built(tmp_path, "program", head + main, "libblas.so", "-Wl,-rpath,$ORIGIN")
    ended = run(library, tmp_path / "calls.txt", program)
    assert (ended.stdout, ended.stderr) == (f"{len(every)} 0\n", "")
    counted: dict[str, int] = {}
    for kind, count in kinds(tmp_path / "calls.txt").items():
        counted[kind.split()[0]] = counted.get(kind.split()[0], 0) + count
    expected = {
        name: sum(one.cblas or routine.result != "element" or dtype not in COMPLEX for one in recorder.INTERFACES)
        for name, (routine, dtype) in functions().items()
    }
    assert counted == expected
