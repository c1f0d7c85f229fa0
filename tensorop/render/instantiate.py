"""A template on a platform: its legal points, and the C of a candidate at one of them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace

from tensorop import __version__
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Kernel, KernelTemplate, KernelText, Source, Variant
from tensorop.model.number import NUMBERS
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point, Value
from tensorop.model.primitive import Primitive, Primitives
from tensorop.render import render, words
from tensorop.space import Space

KERNEL = "kernel.c.j2"  # of an operator: the tiles of one micro-kernel
LANES = "lanes"  # as a call, in a kernel's text: elements in a vector
_NUMERIC = re.compile(r"[0-9 +*/()-]+")


def facts(platform: Platform, dtype: str, chosen: Mapping[str, Value]) -> dict[str, int]:
    """What constraints may name beside tunables: registers, lanes (smallest VLEN), size, storage_size,
    accumulator_size, widened, l1, l2, l3 (and further levels a platform has), streams, settings.

    size, storage_size, accumulator_size: bytes of an element of A or B as kernels read it and as callers store it, and
    of C;
    widened: 1 where packing changes the operands' number format. Cache sizes are one core's share in bytes; a level
    that is absent repeats the one below.
    """
    formats = platform.formats(dtype)
    settings = {key: int(chosen.get(key, options[0])) for key, options in platform.settings.items()}
    levels: dict[str, int] = {}
    last = 32 << 10
    for level in dict.fromkeys(("l1", "l2", "l3", *platform.caches)):
        cache = platform.caches.get(level)
        last = max(cache.size // cache.shared_by, last) if cache else last
        levels[level] = last
    return {
        "lmul": 1,
        **settings,
        **levels,
        "registers": platform.registers,
        "streams": platform.streams,
        "size": NUMBERS[formats.compute].size,
        "storage_size": NUMBERS[formats.storage].size,
        "accumulator_size": NUMBERS[formats.accumulator].size,
        "widened": int(formats.widened),
        "lanes": platform.leading(dtype).lanes(dtype, settings, platform.vlens[0]),
    }


def defaults(operator: Operator, platform: Platform, dtype: str, point: Point) -> Point:
    """The point with the blocking's defaults for what it leaves open."""
    values = {**facts(platform, dtype, point), **point}
    filled = {name: evaluate(text, values) for name, text in operator.defaults.items() if name not in point}
    return Point.of({**filled, **point})


def variant(operator: Operator, template: KernelTemplate, dtype: str, point: Mapping[str, Value]) -> Variant:
    """A template at a point of its own and the blocking's tunables."""
    blocking = {name: value for name, value in point.items() if name in operator.blocking.values}
    own = {name: value for name, value in point.items() if name not in blocking}
    return Variant(Kernel(template, dtype, Point.of(own)), Point.of(blocking))


@dataclass(frozen=True)
class TemplateNames:
    """What templates may name of one kernel, beside facts, tunables and primitives. No tunable may have such a name."""

    ident: str  # what the kernel's functions are called
    is_edge: bool  # the text is rendered again on the shortest vectors, for edges
    dtype: str
    prefix: str  # of the dtype's functions
    element: str  # C types: of the accumulator and its vectors, of operands in memory, as packing leaves them
    vector: str
    storage: str
    storage_vector: str
    compute: str
    compute_vector: str
    predicate: str
    lanes: str  # elements in a vector, as C
    masked: bool
    group: int  # elements along k that one multiply-add takes
    whole: bool  # elements of the result are whole numbers
    headers: Sequence[str]
    support: str  # C that primitives need
    template: Mapping[str, object]  # its name, strategy and author, and how it reads operands
    point: str
    platform_name: str
    tool_version: str
    primitive_sets: str

    @staticmethod
    def of(platform: Platform, variant: Variant, full: Point) -> TemplateNames:
        """Those of a kernel within its operator. full: with the blocking's defaults."""
        template, dtype = variant.template, variant.kernel.dtype
        primitives = platform.primitives_of(dtype, variant.point)
        return TemplateNames(
            ident=ident(platform, variant.kernel),
            is_edge=False,
            dtype=dtype,
            prefix=dtype,
            element=primitives.element,
            vector=primitives.vector,
            storage=primitives.storage,
            storage_vector=primitives.storage_vector,
            compute=primitives.compute,
            compute_vector=primitives.compute_vector,
            predicate=primitives.predicate,
            lanes=primitives.lanes,
            masked=primitives.masked,
            group=primitives.formats.group,
            whole=NUMBERS[primitives.formats.accumulator].whole,
            headers=primitives.headers,
            support=primitives.support,
            template={
                "name": template.name,
                "strategy": template.strategy,
                "author": template.author,
                "reads": dict(template.reads),
            },
            point=str(full),
            platform_name=platform.name,
            tool_version=__version__,
            primitive_sets=", ".join(sorted(set(primitives.sources.values()))),
        )


