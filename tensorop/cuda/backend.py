"""The backend for NVIDIA GPUs. Jobs compile kernels without a GPU; a model chooses among them, not measurements."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from tensorop import paths
from tensorop.author import offline
from tensorop.author.llm.prompt import DeviceBrief
from tensorop.cuda import attached, author, check, counted, kernels, kit, library
from tensorop.cuda.check import SUFFIX
from tensorop.cuda.job_kernels import NOT_MEASURED, JobKernels, usual
from tensorop.cuda.product import Content, content, product
from tensorop.device_target import DeviceTarget, PredictedProduct, TimedProblem
from tensorop.errors import JobError, Stopped, UsageError
from tensorop.events import Event, Phase
from tensorop.model.budget import Budgets
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape
from tensorop.package.product import Product
from tensorop.provision import nvcc
from tensorop.runners.base import Launch, Runner
from tensorop.runners.native import Native
from tensorop.search.task import JobContext
from tensorop.target import Files, KitRequest
from tensorop.toolchain import needs

_RANKED = "a cost model ranks all configurations, so there is no search"


class NoProcesses(Runner):
    name = "cuda"
    emulated = True

    def place(self, program: Path) -> str:
        return str(program)

    def command(self, launch: Launch) -> NoReturn:
        raise JobError(
            "CPU programs do not run on a GPU",
            hint="`tensorop verify DIR` and `tensorop bench DIR` run on a machine with the GPU  "
            "(docs/how-to/make-a-cuda-library.md)",
        )


@dataclass(frozen=True)
class Backend(DeviceTarget):
    name = "cuda"
    unit = shown = "predicted-cycles"
    speed = "flop/predicted-cycle"
    budgets = Budgets(problem_flops=0.0, every_layout_flops=0.0)
    library_calls = needs.DEVICE.calls
    confined = True  # what `guests` starts
    brings = "nvcc, ptxas"
    remark = NOT_MEASURED
    ignores: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("batch", "no_search", "only", "tuner", "warm_start"), _RANKED),
        "budget": f"{_RANKED}; --trials limits the kernels to build",
        "author_configurations": "a cost model ranks all configurations",
        "layout": "a kernel has all layouts, and its model ranks them together",
        "seed": "a cost model ranks all configurations, so nothing is random",
        "threads": "a GPU library is called from one CPU thread",
    }

    @classmethod
    def start(cls, platform: Platform, address: str) -> NoProcesses:
        if platform.device is None:
            raise UsageError(
                f"platform '{platform.name}' describes no GPU: its file has no section `device:`",
                hint="use a platform whose name begins with cuda; see `tensorop platforms list`",
            )
        return NoProcesses()

    @classmethod
    def parts(cls, operator: Operator, platform: Platform) -> Iterator[tuple[str, Callable[[], object]]]:
        return check.parts(operator, platform) if operator.device is not None else iter(())

    def types_of_c(self, operator: Operator, dtype: str) -> tuple[str, ...]:
        wide = dtype + kernels.FLOAT_C in operator.on_device.types
        return (dtype, "f32") if wide else (dtype,)

    def maths(self, operator: Operator, dtype: str) -> tuple[str, ...]:
        if operator.device is None or dtype != "f32":
            return ()
        found = offline.templates(operator.folder, operator.name, suffix=SUFFIX)
        types = [one for one in operator.on_device.types if one.startswith("f32_")]
        served = [one for one in types if any(kernels.set_of(self.platform, template, one) for template in found)]
        return tuple(one.removeprefix("f32_") for one in served)

    def templates(self, operator: Operator, dtypes: Sequence[str]) -> Sequence[KernelTemplate]:
        """Those whose primitives the platform has. Raises UsageError for types that no library has together."""
        platform = self.platform
        if not offline.files(operator.folder, suffix=SUFFIX):
            message = f"operator '{operator.name}' has no GPU kernels: there is no file kernels/*{SUFFIX}"
            raise UsageError(message, hint="use another operator, or a CPU platform")
        known = [dtype for dtype in platform.dtypes if dtype in operator.on_device.types]
        if strange := [dtype for dtype in dtypes if dtype not in known]:
            message = f"platform '{platform.name}' has no kernels for {', '.join(strange)}; it has {', '.join(known)}"
            raise UsageError(message, hint=f"use --dtype {','.join(known)}")
        found = offline.templates(operator.folder, operator.name, suffix=SUFFIX)
        sizes = {kernels.in_size(dtype): dtype for dtype in dtypes}
        if len(sizes) > 1:
            message = f"--dtype {','.join(dtypes)}: a GPU library has types of one size, and these have {len(sizes)}"
            raise UsageError(message, hint=f"make a library with --dtype {sizes[4]} and one with the others")
        every = [[one for one in operator.on_device.types if kernels.kind(one) == dtype] for dtype in dtypes]
        served = [t for t in found if all(any(kernels.set_of(platform, t, one) for one in of) for of in every)]
        if not served:
            lacks = [f"its family {one.name} needs {', '.join(kernels.missing(platform, one))}" for one in found]
            message = f"platform '{platform.name}' has no kernels for operator '{operator.name}': {'; '.join(lacks)}"
            raise UsageError(message, hint="use a platform with these; docs/reference/supported.md lists them")
        return served

    def bring(self, offline: bool | None) -> None:
        nvcc.nvcc(offline=offline)

    @property
    def guests(self) -> Runner:
        """This machine's processor executes kernels of others (executed.py)."""
        return Native()

    def brief(self, operator: Operator, dtypes: Sequence[str], shapes: Sequence[Shape]) -> DeviceBrief:
        return author.brief(operator, self.platform, dtypes, [operator.shapes.text(shape) for shape in shapes])

    def authored(self, whole: JobContext) -> Generator[Event, None, tuple[KernelTemplate, ...]]:
        found = author.FamilyAuthor(whole.job, whole.operator, self, whole.seed, whole.work)
        return (yield from found.templates(whole.journal))

    def kernels(self, whole: JobContext) -> Generator[Event, None, Content]:
        made = JobKernels(whole, nvcc.nvcc(offline=whole.job.offline or None))
        yield from made.choose()
        if not made.good:
            raise Stopped(
                "stopped before each layout had a kernel for any alignment, so there is no library",
                hint="run the same command again to resume",
            )
        held, name = made.content(), f"lib{library.name_of(whole.operator)}.so"
        yield Phase("library", f"{name}, {len(held.images)} kernels in {len(held.variants)} variants")
        return held

    def attached(self) -> str | None:
        return attached.attached(self.platform.device or {})

    def kit(self, held: PredictedProduct, request: KitRequest) -> tuple[Files, Sequence[str]]:
        operator, own = held.operator, paths.native_dir() / "device" / "kit"
        content = self._content(held)
        program = kit.program(content, held.root)
        files = {"kit": program, "README": (own / "README").read_bytes()}
        plan = kit.steps(content, replace(request, shapes=request.shapes or usual(operator)))
        return files, list(plan)

    def retuned(
        self, held: PredictedProduct, rows: Sequence[TimedProblem], where: str
    ) -> tuple[Product, dict[str, Any]]:
        content = self._content(held)
        found = kit.corrections(content, rows, where)
        facts = {**content.facts, "measured": where, "said": where}
        record = {dtype: found.judged(dtype) for dtype in dict.fromkeys(row.problem.dtype for row in rows)}
        return product(replace(content, facts=facts), found), record

    def costs(self, held: PredictedProduct, rows: Sequence[TimedProblem], problem: Problem) -> Mapping[int, float]:
        return kit.corrections(self._content(held), rows, "").costs(problem)

    def _content(self, held: PredictedProduct) -> Content:
        if isinstance(held.content, Content):
            return held.content
        templates = offline.templates(held.operator.folder, held.operator.name, suffix=SUFFIX)
        templates += counted.of_product(held.facts, held.operator)
        return content(held.root, held.facts, held.operator, self.platform, templates)
