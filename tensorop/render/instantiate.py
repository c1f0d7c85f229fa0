"""The legal points of a template on a platform, and the C of a candidate at one of them."""

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

CANDIDATE = "candidate.c.j2"  # an operator's template: a candidate for the harness
# an operator's template: the kernel's part of a candidate, if kernels are compiled apart from the driver
CANDIDATE_KERNEL = "candidate_kernel.c.j2"
KERNEL = "kernel.c.j2"  # an operator's template: the tiles of one micro-kernel
DECIDE = "decide.c.j2"  # an operator's template: the driver's decisions, compiled for this machine
LANES = "lanes"  # the call in a kernel's text that returns the elements in a vector
_NUMERIC = re.compile(r"[0-9 +*/()-]+")


def facts(platform: Platform, dtype: str, chosen: Mapping[str, Value]) -> dict[str, int]:
    """Names that constraints may use besides tunables.

    They are registers, lanes (smallest VLEN), size, storage_size, accumulator_size, widened, l1, l2, l3 (and further
    levels of the platform), streams, and the settings.
    size, storage_size: bytes of an element of A or B, as kernels read it and as callers store it; accumulator_size:
    bytes of an element of C; widened: 1 if packing changes the operands' number format. Cache sizes are one core's
    share in bytes; an absent level repeats the one below.
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
    """The point, with the blocking's defaults for tunables that it leaves open."""
    values = {**facts(platform, dtype, point), **point}
    filled = {name: evaluate(text, values) for name, text in operator.defaults.items() if name not in point}
    return Point.of({**filled, **point})


def starts(operator: Operator, platform: Platform, kernel: Kernel, space: Space) -> list[Point]:
    """The blockings of the operator's `starts` for a kernel, each the nearest of those with the same on-off tunables.

    An expression names the platform's facts, the kernel's numbers, and what stands before it. A start that says on or
    off where the kernel does not have the choice is left out.
    """
    found: list[Point] = []
    for start in operator.starts:
        known: dict[str, Value] = {**facts(platform, kernel.dtype, kernel.configuration), **kernel.configuration}
        for name, text in start.items():
            known[name] = evaluate(text, known)
        wanted = {name: known[name] for name in start}
        switches = {name: wanted[name] for name, values in space.dimensions if len(values) == 2 and name in wanted}
        if space.first(switches) is not None:
            found.append(space.nearest(wanted, switches))
    return list(dict.fromkeys(found))


def variant(operator: Operator, template: KernelTemplate, dtype: str, point: Mapping[str, Value]) -> Variant:
    """A template at a point with its own tunables and the blocking's."""
    blocking = {name: value for name, value in point.items() if name in operator.blocking.values}
    own = {name: value for name, value in point.items() if name not in blocking}
    return Variant(Kernel(template, dtype, Point.of(own)), Point.of(blocking))


_OF_PRIMITIVES = (
    "element", "vector", "storage", "storage_vector", "compute", "compute_vector", "predicate", "lanes", "masked",
    "support",
)  # fmt: skip
_BOOL = re.compile(r"\bbool\b")  # in a text: before C23 it needs a header


@dataclass(frozen=True)
class TemplateNames:
    """Names of one kernel that templates may use besides facts, tunables and primitives. No tunable may have one."""

    ident: str  # name of the kernel's functions
    is_edge: bool  # this text is for edges, on the shortest vectors
    full_tile: bool  # this text has the largest tile alone
    dtype: str
    prefix: str  # of the names of the dtype's functions
    element: str  # C types: of the accumulator and its vectors, of operands in memory, of packed operands
    vector: str
    storage: str
    storage_vector: str
    compute: str
    compute_vector: str
    predicate: str
    lanes: str  # elements in a vector, as C
    masked: bool
    group: int  # elements along k in one multiply-add
    whole: bool  # elements of the result are integers
    headers: Sequence[str]
    support: str  # C that primitives need
    template: Mapping[str, object]  # its name, strategy, author, and reading of operands
    point: str
    platform_name: str
    tool_version: str
    primitive_sets: str

    @staticmethod
    def of(platform: Platform, variant: Variant, full: Point) -> TemplateNames:
        """The names of a kernel within its operator. full: its point with the blocking's defaults."""
        template, dtype = variant.template, variant.kernel.dtype
        primitives = platform.primitives_of(dtype, variant.point)
        return TemplateNames(
            ident=ident(platform, variant.kernel),
            is_edge=False,
            full_tile=False,
            dtype=dtype,
            prefix=dtype,
            group=primitives.formats.group,
            whole=NUMBERS[primitives.formats.accumulator].whole,
            template={name: getattr(template, name) for name in ("name", "strategy", "author", "reads")},
            point=str(full),
            platform_name=platform.name,
            tool_version=__version__,
            primitive_sets=", ".join(sorted(set(primitives.sources.values()))),
            **{name: getattr(primitives, name) for name in _OF_PRIMITIVES},
            headers=(*primitives.headers, *(("stdbool.h",) if _BOOL.search(template.text) else ())),
        )


