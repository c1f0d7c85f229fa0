"""nvcc: this machine's, the one of the extra `cuda`, or one set of NVIDIA's wheels from PyPI, by digest."""

from __future__ import annotations

import importlib.util
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from tensorop import errors
from tensorop.provision import cache, process, pypi

# One set: pip mixes releases of unpinned wheels. crt has nvcc's own headers; cuda_fp16.h includes cccl's <nv/target>.
_WHEELS = pypi.wheels("""
nvidia-cuda-nvcc 13.0.88 manylinux_2_17_x86_64 56fe502eb77625a12f25172caa3cdddb4e4c8ba2c8c17dba44b164761b380f03
nvidia-nvvm 13.0.88 manylinux_2_12_x86_64 c5f41ffeb6466944a026dfa5317d7d85355c119bbec279205d22f1869d1054e0
nvidia-cuda-crt 13.0.88 manylinux_2_17_x86_64 2c8043c7c9e02492716426e9919fc78d2c5b3b2a7a768a88e952676b08aa55a4
nvidia-cuda-runtime 13.0.96 manylinux_2_17_x86_64 7f82250d7782aa23b6cfe765ecc7db554bd3c2870c43f3d1821f1d18aebf0548
nvidia-cuda-cccl 13.0.85 manylinux_2_17_x86_64 e0da7ad981f3a8aff08241b5bfc1af868742a63e2762f53a5171c492ef242649
""")
VERSION = _WHEELS[0].version
_MEGABYTES = 102
_COMMAND = "python -m tensorop.provision nvcc"
_OLDEST = (12, 3)
_USUAL = Path("/usr/local/cuda/bin/nvcc")


@dataclass(frozen=True)
class Nvcc:
    """An nvcc, with ptxas beside it."""

    binary: Path
    version: str  # of nvcc
    ptxas: str  # version of ptxas


def nvcc(*, offline: bool | None = None) -> Nvcc:
    """The first nvcc that is found, fetched if there is none.

    Raises MissingTool without the network, or without g++, which nvcc runs on its files first.
    """
    if shutil.which("g++") is None:
        raise errors.MissingTool("nvcc needs g++, which is not on this machine", hint="apt install g++")
    for place in (shutil.which("nvcc"), _USUAL, _of_extra()):
        if place and (found := _asked(Path(place))):
            return found
    folder = cache.CacheEntry(
        cache.entry_path("nvcc", VERSION),
        pypi.placer(_WHEELS, _place, hint=_COMMAND),
        what=f"nvcc {VERSION}",
        command=_COMMAND,
        purpose="the compiler of device code",
        megabytes=_MEGABYTES,
    ).bring(offline=offline)
    if found := _asked(folder / "bin" / "nvcc"):
        return found
    raise errors.MissingTool(f"{folder}/bin/nvcc does not run", hint=f"delete {folder}, then run {_COMMAND}")


def _of_extra() -> Path | None:
    spec = importlib.util.find_spec("nvidia")
    for root in (spec and spec.submodule_search_locations) or ():
        if (binary := Path(root) / "cu13" / "bin" / "nvcc").is_file():
            return binary
    return None


def _asked(binary: Path) -> Nvcc | None:
    """An nvcc with its versions; None if it does not run or is too old for TMA instructions."""
    versions = [
        re.search(r"release [\d.]+, V([\d.]+)", process.output_of(binary.with_name(name), "--version"))
        for name in ("nvcc", "ptxas")
    ]
    if versions[0] is None or versions[1] is None:
        return None
    version, ptxas = versions[0][1], versions[1][1]
    return Nvcc(binary, version, ptxas) if tuple(map(int, version.split(".")[:2])) >= _OLDEST else None


def _place(wheel: pypi.Wheel, name: str) -> str | None:
    """Paths of the files in the wheels' common folder nvidia/cu13, and of their licenses."""
    inside = name.partition("nvidia/cu13/")[2]
    if not inside and ".dist-info/licenses/" in name:
        return f"licenses/{wheel.project}-{Path(name).name}"
    return None if inside.endswith(".a") or "nvlink" in inside else inside
