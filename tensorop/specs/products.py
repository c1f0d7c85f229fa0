"""The schema of templates/<op>/product/product.yaml: what the operator's library has beside the core's part."""

from __future__ import annotations

from pathlib import Path

from pydantic import Field

from tensorop.model.operator import Operator
from tensorop.specs import yamlfile
from tensorop.specs.yamlfile import File, Record

FOLDER = "product"
# the core's part of every operator's library, in paths.native_dir() / FOLDER
HEADER, PRIVATE = "common.h", ("isa.h", "internal.h")
SOURCES = ("api.c", "cpu.c", "threads.c", "workspace.c", "card.c")
NAMES = ("tensorop_set_num_threads", "tensorop_get_num_threads", "tensorop_card")


class LibrarySpec(Record):
    """One library; those after the first are linked to the first. names: dtype or `all` -> public symbols.
    The first one has the core's files and names (`native/product/`) too.

    api: the interface of adapter.c that it has for the dtypes named, by which it is compared with other libraries.
    """

    description: str
    sources: tuple[str, ...] = Field(default=(), strict=False)
    names: dict[str, list[str]]
    api: str = ""


class ProductSpec(File):
    """A whole file. File names are those of the product; the template is NAME.j2 in the same folder, or the core's."""

    headers: tuple[str, ...] = Field(min_length=1, strict=False)
    private: tuple[str, ...] = Field(default=(), strict=False)
    driver: str
    kernel: str
    tile: str
    dtype: tuple[str, ...] = Field(strict=False)
    libraries: dict[str, LibrarySpec] = Field(min_length=1)
    types: dict[str, dict[str, str]] = Field(default_factory=dict)  # dtype -> what the texts say of it
    settings: dict[str, int] = Field(default_factory=dict)
    calls: dict[str, list[str]] = Field(default_factory=dict)  # file -> what it calls outside of the product


def load(operator: Operator) -> ProductSpec:
    """Raises SpecError with file, key and what was expected."""
    path: Path = operator.folder / FOLDER / "product.yaml"
    return yamlfile.validate(ProductSpec, yamlfile.read(path), str(path))
