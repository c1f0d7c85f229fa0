"""The base class of backends: everything that the core asks of a target.

A backend is a module backends/NAME.py, shipped or in a plug-in folder, with `class Backend(Target)`. The core calls the
methods below, and never checks which backend it has.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import threading
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Self

from tensorop.author import offline
from tensorop.errors import JobError, UsageError
from tensorop.measure.request import Measurement, MeasureRequest
from tensorop.model.budget import Budgets
from tensorop.model.call import Access, Call
from tensorop.model.core import Core
from tensorop.model.kernel import Artifact, KernelTemplate, Source
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.shape import Shape
from tensorop.model.trial import Outcome, Samples
from tensorop.process import deadline
from tensorop.provision import baseline, prewarm
from tensorop.runners import session
from tensorop.runners.base import Machine, Runner
from tensorop.runners.protocol import Hello
from tensorop.toolchain import compile as building
from tensorop.toolchain import gate as object_gate
from tensorop.toolchain import programs, tool
from tensorop.toolchain.compile import link_candidate

_TURNS = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))  # limits the measurements of all running trials

Files = Mapping[str, bytes]
Answer = tuple[Measurement, ...] | Outcome


@dataclass(frozen=True)
class Assumed:
    """The model behind a target's results, if no clock measures them."""

    name: str
    version: int
    constants: Sequence[str] = ()  # names of the constants whose value is assumed
    alternatives: Sequence[str] = ()  # names of the model's alternatives
    record: Mapping[str, object] = field(default_factory=dict)  # kept beside the results


@dataclass(frozen=True)
class KitRequest:
    """What a kit measures. CPU kits time all dtypes in the default layout; some options are for GPU kits only."""

    shapes: Sequence[Shape] = ()  # empty: the default ones
    probes: int = 0  # number of further shapes for each dtype
    dtypes: Sequence[str] = ()  # GPU kits; empty: the first
    layouts: Sequence[str] = ()  # GPU kits; names; empty: all
    kinds: Sequence[str] = ("control", "verify", "time")  # GPU kits; kinds of steps
    jobs: int = 2  # CPU kits; parallel processes
    before: int = 0  # number of kits already imported


