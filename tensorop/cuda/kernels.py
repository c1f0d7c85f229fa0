"""Makes the CUDA of a configuration: it renders the template, checks it by the gate, and adds the called primitives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tensorop import paths
from tensorop.author import c_gate, gate, offline
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.primitive import Collective, PrimitiveSet
from tensorop.model.trial import Kind, Outcome
from tensorop.render import apart, lines, render

KERNEL = "device/kernel.cu"
AROUND = {  # by kind of operands: the templates of the function around a kernel, and of its caller
    "pointers": ("device/block.cu.j2", "device/entry.cu.j2"),
    "packed": ("device/packed.cu.j2", "device/entry.cu.j2"),
    "maps": ("device/maps.cu.j2", "device/maps_entry.cu.j2"),
}
# Functions that a kernel may call besides primitives.
OWN = {
    one.name: one
    for one in (
        Collective(
            "__syncthreads", "block", "waits for the block; what its threads did before is seen by all", "", accesses=""
        ),
        Collective("__syncwarp", "warp", "the same of a warp", "", accesses=""),
        Collective(
            "make_uint4",
            "thread",
            "four words as one",
            "",
            "uint4",
            tuple(f"uint32_t {x}" for x in "xyzw"),
            accesses="",
        ),
    )
}
# Pitfalls of kernels with tensor maps, besides the comments of their primitives:
# - Two groups that alternate between tiles need a named barrier. A barrier in memory has only the parity of its phase,
#   so a group that waits two phases ahead passes too early.
# - A ring of one stage hangs if stages are released one step late.
# - Clusters of 2 x 2, which share loads of both operands, are slower.

# Functions of device/finish.cuh.j2 that kernels with the fact `finishes` may also call.
_PLACE = "reads(epilogue, 1, 1); holds(0 <= row); holds(0 <= col); "
OF_EPILOGUE = {
    one.name: one
    for one in (
        Collective(
            "finish",
            "thread",
            "applies a call's epilogue to sums of a part of C",
            "",
            args=("const Epilogue *epilogue", "float *sums", "int count", "int batch", "int row", "int col", "int rows",
                  "int cols", "int down"),
            parameters=("finishes",),
            accesses=_PLACE + "writes(sums, count, 1)",
        ),
        Collective(
            "finish_steps",
            "thread",
            "the steps of a call's epilogue, which the following functions take, as bits",
            "",
            "int",
            ("const Epilogue *epilogue", "float beta"),
            parameters=("finishes",),
            accesses="reads(epilogue, 1, 1); gives(0, 255)",
        ),
        Collective(
            "finish_bias",
            "thread",
            "reads ahead the bias of `wide` columns",
            "",
            args=("const Epilogue *epilogue", "int steps", "uint32_t *held", "int wide", "int col", "int cols"),
            parameters=("finishes",),
            accesses="reads(epilogue, 1, 1); holds(0 <= col); writes(held, wide // 8, 1)",
        ),
        Collective(
            "finish_words",
            "thread",
            "reads ahead the residual of 16 rows of `wide` columns",
            "",
            args=("const Epilogue *epilogue", "int steps", "uint32_t *words", "int wide", "int batch", "int row",
                  "int col", "int rows", "int cols"),
            parameters=("finishes",),
            accesses=_PLACE + "writes(words, wide // 4, 1)",
        ),
        Collective(
            "finish_begin",
            "thread",
            "takes sums, times alpha, plus the bias that finish_bias read",
            "",
            args=("float *to", "const float *sums", "int count", "float alpha", "const uint32_t *held"),
            parameters=("finishes",),
            accesses="writes(to, count, 1); reads(sums, count, 1); reads(held, count // 4, 1)",
        ),
        Collective(
            "finish_linear",
            "thread",
            "the same, and ReLU: all steps, if they are below 64",
            "",
            args=("float *to", "const float *sums", "int count", "float alpha", "const uint32_t *held", "int steps"),
            parameters=("finishes",),
            accesses="writes(to, count, 1); reads(sums, count, 1); reads(held, count // 4, 1)",
        ),
        Collective(
            "finish_smooth",
            "thread",
            "the same, and GELU or SiLU: all steps, if they are below 128",
            "",
            args=("float *to", "const float *sums", "int count", "float alpha", "const uint32_t *held", "int steps"),
            parameters=("finishes",),
            accesses="writes(to, count, 1); reads(sums, count, 1); reads(held, count // 4, 1)",
        ),
        Collective(
            "finish_piece",
            "warp",
            "the other steps, for sums of 16 rows of `wide` columns; `to`: shared memory for so many elements",
            "",
            args=("const Epilogue *epilogue", "int steps", "float *sums", "int wide", "const uint32_t *words",
                  "Shared to", "int batch", "int row", "int col", "int rows", "int cols"),
            parameters=("finishes",),
            accesses=_PLACE + "writes(sums, wide // 2, 1); reads(words, wide // 4, 1); aligned(to, 16); "
                             "writes(to, 32 * wide, 1)",
        ),
        Collective(
            "finish_ahead",
            "thread",
            "brings what the epilogue reads of a part of C nearer",
            "",
            args=("const Epilogue *epilogue", "int batch", "int row", "int col", "int high", "int wide", "int rows",
                  "int cols", "int thread", "int threads"),
            parameters=("finishes",),
            accesses=_PLACE.rstrip("; "),
        ),
    )
}  # fmt: skip
# Functions of device/tiles.cu.j2 that kernels with tensor maps may also call.
_OF_TILE = "reads(launch, 1, 1); holds(0 <= tile); holds(tile < clusters); "
_RANK = "holds(0 <= rank); holds(rank < {{ cluster_%s }}); gives(0, %s + {{ tile_%s * (cluster_%s - 1) }})"
OF_MAPS = {
    one.name: one
    for one in (
        Collective(
            "tile_row",
            "thread",
            "the first row of the tile of a number, of the block that is so many down its cluster",
            "",
            "int",
            ("const Args *launch", "int tile", "int rank"),
            parameters=("tile_m", "cluster_m"),
            accesses=_OF_TILE + _RANK % ("m", "m", "m", "m"),
        ),
        Collective(
            "tile_col",
            "thread",
            "the same of its first column",
            "",
            "int",
            ("const Args *launch", "int tile", "int rank"),
            parameters=("tile_n", "cluster_n"),
            accesses=_OF_TILE + _RANK % ("n", "n", "n", "n"),
        ),
        Collective(
            "tile_batch",
            "thread",
            "which product of the batch the tile of a number is of",
            "",
            "int",
            ("const Args *launch", "int tile"),
            accesses=_OF_TILE + "gives(0, batch - 1)",
        ),
        Collective(
            "tile_begin",
            "thread",
            "the first step of the part of K that the tile of a number is of",
            "",
            "int",
            ("const Args *launch", "int tile"),
            accesses=_OF_TILE + "gives(0, 16777215)",
        ),
    )
}
_MOST = {"threads": 1024, "tile_m": 4096, "tile_n": 4096, "raster": 64, "matrices": 32, "shared": 1 << 18}  # by fact
_MOST_OF_MAPS = {
    "cluster": 16, "cluster_m": 16, "cluster_n": 16, "split_k": 16, "stages": 64, "box_a": 256, "box_b": 256,
    "piece": 64,
}  # fmt: skip
_OURS = frozenset({"dtype", "operands", "element", "cleared", "c_size", "in_size", "tf32_products"})
_UNROLL = re.compile(r"^[ \t]*#pragma unroll(?: \d{1,3})?$", re.MULTILINE)
FLOAT_C = "_f32"  # the end of a type's name if C is float and A and B are not


# By name in C: kernels that an operator's library launches beside those of families. One makes copies of operands with
# aligned rows, the others make results of what several blocks computed.
SECOND = {"COPY": "device/copy.cu.j2", "SUMS": "device/sums.cu.j2", "COMBINE": "device/combine.cu.j2"}


def folders(operator: Operator) -> tuple[Path, ...]:
    """Folders of an operator's templates for devices, then of those that all operators share."""
    return *operator.templates, paths.native_dir()


