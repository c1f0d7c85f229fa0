"""Modelled cycles: one counted call under QEMU with the board model's plug-in. Deterministic, and no clock."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from tensorop import errors, paths
from tensorop.measure import board
from tensorop.model.call import Call, Left, Outputs
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Judgement
from tensorop.process import scratch
from tensorop.provision import qemu as provision_qemu
from tensorop.runners import session
from tensorop.runners.protocol import Count, Entry
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.specs.board import BoardModel
from tensorop.store import durable

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
    alternatives: bool = False,
    guest: Guest | None = None,
    warm: int = 1,
    timeout_s: float = 120.0,
) -> tuple[Samples, ...] | Outcome:
    """Modelled cycles of one call of each entry, after `warm` calls of it (0: with cold caches).

    Each entry has a process of its own, so that its figure does not depend on its neighbours. vlen: bits.
    scenarios: over which low and high range (see board.prepare). alternatives: count under each of the model's
    alternatives too.
    Counters: instructions by class and in all, lines and misses of each level, LMUL.
    Returns an outcome when a call failed or the model knows too few of its instructions.
    """
    guest = replace(guest or Guest(), vlen=vlen, cpu=-1)
    out = []
    for entry in entries:
        with scratch.folder("board") as folder:
            run = board.prepare(model, vlen, folder, scenarios=scenarios, alternatives=alternatives, cold=warm == 0)
            counted = _count(runner, program, call, entry, model, run, guest, warm, timeout_s)
        if isinstance(counted, Outcome):
            return counted
        out.append(counted[0])
    return tuple(out)


@dataclass(frozen=True)
class Counted:
    """A counted call, and the verdict on what it left. empty: cycles of a call whose function returns at once, which
    are taken off the samples; None where none was counted."""

    samples: Samples
    verdict: Judgement
    empty: float | None = None


def count_judged(
    runner: Qemu,
    program: Path,
    call: Call,
    judge: Callable[[Outputs], Judgement],
    *,
    model: BoardModel,
    vlen: int,
    scenarios: str | Sequence[Mapping[str, float]] = "best",
    alternatives: bool = False,
    guest: Guest | None = None,
    warm: int = 1,
    timeout_s: float = 120.0,
    empty: bool = False,
    judged_by: str = "",
) -> Counted | Outcome:
    """Modelled cycles of one call of the first entry as `count_entries` has them, and `judge` of its outputs.

    empty: counts what a call costs before and after its function too, after it in the same process, and takes it off.
    judged_by: what the judge is made of; with it count and verdict are remembered for good, keyed by everything that
    goes into them. For baselines, whose programs never change.
    """
    guest = replace(guest or Guest(), vlen=vlen, cpu=-1)
    with scratch.folder("board") as folder:
        run = board.prepare(model, vlen, folder, scenarios=scenarios, alternatives=alternatives, cold=warm == 0)
        kept = None
        if judged_by:
            counted_by = ("5", run.alternatives, run.plugin.name, run.config.read_text(), _emulator(runner.arch))
            made_of = (*counted_by, runner.cpu, warm, judged_by, *(("empty",) if empty else ()))
            key = _key(*made_of, _digest(program), _libraries(guest), guest.environment, vlen, _shape(call))
            kept = paths.cache_dir("baselines") / f"{key}.json"
            with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                return _remembered(json.loads(kept.read_text()))
        counted = _count(runner, program, call, Entry(), model, run, guest, warm, timeout_s, keep=True, empty=empty)
    if isinstance(counted, Outcome):
        return counted
    samples, outputs, nothing = counted
    net = samples if nothing is None else less(samples, nothing)
    if net is None:
        return Outcome(Kind.NOISY, "measure", "the call took no longer than an empty one")
    found = Counted(net, judge(outputs), None if nothing is None else nothing.value)
    if kept is not None:
        durable.replace(kept, json.dumps(asdict(found)))
    return found


def _remembered(record: Mapping[str, Any]) -> Counted:
    """Raises KeyError, TypeError or ValueError for a record without a verdict."""
    verdict = dict(record["verdict"])
    samples = Samples(**{**record["samples"], "choices": tuple(record["samples"]["choices"])})
    return Counted(samples, Judgement(Kind(verdict.pop("kind")), **verdict), record.get("empty"))


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
    judge: Callable[[int, tuple[Left, ...]], Outcome],
) -> tuple[Samples, ...] | Outcome:
    """Modelled cycles of several calls of one entry, one after the other in a single process, the best fit alone.

    For searches: starting an emulator costs more than most of their calls. warm: by call, how often it is made before
    it is counted; without, it finds the caches as the call before it left them. judge: of a call, by its number,
    what it left. Returns the first failure's outcome.
    """
    with scratch.folder("board") as folder:
        run = board.prepare(model, vlen, folder, scenarios="best")
        guest = replace(guest or Guest(), vlen=vlen, cpu=-1, plugin_args=run.arguments)
        requests = [Count(call, (entry,), times) for call, times in zip(calls, warm, strict=True)]
        replies = session.run(
            runner, program, requests, timeout_s=timeout_s, guest=guest, give_up_after=1, where="measure"
        )
        failed = next((reply.outcome for reply in replies if not reply.outcome.ok), None)
        judged = (judge(i, (Left(reply.outputs),)) for i, reply in enumerate(replies))
        failed = failed or next((outcome for outcome in judged if not outcome.ok), None)
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
    run: board.BoardRun,
    guest: Guest,
    warm: int,
    timeout_s: float,
    keep: bool = False,
    empty: bool = False,
) -> tuple[Samples, Outputs, Samples | None] | Outcome:
    """The call's samples, what it left, and the samples of an empty call where they are asked for."""
    requests = [Count(call, (entry,), warm, keep)]
    if empty:
        requests.append(Count(call, (replace(entry, empty=True),), warm))
    guest = replace(guest, plugin_args=run.arguments)
    replies = session.run(runner, program, requests, timeout_s=timeout_s, guest=guest, where="measure")
    failed = next((reply.outcome for reply in replies if not reply.outcome.ok), None)
    if failed is not None:
        return failed
    regions = board.parse(run.out, run.alternatives)
    samples = _samples(regions[: 1 + warm], 1 + warm, model.name)
    nothing = _samples(regions[1 + warm :], 1 + warm, model.name) if empty else None
    if isinstance(samples, Outcome):
        return samples
    if isinstance(nothing, Outcome):
        return nothing
    return samples, replies[0].outputs, nothing


