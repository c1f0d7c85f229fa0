"""Asks an operator's driver what it does about problems, for configurations and platforms that were never built.

An operator's `decide.c.j2` includes the functions by which its driver decides. It is compiled for this machine and
called for all configurations and problems at once. It defines

- `struct tensorop_configuration`: names of a variant (`costs.constants`), all fields `int64_t`;
- `struct tensorop_problem`: features of a problem;
- `struct tensorop_decisions`: what the driver does, the fields that cost terms may name;
- `tensorop_decide`, a static function from pointers to the first two to the third.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import cffi
import numpy as np
from numpy.typing import NDArray

from tensorop.errors import SpecError
from tensorop.model.kernel import Source
from tensorop.model.point import Value
from tensorop.toolchain import programs

_STRUCT = re.compile(r"struct tensorop_(?:configuration|problem|decisions) \{[^}]*\};")
_CALL = """
void tensorop_decide_all(size_t configurations, const struct tensorop_configuration *configuration, size_t problems,
                         const struct tensorop_problem *problem, struct tensorop_decisions *decisions)"""
_LOOP = """
{
    for (size_t i = 0; i < configurations; ++i)
        for (size_t j = 0; j < problems; ++j)
            *decisions++ = tensorop_decide(configuration + i, problem + j);
}
"""


@dataclass(frozen=True)
class DecisionFunction:
    """A compiled `decide.c.j2`: cffi's `ffi` and `lib`, and the names of its structs' fields."""

    ffi: Any
    lib: Any
    configuration: tuple[str, ...]
    problem: tuple[str, ...]
    decisions: tuple[str, ...]
    lock: Any = field(default_factory=threading.Lock)  # the C may keep its configuration in static variables

    def of(
        self, numbers: Mapping[str, Value | NDArray[Any]], columns: Mapping[str, NDArray[Any]]
    ) -> dict[str, NDArray[np.float64]]:
        """Field -> its values, configurations x problems.

        numbers: name of a variant -> its value, or one of each configuration; columns: feature -> one of each problem
        """
        given = np.stack(np.broadcast_arrays(*(np.atleast_1d(numbers[name]) for name in self.configuration)), axis=1)
        given = np.ascontiguousarray(given, dtype=np.int64)
        problems = np.stack([columns[name] for name in self.problem], axis=1).astype(np.int64)
        found = np.zeros((len(given), len(problems), len(self.decisions)), dtype=np.int64)
        with self.lock:
            self.lib.tensorop_decide_all(
                len(given),
                self.ffi.from_buffer("struct tensorop_configuration *", given),
                len(problems),
                self.ffi.from_buffer("struct tensorop_problem *", problems),
                self.ffi.from_buffer("struct tensorop_decisions *", found, require_writable=True),
            )
        return dict(zip(self.decisions, np.moveaxis(found, 2, 0).astype(np.float64), strict=True))


@lru_cache(maxsize=256)
def compiled(text: str) -> DecisionFunction:
    """The function of a rendered `decide.c.j2`. Raises SpecError if a struct is missing, JobError, MissingTool."""
    structs = _STRUCT.findall(text)
    if len(structs) != 3:
        raise SpecError(
            f"decide.c.j2: expected three structs, of configuration, problem and decisions, got {len(structs)}"
        )
    ffi = cffi.FFI()
    ffi.cdef("\n".join(structs) + _CALL + ";")
    lib = ffi.dlopen(str(programs.host_library(Source((("decide.c", text + _CALL + _LOOP),))).path))
    names = (
        tuple(name for name, _ in ffi.typeof(f"struct tensorop_{kind}").fields)
        for kind in ("configuration", "problem", "decisions")
    )
    return DecisionFunction(ffi, lib, *names)
