"""A job from its wish to its product; read top to bottom, this is the path of everything.

ground -> controls -> micro -> blocking -> winners -> library -> verify -> bench -> publish
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop import __version__, confinement, deliver, direct, drafting, finalists, forecast, forms, problems, search
from tensorop.author import offline
from tensorop.backends import reach
from tensorop.errors import JobError, Stopped
from tensorop.events import Event, Note, Phase, Trying
from tensorop.model.job import Job
from tensorop.model.kernel import Draft
from tensorop.model.operator import Operator
from tensorop.model.trial import Finished, Stage
from tensorop.model.verdict import Seed
from tensorop.model.winner import Winners
from tensorop.package import publish
from tensorop.search import Ground
from tensorop.specs import leftovers, operators, platforms
from tensorop.stopping import Stop
from tensorop.store import journal as store
from tensorop.store.journal import Journal
from tensorop.target import Target
from tensorop.texts import Texts
from tensorop.tuner import loop, strategy
from tensorop.verify import controls


def run(job: Job, stop: Stop | None = None) -> Generator[Event, None, None]:
    """Yields what happens, `Done` last. Raises UsageError, JobError, MissingTool; a failing candidate is no error.

    stop: the user's wish to end early; raises Stopped where it comes before anything has passed.
    """
    stop = stop or Stop()
    operator = operators.load(job.operator, job.plugins)
    target = reach(platforms.load(job.platform, job.plugins), job.runner, job.plugins)
    plan = forecast.forecast(job, operator, target)
    if plan is not None:
        stop.grid_s = plan.seconds["library"] / 2 + plan.seconds["verification"]  # without what improves the dispatch
    events = _run(job, operator, target, stop, plan)
    yield from (events if plan is None else forecast.watched(events, plan))


def _run(
    job: Job, operator: Operator, target: Target, stop: Stop, plan: forecast.Forecast | None
) -> Generator[Event, None, None]:
    platform = target.platform
    strategy.load(job.tuner, job.plugins)  # an unknown one is said before anything is made
    offline.drafts(operator.folder, operator.name, operator.added)  # so is a broken one
    publish.check_place(job.out)
    # each operand must lie in memory once; of shapes that an emulator takes long for, the search has stand-ins
    problems.require_affordable(operator, job.dtypes, job.shapes, 0.0)
    least = [min(job.shapes, key=lambda s: problems.work(operator, job.dtypes[0], s))] if job.shapes else []
    problems.require_affordable(operator, job.dtypes, least, target.means.a_second, len(target.configurations))
    if job.fresh or not store.journal_path(job.out).exists():  # a run that goes on may have its drafts already
        drafting.require_author(job)
    if plan is not None:
        yield Phase(f"{job.operator} for {platform.name}", str(plan))
    yield Phase("platform", f"{platform.name} ({' < '.join(platform.lineage)}): {platform.description}")
    yield from (Note(remark) for remark in leftovers.remarks(job.plugins))
    yield from confinement.require(job, target)  # a job that is refused leaves nothing
    with Journal.open(job.out, _facts(job, operator, target), fresh=job.fresh) as journal:
        yield from (Note(remark) for remark in journal.remarks)
        seed = Seed.draw(job.seed)
        work = (job.out / "work").absolute()  # compilers are run in folders of their own
        texts = Texts(journal.history.texts)
        drafts: tuple[Draft, ...] = ()
        with _before_search(journal, stop):
            if not target.pretends:
                yield Phase("tools", "compiler, emulator, C library")
                target.bring(job.offline or None)
                yield from _controls(job, operator, target, journal, seed, work)
            drafts = yield from drafting.drafts(job, operator, target, journal, seed, work, texts)
        if not drafts:
            raise _nothing()
        for draft in drafts:
            journal.draft(draft)
        journal.history.trust([*drafts, *filter(None, [offline.direct(operator.folder, operator.name)])])
        ground = Ground(job, operator, target, drafts, journal, seed, work, stop, texts)
        found = yield from _search(ground)
        yield from deliver.deliver(ground, found.winners, found.interrupted)


@contextlib.contextmanager
def _before_search(journal: Journal, stop: Stop) -> Iterator[None]:
    """Asked to stop here, a job that has nothing yet ends; one that goes on has trials of earlier runs to package."""
    if any(isinstance(end, Finished) and end.outcome.ok for end in journal.history.replay()):
        stop.goes_on(f"stopping: no further search; what passed in earlier runs is packaged. {deliver.AGAIN}")
        yield
    else:
        with stop.may_end("stopping: nothing has passed yet, so there will be no product"):
            yield


def _nothing() -> Stopped:
    return Stopped(
        "stopped before a candidate had passed: no product", hint="the same command goes on where it stopped"
    )


@dataclass
class Found:
    """What the search of all dtypes came to."""

    winners: list[Winners] = field(default_factory=list)
    interrupted: bool = False


def _search(ground: Ground) -> Generator[Event, None, Found]:
    """All stages for each dtype; after Ctrl-C nothing more is begun and what there is goes on to the product."""
    found = Found(interrupted=ground.stop.asked)
    for dtype in ground.job.dtypes:
        stopped = yield from _show(ground, "micro-kernel", dtype, search.micro(ground, dtype))
        found.interrupted = found.interrupted or stopped is loop.Stop.INTERRUPTED
        kernels = search.kernels(ground, dtype)
        if not kernels and found.interrupted:
            yield Note(f"{dtype}: nothing has passed; the dtype is left out")
            continue
        if not kernels:
            yield Note(f"{dtype}: no micro-kernel passed; the dtype is left out. {_failure(ground, dtype)}")
            continue
        problems = search.problems(ground, dtype)
        if not found.interrupted:
            stopped = yield from _show(ground, "blocking", dtype, search.blocking(ground, dtype, kernels, problems))
            found.interrupted = stopped is loop.Stop.INTERRUPTED
        whole = search.large_problems(ground, dtype)
        if whole and not found.interrupted:
            stopped = yield from _show(ground, "large shapes", dtype, search.finalists(ground, dtype, kernels, whole))
            found.interrupted = stopped is loop.Stop.INTERRUPTED
        winners = finalists.winners(ground, dtype, kernels, (*problems, *whole))
        if search.single_vlens(ground.target):
            if not found.interrupted:
                tried = forms.search(ground, dtype, winners, problems)
                stopped = yield from _show(ground, "forms for one VLEN", dtype, tried)
                found.interrupted = stopped is loop.Stop.INTERRUPTED
            winners = finalists.with_forms(ground, winners, kernels, (*problems, *whole))
        if not found.interrupted:
            stopped = yield from _show(ground, "smallest", dtype, direct.search(ground, dtype))
            found.interrupted = stopped is loop.Stop.INTERRUPTED
        found.winners.append(replace(winners, direct=direct.winner(ground, dtype)))
    if not found.winners and found.interrupted:
        raise _nothing()
    if not found.winners:
        raise JobError("no kernel passed", hint="tensorop report DIR lists how each candidate failed")
    return found


def _failure(ground: Ground, dtype: str) -> str:
    """What the last candidate of the first stage died of, in one line."""
    ended = ground.journal.history.ended((Stage.MICRO, dtype, 0))
    if not ended:
        return "No candidate was tried."
    outcome = ended[-1].outcome
    said = (outcome.log or outcome.message).strip().splitlines() or [""]
    return f"The last one: {outcome.kind.value}: {outcome.message[:200]} {said[0][:200]}".rstrip()


def _show(ground: Ground, stage: str, dtype: str, events: Iterator[loop.Event]) -> Generator[Event, None, loop.Stop]:
    reason: loop.Stop | None = None
    with ground.stop.may_end(
        f"stopping the search; what has passed is packaged, {deliver.first(ground.stop)}. {deliver.AGAIN}"
    ):
        for event in events:
            yield Trying(stage, dtype, ground.target.shown, event)
            if isinstance(event, loop.Stopped):
                reason = event.reason
    if reason is None:  # a stage that has nothing to do says nothing
        return loop.Stop.INTERRUPTED if ground.stop.asked else loop.Stop.BUDGET
    return reason


def _facts(job: Job, operator: Operator, target: Target) -> dict[str, object]:
    """What a resumed run must share with the one it goes on with; the budget may grow."""
    return {
        "tensorop": __version__,
        "operator": job.operator,
        "platform": target.platform.name,
        "templates and platform": search.digest(operator, target),
        "runner": target.name,
        "board": target.identity,
        "dtypes": list(job.dtypes),
        "shapes": [operator.shapes.text(shape) for shape in job.shapes],
        "tuner": job.tuner,
        "author": job.author,
        "seed": job.seed,
    }


def _controls(
    job: Job, operator: Operator, target: Target, journal: Journal, seed: Seed, work: Path
) -> Iterator[Event]:
    """Known-bad kernels first: a judge that passes one of them has nothing to say of ours."""
    yield Phase("negative controls", "each must be refused")

    build = controls.programs(target.platform)
    results = controls.run_controls(operator, target.platform, target.runner, build, seed, job.dtypes, jobs=job.jobs)
    journal.note(
        "controls",
        [{"name": r.name, "dtype": r.dtype, "fault": r.fault, "ended": r.outcome.kind.value} for r in results],
    )
    refused = sum(not r.outcome.ok for r in results)
    yield Note(f"{refused} faulty kernels refused, {len(results) - refused} honest ones passed")
