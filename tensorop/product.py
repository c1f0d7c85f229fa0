"""From winners to the product in its place: built, timed side by side, verified whole, compared, published."""

from __future__ import annotations

from collections.abc import Iterator

from tensorop import finalists
from tensorop.commands import bench, verify
from tensorop.errors import JobError
from tensorop.events import Done, Event, Note, Phase
from tensorop.model.bench import Bench
from tensorop.model.winner import Winners
from tensorop.package import publish
from tensorop.problems import MOST_BENCH, for_search, within
from tensorop.runners.null import Null
from tensorop.search import Ground


def make(ground: Ground, found: list[Winners], interrupted: bool) -> Iterator[Event]:
    """Yields what happens, `Done` last. Raises JobError when the finished library does not verify."""
    job, target = ground.job, ground.target
    if isinstance(target.runner, Null):
        yield Done(job.out, None, None, ("the null runner pretends: there is nothing to build",))
        return
    yield Phase("library", ", ".join(f"{w.dtype}: {len(w.variants)} variants" for w in found))
    staged = publish.stage(ground, found)
    if not target.side_by_side and not interrupted:
        yield Phase("dispatch", "every variant against every other, inside the library")
        found = [_remeasure(ground, staged, winners) for winners in found]
        staged = publish.stage(ground, found)
    yield Phase("verification", "the whole grid, every VLEN, threads")
    verdicts = []
    for verdict in verify.verify(staged.folder, seed=ground.seed):
        verdicts.append(verdict)
        if not verdict.ok:
            raise JobError(f"the finished library is wrong and is not published: {verdict.outcome.message}")
    checked = sum(verdict.cases for verdict in verdicts)
    yield Note(f"{checked} calls, worst error {max(v.worst for v in verdicts):.2f} of its bound")
    compared: Bench | None = None
    if not interrupted:
        shapes = within(ground.operator, job.dtypes[0], job.shapes, MOST_BENCH[target.unit])
        yield Phase("comparison", f"{len(shapes)} of {len(job.shapes)} shapes, interleaved with the baselines")
        compared = bench.bench(staged.folder, shapes=shapes, threads=job.threads)
    out = publish.publish(ground, staged, found, verdicts, compared)
    notes = ("stopped early: this is the best so far; the same command goes on",) if interrupted else ()
    yield Done(out.folder, out.library, compared, notes)


def _remeasure(ground: Ground, staged: publish.Staged, winners: Winners) -> Winners:
    problems = for_search(ground.operator, winners.dtype, ground.job.shapes, ground.target.unit)
    return finalists.remeasured(ground, staged.library, winners, problems)
