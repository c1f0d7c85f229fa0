"""Primitives: what a kernel template is written in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from string import Template

from tensorop.errors import SpecError
from tensorop.model.expression import evaluate
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value

MAX_LANES = 1 << 12  # elements in a vector; what is tried on a set grows with their square

# What an argument of a primitive is, by its name. A matrix is a pointer whose leading dimension (in elements) follows
# it. Elements are C's unless stated otherwise: those of the compute type are A's and B's as kernels
# read them, those of the storage type as callers give them, and for most dtypes all three are the same.
ARGUMENTS: Mapping[str, str] = {
    "acc": "vector",
    "v": "vector",
    "w": "vector",
    "half": "half",
    "s": "element",
    "p": "pointer",
    "x": "compute vector",
    "y": "compute element",
    "q": "compute pointer",
    "r": "storage pointer",
    "raw": "storage vector",
    "dst": "compute matrix",
    "ldd": "leading dimension",
    "src": "storage matrix",
    "lds": "leading dimension",
    "vl": "predicate",
    "count": "count",
    "rows": "count",
    "cols": "count",
    "lane": "constant",
}


def shape_of(argument: str) -> str:
    """What an argument is, whatever its number format: vector, half, element, pointer, matrix, ..."""
    return ARGUMENTS[argument].removeprefix("compute ").removeprefix("storage ")


@dataclass(frozen=True)
class Primitive:
    """One primitive of one set for one dtype.

    Vectors have `lanes` elements, a half (64 of a vector's 128 bits, as a uint64_t) half as many.
    """

    name: str
    c: str  # C text with `$name` for arguments and the set's own variables
    args: tuple[str, ...]  # argument names in order, see ARGUMENTS
    returns: str  # vec | compute | storage | half | elem | pred | memory | none
    # NumPy expression over the arguments, `vl` (active lanes), `lanes` and `np`. A result shorter than `lanes` leaves
    # the others undefined. Of a `pred` primitive the number of active lanes; of a `memory` primitive the new contents
    # of the first argument, everything beyond them untouched.
    meaning: str
    preconditions: tuple[str, ...] = ()
    exact: bool = True  # False: within the rounding errors of its operations; True: the meaning, rounded once
    cost: Mapping[str, float] | None = None


# Primitives that say the same as others where a number format is the same: a template may always speak them.
_COMPUTE_ALIKE: Mapping[str, str] = {
    "load_packed": "load",
    "load_packed_tail": "load_tail",
    "store_packed": "store",
    "store_packed_tail": "store_tail",
    "mac": "fma",
}
_STORAGE_ALIKE: Mapping[str, str] = {"load_raw": "load_packed", "load_raw_tail": "load_packed_tail"}
_WIDEN = Primitive("widen", "$raw", ("raw", "vl"), "compute", "raw[:vl]")  # where there is nothing to widen
_ALL_ALIKE: Mapping[str, str] = {"load_unpacked": "load", "load_unpacked_tail": "load_tail"}


@dataclass(frozen=True)
class Formats:
    """Number formats (tensorop.model.number): of A and B as callers store them, as kernels read them, and of C.

    group: steps of k that an element of the compute type holds, as so many integers side by side, the first lowest.
    """

    storage: str
    compute: str
    accumulator: str
    group: int = 1

    def of(self, argument: str) -> str:
        """The format of an argument's elements."""
        kind = ARGUMENTS[argument].partition(" ")[0]
        return {"compute": self.compute, "storage": self.storage}.get(kind, self.accumulator)

    def answer(self, primitive: Primitive) -> str:
        """The format of what a primitive gives; of one that writes memory, of its first array."""
        if primitive.returns in ("memory", "none"):
            return self.of(primitive.args[0])
        # what has the storage type is seen widened
        return self.compute if primitive.returns in ("compute", "storage") else self.accumulator

    @property
    def widened(self) -> bool:
        """Whether packing changes the operands, so that it cannot be left out."""
        return self.storage != self.compute


@dataclass(frozen=True)
class Primitives:
    """A platform's primitives for one dtype and one choice of the sets' settings (e.g. lmul)."""

    dtype: str
    element: str  # C type of an element of C
    vector: str  # C type of a vector of such
    predicate: str  # C type that selects the first lanes of a vector
    lanes: str  # C expression: elements in a vector
    headers: tuple[str, ...]
    support: str  # C text some primitives rely on
    by_name: Mapping[str, Primitive]
    settings: Mapping[str, int]
    masked: bool  # loads of a part of a vector cost no more than whole ones
    sources: Mapping[str, str]  # primitive -> the set it came from
    formats: Formats
    compute_vector: str  # C type of a vector of elements of the compute type
    storage_vector: str  # and of as many of the storage type

    @property
    def storage(self) -> str:
        """C type of an element of A or B as callers store it."""
        return NUMBERS[self.formats.storage].c

    @property
    def compute(self) -> str:
        """C type of an element of A or B as kernels read it."""
        return NUMBERS[self.formats.compute].c

    @property
    def types(self) -> tuple[str, ...]:
        """The C types that a template may name."""
        of_c = self.element, self.vector, self.predicate
        return *of_c, self.compute, self.compute_vector, self.storage, self.storage_vector

    @property
    def with_aliases(self) -> Mapping[str, Primitive]:
        """What a template may say: the primitives, and other names of them where number formats coincide."""
        known = dict(self.by_name)
        alike = [_COMPUTE_ALIKE] if self.formats.compute == self.formats.accumulator else []
        alike += [] if self.formats.widened else [_STORAGE_ALIKE]
        same = self.formats.storage == self.formats.compute == self.formats.accumulator
        alike += [_ALL_ALIKE] if same else []
        for names in alike:
            known |= {
                name: replace(known[of], name=name) for name, of in names.items() if of in known and name not in known
            }
        return known if self.formats.widened else {**known, "widen": _WIDEN}


@dataclass(frozen=True)
class ElementType:
    """A dtype in a set. The C texts name the set's settings, `vars` (by a setting's value where they depend on one) and
    `vlen` with `$`; lanes is an expression for vectors of any length, fixed_lanes for those of `$vlen` bits."""

    element: str
    vector: str
    predicate: str
    lanes: str
    fixed_lanes: str
    formats: Formats
    compute_vector: str
    storage_vector: str
    support: str
    vars: Mapping[str, str | Mapping[str, Mapping[int, str]]]
    primitives: Mapping[str, Primitive]


@dataclass(frozen=True)
class Collective:
    """One primitive that a group of a device's threads executes together."""

    name: str
    group: str  # who calls it: thread | warp | warpgroup | block | cluster
    meaning: str  # what registers and shared memory of the whole group hold afterwards, or what it orders
    c: str  # the body of its function, a Jinja2 text over `parameters`
    returns: str = "void"  # a C type
    args: tuple[str, ...] = ()  # C declarations
    template: str = ""  # parameters of the C++ template
    parameters: tuple[str, ...] = ()  # given by a template's tunables and facts
    # of one thread's call (docs/reference/primitives.md), a text as c is; None: not known, "": none
    accesses: str | None = None
    # Of a fragment spread over the group's registers: its name -> expressions of the row and the column that register
    # `register` of thread `thread` has.
    holds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    addresses: frozenset[str] = frozenset()  # the set's types whose numbers are addresses

    @property
    def declared(self) -> tuple[tuple[str, str, str], ...]:
        """Of each argument its type, its name, and `*` of a pointer, `@` of a number that is an address, `&` of a local
        that may be changed; then the parameter of a template."""
        found = []
        for argument in (*self.args, *([self.template] if self.template else ())):
            kind, name = re.findall(r"\b(?!const\b)[A-Za-z_]\w*", argument)[:2]
            changed = "&" in argument and not argument.startswith("const ")
            mark = "*" if "*" in argument else "&" if changed else "@" if kind in self.addresses else ""
            found.append((kind, name, mark))
        return tuple(found)


@dataclass(frozen=True)
class PrimitiveSet:
    """The primitives of an instruction set. whole: its file where it does not ship, for it travels with products
    then."""

    name: str
    headers: tuple[str, ...]
    settings: Mapping[str, tuple[int, ...]]
    masked: bool
    types: Mapping[str, ElementType]
    broadcast: int = 1  # vector registers that a scalar factor of `fma` takes on its way
    whole: str = ""
    collectives: Mapping[str, Collective] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)  # types of collectives that are addresses, and their C

    def primitives_of(self, dtype: str, chosen: Mapping[str, Value], fixed_vlen: int | None) -> Primitives:
        """The primitives for a dtype at what `chosen` says of the settings, else the first value of each. fixed_vlen:
        bits.

        Raises SpecError for a value that a setting has not.
        """
        kind, values = self.types[dtype], self._values(chosen)
        for key, value in values.items():
            if value not in self.settings[key]:
                known = "; ".join(f"{k}: {', '.join(map(str, v))}" for k, v in self.settings.items())
                raise SpecError(f"primitive set '{self.name}' has no setting {key}={value}; it has {known}")
        variables = {**self._filled(kind, values), **({"vlen": str(fixed_vlen)} if fixed_vlen else {})}

        def fill(text: str) -> str:
            return Template(text).safe_substitute(variables)

        by_name = {name: replace(primitive, c=fill(primitive.c)) for name, primitive in kind.primitives.items()}
        return Primitives(
            dtype=dtype,
            element=kind.element,
            vector=fill(kind.vector),
            predicate=kind.predicate,
            lanes=fill(kind.fixed_lanes if fixed_vlen else kind.lanes),
            headers=self.headers,
            support=fill(kind.support),
            by_name=by_name,
            settings=values,
            masked=self.masked,
            sources=dict.fromkeys(by_name, self.name),
            formats=kind.formats,
            compute_vector=fill(kind.compute_vector),
            storage_vector=fill(kind.storage_vector),
        )

    def lanes(self, dtype: str, chosen: Mapping[str, Value], vlen: int) -> int:
        """Elements in a vector on a machine with this VLEN (bits). Raises SpecError for more than MAX_LANES."""
        kind = self.types[dtype]
        names = {**self._filled(kind, self._values(chosen)), "vlen": str(vlen)}
        found = evaluate(Template(kind.fixed_lanes).safe_substitute(names).replace("/", "//"), {})
        if found > MAX_LANES:
            raise SpecError(
                f"primitive set '{self.name}': types.{dtype}.lanes gives {found} lanes at VLEN {vlen}; "
                f"at most {MAX_LANES} are tried"
            )
        return max(found, 1)

    def lanes_expression(self, dtype: str, vlen: int) -> str:
        """The same as an expression over the settings."""
        kind = self.types[dtype]
        names = {key: text for key, text in kind.vars.items() if isinstance(text, str)}
        names |= {**{key: key for key in self.settings}, "vlen": str(vlen)}
        return Template(kind.fixed_lanes).safe_substitute(names).replace("/", "//")

    def _values(self, chosen: Mapping[str, Value]) -> dict[str, int]:
        return {key: int(chosen.get(key, options[0])) for key, options in self.settings.items()}

    def _filled(self, kind: ElementType, values: Mapping[str, int]) -> dict[str, str]:
        filled = {
            name: text if isinstance(text, str) else next(by[values[setting]] for setting, by in text.items())
            for name, text in kind.vars.items()
        }
        return {**filled, **{key: str(value) for key, value in values.items()}}
