"""Products with an epilogue, of arrays as in device_arrays.py, against the oracle of epilogues: argv is a product that
has epilogues and one that has none. A process of its own has the driver."""

from __future__ import annotations

import importlib
import itertools
import sys
from typing import Any

import numpy as np
import pytest

import tensorop
from tests.support.device_arrays import ByDlpack, gemm, memory
from tests.support.device_calls import bits
from tests.support.operators import gemm as operator

oracle: Any = importlib.import_module(f"{type(operator().reference).__module__.rpartition('.')[0]}.epilogue")
NAMES = ("bias", "residual", "scale_rows", "scale_columns")


def held(values: np.ndarray, by_row: bool = True) -> ByDlpack:
    """f16 of whole numbers and halves, which it holds; by columns where asked."""
    lines = values if by_row else values.swapaxes(-1, -2)
    view = memory(lines.size).reshape(lines.shape)
    view[...] = bits(lines, True)
    return ByDlpack(view if by_row else view.swapaxes(-1, -2))


def case(number: int, by_row: bool, batch: int, activation: str, names: tuple[str, ...]) -> None:
    rng = np.random.default_rng(number)
    m, n, k = ((16, 24, 32), (17, 9, 21), (1, 8, 40))[number % 3]
    several = (batch,) if batch else ()
    shapes = {"bias": (n,), "residual": (*several, m, n), "scale_rows": (m,), "scale_columns": (n,)}
    drawn = {name: rng.integers(-4, 5, shapes[name]).astype(np.float32) / 2 for name in names}
    a, b = (rng.integers(-1, 2, (*several, *shape)).astype(np.float32) for shape in ((m, k), (k, n)))
    c = held(np.zeros((*several, m, n), np.float32), by_row)
    given = {
        name: ByDlpack(one) if name.startswith("scale") else held(one, by_row or one.ndim == 1)
        for name, one in drawn.items()
    }
    assert gemm(held(a), held(b), c, activation=activation, stream=64, **given) is c
    sums, residual = (a @ b).astype(np.float64), drawn.pop("residual", None)
    for at in np.ndindex(*several):
        of = oracle.Epilogue(**drawn, residual=None if residual is None else residual[at], activation=activation)
        want, far = oracle.finished(sums[at], np.zeros((m, n)), of, 2.0**-24, 2.0**-149)
        assert (np.abs(c.values()[at] - want) <= far + 2.0**-11 * np.abs(want) + 2.0**-25).all(), (number, names)


def refused(call: Any, status: int, says: str, **given: Any) -> None:
    one = held(np.ones((8, 8), np.float32))
    with pytest.raises((TypeError, ValueError, RuntimeError), match=says) as caught:
        call(one, one, held(np.ones((8, 8), np.float32)), stream=64, **given)
    assert caught.value.status == status  # type: ignore[attr-defined]


if __name__ == "__main__":
    sets = [(), ("bias",), ("residual",), ("scale_rows",), ("scale_columns", "bias"), NAMES]
    axes = (True, False), (0, 3), ("none", "relu", "gelu", "silu"), sets
    for number, words in enumerate(itertools.product(*axes)):
        case(number, *words)
    floats = ByDlpack(np.ones(8, np.float32))
    refused(gemm, 13, "activation must be one of none, relu, gelu, silu; got 'tanh'", activation="tanh")
    refused(gemm, 1, "bias is 7, it must be 8", bias=held(np.ones(7, np.float32)))
    refused(gemm, 3, "bias is float32, it must be float16", bias=floats)
    refused(gemm, 3, "scale_rows is float16, it must be float32", scale_rows=held(np.ones(8, np.float32)))
    refused(gemm, 1, "residual must lie by rows as c does", residual=held(np.ones((8, 8), np.float32), False))
    refused(tensorop.load(sys.argv[2]).gemm, 13, "make the library with --epilogue", activation="relu")
    sys.stdout.write("as expected\n")
