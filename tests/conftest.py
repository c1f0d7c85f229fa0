"""Options of the whole suite, and how its tests stand side by side."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings

from tests.support.turnstile import Turnstile

# No test asserts on a time, and on a busy machine any example may take long.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
TURNSTILE = pytest.StashKey[Turnstile]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew from what is rendered now")
    parser.addoption(
        "--fuzz", type=float, default=0.0, metavar="SECONDS", help="of tests/attacks/test_fuzz.py, for each target"
    )


def reads_the_clock(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("clock") is not None


def pytest_sessionstart(session: pytest.Session) -> None:
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        # The workers of one run have neighbouring temporary folders.
        shared = session.config._tmp_path_factory.getbasetemp().parent
        session.config.stash[TURNSTILE] = Turnstile(shared)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """A test that reads the clock runs with no other test beside it, and so do those of the kind right after it."""
    turnstile = item.config.stash.get(TURNSTILE, None)
    if turnstile is None:
        return (yield)
    turnstile.enter(alone=reads_the_clock(item))
    try:
        return (yield)
    finally:
        if not (reads_the_clock(item) and reads_the_clock(nextitem)):
            turnstile.leave()


@pytest.hookimpl(tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Also where it ends early (`-x`) between two tests of the clock, as others may wait behind them still."""
    turnstile = session.config.stash.get(TURNSTILE, None)
    if turnstile is not None:
        turnstile.leave()
