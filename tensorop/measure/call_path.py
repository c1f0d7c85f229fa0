"""Counts the instructions of a call before and after its work on the operands: to the kernel, and back."""

from __future__ import annotations

from dataclasses import replace

from tensorop.measure.request import MeasureRequest
from tensorop.model.trial import Outcome
from tensorop.process import scratch
from tensorop.provision import qemu
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Count
from tensorop.runners.session import Guest

FLOPS = 2 * 64**3  # of the largest call that is counted: every instruction takes microseconds


def instructions(runner: Runner, request: MeasureRequest) -> int | None:
    """Instructions before a call's first access to an operand and after its last one, without those of an empty call.

    QEMU counts by a plug-in; an x86 processor steps through the call, and another counts nothing: None.
    request: one call of one entry. The call before the counted one has warmed the library up.
    """
    guest = replace(request.guest or Guest(), vlen=request.vlen or None)
    asked = [
        Count(request.calls[0], (replace(request.entries[0], empty=empty),), alone=True) for empty in (False, True)
    ]
    with scratch.folder("path") as folder:
        counts = folder / "counts"
        if runner.emulated:
            guest = replace(guest, cpu=-1, plugin_args=("-plugin", f"{qemu.path_counter()},out={counts}"))
        replies = replace(request, guest=guest).replies(runner, asked)
        if isinstance(replies, Outcome):
            return None
        found = [reply.path for reply in replies]
        if runner.emulated:
            found = [int(line) for line in counts.read_text().splitlines()][1::2]  # warming calls have a line too
    whole, empty = found
    return whole - empty if empty else None
