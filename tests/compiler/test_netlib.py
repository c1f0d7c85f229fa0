"""Others' judges of a BLAS, preloaded with ours: netlib's testers and the linear algebra tests of Debian's NumPy.

Each fails unless the loader's own log shows that our symbols served.
"""

from __future__ import annotations

import os
import re
import subprocess
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from tensorop import settings
from tensorop.errors import MissingTool
from tensorop.provision import targets
from tests.support import products, testers

pytestmark = pytest.mark.skipif(targets.host_arch() != "x86_64", reason="preloads a product for x86-64")

# netlib's own sizes end at 9: these reach whole tiles, edges and several panels. 65 is the testers' largest.
SIZES = (0, 1, 7, 16, 17, 31, 33, 64, 65)
BINDING = re.compile(r"binding file (\S+) \[\d+\] to (\S+) \[\d+\]: normal symbol `(\w+)'")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The library to preload, small blocks and all variants in use."""
    if "avx2" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this CPU cannot run avx2")
    prefix = products.install("avx2", tmp_path_factory.mktemp("product") / "avx2")
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


def _input(original: str, routine: str, sizes: tuple[int, ...] | None) -> str:
    """netlib's input for one routine alone, with error exits, and other sizes when given."""
    lines = []
    for line in original.splitlines():
        if sizes and "NUMBER OF VALUES OF N" in line:
            line = f"{len(sizes)}    NUMBER OF VALUES OF N"
        elif sizes and "VALUES OF N" in line:
            line = f"{' '.join(map(str, sizes))}    VALUES OF N"
        elif re.match(r"[TF] .*TEST ERROR EXITS", line):
            line = f"T{line[1:]}"
        named = re.match(r"\s*((?:cblas_)?[sdcz]\w+)\s+[TF]\b", line, re.IGNORECASE)
        if named and named[1].lower() != routine:
            line = re.sub(r"(\s)[TF]\b", r"\1F", line, count=1)
        lines.append(line)
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize("sizes", [None, SIZES], ids=["netlib-sizes", "large-sizes"])
@pytest.mark.parametrize("letter", ["s", "d"])
@pytest.mark.parametrize("api", ["fortran", "cblas"])
def test_netlib_testers(
    api: str, letter: str, sizes: tuple[int, ...] | None, netlib: testers.Tester, library: Path, tmp_path: Path
) -> None:
    program, given = (
        (f"xblat3{letter}", f"{letter}blat3.in") if api == "fortran" else (f"x{letter}cblat3", f"{letter}in3")
    )
    routine = f"{letter}gemm" if api == "fortran" else f"cblas_{letter}gemm"
    text = _input((netlib.path / given).read_text(), routine, sizes)
    done = subprocess.run(
        [netlib.path / program],
        input=text,
        cwd=tmp_path,
        env=_environment(netlib, library, tmp_path, str(netlib.path)),
        capture_output=True,
        text=True,
        timeout=300,
    )
    said = done.stdout + "".join(path.read_text() for path in tmp_path.glob("*.out"))
    assert done.returncode == 0, said + done.stderr
    assert not re.search(r"FAILED|FATAL|ABANDONED|\*{5}|SUSPECT", said), said
    # CBLAS's testers go over column-major and row-major.
    assert len(re.findall(r"PASSED THE (?:\w+-MAJOR +)?COMPUTATIONAL TESTS", said)) == (1 if api == "fortran" else 2), (
        said
    )
    assert len(re.findall(r"PASSED THE TESTS OF ERROR", said)) == 1, said
    assert "END OF TESTS" in said
    assert (f"{letter}gemm_" if api == "fortran" else routine) in _served(tmp_path, library)


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


def test_linear_algebra_of_debians_numpy(library: Path, tmp_path: Path) -> None:
    try:
        numpy = testers.debian_numpy()
    except MissingTool as missing:
        pytest.skip(f"{missing}")
    python = Path("/usr/bin/python3")
    seen = os.pathsep.join([_pytest_alone(tmp_path / "pytest"), *filter(None, [numpy.environment.get("PYTHONPATH")])])
    environment = {**_environment(numpy, library, tmp_path), "PYTHONPATH": seen, "PYTHONDONTWRITEBYTECODE": "1"}
    without = {name: value for name, value in environment.items() if name not in ("LD_PRELOAD", "LD_DEBUG")}
    asking = [python, "-c", "import numpy; print(numpy.__file__)"]
    there = subprocess.run(asking, env=without, capture_output=True, text=True)
    if there.returncode != 0 or not Path(there.stdout.strip()).is_relative_to(numpy.path):
        pytest.skip(
            f"{python} cannot import Debian's NumPy ({there.stderr.strip()[-200:]}): apt-get install python3-numpy"
        )
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
