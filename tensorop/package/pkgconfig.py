"""One pkg-config file a library, relocatable with the prefix it is in."""

from __future__ import annotations

from tensorop import __version__
from tensorop.model.platform import Platform
from tensorop.package import cmake
from tensorop.package.sources import Sources

FOLDER = "lib/pkgconfig"


def files(sources: Sources, platform: Platform) -> dict[str, str]:
    """File name -> text."""
    return {
        f"{library.name}.pc": cmake.fill(
            "tensorop.pc.in",
            {
                "LIBRARY": library.name,
                "DESCRIPTION": library.description,
                "PLATFORM": platform.name,
                "VERSION": __version__,
                "REQUIRES": " ".join(library.over),
            },
        )
        for library in sources.libraries
    }
