"""The oracle of gemm's epilogues: float32 in its order passes, and each fault is found."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
import pytest

from tests.support.operators import gemm

epilogue: Any = importlib.import_module(f"{type(gemm().reference).__module__.rpartition('.')[0]}.epilogue")

M, N = 23, 37
ALL = dict.fromkeys(("scale_rows", "scale_columns", "bias", "residual"), True)
UNIT, TINY = 2.0**-24, 2.0**-149


def drawn(seed: int, needs: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Sums, their bound, and an epilogue."""
    rng = np.random.default_rng(seed)
    shapes = {"scale_rows": (M,), "scale_columns": (N,), "bias": (N,), "residual": (M, N)}
    sums = 3 * rng.standard_normal((M, N))
    given = {name: rng.standard_normal(shapes[name]).astype(np.float32) for name in shapes if needs.get(name)}
    of = epilogue.Epilogue(**given, activation=needs.get("activation", "none"))
    return sums, np.abs(sums) * 2.0**-20, of


@pytest.mark.parametrize("activation", ["none", "relu", "gelu", "silu"])
@pytest.mark.parametrize("needs", [{}, ALL])
def test_float32_in_this_order_is_within_the_bound(activation: str, needs: dict[str, Any]) -> None:
    sums, bound, of = drawn(3, {**needs, "activation": activation})
    want, far = epilogue.finished(sums, bound, of, UNIT, TINY)
    got = epilogue.activated(epilogue.before_activation((sums + 0.9 * bound).astype(np.float32), of), activation)
    assert got.dtype == np.float32
    assert np.all(np.abs(got - want) <= far)


@pytest.mark.parametrize("rounding", [UNIT, 2.0**-9], ids=["float", "bf16"])
@pytest.mark.parametrize("name", epilogue.FAULTS)
def test_each_fault_is_found(name: str, rounding: float) -> None:
    needs, fault = epilogue.FAULTS[name]
    sums, bound, of = drawn(5, dict(needs))
    want, far = epilogue.finished(sums, bound, of, UNIT, TINY)
    assert np.any(np.abs(fault(sums, of) - want) > far + rounding * np.abs(want))


def test_gelu_is_the_tanh_form() -> None:
    x = np.linspace(-6, 6, 241).astype(np.longdouble)
    pi = np.longdouble("3.14159265358979323846264338327950288")
    tanh = x * (1 + np.tanh(np.sqrt(2 / pi) * (x + np.longdouble("0.044715") * x**3))) / 2
    assert np.allclose(epilogue.activated(x, "gelu").astype(float), tanh.astype(float), rtol=1e-12, atol=1e-17)


def test_the_list_is_closed_and_in_the_order_of_the_steps() -> None:
    assert gemm().epilogue == ("scale_rows", "scale_columns", "bias", "residual", "relu", "gelu", "silu")
