"""Builds the library that launches the kernels: the C of its host side, with their machine code."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensorop import __version__
from tensorop.cuda import kernels
from tensorop.cuda.choose import COPY_CYCLES, Candidate
from tensorop.errors import SpecError
from tensorop.model.expression import Expression, parse
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Outcome
from tensorop.package import card
from tensorop.render import render
from tensorop.toolchain import cache, gate, needs, tool
from tensorop.toolchain.cache import BuildLog

_PUBLIC = re.compile(r"\b(tensorop_\w+)\(")


@dataclass(frozen=True)
class LibraryVariant:
    """A candidate for a dtype, in the library."""

    candidate: Candidate
    dtype: str
    image: int  # the number of its machine code


def sources(
    operator: Operator,
    platform: Platform,
    variants: Sequence[LibraryVariant],
    images: Sequence[bytes],
    provenance: card.Card,
    corrections: Mapping[str, Any] | None = None,
) -> dict[str, bytes]:
    """The library's source files, by name.

    images: machine code; the last ones are the operator's second kernels, if it has any
    corrections: of predictions, by measurements (corrected.py)
    """
    templates = {one.candidate.template.name: one.candidate for one in variants}
    families = list(templates)
    models = {template: one.family.model for template, one in templates.items()}
    read = {
        template: frozenset[str]().union(*(part.names for part in model.values())) for template, model in models.items()
    }
    own = {
        name: read[name] & {*one.template.tunables, *one.template.facts, *one.family.counters}
        for name, one in templates.items()
    }
    call = operator.on_device
    always = dict.fromkeys((*call.launch, "threads", "shared", "operands_are_maps", *call.absent))
    kept = [*always, *sorted(frozenset[str]().union(*own.values()) - always.keys())]
    offsets, blob = [], b""
    for image in images:
        offsets.append(len(blob))
        blob += image + b"\0" * (-len(image) % 64)
    device, second = platform.device or {}, kernels.second(operator, [one.dtype for one in variants])
    given = next(iter(templates.values())).family.given
    used = {"memory_a_cycle", *(name for names in read.values() for name in names if name in given)}
    context = {
        **terms(operator),
        "platform_name": platform.name,
        "tool_version": __version__,
        "dtypes": list(dict.fromkeys(one.dtype for one in variants)),
        "device": {"least_bf16": 0, **device},
        "in_size": given["in_size"],
        "c_size": given["c_size"],
        "given": {name: value for name, value in given.items() if name in used - {*call.layouts}},
        "conventions": sorted({one.template.reads["operands"] for one in templates.values()}),
        "numbers": kept,
        "measured": corrections,
        "images": len(images),
        "second": {name: len(images) - len(second) + i for i, name in enumerate(second)},
        "kinds": [*dict.fromkeys(kernels.kind(one.dtype) for one in variants)],
        "copy_cycles": COPY_CYCLES,
        "offsets": offsets,
        "variants": [_variant(one, families.index(one.candidate.template.name), kept) for one in variants],
        "families": [
            {
                "cycles": _entry(template, models[template], [*models[template]][-1], own[template]),
                "plans": {
                    name: _entry(template, models[template], name, own[template])
                    for name in call.plans
                    if name in models[template]
                },
            }
            for template in templates
        ],
        "card_literal": card.literal(card.text(provenance)),
        "card_marker_length": len(card.MARKER),
    }
    env = render.environment(kernels.folders(operator))
    made = {"library.c": "library.c", "driver.h": "driver.h", f"tensorop/{operator.name}_cuda.h": "header.h"}
    made["CMakeLists.txt"] = "CMakeLists.txt"
    texts = {name: render.c_text(env, f"device/{file}.j2", context) for name, file in made.items()}
    laid_out = {n: text if n == "CMakeLists.txt" else render.formatted(text) for n, text in texts.items()}
    return {**{name: text.encode() for name, text in laid_out.items()}, "kernels.bin": blob}


def terms(operator: Operator) -> dict[str, Any]:
    """The terms of a call in C, for library and kit."""
    call = operator.on_device
    here = re.compile(rf"\b({'|'.join(call.names)})\b")
    computed = {}  # of a problem `p` by a variant `v`
    for name in call.names:
        across = (
            here.sub(r"p->\1", parse(call.swap[name], dict.fromkeys(call.names, int)).in_c())
            if name in call.swap
            else ""
        )
        computed[name] = f"(v->swap ? (int64_t)({across}) : (int64_t)p->{name})" if across else f"p->{name}"
    return {
        "name": operator.name,
        "fn": f"tensorop_{operator.name}",
        "TAG": f"TENSOROP_{operator.name.upper()}",
        "call": list(call.call),
        "layouts": list(call.layouts),
        "plans": list(call.plans),
        "epilogue": list(operator.epilogue),
        "types": list(call.types),
        "arguments": [name.lower() for name in call.operands],
        "computed": computed,
    }


def _variant(one: LibraryVariant, family: int, kept: Sequence[str]) -> dict[str, Any]:
    numbers = {**one.candidate.family.call.absent, **one.candidate.numbers}
    numbers["operands_are_maps"] = int(one.candidate.template.reads["operands"] == "maps")
    return {
        "label_literal": card.quoted(one.candidate.label),
        "family": family,
        "dtype": one.dtype,
        "key": one.candidate.key,
        "kernel": one.image,
        "numbers": [int(numbers.get(name, 0)) for name in kept],
    }


def _entry(template: str, model: Mapping[str, Expression], last: str, own: frozenset[str]) -> dict[str, Any]:
    """A model's entry as a function in C: the numbers of a kernel that it reads, and the entries that it needs."""
    needed = {last}
    for name in reversed([*model]):
        needed |= model[name].names if name in needed else frozenset()
    parts = {name: part for name, part in model.items() if name in needed}
    read = own & frozenset[str]().union(*(part.names for part in parts.values()))
    return {"reads": sorted(read), "model": [(name, _in_c(template, name, part)) for name, part in parts.items()]}


