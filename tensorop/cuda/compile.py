"""Compiles a device's kernel with nvcc, and refuses machine code that spills registers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tensorop.model.platform import Platform
from tensorop.model.trial import Kind, Outcome
from tensorop.provision.nvcc import Nvcc
from tensorop.runners import process
from tensorop.toolchain import cache, tool
from tensorop.toolchain.cache import BuildLog

_PRODUCT = "kernel.fatbin"
_FLAGS = ("-std=c++17", "-O3", "-Xptxas", "-v", "-fatbin")
# ptxas spilled the accumulators, or it waits for each product before the next one (C75xx). With ptxas 13.0:
# - 3 x 128 accumulators in 512 threads are refused (C7602)
# - 192 accumulators fit into 232 registers a thread only if the kernel has a single way to store C
# - a producer with 24 registers spills
_SPILLED = re.compile(r"[1-9]\d* bytes (?:stack frame|spill \w+)")
_WARNED = re.compile(r"C75\d\d[^\n]*")
_USED = re.compile(r"Used (\d+) registers")


@dataclass(frozen=True)
class Built:
    """A kernel's machine code."""

    image: bytes  # the fat binary that the driver loads
    registers: int  # of a thread; the maximum over its architectures


def build(source: str, codes: str, nvcc: Nvcc, timeout_s: float = 300.0) -> Built | Outcome:
    """The machine code of a kernel's file for each of `codes` (sm_90a, or compute_80 for PTX), cached.

    Outcome: COMPILE, TIMEOUT, or OBJECT if it spills.
    """
    wanted = codes.split()
    oldest = [code.removeprefix("sm_").removeprefix("compute_") for code in wanted]
    pairs = [f"-gencode=arch=compute_{one},code={code}" for one, code in zip(oldest, wanted, strict=True)]
    argv = (str(nvcc.binary), *_FLAGS, *pairs, "kernel.cu", "-o", _PRODUCT)
    key = cache.key_of(source, argv[1:], nvcc.version, nvcc.ptxas)

    def fill(folder: Path) -> BuildLog | Outcome:
        (folder / "kernel.cu").write_text(source)
        ended = process.run(argv, cwd=folder, timeout_s=timeout_s, limits=tool.LIMITS)
        log = ended.stdout.decode(errors="replace") + ended.stderr
        if ended.timed_out:
            return Outcome(Kind.TIMEOUT, "build", f"nvcc did not end within {timeout_s:g} s", log[:4096])
        if ended.status != 0:
            return Outcome(Kind.COMPILE, "build", f"nvcc failed: {_first(log)}", log[:4096])
        if found := _SPILLED.search(log) or _WARNED.search(log):
            return Outcome(Kind.OBJECT, "build", f"ptxas: {found[0]}", log[:4096])
        return BuildLog(("nvcc", *argv[1:]), log)

    built = cache.entry("cuda", key, _PRODUCT, fill)
    if isinstance(built, Outcome):
        return built
    return Built(built.path.read_bytes(), max(map(int, _USED.findall(built.log)), default=0))


def _first(log: str) -> str:
    return next((line.strip() for line in log.splitlines() if "error" in line), log.strip()[:200])


def codes(platform: Platform, dtype: str) -> str:
    """The architectures of a platform that support a dtype."""
    device = platform.device or {}
    every = str(device["code"])
    if not dtype.startswith("bf16"):
        return every
    number = {code: int("".join(c for c in code if c.isdigit())) for code in every.split()}
    return " ".join(code for code in number if number[code] >= int(device.get("least_bf16", 0)))
