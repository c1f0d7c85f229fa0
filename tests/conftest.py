"""Options of the whole suite, which of its tests run, in which order, and side by side or alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler.loadscope import LoadScopeScheduling

from tests.support import classes, times
from tests.support.turnstile import Turnstile

# No test asserts on a time, and on a busy machine any example may take long.
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")
TURNSTILE = pytest.StashKey[Turnstile]()
PARTS = 5  # of the extended tests; .ci/run runs one


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew from what is rendered now")
    parser.addoption(
        "--fuzz", type=float, default=0.0, metavar="SECONDS", help="of tests/attacks/test_fuzz*.py, for each target"
    )
    parser.addoption("--fuzz-seed", type=int, default=0, metavar="N", help="of tests/attacks/test_fuzz_programs.py")
    parser.addoption(
        "--extended",
        default="all",
        metavar="all|none|HASH",
        help=f"which tests marked `extended` run; HASH: hexadecimal, chooses 1 of {PARTS} parts",
    )
    parser.addoption("--blas", default="", metavar="DIR", help="a product of `tensorop blas` for testers of others")
    parser.addoption("--record-times", action="store_true", help=f"write how long each test takes to {times.FILE.name}")


def part_of(test: str) -> int:
    """The part of the extended tests that a test belongs to: all cases of a function to the same one."""
    file, function, _ = times.parts(test)
    return int(hashlib.sha256(f"{file}::{function}".encode()).hexdigest(), 16) % PARTS


def part_chosen(wanted: str) -> int | None:
    """The part that the hash of a tree chooses; None for `all` and `none`. Raises UsageError for other words."""
    if wanted in ("all", "none"):
        return None
    try:
        return int(wanted, 16) % PARTS
    except ValueError:
        raise pytest.UsageError(f"--extended takes all, none or a hexadecimal hash; got '{wanted}'") from None


def pytest_report_header(config: pytest.Config) -> str:
    wanted = config.getoption("--extended")
    part = part_chosen(wanted)
    return f"extended tests: {wanted if part is None else f'part {part + 1} of {PARTS}, chosen by {wanted}'}"


def pytest_configure(config: pytest.Config) -> None:
    part_chosen(config.getoption("--extended"))
    if config.getoption("--record-times") and not hasattr(config, "workerinput"):
        whole = config.args_source is config.ArgsSource.TESTPATHS and not config.option.keyword
        config.pluginmanager.register(times.Recorder(times.FILE, whole=whole))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    config.stash[classes.COLLECTED] = list(items)
    classes.sample(items)
    wanted = config.getoption("--extended")
    part = part_chosen(wanted)
    left_out = [
        item
        for item in items
        if wanted != "all" and item.get_closest_marker("extended") is not None and part_of(item.nodeid) != part
    ]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
    gone = set(left_out)
    order = times.longest_first(((item.nodeid, reads_the_clock(item)) for item in items), times.read())
    items[:] = sorted((item for item in items if item not in gone), key=lambda item: order[item.nodeid])


class FilesInOrder(LoadScopeScheduling):
    """A worker gets one file after another, in the order of the tests.

    Tests of a file that stand further behind in this order, since they run alone, come with those around them.
    """

    def schedule(self) -> None:
        if self.collection is None:
            self._unit: dict[str, str] = {}
            begun: dict[str, int] = {}
            last = ""
            for test in next(iter(self.registered_collections.values())):
                file = times.parts(test)[0]
                if file != last:
                    begun[file] = begun.get(file, 0) + 1
                last = file
                self._unit[test] = f"{file} {begun[file]}"
        super().schedule()

    def _split_scope(self, nodeid: str) -> str:
        return self._unit[nodeid]


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> FilesInOrder | None:
    return FilesInOrder(config, log) if config.option.dist == "loadfile" else None


def reads_the_clock(item: pytest.Item | None) -> bool:
    return item is not None and item.get_closest_marker("clock") is not None


def pytest_sessionstart(session: pytest.Session) -> None:
    temporary = session.config._tmp_path_factory.getbasetemp()
    worker = getattr(session.config, "workerinput", None)
    if worker is not None:
        # The workers of one run have neighbouring temporary folders.
        temporary = temporary.parent
        session.config.stash[TURNSTILE] = Turnstile(temporary)
    # Whole jobs of the suite have many seeds and winners in common.
    os.environ["TENSOROP_OBJECTS"] = str(temporary / "objects")


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
