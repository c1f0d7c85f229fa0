"""The two classes of tests: `make test` covers each thing once, and the recorded times stay in their budget."""

from __future__ import annotations

import pytest

from tests.nothing.test_security_page import NAMED, PAGE
from tests.support import cover, times
from tests.support.classes import COLLECTED

MOST_CORE_MINUTES = 26.2  # of `make test`, on the scale of a usual machine (tests/support/times.py)
MOST_CORE_MINUTES_OF_NVCC = 2.0


@pytest.fixture(scope="module")
def collected(request: pytest.FixtureRequest) -> list[pytest.Item]:
    """All tests of the suite, whichever are selected."""
    config = request.config
    items = config.stash[COLLECTED]
    named = {path.name for path in (cover.ROOT / "tests").glob("*/test_*.py") if path.parent.name != "pytorch"}
    if {item.path.name for item in items} != named:
        pytest.skip("reads the whole suite; a part of it was collected")
    return items


@pytest.fixture(scope="module")
def basic(collected: list[pytest.Item]) -> list[pytest.Item]:
    """Those of `make test`."""
    return [item for item in collected if item.get_closest_marker("extended") is None]


def test_each_thing_is_covered_once(basic: list[pytest.Item]) -> None:
    assert cover.missing(basic) == []


def test_each_promise_and_guard_of_the_security_page_is_covered(basic: list[pytest.Item]) -> None:
    named = {f"tests/{file}::{name}" if name else f"tests/{file}" for file, name in NAMED.findall(PAGE)}
    functions = {item.nodeid.partition("[")[0] for item in basic}
    assert sorted(named - functions - {name.partition("::")[0] for name in functions}) == []


def test_what_is_marked_is_a_thing(collected: list[pytest.Item]) -> None:
    known = set(cover.things())
    marked = {pattern for pattern in cover.covered(collected) if not pattern.startswith("command ")}
    assert [pattern for pattern in sorted(marked) if "*" not in pattern and pattern not in known] == []


def test_every_test_has_a_recorded_time(collected: list[pytest.Item]) -> None:
    recorded, there = times.read(), {item.nodeid for item in collected}
    without = sorted(there - recorded.keys())
    assert not without, f"{len(without)} without a record; make times ARGS=FILE writes them: {without[:5]}"
    gone = sorted(recorded.keys() - there)
    assert not gone, f"{len(gone)} records of no test: {gone[:5]}"


def test_recorded_times_stay_in_their_budget(basic: list[pytest.Item]) -> None:
    recorded = times.read()
    assert sum(recorded.get(item.nodeid, 0.0) for item in basic) / 60 <= MOST_CORE_MINUTES
    of_nvcc = (item for item in basic if item.get_closest_marker("nvcc") is not None)
    assert sum(recorded.get(item.nodeid, 0.0) for item in of_nvcc) / 60 <= MOST_CORE_MINUTES_OF_NVCC
