"""What a target is: a platform within reach by one kind of backend, which alone knows how anything is done there.

A backend is a module backends/NAME.py, shipped or of a plug-in folder, with `class Backend(Target)`. The core asks the
methods below; it never asks which backend answers.
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
from typing import TYPE_CHECKING, Any, ClassVar, Self

from tensorop.build import compile as building
from tensorop.build import gate as object_gate
from tensorop.build import programs, tool
from tensorop.build.compile import link_candidate
from tensorop.errors import JobError, UsageError
from tensorop.measure import statistics
from tensorop.measure.request import Measurement, MeasureRequest
from tensorop.model.budget import Budgets
from tensorop.model.call import Access, Call
from tensorop.model.core import Core
from tensorop.model.job import Job
from tensorop.model.kernel import Artifact, Source
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.shape import Shape
from tensorop.model.trial import Outcome, Samples
from tensorop.process import deadline
from tensorop.process.stopping import StopRequest
from tensorop.provision import baseline, prewarm
from tensorop.runners import session
from tensorop.runners.base import Machine, Runner
from tensorop.runners.protocol import Hello

if TYPE_CHECKING:
    from tensorop.events import Event
    from tensorop.package.product import Product

INSTRUCTIONS = 0.1  # the power of them in a variant's objective

_TURNS = threading.BoundedSemaphore(max(2, os.cpu_count() or 1))  # of all trials that are under way

Files = Mapping[str, bytes]
Answer = tuple[Measurement, ...] | Outcome


@dataclass(frozen=True)
class Assumed:
    """The model that figures rest on where no clock takes them."""

    name: str
    version: int
    constants: Sequence[str] = ()  # names of those whose value is assumed
    alternatives: Sequence[str] = ()  # names
    record: Mapping[str, object] = field(default_factory=dict)  # goes beside the figures


@dataclass(frozen=True)
class PredictedProduct:
    """A product of a target that takes no figures."""

    operator: Operator
    root: Path
    facts: Mapping[str, Any]  # its operator's part of the manifest


@dataclass(frozen=True)
class TimedProblem:
    """What a kit found on such a product's device."""

    dtype: str
    a_along_m: int
    b_along_k: int
    m: int
    n: int
    k: int
    batch: int
    us: Mapping[int, float]  # medians, by number of variant


@dataclass(frozen=True)
class KitRequest:
    """What a kit measures. Kits of processors time all types in the usual layout."""

    shapes: Sequence[Shape] = ()  # by default the usual ones
    probes: int = 0  # how many more shapes of each dtype
    dtypes: Sequence[str] = ()  # of a device, by default the first
    layouts: Sequence[str] = ()  # of a device, by their names, by default all
    kinds: Sequence[str] = ("control", "verify", "time")  # of a device, the steps' kinds
    jobs: int = 2  # processes side by side, of a processor
    before: int = 0  # how many kits came back