@dataclass(frozen=True)
class Target(ABC):
    """A platform that can be reached: how to build, run and measure kernels for it."""

    platform: Platform
    runner: Runner  # starts its processes
    core: Core | None = None  # the probed machine, if it was asked

    name: ClassVar[str]  # name of its file, and in `--runner`
    address: ClassVar[str] = ""  # form of what follows `--runner NAME://`; empty: nothing
    unit: ClassVar[str]  # unit of costs
    speed: ClassVar[str]  # unit of speed: flops per unit of cost
    shown: ClassVar[str]  # unit of the cost of 1000 flops, in progress lines
    budgets: ClassVar[Budgets]
    side_by_side: ClassVar[bool] = False  # measurements may overlap
    deterministic: ClassVar[bool] = False  # a call always has the same cost, so one is counted; else batches are timed
    is_host: ClassVar[bool] = False  # this machine's processor, which must have the platform's features
    confined: ClassVar[bool] = False  # every process runs in a jail (docs/explanation/security.md)
    simulated: ClassVar[bool] = False  # nothing is built; `simulate` invents costs
    measures: ClassVar[bool] = True  # kernels can be measured; else it is a DeviceTarget, whose products are predicted
    brings: ClassVar[str] = "compiler, emulator, C library"  # what `bring` gets
    library_calls: ClassVar[frozenset[str]] = frozenset()  # further functions that products may call
    ignores: ClassVar[Mapping[str, str]] = {}  # options without effect -> reason; they are refused

    @classmethod
    def machine(cls, address: str) -> Machine:
        """The machine at an address, to be probed before a platform is known. Raises UsageError if there is none."""
        raise UsageError(f"a platform file cannot be written from '{cls.name}'", hint="use native or ssh://HOST")

    @classmethod
    @abstractmethod
    def start(cls, platform: Platform, address: str) -> Runner:
        """A runner for a platform; does not contact the target. Raises UsageError."""

    @classmethod
    def meet(cls, platform: Platform, address: str) -> tuple[Platform, Runner, Core | None]:
        """Contacts the target: the platform as found there, the runner, and the probed machine.

        Raises BoardError if it does not answer or is not what the platform declares.
        """
        return platform, cls.start(platform, address), None

    @classmethod
    def reach(cls, platform: Platform, address: str) -> Self:
        """A target for measuring. Raises as `meet`, and JobError if nothing can be measured."""
        return cls(*cls.meet(platform, address))

    def at(self, vlen: int) -> Self:
        """The target with a fixed VLEN (bits); 0: itself."""
        return dataclasses.replace(self, platform=self.platform.at(vlen)) if vlen else self

    @property
    def vlens(self) -> tuple[int, ...]:
        """VLENs (bits) at which kernels are measured; (0,) if vectors have one length."""
        return self.platform.vlens

    @property
    def verify_vlens(self) -> tuple[int, ...]:
        """VLENs (bits) at which winners are verified."""
        return self.platform.verify_vlens

    @property
    def clocks(self) -> int:
        """Number of machines that measure trials in parallel, one trial each."""
        return 1

    @contextlib.contextmanager
    def one(self) -> Iterator[Self]:
        """The target with one of its machines, reserved for this thread within the block.

        A BoardError that leaves the block removes the machine if there are others.
        """
        yield self

    @staticmethod
    def label(vlen: int) -> str:
        """A VLEN for messages; "" for 0."""
        return f"VLEN {vlen}" if vlen else ""

    @property
    def identity(self) -> list[object]:
        """Facts about the machine that a resumed run must find again."""
        return []

    def templates(self, operator: Operator, dtypes: Sequence[str]) -> Sequence[KernelTemplate]:
        """An operator's own templates for such targets, with those of plug-in folders.

        Raises SpecError for a broken template or without one, UsageError for dtypes that have none.
        """
        return offline.templates(operator.folder, operator.name, operator.added)

    @property
    def tools(self) -> dict[str, str]:
        """Tool -> version, of the tools that build and run kernels; results may depend on them."""
        return {"compiler": tool.compiler_version()}

    @property
    def assumed(self) -> Assumed | None:
        """The model behind the results; None if a clock measures them."""
        return None

    @property
    def measured_by(self) -> str:
        """How kernels are measured, in a few words."""
        return f"the board model {self.assumed.name}" if self.assumed else f"the clock of {self.name}"

    @property
    def guests(self) -> Runner:
        """Starts untrusted kernels."""
        return self.runner

    def weaknesses(self, greeting: Hello | None) -> tuple[str, ...]:
        """What a process lacks of its jail, from the harness's greeting; empty if complete."""
        no = (f"the backend '{self.name}' declares no jail",)
        return session.weaknesses(self.guests, greeting) if self.confined else no

    def described(self) -> Mapping[str, object]:
        """The machine and its state, for the record of a comparison: cpu, cores and load."""
        return {}

    @property
    def llvm_cpu(self) -> str:
        """LLVM's name of the core that measures, as the compiler's flags have it; empty if they have none."""
        flags = self.platform.compiler.arch_flags
        named = next((flag.removeprefix("-mcpu=") for flag in flags if flag.startswith("-mcpu=")), "")
        name = named.partition("+")[0].replace("_", "-")
        return "" if name.startswith("baseline") else name

    def widest(self) -> Target:
        """The machine with all its features; baselines may use more than the platform requires."""
        return self

    def peak(self, dtype: str, vlen: int, fresh: bool = False) -> float:
        """Peak of one core: flops of multiply-adds per unit of cost; 0 if unknown. fresh: measure again."""
        return 0.0

    def last_cache(self) -> int:
        """Bytes of the last-level cache; 0 if the memory `bandwidth` is unknown."""
        return 0

    def bandwidth(self) -> float:
        """Bytes that one core reads from memory per unit of cost."""
        raise NotImplementedError

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the libraries that products can be compared with."""
        return baseline.names(self.platform.arch)

    def bring(self, offline: bool | None) -> None:
        """Downloads and builds what jobs and products need. Raises for the first missing piece."""
        prewarm.bring(self.platform.arch, shared=self.platform.compiler.shared_target, offline=offline)

    def build(
        self, source: Source, work: Path, timeout_s: float, lap: Callable[[str], object] = lambda step: None
    ) -> Artifact | Outcome:
        """Builds a candidate's program and checks its machine code.

        lap: called with the name of each step when it ends
        """
        objects: list[Artifact] = []
        for part in source.parts:
            made = building.compile_source(
                part, building.candidate_flags(self.platform), work=work, timeout_s=timeout_s
            )
            lap("compile")
            if isinstance(made, Outcome):
                return made
            refused = object_gate.check_part(made.path, source, part)
            lap("check")
            if refused is not None:
                return refused
            objects.append(made)
        program = link_candidate(*objects, arch=self.platform.arch, work=work)
        lap("link")
        return program

    def measure(self, request: MeasureRequest) -> Answer:
        """Costs of the request's calls at its VLEN, or the outcome of the first failure."""
        raise NotImplementedError

    def sample_costs(self, calls: Sequence[Call], what: str) -> tuple[dict[int, Samples], ...]:
        """For each call of a fixed kernel (native/sample.c): VLEN -> cost. what: name of the kernel in messages.

        Raises JobError, BoardError.
        """
        program = tool.required(programs.sample_program(self.platform), what).path
        found = self.measure_each(lambda at: MeasureRequest(program, calls, vlen=at))
        if isinstance(found, Outcome):
            raise JobError(f"{what} failed: {found.message}")
        return found

    def types_of_c(self, operator: Operator, dtype: str) -> tuple[str, ...]:
        """Dtypes that the result may have if the inputs have `dtype`; the default first."""
        written = next(one for one in operator.reference.operands.values() if one.access is not Access.IN)
        return (written.formats.get(dtype, dtype),)

    def maths(self, operator: Operator, dtype: str) -> tuple[str, ...]:
        """Ways to compute products of this dtype, beside the usual one."""
        return ()

    @classmethod
    def parts(cls, operator: Operator, platform: Platform) -> Iterator[tuple[str, Callable[[], object]]]:
        """Checks of an operator for such products, without a compiler; a check raises TensoropError for a fault."""
        return iter(())

    def simulate(self, point: Point, problem: str, work: float) -> tuple[Outcome, Samples | None]:
        """Invented outcome and cost of a trial, for simulated targets."""
        raise NotImplementedError

    def measure_each(self, request_at: Callable[[int], MeasureRequest]) -> tuple[dict[int, Samples], ...] | Outcome:
        """For each measurement of a request: VLEN -> cost. request_at: VLEN -> the request.

        Targets with `side_by_side` measure VLENs in parallel, so that one long trial uses several processors.
        """
        found: list[dict[int, Samples]] = []
        for at, measured in zip(self.vlens, self._in_order(request_at), strict=False):
            if isinstance(measured, Outcome):
                return measured
            found = found or [{} for _ in measured]
            for into, one in zip(found, measured, strict=True):
                into[at] = one.samples
        return tuple(found)

    def _in_order(self, request_at: Callable[[int], MeasureRequest]) -> Iterable[Answer]:
        if not self.side_by_side:
            return (self.measure(request_at(at)) for at in self.vlens)
        end = deadline.current()

        def in_turn(at: int) -> Answer:
            with _TURNS, deadline.shared(end):
                return self.measure(request_at(at))

        with ThreadPoolExecutor(len(self.vlens)) as pool:
            return list(pool.map(in_turn, self.vlens))