# further names in templates around a kernel and in those of a product
_AROUND = """
kernel edge micro use uses entries specialisations trees direct driver_file suffix label number symbol written_for
variants types dtypes arch by_vlen card_literal card_marker_length refuse first entry alpha beta interface blocking
"""
_GIVEN = frozenset((*(field.name for field in fields(TemplateNames)), *_AROUND.split()))


def template_names(operator: Operator, platform: Platform, variant: Variant) -> dict[str, object]:
    """All names of a kernel in an operator's templates except primitives: facts, tunables, `TemplateNames`."""
    platform = platform.at(variant.kernel.vlen)
    full = defaults(operator, platform, variant.kernel.dtype, variant.point)
    return {
        **facts(platform, variant.kernel.dtype, variant.point),
        **{name: words.value(name, chosen) for name, chosen in full.items()},
        **vars(TemplateNames.of(platform, variant, full)),
    }


def vectors(platform: Platform, dtype: str) -> dict[str, object]:
    """The names of C without a kernel: facts, types and primitives of the shortest vectors, as functions."""
    primitives = platform.primitives_of(dtype)
    own = {name: getattr(primitives, name) for name in (*_OF_PRIMITIVES, "headers")}
    return {**facts(platform, dtype, {}), **own, **render.functions(primitives)}


def ident(platform: Platform, kernel: Kernel) -> str:
    """The name of a kernel's functions, in trials and in products.

    It has the primitive set, dtype, template, four digits of the configuration's digest, and the VLEN if it is written
    for one.
    """
    mark = hashlib.sha256(str(kernel.configuration).encode()).hexdigest()[:4]
    fixed = platform.at(kernel.vlen).fixed_vlen
    at = f"_vlen{fixed}" if fixed else ""
    return words.identifier(f"{platform.leading(kernel.dtype).name}_{kernel.dtype}_{kernel.template.name}_{mark}{at}")


def kernel_contexts(
    operator: Operator, platform: Platform, variant: Variant
) -> tuple[tuple[dict[str, object], Primitives], ...]:
    """The inputs of a kernel's texts, of the kernel and of the edge kernel if there is one, each with its primitives.

    Inputs are plain data. They are the same for trials and products, and for all blockings that calls set. They contain
    no C except the names of types; `lanes` is a call unless it is a number.
    """
    mine = kernel_context(operator, platform, variant)
    found = narrow(platform, variant.kernel)
    if found is None:
        return (mine,)
    edge, primitives = kernel_context(operator, platform, replace(variant, kernel=found))
    return mine, ({**edge, "ident": f"{mine[0]['ident']}_edge", "is_edge": True}, primitives)


def kernel_context(operator: Operator, platform: Platform, variant: Variant) -> tuple[dict[str, object], Primitives]:
    """The input and primitives of one kernel's text."""
    kernel = variant.kernel
    names = template_names(operator, platform, variant)
    for name in (*set_by_calls(operator, kernel.template), "headers", "support"):
        names.pop(name, None)
    if not _NUMERIC.fullmatch(str(names["lanes"])):
        names["lanes"] = f"{LANES}()"
    names["point"] = str(kernel.configuration)
    return words.encoded(names), platform.at(kernel.vlen).primitives_of(kernel.dtype, kernel.configuration)