def second(operator: Operator, dtypes: Sequence[str]) -> dict[str, str]:
    """The texts of an operator's second kernels for a library's types, by their names in `SECOND`. Of several, floats
    have the last one, and other types those before it."""
    found = [name for name, file in SECOND.items() if (operator.folder / file).is_file()]
    wide, env = in_size(dtypes[0]) == 4, render.environment(folders(operator))
    of_c = {"f32": 0} if c_size(dtypes[0]) == 4 else dict.fromkeys(map(kind, dtypes))
    context = {"kinds": [*of_c], "c_size": c_size(dtypes[0])}
    return {name: render.text(env, SECOND[name], context) for name in (found[-1:] if wide else found[:-1] or found)}


def dtypes(job: Job) -> list[str]:
    """A job's types, as in its library."""
    of_c = FLOAT_C if job.c_dtype == "f32" else ""
    return [dtype + (f"_{job.math}" if job.math else "" if dtype == "f32" else of_c) for dtype in job.dtypes]


def kind(dtype: str) -> str:
    """The type of A and B, of a library's type: bf16 of bf16_f32, f32 of f32_tf32."""
    return dtype.partition("_")[0]


def in_size(dtype: str) -> int:
    """The bytes of an element of the inputs."""
    return 4 if kind(dtype) == "f32" else 2


