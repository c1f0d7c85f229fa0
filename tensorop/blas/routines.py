"""The table of BLAS routines: arguments in the order of the Fortran interface, their roles, and the C interfaces.

routines.yaml has the data. Everything that is made for each routine (bindings, grids, programs, headers, a recorder)
reads these records.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Literal

from tensorop.errors import UsageError, unknown_name
from tensorop.specs import yamlfile

TYPES = "sdcz"
COMPLEX = "cz"
LETTERS = {"side": "LR", "uplo": "UL", "trans": "NTC", "transa": "NTC", "transb": "NTC", "diag": "NU"}
_SIZES = ("m", "n", "k", "kl", "ku")
_REAL = {"s": "float", "d": "double", "c": "float", "z": "double"}
_TRANS = {"N": 111, "T": 112, "C": 113}
_CBLAS = {
    **dict.fromkeys(("trans", "transa", "transb"), _TRANS),
    "uplo": {"U": 121, "L": 122},
    "diag": {"N": 131, "U": 132},
    "side": {"L": 141, "R": 142},
}
LAYOUTS = {"row": 101, "col": 102}


class Role(StrEnum):
    """What an argument is."""

    FLAG = "flag"  # a letter; an enumeration in CBLAS
    SIZE = "size"
    LEADING = "leading dimension"
    INCREMENT = "increment"
    SCALAR = "scalar"
    OPERAND = "operand"


class Structure(StrEnum):
    """Which elements of a matrix are its own; the others are mirrored, zero or one, and neither read nor written."""

    GENERAL = "general"
    SYMMETRIC = "symmetric"
    HERMITIAN = "hermitian"
    TRIANGULAR = "triangular"


class Storage(StrEnum):
    """How a matrix lies in memory, by columns."""

    FULL = "full"
    PACKED = "packed"  # the columns of one half, without gaps
    BAND = "band"  # the diagonals as rows


@dataclass(frozen=True)
class BlasOperand:
    """An array of a routine. routines.yaml explains the fields."""

    kind: Literal["matrix", "vector", "array"]
    sizes: str  # rows and columns, or one number
    by: str = ""
    access: Literal["in", "out", "inout"] = "in"
    structure: Structure = Structure.GENERAL
    storage: Storage = Storage.FULL

    @property
    def written(self) -> bool:
        return self.access != "in"

    def shape(self, values: Mapping[str, int | str], flags: Mapping[str, str]) -> tuple[int, ...]:
        """Its rows and columns, its length, or its number of elements, for a call's sizes.

        values: sizes and flags by name; flags: the legal letters of each flag
        """
        first, _, other = self.sizes.partition("|")
        text = other if self.by and values[self.by] != flags[self.by][0] else first
        return tuple(int(word) if word.isdigit() else int(values[word]) for word in text.split())


@dataclass(frozen=True)
class Argument:
    """An argument of a routine."""

    name: str
    role: Role
    real: bool = False  # a real scalar or array, for complex types too
    of: str = ""  # the operand of a leading dimension or an increment


@dataclass(frozen=True)
class BlasRoutine:
    """A routine for all of its types. routines.yaml explains the fields."""

    name: str
    level: int
    types: str
    arguments: tuple[Argument, ...]
    operands: Mapping[str, BlasOperand]
    meaning: Mapping[str, str]
    terms: str
    result: Literal["", "element", "real", "double", "index"]
    names: Mapping[str, str]
    given_flags: Mapping[str, str]
    complex_flags: Mapping[str, str]
    residual: Mapping[str, str]

    def flags(self, dtype: str) -> dict[str, str]:
        """The legal letters of each flag, in upper case."""
        own = {**LETTERS, **self.given_flags, **(self.complex_flags if dtype in COMPLEX else {})}
        return {one.name: own[one.name] for one in self.of_role(Role.FLAG)}

    def of_role(self, *roles: Role) -> list[Argument]:
        return [one for one in self.arguments if one.role in roles]

    def function(self, dtype: str) -> str:
        """The name of its function without prefix and suffix."""
        return self.names.get(dtype, dtype + self.name)

    def number(self, argument: str) -> int:
        """The number by which the Fortran interface reports a wrong argument to xerbla."""
        return 1 + [one.name for one in self.arguments].index(argument)

    def inverted(self, operand: str) -> bool:
        """Whether the routine solves with this triangular matrix."""
        solved = self.operands[operand].structure is Structure.TRIANGULAR
        return solved and any("solve" in text for text in self.meaning.values())


def _argument(name: str, real: Sequence[str], operands: Mapping[str, BlasOperand]) -> Argument:
    if name in operands:
        return Argument(name, Role.OPERAND, name in real)
    for prefix, role in (("inc", Role.INCREMENT), ("ld", Role.LEADING)):
        if name.startswith(prefix):
            return Argument(name, role, of=name.removeprefix(prefix))
    role = Role.FLAG if name in LETTERS else Role.SIZE if name in _SIZES else Role.SCALAR
    return Argument(name, role, name in real)


@dataclass(frozen=True)
class _Entry:
    level: Literal[1, 2, 3]
    types: str
    arguments: str
    operands: dict[str, BlasOperand]
    terms: str
    meaning: dict[str, str] = field(default_factory=dict)
    result: Literal["", "element", "real", "double", "index"] = ""
    real: str = ""
    names: dict[str, str] = field(default_factory=dict)
    flags: dict[str, str] = field(default_factory=dict)
    complex_flags: dict[str, str] = field(default_factory=dict)
    residual: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class _Table:
    schema: Literal[1]
    routines: dict[str, _Entry]


@cache
def routines() -> Mapping[str, BlasRoutine]:
    """All routines by the name without a type, in the order of the table."""
    path = Path(__file__).with_name("routines.yaml")
    table = yamlfile.validate(_Table, yamlfile.read(path), str(path))
    return {name: _routine(name, entry) for name, entry in table.routines.items()}


def _routine(name: str, entry: _Entry) -> BlasRoutine:
    arguments = tuple(_argument(word, entry.real.split(), entry.operands) for word in entry.arguments.split())
    return BlasRoutine(
        name, entry.level, entry.types, arguments, entry.operands, entry.meaning, entry.terms, entry.result,
        entry.names, entry.flags, entry.complex_flags, entry.residual,
    )  # fmt: skip


@cache
def functions(types: str = TYPES) -> Mapping[str, tuple[BlasRoutine, str]]:
    """BlasRoutine and type of each function of these types, by its Fortran name in lower case without underscore."""
    return {one.function(dtype): (one, dtype) for one in routines().values() for dtype in one.types if dtype in types}


def chosen(text: str | None, types: str) -> tuple[tuple[BlasRoutine, str], ...]:
    """The functions of a comma-separated list of names with or without type; None: all.

    Raises UsageError for an unknown name, and for a routine that has none of the types.
    """
    known = functions()
    found: dict[str, tuple[BlasRoutine, str]] = {}
    for word in text.lower().split(",") if text is not None else routines():
        names = [word] if word in known else [n for n, (one, t) in known.items() if one.name == word and t in types]
        if not names and word not in routines():
            raise unknown_name("routine", word, (*routines(), *known))
        if not names and text is not None:
            has, wanted = ",".join(routines()[word].types), ",".join(types)
            raise UsageError(f"{word} has the types {has}; --dtype asks for {wanted}", hint=f"use --dtype {has}")
        found |= {name: known[name] for name in names}
    return tuple(found.values())


@dataclass(frozen=True)
class BlasInterface:
    """A C interface of a library, and how it spells names."""

    cblas: bool
    prefix: str = ""
    suffix: str = "_"
    wide: bool = False  # integers of 64 bits

    @property
    def integer(self) -> str:
        return "int64_t" if self.wide else "int32_t"

    @property
    def pattern(self) -> str:
        """Its names with a star for the function."""
        return f"{self.prefix}{'cblas_' if self.cblas else ''}*{self.suffix}"

    def symbol(self, routine: BlasRoutine, dtype: str) -> str:
        """The function's name in the library. CBLAS has complex dot products as subroutines."""
        name = routine.function(dtype)
        if self.cblas:
            name = f"cblas_{name}" + ("_sub" if routine.result == "element" and dtype in COMPLEX else "")
        return f"{self.prefix}{name}{self.suffix}"

    def laid_out(self, routine: BlasRoutine) -> bool:
        """Whether the first argument is the layout."""
        return self.cblas and routine.level > 1

    def returns(self, routine: BlasRoutine, dtype: str) -> str:
        """The C type of the result."""
        if routine.result == "double":
            return "double"
        if routine.result == "index":
            return "size_t" if self.cblas else self.integer
        if not routine.result or (self.cblas and dtype in COMPLEX and routine.result == "element"):
            return "void"
        return real(dtype) + (" _Complex" if dtype in COMPLEX and routine.result == "element" else "")

    def by_value(self, argument: Argument, dtype: str) -> bool:
        """Whether the argument is passed by value."""
        scalar = argument.role is Role.SCALAR and (dtype not in COMPLEX or argument.real)
        return self.cblas and (scalar or argument.role not in (Role.SCALAR, Role.OPERAND))

    def declared(self, argument: Argument, routine: BlasRoutine, dtype: str) -> str:
        """The argument in C, with its name."""
        of = real(dtype) if argument.real or dtype not in COMPLEX else "void"
        if argument.role is Role.FLAG:
            return f"int {argument.name}" if self.cblas else f"const char *{argument.name}"
        base = of if argument.role in (Role.SCALAR, Role.OPERAND) else self.integer
        if self.by_value(argument, dtype):
            return f"{base} {argument.name}"
        written = argument.role is Role.OPERAND and routine.operands[argument.name].written
        return f"{'' if written else 'const '}{base} *{argument.name}"

    def parameters(self, routine: BlasRoutine, dtype: str) -> tuple[str, ...]:
        """The parameters in C, without the lengths of strings that Fortran compilers add at the end."""
        result = ["void *result"] if self.cblas and routine.result == "element" and dtype in COMPLEX else []
        layout = ["int layout"] if self.laid_out(routine) else []
        return (*layout, *(self.declared(one, routine, dtype) for one in routine.arguments), *result)

    def prototype(self, routine: BlasRoutine, dtype: str) -> str:
        """The declaration in C."""
        words = ", ".join(self.parameters(routine, dtype))
        return f"{self.returns(routine, dtype)} {self.symbol(routine, dtype)}({words});"


def real(dtype: str) -> str:
    """The C type of an element's real part."""
    return _REAL[dtype]


def cblas_flag(name: str, letter: str) -> int:
    """The number in CBLAS of a flag's letter; -1 for another letter."""
    return _CBLAS[name].get(letter, -1)
