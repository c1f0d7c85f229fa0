"""The products that a call of a further routine makes, as the library itself says: by one call on the target."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tensorop.commands import libraries
from tensorop.commands.opened import Opened
from tensorop.errors import JobError
from tensorop.model.call import Access, Buffer, Placement
from tensorop.model.problem import Problem
from tensorop.runners import session
from tensorop.runners.protocol import Check
from tensorop.runners.session import Guest
from tensorop.space import problems
from tensorop.toolchain import harness

_BYTES = 1 << 18  # of text; longer ones are cut
_LINE = re.compile(r"tensorop: \w+ (\d+x\d+x\d+) on .* by variant (\d+): (.*)")
# Keeps what the call writes to stderr, and copies it to a buffer behind the operands.
_KEPT = """
#include <stdio_ext.h>

static char kept[{bytes}];
static void (*inner)(const struct tensorop_bound *, const struct tensorop_call *);

static void with_text(const struct tensorop_bound *self, const struct tensorop_call *c) {{
    inner(self, c);
    const size_t size = __fpending(stderr);
    memcpy(c->buffer[{place}], kept, size < sizeof kept ? size : sizeof kept);
    __fpurge(stderr);
}}

int tensorop_bind(struct tensorop_bound *out, const char *api, const char *dtype,
                  const char *prefix, const char *suffix,
                  void *(*lookup)(void *handle, const char *symbol), void *handle) {{
    const int failed = bind_routine(out, api, dtype, prefix, suffix, lookup, handle);
    setvbuf(stderr, kept, _IOFBF, sizeof kept);
    inner = out->call;
    out->call = with_text;
    return failed;
}}
"""


@dataclass(frozen=True)
class RoutineProducts:
    """Products of one shape that a call makes."""

    shape: str  # rows, columns and depth of the column-major product
    count: int
    variant: int
    template: str  # the variant in words


@dataclass(frozen=True)
class RoutineExplanation:
    """How a library computes a call of a routine."""

    routine: str
    problem: str
    vlen: int  # bits; 0: vectors of fixed width
    threads: int
    products: Sequence[RoutineProducts]  # those with the most multiply-adds first


def explain(found: Opened, problem: Problem, vlen: int = 0, threads: int = 1) -> RoutineExplanation:
    """Makes one call of a routine of `routines.of_library`. vlen: bits; 0: the target's first

    Raises JobError if the library does not load or the call fails, and the errors of a target.
    """
    operator, target = found.operator, found.reach()
    reference, runner, width = operator.reference, target.runner, vlen or target.vlens[0]
    adapter = reference.adapter().replace("int tensorop_bind(", "static int bind_routine(")
    kept = _KEPT.format(bytes=_BYTES, place=len(reference.operands))
    program = harness.dynamic_program(found.platform.arch, adapter + kept, operator.slots.files).path
    call = reference.call(problem, np.random.default_rng(0), "normal", Placement.START)
    call = replace(call, buffers=(*call.buffers, Buffer("text", Access.INOUT, np.zeros(_BYTES, np.uint8))))
    ours = libraries.ours(operator, found.library, threads)
    environment = (*ours.environment(runner, width, problem.dtype), ("TENSOROP_VERBOSE", "1"))
    guest = Guest(width or None, (ours.library(runner, problem.dtype),), environment, threads=threads)
    (reply,) = session.run(runner, program, [Check(call)], guest=guest)
    if not reply.outcome.ok:
        raise JobError(f"{operator.name} of {problem.label}: {reply.outcome.message or reply.outcome.kind.value}")
    lines = reply.outputs["text"].tobytes().rstrip(b"\0").decode(errors="replace").splitlines()
    counted = Counter(match.groups() for text in lines if (match := _LINE.fullmatch(text)))
    made = [RoutineProducts(shape, n, int(variant), name) for (shape, variant, name), n in counted.items()]
    made.sort(key=lambda one: -one.count * np.prod([float(side) for side in one.shape.split("x")]))
    where = f"{problem.shape} {problem.dtype} {problems.written(problem.options)}"
    return RoutineExplanation(operator.name, where, width if len(target.vlens) > 1 else 0, threads, tuple(made))
