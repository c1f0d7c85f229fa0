"""Delivers a job's product: build the library, measure the variants in it, verify, compare, publish."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tensorop import subpackages
from tensorop.author import offline
from tensorop.author.llm import rounds
from tensorop.commands import bench, libraries, opened, report, verify
from tensorop.commands.opened import Opened
from tensorop.device_target import DeviceContent, DeviceTarget
from tensorop.dispatch import inside, winners
from tensorop.dispatch.evidence import RefusedVariant
from tensorop.errors import BoardError, JobError, NoFigure
from tensorop.events import Done, Event, Note, Phase
from tensorop.job import routines, tunables
from tensorop.model.bench import Bench
from tensorop.model.kernel import Variant
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Outcome, Stage
from tensorop.model.verdict import Verdict, error_text
from tensorop.model.winner import Winners
from tensorop.package import plugin_record, publish
from tensorop.package.product import Product, product
from tensorop.package.publish import Staged
from tensorop.package.sources import OperatorPart
from tensorop.process.stopping import StopRequest
from tensorop.render import instantiate
from tensorop.search.task import JobContext, Task
from tensorop.space import problems
from tensorop.trial import paths
from tensorop.trial.evaluator import Evaluator
from tensorop.warm import start

BENCH = "share/tensorop/bench.json"
AGAIN = "Press Ctrl-C again to stop at once, without a library"
_EARLY = "stopped early with the best kernels so far; run the same command again to resume"


Tasks = Mapping[str, Task]  # a job's tasks by dtype


def deliver(whole: JobContext, tasks: Tasks, found: list[Winners], interrupted: bool) -> Iterator[Event]:
    """Yields events, `Done` last.

    Raises JobError if the finished library fails its verification; the folder stays unchanged then.
    """
    job, target, stop = whole.job, whole.target, whole.stop
    if target.simulated:
        simulated = (f"the {target.name} runner simulates costs: nothing is built", *whole.remarks.at_end)
        yield Done(job.out, None, None, simulated, early=interrupted)
        return
    stop.goes_on(f"stopping: {packaged(stop)}")
    stop.scratch = publish.scratch_of(job.out)
    yield Phase("library", ", ".join(f"{len(w.all)} variants of {w.dtype}" for w in found))
    staged, verdicts = yield from _proven(whole, tasks, found)
    try:
        compared = None
        if not stop.asked:
            with stop.may_end(f"stopping: the comparison is skipped and the verified library is installed. {AGAIN}"):
                try:
                    compared = yield from _compare(whole, staged)
                except (BoardError, NoFigure) as error:  # the library is verified; only its speed is unknown
                    yield Note(f"the comparison failed: {error.message}")
        early = interrupted or stop.asked
        extra = {} if compared is None else {BENCH: json.dumps(compared.to_json(), indent=1).encode()}
        results = {"verification": [_verdict(verdict) for verdict in verdicts]}
        whole.journal.note("verification", [_verdict(v) | {"cases": v.cases} for v in verdicts])
        yield from _published(whole, staged, extra, results)
    finally:
        publish.discard(staged)
    notes = (*(_EARLY,) * early, *whole.remarks.at_end)
    yield Done(job.out, job.out / staged.product.library, compared, notes, early)


def predicted(whole: JobContext, target: DeviceTarget) -> Iterator[Event]:
    """Builds a device's kernels and delivers their library; events, `Done` last.

    If this machine has the device, the library is verified and measured there before it is published. Raises JobError
    if it is wrong there; the folder stays unchanged then.
    """
    job, stop = whole.job, whole.stop
    content = yield from target.kernels(whole)
    stop.goes_on(f"stopping: the kernels that are built become the library. {AGAIN}")
    stop.scratch, remark = publish.scratch_of(job.out), target.remark
    staged = publish.stage(content.product(), job.out)
    try:
        extra, results = {}, None
        if measured := None if stop.asked else (yield from _on_device(whole, target, staged, content)):
            made, remark = measured
            whole.journal.note("verification", made.results["verification"])
            staged, extra, results = publish.stage(made.product, job.out), made.extra, made.results
        early = stop.asked
        yield from _published(whole, staged, extra, results)
    finally:
        publish.discard(staged)
    yield Done(job.out, job.out / staged.product.library, None, (remark, *(_EARLY,) * early), early)


def _on_device(
    whole: JobContext, target: DeviceTarget, staged: Staged, content: DeviceContent
) -> Generator[Event, None, Any]:
    """The product as a kit on this machine's device corrects it (kits/here.py); None without a device or times."""
    job, stop, name = whole.job, whole.stop, None
    with stop.may_end("stopping: the library is installed as the model chose"):  # a driver may not answer
        name = target.attached()
    if name is None:
        return None
    if job.author != offline.AUTHOR and not job.unsafe:
        yield Note(
            f"{name} is not used: nothing confines kernels of a model there; --unsafe runs them with your rights"
        )
        return None
    kits = subpackages.require("kits", "here", f"measuring on {name}")
    return (yield from kits.measured(job, _opened(whole, staged), content, name, whole.journal, stop))


