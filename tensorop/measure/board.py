"""The board model: builds the plug-in, writes a core's configuration for it, reads what it reports.

run = prepare(model, vlen, folder, cc="cc")      # builds at first use
runner starts: qemu-ARCH *run.arguments CPU PROGRAM
parse(run.out)                                   # one RegionCounts a marked region
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from tensorop.errors import JobError, MissingTool
from tensorop.paths import cache_dir, native_dir
from tensorop.specs.board import CLASSES, EEWS, LMULS, BoardModel, Constant, Cycles, scenario_values

LANES = (1, 4, 8, 16, 32)
MAX_UNKNOWN_SHARE = 0.01
N = TypeVar("N", int, float)
_FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")


@dataclass(frozen=True)
class RegionCounts:
    """One marked region of one run.

    instructions   by class (vector_fma, vector_load, ..., alu), executed
    lmul           vector instructions by LMUL
    lines          cache lines touched, once for each instruction that touched them
    misses         lines missed in l1, and in l2 too, by the bare caches: no prefetcher, so no assumption bends them
    demand         lines missed on demand beside the best fit's prefetchers: l1, l2 (so fetched from DRAM)
    tlb_misses     accesses whose page the first TLB lacked: l1, and both: l2
    cycles         modelled cycles by scenario, index 0 the best fit
    stalls         cycles the best fit's issue waited, by cause
    unknown_share  executed vector instructions the decoder does not know, of all vector instructions
    unknown        the first words it does not know, scalar ones too, in hexadecimal
    refused        more than 1 % unknown: no figure may be made of it
    ended          false: the program ended inside the region
    """

    instructions: Mapping[str, int]
    lmul: Mapping[str, int]
    lines: int
    misses: Mapping[str, int]
    demand: Mapping[str, int]
    prefetched: Mapping[str, int]
    tlb_misses: Mapping[str, int]
    software_prefetches: int
    cycles: tuple[float, ...]
    stalls: Mapping[str, float]
    unknown_share: float
    unknown: tuple[str, ...]
    refused: bool
    ended: bool

    @property
    def total(self) -> int:
        """All instructions."""
        return sum(self.instructions.values())

    @property
    def interval(self) -> tuple[float, float]:
        """Fewest and most cycles over the scenarios."""
        return min(self.cycles), max(self.cycles)


@dataclass(frozen=True)
class BoardRun:
    """What a runner hands to QEMU: the plug-in, its configuration, the file it writes."""

    plugin: Path
    config: Path
    out: Path
    model: str

    @property
    def arguments(self) -> tuple[str, ...]:
        """QEMU's options."""
        return ("-plugin", f"{self.plugin},config={self.config},out={self.out}")


def prepare(
    model: BoardModel,
    vlen: int,
    folder: Path,
    *,
    scenarios: str | Sequence[Mapping[str, float]] = "best",
    cold: bool = False,
    cc: str = "cc",
) -> BoardRun:
    """Builds the plug-in when needed and writes its configuration into `folder`.

    scenarios: best (one, for a search), interval, sensitivity, or choices of one's own (see specs.board).
    Raises MissingTool without a host compiler.
    """
    values = scenario_values(model, scenarios) if isinstance(scenarios, str) else tuple(scenarios)
    config = folder / "board.config"
    write_config(model, vlen, config, values, cold=cold)
    return BoardRun(plugin(cc, len(values)), config, folder / "board.jsonl", model.name)


def plugin(cc: str = "cc", scenarios: int = 1) -> Path:
    """The plug-in for this machine, with room for `scenarios`; built once for each source, compiler and processor."""
    lanes = next((n for n in LANES if n >= scenarios), None)
    if lanes is None:
        raise JobError(f"the board model takes at most {LANES[-1]} scenarios at once, {scenarios} were asked for")
    compiler = shutil.which(cc)
    if compiler is None:
        raise MissingTool(f"no host C compiler '{cc}' to build the board model", hint="apt install gcc")
    sources = sorted(native_dir().joinpath("plugin").glob("*.[ch]"))
    path = cache_dir("plugin") / f"board-{_key(compiler, lanes, tuple(sources))}.so"
    if not path.is_file():
        _build(compiler, lanes, [s for s in sources if s.suffix == ".c"], path)
    return path


def _key(compiler: str, lanes: int, sources: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for part in (_version(compiler), _processor(), str(lanes), *_FLAGS):
        digest.update(part.encode() + b"\0")
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


@lru_cache(maxsize=8)
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], capture_output=True, text=True, check=False).stdout


