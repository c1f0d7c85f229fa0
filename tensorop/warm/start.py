"""Chooses the starting points of a search from earlier searches' winners."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tensorop.author import offline
from tensorop.errors import JobError, SpecError, TensoropError
from tensorop.model.expression import parse
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel, KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.winner import DtypeRecord, StartPoint, WarmStart, asked, trees_of
from tensorop.render import instantiate
from tensorop.space import Space, seeds
from tensorop.specs import platforms
from tensorop.store import journal
from tensorop.store.history import History
from tensorop.store.records import point_of
from tensorop.warm.reading import AUTO, NONE, WarmSource

NOTE = "warm start"  # journal note: the starting points of the run
MOST = 12  # variants of a dtype that are tried even without time


def nearest(
    sources: Iterable[WarmSource], job: Job, operator: Operator, platform: Platform, dtype: str
) -> list[WarmSource]:
    """The sources whose complete variants are used.

    These are the sources of this operator, dtype and platform; else of its nearest ancestor; else of the most similar
    platform with the same primitives. Files that the user names are all used.
    """
    of = operator.folder.name, dtype
    whole = [s for s in sources if of in s.choices or any(is_whole(known, operator) for known in s.known.get(of, ()))]
    if job.warm_start not in (AUTO, NONE):
        return whole
    level = next((name for name in platform.lineage if any(s.platform == name for s in whole)), None)
    if level is not None:
        return [source for source in whole if source.platform == level]
    unlike = sorted((_unlike(source, job, platform), number) for number, source in enumerate(whole))
    return [whole[number] for (other_words, *_), number in unlike[:1] if not other_words]


def surely(sources: Sequence[WarmSource], job: Job, operator: Operator, platform: Platform, dtype: str) -> int:
    """Number of variants that a dtype's search tries even without time."""
    near = nearest(sources, job, operator, platform, dtype)
    return min(MOST, sum(len(source.known.get((operator.folder.name, dtype), ())) for source in near))


def begin(
    sources: Sequence[WarmSource], job: Job, operator: Operator, platform: Platform, templates: Sequence[KernelTemplate]
) -> tuple[dict[str, WarmStart], list[str], list[str]]:
    """Dtype -> starting points; and a line for the user about used sources and each unused file.

    A winner of another platform or dtype that is not legal here is moved to the nearest legal point.
    """
    by_dtype, used, unused = {}, [], {source.path: source for source in sources}
    for dtype in job.dtypes:
        fit = _Fit(operator, platform, templates, dtype)
        near = nearest(sources, job, operator, platform, dtype)
        sure: dict[StartPoint, None] = {}
        hints: dict[StartPoint, None] = {}
        for source, of_dtype in [*((source, dtype) for source in near), *_ranked(sources, near, job, platform, dtype)]:
            foreign = source.platform not in platform.lineage or of_dtype != dtype
            of = [known for name in _operators(operator) for known in source.known.get((name, of_dtype), ())]
            own = source in near and of_dtype == dtype
            if foreign and not own and len(hints) >= MOST:
                continue
            legal = [found for known in of if (found := fit.of(known, foreign, own)) is not None]
            first = [known for known in legal if own and is_whole(known, operator)][: MOST - len(sure)]
            sure |= dict.fromkeys(first)
            if first and not job.no_search:
                scaled = len(set(first) - set(of))
                more = f", {scaled} of them scaled to this platform" if scaled else ""
                used.append(f"{dtype}: the search starts with {len(first)} configurations of {source.name}{more}")
            hints |= dict.fromkeys(known for known in legal if known not in sure)
            if legal:
                unused.pop(source.path, None)
        choice = next((given for source in near if (given := fit.choice(source)) is not None), None)
        runs = [str(source.path) for source in near if source.is_run and source.platform == platform.name]
        by_dtype[dtype] = WarmStart(tuple(sure), tuple(hints), choice, None if choice or not runs else runs[0])
        if job.no_search:
            used.append(f"{dtype}: {_without_search(near, operator, platform, by_dtype[dtype])}")
        elif hints and not sure:
            used.append(
                f"{dtype}: no tuned configuration is known for this platform; the search uses {len(hints)} of other "
                "platforms, dtypes and operators as hints"
            )
    named = unused.values() if job.warm_start != AUTO else ()
    return (
        by_dtype,
        used,
        [f"--warm-start has no effect: {_unused(source, job, operator, platform)}" for source in named],
    )


