"""The schema of templates/<op>/product/product.yaml: the operator's own part of its libraries.

Without the file, or without a key, an operator has the generated files of native/operator/product/.
"""

from __future__ import annotations

import os
from pathlib import Path

from pydantic import Field

from tensorop import paths
from tensorop.model.operator import Operator
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File, Record

FOLDER = "product"
# files that all operators' libraries share, in paths.native_dir() / FOLDER
HEADER, PRIVATE = "common.h", ("isa.h", "internal.h")
SOURCES = ("api.c", "cpu.c", "threads.c", "workspace.c", "card.c")
WORK_PER_THREAD = 1 << 20  # multiply-adds, by default: about 10 us at 200 GFLOP/s
NAMES = ("tensorop_set_num_threads", "tensorop_get_num_threads", "tensorop_card")


class LibrarySpec(Record):
    """One library. The first one also has the shared files and names of `native/product/`; others link to it."""

    description: str
    sources: tuple[str, ...] = Field(default=(), strict=False)
    names: dict[str, list[str]] = Field(default_factory=dict)  # dtype, `all` or `epilogue DTYPE` -> public symbols
    api: str = ""  # interface of adapter.c that it has for these dtypes; comparisons with other libraries use it
    # its names for each of the product's BLAS routines, where {routine} is the routine with the letter of a type
    routines: tuple[str, ...] = Field(default=(), strict=False)


class RoutineSpec(Record):
    """A BLAS routine of the product, by its name in tensorop/blas/routines.yaml."""

    computes: str  # a sentence for headers
    tuned: str = "all of it"  # what of it is tuned: for the card and the report
    # the arguments of the column-major call that computes a row-major one, each in the place of one of the
    # column-major call's own; ~ before a flag: its other value
    row_major: str
    suites: dict[str, list[list[int]]] = Field(default_factory=dict)  # shapes for comparisons, the usual ones first


class TunableSpec(Record):
    """A number in the C of a routine, which a job measures in the finished library for each dtype."""

    meaning: str
    routine: str  # the routine whose calls are measured
    values: tuple[int, ...] = Field(min_length=2, strict=False)  # the usual one first
    shapes: list[list[int]] = Field(min_length=1)


class ProductSpec(File):
    """A whole file. File names are those in the product; `template` finds the template of each."""

    headers: tuple[str, ...] = Field(default=(), strict=False)  # by default OPERATOR.h
    private: tuple[str, ...] = Field(default=("dispatch.h",), strict=False)
    driver: str = "driver.c"
    kernel: str = "kernel.c"
    tile: str = ""  # the part of a kernel's file name for its tunables; by default all of them
    dtype: tuple[str, ...] = Field(default=("dispatch.c",), strict=False)
    # those of `dtype` that are compiled again for the platform's ISA: their templates see that `tuned` is true, and the
    # names of `instantiate.vectors`
    tuned: tuple[str, ...] = Field(default=(), strict=False)
    # those of libraries with epilogues, once a dtype and compiled twice as `tuned`; their names: `epilogue DTYPE`
    epilogue: tuple[str, ...] = Field(default=(), strict=False)
    libraries: dict[str, LibrarySpec] = Field(default_factory=dict)  # by default tensorop_OPERATOR
    types: dict[str, dict[str, str]] = Field(default_factory=dict)  # dtype -> variables for the templates
    statuses: dict[str, str] = Field(default_factory=dict)  # name -> sentence, numbered from 1; by default the faults
    settings: dict[str, int] = Field(default_factory=dict)
    # dispatch feature that several threads cut -> side of the tile (`tile` of reference.py) that stays whole; two
    threads: dict[str, str] = Field(default_factory=dict)
    routines: dict[str, RoutineSpec] = Field(default_factory=dict)
    tunables: dict[str, TunableSpec] = Field(default_factory=dict)  # templates of `dtype` see each by its name
    calls: dict[str, list[str]] = Field(default_factory=dict)  # file -> functions outside of the product that it calls


def load(operator: Operator) -> ProductSpec:
    """The product of an operator. Raises SpecError with file, key and the expected value."""
    given: dict[str, object] = {"schema": 1}
    for folder in filter(None, (operator.folder, operator.extension)):  # an extension's keys over those it extends
        path: Path = folder / FOLDER / "product.yaml"
        given |= yamlfile.read(path) if os.path.lexists(path) else {}
    spec = yamlfile.validate(ProductSpec, given, str(path))
    name = f"tensorop_{operator.name}"
    whole = {
        "headers": spec.headers or (f"{operator.name}.h",),
        "libraries": _with_routines(spec) or {name: _generated(name, operator)},
        "types": spec.types or {dtype: {"function": f"{name}_{dtype}"} for dtype in operator.dtypes},
        "statuses": spec.statuses or {fault.name: fault.sentence for fault in operator.interface.faults},
        "settings": {"plain": "plain.c" in spec.dtype, **(spec.settings or {"work_per_thread": WORK_PER_THREAD})},
    }
    return spec.model_copy(update=whole)


def _with_routines(spec: ProductSpec) -> dict[str, LibrarySpec]:
    """The libraries with their names of BLAS routines."""
    letters = {dtype: of["blas"] for dtype, of in spec.types.items() if "blas" in of}
    made = {}
    for name, one in spec.libraries.items():
        known = {
            dtype: [form.format(routine=letter + routine) for routine in spec.routines for form in one.routines]
            for dtype, letter in letters.items()
        }
        names = {of: [*dict.fromkeys((*one.names.get(of, ()), *known.get(of, ())))] for of in {**one.names, **known}}
        made[name] = one.model_copy(update={"names": names})
    return made


def _generated(name: str, operator: Operator) -> LibrarySpec:
    more = ("", "_variant", "_workspace") if operator.interface.workspace else ("", "_variant")
    of_dtypes = {dtype: [f"{name}_{dtype}{ending}" for ending in more] for dtype in operator.dtypes}
    names = {"all": [f"{name}_check", f"{name}_message"], **of_dtypes}
    return LibrarySpec(description=operator.description, sources=("check.c",), names=names)


def template(operator: Operator, file: str) -> str | None:
    """The name of the template of a product's file; None if there is none."""
    generated = ["NAME.h"] if file == f"{operator.name}.h" else []
    names = [f"{FOLDER}/{name}.j2" for name in (file, *generated)]
    return next((name for name in names if any((folder / name).is_file() for folder in folders(operator))), None)


def folders(operator: Operator) -> tuple[Path, ...]:
    """The folders of a product's templates: the operator's own, the generated ones, those of every product."""
    return *operator.parts, paths.native_dir()