def _published(
    whole: JobContext, staged: Staged, extra: Mapping[str, bytes], results: Mapping[str, object] | None
) -> Iterator[Event]:
    job = whole.job
    with whole.stop.shield("please wait: the library is being moved to its folder"):
        yield Phase("publication", str(job.out))
        used = plugin_record.folders(job, whole.operator, whole.target.platform, whole.target.name)
        publish.publish(staged, job.out, extra=extra, results=results, more=used)
        yield Note(f"report: {report.write(job.out, plugins=job.plugins)}")


def _proven(
    whole: JobContext, tasks: Tasks, found: list[Winners]
) -> Generator[Event, None, tuple[Staged, list[Verdict]]]:
    """A library that passes verification. If a variant fails, its template is removed and the choice is repeated."""
    refused: dict[str, set[str]] = {dtype: set() for dtype in tasks}
    while True:
        staged = _stage(whole, found)
        try:
            if not whole.stop.asked:
                yield from _measured(whole, tasks, staged, found)
            found = winners.finals(tasks, found)
            yield from (Note(_choosing(of_dtype)) for of_dtype in found)
            found = [winners.carried(of_dtype) for of_dtype in found]
            found = yield from tunables.measured(whole, found, lambda given: _product(whole, given))
            publish.discard(staged)
            staged = _stage(whole, found)
            verdicts = yield from _verify(whole, tasks, staged, found)
            failed = next((verdict for verdict in verdicts if not verdict.ok), None)
            if failed is None:
                return staged, verdicts
            fault = winners.culprit(whole.operator, found, failed)
            if fault is None:
                raise _wrong(failed.outcome)
        except RefusedVariant as wrong:
            fault = wrong
        except BaseException:
            publish.discard(staged)
            raise
        publish.discard(staged)
        lost = next(of_dtype for of_dtype in found if of_dtype.dtype == fault.dtype)
        name = lost.all[fault.number].template.name
        again = winners.without(tasks[fault.dtype], lost, fault.number, refused[fault.dtype])
        found = [of_dtype for w in found if (of_dtype := again if w is lost else w) is not None]
        if not found:
            raise _wrong(fault.outcome)
        whole.journal.note("refused", {"dtype": fault.dtype, "template": name, "kind": fault.outcome.kind.value})
        yield Note(
            f"{fault.dtype}: template '{name}' passed its trials but failed in the library "
            f"({fault.outcome.kind.value}: {fault.outcome.message}); the library is built again without it"
        )


def _wrong(outcome: Outcome) -> JobError:
    return JobError(
        f"the library failed its final verification and was not installed: {outcome.message}",
        hint="every candidate was rejected; run `tensorop report DIR` to see the trials, and report it as a bug if the "
        "template is shipped with tensorop",
    )


def packaged(stop: StopRequest) -> str:
    """The remaining work after a stop request, and its time, for messages."""
    time = "" if stop.grid_s is None else f", about {round(stop.grid_s)} s"
    return f"the kernels that passed are built into a library and verified{time}. {AGAIN}"


def _measured(whole: JobContext, tasks: Tasks, staged: Staged, found: list[Winners]) -> Iterator[Event]:
    """Measures variants inside the library and records the results in the journal; a stop request ends this early."""
    stop, noted = whole.stop, len(whole.journal.history.notes)
    with stop.may_end(f"stopping: {packaged(stop)}"):
        for part in whole.passes:
            if part.measure is None or not part.wanted(whole.target):
                continue
            yield Phase(part.name, part.activity)
            for of_dtype in found:
                part.measure(tasks[of_dtype.dtype], staged.library, of_dtype)
            if part.summary is not None:
                yield from (Note(part.summary(tasks[of_dtype.dtype])) for of_dtype in found)
    yield from (Note(remark) for remark in _unmeasured(whole, noted))


def _unmeasured(whole: JobContext, known: int) -> Iterator[str]:
    """Remarks on correct variants without a time in the library, from the journal's notes from number `known` on."""
    for name, data in whole.journal.history.notes[known:]:
        if name == inside.UNMEASURED:
            yield (
                f"{data['dtype']}: template '{data['template']}' (variant {data['variant']}) could not be measured on "
                f"some shapes, which other variants serve: {data['kind']}: {data['message']}"
            )


def _stage(whole: JobContext, found: list[Winners]) -> Staged:
    return publish.stage(_product(whole, found), whole.job.out)


def _product(whole: JobContext, found: list[Winners]) -> Product:
    job, target = whole.job, whole.target
    model = None if (of := target.assumed) is None else {"name": of.name, "version": of.version}
    facts = {
        "tuner": "none" if job.no_search else job.tuner,
        "author": rounds.original(job, whole.work),
        "seed": job.seed,
        "unit": target.unit,
        "model": model,
    }
    noted = [data["used"] for name, data in whole.journal.history.notes if name == start.NOTE]
    facts |= {"warm_start": noted[-1] if noted else []}
    facts |= {"unsafe": True} if job.unsafe else {}
    facts |= {"epilogue": True} if job.epilogue else {}
    shapes = (
        f"{len(job.shapes)} shapes of {job.suite}" if job.suite in whole.operator.suites else "the shapes asked for"
    )
    measured = "" if job.no_search else f"Grown on {target.unit} of {shapes} on {target.platform.name}"
    part = OperatorPart(whole.operator, found, facts, measured, whole.texts)
    return product(target.platform, [part], jobs=job.jobs)