def given(platform: Platform, dtype: str) -> frozenset[str]:
    """Names that no tunable may have, since templates use them for other values."""
    return _GIVEN | facts(platform, dtype, {}).keys()


def reserved(operator: Operator, platform: Platform, dtype: str) -> frozenset[str]:
    """Names that no tunable of a template's own may have."""
    return given(platform, dtype) | operator.blocking.values.keys()


def callables(primitives: Primitives) -> dict[str, Primitive]:
    """The functions that a kernel's text may call: the primitives, and the number of lanes."""
    return {**primitives.with_aliases, LANES: Primitive(LANES, primitives.lanes, (), "elem", "lanes")}


def narrow(platform: Platform, kernel: Kernel) -> Kernel | None:
    """The kernel on the shortest vectors of the settings, for edges that would half fill a longer vector.

    None if the kernel uses them already, or if the template forbids them.
    """
    platform, own = platform.at(kernel.vlen), kernel.configuration
    found = Point.of({**own, **{name: options[0] for name, options in platform.settings.items() if name in own}})
    known = {**facts(platform, kernel.dtype, found), **found}
    if found == own or not all(evaluate(c.must, known) for c in kernel.template.constraints):
        return None
    return replace(kernel, configuration=found)


def candidate(operator: Operator, platform: Platform, variant: Variant, text: KernelText) -> Source:
    """The C of a candidate behind the harness, around a kernel's text; with a driver if the operator has it apart.

    Entry 0 is the operator, entry 1 its micro-kernel alone; for operators with a `kernel_grid`, entry 2 is the
    micro-kernel with the operator's parameters.
    Raises render.RenderError if the operator's template is wrong at this point.
    """
    names, flags, own = around(operator, platform, variant, text), variant.template.flags, variant.template.files
    made = _of_operator(operator, CANDIDATE, names)
    folder = next(folder for folder in operator.parts if (folder / CANDIDATE).is_file())
    kernel = _of_operator(operator, CANDIDATE_KERNEL, names) if (folder / CANDIDATE_KERNEL).is_file() else ""
    if not kernel.strip():
        return Source((("candidate.c", made), *operator.slots.files, *own), flags=flags)
    driver = Source((("driver.c", made), *operator.slots.files), flags=flags)
    return Source((("kernel.c", kernel), *own), flags=flags, driver=driver)


def _of_operator(operator: Operator, template: str, names: Mapping[str, object]) -> str:
    return render.c_text(render.of_operator(operator.parts), template, names)


def alone_head(operator: Operator, platform: Platform, variant: Variant) -> str:
    """The C that micro-kernels alone share. Kernels with equal heads can be in one program."""
    return _of_operator(operator, "alone_head.c.j2", around(operator, platform, variant, KernelText("", "")))


def alone(
    operator: Operator, platform: Platform, head: str, kernels: Sequence[tuple[Variant, str]], entries: int
) -> Source:
    """The C of a program of micro-kernels alone: their common head, then each kernel with its entries.

    kernels: with the C of their full tiles; entries: number of entries of each
    """
    pieces = [head]
    for number, (variant, text) in enumerate(kernels):
        names = {**around(operator, platform, variant, KernelText("", text)), "first": entries * number}
        pieces.append(_of_operator(operator, "alone.c.j2", names))
    own = dict.fromkeys(file for variant, _ in kernels for file in variant.template.files)
    return Source((("alone.c", "\n".join(pieces)), *operator.slots.files, *own), flags=kernels[0][0].template.flags)


def decides(operator: Operator) -> bool:
    """Whether the operator's own folder has a `decide.c.j2`."""
    return (operator.folder / DECIDE).is_file()


def decide(operator: Operator, platform: Platform, variant: Variant) -> str | None:
    """The C of what the driver decides, without the variant's blocking; None if the operator has no `decide.c.j2`."""
    if not decides(operator):
        return None
    return _of_operator(operator, DECIDE, template_names(operator, platform, as_built(operator, platform, variant)))