@dataclass(frozen=True)
class Target(ABC):
    """A platform within reach."""

    platform: Platform
    runner: Runner  # how its processes start
    core: Core | None = None  # what a machine that was asked turned out to be

    name: ClassVar[str]  # as its file, and in `--runner`
    address: ClassVar[str] = ""  # what follows in `--runner NAME://...`, where something does
    unit: ClassVar[str]  # of costs
    speed: ClassVar[str]  # of flops in a unit of cost
    shown: ClassVar[str]  # of the cost of 1000 flops, in progress
    budgets: ClassVar[Budgets]
    side_by_side: ClassVar[bool] = False  # measurements may overlap
    deterministic: ClassVar[bool] = False  # one call is counted, the same each time; else batches of calls are timed
    is_host: ClassVar[bool] = False  # this machine's own processor, which must have what the platform requires
    confined: ClassVar[bool] = (
        False  # every process has a jail (docs/explanation/security.md), tried before it is relied on
    )
    simulated: ClassVar[bool] = False  # nothing is built, and costs are made up (`simulate`)
    measures: ClassVar[bool] = True  # figures can be taken; else its own path makes products (`unmeasured`)
    library_calls: ClassVar[frozenset[str]] = frozenset()  # what products may call beside what all may
    ignores: ClassVar[Mapping[str, str]] = {}  # options of a job that change nothing, with reasons; they are refused

    @classmethod
    def machine(cls, address: str) -> Machine:
        """What can be asked what it is, before a platform is known. Raises UsageError where nothing can."""
        raise UsageError(f"'{cls.name}' names no machine that says what it is", hint="expected native or ssh://host")

    @classmethod
    @abstractmethod
    def start(cls, platform: Platform, address: str) -> Runner:
        """How processes start for a platform, with nothing asked of the target yet. Raises UsageError."""

    @classmethod
    def meet(cls, platform: Platform, address: str) -> tuple[Platform, Runner, Core | None]:
        """The platform as it is there, how processes start, and what the machine is where it was asked.

        Raises BoardError when it does not answer or is not what the platform declares.
        """
        return platform, cls.start(platform, address), None

    @classmethod
    def reach(cls, platform: Platform, address: str) -> Self:
        """A target to measure on. Raises as `meet`, and JobError where nothing can be measured."""
        return cls(*cls.meet(platform, address))

    def at(self, vlen: int) -> Self:
        """The target where its VLEN (bits) is known; itself at 0."""
        return dataclasses.replace(self, platform=self.platform.at(vlen)) if vlen else self

    @property
    def vlens(self) -> tuple[int, ...]:
        """VLENs (bits) that scores are made at, each with figures of its own; (0,) where vectors have one length."""
        return self.platform.vlens

    @property
    def verify_vlens(self) -> tuple[int, ...]:
        """VLENs (bits) that winners must be right at."""
        return self.platform.verify_vlens

    @property
    def clocks(self) -> int:
        """Machines that now take trials side by side, each one at a time."""
        return 1

    @contextlib.contextmanager
    def one(self) -> Iterator[Self]:
        """The target with one of its machines alone, that no other thread has in the block. A BoardError that leaves
        the block takes the machine out while there are others."""
        yield self

    @staticmethod
    def label(vlen: int) -> str:
        """What a VLEN is called; "" for 0."""
        return f"VLEN {vlen}" if vlen else ""

    @property
    def identity(self) -> list[object]:
        """What a run that goes on must find again of the machine."""
        return []

    @property
    def tools(self) -> dict[str, str]:
        """By name the versions of what builds and runs kernels: with others, figures may be others."""
        return {"compiler": tool.compiler_version()}

    @property
    def assumed(self) -> Assumed | None:
        """What figures rest on where no clock on the target takes them."""
        return None

    @property
    def measured_by(self) -> str:
        """A few words on what takes the figures."""
        return f"the board model {self.assumed.name}" if self.assumed else f"the clock of {self.name}"

    def weaknesses(self, greeting: Hello | None) -> tuple[str, ...]:
        """What a process lacks of its jail, by what a harness said of itself; empty where nothing is."""
        no = (f"the backend '{self.name}' declares no jail",)
        return session.weaknesses(self.runner, greeting) if self.confined else no

    def described(self) -> Mapping[str, object]:
        """What goes beside the figures of a comparison: the machine and its state; cpu, cores and load if anything."""
        return {}

    def widest(self) -> Target:
        """The same machine with all it has: baselines may use more of it than the platform asks."""
        return self

    def peak(self, dtype: str, vlen: int, fresh: bool = False) -> float:
        """Flops of one core's multiply-adds in a unit of cost (fresh: measured anew); 0 where it cannot be told."""
        return 0.0

    def last_cache(self) -> int:
        """Bytes of the last cache; 0 where what memory delivers beyond it (`bandwidth`) cannot be told."""
        return 0

    def bandwidth(self) -> float:
        """Bytes that one core reads from memory in a unit of cost."""
        raise NotImplementedError

    @property
    def baselines(self) -> tuple[str, ...]:
        """Names of the libraries that a product can be compared with there."""
        return baseline.names(self.platform.arch)

    def bring(self, offline: bool | None) -> None:
        """Fetches and builds what jobs and products need; raises the first thing that turns out to be missing."""
        prewarm.bring(self.platform.arch, shared=self.platform.compiler.shared_target, offline=offline)

    def build(self, source: Source, work: Path, timeout_s: float) -> Artifact | Outcome:
        """A candidate's program, once its machine code was read."""
        built = building.compile_source(source, building.candidate_flags(self.platform), work=work, timeout_s=timeout_s)
        if isinstance(built, Artifact):
            built = object_gate.check_object(built.path) or link_candidate(built, self.platform.arch, work=work)
        return built

    def measure(self, request: MeasureRequest) -> Answer:
        """What calls cost, or the first failure's outcome. A target of several VLENs measures at the request's."""
        raise NotImplementedError

    def sample_costs(self, calls: Sequence[Call], what: str) -> tuple[dict[int, Samples], ...]:
        """For each call of a fixed kernel (native/sample.c), VLEN -> cost. what: the kernel in messages.

        Raises JobError, BoardError.
        """
        program = tool.required(programs.sample_program(self.platform), what).path
        found = self.measure_each(lambda at: MeasureRequest(program, calls, vlen=at))
        if isinstance(found, Outcome):
            raise JobError(f"{what} fails: {found.message}")
        return found

    def types_of_c(self, operator: Operator, dtype: str) -> tuple[str, ...]:
        """What the result may be of where the others are of a dtype, the usual one first."""
        written = next(one for one in operator.reference.operands.values() if one.access is not Access.IN)
        return (written.formats.get(dtype, dtype),)

    def unmeasured(self, job: Job, operator: Operator, stop: StopRequest) -> Iterator[Event]:
        """A whole job on a target that takes no figures: yields what happens, `Done` last. The product says so."""
        raise NotImplementedError

    def attached(self) -> str | None:
        """The device of such a product that is in this machine, by its name; None without one."""
        return None

    def kit(self, held: PredictedProduct, request: KitRequest) -> tuple[Files, Sequence[str]]:
        """Of such a product the files of a tuning kit and its plan, line by line. Raises UsageError."""
        raise NotImplementedError

    def retuned(
        self, held: PredictedProduct, rows: Sequence[TimedProblem], where: str
    ) -> tuple[Product, Mapping[str, Any]]:
        """The product with its dispatch by a kit's rows, which were measured at `where`, and what to say of that, by
        dtype: `regret` and `off` before and after."""
        raise NotImplementedError

    def simulate(self, point: Point, problem: str, work: float) -> tuple[Outcome, Samples | None]:
        """What a trial of this point on a problem ends with, for targets that are simulated."""
        raise NotImplementedError

    def measure_each(self, request_at: Callable[[int], MeasureRequest]) -> tuple[dict[int, Samples], ...] | Outcome:
        """For each figure of a request: VLEN -> cost. request_at: the request at a VLEN.

        VLENs are measured side by side where that disturbs nothing, so that one long trial does not keep a
        single processor busy while all others wait for it.
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


def combine(by_vlen: Mapping[int, Samples]) -> Samples:
    """One figure of several VLENs: the geometric mean of costs; counters of the first, `by_vlen` of all."""
    several = list(by_vlen.values())
    if len(several) == 1:
        return several[0]
    return dataclasses.replace(
        several[0],
        value=statistics.geomean(s.value for s in several),
        low=statistics.geomean(s.low for s in several),
        high=statistics.geomean(s.high for s in several),
        by_vlen={vlen: s.value for vlen, s in by_vlen.items()},
    )


def objective(samples: Samples, vlen: int) -> float:
    """What variants of one problem are compared by: the cost, under a model times a small power of the instructions.

    A tenth more instructions weigh like a hundredth more cycles: no constant of the model bends their number, so they
    decide where modelled cycles hardly differ.
    """
    return samples.at(vlen) * float(samples.counters.get("instructions", 1.0) ** INSTRUCTIONS)
