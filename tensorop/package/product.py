"""Makes all files of a product in memory, from the winners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import metadata

from tensorop import __version__, paths
from tensorop.model.platform import Platform
from tensorop.package import card, cmake, library, manifest, plugin_record
from tensorop.package.sources import OperatorPart, Sources, sources, text_ids, together
from tensorop.provision.check import DISTRIBUTION

SHARE = "share/tensorop"
MANIFEST = f"{SHARE}/manifest.json"


@dataclass(frozen=True)
class Product:
    """The files and links of a product, by their path below the prefix."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]  # symbolic links with their targets' names
    library: str  # the first operator's shared library, without version numbers


def product(platform: Platform, parts: Sequence[OperatorPart], *, jobs: int = 2) -> Product:
    """The libraries of one or several operators, with all files of a product. The same arguments give the same bits.

    Raises render.RenderError (a template is wrong), JobError (it does not build, two operators bring the same name),
    MissingTool (no compiler).
    """
    cards = [(part, manifest.provenance(part, platform, text_ids(part, platform))) for part in parts]
    text = together({part.operator.name: sources(part, platform, card.text(origin)) for part, origin in cards})
    files: dict[str, bytes] = {}
    links: dict[str, str] = {}
    for built in library.libraries(text, platform, jobs=jobs):
        whole = f"lib{built.name}.so.{__version__}"
        files[f"lib/{whole}"] = built.shared.path.read_bytes()
        files[f"lib/lib{built.name}.a"] = built.archive.path.read_bytes()
        links[f"lib/{built.soname}"] = whole
        links[f"lib/lib{built.name}.so"] = built.soname
    files |= {f"include/tensorop/{name}": data.encode() for name, data in text.headers}
    package = cmake.package_files(text, platform)
    pc = cmake.pkgconfig_files(text, platform)
    terms = licence()
    files |= {f"{cmake.FOLDER}/{name}": data.encode() for name, data in package.items()}
    files |= {f"{cmake.PKGCONFIG_FOLDER}/{name}": data.encode() for name, data in pc.items()}
    variants = [(w.dtype, v) for part in parts for w in part.winners for v in w.variants]
    headers = sorted({header for dtype, v in variants for header in platform.primitives_of(dtype, v.point).headers})
    project = cmake.project(text, platform, headers, list(pc))
    own = {**package, **pc, "LICENSE": terms, "CMakeLists.txt": project, **_source_files(text)}
    files |= {f"{SHARE}/src/{name}": data.encode() for name, data in own.items()}
    files[f"{SHARE}/LICENSE"] = terms.encode()
    files[MANIFEST] = manifest.manifest(cards, plugin_record.carried(platform), files).encode()
    return Product(dict(sorted(files.items())), links, f"lib/lib{text.libraries[0].name}.so")


def _source_files(text: Sources) -> dict[str, str]:
    units = {unit.name: unit.text for lib in text.libraries for unit in lib.units}
    return {**units, **dict(text.private), **{f"include/tensorop/{name}": data for name, data in text.headers}}


def licence() -> str:
    """The text of tensorop's license, which also covers the generated C."""
    beside = paths.builtin_dir("cmake").parent / "LICENSE"
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    try:
        installed = metadata.distribution(DISTRIBUTION).read_text("licenses/LICENSE")
    except metadata.PackageNotFoundError:
        installed = None
    return installed or "SPDX-License-Identifier: MIT\n"