# what templates around a kernel and those of a product are given beside
_AROUND = """
kernel edge micro use uses entries specialisations trees direct driver_file suffix label number symbol written_for
variants types dtypes arch by_vlen card_literal card_marker_length refuse
"""
_GIVEN = frozenset((*(field.name for field in fields(TemplateNames)), *_AROUND.split()))


def template_names(operator: Operator, platform: Platform, variant: Variant) -> dict[str, object]:
    """All that an operator's own templates may name of a kernel but primitives: facts, tunables, `TemplateNames`."""
    platform = platform.at(variant.kernel.vlen)
    full = defaults(operator, platform, variant.kernel.dtype, variant.point)
    return {
        **facts(platform, variant.kernel.dtype, variant.point),
        **{name: words.value(name, chosen) for name, chosen in full.items()},
        **vars(TemplateNames.of(platform, variant, full)),
    }


def ident(platform: Platform, kernel: Kernel) -> str:
    """What the functions of a kernel are called, in trials and in products alike: set, dtype, template, four digits of
    its configuration, and the VLEN where it is written for one."""
    mark = hashlib.sha256(str(kernel.configuration).encode()).hexdigest()[:4]
    fixed = platform.at(kernel.vlen).fixed_vlen
    at = f"_vlen{fixed}" if fixed else ""
    return words.identifier(f"{platform.leading(kernel.dtype).name}_{kernel.dtype}_{kernel.template.name}_{mark}{at}")


def kernel_contexts(
    operator: Operator, platform: Platform, variant: Variant
) -> tuple[tuple[dict[str, object], Primitives], ...]:
    """What the texts of a kernel may depend on, with the primitives it is expanded by: the kernel's, and the edge
    kernel's where it has one.

    Plain data. Nothing in it tells a trial from a product, or one call's blocking from another's; no C is in it but
    the names of types, and `lanes` is a call where it is no number.
    """
    mine = kernel_context(operator, platform, variant)
    found = narrow(platform, variant.kernel)
    if found is None:
        return (mine,)
    edge, primitives = kernel_context(operator, platform, replace(variant, kernel=found))
    return mine, ({**edge, "ident": f"{mine[0]['ident']}_edge", "is_edge": True}, primitives)


def kernel_context(operator: Operator, platform: Platform, variant: Variant) -> tuple[dict[str, object], Primitives]:
    """One of them."""
    kernel = variant.kernel
    names = template_names(operator, platform, variant)
    for name in (*operator.runtime, "headers", "support"):
        names.pop(name, None)
    if not _NUMERIC.fullmatch(str(names["lanes"])):
        names["lanes"] = f"{LANES}()"
    names["point"] = str(kernel.configuration)
    return words.encoded(names), platform.at(kernel.vlen).primitives_of(kernel.dtype, kernel.configuration)


def given(platform: Platform, dtype: str) -> frozenset[str]:
    """What no tunable may be called: whoever reads the name in a template means something else."""
    return _GIVEN | facts(platform, dtype, {}).keys()


def reserved(operator: Operator, platform: Platform, dtype: str) -> frozenset[str]:
    """The same of a template's own tunables."""
    return given(platform, dtype) | operator.blocking.values.keys()


def callables(primitives: Primitives) -> dict[str, Primitive]:
    """What may be called in a kernel's text: the primitives, and the number of lanes."""
    return {**primitives.with_aliases, LANES: Primitive(LANES, primitives.lanes, (), "elem", "lanes")}


def narrow(platform: Platform, kernel: Kernel) -> Kernel | None:
    """The same kernel on the shortest vectors that the settings give, for edges that a long one would half fill.

    None where it has them already, or where the template forbids it.
    """
    platform, own = platform.at(kernel.vlen), kernel.configuration
    found = Point.of({**own, **{name: options[0] for name, options in platform.settings.items() if name in own}})
    known = {**facts(platform, kernel.dtype, found), **found}
    if found == own or not all(evaluate(c.must, known) for c in kernel.template.constraints):
        return None
    return replace(kernel, configuration=found)


