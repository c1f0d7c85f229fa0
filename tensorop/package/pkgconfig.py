"""Two pkg-config files a library, relocatable with the prefix they are in.

pkg-config takes the first file of a name, whatever the architecture of its library. So each library has a second name
with its architecture, `LIBRARY-ARCH`, which finds the right prefix in any order of prefixes.
"""

from __future__ import annotations

from tensorop import __version__
from tensorop.model.platform import Platform
from tensorop.package import cmake
from tensorop.package.sources import Sources
from tensorop.render import words

FOLDER = "lib/pkgconfig"


def files(sources: Sources, platform: Platform) -> dict[str, str]:
    """File name -> text."""
    return {
        f"{library.name}{suffix}.pc": cmake.fill(
            "tensorop.pc.in",
            {
                "LIBRARY": library.name,
                "SUFFIX": suffix,
                "DESCRIPTION": words.in_build_file(library.description),
                "PLATFORM": words.in_build_file(platform.name),
                "ARCH": platform.arch,
                "VERSION": __version__,
                "REQUIRES": " ".join(f"{name}{suffix}" for name in library.over),
            },
        )
        for library in sources.libraries
        for suffix in ("", f"-{platform.arch}")
    }
