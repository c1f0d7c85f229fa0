"""Others' judges of a BLAS, preloaded with ours: netlib's testers and the linear algebra tests of Debian's NumPy.

Each fails unless the loader's own log shows that our symbols served. Illegal calls are held against the reference BLAS:
what it prints, what handlers are given, and whose handler is called.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tensorop import settings
from tensorop.errors import MissingTool
from tensorop.model.architecture import host_arch
from tests.support import products, testers
from tests.support.classes import each_once, extended

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="preloads a product for x86-64")

# netlib's own sizes end at 9: these reach whole tiles, edges and several panels. 65 is the testers' largest.
SIZES = (0, 1, 7, 16, 17, 31, 33, 64, 65)
OF_LEVEL = {2: ("gemv", "ger"), 3: ("gemm", "symm", "trmm", "trsm", "syrk", "syr2k")}  # that netlib's testers know
BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library to preload, small blocks and all variants in use."""
    if "avx2" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this CPU cannot run avx2")
    prefix = products.install("avx2", tmp_path_factory.mktemp("product") / "avx2")
    return (prefix / "lib/libtensorop_cblas.so").resolve()


@pytest.fixture(scope="module")
def blas(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library of all routines."""
    prefix = products.blas(request.config.getoption("--blas"), tmp_path_factory.mktemp("product") / "blas")
    return (prefix / "lib/libtensorop_cblas.so").resolve()


@pytest.fixture(scope="module")
def netlib() -> testers.Tester:
    try:
        return testers.blas_testers()
    except MissingTool as missing:
        pytest.skip(f"{missing}")


def _environment(tester: testers.Tester, library: Path, folder: Path, *found: str) -> dict[str, str]:
    environment = {**settings.scrubbed_environment(), **tester.environment, "LD_PRELOAD": str(library)}
    paths = [*found, *filter(None, [environment.get("LD_LIBRARY_PATH")])]
    environment |= {"LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(folder / "bindings"), "TENSOROP_NUM_THREADS": "2"}
    return environment | ({"LD_LIBRARY_PATH": os.pathsep.join(paths)} if paths else {})


def _served(folder: Path, library: Path) -> set[str]:
    """The symbols of ours that somebody else's calls were bound to."""
    bound = set()
    for log in folder.glob("bindings.*"):
        for who, to, symbol in BINDING.findall(log.read_text(errors="replace")):
            if Path(to).resolve() == library and Path(who).resolve() != library:
                bound.add(symbol)
    return bound


def _input(original: str, routines: list[str], sizes: tuple[int, ...] | None) -> str:
    """netlib's input for some routines alone, with error exits, and other sizes when given."""
    lines = []
    for line in original.splitlines():
        if sizes and "NUMBER OF VALUES OF N" in line:
            line = f"{len(sizes)}    NUMBER OF VALUES OF N"
        elif sizes and "VALUES OF N" in line:
            line = f"{' '.join(map(str, sizes))}    VALUES OF N"
        elif re.match(r"[TF] .*TEST ERROR EXITS", line):
            line = f"T{line[1:]}"
        named = re.match(r"\s*((?:cblas_)?[sdcz]\w+)\s+[TF]\b", line, re.IGNORECASE)
        if named and named[1].lower() not in routines:
            line = re.sub(r"(\s)[TF]\b", r"\1F", line, count=1)
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("sizes", [None, extended(SIZES, id="large-sizes")])
@pytest.mark.parametrize(("api", "letter", "level"), each_once(("fortran", "cblas"), ("s", "d"), (2, 3)))
def test_netlib_testers(
    api: str,
    letter: str,
    sizes: tuple[int, ...] | None,
    level: int,
    netlib: testers.Tester,
    blas: Path,
    tmp_path: Path,
) -> None:
    program, given = (
        (f"xblat{level}{letter}", f"{letter}blat{level}.in")
        if api == "fortran"
        else (f"x{letter}cblat{level}", f"{letter}in{level}")
    )
    routines = [("" if api == "fortran" else "cblas_") + letter + name for name in OF_LEVEL[level]]
    text = _input((netlib.path / given).read_text(), routines, sizes)
    done = subprocess.run(
        [netlib.path / program],
        input=text,
        cwd=tmp_path,
        env=_environment(netlib, blas, tmp_path, str(netlib.path)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = done.stdout + "".join(path.read_text() for path in tmp_path.glob("*.out"))
    assert done.returncode == 0, said + done.stderr
    assert not re.search(r"FAILED|FATAL|ABANDONED|\*{5}|SUSPECT", said), said
    # CBLAS's testers go over column-major and row-major.
    passed = len(re.findall(r"PASSED THE (?:\w+-MAJOR +)?COMPUTATIONAL TESTS", said))
    assert passed == len(routines) * (1 if api == "fortran" else 2), said
    assert len(re.findall(r"PASSED THE TESTS OF ERROR", said)) == len(routines), said
    assert "END OF TESTS" in said
    assert {f"{name}_" if api == "fortran" else name for name in routines} <= _served(tmp_path, blas)


def _pytest_alone(folder: Path) -> str:
    """This interpreter's pytest for another one, with all that it needs and without this one's NumPy beside it."""
    folder.mkdir()
    names, linked = ["pytest"], set()
    for name in names:
        found = metadata.distribution(name)
        wanted = [Requirement(text) for text in found.requires or ()]
        names += [r.name for r in wanted if r.name not in names and (not r.marker or r.marker.evaluate({"extra": ""}))]
        linked |= {Path(str(found.locate_file(path.parts[0]))) for path in found.files or () if path.parts[0] != ".."}
    for path in linked:
        (folder / path.name).symlink_to(path)
    return str(folder)


def _numpy(library: Path, folder: Path) -> tuple[Path, testers.Tester, dict[str, str]]:
    """Debian's interpreter and NumPy with ours preloaded, or skips."""
    try:
        numpy = testers.debian_numpy()
    except MissingTool as missing:
        pytest.skip(f"{missing}")
    python = Path("/usr/bin/python3")
    environment = {**_environment(numpy, library, folder), "PYTHONDONTWRITEBYTECODE": "1"}
    without = {name: value for name, value in environment.items() if name not in ("LD_PRELOAD", "LD_DEBUG")}
    asking = [python, "-c", "import numpy; print(numpy.__file__)"]
    there = subprocess.run(asking, env=without, capture_output=True, text=True)
    if there.returncode != 0 or not Path(there.stdout.strip()).is_relative_to(numpy.path):
        pytest.skip(
            f"{python} cannot import Debian's NumPy ({there.stderr.strip()[-200:]}): apt-get install python3-numpy"
        )
    return python, numpy, environment


@pytest.mark.extended
def test_linear_algebra_of_debians_numpy(library: Path, tmp_path: Path) -> None:
    python, numpy, environment = _numpy(library, tmp_path)
    seen = os.pathsep.join([_pytest_alone(tmp_path / "pytest"), *filter(None, [numpy.environment.get("PYTHONPATH")])])
    environment["PYTHONPATH"] = seen
    done = subprocess.run(
        [
            python,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            "--noconftest",
            "--pyargs",
            "numpy.linalg.tests.test_linalg",
        ],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=600,
    )
    passed = re.search(r"(\d+) passed", done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert passed
    assert int(passed[1]) > 100, done.stdout[-500:]
    served = _served(tmp_path, library)
    assert {"cblas_sgemm", "cblas_dgemm"} <= served, served


def test_numpys_own_handler_still_raises(library: Path, tmp_path: Path) -> None:
    python, _, environment = _numpy(library, tmp_path)
    script = """
import numpy, numpy.linalg.lapack_lite as lapack
try:
    lapack.dorgqr(3, 3, 3, numpy.zeros((3, 3)), 0, numpy.zeros(3), numpy.zeros(9), 9, 0)
except ValueError as raised:
    print(raised)
"""
    done = subprocess.run([python, "-c", script], env=environment, capture_output=True, text=True)
    assert done.stdout == "On entry to DORGQR parameter number 5 had an illegal value\n", done.stderr


CALLS = r"""
#define _GNU_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define DECLARED(letter, real) \
    void cblas_##letter##gemm(int, int, int, int, int, int, real, const real *, int, const real *, int, real, real *, \
                              int); \
    void letter##gemm_(const char *, const char *, const int *, const int *, const int *, const real *, const real *, \
                       const int *, const real *, const int *, const real *, real *, const int *, size_t, size_t);
DECLARED(s, float)
DECLARED(d, double)
#ifdef OWN_FORTRAN
void xerbla_(const char *routine, const int *info, size_t length)
{
    fprintf(stderr, "xerbla [%.*s] %d\n", (int)length, routine, *info);
}
#endif
#ifdef OWN_C
int RowMajorStrg, CBLAS_CallFromC;
void cblas_xerbla(int info, const char *routine, const char *form, ...)
{
    fprintf(stderr, "cblas_xerbla %d [%s] [%s] %d %d\n", info, routine, form, RowMajorStrg, CBLAS_CallFromC);
}
#endif

static void call(const char *name, int order, int ta, int tb, const int *n)
{
    static double x[4096], one = 1;
    float *y = (float *)x, single = 1;
    const char p = (char)ta, q = (char)tb;
    if (!strcmp(name, "cblas_s"))
        cblas_sgemm(order, ta, tb, n[0], n[1], n[2], 1, y, n[3], y, n[4], 1, y, n[5]);
    else if (!strcmp(name, "cblas_d"))
        cblas_dgemm(order, ta, tb, n[0], n[1], n[2], 1, x, n[3], x, n[4], 1, x, n[5]);
    else if (!strcmp(name, "s"))
        sgemm_(&p, &q, n, n + 1, n + 2, &single, y, n + 3, y, n + 4, &single, y, n + 5, 1, 1);
    else
        dgemm_(&p, &q, n, n + 1, n + 2, &one, x, n + 3, x, n + 4, &one, x, n + 5, 1, 1);
}

int main(void) /* a child a call: the reference's CBLAS ends its process */
{
    static char text[1 << 20];
    char name[9];
    int order, ta, tb, n[6];
    text[fread(text, 1, sizeof text - 1, stdin)] = 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
        if (sscanf(line, "%8s%d%d%d%d%d%d%d%d%d", name, &order, &ta, &tb, n, n + 1, n + 2, n + 3, n + 4, n + 5) != 10)
            return 2;
        fprintf(stderr, "%s: ", line);
        const pid_t child = fork();
        if (child == 0) {
            call(name, order, ta, tb, n);
            _exit(0);
        }
        if (child < 0 || waitpid(child, NULL, 0) != child)
            return 3;
        fputc('\n', stderr);
    }
    return 0;
}
"""


def _calls() -> str:
    """Calls with one wrong argument, whatever the others are, and with several."""
    lines, rng = [], random.Random(1)
    for name in ("cblas_s", "cblas_d", "s", "d"):
        words = (111, 112, 113) if name.startswith("cblas") else tuple(map(ord, "NnTtCc"))
        right = [(101, 102), words, words, (8,), (7,), (6,), (8,), (8, 9), (8,)]
        wrong = [(0, 100, 103), (114, -1, 0), (110, 114, 1), (-1,), (-2,), (-1,), (5, 0, -1), (5, 0, -8), (6, 0, -3)]
        for i in range(name in ("s", "d"), 9):
            for value in wrong[i]:
                for _ in range(12):
                    lines.append((name, *(value if j == i else rng.choice(right[j]) for j in range(9))))
        for _ in range(150):
            lines.append((name, *(rng.choice(right[j] + (wrong[j] if rng.random() < 0.4 else ())) for j in range(9))))
    return "\n".join(" ".join(map(str, line)) for line in lines)


def _cc(*words: str | Path) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    done = subprocess.run(["cc", "-Wall", "-Werror", *map(str, words)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("how", "own"),
    [
        ("alone", ()),
        ("alone", ("-DOWN_FORTRAN",)),
        ("alone", ("-DOWN_C",)),
        ("preloaded", ()),
        ("preloaded", ("-DOWN_FORTRAN", "-DOWN_C")),
    ],
)
def test_illegal_arguments_are_reported_as_by_the_reference(
    how: str, own: tuple[str, ...], netlib: testers.Tester, library: Path, tmp_path: Path
) -> None:
    """Of all arguments, both layouts and names: text, number, which of several, what a program's handlers get."""
    reference = netlib.path / "libblas.so.3"
    environment = {**netlib.environment, "LD_LIBRARY_PATH": f"{netlib.path}:{library.parent}"}
    (tmp_path / "calls.c").write_text(CALLS)

    def reported(program: str, linked: Path, **more: str) -> list[str]:
        _cc(tmp_path / "calls.c", "-o", tmp_path / program, *own, linked, f"-Wl,-rpath-link,{linked.parent}")
        command, both = [tmp_path / program], {**environment, **more}
        done = subprocess.run(command, input=_calls(), env=both, capture_output=True, text=True, timeout=60, check=True)
        return done.stderr.splitlines()

    wanted = reported("reference", reference)
    assert len(wanted) > 800
    assert reported("ours", *((library,) if how == "alone" else (reference,)), LD_PRELOAD=str(library)) == wanted


PLUGIN = r"""
#include <stddef.h>
#include <stdio.h>
void cblas_dgemm(int, int, int, int, int, int, double, const double *, int, const double *, int, double, double *, int);
void dgemm_(const char *, const char *, const int *, const int *, const int *, const double *, const double *,
            const int *, const double *, const int *, const double *, double *, const int *, size_t, size_t);
void xerbla_(const char *routine, const int *info, size_t length)
{
    printf("plug-in %.*s %d\n", (int)length, routine, *info);
}
void wrong(void)
{
    static double x[64], one = 1;
    const int eight = 8, least = -1;
    dgemm_("N", "N", &eight, &least, &eight, &one, x, &eight, x, &eight, &one, x, &eight, 1, 1);
    cblas_dgemm(101, 111, 111, -1, 8, 8, 1, x, 8, x, 8, 0, x, 8);
}
"""
HOST = r"""
#include <dlfcn.h>
#include <stdio.h>
int main(int count, char **names)
{
    for (int i = 1; i < count; ++i) {
        void *plugin = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
        void (*wrong)(void) = plugin ? (void (*)(void))dlsym(plugin, "wrong") : NULL;
        if (!wrong)
            return puts(dlerror()), 2;
        wrong();
    }
    return 0;
}
"""


def test_a_plug_in_of_a_scope_of_its_own_keeps_its_handler(
    netlib: testers.Tester, library: Path, tmp_path: Path
) -> None:
    """Plug-ins with handlers of their own: over the reference BLAS, over ours, and over a BLAS that holds ours."""
    (tmp_path / "plugin.c").write_text(PLUGIN)
    (tmp_path / "host.c").write_text(HOST)
    archives = [library.parent / f"libtensorop_{name}.a" for name in ("cblas", "gemm")]
    (tmp_path / "names.map").write_text("{ global: dgemm_; cblas_dgemm; local: *; };")
    names = (f"-Wl,--version-script={tmp_path}/names.map", "-Wl,--whole-archive", *archives, "-Wl,--no-whole-archive")
    _cc("-shared", "-o", tmp_path / "held.so", *names)
    _cc(tmp_path / "host.c", "-o", tmp_path / "host")
    plugins = []
    for blas in (netlib.path / "libblas.so.3", library, tmp_path / "held.so"):
        plugins.append(tmp_path / f"over_{blas.name}")
        words = (tmp_path / "plugin.c", blas, f"-Wl,-rpath,{blas.parent}", f"-Wl,-rpath,{library.parent}")
        _cc("-shared", "-fPIC", "-o", plugins[-1], *words)
    for preloaded in (library, tmp_path / "held.so"):
        for plugin in plugins:
            environment = {**netlib.environment, "LD_LIBRARY_PATH": str(netlib.path), "LD_PRELOAD": str(preloaded)}
            command = [tmp_path / "host", plugin]
            done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
            assert (done.stdout, done.stderr) == ("plug-in DGEMM  4\nplug-in DGEMM  4\n", ""), (preloaded, plugin)