def candidate(
    operator: Operator, platform: Platform, variant: Variant, text: KernelText, micro: bool = False
) -> Source:
    """The C of a candidate behind the harness, around a kernel's text: entry 0 the operator, entry 1 its micro-kernel
    alone. micro: of operators that have a `kernel_grid`, entry 2 in the place of entry 0: as entry 1, with the
    operator's parameters. Raises render.RenderError when the operator's template is wrong at this point.
    """
    names = {**around(operator, platform, variant, text), "micro": micro}
    made = render.c_text(render.of_operator(operator.templates), "candidate.c.j2", names)
    return Source((("candidate.c", made), *operator.slots.files), flags=variant.template.flags)


def around(operator: Operator, platform: Platform, variant: Variant, text: KernelText) -> dict[str, object]:
    """The names that templates see around a kernel's text: primitives as functions, `kernel`, its C, and `edge`, the
    edge kernel's `ident`, `lanes`, `support` and C, or None."""
    primitives = platform.at(variant.kernel.vlen).primitives_of(variant.kernel.dtype, variant.point)
    names = {**template_names(operator, platform, variant), **render.functions(primitives)}
    found = narrow(platform, variant.kernel) if text.edge else None
    edge = None
    if found is not None:
        primitives = platform.at(found.vlen).primitives_of(found.dtype, found.configuration)
        edge = {"lanes": primitives.lanes, "support": primitives.support, "kernel": text.edge}
        edge["ident"] = f"{names['ident']}_edge"
    return {**names, "kernel": text.kernel, "edge": edge}


def as_built(operator: Operator, platform: Platform, variant: Variant) -> Variant:
    """A variant without what a call brings it, and with the defaults of the rest of its blocking: what its kernel's
    text and a candidate depend on. All that are alike in this share both, under its id."""
    full = defaults(operator, platform, variant.kernel.dtype, variant.point)
    fixed = (name for name in operator.blocking.values if name in full and name not in operator.runtime)
    return replace(variant, blocking=Point.of({name: full[name] for name in fixed}))


def missing_primitives(platform: Platform, template: KernelTemplate, dtype: str) -> tuple[str, ...]:
    """Primitives the template needs and the platform does not have for this dtype."""
    primitives = platform.primitives_of(dtype).with_aliases
    return tuple(name for name in template.needs if name not in primitives)


def micro_space(platform: Platform, template: KernelTemplate, dtype: str) -> Space:
    """Legal points of a template's own tunables and the primitive set's settings.

    A platform's `tunables` narrow or widen a template's. Raises JobError where no point is legal, with the reasons.
    """
    settings = platform.settings
    dimensions: dict[str, tuple[Value, ...]] = {**settings, **template.tunables}
    dimensions.update({name: values for name, values in platform.tunables.items() if name in dimensions})
    known = facts(platform, dtype, {})
    given = {name: value for name, value in known.items() if name not in dimensions and name != "lanes"}
    # how many lanes there are depends on the settings, so a constraint gets the expression in the name's place
    lanes = f"({platform.leading(dtype).lanes_expression(dtype, platform.fixed_vlen or platform.vlens[0])})"
    constraints = tuple(replace(c, must=re.sub(r"\blanes\b", lanes, c.must)) for c in template.constraints)
    return Space.of(dimensions, constraints, given)


def blocking_space(operator: Operator, platform: Platform, kernel: Kernel) -> Space:
    """Legal blockings for a kernel; constraints may name how it reads, e.g. `reads_a`.

    Raises JobError where there is none, with the reasons.
    """
    values = dict(operator.blocking.values)
    values.update({name: v for name, v in platform.tunables.items() if name in values})
    own = {**kernel.template.read_facts, **kernel.configuration}
    known = {**facts(platform, kernel.dtype, kernel.configuration), **own}
    return Space.of(values, operator.blocking.constraints, known)


def tile(operator: Operator, platform: Platform, kernel: Kernel, vlen: int) -> dict[str, int]:
    """The micro-tile in elements at a VLEN (bits), as the operator names its sides."""
    lanes = platform.at(kernel.vlen).lanes(kernel.dtype, kernel.configuration, vlen)
    return operator.reference.tile(kernel.configuration, lanes, kernel.template.reads)
