"""How long each test takes, recorded in tests/times.json by `make times`.

A record is in core-seconds of a usual machine: the seconds that a test holds a worker, times two for a test that runs
alone, scaled by a reference loop that is timed in the same run. So records of different machines can be added up.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tests" / "times.json"
USUAL_REFERENCE_S = 0.177  # of a machine where `.ci/run` takes 17 minutes
RUNS_OF_THE_REFERENCE = 5
WORKERS = 2
DIGITS = 2  # of a second

Times = dict[str, float]  # by the id of a test


def reference_s() -> float:
    """Seconds that a fixed piece of work takes on one core of this machine: the fastest of a few runs."""
    best = float("inf")
    for _ in range(RUNS_OF_THE_REFERENCE):
        start = time.perf_counter()
        total, block = 1, bytes(1 << 20)
        for i in range(1_500_000):
            total = (total * 31 + i) & 0xFFFFFFFF
        for _ in range(100):
            hashlib.sha256(block).digest()
        best = min(best, time.perf_counter() - start)
    return best


def parts(test: str) -> tuple[str, str, str]:
    """File, function and parameters of a test's id."""
    file, _, rest = test.partition("::")
    function, bracket, parameters = rest.partition("[")
    return file, function, bracket + parameters


def read(path: Path = FILE) -> Times:
    """The recorded core-seconds of each test; empty without a file."""
    if not path.is_file():
        return {}
    files = json.loads(path.read_text(encoding="utf-8"))
    return {
        f"{file}::{function}{parameters}": seconds
        for file, functions in files.items()
        for function, cases in functions.items()
        for parameters, seconds in cases.items()
    }


def write(times: Mapping[str, float], path: Path = FILE) -> None:
    """Writes records; one line holds one function."""
    files: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for test in sorted(times):
        file, function, parameters = parts(test)
        files[file][function][parameters] = round(times[test], DIGITS)
    text = []
    for file, functions in files.items():
        lines = [f"  {json.dumps(name)}: {json.dumps(cases, ensure_ascii=False)}" for name, cases in functions.items()]
        text.append(f" {json.dumps(file)}: {{\n" + ",\n".join(lines) + "\n }")
    path.write_text("{\n" + ",\n".join(text) + "\n}\n", encoding="utf-8")


def longest_first(tests: Iterable[tuple[str, bool]], times: Mapping[str, float]) -> dict[str, tuple[bool, float]]:
    """Sort keys of tests, so that the longest file begins first, and tests that run alone are last.

    tests: the id of each test, and whether it runs alone. Tests of one file stay together, in their order.
    """
    of_file: dict[str, float] = defaultdict(float)
    alone_of = dict(tests)
    for test, alone in alone_of.items():
        if not alone:
            of_file[parts(test)[0]] += times.get(test, 0.0)
    return {test: (alone, -of_file[parts(test)[0]]) for test, alone in alone_of.items()}


class Recorder:
    """A pytest plug-in for the process that collects the reports: writes what a run took into the file of records.

    whole: the run has all tests, so that records of others are stale.
    """

    def __init__(self, path: Path, *, whole: bool) -> None:
        self._path, self._whole = path, whole
        self._scale = USUAL_REFERENCE_S / reference_s()
        self._taken: Times = defaultdict(float)
        self._failed: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        cores = WORKERS if "clock" in report.keywords else 1
        self._taken[report.nodeid] += report.duration * cores * self._scale
        if report.failed:
            self._failed.add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        """A failed test keeps its former record, since it may have ended early."""
        former = read(self._path)
        passed = {test: seconds for test, seconds in self._taken.items() if test not in self._failed}
        kept = {test: seconds for test, seconds in former.items() if test in self._failed or not self._whole}
        write({**kept, **passed}, self._path)
