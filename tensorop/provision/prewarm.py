"""Fetches and builds everything that a job on one architecture needs, in parallel."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait

from tensorop.model.architecture import host_arch
from tensorop.process import children
from tensorop.provision import baseline, libc, llvm, qemu

LETTING_GO_S = 5.0  # for threads that wait for a killed child; a download ends by itself


def jobs(arch: str, *, shared: str | None = None, offline: bool | None = None) -> dict[str, Callable[[], object]]:
    """The pieces to fetch for an architecture, by name. shared: the triple of its products, if they are needed."""
    todo: dict[str, Callable[[], object]] = {
        "libc": lambda: libc.warm(arch, offline=offline),
        "objdump": lambda: llvm.OBJDUMP.program(offline=offline),
        "openblas": lambda: baseline.baseline("openblas", arch).bring(offline=offline),
    }
    if arch != host_arch():
        todo["qemu"] = lambda: qemu.qemu(arch, offline=offline)
        todo["sysroot"] = lambda: qemu.sysroot(arch, offline=offline)
    if shared is not None:
        todo["product"] = lambda: libc.warm_shared(arch, shared)
    return todo


def bring(arch: str, *, shared: str | None = None, offline: bool | None = None) -> None:
    """Runs all `jobs`, each in a thread, since they wait for the network and for zig. Raises MissingTool, JobError.

    The first failure is raised at once and ends the child processes of the others: without a compiler or a baseline the
    other pieces are useless. The cache's locks allow direct requests for a piece meanwhile.
    """
    todo = jobs(arch, shared=shared, offline=offline).values()
    pool = ThreadPoolExecutor(max_workers=len(todo), thread_name_prefix="provision")
    futures = [pool.submit(job) for job in todo]
    pool.shutdown(wait=False)
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
