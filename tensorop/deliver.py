"""From winners to the product in its place: built, timed side by side, verified whole, compared, published."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator

from tensorop import choice, probing, rechoice, search, steadiness
from tensorop.commands import bench, report, verify
from tensorop.errors import BoardError, JobError, Unmeasured
from tensorop.events import Done, Event, Note, Phase
from tensorop.finalists import Refused
from tensorop.model.bench import Bench
from tensorop.model.trial import Outcome
from tensorop.model.verdict import Verdict
from tensorop.model.winner import Winners
from tensorop.package import publish
from tensorop.package.product import product
from tensorop.package.publish import Staged
from tensorop.package.sources import Part
from tensorop.problems import within
from tensorop.search import Ground
from tensorop.stopping import Stop

BENCH = "share/tensorop/bench.json"
AGAIN = "Ctrl-C again ends at once, without a product"


def deliver(ground: Ground, found: list[Winners], interrupted: bool) -> Iterator[Event]:
    """Yields what happens, `Done` last. Raises JobError when the finished library does not verify; then the folder
    keeps what it held."""
    job, target, stop = ground.job, ground.target, ground.stop
    if target.pretends:
        told = (f"the {target.name} runner pretends: there is nothing to build",)
        yield Done(job.out, None, None, told, early=interrupted)
        return
    stop.goes_on(f"stopping: what has passed is packaged, {first(stop)}. {AGAIN}")
    stop.scratch = publish.scratch_of(job.out)
    yield Phase("library", ", ".join(f"{w.dtype}: {len(w.variants)} variants" for w in found))
    staged, verdicts = yield from _proven(ground, found)
    try:
        compared = None
        if not stop.asked:
            with stop.may_end(f"stopping: the comparison is left out, the verified product is put in place. {AGAIN}"):
                try:
                    compared = yield from _compare(ground, staged)
                except (BoardError, Unmeasured) as error:  # what was verified is right, whatever can be said of speed
                    yield Note(f"no comparison: {error.message}")
        early = interrupted or stop.asked
        with stop.shield("the product is being put in place"):
            yield Phase("publication", str(job.out))
            extra = {} if compared is None else {BENCH: json.dumps(compared.to_json(), indent=1).encode()}
            results = {"verification": [_verdict(verdict) for verdict in verdicts]}
            ground.journal.note("verification", [_verdict(v) | {"cases": v.cases} for v in verdicts])
            publish.publish(staged, job.out, extra=extra, results=results)
            yield Note(f"report: {report.write(job.out, plugins=job.plugins)}")
    finally:
        publish.discard(staged)
    notes = ("stopped early: this is the best so far; the same command goes on",) if early else ()
    yield Done(job.out, job.out / staged.product.library, compared, notes, early)


def _proven(ground: Ground, found: list[Winners]) -> Generator[Event, None, tuple[Staged, list[Verdict]]]:
    """A library that verifies. A variant that fails costs its template, and the others are chosen among again."""
    refused: dict[str, set[str]] = {}
    while True:
        staged = _stage(ground, found)
        try:
            better = found
            if not ground.stop.asked:
                better = yield from _better(ground, staged, found)
            if ground.stop.asked:  # nothing more is measured; what is known is judged all the same
                better = [probing.settled(ground, staged.library, w, True) for w in found]
            yield from (Note(_choosing(winners)) for winners in better)
            carried = [choice.carried(winners) for winners in better]
            publish.discard(staged)
            staged, found = _stage(ground, carried), carried
            verdicts = yield from _verify(ground, staged)
            failed = next((verdict for verdict in verdicts if not verdict.ok), None)
            if failed is None:
                return staged, verdicts
            fault = rechoice.of_verdict(ground, found, failed)
            if fault is None:
                raise _wrong(failed.outcome)
        except Refused as wrong:
            fault = wrong
        except BaseException:
            publish.discard(staged)
            raise
        publish.discard(staged)
        again = rechoice.without(ground, found, fault, refused)
        if again is None:
            raise _wrong(fault.outcome)
        found, name = again
        ground.journal.note("refused", {"dtype": fault.dtype, "draft": name, "kind": fault.outcome.kind.value})
        yield Note(
            f"{fault.dtype}: template '{name}' passed its trials and failed in the library "
            f"({fault.outcome.kind.value}: {fault.outcome.message}); chosen again without it"
        )


def _wrong(outcome: Outcome) -> JobError:
    return JobError(
        f"the finished library is wrong and is not published: {outcome.message}",
        hint="nothing is left to choose from; `tensorop report DIR` lists the trials, please report a shipped template",
    )


def first(stop: Stop) -> str:
    """What stands between a stopped search and its product, and how long."""
    time = "" if stop.grid_s is None else f", about {round(stop.grid_s)} s on a quiet machine"
    return f"but it is built and the whole grid of correctness runs first{time}"


def _better(ground: Ground, staged: Staged, found: list[Winners]) -> Generator[Event, None, list[Winners]]:
    """The same variants with trees grown on exacter figures; as they were where the user does not wait for these."""
    stop, target = ground.stop, ground.target
    better = found
    known = len(ground.journal.history.notes)
    with stop.may_end(f"stopping: what has passed is packaged, {first(stop)}. {AGAIN}"):
        if not target.side_by_side:
            yield Phase("dispatch", "every variant against every other, inside the library")
            for winners in found:
                probing.compare(ground, staged.library, winners)
        yield Phase("probes", "the variants on random shapes, and where it is open which is best")
        better = [probing.settled(ground, staged.library, w) for w in found]
        if target.assumed is not None:
            yield Phase("constants", "close variants over the ranges of the model's assumed constants")
            better = [steadiness.steadied(ground, staged.library, w) for w in better]
            yield from (Note(steadiness.summary(ground, winners.dtype)) for winners in better)
    yield from (Note(remark) for remark in _unmeasured(ground, known))
    return better


def _unmeasured(ground: Ground, known: int) -> Iterator[str]:
    """What has no figure in the library although nothing is wrong with it, by the journal's notes from `known` on."""
    for name, data in ground.journal.history.notes[known:]:
        if name == probing.UNMEASURED:
            yield (
                f"{data['dtype']}: template '{data['draft']}' (variant {data['variant']}) has no figure for some "
                f"shapes, which are left to the others: {data['kind']}: {data['message']}"
            )


