"""One product of two operators: gemm, and one of a user's folder, from fixed winners to every command and to C."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

import tensorop as package
from tensorop.author import offline
from tensorop.errors import JobError, UsageError
from tensorop.model.architecture import host_arch
from tensorop.model.winner import Leaf, Tree, Winners
from tensorop.package import product as making
from tensorop.package import publish
from tensorop.package.sources import OperatorPart, ProductLibrary, Sources, Unit, together
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.toolchain import shared_library
from tests.support import products
from tests.support.commands import ROOT, tensorop

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="loads products for x86-64")

OWN = ROOT / "examples" / "operator"
BOTH = """
#include <stdio.h>
#include <tensorop/conv1d.h>
#include <tensorop/gemm.h>

int main(void) {
    const float x[4] = {1, 2, 3, 4}, w[2] = {1, 10};
    float y[3], c[4];
    tensorop_set_num_threads(3);
    const struct tensorop_conv1d conv1d = {.b = 1, .c = 1, .h = 4, .t = 2, .u = 1, .alpha = 1};
    if (tensorop_conv1d_f32(&conv1d, x, w, y, NULL, 0) != TENSOROP_OK)
        return 1;
    if (tensorop_sgemm(TENSOROP_ROW_MAJOR, TENSOROP_NO_TRANS, TENSOROP_NO_TRANS, 2, 2, 2, 1, x, 2, x, 2, 0, c, 2))
        return 2;
    printf("%g %g %g  %g %g %g %g  %d\\n", y[0], y[1], y[2], c[0], c[1], c[2], c[3], tensorop_get_num_threads());
    return 0;
}
"""


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    conv1d = operators.load("conv1d", (OWN,))
    (template,) = offline.templates(conv1d.folder, "conv1d")
    variants = tuple(instantiate.variant(conv1d, template, "f32", {"wide": n, "block": 64 * n}) for n in (1, 2))
    platform, texts = platforms.load("generic"), Texts()
    for variant in variants:  # one of a user's own is judged before it is packaged
        texts.kernel(conv1d, platform, variant)
    parts = [
        OperatorPart(operators.load("gemm"), products.winners(("f32",)), {"seed": 1}),
        OperatorPart(conv1d, [Winners("f32", variants, (Tree(Leaf(1)),))], {"seed": 2}, texts=texts),
    ]
    folder = tmp_path_factory.mktemp("two") / "out"
    return publish.publish(publish.stage(making.product(platform, parts), folder), folder)


def test_what_lies_in_it(prefix: Path) -> None:
    manifest = json.loads((prefix / "share/tensorop/manifest.json").read_text())
    assert list(manifest["operators"]) == ["conv1d", "gemm"]
    assert [manifest["operators"][name]["facts"] for name in ("gemm", "conv1d")] == [{"seed": 1}, {"seed": 2}]
    assert {path.name for path in (prefix / "include/tensorop").iterdir()} == {
        "cblas.h",
        "common.h",
        "conv1d.h",
        "gemm.h",
    }
    libraries = {path.name for path in (prefix / "lib").glob("*.so")}
    assert libraries == {"libtensorop_gemm.so", "libtensorop_conv1d.so", "libtensorop_cblas.so"}
    assert "libtensorop_gemm.so.0" in shared_library.facts(prefix / "lib/libtensorop_cblas.so").needed
    assert "libtensorop_conv1d.so.0" not in shared_library.facts(prefix / "lib/libtensorop_cblas.so").needed


def test_python_calls_both(prefix: Path) -> None:
    library = package.load(prefix, (OWN,))
    assert list(library.operators) == ["conv1d", "gemm"]
    a = np.arange(9, dtype=np.float32).reshape(3, 3)
    assert np.array_equal(library.gemm(a, a), a @ a)
    assert library.conv1d(a[None], a[:, :1]).shape == (1, 3, 3)
    library.threads = 2
    assert library.threads == 2
    assert {name: card["facts"]["seed"] for name, card in library.card.items()} == {"gemm": 1, "conv1d": 2}
    with pytest.raises(AttributeError, match="computes conv1d, gemm, there is no 'conv2d'"):
        library.conv2d  # noqa: B018


@pytest.mark.parametrize("kind", ["shared", "static"])
def test_c_calls_both(prefix: Path, kind: str, tmp_path: Path) -> None:
    if any(shutil.which(tool) is None for tool in ("cc", "cmake")):
        pytest.skip("cc or cmake is not installed")
    (tmp_path / "both.c").write_text(BOTH)
    suffix = "_static" if kind == "static" else ""
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.16)\nproject(both C)\n"
        "find_package(TensorOp REQUIRED COMPONENTS gemm conv1d cblas)\n"
        f"add_executable(both both.c)\ntarget_link_libraries(both TensorOp::conv1d{suffix} TensorOp::gemm{suffix})\n"
    )
    for words in (("-S", tmp_path, "-B", tmp_path / "b", f"-DCMAKE_PREFIX_PATH={prefix}"), ("--build", tmp_path / "b")):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stdout + done.stderr
    assert subprocess.check_output([tmp_path / "b/both"], text=True) == "21 32 43  7 10 15 22  3\n"


@pytest.mark.extended
def test_sources_build_alone(prefix: Path, tmp_path: Path) -> None:
    if any(shutil.which(tool) is None for tool in ("cc", "cmake")):
        pytest.skip("cc or cmake is not installed")
    build = tmp_path / "build"
    for words in (
        ("-S", prefix / "share/tensorop/src", "-B", build, "-DCMAKE_INSTALL_LIBDIR=lib"),
        ("--build", build, "-j2"),
        ("--install", build, "--prefix", tmp_path / "out"),
    ):
        done = subprocess.run(["cmake", *words], capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stdout + done.stderr

    def tree(root: Path) -> set[str]:
        return {path.relative_to(root).as_posix() for path in root.rglob("*")}

    made = {"share/tensorop/manifest.json", "share/tensorop/report.html"}
    assert tree(prefix) - made == tree(tmp_path / "out")


@pytest.mark.extended
def test_every_command_takes_it(prefix: Path) -> None:
    verified = tensorop("verify", prefix, "--plugins", OWN, "--format", "json", cwd=ROOT)
    assert verified.status == 0, verified.stderr
    assert {verdict["op"] for verdict in verified.json()["verdicts"]} == {"gemm", "conv1d"}
    cards = tensorop("inspect", prefix, "--format", "json", cwd=ROOT).json()
    assert {name: card["operator"] for name, card in cards.items()} == {
        "libtensorop_gemm.so": "gemm",
        "libtensorop_conv1d.so": "conv1d",
    }
    said = tensorop("report", prefix, "--plugins", OWN, "--format", "json", cwd=ROOT)
    assert said.status == 0, said.stderr
    assert said.json()["run"]["facts"] == {"operator": "conv1d, gemm", "platform": "generic"}
    assert {plane["operator"] for plane in said.json()["maps"]} == {"gemm", "conv1d"}
    shapes = ("--shapes", "b1c1h64t3", "--fast", "--format", "json")
    one = tensorop("bench", prefix / "lib/libtensorop_conv1d.so", "--plugins", OWN, *shapes, cwd=ROOT)
    assert one.status == 0, one.stderr
    assert [row["op"] for row in one.json()["results"]] == ["conv1d"]
    older = ROOT / "tests/data/run/share/tensorop/bench.json"
    refused = tensorop("bench", prefix, "--plugins", OWN, "--compare", older, cwd=ROOT)
    assert (refused.status, "--compare works on one library, and" in refused.stderr) == (2, True)


def test_one_of_several_is_asked_for_by_its_library(prefix: Path) -> None:
    from tensorop.commands import opened

    with pytest.raises(UsageError, match="contains several operators") as refused:
        opened.open_product(prefix, (OWN,))
    assert "libtensorop_conv1d.so, libtensorop_gemm.so" in str(refused.value.hint)


def one(operator: str, header: str = "") -> Sources:
    names = ProductLibrary("tensorop_cblas", "names", (Unit("cblas.c", operator),), (f"cblas_{operator}",), (operator,))
    own = ProductLibrary(operator, operator, (Unit("api.c", operator),), (operator,))
    return Sources((("common.h", header),), (("dispatch.h", operator),), (own, names))


def test_standard_names_of_several_operators_are_one_library() -> None:
    made = together({"gemm": one("gemm"), "trsm": one("trsm")})
    assert [library.name for library in made.libraries] == ["gemm", "trsm", "tensorop_cblas"]
    names = made.libraries[-1]
    assert (names.over, names.exports) == (("gemm", "trsm"), ("cblas_gemm", "cblas_trsm"))
    assert [unit.name for unit in names.units] == ["gemm/cblas.c", "trsm/cblas.c"]
    assert dict(made.seen_by(names.units[1]).files)["trsm/dispatch.h"] == "trsm"
    assert "gemm/dispatch.h" not in dict(made.seen_by(names.units[1]).files)
    with pytest.raises(JobError, match=r"two operators of a product both have a file common\.h"):
        together({"gemm": one("gemm"), "trsm": one("trsm", "another")})