@lru_cache(maxsize=1)
def _processor() -> str:
    """What -march=native depends on, since a cache folder may be shared by machines."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    wanted = ("flags", "Features", "model name", "CPU part")
    return platform.machine() + "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _build(compiler: str, lanes: int, sources: list[Path], path: Path) -> None:
    part = path.with_suffix(f".{os.getpid()}.part")
    log = ""
    for tuned in (("-march=native",), ()):
        command = [compiler, *_FLAGS, *tuned, f"-DLANES={lanes}", "-o", str(part), *map(str, sources)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0:
            part.replace(path)
            return
        log = done.stderr
    raise JobError(f"the board model's plug-in does not build with {compiler}: {log.strip()[:400]}")


@lru_cache(maxsize=8)
def require_plugins(qemu: str) -> None:
    """Raises MissingTool at once when this QEMU is absent or takes no TCG plug-ins."""
    path = shutil.which(qemu)
    hint = "apt install qemu-user (Debian 12's; statically linked builds, Debian 13's among them, take no plug-ins)"
    if path is None:
        raise MissingTool(f"{qemu} is not installed", hint=hint)
    done = subprocess.run([path, "-help"], capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL)
    if "-plugin" not in done.stdout:
        raise MissingTool(f"{path} has no -plugin option, which the board model needs", hint=hint)


def write_config(
    model: BoardModel,
    vlen: int,
    path: Path,
    scenarios: Sequence[Mapping[str, float]] = ({},),
    *,
    cold: bool = False,
) -> None:
    """Writes the plug-in's configuration: lines `key numbers...`, one number a scenario where they may differ."""
    values = _Values(model, tuple(scenarios))
    dlen = model.dlen(vlen)
    core, memory = model.core, model.memory
    units = list(model.units)
    lines = [
        f"scenarios {len(values.scenarios)}",
        f"pipeline {model.pipeline}",
        f"vlen {vlen}",
        f"dlen {dlen}",
        f"vl_dependent {int(model.vector.vl_dependent)}",
        f"cold {int(cold)}",
        f"units {len(units)}",
        values.line("mispredict", core.mispredict, "core.mispredict"),
        values.line("taken", core.taken_branch, "core.taken_branch"),
        values.line("write_after_read", core.write_after_read, "core.write_after_read"),
        values.line("chained", core.chained, "core.chained", lambda x: float(x >= 0.5)),
        values.line("shared_bias", core.shared_ports, "core.shared_ports", lambda x: 0.0 if x >= 0.5 else -1e30),
        f"vector_queue {core.vector_queue}",
        f"window {core.window}",
        f"line_shift {memory.l1.line.bit_length() - 1}",
        f"cache 1 {memory.l1.sets} {memory.l1.ways}",
        f"cache 2 {memory.l2.sets} {memory.l2.ways}",
        *(
            values.line(f"tlb {level} {tlb.entries // tlb.ways} {tlb.ways}", tlb.miss, f"memory.{name}.miss")
            for level, name, tlb in ((1, "tlb", memory.tlb), (2, "tlb2", memory.tlb2))
        ),
        values.line("latency 1", memory.l2_latency, "memory.l2_latency"),
        values.line("latency 2", memory.dram_latency, "memory.dram_latency"),
        values.line("interval 1", memory.l2_interval, "memory.l2_interval"),
        values.line("interval 2", memory.dram_interval, "memory.dram_interval"),
        values.line("misses", memory.misses, "memory.misses", round),
        values.line("store_buffer", memory.store_buffer, "memory.store_buffer", round),
        values.line("drain", memory.drain, "memory.drain"),
    ]
    for name in CLASSES:
        lines += _cost_lines(model, values, name, vlen / dlen, units)
    lines += _variant_lines(model, values)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


class _Values:
    """Constants over the scenarios."""

    def __init__(self, model: BoardModel, scenarios: tuple[Mapping[str, float], ...]) -> None:
        self.scenarios = scenarios or ({},)
        known = model.assumed()
        for scenario in self.scenarios:
            for key in scenario:
                if key not in known:
                    raise JobError(f"board model {model.name} has no assumed constant '{key}'")

    def of(self, constant: Constant, key: str) -> list[float]:
        return [scenario.get(key, constant.value) for scenario in self.scenarios]

    def line(self, head: str, constant: Constant, key: str, change: object = None) -> str:
        numbers = self.of(constant, key)
        if callable(change):
            numbers = [change(x) for x in numbers]
        return f"{head} {_numbers(numbers)}"


def _numbers(values: Sequence[float]) -> str:
    return " ".join(f"{x:.9g}" for x in values)


