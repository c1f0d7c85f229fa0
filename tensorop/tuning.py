"""`tensorop.tune`: a job from Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tensorop import pipeline
from tensorop.errors import UsageError, unknown_name
from tensorop.events import Done, Event
from tensorop.model.budget import parse_seconds
from tensorop.model.job import Job
from tensorop.specs import operators, platforms


def tune(
    operator: str,
    *,
    platform: str = Job.platform,
    dtypes: Sequence[str] | None = None,
    shapes: str | Sequence[str | Sequence[int] | Mapping[str, int]] | None = None,
    budget: str | float | None = None,
    trials: int | None = None,
    tuner: str = Job.tuner,
    author: str = Job.author,
    jobs: int = Job.jobs,
    workers: int | str = Job.workers,
    batch: int | None = Job.batch,
    seed: int = Job.seed,
    threads: int = Job.threads,
    runner: str | None = Job.runner,
    plugins: Sequence[Path] = Job.plugins,
    offline: bool = Job.offline,
    out: str | Path | None = None,
    fresh: bool = Job.fresh,
    warm_start: str | Path = Job.warm_start,
    unsafe: bool = Job.unsafe,
    c_dtype: str | None = Job.c_dtype,
    progress: Callable[[Event], None] = lambda event: None,
) -> Done:
    """Makes a library of tuned kernels; the same as `tensorop OPERATOR` on the command line, and resumes likewise.

    dtypes: by default f32 and f64, or what the platform has
    shapes: the name of a suite (by default the operator's first), or shapes: text as on the command line, sizes in the
    operator's order, or by name
    budget: seconds of search, or a text such as "3m"; two minutes unless `trials` is given
    threads: threads the comparison uses on a clock; out: the product's folder, `build/<operator>-<platform>` by default
    workers: how many processes, or the address of a Dask scheduler; batch: trials asked for at once (docs/workers.md)
    warm_start: "auto", "none" or the path of a journal, a product or a file of winners (docs/warm-start.md)
    unsafe: let a model's kernels run where nothing confines them; the product says so
    c_dtype: of the result, where the platform has a choice: "f32" beside bf16 and f16 on GPUs
    progress: is given each event as it happens (see `tensorop.events`)

    Returns the folder, the library's path and the comparison with the baselines, whose figures are GFLOP/s by a clock
    on the real target, or flops a modelled cycle under a board model.
    Raises UsageError (an unknown name, an impossible wish), JobError (it could not be done), MissingTool (something the
    platform needs is not here; the hint says how to get it).
    """
    found = operators.load(operator, tuple(plugins))
    if budget is not None and trials is not None:
        raise UsageError("both a budget and trials are given", hint="give one of them")
    wanted = tuple(platforms.load(platform, tuple(plugins)).usual(Job.dtypes) if dtypes is None else dtypes)
    if not wanted:
        raise UsageError("no dtype is named", hint=f"give some of {', '.join(found.dtypes)}")
    for dtype in wanted:
        if dtype not in found.dtypes:
            raise unknown_name(f"dtype of {operator}", dtype, found.dtypes)
    shapes = found.usual if shapes is None else shapes
    suite = shapes if isinstance(shapes, str) else "the shapes given"
    if isinstance(shapes, str):
        if shapes not in found.suites:
            raise unknown_name(f"suite of {operator}", shapes, found.suites)
        sizes = found.suites[shapes]
    else:
        try:
            sizes = tuple(map(found.shapes.of, shapes))
        except ValueError as error:
            raise UsageError(f"not a shape of {operator}: {error}", hint=f"e.g. {found.example}") from None
    seconds = parse_seconds(budget) if isinstance(budget, str) else budget
    job = Job(
        operator=operator,
        platform=platform,
        dtypes=wanted,
        shapes=sizes,
        suite=suite,
        budget_s=seconds if seconds is not None else (None if trials else Job.budget_s),
        trials=trials,
        tuner=tuner,
        author=author,
        jobs=jobs,
        workers=str(workers),
        batch=batch,
        seed=seed,
        threads=threads,
        runner=runner,
        plugins=tuple(plugins),
        offline=offline,
        out=Path(out) if out else Job.folder(operator, platform),
        fresh=fresh,
        warm_start=str(warm_start),
        unsafe=unsafe,
        c_dtype=c_dtype,
    )
    for event in pipeline.run(job):
        progress(event)
        if isinstance(event, Done):
            return event
    raise AssertionError("a run ends with Done")
