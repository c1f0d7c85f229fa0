"""LAPACK's own testers, and the linear algebra tests of NumPy and SciPy, with and without our BLAS preloaded."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tensorop.errors import MissingTool
from tensorop.model.architecture import host_arch
from tests.support import commands, products, testers

pytestmark = [
    pytest.mark.extended,
    pytest.mark.skipif(host_arch() != "x86_64", reason="preloads a product for x86-64"),
]

# Inputs of xeigtst; L stands for the letter of the type.
EIGENVALUES = [
    "nep",
    "sep",
    "se2",
    "svd",
    "Lec",
    "Led",
    "Lgg",
    "Lgd",
    "Lsb",
    "Lsg",
    "Lbb",
    "glm",
    "gqr",
    "gsv",
    "csd",
    "lse",
]
PASSED = re.compile(r"passed the (?:threshold|tests)")
FAILED = re.compile(r"^ *(.+?): +(\d+) out of +\d+ tests failed", re.MULTILINE)
RATIO = re.compile(r"(?:result +\d+ is|test\( *\d+\)=|test=) *([\d.]+(?:[DE][+-]\d+)?)")
# Where two results must have the same bits, as eigenvalues with and without vectors, the ratio of others is 1 / ulp.
# A BLAS gives them if it adds up each element in one order for all sizes. Ours chooses kernels by the size, and BLIS
# fails these tests too.
OTHER_BITS = {"s": 2.0**23, "d": 2.0**52}
# Thresholds are 20 and 30. Other seeds take the reference, OpenBLAS and BLIS over them too.
MOST_RATIO, MOST_ABOVE = 100.0, 2
SUITES = {"numpy": "numpy.linalg", "scipy": "scipy.linalg"}


@pytest.fixture(scope="module")
def prefix(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The product to preload."""
    return products.blas(request.config.getoption("--blas"), tmp_path_factory.mktemp("product") / "blas")


def _runs(letter: str, folder: Path) -> Iterator[tuple[Path, Path]]:
    """LAPACK's programs for a type, each with its input."""
    for program, given in (("xlintst", f"{letter}test"), ("xlintstrf", f"{letter}test_rfp")):
        yield folder / f"{program}{letter}", folder / f"{given}.in"
    if letter == "d":
        yield folder / "xlintstds", folder / "dstest.in"
    for given in EIGENVALUES:
        yield folder / f"xeigtst{letter}", folder / f"{given.replace('L', letter)}.in"


@pytest.mark.parametrize("letter", ["s", "d"])
def test_lapacks_own_testers(letter: str, prefix: Path, tmp_path: Path) -> None:
    """Each family of tests passes as without our library, but for results that are equal to rounding alone."""
    try:
        lapack = testers.lapack_testers()
    except MissingTool as missing:
        pytest.skip(f"{missing}")
    library, log = prefix / "lib/libtensorop_cblas.so", tmp_path / "bindings"
    alone = {**os.environ, **lapack.environment}
    ours = {**alone, "LD_PRELOAD": str(library), "LD_DEBUG": "bindings", "LD_DEBUG_OUTPUT": str(log)}
    above = families = 0
    for program, given in _runs(letter, lapack.path):
        texts = []
        for environment in (alone, ours):
            with given.open() as text:
                done = subprocess.run(
                    [program], stdin=text, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=600
                )
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            texts.append(done.stdout)
        without, tested = texts
        assert not FAILED.search(without), without
        failed = FAILED.findall(tested)
        assert len(PASSED.findall(tested)) + len(failed) == len(PASSED.findall(without)), (given.name, tested)
        ratios = [float(text.replace("D", "E")) for text in RATIO.findall(tested)]
        assert len(ratios) == sum(int(count) for _, count in failed), (given.name, tested)
        rounded = [ratio for ratio in ratios if abs(ratio / OTHER_BITS[letter] - 1) > 1e-3]
        assert all(ratio < MOST_RATIO for ratio in rounded), (given.name, tested)
        above += len(rounded)
        families += len(PASSED.findall(without))
    assert families > 50
    assert above <= MOST_ABOVE
    bound = "".join(path.read_text(errors="replace") for path in tmp_path.glob("bindings.*"))
    served = set(re.findall(rf"to {re.escape(str(library))} \[\d+\]: normal symbol `(\w+)_'", bound))
    assert {letter + name for name in ("gemm", "symm", "syrk", "syr2k", "trmm", "trsm", "gemv", "ger")} <= served


@pytest.mark.parametrize("name", SUITES)
def test_linear_algebra_of_wheels(name: str, prefix: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Each test of NumPy's and SciPy's suites ends as without our library."""
    if name == "scipy" and not request.config.getoption("--blas"):
        pytest.skip("takes several minutes; `make test-blas` runs it")
    found = {}
    for how, words in {"alone": (), "ours": (sys.executable, "-m", "tensorop.preload", str(prefix), "--")}.items():
        file = tmp_path / f"{how}.xml"
        options = ("-q", "-c", os.devnull, "--rootdir", ".", "-p", "no:cacheprovider", "-p", "no:xdist")
        chosen = ("-m", "not slow and not xslow", "--junitxml", str(file), "--pyargs", SUITES[name])
        done = subprocess.run(
            [*words, sys.executable, "-m", "pytest", *options, *chosen],
            cwd=tmp_path,
            env=commands.environment(),
            capture_output=True,
            text=True,
        )
        assert file.is_file(), done.stdout + done.stderr
        cases = ElementTree.parse(file).getroot().iter("testcase")
        found[how] = {f"{one.get('classname')}.{one.get('name')}": [part.tag for part in one] for one in cases}
    assert len(found["alone"]) > 400
    differing = {
        test: (end, found["ours"].get(test)) for test, end in found["alone"].items() if end != found["ours"].get(test)
    }
    assert not differing, done.stdout[-5000:]
    assert re.search(r"^[1-9]\d* of \d+ calls of BLAS were served by ", done.stderr, re.MULTILINE), done.stderr[-2000:]
