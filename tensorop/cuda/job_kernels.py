"""The kernels of one job: chooses candidates for each layout, and builds those that its journal does not have.

Each kernel is a trial of the stage `kernels`. One that ended keeps its outcome in all processes of a run; the machine
code of one that passed is in the build cache. A kernel is rendered and passes the gates in every process.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from itertools import islice
from typing import Any

import numpy as np

from tensorop.author import offline
from tensorop.author.llm import rounds
from tensorop.author.llm.transcript import RecordedTransport
from tensorop.cuda import compile as device
from tensorop.cuda import counted, kernels
from tensorop.cuda.choose import Candidate, Layout
from tensorop.cuda.compile import Built
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.executed import Execution
from tensorop.cuda.library import LibraryVariant
from tensorop.cuda.product import Content
from tensorop.errors import JobError, TensoropError, UsageError
from tensorop.events import Building, Event, Note, Phase
from tensorop.job import authoring
from tensorop.model.kernel import Kernel, KernelText, Variant
from tensorop.model.operator import Operator
from tensorop.model.point import Point
from tensorop.model.shape import Shape
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Finished, Kind, Outcome, Score, Stage, Trial
from tensorop.provision.nvcc import Nvcc
from tensorop.search.task import JobContext, digest
from tensorop.specs import files as reading
from tensorop.store.key import trial_key

NOT_MEASURED = "not measured: chosen by an analytic model, and no kernel was run"
_Wanted = tuple[int, int, str]  # a kernel: number of a layout, place in it, dtype
_KERNELS = 272  # kernels that a job builds without --trials
_ROUNDS = 8  # of choices, each without the kernels that could not be built


def usual(operator: Operator) -> list[Shape]:
    """An operator's shapes for a device, if the user names none."""
    return _listed(operator, "shapes.txt")


def drawn(operator: Operator) -> list[Shape]:
    """Shapes for which kernels are also chosen if the user names none, but which a kit does not time."""
    return _listed(operator, "drawn.txt") if (operator.folder / "device" / "drawn.txt").exists() else []


def _listed(operator: Operator, file: str) -> list[Shape]:
    text = reading.text(operator.folder / "device" / file, reading.TEXT)
    words = [word for line in text.splitlines() if not line.startswith("#") for word in line.split()]
    return [shape for word in words if (shape := operator.shapes.read(word))]


