"""The CMake and pkg-config packages among several prefixes: architectures, components, versions, languages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tensorop.author import offline
from tensorop.cuda import library as device_library
from tensorop.model.architecture import host_arch
from tensorop.model.winner import Leaf, Tree, Winners
from tensorop.package import product as making
from tensorop.package import publish
from tensorop.package.sources import OperatorPart
from tensorop.render import instantiate
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.toolchain.compile import DEFINED
from tests.support import device_products, products
from tests.support.commands import ROOT

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="runs products for x86-64")

HEAD = "cmake_minimum_required(VERSION 3.16)\n"
FOUND = 'message("found ${TensorOp_DIR}, considered ${TensorOp_CONSIDERED_VERSIONS}.")\n'
MAIN = """
#include <stdio.h>
#include <tensorop/cblas.h>
int main(void) {
    const double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
    double c[4];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2);
    printf("%g %g %g %g\\n", c[0], c[1], c[2], c[3]);
    return 0;
}
"""
FORTRAN = """
program main
  double precision :: a(3, 2) = reshape([1d0, 2d0, 3d0, 4d0, 5d0, 6d0], [3, 2])
  double precision :: b(2, 3) = reshape([1d0, 0d0, 0d0, 1d0, 1d0, 1d0], [2, 3]), c(2, 2)
  call dgemm('N', 'N', 2, 2, 3, 1d0, b, 2, a, 3, 0d0, c, 2)
  print '(4I3)', int(c)
end program
"""
CONV1D = """
#include <stdio.h>
#include <tensorop/conv1d.h>
#include <tensorop/gemm.h>
int main(void) {
    const float x[4] = {1, 2, 3, 4}, w[2] = {1, 10};
    float y[3], c[4];
    const struct tensorop_conv1d conv1d = {.b = 1, .c = 1, .h = 4, .t = 2, .u = 1, .alpha = 1};
    int failed = tensorop_conv1d_f32(&conv1d, x, w, y, NULL, 0) != TENSOROP_OK;
    failed |= tensorop_sgemm(TENSOROP_ROW_MAJOR, TENSOROP_NO_TRANS, TENSOROP_NO_TRANS, 2, 2, 2, 1, x, 2, x, 2, 0, c, 2);
    printf("%g %g %g %g\\n", y[0], y[1], c[0], c[1]);
    return failed;
}
"""


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Products for this machine and for another, and one of another operator; in a folder whose name has a space."""
    folder = tmp_path_factory.mktemp("packages") / "with space"
    found = {arch: products.install(name, folder / arch) for arch, name in (("x86", "generic"), ("riscv", "rvv"))}
    conv1d = operators.load("conv1d", (ROOT / "examples/operator",))
    (template,) = offline.templates(conv1d.folder, "conv1d")
    variant = instantiate.variant(conv1d, template, "f32", {"wide": 1, "block": 64})
    texts, platform = Texts(), platforms.load("generic")
    texts.kernel(conv1d, platform, variant)
    part = OperatorPart(conv1d, [Winners("f32", (variant,), (Tree(Leaf(0)),))], {}, texts=texts)
    found["conv1d"] = publish.publish(
        publish.stage(making.product(platform, [part]), folder / "conv1d"), folder / "conv1d"
    )
    return found


