"""The board model: builds the QEMU plug-in, writes a core's configuration, and reads the plug-in's report.

run = prepare(model, vlen, folder)               # builds at first use
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
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from tensorop.errors import JobError, MissingTool, SpecError
from tensorop.measure import board_config
from tensorop.paths import cache_dir, native_dir
from tensorop.process import children
from tensorop.provision.process import output_of
from tensorop.specs import yamlfile
from tensorop.specs.board import BoardModel
from tensorop.specs.board_scenarios import alternative_values, scenario_values

CC = "cc"  # this machine's compiler

LANES = (1, 4, 8, 16, 24, 32)
MAX_UNKNOWN_SHARE = 0.01
_BUILD_S = 600.0
_BUILDING = threading.Lock()  # threads that need the same plug-in build it once
_FLAGS = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")


@dataclass(frozen=True)
class Executed:
    """An instruction of a program: how often it ran, and the best fit's stall cycles of all runs by cause."""

    address: int
    runs: int
    stalls: Mapping[str, float]


@dataclass(frozen=True)
class RegionCounts:
    """Counts of one marked region of one run."""

    instructions: Mapping[str, int]  # executed instructions by class (vector_fma, vector_load, ..., alu)
    lmul: Mapping[str, int]  # executed vector instructions by LMUL
    lines: int  # cache lines touched, counted once for each instruction
    misses: Mapping[str, int]  # lines missed in l1, and in l1 and l2, without prefetchers
    demand: Mapping[str, int]  # demand misses with the best fit's prefetchers: l1, l2
    prefetched: Mapping[str, int]
    tlb_misses: Mapping[str, int]  # accesses that missed the first TLB: l1, both TLBs: l2
    software_prefetches: int
    cycles: tuple[float, ...]  # modelled cycles by scenario; index 0 is the best fit
    stalls: Mapping[str, float]  # cycles in which the best fit's issue waited, by cause
    unknown_share: float  # share of executed vector instructions that the decoder does not know
    unknown: tuple[str, ...]  # the first unknown instruction words, scalar ones too, in hexadecimal
    refused: bool  # more than 1 % unknown: the cycles must not be used
    ended: bool  # False: the program ended inside the region
    alternatives: Mapping[str, float] = field(default_factory=dict)  # alternative -> cycles of the best fit under it
    profile: tuple[Executed, ...] = ()  # by instruction, in no order; empty unless asked for

    @property
    def total(self) -> int:
        """Number of executed instructions."""
        return sum(self.instructions.values())

    @property
    def interval(self) -> tuple[float, float]:
        """Fewest and most cycles over the scenarios."""
        return min(self.cycles), max(self.cycles)


@dataclass(frozen=True)
class BoardRun:
    """Files of one QEMU run: the plug-in, its configuration, and its output."""

    plugin: Path
    config: Path
    out: Path
    model: str
    alternatives: tuple[str, ...] = ()

    @property
    def arguments(self) -> tuple[str, ...]:
        """QEMU's command-line options."""
        return ("-plugin", f"{self.plugin},config={self.config},out={self.out}")


def prepare(
    model: BoardModel,
    vlen: int,
    folder: Path,
    *,
    scenarios: str | Sequence[Mapping[str, float]] = "best",
    alternatives: bool = False,
    cold: bool = False,
    profile: bool = False,
) -> BoardRun:
    """Builds the plug-in when needed and writes its configuration into `folder`.

    scenarios: best (one, for a search), interval, sensitivity, or choices of one's own (see specs.board).
    alternatives: count under each of the model's alternatives too. cold: begin with empty caches.
    profile: report stalls by instruction too.
    Raises MissingTool without a host compiler.
    """
    values = scenario_values(model, scenarios) if isinstance(scenarios, str) else tuple(scenarios)
    beside = alternative_values(model) if alternatives else {}
    values = (*values, *beside.values())
    config = folder / "board.config"
    config.write_text(board_config.text(model, vlen, values, cold=cold, profile=profile), encoding="utf-8")
    return BoardRun(plugin(len(values)), config, folder / "board.jsonl", model.name, tuple(beside))