class JobKernels:
    """The kernels that one job chooses and builds."""

    def __init__(self, whole: JobContext, compiler: Nvcc) -> None:
        job, operator, self.platform = whole.job, whole.operator, whole.target.platform
        self.whole, self.job, self.operator, self.compiler = whole, job, operator, compiler
        self.dtypes = kernels.dtypes(job)
        given = device_numbers(self.platform, self.dtypes[0], job.epilogue)
        call = operator.on_device
        self.families = counted.of_journal(whole.journal, whole.templates, operator)
        shipped = [
            one
            for one in whole.templates
            if one.author in offline.AUTHORS and kernels.set_of(self.platform, one, self.dtypes[0])
        ]
        templates = (*shipped, *self.families.templates)
        self.layouts = [Layout.of(call, templates, given, key, self.families.of) for key in call.keys]
        # Without --shapes, the operator's usual shapes for a device and batches are added.
        more = (*usual(operator), *drawn(operator), *call.probes) if job.suite == operator.usual else ()
        self.shapes = tuple(dict.fromkeys((*job.shapes, *more)))
        self.execution = Execution(operator, self.platform, whole.seed, whole.work)
        self.digest = digest(operator, whole.target)
        self.texts: dict[_Wanted, str] = {}
        self.outcomes: dict[_Wanted, Built | Outcome] = {}
        self.good: list[_Wanted] = []  # in the library; empty: it lacks a layout's first kernel

    def choose(self) -> Iterator[Event]:
        """Chooses candidates for each layout and builds them; it chooses again without those that cannot be built.

        After a stop request the kernels that are built remain; none, if a layout lacks its first one, which serves
        every alignment.
        """
        for shape in self.shapes:
            if not np.isfinite(self.layouts[0].costs(*shape)).any():
                named, must = self.operator.shapes.text(shape), self.operator.on_device.serves
                raise UsageError(
                    f"no kernel of {self.operator.name} on {self.platform.name} serves the shape {named}: it must have "
                    f"{must}",
                    hint="give other --shapes",
                )
        size, stop = sum(part.numbers.size for layout in self.layouts for part in layout.parts), self.whole.stop
        yield Phase("model", f"{size} configurations ranked on {len(self.shapes)} shapes")
        most = max(2, (self.job.trials or _KERNELS) // (len(self.layouts) * len(self.dtypes)))
        failed: list[set[int]] = [set() for _ in self.layouts]
        for _ in range(_ROUNDS):
            chosen = [
                layout.chosen(self.shapes, most, without) for layout, without in zip(self.layouts, failed, strict=True)
            ]
            wanted = [(at, place, d) for at, places in enumerate(chosen) for place in places for d in self.dtypes]
            ranks = {(at, place): rank for at, places in enumerate(chosen) for rank, place in enumerate(places)}
            new = sorted((one for one in wanted if one not in self.outcomes), key=lambda one: ranks[one[:2]])
            if new:
                with stop.may_end("stopping: the kernels that are built become the library"):
                    yield from self._build_all(new, failed)
            if stop.asked or not any(place in failed[at] for at, place, _ in wanted):
                break
        good = [one for one in wanted if isinstance(self.outcomes.get(one), Built) and one[1] not in failed[one[0]]]
        first = {(at, places[0], dtype) for at, places in enumerate(chosen) for dtype in self.dtypes}
        self.good = good if first <= {*good} else []

    def _build_all(self, new: Sequence[_Wanted], failed: Sequence[set[int]]) -> Iterator[Event]:
        """Builds kernels side by side. failed: by layout, the places that cannot be built, which this adds to"""
        journal, jobs, began, number = self.whole.journal, self.job.jobs, 0.0, 0
        trials = {one: self._trial(one) for one in new}
        known = {one: end for one in new if (end := journal.history.finished(trials[one].key, 0))}
        more, count = f"; {len(known)} are in the journal" if known else "", len(new) - len(known)
        yield Phase("kernels", f"{count} to build, {jobs} at a time{more}")
        waiting: dict[Future[Built | Outcome], _Wanted] = {}
        pool, todo = ThreadPoolExecutor(jobs), iter(sorted(new, key=lambda one: one not in known))
        try:
            while True:
                for one in islice(todo, jobs - len(waiting)):
                    if one not in known and self.whole.stop.asked:
                        continue
                    if one not in known:
                        began = began or time.monotonic()  # those of the journal come first, and take less
                        journal.start(trials[one])
                    waiting[pool.submit(self._build, one, known.get(one))] = one
                if not waiting:
                    break
                for ended in wait(waiting, return_when=FIRST_COMPLETED).done:
                    made, one = ended.result(), waiting[ended]
                    if one not in known:
                        number += 1
                        text = "" if isinstance(made, Outcome) else self._text(one, trials[one]).id
                        outcome = made if isinstance(made, Outcome) else Outcome(Kind.OK, "build")
                        journal.finish(Finished(trials[one], outcome, Score(None), text=text))
                        yield Building(number, count, (time.monotonic() - began) / number * (count - number))
                    del waiting[ended]
                    self.outcomes[one] = made
                    yield from self._failed(one, made, failed)
        finally:
            pool.shutdown(cancel_futures=True)
            with contextlib.suppress(TensoropError):  # a journal that cannot be written was reported already
                for one in waiting.values():
                    if journal.history.started(trials[one].key, 0):
                        journal.abandon(trials[one], Outcome(Kind.LOST, "build", "stopped from outside"))

    def _failed(self, one: _Wanted, made: Built | Outcome, failed: Sequence[set[int]]) -> Iterator[Event]:
        at, place, dtype = one
        candidate = self.layouts[at].candidate(place)
        if isinstance(made, Outcome):
            failed[at] |= set(self.layouts[at].alike(place))
            yield Note(f"{dtype} {candidate.label}: {made.kind.value}: {made.message}")
            if candidate.template.author in offline.AUTHORS and made.kind in (Kind.REFUSED, Kind.RENDER):
                raise JobError(f"template refused: {made.message}", hint="fix the template")

    def _trial(self, one: _Wanted) -> Trial:
        at, place, dtype = one
        candidate, stage = self.layouts[at].candidate(place), Stage.KERNELS
        layout = Point.of(self.operator.on_device.named(candidate.key))
        variant = Variant(Kernel(candidate.template, dtype, candidate.point), layout)
        compiler = (self.compiler.version, self.compiler.ptxas, device.codes(self.platform, dtype))
        run = StageRun(dtype, stage, (), self.whole.seed)
        return Trial(trial_key(variant, run, platform=self.digest, vlens=(), compiler=compiler), 0, stage, variant)

    def _text(self, one: _Wanted, trial: Trial) -> KernelText:
        return KernelText(trial.variant.id, self.texts[one])

    def _build(self, one: _Wanted, known: Finished | None) -> Built | Outcome:
        """Runs in a thread. known: the kernel's end in an earlier process"""
        if known is not None and not known.outcome.ok:
            return known.outcome
        at, place, dtype = one
        candidate = self.layouts[at].candidate(place)
        text = kernels.text(self.operator, self.platform, candidate.template, dtype, candidate.numbers)
        if isinstance(text, Outcome):
            return text
        self.texts[one] = text
        judged = known is not None and known.text == self._text(one, known.trial).id
        if not judged and candidate.template.author not in offline.AUTHORS:
            verdict = self.execution.verdict(candidate, dtype)
            if not verdict.ok:
                return verdict
        return device.build(text, device.codes(self.platform, dtype), self.compiler)

    def content(self) -> Content:
        """The library's variants and images. Equal machine code is one image; the second kernels are the last."""
        places: dict[bytes, int] = {}
        sources: dict[int, str] = {}
        variants, records = [], []
        for at, place, dtype in self.good:
            one, made = self.layouts[at].candidate(place), self.outcomes[at, place, dtype]
            assert isinstance(made, Built)
            image = places.setdefault(made.image, len(places))
            sources.setdefault(image, self.texts[at, place, dtype])
            variants.append(LibraryVariant(one, dtype, image))
            records.append({**variant_record(one, made, image), **self.families.record(one)})
        images = [*places]
        for name, text in kernels.second(self.operator, self.dtypes).items():
            second = device.build(text, str((self.platform.device or {})["code"]), self.compiler)
            if isinstance(second, Outcome):
                message = f"{kernels.SECOND[name]} cannot be built: {second.message}\n{second.log}"
                raise JobError(message, hint="tensorop doctor")
            images.append(second.image)
        facts = {
            "measured": False,
            "said": NOT_MEASURED,
            "nvcc": self.compiler.version,
            "ptxas": self.compiler.ptxas,
            **({"epilogue": True} if self.job.epilogue else {}),
            **self._author(),
        }
        return Content(self.operator, self.platform, variants, records, images, sources, facts)

    def _author(self) -> dict[str, Any]:
        """The author's part of a product's facts."""
        job, work, found = self.job, self.whole.work, self.families
        if job.author == offline.AUTHOR:
            return {}
        names = ("name", "repair", "kind", "message")
        answers = [data for name, data in self.whole.journal.history.notes if name == authoring.NOTE]
        executed = [one for one in found.templates if (one.digest, self.operator.on_device.keys[0]) in found.found]
        return {
            "author": rounds.original(job, work),
            "model": RecordedTransport(rounds.transcript(job) or work / "llm", None).model,
            "seed": str(self.whole.seed),
            "answers": [{name: data[name] for name in names} for data in answers],
            "templates": counted.to_records(executed),
        }


def variant_record(one: Candidate, made: Built, image: int) -> dict[str, Any]:
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
