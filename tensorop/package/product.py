"""Winners to everything a product's folder holds, in memory."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensorop import __version__, paths
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.winner import Winners
from tensorop.package import card, carried, cmake, library, manifest, pkgconfig
from tensorop.package.sources import Sources, sources, text_ids
from tensorop.texts import Texts

SHARE = "share/tensorop"
MANIFEST = f"{SHARE}/manifest.json"


@dataclass(frozen=True)
class Product:
    """Paths below the prefix: `files` with their bytes, `links` (symbolic) with the name they point to."""

    files: Mapping[str, bytes]
    links: Mapping[str, str]
    library: str  # the operator's shared library, without version numbers


def product(
    operator: Operator,
    platform: Platform,
    winners: Sequence[Winners],
    *,
    facts: Mapping[str, Any] | None = None,
    measured: str = "",
    jobs: int = 2,
    texts: Texts | None = None,
) -> Product:
    """The library of these winners with all that belongs to it; the same arguments give the same bits.

    facts: see manifest.provenance; measured: one line on what the dispatch was grown from, for its comment in C;
    texts: the job's kernels, without which only shipped drafts can be packaged.
    Raises render.RenderError (a template or draft is wrong), JobError (it does not build), MissingTool (no compiler).
    """
    texts = texts or Texts()
    ids = text_ids(operator, platform, winners, texts)
    origin = manifest.provenance(operator, platform, winners, facts or {}, ids)
    text = sources(operator, platform, winners, card.text(origin), measured=measured, texts=texts)
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
    pc = pkgconfig.files(text, platform)
    licence = _licence()
    files |= {f"{cmake.FOLDER}/{name}": data.encode() for name, data in package.items()}
    files |= {f"{pkgconfig.FOLDER}/{name}": data.encode() for name, data in pc.items()}
    headers = sorted(
        {header for w in winners for v in w.variants for header in platform.vocabulary(w.dtype, v.point).headers}
    )
    project = cmake.project(text, platform, headers, list(pc))
    own = {**package, **pc, "LICENSE": licence, "CMakeLists.txt": project, **_source_files(text)}
    files |= {f"{SHARE}/src/{name}": data.encode() for name, data in own.items()}
    files[f"{SHARE}/LICENSE"] = licence.encode()
    files[MANIFEST] = manifest.manifest({**origin, **carried.collect(platform)}, winners, files).encode()
    return Product(dict(sorted(files.items())), links, f"lib/lib{text.libraries[0].name}.so")


def _source_files(text: Sources) -> dict[str, str]:
    units = {unit.name: unit.text for lib in text.libraries for unit in lib.units}
    return {**units, **dict(text.private), **{f"include/tensorop/{name}": data for name, data in text.headers}}


def _licence() -> str:
    """tensorop's own: what it generates is under the same."""
    beside = paths.builtin_dir("cmake").parent / "LICENSE"
    if beside.is_file():
        return beside.read_text(encoding="utf-8")
    return "SPDX-License-Identifier: MIT\n"
