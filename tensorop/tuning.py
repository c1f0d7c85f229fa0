"""`tensorop.tune`: a job from Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tensorop import pipeline
from tensorop.errors import UsageError, unknown_name
from tensorop.events import Done, Event
from tensorop.model.budget import parse_seconds
from tensorop.model.job import Job
from tensorop.model.operator import Operator
from tensorop.model.verdict import Seed
from tensorop.specs import catalog, operators, platforms


def tune(
    operator: str,
    *,
    platform: str = Job.platform,
    dtypes: str | Sequence[str] | None = None,
    shapes: str | Sequence[str | Sequence[int] | Mapping[str, int]] | None = None,
    budget: str | float | None = None,
    trials: int | None = None,
    tuner: str = Job.tuner,
    author: str = Job.author,
    jobs: int = Job.jobs,
    workers: int | str = Job.workers,
    batch: int | None = Job.batch,
    seed: int | str = Job.seed,
    threads: int = Job.threads,
    runner: str | None = Job.runner,
    plugins: str | Path | Sequence[str | Path] = Job.plugins,
    offline: bool = Job.offline,
    out: str | Path | None = None,
    fresh: bool = Job.fresh,
    warm_start: str | Path = Job.warm_start,
    unsafe: bool = Job.unsafe,
    c_dtype: str | None = Job.c_dtype,
    progress: Callable[[Event], None] = lambda event: None,
) -> Done:
    """Makes a library of tuned kernels; the same as `tensorop OPERATOR` on the command line, and resumes likewise.

    dtypes: by default f32 and f64 where operator and platform have them, or else all that both have
    shapes: a text as on the command line, suites and shapes (by default the operator's first suite), or a list, each a
    text, sizes in the operator's order, or sizes by name
    plugins: folders with files of your own
    budget: seconds of search, or a text such as "3m"; two minutes unless `trials` is given
    threads: threads the comparison uses on a clock; out: the product's folder, `build/<operator>-<platform>` by default
    workers: how many processes, or the address of a Dask scheduler; batch: trials asked for at once (docs/workers.md)
    seed: an integer, or a text as a job prints it, by which kernels are judged on the same calls again
    warm_start: "auto", "none" or the path of a journal, a product or a file of winners (docs/warm-start.md)
    unsafe: let a model's kernels run where nothing confines them; the product says so
    c_dtype: of the result, where the platform has a choice: "f32" beside bf16 and f16 on GPUs
    progress: is given each event as it happens (see `tensorop.events`)

    Returns the folder, the library's path and the comparison with the baselines, whose figures are GFLOP/s by a clock
    on the real target, or flops a modelled cycle under a board model.
    Raises UsageError (an unknown name, an impossible wish), JobError (it could not be done), MissingTool (something the
    platform needs is not here; the hint says how to get it).
    """
    at = catalog.folders(plugins)
    for what, name in (("operator", operator), ("platform", platform)):
        if not isinstance(name, str):
            raise UsageError(f"{what} is {name!r}", hint="expected its name")
    if not isinstance(out, str | PathLike | None):
        raise UsageError(f"out is {out!r}", hint="expected a folder's path")
    if not callable(progress):
        raise UsageError(f"progress is {progress!r}", hint="expected what can be called with an event")
    found = operators.load(operator, at)
    if budget is not None and trials is not None:
        raise UsageError("both a budget and trials are given", hint="give one of them")
    wanted = Job.usual_dtypes(found, platforms.load(platform, at)) if dtypes is None else _dtypes(found, dtypes)
    sizes, suite = _shapes(found, found.usual if shapes is None else shapes)
    public, secret = _seed(seed) if isinstance(seed, str) else (seed, None)
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
        seed=public,
        secret=secret,
        threads=threads,
        runner=runner,
        plugins=at,
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


def _seed(text: str) -> tuple[int, int | None]:
    try:
        return Seed.parts(text)
    except ValueError as error:
        raise UsageError(f"seed: {error}", hint="give an integer, or a whole seed as it was printed") from None


def _dtypes(operator: Operator, given: str | Sequence[str]) -> tuple[str, ...]:
    names = [n.strip() for n in given.split(",")] if isinstance(given, str) else given
    if not isinstance(names, Iterable):
        raise UsageError(f"dtypes is {given!r}", hint=f"give some of {', '.join(operator.dtypes)}")
    if not names:
        raise UsageError("no dtype is named", hint=f"give some of {', '.join(operator.dtypes)}")
    for name in names:
        if name not in operator.dtypes:
            raise unknown_name(f"dtype of {operator.name}", str(name), operator.dtypes)
    return tuple(dict.fromkeys(names))


def _shapes(operator: Operator, given: Any) -> tuple[tuple[tuple[int, ...], ...], str]:
    """The sizes, each once, and what they are called together."""
    if isinstance(given, str) and given in operator.suites:
        return operator.suites[given], given
    try:
        parts = given.split(",") if isinstance(given, str) else list(given)
        sizes = [size for part in parts for size in _sizes(operator, part)]
    except (TypeError, ValueError) as error:
        raise UsageError(f"not a shape of {operator.name}: {error}", hint=f"e.g. {operator.example}") from None
    if not sizes:
        raise UsageError("no shape is given", hint=f"leave shapes out, or give e.g. {operator.example}")
    return tuple(dict.fromkeys(sizes)), given if isinstance(given, str) else "the shapes given"


def _sizes(operator: Operator, part: Any) -> Sequence[tuple[int, ...]]:
    if not isinstance(part, str):
        return [operator.shapes.of(part)]
    if (name := part.strip()) in operator.suites:
        return operator.suites[name]
    if not any(letter.isdigit() for letter in name):
        raise unknown_name(f"suite of {operator.name}", name, operator.suites)
    return [operator.shapes.of(name)]
