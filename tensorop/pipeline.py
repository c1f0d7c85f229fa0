"""The path of a job from its options to its product; read it from top to bottom.

controls -> templates -> search, dtype by dtype -> winners -> library -> measurements in it -> verify -> publish
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from tensorop import __version__, paths, settings, subpackages
from tensorop.author import offline
from tensorop.author.llm import transcript
from tensorop.backends import reach
from tensorop.commands import operator_built, operator_read
from tensorop.device_target import for_device
from tensorop.dispatch import probing, robust, single_vlen, winners
from tensorop.errors import JobError, Stopped, UsageError
from tensorop.events import Event, Note, Phase, Trying
from tensorop.job import authoring, deliver, forecast, reckoning
from tensorop.measure import machine
from tensorop.model.job import Job
from tensorop.model.kernel import CONFINED, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.point import identity
from tensorop.model.search_events import EndReason, SearchEnded, SearchEvent, TrialEnded
from tensorop.model.trial import Finished, Stage
from tensorop.model.verdict import Seed, controls_text
from tensorop.model.winner import WarmStart, Winners
from tensorop.package import publish
from tensorop.process import places, scratch
from tensorop.process.stopping import StopRequest
from tensorop.render.texts import Texts
from tensorop.search import stages
from tensorop.search.arms import Revise
from tensorop.search.loop import conduct
from tensorop.search.task import Crew, JobContext, Pass, Task, digest
from tensorop.space import problems, strategy
from tensorop.specs import epilogue, leftovers, operators, platforms
from tensorop.store import journal as store
from tensorop.store.journal import Journal
from tensorop.target import Target
from tensorop.toolchain.compile import candidate_flags
from tensorop.trial import confinement
from tensorop.trial.roof import Roof
from tensorop.verify import controls
from tensorop.verify.answers import Answers
from tensorop.warm import reading, start
from tensorop.warm.reading import WarmSource

# The parts of a search, by the names that operator.yaml lists: trials first, then what is measured inside the library.
_TRIALS = (stages.MICRO, stages.BLOCKING, stages.FINALISTS, single_vlen.PASS, stages.SMALLEST)
PASSES = {one.name: one for one in (*_TRIALS, probing.SIDE_BY_SIDE, probing.PASS, robust.PASS)}


def passes(operator: Operator) -> tuple[Pass, ...]:
    """An operator's parts, in its order."""
    return tuple(PASSES[name] for name in operator.stages)


def _passes(job: Job, operator: Operator) -> tuple[Pass, ...]:
    return () if job.no_search else passes(operator)


_SEED = "seed"  # the journal's note of the seed
_Sources = tuple[Sequence[WarmSource], Sequence[str]]  # possible starting points, and warnings


def run(job: Job, stop: StopRequest | None = None) -> Generator[Event, None, None]:
    """Runs a job and yields its events, `Done` last. Raises UsageError, JobError, MissingTool.

    stop: the user's request to end early. Raises Stopped if it comes before a kernel passed.
    """
    stop = stop or StopRequest()
    operator = problems.led_by(operators.load(job.operator, job.plugins), job.layout)
    platform, target = platforms.load(job.platform, job.plugins), None
    with stop.may_end("stopping: nothing has been begun"):  # Ctrl-C ends this: a board may not answer
        target = reach(platform, job.runner, job.plugins)
    if target is None:
        raise _nothing()
    if job.workers:
        subpackages.require("cluster", "crew", "--workers").check(job, target)
    _check_c(job, operator, target)
    _check_math(job, operator, target)
    _check_epilogue(job, operator, target)
    strategy.load(job.tuner, job.plugins).check()  # refused before any work: an unknown name, a missing package
    _check_effect(job, target)
    authoring.own(operator, job, target)
    sources: _Sources = reading.read(job) if target.measures else ((), ())
    plan = forecast.forecast(job, operator, target, _passes(job, operator), sources[0]) if target.measures else None
    if plan is not None:
        # without the parts that improve the dispatch
        stop.grid_s = plan.seconds["library"] / 2 + plan.seconds["verification"]
    events = _run(job, operator, target, stop, plan, sources)
    yield from (events if plan is None else reckoning.watched(events, plan))


