"""Where a search begins by what earlier ones found: journals, and files of winners.

A file of winners has a line for each variant, the best first, behind one that says where they come from and how many
lines follow:

    {"schema": 1, "event": "winners", "platform", "tensorop", "date", "made", "lines"}
    {"schema": 1, "event": "winner", "operator", "dtype", "draft", "point": {...}}

Shipped ones and those of plug-in folders are `platforms/winners/*.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.errors import JobError, TensoropError, UsageError
from tensorop.model.job import Job
from tensorop.model.kernel import Draft
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Stage
from tensorop.model.winner import Known, WarmStart
from tensorop.render import instantiate
from tensorop.search import trials
from tensorop.space import starts
from tensorop.specs import jsontext
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
    """Those whose whole variants are of this operator, dtype and platform, or else of the nearest of its ancestors; of
    files that the user names all."""
    whole = [s for s in sources if any(_is_whole(k, operator) for k in s.known.get((operator.name, dtype), ()))]
    if job.warm_start not in (AUTO, NONE):
        return whole
    level = next((name for name in platform.lineage if any(s.platform == name for s in whole)), None)
    return [source for source in whole if source.platform == level]


def surely(sources: Sequence[Source], job: Job, operator: Operator, platform: Platform, dtype: str) -> int:
    """How many variants a dtype's search is to try however little time there is."""
    near = nearest(sources, job, operator, platform, dtype)
    return min(MOST, sum(len(source.known[operator.name, dtype]) for source in near))


def begin(
    sources: Sequence[Source], job: Job, operator: Operator, platform: Platform, drafts: Sequence[Draft]
) -> tuple[dict[str, WarmStart], list[str], list[str]]:
    """By dtype where its search begins; a sentence for what is used, and for each file of the user that is not."""
    by_dtype, used, unused = {}, [], {source.path: source for source in sources}
    for dtype in job.dtypes:
        near = nearest(sources, job, operator, platform, dtype)
        sure: dict[Known, None] = {}
        hints: dict[Known, None] = {}
        for source in [*near, *(source for source in sources if source not in near)]:
            of = [known for name in _operators(operator) for known in source.known.get((name, dtype), ())]
            legal = [known for known in of if _is_legal(known, platform, drafts, dtype)]
            room = MOST - len(sure) if source in near else 0
            own = [known for known in legal if _is_whole(known, operator)][:room]
            sure |= dict.fromkeys(own)
            if own:
                used.append(f"{dtype}: {len(own)} first configurations of {source.name}")
            if source in near or source.platform in platform.lineage or job.warm_start != AUTO:
                hints |= dict.fromkeys(known for known in legal if known not in sure)
            if legal:
                unused.pop(source.path, None)
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
            of.append(Known(str(record["draft"]), point_of(record["point"])))
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
        found[operator, str(dtype)] = [Known(variant.draft.name, variant.point) for variant in (*whole, *best)]
    return found


def lines(head: Mapping[str, str], known: Mapping[tuple[str, str], Sequence[Known]]) -> Iterator[str]:
    """The lines of a file of winners."""
    yield json.dumps({"schema": SCHEMA, "event": "winners", **head, "lines": sum(map(len, known.values()))})
    for (operator, dtype), of in known.items():
        for one in of:
            record = {"operator": operator, "dtype": dtype, "draft": one.draft, "point": dict(one.point)}
            yield json.dumps({"schema": SCHEMA, "event": "winner", **record})


def to_json(by_dtype: Mapping[str, WarmStart]) -> dict[str, Any]:
    """For the journal, which a run that goes on begins by."""

    def plain(of: Iterable[Known]) -> list[Any]:
        return [[known.draft, dict(known.point)] for known in of]

    return {dtype: {"sure": plain(one.sure), "hints": plain(one.hints)} for dtype, one in by_dtype.items()}


def of_json(data: Mapping[str, Any]) -> dict[str, WarmStart]:
    def known(of: Iterable[Any]) -> tuple[Known, ...]:
        return tuple(Known(draft, point_of(point)) for draft, point in of)

    return {dtype: WarmStart(known(one["sure"]), known(one["hints"])) for dtype, one in data.items()}


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
    """Those whose drafts serve it."""
    return [folder.name for folder in operator.templates]


def _is_whole(known: Known, operator: Operator) -> bool:
    """Whether it says how the operator is blocked, or needs not say it."""
    return any(name in known.point for name in operator.blocking.values)


def _is_legal(known: Known, platform: Platform, drafts: Sequence[Draft], dtype: str) -> bool:
    draft = next((draft for draft in drafts if draft.name == known.draft), None)
    if draft is None or instantiate.missing_words(platform, draft, dtype):
        return False
    try:
        return bool(starts.named([known], draft, instantiate.micro_space(platform, draft, dtype)))
    except TensoropError:
        return False  # no point of the draft is legal here


def _unused(source: Source, job: Job, operator: Operator, platform: Platform) -> str:
    there = sorted({f"{name} {dtype}" for name, dtype in source.known})
    wanted = ", ".join(job.dtypes)
    if not any(name in _operators(operator) and dtype in job.dtypes for name, dtype in source.known):
        return f"{source.path} has winners of {', '.join(there) or 'nothing'}; expected {operator.name} {wanted}"
    return f"{source.path}: none of its variants of {operator.name} is legal on {platform.name}"
