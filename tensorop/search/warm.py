"""Where a search begins by what earlier ones found: journals, and files of winners.

A file of winners has a line for each variant, the best first, behind one that says where they come from and how many
lines follow:

    {"schema": 1, "event": "winners", "platform", "tensorop", "date", "made", "lines"}
    {"schema": 1, "event": "winner", "operator", "dtype", "template", "point": {...}}

Shipped ones and those of plug-in folders are `platforms/winners/*.jsonl`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import JobError, TensoropError, UsageError
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.trial import Stage
from tensorop.model.winner import Known, WarmStart
from tensorop.render import instantiate
from tensorop.search import trials
from tensorop.space import Space, seeds
from tensorop.specs import jsontext, platforms
from tensorop.store import journal
from tensorop.store.history import History
from tensorop.store.records import point_of

SCHEMA = 1
FOLDER = "winners"
NOTE = "warm start"  # of a journal: what its run began with
AUTO, NONE = "auto", "none"  # wishes; any other is a path
MOST = 12  # variants of a dtype that are tried however little time there is
_HEAD = ("platform", "tensorop", "date", "made")


@dataclass(frozen=True)
class Source:
    """What a journal or a file of winners tells. name: said to the user; remark: what was odd in reading it.
    known: by operator and dtype, the best first"""

    path: Path
    name: str
    platform: str
    known: Mapping[tuple[str, str], Sequence[Known]]
    remark: str = ""


def read(job: Job) -> tuple[list[Source], list[str]]:
    """What the job's `warm_start` names, and a sentence for each file that is of no use. Raises UsageError for a path
    that does not exist."""
    found, remarks = [], []
    for path in _files(job):
        try:
            source = _journal(path) if _is_journal(path) else winners(path)
        except TensoropError as error:
            remarks.append(f"no warm start: {error.message}")
            continue
        found.append(source)
        remarks += [source.remark] if source.remark else []
    if not found and not remarks and job.warm_start not in (AUTO, NONE):
        remarks.append(f"no warm start: {job.warm_start} holds no journal; expected a product's folder or *.jsonl")
    return found, remarks


def nearest(sources: Iterable[Source], job: Job, operator: Operator, platform: Platform, dtype: str) -> list[Source]:
    """Those whose whole variants are of this operator, dtype and platform, or else of the nearest of its ancestors, or
    else the one of the platform most like it that has its primitives; of files that the user names all."""
    whole = [s for s in sources if any(_is_whole(k, operator) for k in s.known.get((operator.name, dtype), ()))]
    if job.warm_start not in (AUTO, NONE):
        return whole
    level = next((name for name in platform.lineage if any(s.platform == name for s in whole)), None)
    if level is not None:
        return [source for source in whole if source.platform == level]
    unlike = sorted((_unlike(source, job, platform), number) for number, source in enumerate(whole))
    return [whole[number] for (other_words, *_), number in unlike[:1] if not other_words]


def surely(sources: Sequence[Source], job: Job, operator: Operator, platform: Platform, dtype: str) -> int:
    """How many variants a dtype's search is to try however little time there is."""
    near = nearest(sources, job, operator, platform, dtype)
    return min(MOST, sum(len(source.known[operator.name, dtype]) for source in near))


def begin(
    sources: Sequence[Source], job: Job, operator: Operator, platform: Platform, templates: Sequence[KernelTemplate]
) -> tuple[dict[str, WarmStart], list[str], list[str]]:
    """By dtype where its search begins; a sentence for what is used, and for each file of the user that is not.

    What another platform or dtype found and is not legal here is taken to the nearest legal point.
    """
    by_dtype, used, unused = {}, [], {source.path: source for source in sources}
    for dtype in job.dtypes:
        fit = _Fit(operator, platform, templates, dtype)
        near = nearest(sources, job, operator, platform, dtype)
        sure: dict[Known, None] = {}
        hints: dict[Known, None] = {}
        for source, of_dtype in [*((source, dtype) for source in near), *_ranked(sources, near, job, platform, dtype)]:
            strange = source.platform not in platform.lineage or of_dtype != dtype
            of = [known for name in _operators(operator) for known in source.known.get((name, of_dtype), ())]
            own = source in near and of_dtype == dtype
            if strange and not own and len(hints) >= MOST:
                continue
            legal = [found for known in of if (found := fit.of(known, strange, own)) is not None]
            first = [known for known in legal if own and _is_whole(known, operator)][: MOST - len(sure)]
            sure |= dict.fromkeys(first)
            if first:
                scaled = len(set(first) - set(of))
                more = f", {scaled} of them scaled" if scaled else ""
                used.append(f"{dtype}: {len(first)} first configurations of {source.name}{more}")
            hints |= dict.fromkeys(known for known in legal if known not in sure)
            if legal:
                unused.pop(source.path, None)
        if hints and not sure:
            used.append(
                f"{dtype}: no whole winner; {len(hints)} configurations of other platforms, dtypes and operators"
            )
        by_dtype[dtype] = WarmStart(tuple(sure), tuple(hints))
    odd = unused.values() if job.warm_start != AUTO else ()
    return by_dtype, used, [f"no warm start: {_unused(source, job, operator, platform)}" for source in odd]


