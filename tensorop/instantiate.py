"""A draft on a platform: its legal points, and the C of a candidate at one of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensorop import __version__, render, render_apart
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Draft, Source
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.primitive import Vocabulary
from tensorop.space import Space
from tensorop.specs import primitives

KERNEL = "kernel.c.j2"  # of an operator: the tiles of one micro-kernel


def facts(platform: Platform, dtype: str, chosen: Mapping[str, Any], plugins: tuple[Path, ...] = ()) -> dict[str, int]:
    """What constraints may name beside tunables: registers, lanes (smallest VLEN), size, stored_size, sum_size,
    widened, l1, l2, l3, streams, settings.

    size, stored_size, sum_size: bytes of an element of A or B as kernels read it and as callers store it, and of C;
    widened: 1 where packing changes the operands' number format. Cache sizes are one core's share in bytes; a level
    that is absent repeats the one below.
    """
    formats = primitives.formats(platform, dtype, plugins)
    settings = {
        key: int(chosen.get(key, options[0])) for key, options in primitives.settings(platform, plugins).items()
    }
    levels: dict[str, int] = {}
    last = 32 << 10
    for level in ("l1", "l2", "l3"):
        cache = platform.caches.get(level)
        last = max(cache.size // cache.shared_by, last) if cache else last
        levels[level] = last
    return {
        "lmul": 1,
        **settings,
        **levels,
        "registers": platform.registers,
        "streams": platform.streams,
        "size": NUMBERS[formats.packed].size,
        "stored_size": NUMBERS[formats.stored].size,
        "sum_size": NUMBERS[formats.sums].size,
        "widened": int(formats.widened),
        "lanes": primitives.lanes_at(platform, dtype, settings, platform.vlens[0], plugins),
    }


def defaults(operator: Operator, platform: Platform, dtype: str, point: Point, plugins: tuple[Path, ...] = ()) -> Point:
    """The point with the blocking's defaults for what it leaves open."""
    values = {**facts(platform, dtype, point, plugins), **point}
    filled = {name: evaluate(text, values) for name, text in operator.defaults.items() if name not in point}
    return Point.of({**filled, **point})


def vocabulary(platform: Platform, dtype: str, point: Point, plugins: tuple[Path, ...] = ()) -> Vocabulary:
    """The platform's words at the settings a point chose."""
    known = primitives.settings(platform, plugins)
    return primitives.vocabulary(platform, dtype, {k: int(point[k]) for k in known if k in point}, plugins)


def context(
    operator: Operator, platform: Platform, draft: Draft, point: Point, dtype: str, plugins: tuple[Path, ...] = ()
) -> dict[str, Any]:
    """The names an operator's templates see."""
    words = vocabulary(platform, dtype, point, plugins)
    full = defaults(operator, platform, dtype, point, plugins)
    return {
        **{key: value for key, value in facts(platform, dtype, point, plugins).items() if key != "lanes"},
        **dict(full),
        **render.words(words),
        "element": words.element,
        "vector": words.vector,
        "stored": words.stored,
        "packed": words.packed,
        "packed_vector": words.packed_vector,
        "stored_vector": words.stored_vector,
        "group": words.formats.group,
        "whole": NUMBERS[words.formats.sums].whole,
        "predicate": words.predicate,
        "lanes": words.lanes,
        "masked": words.masked,
        "headers": words.headers,
        "support": words.support,
        "dtype": dtype,
        "draft": {"name": draft.name, "strategy": draft.strategy, "author": draft.author, "reads": dict(draft.reads)},
        "point": str(full),
        "platform_name": platform.name,
        "tool_version": __version__,
        "primitive_sets": ", ".join(sorted(set(words.sources.values()))),
    }


def narrow(platform: Platform, draft: Draft, point: Point, dtype: str, plugins: tuple[Path, ...] = ()) -> Point | None:
    """The same kernel on the shortest vectors that the settings give, for edges that a long one would half fill.

    None where the point has them already, or where the draft forbids it.
    """
    least = {name: options[0] for name, options in primitives.settings(platform, plugins).items() if name in point}
    found = Point.of({**point, **least})
    if found == point:
        return None
    known = {**facts(platform, dtype, found, plugins), **found}
    return found if all(evaluate(c.must, known) for c in draft.constraints) else None


def edge(
    operator: Operator,
    platform: Platform,
    draft: Draft,
    point: Point,
    dtype: str,
    names: Mapping[str, Any],
    rendered: Callable[[str, Mapping[str, Any], Vocabulary], str],
    plugins: tuple[Path, ...] = (),
) -> dict[str, Any] | None:
    """What the operator's templates know of the narrow kernel: `ident`, `lanes`, `support` and its C, `kernel`.

    names: the wide kernel's context. rendered: a template with a context, given its vocabulary.
    """
    found = narrow(platform, draft, point, dtype, plugins)
    if found is None or not (operator.folder / KERNEL).is_file():
        return None
    own = {**names, **context(operator, platform, draft, found, dtype, plugins)}
    own |= {"ident": f"{names['ident']}_edge", "is_edge": True}
    text = rendered(KERNEL, own, vocabulary(platform, dtype, found, plugins))
    return {**{name: own[name] for name in ("ident", "lanes", "support")}, "kernel": text}


