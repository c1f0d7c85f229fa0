"""Which cases of a test belong to `make test`: each value of each parameter once. All other cases are extended."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest

COLLECTED = pytest.StashKey[list[pytest.Item]]()  # all tests that were found, before any is deselected
EXTENDED = pytest.mark.extended


def extended(*values: Any, id: str | None = None) -> Any:
    """A case that only `make test-all` runs."""
    return pytest.param(*values, marks=EXTENDED, id=id)


def each_once(*axes: Sequence[Any]) -> list[Any]:
    """Cases of all combinations of the axes' values, for one `parametrize` of all their names.

    Case number i of the longest axis has value i of each other axis, counted round: these cases are not extended.
    """
    basic = {tuple(i % len(axis) for axis in axes) for i in range(max(map(len, axes)))}
    found = []
    for at in itertools.product(*(range(len(axis)) for axis in axes)):
        values = [axis[i] for axis, i in zip(axes, at, strict=True)]
        found.append(pytest.param(*values) if at in basic else extended(*values))
    return found


def some(cases: Iterable[Any], basic: Callable[[Any], bool]) -> list[Any]:
    """The cases of one parameter, or tuples of several; those that are not `basic` are extended."""
    found = []
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        found.append(pytest.param(*values) if basic(case) else extended(*values))
    return found


def sample(items: Iterable[pytest.Item]) -> None:
    """Of a test marked `one_in(n)`, cases 0, n, 2n and so on stay in `make test`; the others become extended."""
    seen: Counter[str] = Counter()
    for item in items:
        mark = item.get_closest_marker("one_in")
        if mark is not None and item.get_closest_marker("extended") is None:
            function = item.nodeid.partition("[")[0]
            if seen[function] % mark.args[0]:
                item.add_marker(EXTENDED)
            seen[function] += 1
