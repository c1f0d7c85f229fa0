"""The backend for NVIDIA GPUs. Jobs compile kernels without a GPU; a model chooses among them, not measurements."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from tensorop import paths
from tensorop.author import offline
from tensorop.author.llm import rounds
from tensorop.author.llm.prompt import DeviceBrief
from tensorop.cuda import attached, author, check, counted, kernels, kit, library
from tensorop.cuda import compile as device
from tensorop.cuda.author import FamilyAuthor
from tensorop.cuda.check import SUFFIX
from tensorop.cuda.choose import Candidate, Layout
from tensorop.cuda.compile import Built
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.library import LibraryVariant
from tensorop.cuda.product import Content, content, product
from tensorop.device_target import DeviceTarget, PredictedProduct, TimedProblem
from tensorop.errors import JobError, Stopped, UsageError
from tensorop.events import Building, Done, Event, Note, Phase
from tensorop.model.budget import Budgets
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.problem import Problem
from tensorop.model.shape import Shape
from tensorop.model.trial import Kind, Outcome
from tensorop.package import plugin_record, publish
from tensorop.package.product import Product
from tensorop.process.stopping import StopRequest
from tensorop.provision import nvcc
from tensorop.render import render
from tensorop.runners.base import Launch, Runner
from tensorop.specs import files as reading
from tensorop.target import Files, KitRequest
from tensorop.toolchain import needs

NOT_MEASURED = "not measured: chosen by an analytic model, and no kernel was run"
_EARLY = "stopped early with the kernels that were built; run the same command again to build the others"
_Wanted = tuple[int, int, str]  # a kernel: number of a layout, place in it, dtype
_KERNELS = 224  # kernels that a job builds without --trials
_ROUNDS = 8  # of choices, each without the kernels that could not be built


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
    ignores: ClassVar[Mapping[str, str]] = {
        "batch": "a cost model ranks all configurations, so there is no search",
        "budget": "a cost model ranks all configurations, so there is no search; --trials limits the kernels to build",
        "fresh": "a GPU job always starts again",
        "no_search": "a cost model ranks all configurations, so there is no search",
        "only": "a cost model ranks all configurations, so there is no search",
        "seed": "a cost model ranks all configurations, so nothing is random",
        "threads": "a GPU library is called from one CPU thread",
        "tuner": "a cost model ranks all configurations, so there is no search",
        "warm_start": "a cost model ranks all configurations, so there is no search",
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

    def brief(self, operator: Operator, dtypes: Sequence[str], shapes: Sequence[Shape]) -> DeviceBrief:
        texts = [operator.shapes.text(shape) for shape in shapes]
        return author.brief(operator, self.platform, device_numbers(self.platform), dtypes, texts)

    def unmeasured(self, job: Job, operator: Operator, stop: StopRequest) -> Iterator[Event]:
        if job.author != offline.AUTHOR:
            author.require(self.platform)
            rounds.require(job)
        yield Phase("platform", f"{self.platform.name}: {self.platform.description}")
        templates = _templates(self.platform, operator, job.dtypes)
        publish.check_place(job.out)
        work: _Work | None = None
        with stop.may_end("stopping: there will be no library"):
            compiler = nvcc.nvcc(offline=job.offline or None)
            yield Phase("tools", f"nvcc {compiler.version}, ptxas {compiler.ptxas}")
            begun = _Work(self.platform, operator, templates, compiler, job)
            yield from begun.write()
            work = begun
        if work is not None:
            yield from work.choose(stop)
        if work is None or not work.variants:
            raise Stopped(
                "stopped before each layout had a kernel for any alignment, so there is no library",
                hint="run the same command again; kernels that were built are kept in the cache",
            )
        name, images = f"lib{library.name_of(operator)}.so", len(work.images)
        yield Phase("library", f"{name}, {images} kernels in {len(work.variants)} variants")
        made, early = work.product(), stop.asked
        staged = publish.stage(made, job.out)
        try:
            with stop.shield("please wait: the library is being moved to its folder"):
                yield Phase("publication", str(job.out))
                publish.publish(staged, job.out, more=plugin_record.folders(job, operator, self.platform, self.name))
        finally:
            publish.discard(staged)
        notes = (NOT_MEASURED, *((_EARLY,) if early else ()))
        yield Done(job.out, job.out / made.library, None, notes, early)

    def attached(self) -> str | None:
        return attached.attached(self.platform.device or {})

    def kit(self, held: PredictedProduct, request: KitRequest) -> tuple[Files, Sequence[str]]:
        operator, own = held.operator, paths.native_dir() / "device" / "kit"
        content = self._content(held)
        program = kit.program(content, held.root)
        files = {"kit": program, "README": (own / "README").read_bytes()}
        plan = kit.steps(content, replace(request, shapes=request.shapes or _usual(operator)))
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
        templates = offline.templates(held.operator.folder, held.operator.name, suffix=SUFFIX)
        templates += counted.of_product(held.facts, held.operator)
        return content(held.root, held.facts, held.operator, self.platform, templates, device_numbers(self.platform))


def _templates(platform: Platform, operator: Operator, dtypes: Sequence[str]) -> list[KernelTemplate]:
    """The operator's templates whose primitives the platform has.

    Raises UsageError for a dtype that the platform lacks, and for an operator without GPU kernels.
    """
    known = platform.dtypes
    if strange := [dtype for dtype in dtypes if dtype not in known]:
        message = f"platform '{platform.name}' has no kernels for {', '.join(strange)}; it has {', '.join(known)}"
        raise UsageError(message, hint=f"use --dtype {','.join(known)}")
    if not offline.files(operator.folder, suffix=SUFFIX):
        message = f"operator '{operator.name}' has no GPU kernels: there is no file kernels/*{SUFFIX}"
        raise UsageError(message, hint="use another operator, or a CPU platform")
    found = offline.templates(operator.folder, operator.name, suffix=SUFFIX)
    return [template for template in found if not kernels.missing(platform, template)]


def _shapes(job: Job, operator: Operator) -> tuple[tuple[int, ...], ...]:
    """The job's shapes. Without --shapes, the operator's usual shapes for a device and batches are added."""
    own = tuple(job.shapes)
    return (
        own
        if job.suite != operator.usual
        else tuple(dict.fromkeys((*own, *_usual(operator), *operator.on_device.probes)))
    )


def _usual(operator: Operator) -> list[tuple[int, ...]]:
    text = reading.text(operator.folder / "device" / "shapes.txt", reading.TEXT)
    words = [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]
    return [shape for word in words if (shape := operator.shapes.read(word))]


class _Work:
    """The kernels that one job chooses and builds."""

    def __init__(
        self, platform: Platform, operator: Operator, templates: Sequence[KernelTemplate], compiler: nvcc.Nvcc, job: Job
    ) -> None:
        self.platform, self.operator, self.compiler, self.job = platform, operator, compiler, job
        self.templates, self.shapes = templates, _shapes(job, operator)
        self.dtypes = [dtype + kernels.FLOAT_C * (job.c_dtype == "f32") for dtype in job.dtypes]
        self.given = device_numbers(platform, kernels.c_size(self.dtypes[0]))
        self.author: FamilyAuthor | None = None
        self.call = operator.on_device
        self.layouts = [Layout.of(self.call, templates, self.given, key) for key in self.call.keys]
        self.built: dict[str, Built | Outcome] = {}  # by text
        self.texts: dict[_Wanted, str | Outcome] = {}
        self.outcomes: dict[_Wanted, Built | Outcome] = {}
        self.variants: list[LibraryVariant] = []
        self.images: list[bytes] = []
        self.records: list[dict[str, Any]] = []  # one for each variant, for card and manifest
        self.sources: dict[int, str] = {}  # CUDA by image

    def write(self) -> Iterator[Event]:
        """Adds the families of the job's author to the layouts."""
        if self.job.author == offline.AUTHOR:
            return
        self.author = FamilyAuthor(self.job, self.operator, self.platform, self.compiler, self.given, self.templates)
        yield from self.author.families()
        found = self.author.found
        self.layouts = [
            Layout.of(self.call, (*self.templates, *found.templates), self.given, key, found.of)
            for key in self.call.keys
        ]

    def choose(self, stop: StopRequest) -> Iterator[Event]:
        """Chooses candidates for each layout and builds them; it chooses again without those that cannot be built.

        After a stop request the kernels that are built remain; none, if a layout lacks its first one, which serves
        every alignment.
        """
        size = sum(part.numbers.size for layout in self.layouts for part in layout.parts)
        yield Phase("model", f"{size} configurations ranked on {len(self.shapes)} shapes")
        trials = self.job.trials or _KERNELS
        most = max(2, trials // (len(self.layouts) * len(self.dtypes)))
        failed: list[set[int]] = [set() for _ in self.layouts]
        for _ in range(_ROUNDS):
            chosen = [
                layout.chosen(self.shapes, most, without) for layout, without in zip(self.layouts, failed, strict=True)
            ]
            wanted = [(at, place, d) for at, places in enumerate(chosen) for place in places for d in self.dtypes]
            ranks = {(at, place): rank for at, places in enumerate(chosen) for rank, place in enumerate(places)}
            new = sorted((one for one in wanted if one not in self.outcomes), key=lambda one: ranks[one[:2]])
            if new:
                yield Phase("kernels", f"{len(new)} to build, {self.job.jobs} at a time")
                with stop.may_end("stopping: the kernels that are built become the library"):
                    yield from self._build_all(new, failed)
            if stop.asked or not any(place in failed[at] for at, place, _ in wanted):
                break
        good = [one for one in wanted if isinstance(self.outcomes.get(one), Built) and one[1] not in failed[one[0]]]
        first = {(at, places[0], dtype) for at, places in enumerate(chosen) for dtype in self.dtypes}
        if first <= {*good}:
            self._collect(good)

    def _build_all(self, new: Sequence[_Wanted], failed: Sequence[set[int]]) -> Iterator[Event]:
        """Builds kernels side by side. failed: by layout, the places that cannot be built, which this adds to"""
        began = time.monotonic()
        pool = ThreadPoolExecutor(self.job.jobs)
        try:
            waiting = {pool.submit(self._build, *one): one for one in new}
            for number, ended in enumerate(as_completed(waiting), 1):
                outcome = self.outcomes[waiting[ended]] = ended.result()
                at, place, dtype = waiting[ended]
                one = self.layouts[at].candidate(place)
                if isinstance(outcome, Outcome):
                    failed[at] |= set(self.layouts[at].alike(place))
                    yield Note(f"{dtype} {one.label}: {outcome.kind.value}: {outcome.message}")
                    if one.template.author in offline.AUTHORS and outcome.kind in (Kind.REFUSED, Kind.RENDER):
                        raise JobError(f"template refused: {outcome.message}", hint="fix the template")
                yield Building(number, len(new), (time.monotonic() - began) / number * (len(new) - number))
        finally:
            pool.shutdown(cancel_futures=True)

    def _build(self, at: int, place: int, dtype: str) -> Built | Outcome:
        one = self.layouts[at].candidate(place)
        text = kernels.text(self.operator, self.platform, one.template, dtype, one.numbers)
        self.texts[at, place, dtype] = text
        if isinstance(text, Outcome):
            return text
        if self.author is not None and one.template.author not in offline.AUTHORS:
            verdict = self.author.execution.verdict(one, dtype)
            if not verdict.ok:
                return verdict
        if text not in self.built:
            self.built[text] = device.build(text, device.codes(self.platform, dtype), self.compiler)
        return self.built[text]

    def _collect(self, good: Sequence[tuple[int, int, str]]) -> None:
        """Collects variants and images. Equal machine code is one image. The kernel that copies operands is last."""
        places: dict[bytes, int] = {}
        for at, place, dtype in good:
            text, one = str(self.texts[at, place, dtype]), self.layouts[at].candidate(place)
            made = self.built[text]
            assert isinstance(made, Built)
            image = places.setdefault(made.image, len(places))
            self.sources.setdefault(image, text)
            self.variants.append(LibraryVariant(one, dtype, image))
            counts = self.author.found.record(one) if self.author is not None else {}
            self.records.append({**_record(one, made, image), **counts})
        self.images = [*places]
        if kernels.has_copy(self.operator):
            copy = render.text(render.environment(kernels.folders(self.operator)), kernels.COPY, {})
            made = device.build(copy, str((self.platform.device or {})["code"]), self.compiler)
            if isinstance(made, Outcome):
                message = f"the kernel that copies cannot be built: {made.message}\n{made.log}"
                raise JobError(message, hint="tensorop doctor")
            self.images.append(made.image)

    def product(self) -> Product:
        """All files of the product's folder."""
        facts = {"measured": False, "said": NOT_MEASURED, "nvcc": self.compiler.version, "ptxas": self.compiler.ptxas}
        more = self.author.facts() if self.author is not None else {}
        parts = self.variants, self.records, self.images, self.sources, {**facts, **more}
        content = Content(self.operator, self.platform, *parts)
        return product(content)


def _record(one: Candidate, made: Built, image: int) -> dict[str, Any]:
    names = (*one.family.call.layouts, "threads", "shared")
    return {
        "template": one.template.name,  # name of its template
        "digest": one.template.digest,  # digest of the template
        "author": one.template.author,  # `offline`: shipped; `plugin`: your own
        "strategy": one.template.strategy,  # the template's idea, in one sentence
        "point": dict(one.point),  # value of every tunable
        **{name: one.numbers[name] for name in names},
        "registers": made.registers,  # registers of a thread
        "image": image,  # number of its compiled code
    }
