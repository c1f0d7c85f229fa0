"""Who takes part in a comparison: the product's library and its baselines, each with the surroundings it needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tensorop import errors
from tensorop.build.describe import describe_program
from tensorop.model.bench import BaselineInfo
from tensorop.model.platform import Platform
from tensorop.provision import baseline, openblas
from tensorop.runners import process
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Library

# How each baseline is told its number of threads; OpenMP's variable reaches those that are built on it.
_THREADS = {
    "openblas": ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
    "mkl": ("MKL_NUM_THREADS", "OMP_NUM_THREADS"),
    "blis": ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
}
_KNOWN = (*baseline.names("x86_64"), "cublas", "cudnn")


@dataclass(frozen=True)
class Contender:
    """A library. api, prefix, suffix: how the operator's adapter binds it; folders: where its own libraries lie."""

    name: str
    path: Path
    api: str
    version: str = ""
    prefix: str = ""
    suffix: str = ""
    folders: tuple[Path, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    by_vlen: Mapping[int, Mapping[str, str]] = field(default_factory=dict)

    def library(self, runner: Runner, dtype: str) -> Library:
        return Library(runner.place(self.path), self.api, dtype, self.prefix, self.suffix)

    def environment(self, runner: Runner, vlen: int) -> tuple[tuple[str, str], ...]:
        """All it finds in its environment on a target at a VLEN (bits), sorted."""
        folders = ":".join(runner.place(folder) for folder in self.folders)
        search = {"LD_LIBRARY_PATH": folders} if folders else {}
        return tuple(sorted({**search, **self.variables, **self.by_vlen.get(vlen, {})}.items()))


def ours(library: Path, threads: int) -> Contender:
    """The product's library with so many threads."""
    return Contender("ours", library, "tensorop", variables={"TENSOROP_NUM_THREADS": str(threads)})


def check_names(names: Sequence[str]) -> None:
    """Raises UsageError for a name that is no baseline on any architecture."""
    for name in names:
        if name.startswith("openblas@"):
            openblas.source("x86_64", name.partition("@")[2])
        elif name not in _KNOWN:
            raise errors.unknown_name("baseline", name, _KNOWN)


def bring(name: str, platform: Platform, vlens: Sequence[int], threads: int, offline: bool | None = None) -> Contender:
    """A baseline, fetched when absent.

    Raises UsageError for a name nobody knows, JobError (MissingTool among them) where it cannot be had: for this
    architecture, or now.
    """
    check_names([name])
    if name not in baseline.names(platform.arch):
        there = ", ".join(baseline.names(platform.arch))
        raise errors.JobError(f"{name} does not exist for {platform.arch}", hint=f"there is {there}")
    found = baseline.baseline(name, platform.arch, offline=offline)
    base = name.partition("@")[0]
    variables = {
        **found.environment,
        **{variable: str(threads) for variable in _THREADS.get(base, ("OMP_NUM_THREADS",))},
    }
    by_vlen = {vlen: platform.baseline_environment(name, vlen) for vlen in vlens}
    return Contender(
        name, found.path, found.kind, found.version, found.prefix, found.suffix, found.library_path, variables, by_vlen
    )


def describe(contender: Contender, runner: Runner, arch: str, vlens: Sequence[int]) -> BaselineInfo:
    """What a baseline says of itself on the target: its core name (at each VLEN where they differ), build, threads.

    Raises JobError when it cannot be loaded there.
    """
    program = describe_program(arch)
    words = {vlen: _ask(contender, runner, program.path, vlen) for vlen in vlens}
    first = words[vlens[0]]
    cores = {vlen: said["core"] for vlen, said in words.items() if "core" in said}
    if len(set(cores.values())) > 1:
        core = ", ".join(f"{name} at VLEN {vlen}" for vlen, name in cores.items())
    else:
        core = next(iter(cores.values()), "")
    parts = [f"core {core}" if core else "", first.get("config", "").strip()]
    forced = {k: v for vlen in vlens for k, v in contender.by_vlen.get(vlen, {}).items()}
    if forced and len(vlens) == 1:
        parts.append(" ".join(f"{k}={v}" for k, v in forced.items()))
    return BaselineInfo(contender.version, "; ".join(part for part in parts if part) or "says nothing of itself")


def _ask(contender: Contender, runner: Runner, program: Path, vlen: int) -> dict[str, str]:
    environment = dict(contender.environment(runner, vlen))
    words = [runner.place(program), runner.place(contender.path), contender.prefix, contender.suffix]
    argv = runner.command(words, vlen=vlen or None, dynamic=True, environment=environment)
    ended = process.run(argv, timeout_s=60, environment=runner.environment(environment), limits=process.Limits())
    if ended.status != 0:
        if (why := runner.lost(ended.status, ended.stderr)) is not None:
            raise errors.BoardError(why, hint="run the same command again when it is back")
        said = ended.stderr.strip().splitlines()
        raise errors.JobError(f"{contender.name} cannot be loaded: {said[0] if said else f'status {ended.status}'}")
    lines = ended.stdout.decode(errors="replace").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