def less(samples: Samples, empty: Samples) -> Samples | None:
    """Samples without an empty call's, choice by choice of the assumed constants; None where nothing is left."""
    counters = {name: value - empty.counters.get(name, 0.0) for name, value in samples.counters.items()}
    value = samples.value - empty.value
    choices = tuple(cycles - nothing for cycles, nothing in zip(samples.choices, empty.choices, strict=True))
    under = {name: cycles - empty.under[name] for name, cycles in samples.under.items()}
    low, high = min(choices, default=value), max(choices, default=value)
    if min(value, low, *under.values()) <= 0:
        return None
    return replace(samples, value=value, low=low, high=high, counters=counters, choices=choices, under=under)


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
    counters = {"instructions": float(region.total), "lines": float(region.lines)}
    counters |= {f"instructions.{name}": float(n) for name, n in region.instructions.items()}
    counters |= {f"lmul.{name}": float(n) for name, n in region.lmul.items()}
    counters |= {f"misses.{name}": float(n) for name, n in region.misses.items()}
    counters |= {f"stalls.{name}": float(n) for name, n in region.stalls.items()}
    # the same choice of assumed constants has the same place for every entry, so that ratios can be made of each
    choices = tuple(region.cycles) if len(region.cycles) > 1 else ()
    under = dict(region.alternatives)
    return Samples(UNIT, region.cycles[0], low, high, 1, counters, choices=choices, under=under)


def _key(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:24]


def _shape(call: Call) -> tuple[object, ...]:
    """All of a call that a count depends on; the operands' values are not among it."""
    buffers = tuple((b.access.value, b.data.nbytes) for b in call.buffers)
    return call.dims, call.lds, call.scalars, call.flags, buffers


def _libraries(guest: Guest) -> tuple[object, ...]:
    """What they are; a baseline that needs none is in the program itself."""
    return tuple(
        (replace(library, path=""), _digest(Path(library.path)) if library.path else "") for library in guest.libraries
    )


@functools.lru_cache(maxsize=256)
def _digest_at(path: Path, stamp: int) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _digest(path: Path) -> str:
    return _digest_at(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=8)
def _emulator(arch: str) -> str:
    return provision_qemu.qemu_version(provision_qemu.qemu(arch))
