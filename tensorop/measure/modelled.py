"""Modelled cycles: one counted call under QEMU with the board model's plug-in. Deterministic, and no clock."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path

from tensorop import errors, paths
from tensorop.measure import board
from tensorop.model.call import Call
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.provision import qemu as provision_qemu
from tensorop.runners import session
from tensorop.runners.protocol import Count, Entry
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.specs.board import BoardModel

UNIT = "modelled-cycles"


def count_entries(
    runner: Qemu,
    program: Path,
    call: Call,
    entries: Sequence[Entry] = (Entry(),),
    *,
    model: BoardModel,
    vlen: int,
    scenarios: str | Sequence[Mapping[str, float]] = "best",
    guest: Guest | None = None,
    warm: int = 1,
    timeout_s: float = 120.0,
    keep: bool = False,
) -> tuple[Samples, ...] | Outcome:
    """Modelled cycles of one call of each entry, after `warm` calls of it (0: with cold caches).

    Each entry has a process of its own, so that its figure does not depend on its neighbours. vlen: bits.
    scenarios: over which low and high range (see board.prepare). keep: remember the figures for good, keyed by
    everything that goes into them; for baselines, whose programs never change.
    Counters: instructions by class and in all, lines and misses of each level, LMUL; scenario.N: cycles of each choice
    of the assumed constants, the best fit first.
    Returns an outcome when a call failed or the model knows too few of its instructions.
    """
    guest = replace(guest or Guest(), vlen=vlen, cpu=-1)
    out = []
    for entry in entries:
        counted = _count(runner, program, call, entry, model, vlen, scenarios, guest, warm, timeout_s, keep)
        if isinstance(counted, Outcome):
            return counted
        out.append(counted)
    return tuple(out)


def count_calls(
    runner: Qemu,
    program: Path,
    calls: Sequence[Call],
    entry: Entry,
    *,
    warm: Sequence[int],
    model: BoardModel,
    vlen: int,
    guest: Guest | None = None,
    timeout_s: float = 120.0,
) -> tuple[Samples, ...] | Outcome:
    """Modelled cycles of several calls of one entry, one after the other in a single process, the best fit alone.

    For searches: starting an emulator costs more than most of their calls. warm: by call, how often it is made before
    it is counted; without, it finds the caches as the call before it left them. Returns the first failure's outcome.
    """
    with tempfile.TemporaryDirectory(prefix="tensorop-board-") as folder:
        run = board.prepare(model, vlen, Path(folder), scenarios="best")
        guest = replace(guest or Guest(), vlen=vlen, cpu=-1, plugin_args=run.arguments)
        requests = [Count(call, (entry,), times) for call, times in zip(calls, warm, strict=True)]
        replies = session.run(
            runner, program, requests, timeout_s=timeout_s, guest=guest, give_up_after=1, where="measure"
        )
        failed = next((reply.outcome for reply in replies if not reply.outcome.ok), None)
        if failed is not None:
            return failed
        regions = board.parse(run.out)
    out = []
    for times in warm:
        samples = _samples(regions[: 1 + times], 1 + times, model.name)
        if isinstance(samples, Outcome):
            return samples
        out.append(samples)
        regions = regions[1 + times :]
    return tuple(out)


def _count(
    runner: Qemu,
    program: Path,
    call: Call,
    entry: Entry,
    model: BoardModel,
    vlen: int,
    scenarios: str | Sequence[Mapping[str, float]],
    guest: Guest,
    warm: int,
    timeout_s: float,
    keep: bool,
) -> Samples | Outcome:
    with tempfile.TemporaryDirectory(prefix="tensorop-board-") as folder:
        run = board.prepare(model, vlen, Path(folder), scenarios=scenarios, cold=warm == 0)
        kept = None
        if keep:
            made_of = ("2", run.plugin.name, run.config.read_text(), _emulator(runner.arch), runner.cpu, warm)
            key = _key(*made_of, _digest(program), _libraries(guest), guest.environment, vlen, entry, _shape(call))
            kept = paths.cache_dir("baselines") / f"{key}.json"
            with contextlib.suppress(OSError, ValueError, TypeError):
                return Samples(**json.loads(kept.read_text()))
        guest = replace(guest, plugin_args=run.arguments)
        (reply,) = session.run(
            runner, program, [Count(call, (entry,), warm)], timeout_s=timeout_s, guest=guest, where="measure"
        )
        if not reply.outcome.ok:
            return reply.outcome
        samples = _samples(board.parse(run.out), 1 + warm, model.name)
    if kept is not None and isinstance(samples, Samples):
        part = Path(tempfile.mkstemp(dir=kept.parent, suffix=".part")[1])
        part.write_text(json.dumps(asdict(samples)))
        part.replace(kept)
    return samples


def _samples(regions: Sequence[board.RegionCounts], wanted: int, model: str) -> Samples | Outcome:
    if len(regions) != wanted or not regions[-1].ended:
        raise errors.JobError(f"the board model {model} reported {len(regions)} regions of {wanted} counted calls")
    region = regions[-1]
    if region.refused:
        share, words = 100 * region.unknown_share, ", ".join(region.unknown[:4])
        return Outcome(
            Kind.NOISY, "measure", f"the board model knows {share:.1f} % of its vector instructions not: {words}"
        )
    low, high = region.interval
    # The same choice of assumed constants stands at the same place for every entry, so that ratios can be made of each.
    scenarios = {f"scenario.{i}": cycles for i, cycles in enumerate(region.cycles)} if len(region.cycles) > 1 else {}
    counters = {"instructions": float(region.total), "lines": float(region.lines)}
    counters |= {f"instructions.{name}": float(n) for name, n in region.instructions.items()}
    counters |= {f"lmul.{name}": float(n) for name, n in region.lmul.items()}
    counters |= {f"misses.{name}": float(n) for name, n in region.misses.items()}
    counters |= {f"stalls.{name}": float(n) for name, n in region.stalls.items()}
    return Samples(UNIT, region.cycles[0], low, high, 1, counters | scenarios)


def _key(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:24]


def _shape(call: Call) -> tuple[object, ...]:
    """All of a call that a count depends on; the operands' values are not among it."""
    buffers = tuple((b.access.value, b.data.nbytes) for b in call.buffers)
    return call.dims, call.lds, call.scalars, call.flags, buffers


def _libraries(guest: Guest) -> tuple[object, ...]:
    return tuple((replace(library, path=""), _digest(Path(library.path))) for library in guest.libraries)


@functools.lru_cache(maxsize=256)
def _digest_at(path: Path, stamp: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(path: Path) -> str:
    return _digest_at(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _emulator(arch: str) -> str:
    return provision_qemu.qemu_version(provision_qemu.qemu(arch))
