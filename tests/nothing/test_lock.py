"""The lock files: what `make test`, `make gemm` and CI install, and nothing that a new release can change."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.support.docs import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
LOCKS = ("requirements.lock", "requirements-dev.lock")


def locked(name: str) -> Iterator[tuple[Requirement, list[str]]]:
    """Each requirement of a lock file with its hashes."""
    text = (ROOT / name).read_text().replace("\\\n", " ")
    for line in text.splitlines():
        if line and not line.startswith("#"):
            yield Requirement(line.split(" --hash=")[0]), re.findall(r"--hash=sha256:([0-9a-f]{64})\b", line)


def versions(name: str, python: str) -> dict[str, str]:
    """The one version of each project that a Python on 64-bit Linux installs from a lock file."""
    here = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    found: dict[str, str] = {}
    for requirement, _ in locked(name):
        if requirement.marker is None or requirement.marker.evaluate(here):
            (pin,) = requirement.specifier
            assert pin.operator == "=="
            assert found.setdefault(canonicalize_name(requirement.name), pin.version) == pin.version
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_each_has_hashes_and_no_index(name: str) -> None:
    for requirement, hashes in locked(name):
        assert hashes, requirement
    options = re.findall(r"^\s*(-[-a-z]*)", (ROOT / name).read_text(), re.MULTILINE)
    assert set(options) == {"--hash"}
    assert "://" not in (ROOT / name).read_text()


@pytest.mark.parametrize("python", PYTHONS)
def test_they_hold_what_pyproject_asks_for(python: str) -> None:
    groups = PROJECT["dependency-groups"]
    common = [*PROJECT["project"]["dependencies"], *groups["build"], *PROJECT["build-system"]["requires"]]
    of_tests = [one for one in groups["dev"] if isinstance(one, str)] + groups["docs"]
    for name, asked in zip(LOCKS, (common, [*common, *of_tests]), strict=True):
        held = versions(name, python)
        for requirement in map(Requirement, asked):
            assert requirement.specifier.contains(held[canonicalize_name(requirement.name)]), requirement
    both = versions(LOCKS[0], python), versions(LOCKS[1], python)
    assert both[0].items() <= both[1].items()