def _check_epilogue(job: Job, operator: Operator, target: Target) -> None:
    """Raises UsageError for --epilogue where no library has epilogues."""
    if not job.epilogue or (operator.epilogue and target.maths(operator, "f32")):
        return
    served = epilogue.of(operator, job.plugins) if target.measures else None
    if served is None:
        raise UsageError(
            f"--epilogue has no effect for {operator.name} on platform '{target.platform.name}'",
            hint="remove --epilogue: no library of this operator has epilogues there",
        )
    if lacking := [dtype for dtype in job.dtypes if dtype not in served.dtypes]:
        known = ", ".join(served.dtypes)
        raise UsageError(
            f"--epilogue supports {known} on platform '{target.platform.name}'; got --dtype {', '.join(lacking)}",
            hint=f"use --dtype {','.join(served.dtypes)}, or remove --epilogue",
        )


_NOTHING_SEARCHED = "with --no-search: nothing is searched"


def _check_effect(job: Job, target: Target) -> None:
    """Raises UsageError if the user gave an option that has no effect here."""
    ignored = {name: f"for '{target.platform.name}': {why}" for name, why in target.ignores.items()}
    if job.author != "llm":
        limits = ("author_timeout", "author_time", "author_calls", "author_tokens", "author_cost", "author_prices")
        ignored |= dict.fromkeys(limits, "without --author llm: no language model is asked")
    if job.author == "manual":
        del ignored["author_calls"]
    if job.author != "replay":
        ignored["transcript"] = "without --author replay: no transcript is read"
    if job.no_search:
        ignored |= dict.fromkeys(("budget", "trials", "tuner", "batch", "workers", "only"), _NOTHING_SEARCHED)
        ignored |= {} if job.author == offline.AUTHOR else {"author": _NOTHING_SEARCHED}
    elif job.author != offline.AUTHOR:
        ignored["only"] = f"with --author {job.author}: use --withhold to leave out shipped templates"
    if job.author not in ("llm", "manual"):
        for name in ("leave_out", "author_configurations"):
            ignored[name] = "without --author llm or manual: nothing is asked"
    elif not target.measures and job.leave_out != "plan":
        ignored["leave_out"] = f"for '{target.platform.name}': of questions for a GPU, the plan alone can be left out"
    if job.author == offline.AUTHOR:
        ignored["unsafe"] = "without --author llm, manual or replay: only shipped kernels run"
    else:
        ignored.pop("seed", None)  # of its questions, and of the calls that verify its kernels
    if job.author == "llm":
        ignored.pop("fresh", None)  # it discards the answers
    for name in sorted(job.chosen & ignored.keys()):
        if (name, job.threads) != ("threads", Job.threads):  # every target has one thread
            option = f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} has no effect {ignored[name]}", hint=f"remove {option}")


def _check_c(job: Job, operator: Operator, target: Target) -> None:
    """Raises UsageError if the result cannot have the requested type, or has no other type."""
    if not job.c_dtype:
        return
    known = {dtype: tuple(dict.fromkeys(target.types_of_c(operator, dtype))) for dtype in job.dtypes}
    for dtype, types in known.items():
        if job.c_dtype not in types:
            reason = f"for {dtype} inputs, platform '{target.platform.name}' supports results of {' or '.join(types)}"
            raise UsageError(f"--c-dtype {job.c_dtype}: {reason}", hint=f"use --c-dtype {types[0]}, or remove it")
    if all(len(types) == 1 for types in known.values()):
        reason = f"platform '{target.platform.name}' supports one result type for {', '.join(known)}"
        raise UsageError(f"--c-dtype {job.c_dtype} has no effect: {reason}", hint="remove --c-dtype")


def _check_math(job: Job, operator: Operator, target: Target) -> None:
    """Raises UsageError if products cannot be computed as requested."""
    for dtype in job.dtypes if job.math else ():
        known = target.maths(operator, dtype)
        if job.math not in known:
            reason = (
                f"for {dtype} inputs, platform '{target.platform.name}' has {' and '.join(known) or 'no other way'}"
            )
            raise UsageError(
                f"--math {job.math}: {reason}", hint=f"use --math {known[0]}" if known else "remove --math"
            )