def tf32_products(dtype: str) -> int:
    """How many products of a tensor core make one of two factors."""
    return 3 if dtype.endswith("_3xtf32") else 1


def c_size(dtype: str) -> int:
    """The bytes of an element of C."""
    return 4 if dtype.endswith(FLOAT_C) else in_size(dtype)


def primitives(platform: Platform, dtype: str = "") -> dict[str, tuple[Collective, str]]:
    """A platform's collective primitives by name, each with its set's name; the first set with a name wins.

    dtype: only those of sets that have this type"""
    found: dict[str, tuple[Collective, str]] = {}
    for one in (one for one in platform.primitives if not dtype or kind(dtype) in one.types):
        for name, collective in one.collectives.items():
            found.setdefault(name, (collective, one.name))
    return found


def missing(platform: Platform, template: KernelTemplate) -> tuple[str, ...]:
    """The primitives that a template needs and the platform lacks."""
    return tuple(name for name in template.needs if name not in primitives(platform))


def set_of(platform: Platform, template: KernelTemplate, dtype: str) -> PrimitiveSet | None:
    """The platform's first set that has the type and all that the template needs: sets can have different primitives
    with the same name."""
    coarse = kind(dtype) == "f32" != dtype  # by tensor cores
    if coarse != ("math" in template.reads):
        return None
    needs = {*template.needs}
    return next((s for s in platform.primitives if kind(dtype) in s.types and needs <= s.collectives.keys()), None)


def text(
    operator: Operator, platform: Platform, template: KernelTemplate, dtype: str, numbers: Mapping[str, Value]
) -> str | Outcome:
    """The whole file of a kernel, or the reason for its absence.

    numbers: tunables, facts and the numbers that the family gets.
    """
    if (chosen := set_of(platform, template, dtype)) is None:
        return Outcome(Kind.REFUSED, "gate", f"no primitive set of {dtype} has all of {', '.join(template.needs)}")
    of_a = kind(dtype)
    context: dict[str, Any] = {**numbers, "dtype": of_a, "operands": template.reads["operands"]}
    context |= {"element": chosen.types[of_a].element, "cleared": template.author != offline.AUTHOR}
    try:
        env = render.environment(folders(operator), {"template": template.text})
        kernel = block(operator, chosen, template, context)
        if isinstance(kernel, Outcome):
            return kernel
        caller = AROUND[context["operands"]][1]
        entry = render.text(env, caller, context)
        used: list[Collective] = []
        calls = kernel + entry
        for name, one in reversed(list(chosen.collectives.items())):  # one may call those before it
            if re.search(rf"\b{name}\b", calls):
                used, calls = [one, *used], calls + one.c
        # Assembly can contain `{%`, so only primitives with parameters are rendered.
        functions = [_rendered(operator, _function(one), context) if one.parameters else _function(one) for one in used]
        called = "\n".join((kernel, *functions))
        typedefs = [f"typedef {c} {name};" for name, c in chosen.addresses.items() if re.search(rf"\b{name}\b", called)]
        support = _rendered(operator, chosen.types[of_a].support, context)
        parts = [support, *(["\n".join(typedefs)] if typedefs else []), *functions]
        files = {
            **context,
            "primitives": "\n".join(part.strip("\n") + "\n" for part in parts),
            "kernel": kernel,
            "caller": caller,
            "headers": chosen.headers,
            "label": f"{operator.name} {dtype} by {template.name}",
            "strategy": template.strategy,
        }
        return render.c_text(env, f"{KERNEL}.j2", files)
    except render.RenderError as error:
        return Outcome(Kind.RENDER, "render", error.message)


