"""Executes kernels of a family on this machine's processor, over the meanings of their primitives.

The kernel becomes a candidate of the harness: the same jail, guard pages, oracle and bound as for kernels of
processors. `native/device/on_cpu/<set>.h` has the meanings of a primitive set; an operator's `device/on_cpu.cpp.j2`
calls the kernel for each tile. The same program counts what one block does, for the cost model (counted.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from tensorop import paths
from tensorop.author import offline
from tensorop.author.addresses.symbols import MOST_AHEAD
from tensorop.cuda import kernels
from tensorop.cuda.choose import Candidate
from tensorop.cuda.cost_file import cost_model
from tensorop.cuda.family import Family
from tensorop.model.call import Placement
from tensorop.model.case import Case
from tensorop.model.expression import evaluate
from tensorop.model.kernel import Artifact, Source
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Value
from tensorop.model.primitive import PrimitiveSet
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import Seed
from tensorop.render import render
from tensorop.render.render import RenderError
from tensorop.runners import session
from tensorop.runners.native import Native
from tensorop.runners.protocol import Check, Entry
from tensorop.toolchain import gate
from tensorop.toolchain.compile import DEFINED, LEAN, compile_source, link_candidate
from tensorop.toolchain.needs import Needs
from tensorop.verify import grid
from tensorop.verify.subject import Subject

_AROUND = "device/on_cpu.cpp.j2"
_FLAGS = ("-std=c++17", "-fno-exceptions", "-fno-rtti", "-fno-threadsafe-statics", "-ffp-contract=off", "-O1", "-g0")
# Half of a thread's stack (lanes.h) is for one frame. A local that is not written holds nothing of earlier calls.
_CONFINED = ("-ftrivial-auto-var-init=zero", "-Wframe-larger-than=32768", "-Werror=frame-larger-than")
_DEPTHS = (1024, 2048)  # `steps` of counted calls; their difference is a step's
COUNTERS = (
    "products",
    "tile_loads",
    "shared_cycles",
    "copied_bytes",
    "single",
    "waits",
    "ahead",
    "sum_tiles",
)  # native/device/on_cpu/lanes.h
_BROKEN = (
    "a primitive trapped: an address is not aligned as it must be, threads of a warp call it with different arguments, "
    "too many copies are in flight, or some threads wait at a barrier that others never reach"
)


def meanings(one: PrimitiveSet) -> Path | None:
    """The C++ of a set's meanings on a processor; None for a set that cannot be executed."""
    path = paths.native_dir() / "device" / "on_cpu" / f"{one.name}.h"
    return path if path.is_file() else None


