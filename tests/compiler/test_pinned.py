"""Packages by digest: what the archive has under a name is what was pinned, or nothing."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from tensorop.provision import debian

pytestmark = pytest.mark.skipif(not Path(debian.APT_HELPER).exists(), reason="apt is not there")
TEXT = b"a package"


@pytest.fixture
def archives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The first has one of two packages, the second both."""
    digest = hashlib.sha256(TEXT).hexdigest()
    pool = {("here", "amd64", name): (f"pool/main/x/{name}.deb", digest) for name in ("one", "two")}
    monkeypatch.setattr(debian, "_POOL", pool | {("here", "amd64", "other"): ("pool/main/x/one.deb", "0" * 64)})
    for archive, names in (("a", ["one"]), ("b", ["one", "two"])):
        folder = tmp_path / archive / "pool/main/x"
        folder.mkdir(parents=True)
        for name in names:
            (folder / f"{name}.deb").write_bytes(TEXT)
    return [f"copy:{tmp_path}/a", f"copy:{tmp_path}/b"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["one"], ["one.deb"]),
        (["two", "one"], ["one.deb", "two.deb"]),  # the second archive has them all
        (["other"], []),  # another digest
        (["one", "other"], []),
        (["one", "unknown"], []),
    ],
)
def test_all_that_was_pinned_or_nothing(
    archives: list[str], tmp_path: Path, names: list[str], found: list[str]
) -> None:
    into = tmp_path / "into"
    into.mkdir()
    packages = debian.Packages(tuple(names), "here", "x86_64", "packages", hint="")
    files = debian.download_pinned(packages, archives, into)
    assert [file.name for file in files] == found
    assert sorted(file.name for file in into.iterdir()) == found
    assert all(file.read_bytes() == TEXT for file in files)


def test_what_is_pinned_can_be_read() -> None:
    assert len(debian._POOL) > 5
    assert all(place.endswith(f"_{architecture}.deb") for (_, architecture, _), (place, _) in debian._POOL.items())
    assert all(len(digest) == 64 for _, digest in debian._POOL.values())
