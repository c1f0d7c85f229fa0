"""How benchmarks/fidelities.py reads what it recorded."""

import gzip
import json

import pytest

from benchmarks import fidelities

HEAD = {"platform": "p", "operator": "o", "dtype": "f32", "suite": "s", "measured_by": "m", "vlens": [128, 256]}
WORK = {"small": 1.0, "large": 400.0}


@pytest.mark.parametrize(("one", "other", "tau"), [([1, 2, 3], [5, 6, 9], 1.0), ([1, 2, 3], [3, 2, 1], -1.0)])
def test_tau_of_two_rankings(one, other, tau):
    assert fidelities.tau(one, other) == tau


def test_tau_within_groups_leaves_the_order_of_groups_out():
    assert fidelities.tau([1, 2, 9, 8], [5, 6, 1, 0], ["a", "a", "b", "b"]) == 1.0


def test_each_cheap_measurement_is_held_against_the_whole(tmp_path):
    """Alone the kernels are in the opposite order; the small problem orders the blockings as both do."""
    rows = [
        {"kind": kind, "number": n, "template": "t", "alone": 10.0 - n, "costs": [[1.0 + n] * 2, [400.0 + n] * 2]}
        for kind in fidelities.KINDS
        for n in range(4)
    ]
    file = tmp_path / "x.jsonl.gz"
    file.write_bytes(gzip.compress("\n".join(map(json.dumps, [HEAD | {"work": WORK}, *rows])).encode()))
    _, _, alone, kernels, blockings = fidelities.told(file).splitlines()
    assert alone.split() == ["kernels", "alone", "0.0%", "4", "-1.000", "-1.000", "-1.000"]
    assert kernels.split()[-5:] == ["0.2%", "4", "1.000", "1.000", "1.000"]
    assert blockings.split()[-5:] == ["0.2%", "4", "1.000", "1.000", "1.000"]


def test_what_failed_is_drawn_anew():
    rows = [{"kind": "kernel", "number": n} for n in range(3)] + [{"kind": "kernel", "number": 3, "costs": []}]
    found = list(fidelities.lacking(rows, 2))
    assert found == [("kernel", 4), ("blocking", 0), ("blocking", 1)]
