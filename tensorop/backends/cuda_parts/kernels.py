"""One configuration to its CUDA: rendered, read by the gate, and put together with the primitives that it calls."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from tensorop.backends.cuda_parts import gate
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.primitive import Collective
from tensorop.model.trial import Kind, Outcome
from tensorop.render import render

KERNEL = "device/kernel.cu"
FLOAT_C = "_f32"  # ends the name of a type whose C is float, where A and B are not


def c_size(dtype: str) -> int:
    """Bytes of an element of C."""
    return 4 if dtype.endswith(FLOAT_C) else 2


def primitives(platform: Platform) -> dict[str, tuple[Collective, str]]:
    """What kernels may call, with the set it is of: the first set's of a name."""
    found: dict[str, tuple[Collective, str]] = {}
    for one in platform.primitives:
        for name, collective in one.collectives.items():
            found.setdefault(name, (collective, one.name))
    return found


def missing(platform: Platform, template: KernelTemplate) -> tuple[str, ...]:
    """What a template needs and the platform lacks."""
    return tuple(name for name in template.needs if name not in primitives(platform))


def text(
    operator: Operator, platform: Platform, template: KernelTemplate, dtype: str, numbers: Mapping[str, Value]
) -> str | Outcome:
    """The whole file of a kernel, or why there is none. numbers: tunables, facts, what is given."""
    # The same name may be another primitive in another set: one set that has all the template needs serves it.
    sets = [s for s in platform.primitives if not {n for n in template.needs if n not in s.collectives}]
    if not sets:
        return Outcome(Kind.REFUSED, "gate", f"no primitive set has all of {', '.join(template.needs)}")
    chosen = sets[0]
    of_a = dtype.removesuffix(FLOAT_C)
    context: dict[str, Any] = {**numbers, "dtype": of_a, "operands": template.reads["operands"]}
    try:
        env = render.environment(operator.templates, {"template": template.text})
        kernel = render.text(env, "template", context, render.MAX_KERNEL)
        if refused := gate.complaint(kernel, chosen.collectives):
            return refused
        support = chosen.types[of_a].support
        used = [one for name, one in chosen.collectives.items() if re.search(rf"\b{name}\b", kernel)]
        # assembly has `{%` of its own: only what asks for something is a template
        functions = [_rendered(operator, _function(one), context) if one.parameters else _function(one) for one in used]
        parts = [_rendered(operator, support, context), *functions]
        files = {
            **context,
            "primitives": "\n".join(part.strip("\n") + "\n" for part in parts),
            "kernel": kernel,
            "headers": chosen.headers,
            "label": f"{operator.name} {dtype} by {template.name}",
            "strategy": template.strategy,
        }
        return render.c_text(env, f"{KERNEL}.j2", files)
    except render.RenderError as error:
        return Outcome(Kind.RENDER, "render", error.message)


def _function(one: Collective) -> str:
    template = f"template <{one.template}>\n" if one.template else ""
    body = one.c.rstrip("\n").replace("\n", "\n    ").replace("    #", "#")
    args = ", ".join(one.args)
    return f"{template}__device__ __forceinline__ {one.returns} {one.name}({args}) {{\n    {body}\n}}\n"


def _rendered(operator: Operator, text: str, context: Mapping[str, Any]) -> str:
    return render.text(render.environment(operator.templates, {"part": text}), "part", context)
