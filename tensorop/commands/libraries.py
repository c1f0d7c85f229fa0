"""The libraries of a comparison: the product's and its baselines, each with the environment that it needs."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from tensorop import errors
from tensorop.model.bench import BaselineInfo
from tensorop.model.operator import Operator
from tensorop.model.platform import BaselineChoice
from tensorop.provision import baseline
from tensorop.runners import confined
from tensorop.runners.base import Launch, Need, Runner
from tensorop.runners.protocol import TargetLibrary
from tensorop.specs import products
from tensorop.target import Target
from tensorop.toolchain import harness, shared_library, tool
from tensorop.toolchain.programs import describe_program

# Environment variables that set a baseline's number of threads. OMP_NUM_THREADS is for builds with OpenMP.
_THREADS = {
    "openblas": ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"),
    "mkl": ("MKL_NUM_THREADS", "OMP_NUM_THREADS"),
    "blis": ("BLIS_NUM_THREADS", "OMP_NUM_THREADS"),
    "torch": ("OMP_NUM_THREADS", "MKL_NUM_THREADS"),
    "onednn": (),  # TBB starts a thread for each processor that the process may use
}
_NONE: Mapping[str, str] = MappingProxyType({})
ALONE = "none"  # in Operator.baselines: an operator's own baseline that needs no library
_AGAIN = "build the product again"
_KNOWN = (*baseline.names("x86_64"), "cublas", "cudnn")


@dataclass(frozen=True)
class LibraryUnderTest:
    """A library in a comparison."""

    name: str
    path: Path
    api: str  # interface by which the operator's adapter binds it
    version: str = ""
    prefix: str = ""  # of the names of its functions
    suffix: str = ""
    folders: tuple[Path, ...] = ()  # folders of the libraries that it needs
    variables: Mapping[str, str] = field(default_factory=dict)  # environment at every VLEN and dtype
    choices: Mapping[tuple[int, str], BaselineChoice] = field(default_factory=dict)  # by VLEN (bits) and dtype
    # By dtype: a library in the same folder that wraps this one with a standard interface, and that interface.
    standard: Mapping[str, tuple[Path, str]] = field(default_factory=dict)
    build: str = ""  # as in provision.baseline.PeerLibrary
    most_flops: float | None = None  # as in provision.baseline.PeerLibrary
    function: str = ""  # the called function, where the operator has several for a problem

    @property
    def title(self) -> str:
        return f"{self.name} ({self.function})" if self.function else self.name

    def library(self, runner: Runner, dtype: str) -> TargetLibrary:
        if dtype in self.standard:
            over, api = self.standard[dtype]
            return TargetLibrary(f"{runner.place(over.parent)}/{over.name}", api, dtype)
        if not self.path.name:
            return TargetLibrary("", self.api, dtype)
        return TargetLibrary(runner.place(self.path), self.api, dtype, self.prefix, self.suffix)

    def environment(self, runner: Runner, vlen: int, dtype: str) -> tuple[tuple[str, str], ...]:
        """The library's environment variables on a target at a VLEN (bits) for a dtype, sorted."""
        folders = ":".join(runner.place(folder) for folder in self.folders)
        search = {"LD_LIBRARY_PATH": folders} if folders else {}
        choice = self.choices.get((vlen, dtype))
        return tuple(sorted({**search, **self.variables, **(choice.environment if choice else {})}.items()))


def ours(operator: Operator, library: Path, threads: int) -> LibraryUnderTest:
    """The product's library with a number of threads.

    It is called by the standard names, like its baselines, for dtypes that have them in the product.
    """
    variables = {"TENSOROP_NUM_THREADS": str(threads)}
    return LibraryUnderTest("ours", library, "tensorop", variables=variables, standard=_standard(operator, library))


def _standard(operator: Operator, library: Path) -> dict[str, tuple[Path, str]]:
    """By dtype: a library in the same folder that has a standard interface and is linked to this file."""
    found: dict[str, tuple[Path, str]] = {}
    for name, spec in products.load(operator).libraries.items():
        over = library.parent / f"lib{name}.so"
        if not spec.api or not os.path.lexists(over):
            continue
        facts = _facts(over)
        below = [library.parent / needed for needed in facts.needed]
        if any(file.is_file() and file.samefile(library) for file in below):
            exported = facts.exports
            found |= {d: (over, spec.api) for d, names in spec.names.items() if d != "all" and exported >= set(names)}
    return found