def _cost_lines(model: BoardModel, values: _Values, name: str, beats: float, units: list[str]) -> list[str]:
    """A class's prices. A table's key is that of the class which wrote it, so `like` shares assumed ranges."""
    cost = model.cost(name)
    own = model.costs[name]

    def key(part: str) -> str:
        return f"costs.{name if own.like is None or part in own.model_fields_set else own.like}.{part}"

    assert cost.cycles is not None
    assert cost.latency is not None
    lines = []
    count = 1
    if cost.unit is not None:
        lines.append(f"unit {name} {units.index(cost.unit)}")
        count = model.units[cost.unit]
        if model.shared and cost.unit in model.shared:
            other = model.shared[1 - model.shared.index(cost.unit)]
            lines.append(f"shared {name} {units.index(other)}")

    def factors(part: str) -> list[float]:
        return [s.get(key(part), 1.0) for s in values.scenarios]

    if isinstance(cost.cycles, Cycles):
        for lmul in range(len(LMULS)):
            for eew in range(len(EEWS)):
                busy = [cost.cycles.at(lmul, eew, f) * beats / count for f in factors("cycles")]
                lines.append(f"price {name} {lmul} {eew} occupancy {_numbers(busy)}")
    else:
        busy_by_scenario = [x / count for x in values.of(cost.cycles, key("cycles"))]
        lines.append(f"price {name} * * occupancy {_numbers(busy_by_scenario)}")
        for width, value in cost.cycles.eew.items():
            same = _numbers([value / count] * len(values.scenarios))
            lines.append(f"price {name} * {EEWS.index(width)} occupancy {same}")
    issue = values.of(model.core.issue_width, "core.issue_width")
    for lmul in range(len(LMULS)):
        slots = [1.0] * len(issue)
        if isinstance(cost.slots, Cycles):
            slots = [cost.slots.at(lmul, 2, f) for f in factors("slots")]
        elif cost.slots is not None:
            slots = values.of(cost.slots, key("slots"))
        lines.append(f"price {name} {lmul} * slot {_numbers([n / w for n, w in zip(slots, issue, strict=True)])}")
    latency = values.of(cost.latency, key("latency"))
    forward = values.of(cost.forward, key("forward")) if cost.forward else latency
    lines.append(f"price {name} * * latency {_numbers(latency)}")
    lines.append(f"price {name} * * forward {_numbers(forward)}")
    for width, value in cost.latency.eew.items():
        lines.append(f"price {name} * {EEWS.index(width)} latency {_numbers([value] * len(values.scenarios))}")
        if cost.forward is None:
            lines.append(f"price {name} * {EEWS.index(width)} forward {_numbers([value] * len(values.scenarios))}")
    return lines


def _variant_lines(model: BoardModel, values: _Values) -> list[str]:
    """Scenarios with the same prefetchers share one simulation of the caches."""
    memory = model.memory
    present: list[tuple[bool, bool]] = []
    for scenario in values.scenarios:
        flags = []
        for name, prefetcher in (("l1_prefetch", memory.l1_prefetch), ("l2_prefetch", memory.l2_prefetch)):
            chance = 0.0
            if prefetcher is not None:
                chance = scenario.get(f"memory.{name}.present", prefetcher.present.value)
            flags.append(chance >= 0.5)
        present.append((flags[0], flags[1]))
    lines = []
    for variant, combination in enumerate(dict.fromkeys(present)):
        lines.append(f"variant {variant} {_numbers([float(p == combination) for p in present])}")
        pairs = zip(combination, (memory.l1_prefetch, memory.l2_prefetch), strict=True)
        for level, (on, prefetcher) in enumerate(pairs):
            if on and prefetcher is not None:
                lines.append(
                    f"prefetch {variant} {level + 1} {prefetcher.streams} {prefetcher.distance} {prefetcher.train} "
                    f"{int(prefetcher.scalar_only)}"
                )
    return lines


def parse(path: Path) -> tuple[RegionCounts, ...]:
    """The regions of one run, in order; raises JobError when the plug-in wrote none or half a line."""
    try:
        text = path.read_text(encoding="utf-8")
        return tuple(_region(json.loads(line)) for line in text.splitlines())
    except OSError as error:
        raise JobError(f"the board model wrote no report: {path}: {error.strerror}") from None
    except (ValueError, KeyError) as error:
        raise JobError(f"the board model's report {path} cannot be read: {error}") from None


def _region(data: dict[str, object]) -> RegionCounts:
    instructions = _mapping(data["instructions"], int)
    vector = sum(n for name, n in instructions.items() if name.startswith("vector_") and name != "vector_config")
    unknown = instructions.get("vector_unknown", 0)
    share = unknown / vector if vector else 0.0
    cycles, words = data["cycles"], data["unknown"]
    assert isinstance(cycles, list)
    assert isinstance(words, list)
    return RegionCounts(
        instructions=instructions,
        lmul=_mapping(data["lmul"], int),
        lines=int(str(data["lines"])),
        misses=_mapping(data["misses"], int),
        demand=_mapping(data["demand"], int),
        prefetched=_mapping(data["prefetched"], int),
        tlb_misses=_mapping(data["tlb_misses"], int),
        software_prefetches=int(str(data["software_prefetches"])),
        cycles=tuple(float(x) for x in cycles),
        stalls=_mapping(data["stalls"], float),
        unknown_share=share,
        unknown=tuple(str(w) for w in words),
        refused=share > MAX_UNKNOWN_SHARE,
        ended=bool(data["ended"]),
    )


def _mapping(data: object, kind: type[N]) -> dict[str, N]:
    if not isinstance(data, dict):
        raise ValueError("expected an object")
    return {str(key): kind(value) for key, value in data.items()}
