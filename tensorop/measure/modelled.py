"""Counts modelled cycles: one call under QEMU with the board model's plug-in. It is deterministic and uses no clock."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from tensorop import errors, paths
from tensorop.measure import board
from tensorop.measure.request import Measurement, MeasureRequest, Purpose
from tensorop.model.call import Call, CallOutput
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.model.verdict import Judgement
from tensorop.process import scratch
from tensorop.provision import qemu as provision_qemu
from tensorop.runners.protocol import Count, Entry
from tensorop.runners.qemu import Qemu
from tensorop.runners.session import Guest
from tensorop.specs.board import BoardModel
from tensorop.store import durable

UNIT = "modelled-cycles"

Scenarios = str | Sequence[Mapping[str, float]]  # as for board.prepare
_SCENARIOS = {Purpose.RANGES: "sensitivity", Purpose.FINAL: "interval"}


def count(
    runner: Qemu, model: BoardModel, request: MeasureRequest, scenarios: Scenarios | None = None
) -> tuple[Measurement, ...] | Outcome:
    """Modelled cycles of each call, or of one call by each entry. Each entry of one call has a process of its own.

    Several calls share one process, since starting an emulator takes longer than most calls. Each of them finds caches,
    predictors and addresses as at the start of the process, so its cycles do not depend on the other calls.

    scenarios: values of the assumed constants for low and high; by default those of the request's purpose
    Counters: instructions by class and in all, lines and misses of each level, LMUL.
    Returns the outcome of the first failure: a crash, a wrong result (unless libraries are compared), or too many
    instructions that the model does not know.
    """
    guest = replace(request.guest or Guest(), vlen=request.vlen, cpu=-1)
    scenarios = scenarios or _SCENARIOS.get(request.purpose, "best")
    alternatives = request.compares or request.purpose is Purpose.RANGES
    cold = request.purpose is not Purpose.SEARCH and 0 in request.warm
    found: list[Measurement] = []
    turns = [request.pairs] if len(request.calls) > 1 else [[(request.calls[0], one)] for one in request.entries]
    for turn in turns:
        with scratch.folder("board") as folder:
            run = board.prepare(
                model,
                request.vlen,
                folder,
                scenarios=scenarios,
                alternatives=alternatives,
                cold=cold,
                profile=request.profile,
            )
            kept = _kept(runner, request, run, guest) if request.judged_by else None
            if kept is not None:
                with contextlib.suppress(OSError, ValueError, TypeError, KeyError):
                    found.append(_remembered(json.loads(kept.read_text())))
                    continue
            counted = _counted(runner, replace(request, guest=replace(guest, plugin_args=run.arguments)), turn, run)
        if isinstance(counted, Outcome):
            return counted
        if kept is not None:
            first = counted[0]
            record = {"samples": asdict(first.samples), "verdict": asdict(first.verdict), "empty": first.empty}
            durable.replace(kept, json.dumps(record))
        found += counted
    return tuple(found)


def _kept(runner: Qemu, request: MeasureRequest, run: board.BoardRun, guest: Guest) -> Path:
    """Path of the cached result, keyed by everything that it depends on; baselines' programs never change."""
    (call,), (warm,) = request.calls, request.warm or (1,)
    counted_by = ("5", run.alternatives, run.plugin.name, run.config.read_text(), _emulator(runner.arch))
    made_of = (*counted_by, runner.cpu, warm, request.judged_by, *(("empty",) if request.empty else ()))
    program = _digest(request.program), _libraries(guest), guest.environment
    return paths.cache_dir("baselines") / f"{_key(*made_of, *program, request.vlen, _shape(call))}.json"


def _remembered(record: Mapping[str, Any]) -> Measurement:
    """The measurement of a cached record. Raises KeyError, TypeError or ValueError for a damaged one."""
    verdict = dict(record["verdict"])
    samples = Samples(**{**record["samples"], "scenario_costs": tuple(record["samples"]["scenario_costs"])})
    return Measurement(samples, Judgement(Kind(verdict.pop("kind")), **verdict), record.get("empty"))


