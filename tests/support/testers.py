"""Judges of a finished library that Debian packages: netlib's BLAS testers and a NumPy that loads the system's BLAS.

The system's are taken where they are installed; else the same packages are unpacked into the cache. PyPI's NumPy
carries its own BLAS and never sees a preload, so it does not serve.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass
from pathlib import Path

from tensorop.model.architecture import architecture, host_arch
from tensorop.provision import cache, debian

SUITE = "bookworm"
_BLAS = ("libblas3", "libgfortran5", "libquadmath0")


@dataclass(frozen=True)
class Tester:
    """Where a judge lies. `environment` makes it find its own libraries; a preload comes on top."""

    path: Path
    environment: dict[str, str]


def _unpack(name: str, packages: tuple[str, ...], offline: bool | None) -> Path:
    t = architecture(host_arch())
    # Debian's amd64 alone has libquadmath0.
    wanted = tuple(p for p in packages if p != "libquadmath0" or t.name == "x86_64")
    of = debian.Packages(wanted, SUITE, t.name, packages[0], hint=f"apt-get install {packages[0]}")
    folder = cache.entry_path("testers", f"{name}-{SUITE}-{t.debian}-{of.recipe}")
    return of.entry(folder, "").bring(offline=offline)


def _libraries(root: Path) -> str:
    lib = root / "usr/lib" / architecture(host_arch()).multiarch
    return ":".join(str(p) for p in (lib / "blas", lib / "lapack", lib))


def blas_testers(*, offline: bool | None = None) -> Tester:
    """The folder of netlib's testers (xblat3s, xscblat3, their inputs). Raises MissingTool."""
    if found := sorted(glob.glob("/usr/lib/*/blas/xblat3s")):
        return Tester(Path(found[0]).parent, {})
    root = _unpack("blas", ("libblas-test", *_BLAS), offline)
    folder = root / "usr/lib" / architecture(host_arch()).multiarch / "blas"
    return Tester(folder, {"LD_LIBRARY_PATH": _libraries(root)})


def lapack_testers(*, offline: bool | None = None) -> Tester:
    """The folder of LAPACK's own testers (xlintsts, xeigtsts, their inputs). Raises MissingTool."""
    if found := sorted(glob.glob("/usr/lib/*/lapack/xlintsts")):
        folder = Path(found[0]).parent
        return Tester(folder, {"LD_LIBRARY_PATH": f"{folder}:{folder.with_name('blas')}"})
    root = _unpack("lapack", ("liblapack-test", "libtmglib3", "liblapack3", *_BLAS), offline)
    libraries = _libraries(root)
    return Tester(Path(libraries.split(":")[1]), {"LD_LIBRARY_PATH": libraries})


def debian_numpy(*, offline: bool | None = None) -> Tester:
    """Debian's NumPy, for /usr/bin/python3 of Debian 12 (Python 3.11). Raises MissingTool."""
    system = Path("/usr/lib/python3/dist-packages")
    if (system / "numpy/__init__.py").is_file():
        return Tester(system, {})
    root = _unpack("numpy", ("python3-numpy", "liblapack3", *_BLAS), offline)
    packages = root / "usr/lib/python3/dist-packages"
    return Tester(packages, {"PYTHONPATH": str(packages), "LD_LIBRARY_PATH": _libraries(root)})