def _facts(library: Path) -> shared_library.LibraryFacts:
    try:
        return shared_library.facts(library)
    except OSError as error:
        raise errors.JobError(f"{library} cannot be read: {error.strerror or error}", hint=_AGAIN) from None
    except Exception as error:  # the reader raises any exception for bytes that are not ELF
        raise errors.JobError(
            f"{library} is not a shared library: {error or type(error).__name__}", hint=_AGAIN
        ) from None


def below(name: str, own: Mapping[str, str]) -> str:
    """The library under an operator's own baseline, `NAME` or `NAME+LIBRARY`; other names are returned as they are.

    own: Operator.baselines
    """
    interface, plus, library = name.partition("+")
    over = own.get(interface, ALONE)
    return name if over == ALONE else library if plus else over


def check_known(name: str, arch: str = "x86_64", own: Mapping[str, str] = _NONE) -> None:
    """Raises UsageError for a name or version that is not a baseline on any architecture."""
    given, name = name, below(name, own)
    if name.startswith("openblas@"):
        baseline.baseline(name, arch)
    elif name not in _KNOWN and own.get(name) != ALONE:
        more = {
            interface if over == ALONE or over in _KNOWN else f"{interface}+openblas" for interface, over in own.items()
        }
        raise errors.unknown_name("baseline", given, tuple({*_KNOWN, *more}))


def check_names(names: Sequence[str], arch: str = "x86_64", own: Mapping[str, str] = _NONE) -> None:
    """Raises UsageError for a name or version that is not a baseline, or not one of this architecture."""
    there = baseline.names(arch)
    for name in names:
        check_known(name, arch, own)
    lacking = [name for name in names if below(name, own) not in there and own.get(name) != ALONE]
    if lacking:
        raise errors.UsageError(
            f"--against {', '.join(lacking)}: no such baseline for {arch}", hint=f"use one of {', '.join(there)}"
        )


def in_cache(operator: Operator, target: Target, threads: int) -> list[str]:
    """The operator's `peers` for the target's architecture that need no download."""
    over = {name: below(name, operator.baselines) for name in operator.peers}
    there = {name: library for name, library in over.items() if library in target.baselines}
    arch = target.platform.arch
    return [name for name, library in there.items() if baseline.baseline(library, arch, threads).entry.present]


def bring(
    name: str,
    target: Target,
    dtypes: Sequence[str],
    threads: int,
    offline: bool | None = None,
    own: Mapping[str, str] = _NONE,
) -> LibraryUnderTest:
    """A baseline, downloaded if it is missing. own: Operator.baselines.

    Raises UsageError for an unknown name, JobError (MissingTool included) if the baseline does not exist for the
    architecture or cannot be downloaded or built.
    """
    check_known(name, own=own)
    platform = target.platform
    if own.get(name) == ALONE:
        flags = " ".join((*harness.FLAGS, *platform.compiler.arch_flags))
        return LibraryUnderTest(name, Path(), name, tool.compiler_version(), build=f"the operator's own C, {flags}")
    if (library := below(name, own)) != name:
        found, (interface, over, _) = bring(library, target, dtypes, threads, offline), name.partition("+")
        if not over:
            return replace(found, name=name)
        if found.api != own[interface]:
            why = f"{interface} goes over {own[interface]}, which {library} has not"
            raise errors.JobError(f"the baseline {name} is not available: {why}")
        return replace(found, name=name, api=interface)
    if name not in target.baselines:
        there = ", ".join(target.baselines)
        raise errors.JobError(f"the baseline {name} does not exist for {platform.arch}", hint=f"use one of {there}")
    brought = baseline.baseline(name, platform.arch, threads).bring(offline=offline)
    base = name.partition("@")[0]
    variables = {
        **brought.environment,
        **{variable: str(threads) for variable in _THREADS.get(base, ("OMP_NUM_THREADS",))},
    }
    choices = {(v, dtype): platform.baseline_choice(name, v, dtype) for v in target.vlens for dtype in dtypes}
    return LibraryUnderTest(
        name,
        brought.path,
        brought.kind,
        brought.version,
        brought.prefix,
        brought.suffix,
        brought.library_path,
        variables,
        choices,
        build=brought.build,
        most_flops=brought.most_flops,
    )