def _run(
    job: Job, operator: Operator, target: Target, stop: StopRequest, plan: forecast.Forecast | None, sources: _Sources
) -> Generator[Event, None, None]:
    platform = target.platform
    if target.measures and not paths.shipped(operator.folder):
        operator_read.require_read(operator, platform, job.dtypes, target.simulated)
    publish.check_place(job.out, starts=target.is_host)
    if not target.simulated:
        places.require_programs("the cache", settings.read().cache, "set TENSOROP_CACHE to another folder")
    if target.measures:
        # all operands must fit in memory; shapes that take an emulator too long get stand-ins in the search
        problems.require_affordable(operator, job.dtypes, job.shapes, 0.0)
        least = [min(job.shapes, key=lambda s: problems.work(operator, job.dtypes[0], s))] if job.shapes else []
        problems.require_affordable(operator, job.dtypes, least, target.budgets.flops_per_s, len(target.vlens))
    goes_on = not job.fresh and store.journal_path(job.out).exists()
    if not goes_on:  # a refused job leaves no files
        authoring.require_author(job, operator, target)
    if plan is not None:
        yield Phase(f"{job.operator} {', '.join(job.dtypes)} for {platform.name}", str(plan))
    yield Phase("platform", f"{platform.name} ({' < '.join(platform.lineage)}): {platform.description}")
    yield from (Note(remark) for remark in (*leftovers.remarks(job.plugins), *job.listed.remarks))
    if remark := confinement.require(job, target):
        yield Note(remark)
    if not target.simulated and (busy := machine.competition(machine.record())):
        effect = "the timings of this job are unreliable" if target.is_host else "this job takes longer"
        yield Note(f"busy machine: {busy}, so {effect}")
    with contextlib.ExitStack() as until:  # a stop request ends the search
        crew = _crew(job, until, stop)
        with Journal.open(job.out, _facts(job, operator, target), fresh=job.fresh) as journal:
            yield from (Note(remark) for remark in journal.remarks)
            if job.no_search and journal.history.replay():
                raise UsageError(
                    f"{job.out} has trials of a search, and --no-search would replace their library",
                    hint="remove --no-search to resume the search, or name another folder with --out",
                )
            journal.note(store.SESSION, _session(job, operator))
            if job.fresh and job.author == "llm":  # a replay reads them, and those of `manual` are files of the user
                transcript.discard(job.out / transcript.OF_RUN)
            if goes_on:
                authoring.require_author(job, operator, target, journal)
            seed, texts = _seed(job, journal), Texts(journal.history.texts)
            if not target.simulated and (target.measures or job.author != offline.AUTHOR):
                yield Note(f"seed {seed} (pass it to --seed to repeat the verification calls)")
            work = (job.out / "work").absolute()  # each compiler runs in a folder of its own
            whole = JobContext(job, operator, target, _passes(job, operator), (), journal, seed, work, stop, texts)
            whole = replace(whole, crew=crew, answers=Answers(operator.reference))
            whole = yield from _prepared(whole, sources)
            if (device := for_device(target)) is not None:
                yield from deliver.predicted(whole, device)
                return
            tasks = [whole.task(dtype) for dtype in job.dtypes]
            found, interrupted = yield from _search(tasks, stop)
            until.close()
            yield from deliver.deliver(whole, {task.dtype: task for task in tasks}, found, interrupted)


def _prepared(whole: JobContext, sources: _Sources) -> Generator[Event, None, JobContext]:
    """Checks tools and workers, collects templates and starting points: the context of the search."""
    job, operator, target, journal = whole.job, whole.operator, whole.target, whole.journal
    templates: tuple[KernelTemplate, ...] = ()
    revise: Revise | None = None
    with _before_search(journal, whole.stop):
        if not target.simulated:
            yield Phase("tools", target.brings)
            target.bring(job.offline or None)
            if target.measures and not paths.shipped(operator.folder):
                yield Note(f"{job.operator} is an operator of yours: its library is built once to check it")
                with scratch.folder("operator") as folder:
                    operator_built.built(operator, target, job.dtypes, folder, job.jobs, whole.seed)
            if target.measures:
                yield from _controls(whole)
        if whole.crew is not None:
            yield Phase("workers", "checking that they measure what this machine measures")
            yield from map(Note, whole.crew.admit(whole.stop))
        if (device := for_device(target)) is not None:
            templates = yield from device.authored(whole)
        else:
            author = authoring.JobAuthor(job, operator, target, whole.seed, whole.work, whole.texts)
            templates = yield from author.templates(journal)
            revise = authoring.reviser(author, journal, whole.remarks)
    if not templates:
        raise _nothing()
    for template in templates:
        journal.template(template)
    if not target.measures:
        return replace(whole, templates=templates)
    direct = offline.direct(operator.folder, operator.name)
    every = [*templates, *([direct] if direct else [])]
    journal.history.trust(every)
    begun = yield from _warm(whole, every, sources)
    return replace(whole, templates=templates, revise=revise, warm=begun)


