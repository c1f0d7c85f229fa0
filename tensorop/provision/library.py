"""The record of a peer library, and how its files get into the cache."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path

from tensorop import errors
from tensorop.provision import cache


@dataclass(frozen=True)
class _Named:
    """What is known of a library wherever it is.

    kind         the API it exposes: "cblas" (its names between `prefix` and `suffix`), "dnnl" (oneDNN's C API), "xsmm"
    environment  what the process must carry for it to work, and work best, with so many threads; tuning of core types
                 is the platform file's
    build        which of several builds of it this is
    most_flops   products of more it hands on to another library, which would be compared in its stead; None: none
    """

    name: str
    version: str
    arch: str
    kind: str = field(default="cblas", kw_only=True)
    prefix: str = field(default="", kw_only=True)
    suffix: str = field(default="", kw_only=True)
    environment: Mapping[str, str] = field(default_factory=dict, kw_only=True)
    build: str = field(default="", kw_only=True)
    most_flops: float | None = field(default=None, kw_only=True)


@dataclass(frozen=True)
class Library(_Named):
    """A shared library to compare with, ready to be loaded.

    library_path: folders for the loader (LD_LIBRARY_PATH of the process that loads it)
    """

    path: Path
    library_path: tuple[Path, ...]


@dataclass(frozen=True)
class Source(_Named):
    """Where a library comes from: `fill` brings the files of one cache entry, `file` is the one to load in it.

    megabytes: to fetch, where it is known.
    """

    file: str
    fill: Callable[[Path], None]
    folders: tuple[str, ...] = (".",)
    megabytes: int = 0

    def command(self) -> str:
        """What fetches it by hand."""
        return cache.by_hand(self.name, self.arch)

    def folder(self) -> Path:
        """Its cache entry, whether or not it is there."""
        words = (self.name.partition("@")[0], self.version, self.build, self.arch)
        return cache.entry_path("libraries", "-".join(word for word in words if word))

    def bring(self, *, offline: bool | None = None) -> Library:
        """The library, fetched when absent. Raises MissingTool."""
        what = f"{self.name.partition('@')[0]} {self.version} for {self.arch}"
        root = cache.entry(
            self.folder(), self.fill, what=what, command=self.command(), offline=offline, purpose="to compare with",
            megabytes=self.megabytes,
        )  # fmt: skip
        path = root / self.file
        if not path.exists():
            raise errors.MissingTool(f"{what} came without {self.file}", hint=f"remove {root}, then {self.command()}")
        known = {each.name: getattr(self, each.name) for each in fields(_Named)}
        return Library(**known, path=path, library_path=tuple((root / f).resolve() for f in self.folders))