def _counted(
    runner: Qemu, request: MeasureRequest, turn: Sequence[tuple[Call, Entry]], run: board.BoardRun
) -> list[Measurement] | Outcome:
    """Counts every call in one process, followed by empty calls if requested."""
    warm = request.warm or (1,) * len(turn)
    keep, alone = request.compares, request.purpose is Purpose.SEARCH
    asked = [Count(call, (entry,), times, keep, alone) for (call, entry), times in zip(turn, warm, strict=True)]
    if request.empty:
        asked += [replace(one, entries=(replace(one.entries[0], empty=True),), keep=False) for one in asked]
    replies = request.replies(runner, asked)
    if isinstance(replies, Outcome):
        return replies
    verdicts = []
    for number, reply in enumerate(replies[: len(request.calls)]):
        verdicts.append(request.verdict(number, (CallOutput(reply.outputs),)))
        if not (verdicts[-1].ok or request.compares):
            return verdicts[-1]
    regions = board.parse(run.out, run.alternatives)
    samples, profiles = [], []
    for one in asked:
        profiles.append(regions[one.warm].profile if len(regions) > one.warm else ())
        counted = _samples(regions[: 1 + one.warm], 1 + one.warm, run.model)
        if isinstance(counted, Outcome):
            return counted
        samples.append(counted)
        regions = regions[1 + one.warm :]
    if not request.empty:
        each = zip(samples, verdicts, profiles, strict=True)
        return [Measurement(of_call, verdict, profile=profile) for of_call, verdict, profile in each]
    found = []
    for whole, empty, verdict in zip(samples, samples[len(verdicts) :], verdicts, strict=False):
        net = less(whole, empty)
        if net is None:
            return Outcome(Kind.NOISY, "measure", "the call took no longer than an empty one")
        found.append(Measurement(net, verdict, empty.value))
    return found


def less(samples: Samples, empty: Samples) -> Samples | None:
    """Samples minus those of an empty call, scenario by scenario; None if nothing is left."""
    counters = {name: value - empty.counters.get(name, 0.0) for name, value in samples.counters.items()}
    value = samples.value - empty.value
    choices = tuple(
        cycles - nothing for cycles, nothing in zip(samples.scenario_costs, empty.scenario_costs, strict=True)
    )
    under = {name: cycles - empty.alternative_costs[name] for name, cycles in samples.alternative_costs.items()}
    low, high = min(choices, default=value), max(choices, default=value)
    if min(value, low, *under.values()) <= 0:
        return None
    return replace(
        samples, value=value, low=low, high=high, counters=counters, scenario_costs=choices, alternative_costs=under
    )


def _samples(regions: Sequence[board.RegionCounts], wanted: int, model: str) -> Samples | Outcome:
    if len(regions) != wanted or not regions[-1].ended:
        raise errors.JobError(f"the board model {model} reported {len(regions)} regions of {wanted} counted calls")
    region = regions[-1]
    if region.refused:
        share, words = 100 * region.unknown_share, ", ".join(region.unknown[:4])
        return Outcome(
            Kind.NOISY, "measure", f"the board model does not know {share:.1f} % of its vector instructions: {words}"
        )
    low, high = region.interval
    counters = {"instructions": float(region.total), "lines": float(region.lines)}
    counters |= {f"instructions.{name}": float(n) for name, n in region.instructions.items()}
    counters |= {f"lmul.{name}": float(n) for name, n in region.lmul.items()}
    counters |= {f"misses.{name}": float(n) for name, n in region.misses.items()}
    counters |= {f"stalls.{name}": float(n) for name, n in region.stalls.items()}
    # scenarios have the same order for every entry, so that ratios can be computed for each
    choices = tuple(region.cycles) if len(region.cycles) > 1 else ()
    under = dict(region.alternatives)
    return Samples(UNIT, region.cycles[0], low, high, 1, counters, scenario_costs=choices, alternative_costs=under)


def _key(*parts: object) -> str:
    return hashlib.sha256("\0".join(map(repr, parts)).encode()).hexdigest()[:24]


def _shape(call: Call) -> tuple[object, ...]:
    """Everything about a call that its count depends on; the values of operands do not matter."""
    buffers = tuple((b.access.value, b.data.nbytes) for b in call.buffers)
    return call.dims, call.lds, call.scalars, call.flags, buffers


def _libraries(guest: Guest) -> tuple[object, ...]:
    """Identity of the guest's libraries; a baseline without libraries is part of the program."""
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