def to_json(by_dtype: Mapping[str, WarmStart]) -> dict[str, object]:
    """The starting points as a journal note, which a resumed run reads."""

    def plain(of: Iterable[StartPoint]) -> list[object]:
        return [[known.template, dict(known.point)] for known in of]

    return {dtype: {**vars(one), "sure": plain(one.sure), "hints": plain(one.hints)} for dtype, one in by_dtype.items()}


def of_json(record: Mapping[str, Any]) -> dict[str, WarmStart]:
    """The starting points of a record of `to_json`. Raises KeyError, TypeError, ValueError or AttributeError."""

    def known(of: Iterable[Any]) -> tuple[StartPoint, ...]:
        return tuple(StartPoint(str(template), point_of(point)) for template, point in of)

    return {
        dtype: WarmStart(known(one["sure"]), known(one["hints"]), one.get("choice"), one.get("journal"))
        for dtype, one in record.items()
    }


def of_journal(history: History, path: Path) -> dict[str, WarmStart] | None:
    """The starting points of a resumed run; None for a new run. Raises JobError for a damaged note."""
    noted = [data for name, data in history.notes if name == NOTE]
    try:
        return of_json(noted[-1]["begins"]) if noted else None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise JobError(f"{path}: its note '{NOTE}' is invalid: {error}", hint=journal.START_OVER) from error


def _without_search(near: Sequence[WarmSource], operator: Operator, platform: Platform, begun: WarmStart) -> str:
    """A line about the variants of a library without a search."""
    names = " and of ".join(source.name for source in near)
    if begun.choice is not None:
        return f"the library has {len(begun.choice['variants'])} variants of {names}, and their choice"
    if begun.journal is not None:
        return f"the library has the best variants of {begun.journal}, and its measurements choose"
    if begun.sure:
        return f"the library has up to {len(begun.sure)} configurations of {names}; expected costs choose among them"
    return (
        f"no tuned configuration of {operator.name} is known for {platform.name}; the library has the first expected "
        "kernel of each template with the default blocking, and a search makes it faster"
    )


def _operators(operator: Operator) -> list[str]:
    """The winners whose templates exist here."""
    return [folder.name for folder in operator.templates]


def _ranked(
    sources: Sequence[WarmSource], near: Sequence[WarmSource], job: Job, platform: Platform, dtype: str
) -> list[tuple[WarmSource, str]]:
    """Other sources and dtypes, the most similar first; of files that the user names, the same dtype only."""
    pairs = [(source, of) for source in sources for of in dict.fromkeys(of for _, of in source.known)]
    if job.warm_start != AUTO:
        return [(source, of) for source, of in pairs if of == dtype and source not in near]
    unlike = {source.path: _unlike(source, job, platform) for source in sources}
    generation = {name: number for number, name in enumerate(platform.lineage)}

    def far(pair: tuple[WarmSource, str]) -> tuple[Any, ...]:
        source, of = pair
        return (generation.get(source.platform, len(generation)), of != dtype, unlike[source.path])

    return sorted(((source, of) for source, of in pairs if of != dtype or source not in near), key=far)


def _unlike(source: WarmSource, job: Job, platform: Platform) -> tuple[bool, float, float]:
    """Distance of a source's platform: other primitives, then octaves of vector length, then of cache sizes."""
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


def _unused(source: WarmSource, job: Job, operator: Operator, platform: Platform) -> str:
    there = sorted({f"{name} {dtype}" for name, dtype in source.known})
    wanted = ", ".join(job.dtypes)
    if not any(name in _operators(operator) and dtype in job.dtypes for name, dtype in source.known):
        have = ", ".join(there) or "nothing"
        return f"{source.path} has configurations of {have}; expected {operator.name} {wanted}"
    return f"no configuration of {operator.name} in {source.path} is legal on {platform.name}"