@dataclass(frozen=True)
class Execution:
    """Executes configurations of a job's families."""

    operator: Operator
    platform: Platform
    seed: Seed
    work: Path | None = None  # root of the build cache, by default the user's
    timeout_s: float = 30.0  # for one call
    _built: dict[str, Artifact | Outcome] = field(default_factory=dict, compare=False, repr=False)

    def verdict(self, one: Candidate, dtype: str) -> Outcome:
        """The first failure of a configuration on calls of its layout, or OK. dtype: as in the library"""
        built = self._program(one, dtype)
        if isinstance(built, Outcome):
            return built
        subject = Subject(Native(), built.path, timeout_s=self.timeout_s)
        of = replace(self.operator, reference=self.operator.reference.of_device())
        found = grid.outcome(grid.verify(of, subject, self._cases(one, dtype), (0,), self.seed))
        if found.kind is Kind.ILLEGAL:  # a trap of lanes.h
            return replace(found, kind=Kind.CRASH, message=f"{_BROKEN}: {found.message}")
        return found

    def counts(self, one: Candidate, dtype: str) -> dict[str, int] | Outcome:
        """What a block does: `k_<counter>` is for 1024 steps of K, `end_<counter>` outside of them."""
        built = self._program(one, dtype)
        if isinstance(built, Outcome):
            return built
        reference, found = self.operator.reference, []
        for steps in _DEPTHS:
            known = {**one.numbers, "steps": steps, "counters": len(COUNTERS)}
            sizes = {name: evaluate(text, known) for name, text in cost_model(self.operator).problem.items()}
            options = one.family.call.flags(one.key, reference.flags, self.operator.layouts[0])
            problem = reference.problem(kernels.kind(dtype), sizes, options)
            call = reference.call(problem, self.seed.stream(0), "normal", Placement.END)
            (reply,) = session.run(Native(), built.path, [Check(call, Entry(1))], timeout_s=self.timeout_s)
            if not reply.outcome.ok:
                return reply.outcome
            (result,) = reply.outputs.values()
            found.append(np.asarray(result, dtype=np.float32).reshape(-1)[: len(COUNTERS)].astype(int))
        step = found[1] - found[0]
        return {
            **{f"k_{name}": int(number) for name, number in zip(COUNTERS, step, strict=True)},
            **{f"end_{name}": int(number) for name, number in zip(COUNTERS, found[0] - step, strict=True)},
        }

    def _cases(self, one: Candidate, dtype: str) -> grid.Grid:
        numbers, reference = one.numbers, self.operator.reference
        rows, columns = int(numbers["tile_m"]), int(numbers["tile_n"])
        tile = {name: number for name, number in numbers.items() if isinstance(number, int)}
        tile |= {"mr": rows, "rows": rows, "nr": columns, "ku": int(numbers.get("tile_k", 32))}
        tile.pop("deep", None)  # a name that a family may have
        if one.template.author not in offline.AUTHORS:
            tile["deep"] = MOST_AHEAD

        def cases(vlen: int, seed: Seed) -> Sequence[Case]:
            every = reference.quick_grid(kernels.kind(dtype), tile, seed.stream(0, vlen))
            return [case for case in every if self._serves(one, reference.known(case.problem))]

        return cases

    @staticmethod
    def _serves(one: Candidate, known: Mapping[str, int]) -> bool:
        """Whether a configuration computes a call of the operator."""
        return one.family.call.key_of(known) == one.key and bool(one.family.served(known)[one.number])

    def _program(self, one: Candidate, dtype: str) -> Artifact | Outcome:
        key = f"{one.label} {one.key} {dtype} {one.template.digest}"
        if key not in self._built:
            self._built[key] = self._build(one, dtype)
        return self._built[key]

    def _build(self, one: Candidate, dtype: str) -> Artifact | Outcome:
        source = self._source(one, dtype)
        if isinstance(source, Outcome):
            return source
        c = self.platform.compiler
        flags = ("-target", c.static_target, *LEAN, *c.arch_flags, *_FLAGS, *DEFINED)
        made = compile_source(source, flags, work=self.work, timeout_s=90.0)
        if isinstance(made, Outcome):
            return made
        if refused := gate.check_object(made.path, of=_NEEDS):
            return refused
        return link_candidate(made, arch=self.platform.arch, work=self.work)

    def _source(self, one: Candidate, dtype: str) -> Source | Outcome:
        kind = kernels.kind(dtype)
        chosen = kernels.set_of(self.platform, one.template, dtype)
        if chosen is None or (found := meanings(chosen)) is None:
            return Outcome(
                Kind.REFUSED, "build", f"the primitives of {one.template.name} have no meaning on a processor"
            )
        texts = []
        for c_size in (4,) if kernels.c_size(dtype) == 4 else (4, 2):
            numbers = _with_c(one, c_size)
            if isinstance(numbers, Outcome):
                return numbers
            context: dict[str, Any] = {**numbers, "dtype": kind, "operands": one.template.reads["operands"]}
            context |= {"element": chosen.types[kind].element, "cleared": one.template.author != offline.AUTHOR}
            try:
                text = kernels.block(self.operator, chosen, one.template, context)
            except RenderError as error:
                return Outcome(Kind.RENDER, "render", error.message)
            if isinstance(text, Outcome):
                return text
            texts.append(text)
        env = render.environment(kernels.folders(self.operator))
        whole = render.text(env, _AROUND, {**context, "kernels": texts})
        shared = [found.with_name(name) for name in ("lanes.h", "elements.h")]
        own = [("kernel.cpp", whole), ("meanings.h", found.read_text(encoding="utf-8"))]
        own += [(path.name, path.read_text(encoding="utf-8")) for path in shared]
        return Source((*own, *self.operator.slots.files), flags=_CONFINED)


_NEEDS = Needs(keeps=True, among=False)  # stacks and shared memory of the block; a kernel's C cannot name them


def _with_c(one: Candidate, c_size: int) -> Mapping[str, Value] | Outcome:
    """The numbers of a configuration for the other size of C."""
    if one.numbers["c_size"] == c_size:
        return one.numbers
    family = Family(one.family.call, one.template, {**one.family.given, "c_size": c_size})
    same = np.logical_and.reduce([family.grid[name] == value for name, value in dict(one.point).items()])
    if not same.any():
        message = (
            f"{one.point} is legal with a C of {one.numbers['c_size']} bytes and not of {c_size}: it must be with both"
        )
        return Outcome(Kind.REFUSED, "author", message)
    return family.numbers(int(np.argmax(same)))
