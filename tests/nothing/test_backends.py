"""Backends by name: what each has, what is refused of a user's own, and that the core asks none which it is."""

from __future__ import annotations

import dataclasses
import re
import threading
from pathlib import Path
from typing import ClassVar

import pytest

from tensorop import backends
from tensorop.backends.null import Backend, Nowhere
from tensorop.errors import SpecError, UsageError
from tensorop.measure.request import Measurement, MeasureRequest
from tensorop.model.platform import Cache
from tensorop.model.trial import Kind, Outcome, Samples
from tensorop.process import deadline
from tensorop.runners.native import Native
from tensorop.specs import catalog, native, platforms
from tensorop.target import Answer
from tests.support.commands import ROOT

EXAMPLE = (ROOT / "examples" / "backend" / "backends" / "nice.py").read_text()


def test_the_shipped_ones_keep_the_contract() -> None:
    assert backends.words() == ("cuda", "native", "null", "qemu", "ssh://host")
    assert [backends.load(name).unit for name in catalog.names("backends")] == [
        "predicted-cycles",
        "ns",
        "pretended",
        "modelled-cycles",
        "ns",
    ]


def test_a_users_own_is_found_by_its_files_name() -> None:
    own = (ROOT / "examples" / "backend",)
    assert "nice" in backends.words(own)
    target = backends.reach(platforms.load("nice-generic", own), None, own)
    assert (target.name, target.unit, target.runner.name) == ("nice", "ns", "nice")
    assert target.runner.here
    with pytest.raises(UsageError, match="unknown runner 'nice'"):
        backends.reach(platforms.load("generic"), "nice")


@pytest.mark.parametrize(
    ("part", "instead", "says"),
    [
        ("class Backend(Clocked):", "class Backend:", r"expected one class derived from tensorop.target.Target, got 0"),
        ('name = "nice"', 'name = "nicer"', r"key 'name': expected 'nice', as the file is called, got 'nicer'"),
        ('name = "nice"', 'title = "nice"', r"class 'Backend': expected name to be a str, got None"),
        ("is_host = True", "is_host = 'yes'", r"expected is_host to be a bool, got 'yes'"),
        ("confined = True", "budgets = 3", r"expected budgets to be a Budgets, got 3"),
        (
            "is_host = True",
            "deterministic = True",
            "expected deterministic = False, since its measurements come from a clock",
        ),
        ("def start(cls,", "def begin(cls,", r"expected the method start\(.*, got no such method"),
        ("confined = True", "peak = 4.0", r"expected the method peak\(.*, got 4.0"),
        (", address: str)", ")", r"expected the method start\(platform: .*, address: .*, got \(platform"),
        ("class Nice(Native)", "1 / 0\n\n\nclass Nice(Native)", "fails on import: ZeroDivisionError"),
    ],
)
def test_a_malformed_one_is_refused_with_file_part_and_what_was_expected(
    tmp_path: Path, part: str, instead: str, says: str
) -> None:
    file = tmp_path / "backends" / "nice.py"
    file.parent.mkdir()
    assert part in EXAMPLE
    file.write_text(EXAMPLE.replace(part, instead))
    with pytest.raises(SpecError, match=says) as caught:
        backends.load("nice", (tmp_path,))
    assert str(file) in str(caught.value)


def test_the_core_asks_no_backend_which_it_is() -> None:
    asks = re.compile(r"isinstance\([^)]*(runner|target|backend)\b", re.IGNORECASE)
    named = re.compile(r"(runner|target)(\.name)? == ")
    for file in (ROOT / "tensorop").rglob("*.py"):
        if file.parent.name != "backends":
            found = [line for line in file.read_text().splitlines() if asks.search(line) or named.search(line)]
            assert not found, (file, found)


@pytest.mark.parametrize(("told", "declared", "largest"), [({}, {}, 0), ({}, {"l1": 32}, 32), ({"l2": 64}, {}, 64)])
def test_the_last_cache_where_hardly_any_is_known(
    monkeypatch: pytest.MonkeyPatch, told: dict[str, int], declared: dict[str, int], largest: int
) -> None:
    """A container may tell of none, a platform may declare none."""
    monkeypatch.setattr(native, "caches", lambda: {name: {"size": size} for name, size in told.items()})
    caches = {name: Cache(size, 1, 1) for name, size in declared.items()}
    platform = dataclasses.replace(platforms.load("generic"), caches=caches)
    assert backends.load("native")(platform, Native()).last_cache() == largest


class Overlapping(Backend):
    """The first configuration waits for the last, which waits for nobody."""

    last = threading.Event()
    seen: ClassVar[list[object]] = []

    def measure(self, request: MeasureRequest) -> Answer:
        self.seen.append(deadline.current())
        if request.vlen == self.vlens[-1]:
            self.last.set()
        elif not self.last.wait(60):
            return Outcome(Kind.TIMEOUT, "measure", "one after the other")
        return (Measurement(Samples("", request.vlen, request.vlen, request.vlen)),)


def test_configurations_are_measured_side_by_side_under_the_same_deadline() -> None:
    target = Overlapping(dataclasses.replace(platforms.load("rvv"), vlens=(128, 256)), Nowhere())
    with deadline.within(1e6) as end:
        found = target.measure_each(lambda at: MeasureRequest(Path(), [], vlen=at))
    assert not isinstance(found, Outcome)
    assert [{at: samples.value for at, samples in one.items()} for one in found] == [{128: 128, 256: 256}]
    assert Overlapping.seen == [end, end]
