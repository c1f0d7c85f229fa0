"""`tensorop.tune`, and the conversion of a user's options (Python values or command-line texts) to a job."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from tensorop import pipeline
from tensorop.errors import UsageError, unknown_name
from tensorop.events import Done, Event
from tensorop.model.budget import parse_seconds
from tensorop.model.job import Job
from tensorop.model.listed import Listed
from tensorop.model.operator import Operator
from tensorop.model.shape import Shape
from tensorop.model.verdict import Seed
from tensorop.specs import calls, catalog, operators, platforms


def tune(operator: str, *, progress: Callable[[Event], None] = lambda event: None, **options: Any) -> Done:
    """Makes a library of tuned kernels, as `tensorop OPERATOR` does. The same call again resumes a stopped run.

    Returns the product's folder, the library's path and the comparison with the baselines.
    Raises UsageError for an unknown name or a request that cannot be met, JobError if the job fails, and MissingTool if
    a tool is absent. Their `hint` is the next step.

    Options take the texts of the command line. A time may also be a number of seconds, and a list may be a Python list.
    A shape in a list may be a text, sizes in the operator's order, or sizes by name.

    progress: called with each event as it happens (`Phase`, `Note`, `Trying`, `Building`, `Done`)
    """
    try:
        tune.__signature__.bind(operator, progress=progress, **options)  # type: ignore[attr-defined]
    except TypeError as error:
        raise TypeError(f"tune() {error}") from None
    if not callable(progress):
        raise UsageError(f"progress must be a function of one event; got {progress!r}", hint="e.g. progress=print")
    for event in pipeline.run(job(operator, options)):
        progress(event)
        if isinstance(event, Done):
            return event
    raise AssertionError("a run ends with Done")


_TAKES = {  # types of options that are wider than those of Job's fields
    "dtypes": "str | Sequence[str]",
    "shapes": "str | Sequence[str | Sequence[int] | Mapping[str, int]]",
    "budget": "str | float",
    "author_timeout": "str | float",
    "author_time": "str | float | None",
    "transcript": "str | Path | None",
    "withhold": "str | Sequence[str]",
    "author_prices": "str | Path | None",
    "workers": "str | int",
    "seed": "int | str",
    "plugins": "str | Path | Sequence[str | Path]",
    "out": "str | Path",
    "warm_start": "str | Path",
}
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def _describe() -> None:
    """Adds the options of a job to the signature and docstring of `tune`."""
    own = inspect.signature(tune).parameters
    options, lines = [], []
    for name, (field, option) in Job.options().items():
        takes = _TAKES.get(name, str(field.type)) + (" | None" if option.late else "")
        options.append(inspect.Parameter(name, _KEYWORD, default=option.default, annotation=takes))
        text = option.text(f'{name}="{option.example}"')
        lines.append(textwrap.fill(f"{name}: {text}", 116, subsequent_indent=" " * 4))
    signature = inspect.Signature([own["operator"], *options, own["progress"]], return_annotation=Done)
    tune.__signature__ = signature  # type: ignore[attr-defined]
    tune.__doc__ = "\n".join([inspect.getdoc(tune) or "", *lines])


_describe()


def job(operator: str, options: Mapping[str, object], given: frozenset[str] | None = None) -> Job:
    """The job for these options. Raises UsageError.

    options: by the names of `Job.options`; given: as in Job
    """
    known = Job.options()
    values: dict[str, Any] = {
        name: value for name, value in options.items() if value is not None or known[name][1].default is not None
    }
    at = values["plugins"] = catalog.folders(values.get("plugins", ()))
    platform = values.setdefault("platform", Job.platform)
    for what, name in (("operator", operator), ("platform", platform)):
        if not isinstance(name, str):
            raise UsageError(
                f"{what} must be a name; got {name!r}", hint=f"`tensorop {what}s list` shows the names there are"
            )
    found = operators.load(operator, at)
    if {"budget", "trials"} <= values.keys():
        raise UsageError("--budget and --trials exclude each other; got both", hint="remove one of them")
    if "trials" in values:
        values["budget_s"] = None
    for name in ("budget", "author_timeout", "author_time"):
        if name in values:
            value = values.pop(name)
            values[f"{name}_s"] = parse_seconds(value) if isinstance(value, str) else value
    withheld = values.get("withhold", ())
    names = withheld.split(",") if isinstance(withheld, str) else withheld
    values["withhold"] = tuple(dict.fromkeys(name.strip() for name in names))
    if isinstance(values.get("transcript"), str):
        values["transcript"] = Path(values["transcript"])
    sizes, typed = values.get("shapes", found.usual), "dtypes" in values
    asked = values["listed"] = listed(found, sizes)
    values["shapes"] = asked.shapes
    if typed:
        values["dtypes"] = dtypes(found, values["dtypes"])
    else:
        values["dtypes"] = Job.usual_dtypes(found, platforms.load(platform, at))
    if not asked.named and "" not in asked.dtypes:  # all of its calls have element types
        values["dtypes"] = _called(values["dtypes"], asked.dtypes, typed)
    if isinstance(values.get("seed"), str):
        values["seed"], values["secret"] = seed(values["seed"])
    out = values.get("out") or Job.folder(operator, platform)
    if not isinstance(out, str | PathLike):
        raise UsageError(f"out must be the path of a folder; got {out!r}", hint='e.g. out="build/mine"')
    values["out"] = Path(out)
    if isinstance(values.get("author_prices"), str):
        values["author_prices"] = Path(values["author_prices"])
    values |= {
        name: str(values[name]) for name in ("workers", "warm_start") if isinstance(values.get(name), int | Path)
    }
    return Job(operator, suite=sizes if isinstance(sizes, str) else Job.GIVEN, given=given, **values)


def seed(text: str) -> tuple[int, int | None]:
    """The public and the secret part of a seed; None for a missing secret. Raises UsageError."""
    try:
        return Seed.parts(text)
    except ValueError as error:
        raise UsageError(f"--seed: {error}", hint="e.g. --seed 7, or the full seed that a run printed") from None


def dtypes(operator: Operator, given: str | Sequence[str], known: Sequence[str] = ()) -> tuple[str, ...]:
    """Checks dtypes in a text (`f32,f64`) or a list. known: those of a library, which has kernels of further types

    Raises UsageError.
    """
    known = tuple(dict.fromkeys((*operator.dtypes, *known)))
    some = f"choose from {', '.join(known)}, e.g. --dtype {known[0]}"
    names = [name.strip() for name in given.split(",") if name.strip()] if isinstance(given, str) else given
    if not isinstance(names, Iterable):
        raise UsageError(f"dtypes must be a text or a list of names; got {given!r}", hint=some)
    if not names:
        raise UsageError("--dtype names no element type", hint=some)
    for name in names:
        if name not in known:
            raise unknown_name(f"dtype of {operator.name}", str(name), known)
    return tuple(dict.fromkeys(names))


def _called(wanted: tuple[str, ...], called: Sequence[str], typed: bool) -> tuple[str, ...]:
    """The element types of a record's calls. typed: the user named those in `wanted`. Raises UsageError."""
    found = tuple(dtype for dtype in wanted if dtype in called)
    if lacking := [dtype for dtype in wanted if dtype not in called] if typed else [] if found else list(wanted):
        what = f"the files in --shapes have calls of {', '.join(called)}; got --dtype {', '.join(lacking)}"
        raise UsageError(what, hint=f"use --dtype {called[0]}, or add shapes of your own")
    return found


