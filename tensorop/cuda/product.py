"""Makes a GPU product's folder from variants, and reads the variants back from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np

from tensorop import __version__
from tensorop.cuda import counted, library
from tensorop.cuda.choose import Candidate
from tensorop.cuda.corrected import Corrections
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.family import Family
from tensorop.cuda.library import LibraryVariant
from tensorop.device_target import DeviceContent
from tensorop.errors import UsageError
from tensorop.model.device import Key
from tensorop.model.kernel import KernelTemplate
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.winner import VariantRecord
from tensorop.package import cmake, manifest
from tensorop.package.product import MANIFEST, SHARE, Product, licence
from tensorop.package.sources import OperatorPart, ProductLibrary, Sources
from tensorop.specs import files as reading

_AGAIN = "build it again with this version: run the same `tensorop <operator>` command"


@dataclass(frozen=True)
class Content(DeviceContent):
    """Everything that a product is made from."""

    operator: Operator
    platform: Platform
    variants: Sequence[LibraryVariant]  # in the library's order
    records: Sequence[Mapping[str, Any]]  # each variant's entry in card and manifest
    images: Sequence[bytes]  # machine code; at the end that of the operator's second kernels
    texts: Mapping[int, str]  # CUDA, by number of image
    facts: Mapping[str, Any]  # of the card

    def product(self) -> Product:
        return product(self)


def product(of: Content, corrections: Corrections | None = None) -> Product:
    """All files of the product's folder."""
    operator, platform = of.operator, of.platform
    facts = {**of.facts, "images": [len(image) for image in of.images]}
    card = manifest.provenance(OperatorPart(operator, [], facts), platform, {})
    dtypes = dict.fromkeys(variant.dtype for variant in of.variants)
    card["dtypes"] = {dtype: {"variants": []} for dtype in dtypes}
    for number, (variant, record) in enumerate(zip(of.variants, of.records, strict=True)):
        card["dtypes"][variant.dtype]["variants"].append(cast(VariantRecord, {**record, "number": number}))
    card["platform"] |= {"device": dict(platform.device or {})}
    more = corrections.context() if corrections else None
    own = library.sources(operator, platform, of.variants, of.images, card, more)
    shared, archive = library.build(own, operator, platform)
    name = library.name_of(operator)
    whole = f"lib{name}.so.{__version__}"
    soname = f"lib{name}.so.{__version__.split('.')[0]}"
    where = corrections.where if corrections else "not measured"
    named = Sources((), (), (ProductLibrary(name, f"{operator.name} on NVIDIA GPUs, {where}", (), ()),))
    files = {f"lib/{whole}": shared, f"lib/lib{name}.a": archive}
    files |= {f"include/{n}": data for n, data in own.items() if n.startswith("tensorop/")}
    files |= {f"{cmake.FOLDER}/{n}": text.encode() for n, text in cmake.package_files(named, platform).items()}
    files |= {
        f"{cmake.PKGCONFIG_FOLDER}/{n}": text.encode() for n, text in cmake.pkgconfig_files(named, platform).items()
    }
    inside = {n: f"include/{n}" if n.startswith("tensorop/") else n for n in own}
    files |= {f"{SHARE}/src/{inside[n]}": data for n, data in own.items()}
    files |= {f"{SHARE}/src/kernels/{n}.cu": text.encode() for n, text in of.texts.items()}
    files[f"{SHARE}/LICENSE"] = licence().encode()
    of_operator = {operator.name: {name: card[name] for name in ("facts", "dtypes")}}
    files[MANIFEST] = manifest.document(card, of_operator, {}, files).encode()
    links = {f"lib/{soname}": whole, f"lib/lib{name}.so": soname}
    return Product(dict(sorted(files.items())), links, f"lib/lib{name}.so")


def content(
    root: Path,
    part: Mapping[str, Any],
    operator: Operator,
    platform: Platform,
    templates: Sequence[KernelTemplate],
) -> Content:
    """The content of an existing product. part: the operator's part of its manifest.

    Raises UsageError if a template has changed since; KeyError, ValueError or OSError if a part is absent.
    """
    by_digest = {template.digest: template for template in templates}
    families: dict[tuple[str, Key], Family] = {}
    call = operator.on_device
    numbered, counts = {}, counted.of_variants(part, call)
    for dtype, of_dtype in part["dtypes"].items():
        for one in of_dtype["variants"]:
            key = (one["digest"], call.key(one))
            if key[0] not in by_digest:
                raise UsageError(
                    f"{root} was built by an incompatible version of tensorop: template '{one['template']}' differs",
                    hint=_AGAIN,
                )
            if key not in families:
                given = device_numbers(platform, dtype, part["facts"].get("epilogue", False)) | call.named(key[1])
                families[key] = Family(call, by_digest[key[0]], given)
                if key in counts:
                    early = {families[key].early(point): found for point, found in counts[key].items()}
                    families[key] = Family(call, by_digest[key[0]], given, early)
            candidate = Candidate(families[key], _place(families[key], one["point"]))
            numbered[int(one["number"])] = (LibraryVariant(candidate, dtype, int(one["image"])), one)
    blob, images, at = reading.read(root / SHARE / "src" / "kernels.bin", reading.LIBRARY), [], 0
    for size in part["facts"]["images"]:
        images.append(blob[at : at + size])
        at += size + -size % 64
    if at != len(blob) or sorted(numbered) != list(range(len(numbered))):
        raise ValueError("its kernels are not those of its manifest")
    variants, records = zip(*(numbered[number] for number in sorted(numbered)), strict=True)
    folder = root / SHARE / "src" / "kernels"
    texts = {int(path.stem): reading.text(path, reading.TEXT) for path in folder.glob("*.cu")}
    return Content(operator, platform, variants, records, images, texts, part["facts"])


def _place(family: Family, values: Mapping[str, Any]) -> int:
    point = Point.of(values)
    same = np.logical_and.reduce([family.grid[name] == value for name, value in dict(point).items()])
    (found,) = np.flatnonzero(same)
    return int(found)