def winners(path: Path) -> Source:
    """A file of winners. Raises UsageError with file, place and what was expected."""
    try:
        lines = path.read_bytes().split(b"\n")
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror or error}") from None
    known: dict[tuple[str, str], list[Known]] = {}
    head: dict[str, Any] = {}
    for number, line in enumerate(lines[:-1], 1):  # what follows the last newline was cut
        try:
            record = jsontext.loads(line)
            if record["event"] != ("winner" if head else "winners"):
                raise ValueError(f"the event {record['event']!r:.40}")
            if record["schema"] != SCHEMA:
                raise ValueError(f"schema {record['schema']!r:.40}; this version reads {SCHEMA}")
            if not head:
                head = {name: str(record[name]) for name in _HEAD} | {"lines": int(record["lines"])}
                continue
            of = known.setdefault((str(record["operator"]), str(record["dtype"])), [])
            of.append(Known(str(record["template"]), point_of(record["point"])))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            expected = "a journal, or a file of winners (docs/warm-start.md)"
            raise UsageError(f"{path}, line {number}: {type(error).__name__} {error}; expected {expected}") from None
    if not head:
        raise UsageError(f"{path}: no whole line; expected a journal, or a file of winners (docs/warm-start.md)")
    read = sum(map(len, known.values()))
    cut = f"{path} is cut off: {read} of its {head['lines']} winners are there" if read != head["lines"] else ""
    return Source(path, f"the winners of {head['platform']} of {head['date']}", head["platform"], known, cut)


def of_history(history: History) -> dict[tuple[str, str], list[Known]]:
    """A journal's best variants: of each dtype the few that do best together, and the best on the smallest problems."""
    operator = str(history.facts["operator"])
    found = {}
    for dtype in history.facts["dtypes"]:
        ended = {f.trial.variant.id: f for f in history.ended((Stage.BLOCKING, dtype, 0)) if f.outcome.ok}
        costs = {
            name: {(p, v): c for p, s in f.score.per_problem.items() for v, c in (s.by_vlen or {0: s.value}).items()}
            for name, f in ended.items()
        }
        whole = [ended[name].trial.variant for name in trials.choose(costs)]
        small = [f for f in history.ended((Stage.SMALLEST, dtype, 0)) if f.outcome.ok and f.score.cost]
        best = [min(small, key=lambda f: f.score.cost or 0.0).trial.variant] if small else []
        found[operator, str(dtype)] = [Known(variant.template.name, variant.point) for variant in (*whole, *best)]
    return found


def lines(head: Mapping[str, str], known: Mapping[tuple[str, str], Sequence[Known]]) -> Iterator[str]:
    """The lines of a file of winners."""
    yield json.dumps({"schema": SCHEMA, "event": "winners", **head, "lines": sum(map(len, known.values()))})
    for (operator, dtype), of in known.items():
        for one in of:
            record = {"operator": operator, "dtype": dtype, "template": one.template, "point": dict(one.point)}
            yield json.dumps({"schema": SCHEMA, "event": "winner", **record})


def to_json(by_dtype: Mapping[str, WarmStart]) -> dict[str, Any]:
    """For the journal, which a run that goes on begins by."""

    def plain(of: Iterable[Known]) -> list[Any]:
        return [[known.template, dict(known.point)] for known in of]

    return {dtype: {name: plain(of) for name, of in vars(one).items()} for dtype, one in by_dtype.items()}


def of_journal(history: History, path: Path) -> dict[str, WarmStart] | None:
    """What a run that goes on began with; None where it had not begun. Raises JobError for a note that is none."""
    noted = [data for name, data in history.notes if name == NOTE]

    def known(of: Iterable[Any]) -> tuple[Known, ...]:
        return tuple(Known(str(template), point_of(point)) for template, point in of)

    try:
        by_dtype = noted[-1]["begins"].items() if noted else None
        return by_dtype and {dtype: WarmStart(known(one["sure"]), known(one["hints"])) for dtype, one in by_dtype}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobError(f"{path}: its note '{NOTE}' was changed: {error}", hint=journal.START_OVER) from error


def _files(job: Job) -> Iterator[Path]:
    if job.warm_start == AUTO:
        earlier = journal.journal_path(job.out)
        yield from [earlier] if job.fresh and earlier.is_file() else []
        for folder in paths.plugin_dirs("platforms", job.plugins):
            yield from sorted((folder / FOLDER).glob("*.jsonl"))
    elif job.warm_start != NONE:
        path = Path(job.warm_start)
        if not path.exists():
            raise UsageError(
                f"--warm-start {path}: there is no such file", hint="give auto, none, a journal or a product's folder"
            )
        inside = journal.journal_path(path)
        if path.is_file() or inside.is_file():
            yield inside if inside.is_file() else path
        else:
            yield from sorted({*path.glob("*.jsonl"), *path.glob(str(journal.journal_path(Path("*"))))})


