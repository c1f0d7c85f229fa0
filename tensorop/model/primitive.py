"""Primitives: the operations from which kernel templates are written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from string import Template

from tensorop.errors import SpecError
from tensorop.model.expression import evaluate
from tensorop.model.number import NUMBERS
from tensorop.model.point import Value

MAX_LANES = 1 << 12  # elements in a vector; the checks of a set grow with its square

# Argument of a primitive -> its kind. A matrix is a pointer, followed by its leading dimension (in elements).
# Elements have the type of C (accumulator), unless the kind names another: A and B have the compute type in kernels
# and the storage type in callers' memory. For most dtypes all three types are equal.
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
    """The kind of an argument without its number format: vector, half, element, pointer, matrix, ..."""
    return ARGUMENTS[argument].removeprefix("compute ").removeprefix("storage ")


@dataclass(frozen=True)
class Primitive:
    """One primitive of one set for one dtype.

    Vectors have `lanes` elements; a half (64 of a vector's 128 bits, as a uint64_t) has half as many.
    """

    name: str
    c: str  # C text with `$name` for arguments and variables of the set
    args: tuple[str, ...]  # names of the arguments in order, see ARGUMENTS
    returns: str  # vec | compute | storage | half | elem | pred | memory | none
    # NumPy expression over the arguments, `vl` (active lanes), `lanes` and `np`. If the result is shorter than `lanes`,
    # the other lanes are undefined. A `pred` primitive gives the number of active lanes. A `memory` primitive gives the
    # new start of the first argument's contents; the rest is unchanged.
    meaning: str
    preconditions: tuple[str, ...] = ()
    exact: bool = True  # True: the meaning, rounded once; False: within the rounding errors of its operations
    # The largest distance from the meaning, in units of the last place of the exact value; None: as `exact` says.
    ulp: float | None = None
    cost: Mapping[str, float] | None = None
    support: str = ""  # C text that its `c` needs, before the kernels that call it; a second one of it does no harm


# Aliases of primitives for equal number formats, so that templates can always use these names.
_COMPUTE_ALIKE: Mapping[str, str] = {
    "load_packed": "load",
    "load_packed_tail": "load_tail",
    "store_packed": "store",
    "store_packed_tail": "store_tail",
    "mac": "fma",
}
_STORAGE_ALIKE: Mapping[str, str] = {"load_raw": "load_packed", "load_raw_tail": "load_packed_tail"}
_WIDEN = Primitive("widen", "$raw", ("raw", "vl"), "compute", "raw[:vl]")  # for equal formats
_ALL_ALIKE: Mapping[str, str] = {"load_unpacked": "load", "load_unpacked_tail": "load_tail"}


@dataclass(frozen=True)
class Formats:
    """Number formats of a dtype (names in tensorop.model.number)."""

    storage: str  # of A and B in callers' memory
    compute: str  # of A and B in kernels
    accumulator: str  # of C
    group: int = 1  # steps of k in an element of the compute type: integers side by side, the first in the lowest bits

    def of(self, argument: str) -> str:
        """The format of an argument's elements."""
        kind = ARGUMENTS[argument].partition(" ")[0]
        return {"compute": self.compute, "storage": self.storage}.get(kind, self.accumulator)

    def answer(self, primitive: Primitive) -> str:
        """The format of a primitive's result; for one that writes memory, of its first argument."""
        if primitive.returns in ("memory", "none"):
            return self.of(primitive.args[0])
        # values of the storage type are compared after widening
        return self.compute if primitive.returns in ("compute", "storage") else self.accumulator

    @property
    def widened(self) -> bool:
        """Whether packing converts the operands, so that it cannot be skipped."""
        return self.storage != self.compute


@dataclass(frozen=True)
class Primitives:
    """A platform's primitives for one dtype and one choice of the sets' settings (e.g. lmul)."""

    dtype: str
    element: str  # C type of an element of C (accumulator)
    vector: str  # C type of a vector of them
    predicate: str  # C type that selects the first lanes of a vector
    lanes: str  # C expression: elements in a vector
    headers: tuple[str, ...]
    support: str  # C text that some primitives need, in every kernel
    by_name: Mapping[str, Primitive]
    settings: Mapping[str, int]
    masked: bool  # loads of a part of a vector cost no more than full ones
    sources: Mapping[str, str]  # primitive -> its set
    formats: Formats
    compute_vector: str  # C type of a vector of elements of the compute type
    storage_vector: str  # C type of as many elements of the storage type

    @property
    def storage(self) -> str:
        """C type of an element of A or B in callers' memory."""
        return NUMBERS[self.formats.storage].c

    @property
    def compute(self) -> str:
        """C type of an element of A or B in kernels."""
        return NUMBERS[self.formats.compute].c

    @property
    def types(self) -> tuple[str, ...]:
        """The C types that a template may name."""
        of_c = self.element, self.vector, self.predicate
        return *of_c, self.compute, self.compute_vector, self.storage, self.storage_vector

    @property
    def with_aliases(self) -> Mapping[str, Primitive]:
        """All names that a template may use: the primitives and, for equal number formats, their aliases."""
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
    """A dtype of a set. C texts have `$name` for the set's settings, for `vars`, and for `vlen`."""

    element: str
    vector: str
    predicate: str
    lanes: str  # C expression: elements in a vector of any length
    fixed_lanes: str  # the same for vectors of `$vlen` bits
    formats: Formats
    compute_vector: str
    storage_vector: str
    support: str
    vars: Mapping[str, str | Mapping[str, Mapping[int, str]]]  # name -> text, or setting -> its value -> text
    primitives: Mapping[str, Primitive]


@dataclass(frozen=True)
class Collective:
    """A primitive that a group of GPU threads executes together."""

    name: str
    group: str  # its callers: thread | warp | warpgroup | block | cluster
    meaning: str  # the resulting contents of the group's registers and shared memory, or the ordering that it enforces
    c: str  # the body of its function, a Jinja2 text over `parameters`
    returns: str = "void"  # a C type
    args: tuple[str, ...] = ()  # C declarations
    template: str = ""  # parameters of the C++ template
    parameters: tuple[str, ...] = ()  # from a template's tunables and facts
    # accesses of one thread's call (docs/reference/primitives.md), a Jinja2 text; None: unknown, "": none
    accesses: str | None = None
    # A fragment's name -> expressions of the row and the column that register `register` of thread `thread` holds.
    holds: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    addresses: frozenset[str] = frozenset()  # types of the set whose values are addresses

    @property
    def declared(self) -> tuple[tuple[str, str, str], ...]:
        """(type, name, mark) of each argument, then of the template's parameter.

        The mark is `*` for a pointer, `@` for a number that is an address, `&` for a local that may change, else "".
        """
        found = []
        for argument in (*self.args, *([self.template] if self.template else ())):
            kind, name = re.findall(r"\b(?!const\b)[A-Za-z_]\w*", argument)[:2]
            changed = "&" in argument and not argument.startswith("const ")
            mark = "*" if "*" in argument else "&" if changed else "@" if kind in self.addresses else ""
            found.append((kind, name, mark))
        return tuple(found)


@dataclass(frozen=True)
class PrimitiveSet:
    """The primitives of an instruction set."""

    name: str
    headers: tuple[str, ...]
    settings: Mapping[str, tuple[int, ...]]
    masked: bool
    types: Mapping[str, ElementType]
    broadcast: int = 1  # temporary vector registers for a scalar factor of `fma`
    whole: str = ""  # text of its file, for products; set if it is not shipped with tensorop
    collectives: Mapping[str, Collective] = field(default_factory=dict)
    addresses: Mapping[str, str] = field(default_factory=dict)  # type of addresses in collectives -> its C type

    def primitives_of(self, dtype: str, chosen: Mapping[str, Value], fixed_vlen: int | None) -> Primitives:
        """The primitives for a dtype with the settings in `chosen`; others have their first value.

        Raises SpecError for a value that a setting does not have.

        fixed_vlen: bits
        """
        kind, values = self.types[dtype], self._values(chosen)
        for key, value in values.items():
            if value not in self.settings[key]:
                known = "; ".join(f"{k}: {', '.join(map(str, v))}" for k, v in self.settings.items())
                raise SpecError(f"primitive set '{self.name}' has no setting {key}={value}; it has {known}")
        variables = {**self._filled(kind, values), **({"vlen": str(fixed_vlen)} if fixed_vlen else {})}

        def fill(text: str) -> str:
            return Template(text).safe_substitute(variables)

        by_name = {
            name: replace(one, c=fill(one.c), support=fill(one.support)) for name, one in kind.primitives.items()
        }
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
        """`lanes` as an expression over the settings."""
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