def block(
    operator: Operator, chosen: PrimitiveSet, template: KernelTemplate, context: Mapping[str, Any]
) -> str | Outcome:
    """The function around a template, after the same gate as for CPUs; or the refusal."""
    if refused := _facts(context):
        return refused
    primitives = chosen.primitives_of(str(context["dtype"]), {}, None)
    around, _ = AROUND[context["operands"]]
    known = dict(chosen.collectives) | OF_EPILOGUE | (OF_MAPS if context["operands"] == "maps" else {})
    callables = OWN | {
        name: replace(one, accesses=_rendered(operator, one.accesses, context) if one.parameters else one.accesses)
        for name, one in known.items()
        if one.accesses is not None and context.keys() >= set(one.parameters)
    }
    if refused := gate.check_template(replace(template, needs=()), primitives, _OURS | {*operator.on_device.layouts}):
        return refused
    rendering = render.kernel_texts if template.author == offline.AUTHOR else apart.texts

    def rendered(text: str) -> str:
        return rendering(folders(operator), c_gate.marked(template.text, text), around, [context], {})[0]

    source = rendered(template.text)
    plain = _UNROLL.sub(lambda found: " " * len(found[0]), source)  # places stay
    of_line = lines.line_at(source, template.text, rendered)
    read = c_gate.read(plain, template.text, primitives, callables, of_line)
    if isinstance(read, Outcome):
        return read
    source = replace(read, source=source).trapped("__trap();")
    for name in (name for name, one in chosen.collectives.items() if one.template):
        source = re.sub(rf"\b{name}\(([\w +*/-]+)\)", rf"{name}<\1>()", source)
    return c_gate.unmarked(source, template.text)


def _facts(context: Mapping[str, Any]) -> Outcome | None:
    """Refuses facts that are impossible in a launch, and a fact `shared` that is too small for its buffers."""
    maps = context["operands"] == "maps"
    if context["operands"] not in AROUND:
        return Outcome(Kind.REFUSED, "gate", f"operands are '{context['operands']}'; expected {' or '.join(AROUND)}")
    for name, most in (_MOST | (_MOST_OF_MAPS if maps else {})).items():
        value = context.get(name, 1)
        least, step = (0, 4) if name == "shared" else (1, 1)
        if isinstance(value, str) or not least <= value <= most or value % step:
            return Outcome(Kind.REFUSED, "gate", f"the fact {name} is {value}; expected {least} to {most} by {step}")
    if not maps:
        return None
    for name in ("body", "c_bytes"):
        value = context.get(name)
        if not isinstance(value, int) or value < 0 or value % 16:
            return Outcome(Kind.REFUSED, "gate", f"the fact {name} is {value}; expected bytes, a multiple of 16")
    if context.get("chunk_b") not in (32, 64):
        return Outcome(Kind.REFUSED, "gate", f"the fact chunk_b is {context.get('chunk_b')}; expected 32 or 64")
    needed = 1024 + context["body"] + context["c_bytes"] + 16 * context["stages"]
    if needed > context["shared"]:
        message = f"the fact shared is {context['shared']}; ring, pieces and barriers need {needed}"
        return Outcome(Kind.REFUSED, "gate", message)
    if max(context[f"tile_{side}"] * context[f"cluster_{side}"] for side in "mn") > _MOST["tile_m"]:
        return Outcome(Kind.REFUSED, "gate", f"tiles of a cluster have more than {_MOST['tile_m']} rows or columns")
    return None


def _function(one: Collective) -> str:
    template = f"template <{one.template}>\n" if one.template else ""
    body = one.c.rstrip("\n").replace("\n", "\n    ").replace("    #", "#")
    args = ", ".join(one.args)
    return f"{template}__device__ __forceinline__ {one.returns} {one.name}({args}) {{\n    {body}\n}}\n"


def _rendered(operator: Operator, text: str, context: Mapping[str, Any]) -> str:
    return render.text(render.environment(folders(operator), {"part": text}), "part", context)
