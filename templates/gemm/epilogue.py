"""What follows a product in the same call: the oracle of gemm's epilogues, and faults that it must find.

D = act(row scale * column scale * (alpha op(A) op(B) + beta C) + bias + residual), in this order. It is the order of
cuBLASLt's epilogues (the bias, then ReLU or GELU) with the scales of A's rows and B's columns before the bias, and the
residual before the activation.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tensorop.model.matrix import Array

# The exponent of GELU's tanh form, x Phi(x) ~ x / (1 + exp(-x (OF_X + OF_CUBE x^2))): Hendrycks and Gimpel, Gaussian
# Error Linear Units, arXiv 1606.08415, section 2, sqrt(2 / pi) (x + 0.044715 x^3), twice.
OF_X = 2 * np.sqrt(np.longdouble(2) / np.arctan2(np.longdouble(0), np.longdouble(-1)))
OF_CUBE = OF_X * np.longdouble("0.044715")
STEEPEST = 1.13  # the largest slope of GELU (1.129) and SiLU (1.100)
NEGLIGIBLE = 2.0**-29  # of x: a kernel may give 0 where its GELU or SiLU is below half of it
_ROUNDINGS = 5  # two products by scales, two sums, and the second scale's product
_ERF = np.vectorize(math.erf, otypes=[np.float64])
_SIGMOID = 16  # units of an activation by exp and a quotient, and so many more by the exponent's size: 4


@dataclass(frozen=True)
class Epilogue:
    """What one call asks for; None, and no activation: it does not."""

    scale_rows: Array | None = None  # (m)
    scale_columns: Array | None = None  # (n)
    bias: Array | None = None  # (n)
    residual: Array | None = None  # (m, n)
    activation: str = "none"


def _exponent(x: Array, activation: str) -> Array:
    if activation == "silu":
        return x
    kind = x.dtype.type
    return x * (kind(OF_X) + kind(OF_CUBE) * x * x)


def activated(x: Array, activation: str) -> Array:
    """The activation in the type of x. NaN stays NaN."""
    with np.errstate(all="ignore"):
        if activation == "none":
            return x
        if activation == "relu":
            return np.where(x < 0, x.dtype.type(0), x)
        return np.asarray(x / (1 + np.exp(-_exponent(x, activation))))


def before_activation(sums: Array, of: Epilogue) -> Array:
    x = sums
    if of.scale_rows is not None:
        x = x * of.scale_rows.astype(sums.dtype)[:, None]
    if of.scale_columns is not None:
        x = x * of.scale_columns.astype(sums.dtype)[None, :]
    if of.bias is not None:
        x = x + of.bias.astype(sums.dtype)[None, :]
    if of.residual is not None:
        x = x + of.residual.astype(sums.dtype)
    return x


def finished(
    exact: Array, bound: Array, of: Epilogue, unit: float, tiny: float, negligible: float = NEGLIGIBLE
) -> tuple[Array, Array]:
    """What C must be after its epilogue, in the type of `exact`, and how far from it a computed element may lie.

    exact, bound: of alpha op(A) op(B) + beta C (oracle.py); unit, tiny: half an ulp and the least denormal of the type
    in which kernels compute the epilogue; negligible: of x, what may be missing of GELU and SiLU. A further rounding to
    the type of C is not in the bound.

    An error of the sum grows with the scales and then at most with the steepest slope of the activation. Added are
    one unit for each rounding before the activation, of the magnitudes that are added there; and for GELU and SiLU 16
    units of the result and 4 for each unit of the exponent, whose own rounding errors exp turns into relative ones.
    """
    with np.errstate(all="ignore"):
        scales = replace(of, bias=None, residual=None)
        size = np.abs(before_activation(exact, scales))
        bound = np.abs(before_activation(bound.astype(exact.dtype), scales))
        for term in (of.bias, of.residual):
            size = size if term is None else size + np.abs(term).astype(exact.dtype)
        plain = scales.scale_rows is scales.scale_columns is of.bias is of.residual is None
        if not plain:
            bound = bound + _ROUNDINGS * (unit * (size + bound) + tiny)
        x = before_activation(exact, of)
        y = activated(x, of.activation)
        if of.activation in ("gelu", "silu"):
            exponent = np.abs(_exponent(x, of.activation))
            size = _SIGMOID + 4 * np.minimum(exponent, -np.log2(tiny))
            own = unit * size * np.abs(y) + tiny + negligible * np.abs(x)
            bound = STEEPEST * bound + own
        return y, bound.astype(np.float64)


def _shifted(of: Array | None) -> Array | None:
    return None if of is None else np.roll(of, 1, axis=-1)


def _without_last(of: Array | None) -> Array | None:
    if of is None:
        return None
    out = of.copy()
    out[..., -1] = 0
    return out


def _of_rows(sums: Array, of: Epilogue) -> Array:
    """The bias as if C were read by columns: element i of it on row i."""
    assert of.bias is not None
    wrong = np.resize(of.bias, len(sums)).astype(sums.dtype)[:, None]
    return activated(before_activation(sums, replace(of, bias=None)) + wrong, of.activation)


def _other_gelu(sums: Array, of: Epilogue) -> Array:
    x = before_activation(sums, of)
    return np.asarray(x * (1 + _ERF(x.astype(np.float64) / np.sqrt(2))) / 2).astype(sums.dtype)


def _bias_scaled(sums: Array, of: Epilogue) -> Array:
    assert of.bias is not None
    early = sums + of.bias.astype(sums.dtype)[None, :]
    return activated(before_activation(early, replace(of, bias=None)), of.activation)


def _residual_last(sums: Array, of: Epilogue) -> Array:
    assert of.residual is not None
    y = activated(before_activation(sums, replace(of, residual=None)), of.activation)
    return np.asarray(y + of.residual.astype(sums.dtype))


def _fault(change: Callable[[Epilogue], Epilogue]) -> Callable[[Array, Epilogue], Array]:
    def wrong(sums: Array, of: Epilogue) -> Array:
        changed = change(of)
        return activated(before_activation(sums, changed), changed.activation)

    return wrong


# Negative controls, by name: what they need of an epilogue, and what they leave instead of its result.
FAULTS: Mapping[str, tuple[Mapping[str, Any], Callable[[Array, Epilogue], Array]]] = {
    "bias-not-at-the-edge": ({"bias": True}, _fault(lambda e: replace(e, bias=_without_last(e.bias)))),
    "bias-of-the-next-column": ({"bias": True}, _fault(lambda e: replace(e, bias=_shifted(e.bias)))),
    "bias-by-rows": ({"bias": True}, _of_rows),
    "bias-scaled": ({"bias": True, "scale_columns": True}, _bias_scaled),
    "row-scale-ignored": ({"scale_rows": True}, _fault(lambda e: replace(e, scale_rows=None))),
    "column-scale-shifted": (
        {"scale_columns": True},
        _fault(lambda e: replace(e, scale_columns=_shifted(e.scale_columns))),
    ),
    "residual-not-at-the-edge": ({"residual": True}, _fault(lambda e: replace(e, residual=_without_last(e.residual)))),
    "residual-after-activation": ({"residual": True, "activation": "relu"}, _residual_last),
    "relu-ignored": ({"activation": "relu"}, _fault(lambda e: replace(e, activation="none"))),
    "gelu-by-erf": ({"activation": "gelu"}, _other_gelu),
    "silu-for-gelu": ({"activation": "gelu"}, _fault(lambda e: replace(e, activation="silu"))),
    "relu-for-silu": ({"activation": "silu"}, _fault(lambda e: replace(e, activation="relu"))),
}  # fmt: skip