def plugin(scenarios: int = 1) -> Path:
    """The path of QEMU's plug-in that counts a board model's cycles; built if it is not in the cache.

    scenarios: how many sets of the model's constants one run counts
    Raises MissingTool without a host compiler, JobError for too many scenarios.
    """
    lanes = next((n for n in LANES if n >= scenarios), None)
    if lanes is None:
        raise JobError(f"the board model supports at most {LANES[-1]} scenarios at once; got {scenarios}")
    compiler = shutil.which(CC)
    if compiler is None:
        raise MissingTool(f"the board model needs the C compiler '{CC}', which is missing", hint="apt install gcc")
    sources = sorted(native_dir().joinpath("plugin").glob("*.[ch]"))
    path = cache_dir("plugin") / f"board-{_key(compiler, lanes, tuple(sources))}.so"
    with _BUILDING:
        if not path.is_file():
            _build(compiler, lanes, [s for s in sources if s.suffix == ".c"], path)
    return path


def bring(model: BoardModel) -> None:
    """Builds all plug-ins that a job uses. Raises as `plugin`."""
    beside = len(alternative_values(model))
    for kind, more in (("best", 0), ("sensitivity", beside), ("interval", beside)):
        plugin(len(scenario_values(model, kind)) + more)


def _key(compiler: str, lanes: int, sources: tuple[Path, ...]) -> str:
    digest = hashlib.sha256()
    for part in (output_of(Path(compiler), "--version"), _processor(), str(lanes), *_FLAGS):
        digest.update(part.encode() + b"\0")
    for source in sources:
        digest.update(source.name.encode() + b"\0" + source.read_bytes() + b"\0")
    return digest.hexdigest()[:20]


@lru_cache(maxsize=1)
def _processor() -> str:
    """What -march=native depends on, since machines may share a cache folder."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    wanted = ("flags", "Features", "model name", "CPU part")
    return platform.machine() + "\n".join(sorted({line for line in lines if line.startswith(wanted)}))


def _build(compiler: str, lanes: int, sources: list[Path], path: Path) -> None:
    part = path.with_suffix(f".{os.getpid()}-{threading.get_ident()}.part")
    log = ""
    for tuned in (("-march=native",), ()):
        command = [compiler, *_FLAGS, *tuned, f"-DLANES={lanes}", "-o", str(part), *map(str, sources)]
        try:
            done = children.run(command, timeout=_BUILD_S)
        except subprocess.TimeoutExpired:
            raise JobError(f"{compiler} did not build the board model's plug-in within {_BUILD_S:g} s") from None
        if done.returncode == 0:
            part.replace(path)
            return
        log = done.stderr
    raise JobError(f"{compiler} cannot build the board model's plug-in: {log.strip()[:400]}")


def parse(path: Path, alternatives: Sequence[str] = ()) -> tuple[RegionCounts, ...]:
    """The regions of one run, in order. Raises JobError if the plug-in's output is missing or cut off.

    alternatives: those of BoardRun; their cycles come last.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return tuple(_region(json.loads(line), alternatives) for line in text.splitlines())
    except OSError as error:
        raise JobError(f"the board model wrote no report: {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, SpecError) as error:
        raise JobError(f"the board model's report {path} cannot be read: {error}") from None


def _region(data: dict[str, Any], alternatives: Sequence[str]) -> RegionCounts:
    counts, cycles = data["instructions"], data["cycles"]
    vector = sum(n for name, n in counts.items() if name.startswith("vector_") and name != "vector_config")
    share = counts.get("vector_unknown", 0) / vector if vector else 0.0
    own = len(cycles) - len(alternatives)
    found = {
        **data,
        "cycles": cycles[:own],
        "unknown_share": share,
        "refused": share > MAX_UNKNOWN_SHARE,
        "alternatives": dict(zip(alternatives, cycles[own:], strict=True)),
        "profile": [Executed(*one) for one in data.get("profile", ())],
    }
    return yamlfile.validate(RegionCounts, found, "a region")
