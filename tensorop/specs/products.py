"""The schema of templates/<op>/product/product.yaml: the operator's own part of its libraries."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from tensorop.model.operator import Operator
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File, Record

FOLDER = "product"
# files that all operators' libraries share, in paths.native_dir() / FOLDER
HEADER, PRIVATE = "common.h", ("isa.h", "internal.h")
SOURCES = ("api.c", "cpu.c", "threads.c", "workspace.c", "card.c")
NAMES = ("tensorop_set_num_threads", "tensorop_get_num_threads", "tensorop_card")


class LibrarySpec(Record):
    """One library. The first one also has the shared files and names of `native/product/`; others link to it."""

    description: str
    sources: tuple[str, ...] = Field(default=(), strict=False)
    names: dict[str, list[str]]  # dtype or `all` -> public symbols
    api: str = ""  # interface of adapter.c that it has for these dtypes; comparisons with other libraries use it


class ProductSpec(File):
    """A whole file. File names are those in the product; each has a template NAME.j2 here or in native/product/."""

    headers: tuple[str, ...] = Field(min_length=1, strict=False)
    private: tuple[str, ...] = Field(default=(), strict=False)
    driver: str
    kernel: str
    tile: str
    dtype: tuple[str, ...] = Field(strict=False)
    libraries: dict[str, LibrarySpec] = Field(min_length=1)
    types: dict[str, dict[str, str]] = Field(default_factory=dict)  # dtype -> variables for the templates
    settings: dict[str, int] = Field(default_factory=dict)
    # dispatch feature that several threads cut -> side of the tile (`tile` of reference.py) that stays whole; two
    threads: dict[str, str] = Field(default_factory=dict)
    calls: dict[str, list[str]] = Field(default_factory=dict)  # file -> functions outside of the product that it calls


def load(operator: Operator) -> ProductSpec:
    """Reads an operator's file. Raises SpecError with file, key and the expected value."""
    path: Path = operator.folder / FOLDER / "product.yaml"
    return yamlfile.validate(ProductSpec, yamlfile.read(path), str(path))
