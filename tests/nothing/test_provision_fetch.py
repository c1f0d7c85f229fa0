"""Wheels by digest, from an index of our own; names of libraries; what check says of a bare machine."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest
from packaging.version import Version

from tensorop import errors
from tensorop.model.architecture import ARCHITECTURES, host_arch
from tensorop.provision import baseline, cache, check, process, pypi, qemu
from tensorop.specs import native


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> pypi.Wheel:
    """A wheel with one library in it, served to the real pip from a folder."""
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    file = shelf / "tinypeer-1.0-py3-none-manylinux_2_28_aarch64.whl"
    with zipfile.ZipFile(file, "w") as z:
        z.writestr("tinypeer/lib/libtiny.so", b"\x7fELF")
        z.writestr("tinypeer/other.py", "")
        z.writestr("tinypeer-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tinypeer\nVersion: 1.0\n")
        z.writestr("tinypeer-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-manylinux_2_28_aarch64\n")
        z.writestr("tinypeer-1.0.dist-info/licenses/LICENSE", "free")
        z.writestr("tinypeer-1.0.dist-info/RECORD", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(shelf))
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache"))
    return pypi.Wheel("tinypeer", "1.0", "manylinux_2_28_aarch64", pypi.sha256(file))


def test_a_wheel_for_another_machine_is_unpacked_with_its_licence(wheel: pypi.Wheel, tmp_path: Path) -> None:
    pypi.unpacker([wheel], ["tinypeer/lib/*.so"], hint="")(tmp_path)
    assert (tmp_path / "libtiny.so").read_bytes() == b"\x7fELF"
    assert (tmp_path / "tinypeer-LICENSE").read_text() == "free"
    assert not (tmp_path / "other.py").exists()
    assert not (tmp_path / ".wheels").exists()


def test_another_digest_is_refused(wheel: pypi.Wheel, tmp_path: Path) -> None:
    forged = pypi.Wheel(wheel.project, wheel.version, wheel.platform, "0" * 64)
    fill = pypi.unpacker([forged], ["*"], hint="")
    with pytest.raises(errors.MissingTool, match="expected 0000"):
        cache.CacheEntry(cache.entry_path("x"), fill, what="x", command="y").bring()
    assert not cache.entry_path("x").exists()


def test_a_wheel_that_is_not_there(wheel: pypi.Wheel, tmp_path: Path) -> None:
    absent = pypi.Wheel("tinypeer", "2.0", wheel.platform, wheel.sha256)
    with pytest.raises(errors.MissingTool, match=r"fetching tinypeer 2\.0 .* failed") as caught:
        pypi.download(absent, tmp_path / "w", hint="try this")
    assert str(caught.value.hint).endswith("then: try this")


def test_a_tool_that_is_not_there() -> None:
    with pytest.raises(errors.MissingTool, match="no-such-tool is not on this machine"):
        process.run(["no-such-tool"], doing="fetching", hint="install it")


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_every_architecture_has_the_baselines(arch: str) -> None:
    assert {"openblas", "openblas@0.3.29"} <= set(baseline.names(arch))
    newest = baseline.baseline("openblas", arch)
    assert newest.version.startswith(baseline.OPENBLAS)
    assert newest.prefix == "scipy_"
    for name in baseline.names(arch):
        assert baseline.baseline(name, arch).arch == arch


def test_a_baseline_is_as_it_is_fastest_with_so_many_threads() -> None:
    one, four = (baseline.baseline("mkl", "x86_64", threads) for threads in (1, 4))
    assert (one.environment["MKL_THREADING_LAYER"], four.environment["MKL_THREADING_LAYER"]) == ("SEQUENTIAL", "GNU")
    assert one.entry.folder == four.entry.folder
    one, four = (baseline.baseline("blis", "x86_64", threads) for threads in (1, 4))
    assert "serial" in one.file
    assert "pthread" in four.file
    assert one.entry.folder != four.entry.folder


def test_a_package_of_this_python_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    numpy = baseline.InstalledPackage("numpy", Version("1"))
    assert numpy.bring() == Path(np.__file__).parent
    with pytest.raises(errors.MissingTool, match=r"numpy is version [0-9.]+, older than 999 in the Python"):
        baseline.InstalledPackage("numpy", Version("999")).bring()
    monkeypatch.setattr("sys.path", [])
    with pytest.raises(errors.MissingTool, match="torch is not installed in the Python that runs tensorop") as caught:
        baseline.baseline("torch", "x86_64").bring()
    assert caught.value.hint == "pip install 'torch>=2.8'"


def test_unknown_names_are_the_users_error() -> None:
    with pytest.raises(errors.UsageError, match="unknown architecture 'riscv46'") as caught:
        baseline.names("riscv46")
    assert "riscv64" in str(caught.value.hint)
    with pytest.raises(errors.UsageError, match="unknown baseline"):
        baseline.baseline("onedn", "x86_64")
    with pytest.raises(errors.UsageError, match="unknown version of OpenBLAS"):
        baseline.baseline("openblas@0.1", "x86_64")
    with pytest.raises(errors.UsageError, match="unknown baseline for riscv64"):
        baseline.baseline("mkl", "riscv64")


def test_a_bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Empty PATH, empty cache: each piece missing, each with the command that brings it."""
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    other = next(a for a in ARCHITECTURES if a != host_arch())
    found = {p.name: p for p in check.pieces([other])}
    for name in (f"qemu-{other}", f"sysroot {other}", f"openblas {other}", "C compiler", "cmake"):
        assert found[name].status == "missing", name
        assert found[name].command, name
        assert found[name].path == "", name


def test_a_qemu_without_plugins_is_too_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Debian 13's: it runs, its -help has no -plugin."""
    arch = next(a for a in ARCHITECTURES if a != host_arch())
    fake = tmp_path / f"qemu-{arch}"
    fake.write_text("#!/bin/sh\necho '-strace  log system calls'\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("TENSOROP_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("shutil.which", lambda name: str(fake) if name == fake.name else None)
    piece = next(p for p in check.pieces([arch]) if p.name == f"qemu-{arch}")
    assert (piece.status, piece.path) == ("old", str(fake))
    with pytest.raises(errors.MissingTool, match="offline") as caught:
        qemu.qemu(arch, offline=True)
    assert "tensorop.provision qemu" in str(caught.value.hint)


def test_cpu_features() -> None:
    flags = native.cpu_flags()
    assert check.cpu_features("this machine", flags).status == "ok"
    lacking = check.cpu_features("another", [*flags, "no_such_flag"])
    assert lacking.status == "missing"
    assert "no_such_flag" in lacking.purpose


def test_declared_packages_are_here() -> None:
    found = check.python_packages()
    assert {"numpy", "ziglang"} <= {p.name for p in found}
    assert [p for p in found if p.status != "ok"] == []