def _session(job: Job, operator: Operator) -> dict[str, str]:
    """The journal's note of this process: when it began, and the command line of its job."""
    shapes = ",".join(map(operator.shapes.text, job.shapes)) if job.suite in ("", Job.GIVEN) else job.suite
    return {"date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()), "command": job.command(shapes)}


def _seed(job: Job, journal: Journal) -> Seed:
    """The seed of the run's random draws; a resumed run keeps the seed of its journal."""
    noted = [data for name, data in journal.history.notes if name == _SEED]
    if not noted:
        drawn = authoring.recorded_seed(job) or Seed.draw(job.seed, job.secret)
        journal.note(_SEED, str(drawn))
        return drawn
    try:
        began = Seed.parse(noted[0])
    except (ValueError, TypeError) as error:
        raise JobError(f"{journal.path}: its note '{_SEED}' is invalid: {error}", hint=store.START_OVER) from error
    if job.secret not in (None, began.secret):
        raise UsageError(
            f"--seed differs from the run in {job.out}, which has the seed {began}",
            hint=f"remove --seed to resume that run, or {store.START_OVER}",
        )
    return began


def _crew(job: Job, until: contextlib.ExitStack, stop: StopRequest) -> Crew | None:
    """Starts the job's workers, until the context ends; None without workers, or after a stop request."""
    if not job.workers:
        return None
    with stop.may_end("stopping: no further search; kernels that passed in earlier runs are packaged"):
        found: Crew = until.enter_context(subpackages.require("cluster", "crew", "--workers").crew(job))
        return found
    return None


def _warm(
    whole: JobContext, templates: Sequence[KernelTemplate], sources: _Sources
) -> Generator[Event, None, dict[str, WarmStart]]:
    """Starting points of each dtype's search; a resumed run keeps those of its journal."""
    if (noted := start.of_journal(whole.journal.history, whole.journal.path)) is not None:
        return noted
    found, warnings = sources
    begun, used, unused = start.begin(found, whole.job, whole.operator, whole.target.platform, templates)
    whole.journal.note(start.NOTE, {"used": used, "unused": [*warnings, *unused], "begins": start.to_json(begun)})
    yield from (Note(remark) for remark in (*warnings, *unused, *used))
    return begun


@contextlib.contextmanager
def _before_search(journal: Journal, stop: StopRequest) -> Iterator[None]:
    """After a stop request, ends a job without trials; a resumed one packages its earlier trials."""
    if any(isinstance(end, Finished) and end.outcome.ok for end in journal.history.replay()):
        stop.goes_on(f"stopping: no further search; kernels that passed in earlier runs are packaged. {deliver.AGAIN}")
        yield
    else:
        with stop.may_end("stopping: no kernel has passed yet, so there will be no library"):
            yield


def _nothing() -> Stopped:
    return Stopped(
        "stopped before any kernel passed, so there is no library", hint="run the same command again to resume"
    )


def _search(tasks: list[Task], stop: StopRequest) -> Generator[Event, None, tuple[list[Winners], bool]]:
    """The winners of each dtype, and whether the user ended the search."""
    found, interrupted = [], stop.asked
    for task in tasks:
        for part in task.passes:
            plan = None if interrupted or part.plan is None else part.plan(task)
            if plan is not None:
                yield Phase(f"{part.name} {task.dtype}", part.activity)
                reason = yield from _show(task, part, conduct(task, Stage(part.name), plan))
                interrupted = reason is EndReason.INTERRUPTED
            if not task.shortlist:
                break
        of_dtype = winners.first(task)
        if of_dtype is not None:
            found.append(of_dtype)
        elif interrupted:
            yield Note(f"{task.dtype}: no kernel passed, so the library does not support it")
        else:
            yield Note(f"{task.dtype}: no kernel passed, so the library does not support it. {_failure(task)}")
    if not found and interrupted:
        raise _nothing()
    if not found:
        raise JobError(
            "no kernel passed: every candidate of the search failed",
            hint="run `tensorop report DIR` to see how each candidate failed",
        )
    return found, interrupted


def _failure(task: Task) -> str:
    """The last failure of the first stage, in one line."""
    ended = task.journal.history.ended((Stage.MICRO, task.dtype, 0))
    if not ended:
        return "No candidate ran."
    outcome = ended[-1].outcome
    lines = (outcome.log or outcome.message).strip().splitlines() or [""]
    return f"The last failure: {outcome.kind.value}: {outcome.message[:200]} {lines[0][:200]}".rstrip()


def _is_real_pass(event: SearchEvent) -> TypeGuard[TrialEnded]:
    """Whether a trial of this run passed at all VLENs, so that the target's peak is known or quick to measure."""
    if not isinstance(event, TrialEnded) or event.replayed:
        return False
    return event.finished.outcome.ok and not event.finished.trial.variant.kernel.vlen


def _show(task: Task, part: Pass, events: Iterator[SearchEvent]) -> Generator[Event, None, EndReason]:
    reason, bound, roof = EndReason.INTERRUPTED, None, Roof(task.target)
    with task.stop.may_end(f"stopping the search; {deliver.packaged(task.stop)}"):
        for event in events:
            if _is_real_pass(event):
                cost = event.finished.score.cost if event.best is event.finished else None
                bound = roof.bound(task.dtype, task.target.vlens, cost)
            yield Trying(part.name, task.dtype, task.target.shown, event, bound=bound)
            while task.remarks.now:
                yield Note(task.remarks.now.pop(0))
            if isinstance(event, SearchEnded):
                reason = event.reason
    return reason


def _facts(job: Job, operator: Operator, target: Target) -> dict[str, object]:
    """Facts that a resumed run must share with its journal; the budget may differ."""
    return {
        "tensorop": __version__,  # version of tensorop
        "operator": job.operator,  # the operator
        "platform": target.platform.name,  # the platform
        "templates and platform": digest(operator, target),  # hash of the files that decide results
        "compiler flags": [*candidate_flags(target.platform), *CONFINED],  # for candidates
        "runner": target.name,  # where programs run
        "board": target.identity,  # the board or the machine, where results depend on it
        "dtypes": list(job.dtypes),  # element types
        "shapes": [operator.shapes.text(shape) for shape in job.shapes],  # tuned shapes
        "tuner": job.tuner,  # search strategy
        "author": job.author,  # who writes micro-kernels
        "seed": job.seed,  # seed of everything random
        "warm start": job.warm_start,  # where the search begins
        **({"type of C": job.c_dtype} if job.c_dtype else {}),  # element type of the result, if it is not the default
        **({"math": job.math} if job.math else {}),  # how products are computed, if it is not the default
        **({"epilogue": True} if job.epilogue else {}),  # kernels have epilogues
        **({"layout": job.layout} if job.layout else {}),  # number of the layout that is tuned first
        **({"withheld": list(job.withhold)} if job.withhold else {}),  # templates that the run does without
        **({"only": [job.only]} if job.only else {}),  # the one template that is searched
        **({"digest of calls": identity(*map(str, calls))} if (calls := job.listed.calls) else {}),  # in --shapes
        **({"left out": job.leave_out} if job.leave_out else {}),  # of the questions to a language model
    }


def _controls(whole: JobContext) -> Iterator[Event]:
    """Verifies the negative controls; if one passes, verification itself is broken and the run stops."""
    yield Phase("negative controls", "verification must reject known-wrong kernels")
    operator, target, job = whole.operator, whole.target, whole.job
    judged = (operator, epilogue.of(operator, job.plugins) if job.epilogue else None)
    runs = [controls.ControlRun(one, target.platform, target.runner, whole.seed) for one in judged if one]
    results = tuple(result for run in runs for result in run.run(job.dtypes, job.jobs))
    whole.journal.note(
        "controls",
        [result.to_json() for result in results],
    )
    yield Note(controls_text(results))
