"""From winners to the product in its place: built, timed side by side, verified whole, compared, published."""

from __future__ import annotations

import json
from collections.abc import Generator, Iterator
from pathlib import Path

from tensorop import finalists, search, steadiness
from tensorop.commands import bench, report, verify
from tensorop.errors import JobError
from tensorop.events import Done, Event, Note, Phase
from tensorop.model.bench import Bench
from tensorop.model.verdict import Verdict
from tensorop.model.winner import Winners
from tensorop.package import publish
from tensorop.package.product import product
from tensorop.package.publish import Staged
from tensorop.problems import MOST_BENCH, within
from tensorop.runners.null import Null
from tensorop.search import Ground

BENCH = "share/tensorop/bench.json"


def deliver(ground: Ground, found: list[Winners], interrupted: bool) -> Iterator[Event]:
    """Yields what happens, `Done` last. Raises JobError when the finished library does not verify; then the folder
    keeps what it held."""
    job, target = ground.job, ground.target
    if isinstance(target.runner, Null):
        yield Done(job.out, None, None, ("the null runner pretends: there is nothing to build",))
        return
    yield Phase("library", ", ".join(f"{w.dtype}: {len(w.variants)} variants" for w in found))
    staged = _stage(ground, found)
    try:
        if not target.side_by_side and not interrupted:
            yield Phase("dispatch", "every variant against every other, inside the library")
            found = [_remeasured(ground, staged, winners) for winners in found]
            staged = _stage(ground, found)
        if target.model is not None and not interrupted:
            yield Phase("constants", "close variants over the ranges of the model's assumed constants")
            steady = [steadiness.steadied(ground, staged.library, winners) for winners in found]
            yield from (Note(steadiness.summary(ground, winners.dtype)) for winners in steady)
            staged = staged if steady == found else _stage(ground, steady)
        verdicts = yield from _verify(ground, staged)
        compared = None if interrupted else (yield from _compare(ground, staged))
        yield Phase("publication", str(job.out))
        extra = {} if compared is None else {BENCH: json.dumps(compared.to_json(), indent=1).encode()}
        told = [_verdict(verdict) for verdict in verdicts]
        ground.journal.note("verification", [t | {"cases": v.cases} for t, v in zip(told, verdicts, strict=True)])
        results = {"verification": told}
        publish.publish(staged, job.out, extra=extra, results=results)
    finally:
        publish.discard(staged)
    yield from _report(job.out)
    notes = ("stopped early: this is the best so far; the same command goes on",) if interrupted else ()
    yield Done(job.out, job.out / staged.product.library, compared, notes)


def _stage(ground: Ground, found: list[Winners]) -> Staged:
    job, target = ground.job, ground.target
    model = None if target.model is None else {"name": target.model.name, "version": target.model.version}
    facts = {"tuner": job.tuner, "author": job.author, "seed": job.seed, "unit": target.unit, "model": model}
    shapes = (
        f"{len(job.shapes)} shapes of {job.suite}" if job.suite in ground.operator.suites else "the shapes asked for"
    )
    measured = f"Grown on {target.unit} of {shapes} on {target.platform.name}"
    made = product(
        ground.operator, target.platform, found, facts=facts, measured=measured, plugins=job.plugins, jobs=job.jobs
    )
    return publish.stage(made, job.out)


def _remeasured(ground: Ground, staged: Staged, winners: Winners) -> Winners:
    problems = search.problems(ground, winners.dtype)
    return finalists.remeasured(ground, staged.library, winners, problems)


def _verify(ground: Ground, staged: Staged) -> Generator[Event, None, list[Verdict]]:
    """The whole grid on the finished library, at every VLEN, then with several threads."""
    yield Phase("verification", "the whole grid, every VLEN, several threads")
    verdicts = []
    for verdict in verify.verify(
        staged.folder, runner=ground.job.runner, seed=ground.seed, plugins=ground.job.plugins, jobs=ground.job.jobs
    ):
        verdicts.append(verdict)
        if not verdict.ok:
            raise JobError(
                f"the finished library is wrong and is not published: {verdict.outcome.message}",
                hint="this is a fault of tensorop, not of your command; please report it with the journal",
            )
    cases, worst = sum(verdict.cases for verdict in verdicts), max(verdict.worst for verdict in verdicts)
    yield Note(f"{cases} calls right, the largest error {worst:.2f} of what is allowed")
    return verdicts


def _compare(ground: Ground, staged: Staged) -> Generator[Event, None, Bench]:
    job, unit = ground.job, ground.target.unit
    shapes = within(ground.operator, job.dtypes[0], job.shapes, MOST_BENCH[unit])
    yield Phase("comparison", f"{len(shapes)} of {len(job.shapes)} shapes")
    return bench.bench(
        staged.folder,
        shapes=shapes,
        threads=job.threads,
        runner=job.runner,
        plugins=job.plugins,
        final=False,
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


def _report(folder: Path) -> Iterator[Event]:
    written = report.write(folder)
    yield Note(f"report: {written}")