def describe(tested: LibraryUnderTest, runner: Runner, arch: str) -> BaselineInfo:
    """A baseline's own description on the target, its settings, and the platform's remarks on its choices.

    The core name comes first, for each VLEN and dtype if they differ; then its configuration, build and variables.
    Raises JobError if the baseline cannot be loaded there.
    """
    if not tested.path.name:
        return BaselineInfo(tested.version, tested.build)
    program = describe_program(arch).path
    asked: dict[tuple[tuple[str, str], ...], dict[str, str]] = {}
    cores: dict[tuple[int, str], str] = {}
    for vlen, dtype in tested.choices:
        environment = (("", str(vlen)), *tested.environment(runner, vlen, dtype))
        if environment not in asked:
            asked[environment] = _ask(tested, runner, program, vlen, dtype)
        cores[vlen, dtype] = asked[environment].get("core", "")
    first = next(iter(asked.values()))
    core = _named(cores)
    build = f"{tested.build} build" if tested.build else ""
    forced = next(iter(tested.choices.values())).environment if len(asked) == 1 else {}
    settings = " ".join(f"{k}={v}" for k, v in sorted({**tested.variables, **forced}.items()))
    parts = [f"core {core}" if core else "", first.get("config", "").strip(), build, settings]
    config = "; ".join(part for part in parts if part) or "says nothing of itself"
    remarks: dict[str, list[int]] = {}
    for (vlen, _), choice in tested.choices.items():
        if choice.remark and vlen not in remarks.setdefault(choice.remark, []):
            remarks[choice.remark].append(vlen)
    notes = [f"VLEN {' and '.join(map(str, vlens))}: {text}" if any(vlens) else text for text, vlens in remarks.items()]
    by_vlen: dict[int, dict[str, str]] = {}
    for (vlen, dtype), name in cores.items():
        if name:
            by_vlen.setdefault(vlen, {})[dtype] = name
    limited = dict.fromkeys(vlen for vlens in remarks.values() for vlen in vlens)
    return BaselineInfo(tested.version, config, tuple(notes), by_vlen, tuple(limited))


def _named(cores: Mapping[tuple[int, str], str]) -> str:
    """Core names as short text: `A`, `A at VLEN 128, B at VLEN 256`, or `A for f32, B for f64`."""
    if len(set(cores.values())) == 1:
        return next(iter(cores.values()))
    words: dict[str, None] = {}
    for (vlen, dtype), name in cores.items():
        here = {c for (v, _), c in cores.items() if v == vlen}
        width = f" at VLEN {vlen}" if len({v for v, _ in cores}) > 1 else ""
        words[f"{name}{f' for {dtype}' if len(here) > 1 else ''}{width}"] = None
    return ", ".join(words)


def _ask(tested: LibraryUnderTest, runner: Runner, program: Path, vlen: int, dtype: str) -> dict[str, str]:
    environment = dict(tested.environment(runner, vlen, dtype))
    words = [runner.place(program), runner.place(tested.path), tested.prefix, tested.suffix]
    needs = Need.THREADS | Need.READS  # the same needs as the harness has with baselines
    ended = confined.run(runner, Launch(words, vlen or None, True, environment, needs=needs), timeout_s=60)
    if ended.status != 0:
        if (why := runner.lost(ended.status, ended.stderr)) is not None:
            raise errors.BoardError(why, hint="run the same command again when the board is back")
        stderr = ended.stderr.strip().splitlines()
        raise errors.JobError(
            f"{tested.name} cannot be loaded on the target: {stderr[0] if stderr else f'status {ended.status}'}"
        )
    lines = ended.stdout.decode(errors="replace").splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)