def shapes(operator: Operator, given: str | Sequence[Any]) -> tuple[Shape, ...]:
    """The shapes that `listed` finds, each one once."""
    return listed(operator, given).shapes


def listed(operator: Operator, given: str | Sequence[Any]) -> Listed:
    """The shapes in a text of suites, shapes and files, e.g. `quick,64x64x64,@calls.txt`, or in a list.

    A shape in a list may also be sizes in the operator's order, or by name. Raises UsageError.
    """
    form = f"write shapes as {operator.shapes.help}, e.g. {operator.example}"
    try:
        parts = [part for part in given.split(",") if part.strip()] if isinstance(given, str) else given
        paths = [part.strip()[1:] for part in parts if _is_file(part)]
        found = [size for part in parts if not _is_file(part) for size in _sizes(operator, part)]
    except (TypeError, ValueError) as error:
        raise UsageError(f"not a shape of {operator.name}: {error}", hint=form) from None
    if "" in paths:
        raise UsageError("--shapes: expected the name of a file behind '@', got nothing", hint=f"{form}, or @FILE")
    if not found and not paths:
        raise UsageError(f"--shapes must name at least one shape or suite; got {given!r:.80}", hint=form)
    read = [calls.read(operator, Path(path)) for path in paths]
    every = sorted((call for of_file, _ in read for call in of_file), key=lambda call: -call.weight)
    return Listed(tuple(every), tuple(dict.fromkeys(found)), tuple(remark for _, remark in read if remark))


def _is_file(part: Any) -> bool:
    return isinstance(part, str) and part.strip().startswith("@")


def _sizes(operator: Operator, part: Any) -> Sequence[Shape]:
    if not isinstance(part, str):
        return [operator.shapes.of(part)]
    if (name := part.strip()) in operator.suites:
        return operator.suites[name]
    if any(letter.isdigit() for letter in name):
        return [operator.shapes.of(name)]
    error = unknown_name(f"suite of {operator.name}", name, operator.suites)
    error.hint = f"{error.hint}; write shapes as {operator.shapes.help}, e.g. {operator.example}"
    raise error