def around(operator: Operator, platform: Platform, variant: Variant, text: KernelText) -> dict[str, object]:
    """The names that the operator's own templates can use, such as its driver, which include the kernel's C.

    They are `template_names`, the primitives as functions, and
    kernel: C of the micro-kernel
    edge: None, or `ident`, `lanes`, `support` and C (`kernel`) of the edge kernel
    interface: Interface.names
    blocking: the variant's blocking tunables that are numbers
    """
    primitives = platform.at(variant.kernel.vlen).primitives_of(variant.kernel.dtype, variant.point)
    names = {**template_names(operator, platform, variant), **render.functions(primitives)}
    found = narrow(platform, variant.kernel) if text.edge else None
    edge = None
    if found is not None:
        primitives = platform.at(found.vlen).primitives_of(found.dtype, found.configuration)
        edge = {"lanes": primitives.lanes, "support": primitives.support, "kernel": text.edge}
        edge["ident"] = f"{names['ident']}_edge"
    blocking = {name: names[name] for name in operator.interface.blocking}
    of_call = {"interface": operator.interface.names, "blocking": blocking}
    return {**names, **of_call, "kernel": text.kernel, "edge": edge}


def as_built(operator: Operator, platform: Platform, variant: Variant) -> Variant:
    """A variant without the tunables that each call sets, and with defaults for the rest of its blocking.

    A kernel's text and a candidate depend on nothing else. Variants with the same result share both, under its id.
    """
    full = defaults(operator, platform, variant.kernel.dtype, variant.point)
    fixed = operator.blocking.values.keys() & full.keys() - {*set_by_calls(operator, variant.template)}
    return replace(variant, blocking=Point.of({name: full[name] for name in fixed}))


def set_by_calls(operator: Operator, template: KernelTemplate) -> tuple[str, ...]:
    """The run-time tunables for whose values a template's kernel is built once: it names none of them."""
    named = (name for name in operator.named if re.search(rf"\b{name}\b", template.text))
    return tuple(sorted({*operator.runtime} - {*named}))


def missing_primitives(platform: Platform, template: KernelTemplate, dtype: str) -> tuple[str, ...]:
    """Primitives that the template needs and the platform lacks for this dtype."""
    primitives = platform.primitives_of(dtype).with_aliases
    return tuple(name for name in template.needs if name not in primitives)


def micro_space(platform: Platform, template: KernelTemplate, dtype: str) -> Space:
    """Legal points of a template's own tunables and the primitive set's settings.

    A platform's `tunables` narrow or widen a template's. Raises JobError with the reasons if no point is legal.
    """
    settings = platform.settings
    dimensions: dict[str, tuple[Value, ...]] = {**settings, **template.tunables}
    dimensions.update({name: values for name, values in platform.tunables.items() if name in dimensions})
    known = facts(platform, dtype, {})
    given = {name: value for name, value in known.items() if name not in dimensions and name != "lanes"}
    # the number of lanes depends on the settings, so constraints get its expression in place of the name
    lanes = f"({platform.leading(dtype).lanes_expression(dtype, platform.fixed_vlen or platform.vlens[0])})"
    constraints = tuple(replace(c, must=re.sub(r"\blanes\b", lanes, c.must)) for c in template.constraints)
    return Space.of(dimensions, constraints, given)


def blocking_space(operator: Operator, platform: Platform, kernel: Kernel) -> Space:
    """Legal blockings for a kernel; constraints may name how it reads operands, e.g. `reads_a`.

    Raises JobError with the reasons if there is none.
    """
    values = dict(operator.blocking.values)
    values.update({name: v for name, v in platform.tunables.items() if name in values})
    own = {**kernel.template.read_facts, **kernel.configuration}
    known = {**facts(platform, kernel.dtype, kernel.configuration), **own}
    return Space.of(values, operator.blocking.constraints, known)


def tile(operator: Operator, platform: Platform, kernel: Kernel, vlen: int) -> dict[str, int]:
    """The micro-tile in elements at a VLEN (bits), with the operator's names of its sides."""
    lanes = platform.at(kernel.vlen).lanes(kernel.dtype, kernel.configuration, vlen)
    return operator.reference.tile(kernel.configuration, lanes, kernel.template.reads)