def _is_journal(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            record = jsontext.loads(file.readline(1 << 20))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("event") == "run"


def _journal(path: Path) -> Source:
    history = journal.load(path)
    facts = history.facts
    try:
        return Source(path, f"{facts['platform']}'s journal", str(facts["platform"]), of_history(history))
    except (KeyError, TypeError) as error:
        raise JobError(f"{path}, line 1: no {error}; expected the facts of a run") from None


def _operators(operator: Operator) -> list[str]:
    """Those whose templates serve it."""
    return [folder.name for folder in operator.templates]


def _is_whole(known: Known, operator: Operator) -> bool:
    """Whether it says how the operator is blocked, or needs not say it."""
    return any(name in known.point for name in operator.blocking.values)


def _ranked(
    sources: Sequence[Source], near: Sequence[Source], job: Job, platform: Platform, dtype: str
) -> list[tuple[Source, str]]:
    """Other sources and dtypes, those first that are most like what is searched; of files that the user names that
    dtype alone."""
    pairs = [(source, of) for source in sources for of in dict.fromkeys(of for _, of in source.known)]
    if job.warm_start != AUTO:
        return [(source, of) for source, of in pairs if of == dtype and source not in near]
    unlike = {source.path: _unlike(source, job, platform) for source in sources}
    generation = {name: number for number, name in enumerate(platform.lineage)}

    def far(pair: tuple[Source, str]) -> tuple[Any, ...]:
        source, of = pair
        return (generation.get(source.platform, len(generation)), of != dtype, unlike[source.path])

    return sorted(((source, of) for source, of in pairs if of != dtype or source not in near), key=far)


def _unlike(source: Source, job: Job, platform: Platform) -> tuple[bool, float, float]:
    """How far a source's platform is from this one: other primitives, octaves of vector length, octaves of caches."""
    try:
        other = platforms.load(source.platform, job.plugins)
    except TensoropError:
        return (True, math.inf, math.inf)
    vlens = [math.log2(of.vlens[len(of.vlens) // 2]) for of in (other, platform)]
    caches = [
        abs(math.log2(other.caches[level].size / cache.size))
        for level, cache in platform.caches.items()
        if level in other.caches
    ]
    return (other.primitives[0].name != platform.primitives[0].name, abs(vlens[0] - vlens[1]), sum(caches))


class _Fit:
    """Variants that others found as legal ones of one platform and dtype."""

    def __init__(self, operator: Operator, platform: Platform, templates: Sequence[KernelTemplate], dtype: str) -> None:
        self._operator, self._platform, self._dtype = operator, platform, dtype
        self._templates = {d.name: d for d in templates if not instantiate.missing_primitives(platform, d, dtype)}
        self._spaces: dict[str, Space | None] = {}

    def of(self, known: Known, scaled: bool, whole: bool) -> Known | None:
        """The variant itself where its configuration is legal; where it is not and may be scaled the nearest legal one,
        with its blocking where that is asked for as a whole."""
        template, space = self._templates.get(known.template), self._space(known.template)
        if template is None or space is None:
            return None
        names = {*dict(space.dimensions), *self._operator.blocking.values}
        legal = seeds.named([known], template, space) if names.issuperset(known.point) else []
        if not scaled:
            return known if legal else None
        point = legal[0] if legal else space.nearest(known.point)
        if not whole or not _is_whole(known, self._operator):
            return Known(template.name, point)
        try:
            kernel = Kernel(template, self._dtype, point)
            blocks = instantiate.blocking_space(self._operator, self._platform, kernel).nearest(known.point)
        except TensoropError:  # a tile that no blocking fits
            return None
        return Known(template.name, Point.of({**point, **blocks}))

    def _space(self, template: str) -> Space | None:
        if template in self._templates and template not in self._spaces:
            try:
                self._spaces[template] = instantiate.micro_space(self._platform, self._templates[template], self._dtype)
            except TensoropError:  # no point of it is legal here
                self._spaces[template] = None
        return self._spaces.get(template)


def _unused(source: Source, job: Job, operator: Operator, platform: Platform) -> str:
    there = sorted({f"{name} {dtype}" for name, dtype in source.known})
    wanted = ", ".join(job.dtypes)
    if not any(name in _operators(operator) and dtype in job.dtypes for name, dtype in source.known):
        return f"{source.path} has winners of {', '.join(there) or 'nothing'}; expected {operator.name} {wanted}"
    return f"{source.path}: none of its variants of {operator.name} is legal on {platform.name}"