def _run(*words: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
    if shutil.which(str(words[0])) is None:
        pytest.skip(f"{words[0]} is not installed")
    environment = {**os.environ, **variables}
    return subprocess.run(list(map(str, words)), env=environment, capture_output=True, text=True, timeout=300)


def _configured(lists: str, folder: Path, *path: Path, words: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CMakeLists.txt").write_text(HEAD + lists)
    given = f"-DCMAKE_PREFIX_PATH={';'.join(map(str, path))}"
    return _run("cmake", "-S", folder, "-B", folder / "build", given, *words)


def _built(lists: str, folder: Path, *path: Path) -> None:
    for done in (_configured(lists, folder, *path), _run("cmake", "--build", folder / "build")):
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.one_in(3)
@pytest.mark.parametrize("order", [("x86", "riscv"), ("riscv", "x86")])
@pytest.mark.parametrize("processor", ["x86_64", "riscv64"])
@pytest.mark.extended
def test_the_prefix_of_the_architecture_is_found(
    prefixes: dict[str, Path], order: tuple[str, str], processor: str, tmp_path: Path
) -> None:
    toolchain = tmp_path / "toolchain.cmake"
    toolchain.write_text(f"set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR {processor})\n")
    lists = "project(x NONE)\nfind_package(TensorOp 0.1 REQUIRED COMPONENTS gemm)\n" + FOUND
    words = (f"-DCMAKE_TOOLCHAIN_FILE={toolchain}",)
    done = _configured(lists, tmp_path / "x", *(prefixes[name] for name in order), words=words)
    assert done.returncode == 0, done.stderr
    right = prefixes["riscv" if processor == "riscv64" else "x86"]
    assert f"found {right}/lib/cmake/TensorOp, " in done.stderr
    named = _configured(lists, tmp_path / "x", words=(f"-DTensorOp_DIR={prefixes['conv1d']}/lib/cmake/TensorOp",))
    assert named.returncode == 1, "a folder that is named is checked like one that is found"


def test_the_sources_are_built_without_conclusions_from_loops(prefixes: dict[str, Path], tmp_path: Path) -> None:
    source = prefixes["x86"] / "share" / "tensorop" / "src"
    done = _run("cmake", "-S", source, "-B", tmp_path, "-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
    assert done.returncode == 0, done.stderr
    words = [one["command"].split() for one in json.loads((tmp_path / "compile_commands.json").read_text())]
    assert words
    known = [flag for flag in DEFINED if f"tensorop_has{flag}".replace("-", "_") + ":INTERNAL=1" in _cache(tmp_path)]
    assert {*DEFINED[1:]} <= {*known}  # GCC 12 lacks the first
    assert all({*known} <= {*command} for command in words)


def _cache(folder: Path) -> str:
    return (folder / "CMakeCache.txt").read_text()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("languages", ["C", "CXX", "Fortran", "NONE"])
def test_a_project_of_any_language_links_it(prefixes: dict[str, Path], languages: str, tmp_path: Path) -> None:
    """NONE: the language is enabled after the package was found."""
    if languages == "Fortran" and shutil.which("gfortran") is None:
        pytest.skip("gfortran is not installed")
    if languages == "CXX" and shutil.which("c++") is None:
        pytest.skip("c++ is not installed")
    folder = tmp_path / "a project"
    folder.mkdir()
    source = {"C": "main.c", "CXX": "main.cpp", "Fortran": "main.f90", "NONE": "main.c"}[languages]
    (folder / source).write_text(FORTRAN if languages == "Fortran" else MAIN)
    lists = f"project(x {languages})\nfind_package(TensorOp REQUIRED COMPONENTS cblas)\n"
    lists += "enable_language(C)\n" if languages == "NONE" else ""
    for target in ("cblas", "cblas_static"):
        lists += f"add_executable({target} {source})\ntarget_link_libraries({target} PRIVATE TensorOp::{target})\n"
    _built(lists, folder, prefixes["riscv"], prefixes["x86"])
    for target in ("cblas", "cblas_static"):
        assert subprocess.check_output([folder / "build" / target], text=True).split() == ["4", "5", "10", "11"]


def test_each_operator_is_found_in_its_prefix(prefixes: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(CONV1D)
    lists = "project(x C)\n"
    for name in ("gemm", "conv1d"):
        lists += f"find_package(TensorOp REQUIRED COMPONENTS {name})\n{FOUND}"
    lists += "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE TensorOp::gemm TensorOp::conv1d)\n"
    for order in (("riscv", "x86", "conv1d"), ("conv1d", "riscv", "x86")):
        _built(lists, tmp_path, *(prefixes[name] for name in order))  # the second time with what CMake remembers
        assert subprocess.check_output([tmp_path / "build/main"], text=True).split() == ["21", "32", "7", "10"]


REASONS = [  # what is asked for, what it found or the reasons given
    ("", "x86"),
    ("COMPONENTS gemm OPTIONAL_COMPONENTS absent", "x86"),
    ("OPTIONAL_COMPONENTS conv1d", "x86"),
    ("COMPONENTS absent", "0.1.0 (has no component absent, it has: gemm cblas)"),
    ("0.1 EXACT", "x86"),
    ("0.2", "0.1.0"),
    ("1", "0.1.0"),
    ("0.2 EXACT", "0.1.0"),
    ("0.0.1...0.1", "x86"),
    ("0.0.1...<0.1", "0.1.0"),
    ("0.2...1", "0.1.0"),
]


def test_a_package_says_why_it_does_not_serve(prefixes: dict[str, Path], tmp_path: Path) -> None:
    lists, asked = "project(x NONE)\n", [words for words, _ in REASONS]
    for words in asked:
        lists += f"unset(TensorOp_DIR CACHE)\nfind_package(TensorOp {words} QUIET)\n{FOUND}"
    done = _configured(lists, tmp_path / "quiet", prefixes["riscv"], prefixes["x86"])
    assert (done.returncode, "Warning" in done.stderr) == (0, False), done.stderr
    other = "0.1.0 (for riscv64, this build is for x86_64)"
    for (words, expected), line in zip(REASONS, done.stderr.splitlines(), strict=True):
        found, reason = "TensorOp_DIR-NOTFOUND", expected
        if expected == "x86":
            found, reason = f"{prefixes['x86']}/lib/cmake/TensorOp", "0.1.0"
        assert line == f"found {found}, considered {other};{reason}.", words
    loud = "project(x NONE)\nfind_package(TensorOp REQUIRED COMPONENTS absent)\n"
    refused = _configured(loud, tmp_path / "loud", prefixes["riscv"], prefixes["x86"])
    assert refused.returncode == 1
    assert f"version: {other}" in refused.stderr
    assert "version: 0.1.0 (has no component absent, it has: gemm cblas)" in refused.stderr


def test_narrow_pointers_are_refused(prefixes: dict[str, Path], tmp_path: Path) -> None:
    lists = f"project(x NONE)\nset(CMAKE_SIZEOF_VOID_P 4)\nfind_package(TensorOp)\n{FOUND}"
    done = _configured(lists, tmp_path, prefixes["x86"])
    assert "found TensorOp_DIR-NOTFOUND, considered 0.1.0 (for 64-bit programs, pointers of this build" in done.stderr


@pytest.mark.parametrize("order", [("x86", "riscv"), ("riscv", "x86")])
@pytest.mark.parametrize("kind", ["shared", "static"])
def test_pkg_config_finds_the_architecture_by_name(
    prefixes: dict[str, Path], order: tuple[str, str], kind: str, tmp_path: Path
) -> None:
    if shutil.which("cc") is None:
        pytest.skip("cc is not installed")
    path = ":".join(f"{prefixes[name]}/lib/pkgconfig" for name in order)
    static = ["--static"] if kind == "static" else []

    def said(*words: str) -> str:
        done = _run("pkg-config", *words, PKG_CONFIG_PATH=path)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    (tmp_path / "main.c").write_text(MAIN)
    flags = said("--cflags", "--libs", *static, "tensorop_cblas-x86_64")
    flags += f" -Wl,-rpath,{said('--variable=libdir', 'tensorop_cblas-x86_64')}" if kind == "shared" else " -static"
    command = f"cc '{tmp_path}/main.c' -o '{tmp_path}/main' {flags}"  # pkg-config quotes for a shell
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert subprocess.check_output([tmp_path / "main"], env={}, text=True).split() == ["4", "5", "10", "11"]
    assert said("--variable=arch", "tensorop_cblas-riscv64") == "riscv64"
    assert said("--variable=platform", "tensorop_gemm-x86_64") == "generic"
    assert said("--variable=arch", "tensorop_gemm") == {"x86": "x86_64", "riscv": "riscv64"}[order[0]]
    assert "(tensorop, for rvv, riscv64)" in said("--list-all")


PARENT = """
#include <stdio.h>
#include <tensorop/attention.h>
#include <tensorop/cblas.h>
#include <tensorop/conv2d.h>
#include <tensorop/gemm.h>
#include <tensorop/gemm_cuda.h>
int main(int count, char **words) {
    const void *linked[] = {words, (void *)tensorop_sconv2d, (void *)tensorop_sattention, (void *)tensorop_gemm_create};
    const double a[6] = {1, 2, 3, 4, 5, 6}, b[6] = {1, 0, 0, 1, 1, 1};
    double c[4];
    cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, 2, 2, 3, 1, a, 3, b, 2, 0, c, 2);
    printf("%g %g %g %g\\n", c[0], c[1], c[2], c[3]);
    return linked[count] == NULL;
}
"""


def _one_kernel(name: str) -> OperatorPart:
    """An operator of gemm's kernels with a single variant of f32."""
    operator, platform, texts = operators.load(name), platforms.load("generic"), Texts()
    template = next(one for one in offline.templates(operator.folder, name, operator.added) if one.name == "outer")
    own = {key: values[0] for key, values in template.tunables.items()} | {"mr_vectors": 2, "nr": 4}
    variant = instantiate.variant(operator, template, "f32", instantiate.defaults(operator, platform, "f32", own))
    texts.kernel(operator, platform, variant)
    return OperatorPart(operator, [Winners("f32", (variant,), (Tree(Leaf(0)),))], {}, texts=texts)


@pytest.fixture(scope="module")
def sources(prefixes: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The source folders of products, by operator."""
    folder = tmp_path_factory.mktemp("sources")
    found = {"gemm": prefixes["x86"] / "share/tensorop/src"}
    for name in ("conv2d", "attention"):
        made = making.product(platforms.load("generic"), [_one_kernel(name)])
        publish.publish(publish.stage(made, folder / name), folder / name)
        found[name] = folder / name / "share/tensorop/src"
    platform = platforms.load("cuda-sm90")
    content, _ = device_products.made(platform)
    texts = device_library.sources(content.operator, platform, content.variants, content.images, {"schema": 1})
    found["gemm_cuda"] = folder / "gemm_cuda"
    for name, data in texts.items():
        path = found["gemm_cuda"] / (f"include/{name}" if name.startswith("tensorop/") else name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return found


def test_sources_are_part_of_another_build(sources: dict[str, Path], tmp_path: Path) -> None:
    """All of them in one, with a unity build and all warnings."""
    (tmp_path / "main.c").write_text(PARENT)
    lists = "project(parent C)\n"
    for name, folder in sources.items():
        lists += f'add_subdirectory("{folder}" {name})\n'
    for main, suffix in (("main", ""), ("main_static", "_static")):
        targets = f"TensorOp::cblas{suffix} TensorOp::conv2d{suffix} TensorOp::attention{suffix} TensorOp::gemm_cuda"
        lists += f"add_executable({main} main.c)\ntarget_link_libraries({main} PRIVATE {targets})\n"
    words = ("-DCMAKE_UNITY_BUILD=ON", "-DCMAKE_C_FLAGS=-Wall -Wextra")
    done = _configured(lists, tmp_path, words=words)
    assert done.returncode == 0, done.stderr
    built = _run("cmake", "--build", tmp_path / "build", "-j2")
    assert built.returncode == 0, built.stdout + built.stderr
    assert "warning" not in built.stdout + built.stderr
    for main in ("main", "main_static"):
        assert subprocess.check_output([tmp_path / "build" / main], text=True).split() == ["4", "5", "10", "11"]


@pytest.mark.parametrize("libraries", ["lib64", "lib/x86_64-linux-gnu"])
def test_sources_are_installed_where_the_build_says(
    prefixes: dict[str, Path], sources: dict[str, Path], libraries: str, tmp_path: Path
) -> None:
    where = (
        f"-DCMAKE_INSTALL_LIBDIR={libraries}",
        "-DCMAKE_INSTALL_INCLUDEDIR=include/deep",
        "-DCMAKE_BUILD_TYPE=None",
    )
    for name in ("gemm", "gemm_cuda"):
        build = tmp_path / name
        for words in (("-S", sources[name], "-B", build, *where), ("--build", build, "-j2"), ("--install", build)):
            more = ("--prefix", tmp_path / "out") if words[0] == "--install" else ()
            done = _run("cmake", *words, *more)
            assert done.returncode == 0, done.stdout + done.stderr
    out = (tmp_path / "out").rename(tmp_path / "moved")
    assert {path.name for path in (out / libraries).glob("*.so")} == {
        f"libtensorop_{name}.so" for name in ("gemm", "cblas", "gemm_cuda")
    }
    assert {path.relative_to(out).parts[0] for path in out.rglob("*.so*")} == {Path(libraries).parts[0]}
    (tmp_path / "main.c").write_text(MAIN)
    lists = "project(x C)\nfind_package(TensorOp REQUIRED COMPONENTS cblas)\n"
    lists += "add_executable(main main.c)\ntarget_link_libraries(main PRIVATE TensorOp::cblas)\n"
    config = f"-DTensorOp_DIR={out}/{libraries}/cmake/TensorOp"
    done = _configured(lists, tmp_path, words=(config,))
    assert done.returncode == 0, done.stderr
    assert _run("cmake", "--build", tmp_path / "build").returncode == 0
    assert subprocess.check_output([tmp_path / "build/main"], text=True).split() == ["4", "5", "10", "11"]
    flags = _run("pkg-config", "--cflags", "--libs", "tensorop_cblas", PKG_CONFIG_PATH=f"{out}/{libraries}/pkgconfig")
    command = f"cc {tmp_path}/main.c -o {tmp_path}/by_pc {flags.stdout.strip()} -Wl,-rpath,{out}/{libraries}"
    subprocess.run(["sh", "-c", command], check=True, timeout=120)
    assert subprocess.check_output([tmp_path / "by_pc"], text=True).split() == ["4", "5", "10", "11"]