def _choosing(given: Winners) -> str:
    known = [tree.regret for tree in given.trees if tree.regret is not None]
    if not known:
        return f"{given.dtype}: the loss of the run-time choice on held-out shapes is unknown"
    text = f"on held-out shapes the run-time choice is {max(known):.1%} slower than the best variant"
    return f"{given.dtype}: {text} (geometric mean)"


def _verify(
    whole: JobContext, tasks: Tasks, staged: Staged, found: list[Winners]
) -> Generator[Event, None, list[Verdict]]:
    """Verifies the finished library by the full grid, at every VLEN, then with several threads; stops at a failure.

    Then calls each path of its kernels. Raises RefusedVariant for one that fails there.
    """
    whole.stop.goes_on(f"stopping: verification continues, and the comparison is skipped. {AGAIN}")
    vlens = ", ".join(str(vlen) for vlen in whole.target.verify_vlens if vlen)
    yield Phase("verification", f"the full grid of test calls{f' at VLEN {vlens}' if vlens else ''}")
    verdicts = []
    timed = [problem for task in tasks.values() for problem in task.problems]
    library, jobs, answers = _opened(whole, staged), whole.job.jobs, whole.answers
    for verdict in verify.verify(library, whole.target, whole.seed, jobs=jobs, timed=timed, answers=answers):
        verdicts.append(verdict)
        if not verdict.ok:
            return verdicts
    cases, errors = sum(verdict.cases for verdict in verdicts), [e for verdict in verdicts for e in verdict.errors]
    counts = sorted({verdict.threads for verdict in verdicts} - {1})
    several = f", some of them with {' and '.join(map(str, counts))} threads" if counts else ""
    yield Note(f"{cases} calls passed{several}; {error_text(errors)}")
    yield from routines.judged(whole, staged)
    calls = _paths(whole, found)
    yield Note(f"{calls} calls of kernels alone passed: each path through each tile was taken")
    return verdicts


def _paths(whole: JobContext, found: list[Winners]) -> int:
    """Calls each path of the library's kernels; the number of calls. Raises RefusedVariant for the first that fails."""
    asked: dict[tuple[str, str], tuple[int, Evaluator, Variant]] = {}  # equal kernels once, by dtype and id
    for of_dtype in found:
        run = StageRun(of_dtype.dtype, Stage.BLOCKING, (), whole.seed)
        evaluate = Evaluator(whole.operator, whole.target, run, whole.work, whole.texts)
        for number, variant in enumerate(of_dtype.all):
            for one in (variant, *(variant.at(vlen) for vlen in variant.specialisations)):
                built = instantiate.as_built(whole.operator, whole.target.platform.at(one.kernel.vlen), one)
                asked.setdefault((of_dtype.dtype, built.id), (number, evaluate, one))
    calls = 0
    with ThreadPoolExecutor(max(1, whole.job.jobs)) as pool:
        judged = pool.map(lambda one: paths.verified(one[1], one[2]), asked.values())
        for ((dtype, _), (number, _, _)), (outcome, count) in zip(asked.items(), judged, strict=True):
            if not outcome.ok:
                raise RefusedVariant(dtype, number, outcome)
            calls += count
    return calls


def _compare(whole: JobContext, staged: Staged) -> Generator[Event, None, Bench]:
    job = whole.job
    shapes = problems.within(whole.operator, job.dtypes[0], job.shapes, whole.target.budgets.compared_flops)
    first, *others = map(problems.written, whole.operator.layouts)
    another = int(job.layout == 0)
    also = (
        f" in layout {first}, one of {1 + len(others)} (`tensorop bench {job.out} --layout {another}` measures another)"
    )
    yield Phase(
        "comparison", f"{len(shapes)} of {len(job.shapes)} shapes{also if others and not job.listed.calls else ''}"
    )
    final = whole.target.deterministic  # under a board model, intervals take no more time than the best fit alone
    more = libraries.in_cache(whole.operator, whole.target, job.threads) if whole.target.is_host else ()
    request = bench.BenchRequest(
        shapes=shapes,
        listed=job.listed,
        more=more,
        threads=job.threads,
        final=final,
        jobs=job.jobs,
        seed=whole.seed,
        answers=whole.answers,
    )
    return bench.bench(_opened(whole, staged), whole.target, request)


def _opened(whole: JobContext, staged: Staged) -> Opened:
    return opened.staged(staged, whole.operator, whole.target.platform, whole.job.plugins)


def _verdict(verdict: Verdict) -> dict[str, object]:
    """A verdict for the manifest, without values that depend on the seed's secret part.

    So the same journal gives the same bits.
    """
    return {
        "dtype": verdict.dtype,  # element type
        "vlen": verdict.vlen,  # VLEN in bits; 0: the target's own
        "threads": verdict.threads,  # threads of the verified calls
        "outcome": verdict.outcome.kind.value,  # `ok`, or the kind of failure
    }
