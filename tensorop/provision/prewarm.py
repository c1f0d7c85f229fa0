"""Fetches and builds what a job on one architecture needs, all at once, while the caller does something else."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait

from tensorop.model.architecture import host_arch
from tensorop.process import children
from tensorop.provision import baseline, libc, objdump, qemu

LETTING_GO_S = 5.0  # for those that wait for a killed child; a download ends by itself


def jobs(arch: str, *, shared: str | None = None, offline: bool | None = None) -> dict[str, Callable[[], object]]:
    """What there is to bring for an architecture, by name; `shared` is the triple of its products, when wanted."""
    todo: dict[str, Callable[[], object]] = {
        "libc": lambda: libc.warm(arch, offline=offline),
        "objdump": lambda: objdump.objdump(offline=offline),
        "openblas": lambda: baseline.baseline("openblas", arch).bring(offline=offline),
    }
    if arch != host_arch():
        todo["qemu"] = lambda: qemu.qemu(arch, offline=offline)
        todo["sysroot"] = lambda: qemu.sysroot(arch, offline=offline)
    if shared is not None:
        todo["product"] = lambda: libc.warm_shared(arch, shared)
    return todo


def prewarm(arch: str, *, shared: str | None = None, offline: bool | None = None) -> dict[str, Future[object]]:
    """Starts every job of `jobs` on a thread of its own; `.result()` waits or raises MissingTool.

    The waiting is on the network and on zig, so threads serve. The cache's locks make it safe to ask for a piece
    directly meanwhile: it waits for the same fill.
    """
    todo = jobs(arch, shared=shared, offline=offline)
    pool = ThreadPoolExecutor(max_workers=len(todo), thread_name_prefix="provision")
    futures = {name: pool.submit(job) for name, job in todo.items()}
    pool.shutdown(wait=False)
    return futures


def bring(arch: str, *, shared: str | None = None, offline: bool | None = None) -> None:
    """All of `jobs`. The first that fails ends what the others have started, and is raised at once: without a compiler
    or a baseline nobody needs a C library built."""
    futures = prewarm(arch, shared=shared, offline=offline).values()
    ended, under_way = wait(futures, return_when=FIRST_EXCEPTION)
    failed = next((error for error in (future.exception() for future in ended) if error is not None), None)
    if failed is None:
        return
    children.end()
    try:
        wait(under_way, timeout=LETTING_GO_S)
    finally:
        children.allow()
    raise failed
