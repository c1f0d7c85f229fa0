"""What each architecture is called by Debian, by zig and by PyPI."""

from __future__ import annotations

from dataclasses import dataclass

from tensorop import errors
from tensorop.specs.native import host_arch as host_arch


@dataclass(frozen=True)
class Target:
    """One architecture, in everybody's spelling.

    `static_triple` and `static_cpu` are the one pair of strings with which harnesses are linked: zig builds its
    start-up and support code anew for each pair.
    """

    arch: str
    debian: str
    multiarch: str
    static_triple: str
    static_cpu: str
    emulated_cpu: str  # QEMU's -cpu that has the most of it, for programs whose platform nobody named


TARGETS = {
    t.arch: t
    for t in (
        Target("x86_64", "amd64", "x86_64-linux-gnu", "x86_64-linux-musl", "x86_64_v2", "max"),
        Target("aarch64", "arm64", "aarch64-linux-gnu", "aarch64-linux-musl", "baseline", "max"),
        Target(
            "riscv64",
            "riscv64",
            "riscv64-linux-gnu",
            "riscv64-linux-musl",
            "baseline_rv64+v",
            "rv64,v=true,vext_spec=v1.0,vlen=256,elen=64",
        ),
    )
}


def target(arch: str) -> Target:
    """The row of an architecture. Raises UsageError for an unknown one."""
    if arch not in TARGETS:
        raise errors.unknown_name("architecture", arch, TARGETS)
    return TARGETS[arch]