def _stage(ground: Ground, found: list[Winners]) -> Staged:
    job, target = ground.job, ground.target
    model = None if (of := target.assumed) is None else {"name": of.name, "version": of.version}
    facts = {"tuner": job.tuner, "author": job.author, "seed": job.seed, "unit": target.unit, "model": model}
    facts |= {"unsafe": True} if job.unsafe else {}
    shapes = (
        f"{len(job.shapes)} shapes of {job.suite}" if job.suite in ground.operator.suites else "the shapes asked for"
    )
    measured = f"Grown on {target.unit} of {shapes} on {target.platform.name}"
    part = Part(ground.operator, found, facts, measured, ground.texts)
    made = product(target.platform, [part], jobs=job.jobs)
    return publish.stage(made, job.out)


def _choosing(winners: Winners) -> str:
    known = [tree.regret for tree in winners.trees if tree.regret is not None]
    if not known:
        return f"{winners.dtype}: what choosing costs on shapes that nobody measured is not known"
    text = f"on shapes left out, choosing costs {max(known):.1%} over the best variant, in geometric mean"
    return f"{winners.dtype}: {text}"


def _verify(ground: Ground, staged: Staged) -> Generator[Event, None, list[Verdict]]:
    """The whole grid on the finished library, at every VLEN, then with several threads; to the first that fails."""
    ground.stop.goes_on(f"stopping: verification goes on, the comparison is left out. {AGAIN}")
    yield Phase("verification", "the whole grid, every VLEN, several threads")
    verdicts = []
    for verdict in verify.verify(
        staged.folder,
        runner=ground.job.runner,
        seed=ground.seed,
        plugins=ground.job.plugins,
        jobs=ground.job.jobs,
        timed=[problem for dtype in ground.job.dtypes for problem in search.problems(ground, dtype)],
    ):
        verdicts.append(verdict)
        if not verdict.ok:
            return verdicts
    cases, worst = sum(verdict.cases for verdict in verdicts), max(verdict.worst for verdict in verdicts)
    yield Note(f"{cases} calls right, the largest error {worst:.2f} of what is allowed")
    return verdicts


def _compare(ground: Ground, staged: Staged) -> Generator[Event, None, Bench]:
    job = ground.job
    shapes = within(ground.operator, job.dtypes[0], job.shapes, ground.target.means.compared)
    yield Phase("comparison", f"{len(shapes)} of {len(job.shapes)} shapes")
    return bench.bench(
        staged.folder,
        shapes=shapes,
        threads=job.threads,
        runner=job.runner,
        plugins=job.plugins,
        final=ground.target.counts,  # a model's interval costs no more than its best fit again
        jobs=job.jobs,
    )


def _verdict(verdict: Verdict) -> dict[str, object]:
    """For the manifest, without what the seed's secret part decides, so that the same journal gives the same bits."""
    return {
        "dtype": verdict.dtype,
        "vlen": verdict.vlen,
        "threads": verdict.threads,
        "outcome": verdict.outcome.kind.value,
    }
