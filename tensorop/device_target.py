"""The base class of backends whose products are made without measurements, for a device that may not be here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, cast

from tensorop.author.llm.prompt import DeviceBrief
from tensorop.events import Event
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape
from tensorop.package.product import Product
from tensorop.search.task import JobContext
from tensorop.target import Files, KitRequest, Target


class DeviceContent(ABC):
    """What a backend makes a product of; no one else looks inside."""

    @abstractmethod
    def product(self) -> Product:
        """The product, which says that nothing was measured."""


@dataclass(frozen=True)
class PredictedProduct:
    """A product whose kernels were not measured."""

    operator: Operator
    root: Path
    facts: Mapping[str, Any]  # the operator's part of the manifest
    content: DeviceContent | None = None  # of a product that this process made; None: the backend reads `root`


@dataclass(frozen=True)
class TimedProblem:
    """A problem that a kit measured on the device of such a product."""

    problem: Problem  # its dims: the numbers of a device call; its options: the layout
    us: Mapping[int, float]  # number of variant -> median time


@dataclass(frozen=True)
class DeviceTarget(Target):
    """A target whose kernels are chosen by a model of the device; a tuning kit measures them there."""

    measures: ClassVar[bool] = False
    remark: ClassVar[str]  # on a product that no kit measured

    @abstractmethod
    def authored(self, whole: JobContext) -> Generator[Event, None, tuple[KernelTemplate, ...]]:
        """The templates of a job: the operator's own, then its author's, which the journal has after that."""

    @abstractmethod
    def kernels(self, whole: JobContext) -> Generator[Event, None, DeviceContent]:
        """Chooses kernels, and builds those that the journal does not have.

        A stop request ends it. Raises Stopped if there are not enough for a library.
        """

    @abstractmethod
    def brief(self, operator: Operator, dtypes: Sequence[str], shapes: Sequence[Shape]) -> DeviceBrief:
        """What such a job asks a language model. Raises UsageError for a platform or an operator without an author."""

    def attached(self) -> str | None:
        """Name of this machine's GPU that such products run on; None without one."""
        return None

    @abstractmethod
    def kit(self, held: PredictedProduct, request: KitRequest) -> tuple[Files, Sequence[str]]:
        """The files of a tuning kit for such a product, and its plan, line by line. Raises UsageError."""

    @abstractmethod
    def retuned(
        self, held: PredictedProduct, rows: Sequence[TimedProblem], where: str
    ) -> tuple[Product, Mapping[str, Any]]:
        """The product with a dispatch fitted to a kit's rows, and dtype -> `regret` and `off` before and after.

        where: name of the machine that measured the rows
        """

    @abstractmethod
    def costs(self, held: PredictedProduct, rows: Sequence[TimedProblem], problem: Problem) -> Mapping[int, float]:
        """Costs by which such a product chooses for a problem: number of each variant that serves it -> cost.

        rows: what the product's dispatch was fitted to
        """


def for_device(found: Target) -> DeviceTarget | None:
    """The target itself, if its products are made without measurements."""
    return None if found.measures else cast(DeviceTarget, found)