def _in_c(template: str, name: str, part: Any) -> str:
    try:
        return str(part.in_c())
    except SpecError as error:
        raise SpecError(f"template '{template}': key 'model.{name}': {error.message}") from None


def name_of(operator: Operator) -> str:
    """The library's name, without lib and the suffix."""
    return f"tensorop_{operator.name}_cuda"


def build(
    files: Mapping[str, bytes], operator: Operator, platform: Platform, timeout_s: float = 300.0
) -> tuple[bytes, bytes]:
    """The shared library, and the archive with its one object. Raises JobError with the compiler's output."""
    target, name = platform.compiler.shared_target, name_of(operator)
    header = files[f"tensorop/{operator.name}_cuda.h"].decode()
    names = sorted(set(_PUBLIC.findall(header)))
    exports = " ".join(f"{one};" for one in names)
    major = __version__.split(".")[0]
    key = cache.key_of(sorted(files.items()), target, tool.compiler_version())

    def fill(folder: Path) -> BuildLog | Outcome:
        for file, data in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_bytes(data)
        (folder / "exports.map").write_text(f"{{ global: {exports} local: *; }};\n")
        common = ("-target", target, "-std=gnu11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden", "-I.")
        steps = (
            tool.cc(*common, "-c", "library.c", "-o", f"{name}.o"),
            tool.cc(
                "-target", target, "-g0", "-shared", f"-Wl,-soname,lib{name}.so.{major}", "-Wl,--strip-debug",
                "-Wl,--version-script=exports.map", "-Wl,-z,defs", f"{name}.o", "-ldl", "-lpthread", "-o",
                f"lib{name}.so",
            ),
            tool.ar("rcsD", f"lib{name}.a", f"{name}.o"),
        )  # fmt: skip
        made: BuildLog | Outcome = BuildLog(())
        for step in steps:
            made = tool.run(step, folder, timeout_s=timeout_s, doing=f"building lib{name}.so")
            if isinstance(made, Outcome):
                return made
        shutil.rmtree(folder / "tensorop")
        return made

    built = tool.required(cache.entry("libraries", key, f"lib{name}.so", fill), f"lib{name}.so")
    made = built.path.with_name(f"{name}.o")
    if refused := gate.check_object(made, entries=names, relocated=True, of=needs.DEVICE):
        tool.required(refused, f"lib{name}.so")
    return built.path.read_bytes(), built.path.with_suffix(".a").read_bytes()