def variant_of(
    operator: Operator, platform: Platform, dtype: str, templates: Mapping[str, KernelTemplate], known: StartPoint
) -> Variant | None:
    """The variant of a starting point; None if its template is missing or its values are not legal here."""
    if (template := templates.get(known.template)) is None:
        return None
    try:
        found = seeds.named([known], template, instantiate.micro_space(platform, template, dtype))
        if not found or template.name == offline.DIRECT:
            return Variant(Kernel(template, dtype, found[0])) if found else None
        kernel = Kernel(template, dtype, found[0])
        blocks = seeds.blockings([known], kernel, instantiate.blocking_space(operator, platform, kernel))
    except TensoropError:  # no point is legal
        return None
    return Variant(kernel, blocks[0]) if blocks else None


def is_whole(known: StartPoint, operator: Operator) -> bool:
    """Whether the winner has a complete blocking, or needs none."""
    return any(name in known.point for name in operator.blocking.values)


class _Fit:
    """Adapts winners of other searches to one platform and dtype."""

    def __init__(self, operator: Operator, platform: Platform, templates: Sequence[KernelTemplate], dtype: str) -> None:
        self._operator, self._platform, self._dtype = operator, platform, dtype
        self._templates = {d.name: d for d in templates if not instantiate.missing_primitives(platform, d, dtype)}
        self._spaces: dict[str, Space | None] = {}

    def of(self, known: StartPoint, scaled: bool, whole: bool) -> StartPoint | None:
        """The variant if its configuration is legal; else, if it may be scaled, the nearest legal one.

        A complete variant (`whole`) keeps its blocking.
        """
        template, space = self._templates.get(known.template), self._space(known.template)
        if template is None or space is None:
            return None
        names = {*dict(space.dimensions), *self._operator.blocking.values}
        legal = seeds.named([known], template, space) if names.issuperset(known.point) else []
        if not scaled:
            return known if legal else None
        point = legal[0] if legal else space.nearest(known.point)
        if not whole or not is_whole(known, self._operator):
            return StartPoint(template.name, point)
        try:
            kernel = Kernel(template, self._dtype, point)
            blocks = instantiate.blocking_space(self._operator, self._platform, kernel).nearest(known.point)
        except TensoropError:  # no blocking fits the tile
            return None
        return StartPoint(template.name, Point.of({**point, **blocks}))

    def choice(self, source: WarmSource) -> DtypeRecord | None:
        """The choice of a source for this platform or an ancestor, if its variants and trees are legal here."""
        found = source.choices.get((self._operator.folder.name, self._dtype))
        if found is None or source.platform not in self._platform.lineage:
            return None
        points = [StartPoint(one["template"], Point.of(one["point"])) for one in found["variants"]]
        here = self._operator, self._platform, self._dtype, self._templates
        names = ["" if (made := variant_of(*here, point)) is None else made.template.name for point in points]
        features = {feature for tree in trees_of(found) for feature in asked(tree.root)}
        direct = offline.DIRECT in names[:-1] or names == [offline.DIRECT]
        return None if "" in names or direct or not all(map(self._may_ask, features)) else found

    def _may_ask(self, feature: str) -> bool:
        """Whether a tree may ask for a feature; a division by zero would end a program that calls the library."""
        if feature in self._operator.features:
            return True
        try:
            return not {"/", "%"} & {*feature} and bool(parse(feature, dict.fromkeys(self._operator.seen, int)))
        except SpecError:
            return False

    def _space(self, template: str) -> Space | None:
        if template in self._templates and template not in self._spaces:
            try:
                self._spaces[template] = instantiate.micro_space(self._platform, self._templates[template], self._dtype)
            except TensoropError:  # the template has no legal point here
                self._spaces[template] = None
        return self._spaces.get(template)