def candidate(
    operator: Operator, platform: Platform, draft: Draft, point: Point, dtype: str, plugins: tuple[Path, ...] = ()
) -> Source:
    """The C of a candidate behind the harness: entry 0 the operator, entry 1 its micro-kernel alone.

    Raises render.RenderError when the template is wrong at this point.
    """

    def apart(template: str, names: Mapping[str, Any], words: Vocabulary) -> str:
        """A stranger's text may loop or swallow memory."""
        plain = {name: value for name, value in names.items() if name not in words.spoken}
        return render_apart.text(operator.folder, {"draft": draft.text}, template, plain, words)

    rendered = render.renderer(operator.folder, draft.text) if draft.author == "offline" else apart
    names: dict[str, Any] = {"ident": "k0", "prefix": dtype, "is_edge": False}
    names |= context(operator, platform, draft, point, dtype, plugins)
    names["edge"] = edge(operator, platform, draft, point, dtype, names, rendered, plugins)
    text = rendered("candidate.c.j2", names, vocabulary(platform, dtype, point, plugins))
    return Source((("candidate.c", text),))


def vocabularies(
    platform: Platform, draft: Draft, point: Point, dtype: str, plugins: tuple[Path, ...] = ()
) -> tuple[Vocabulary, ...]:
    """What a draft's text may speak at a point: its own words, then its edge kernel's."""
    found = narrow(platform, draft, point, dtype, plugins)
    return tuple(vocabulary(platform, dtype, at, plugins) for at in (point, found) if at is not None)


def missing_words(platform: Platform, draft: Draft, dtype: str, plugins: tuple[Path, ...] = ()) -> tuple[str, ...]:
    """Words the draft needs and the platform does not have for this dtype."""
    words = vocabulary(platform, dtype, Point(()), plugins).spoken
    return tuple(name for name in draft.needs if name not in words)


def micro_space(
    operator: Operator, platform: Platform, draft: Draft, dtype: str, plugins: tuple[Path, ...] = ()
) -> Space:
    """Legal points of a draft's own tunables and the primitive set's settings.

    A platform's `tunables` narrow or widen a draft's. Raises JobError where no point is legal, with the reasons.
    """
    settings = primitives.settings(platform, plugins)
    dimensions: dict[str, tuple[Any, ...]] = {**settings, **draft.tunables}
    dimensions.update({name: values for name, values in platform.tunables.items() if name in dimensions})
    known = facts(platform, dtype, {}, plugins)
    given = {name: value for name, value in known.items() if name not in dimensions and name != "lanes"}
    # how many lanes there are depends on the settings, so a constraint gets the expression in the name's place
    lanes = f"({primitives.lanes_expression(platform, dtype, platform.fixed_vlen or platform.vlens[0], plugins)})"
    constraints = tuple(replace(c, must=re.sub(r"\blanes\b", lanes, c.must)) for c in draft.constraints)
    return Space.of(dimensions, constraints, given)


def blocking_space(
    operator: Operator, platform: Platform, draft: Draft, point: Point, dtype: str, plugins: tuple[Path, ...] = ()
) -> Space:
    """Legal blockings for a draft at a point; constraints may name how it reads, e.g. `reads_a`.

    Raises JobError where there is none, with the reasons.
    """
    values = dict(operator.blocking.values)
    values.update({name: v for name, v in platform.tunables.items() if name in values})
    reads = {f"reads_{name}": how for name, how in draft.reads.items()}
    known = {**facts(platform, dtype, point, plugins), **reads, **point}
    return Space.of(values, operator.blocking.constraints, known)


def tile(
    operator: Operator,
    platform: Platform,
    draft: Draft,
    point: Point,
    dtype: str,
    vlen: int,
    plugins: tuple[Path, ...] = (),
) -> dict[str, int]:
    """The micro-tile in elements at a VLEN (bits), as the operator names its sides."""
    sizes: dict[str, int] = operator.reference.tile(point, lanes(platform, point, dtype, vlen, plugins), draft.reads)
    return sizes


def lanes(platform: Platform, point: Point, dtype: str, vlen: int, plugins: tuple[Path, ...] = ()) -> int:
    """Elements in a vector at a VLEN (bits) and the settings a point chose; a fixed VLEN holds on longer ones too."""
    settings = {key: int(point[key]) for key in primitives.settings(platform, plugins) if key in point}
    return primitives.lanes_at(platform, dtype, settings, platform.fixed_vlen or vlen or platform.vlens[0], plugins)
