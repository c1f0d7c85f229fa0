"""What a call of a BLAS routine must leave, and how far from it a right library may be.

The oracle evaluates the routine's meaning in a wider type. The bound of each element is

    (terms + 4) * eps * magnitude        for c and z 3 times as much

eps: distance of 1 to the next number of the type; terms: the table's `terms`; magnitude: the meaning with the absolute
values of all operands and scalars. For solutions with a triangular matrix T, `solve(T, b)` has the magnitude
M(T)^-1 |T| M(T)^-1 |b| with the comparison matrix M(T) (Higham, Accuracy and Stability of Numerical Algorithms, 8.2).
Any order of additions, with and without fused multiply-adds, stays within.

An element that depends on a NaN or an infinity of an operand must show it. One that only has it times zero is open: it
may show it, or be the result without it, since some libraries leave out products of zeros. An element depends on it if
its value is another one with another number in its place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tensorop.blas.call import ELEMENT, Array, BlasCase
from tensorop.blas.routines import COMPLEX, Structure

# For s and c too: NumPy multiplies matrices of this type itself, those of others by a BLAS, maybe the judged one.
WIDE: Mapping[str, type[Any]] = {"s": np.longdouble, "d": np.longdouble, "c": np.clongdouble, "z": np.clongdouble}
SLACK, _OF_COMPLEX = 4, 3
_TINIEST = 64  # smallest normal numbers of the type that a sum may lose by underflow


@dataclass(frozen=True)
class Expected:
    """A result of a call."""

    value: Array  # whole matrices and vectors, in the wider type; NaN: any number but a finite one
    bound: Array  # largest error of each element
    open: Array  # whether each element may also be NaN or infinite


def _op(a: Array, flag: str) -> Array:
    return a if flag == "N" else a.T if flag == "T" else a.conj().T


def _solve(a: Array, b: Array) -> Array:
    """The solution of a triangular system, by substitution."""
    if np.any(a[np.tril_indices(len(a), -1)]):
        x = b.copy()
        for i in range(len(a)):
            x[i] = (x[i] - a[i : i + 1, :i] @ x[:i])[0] / a[i, i] if i else x[i] / a[i, i]
        return x
    return _solve(a[::-1, ::-1], b[::-1])[::-1] if np.any(a[np.triu_indices(len(a), 1)]) else (b.T / np.diagonal(a)).T


def _solve_magnitude(a: Array, b: Array) -> Array:
    compared = -a
    np.fill_diagonal(compared, np.diagonal(a))
    return _solve(compared, a @ _solve(compared, b))


def _givens(a: Array, b: Array, which: int) -> Array:
    """r, z, c and s of rotg, as netlib's; the signs of the real ones may all be others."""
    if not np.any(b) or (not np.iscomplexobj(a) and not np.any(a)):
        zero = 0 * a
        return ((a, zero, zero + 1, zero) if not np.any(b) else (b, zero + 1, zero, zero + 1))[which]
    size, complex_ = np.sqrt(np.abs(a) ** 2 + np.abs(b) ** 2), np.iscomplexobj(a)
    unit = a / np.abs(a) if complex_ else np.where(np.abs(a) > np.abs(b), np.sign(a), np.sign(b))
    r = unit * size
    c, s = (np.abs(a) / size, unit * b.conj() / size) if complex_ else (a / r, b / r)
    z = b if complex_ else np.where(np.abs(a) > np.abs(b), s, 1 / c)
    return (r, z, c, s)[which]


def _givens_magnitude(a: Array, b: Array, which: int) -> Array:
    return (a + b, b + 1 + (a + b) / np.where(a > 0, a, 1), 1 + 0 * a, 1 + 0 * a)[which]


def _turned(param: Array, x: Array, y: Array, which: int) -> Array:
    flag, h11, h21, h12, h22 = param
    rows = {-1: (h11, h12, h21, h22), 0: (1, h12, h21, 1), 1: (h11, 1, -1, h22), -2: (1, 0, 0, 1)}[int(flag)]
    return rows[2 * which] * x + rows[2 * which + 1] * y  # type: ignore[no-any-return]


def _turned_magnitude(param: Array, x: Array, y: Array, which: int) -> Array:
    return x + y  # |param| <= 1 but for its first


_FREE = np.inf  # magnitude of an element that may be anything


def _modified(d1: Array, d2: Array, x1: Array, y1: Any, which: int) -> Array:
    """d1, d2, x1 and param of rotmg for positive scales that need no rescaling. Elements that it leaves: _FREE."""
    p1, p2, free = d1 * x1, d2 * y1, np.full_like(d1, _FREE)
    if y1 == 0:
        return (d1, d2, x1, np.concatenate([0 * d1 - 2, free, free, free, free]))[which]
    first = abs(p1 * x1) > abs(p2 * y1)
    ratio, other = (p2 / p1, y1 / x1) if first else (p1 / p2, x1 / y1)
    u = 1 + ratio * other
    if first:
        return (d1 / u, d2 / u, x1 * u, np.concatenate([0 * u, free, -other, ratio, free]))[which]
    return (d2 / u, d1 / u, y1 * u, np.concatenate([0 * u + 1, ratio, free, free, other]))[which]


_SHARED: Mapping[str, Callable[..., Any]] = {
    "sum": np.sum,
    "outer": np.multiply.outer,
    "t": lambda a: a.T,
    "norm": lambda x: np.sqrt(np.sum(np.abs(x) ** 2)),
    "largest": lambda x: 1 + int(np.argmax(x)) if len(x) else 0,
}
VALUES = {
    **_SHARED,
    "op": _op,
    "h": lambda a: a.conj().T,
    "conj": np.conj,
    "minus": lambda x: -x,
    "abs1": lambda x: np.abs(x.real) + np.abs(x.imag),
    "solve": _solve,
    "turned": _turned,
    "givens": _givens,
    "modified": _modified,
}
MAGNITUDES = {
    **_SHARED,
    "op": lambda a, flag: a if flag == "N" else a.T,
    "h": lambda a: a.T,
    "conj": lambda a: a,
    "minus": lambda x: x,
    "abs1": lambda x: 2 * x,
    "solve": _solve_magnitude,
    "turned": _turned_magnitude,
    "givens": _givens_magnitude,
    "modified": lambda *numbers: 2 * np.abs(_modified(*numbers)),
}


def whole(case: BlasCase, name: str, memory: Array) -> Array:
    """An operand as a whole matrix or a vector, in the wider type."""
    where, one = case.places[name], case.routine.operands[name]
    kind = np.longdouble if case.real(name) else WIDE[case.dtype]
    out: Array = np.zeros(where.mask.shape, kind)
    out[where.mask] = memory[where.place[where.mask]]
    if one.kind != "matrix":
        return out[:, 0]
    if one.structure in (Structure.SYMMETRIC, Structure.HERMITIAN):
        hermitian = one.structure is Structure.HERMITIAN
        diagonal = np.diagonal(out).real if hermitian else np.diagonal(out)
        out = out + (out.conj().T if hermitian else out.T)
        np.fill_diagonal(out, diagonal)
    elif one.structure is Structure.TRIANGULAR and case.flags["diag"] == "U":
        np.fill_diagonal(out, 1)
    return out


def expected(case: BlasCase) -> Mapping[str, Expected]:
    """The results of a call by the name of the output, or `result`."""
    found = _evaluated(case, case.memory, case.routine.meaning)
    if not case.special_is_lost:
        return found
    one, other = (_evaluated(case, _with(case, number), case.routine.meaning) for number in (1.0, 2.0))
    return {name: _merged(case, found[name].value, one[name], other[name].value) for name in found}


def _with(case: BlasCase, number: float) -> Mapping[str, Array]:
    """The operands with a number in place of each NaN and infinity."""
    memory = {name: array.copy() for name, array in case.memory.items()}
    for name, value in case.special.items():
        memory[name][case.special_place(name)] = value if math.isfinite(value) else number
    return memory


def _merged(case: BlasCase, full: Array, without: Expected, other: Array) -> Expected:
    """Of a call with a NaN or an infinity. without, other: the results with a number in its place, and with another"""
    depends = without.value != other
    # The signs of infinities are those of the reference where a sum has one of them.
    loose = case.dtype in COMPLEX or any("solve" in text or "norm" in text for text in case.routine.meaning.values())
    value = np.where(depends, np.where(np.isinf(full) & (not loose), full, np.nan), without.value)
    index = case.routine.result == "index"
    return Expected(value if not index else without.value, without.bound, ~depends & ~np.isfinite(full) | index)


def residuals(case: BlasCase, outputs: Mapping[str, Array]) -> Mapping[str, Expected]:
    """What solutions leave of their equations: zero within the bound. outputs: their memory after the call"""
    if not case.routine.residual:
        return {}
    before = {f"{name}_before": _before(case, name, case.memory[name]) for name in outputs}
    after = {name: whole(case, name, array) for name, array in outputs.items()}
    return _evaluated(case, case.memory, case.routine.residual, before | after)


def _before(case: BlasCase, name: str, memory: Array) -> Array:
    found = whole(case, name, memory)
    if not case.unset(name):
        return found
    # Not read. With ones on the diagonal, a triangular matrix can be solved with.
    triangular = case.routine.operands[name].structure is Structure.TRIANGULAR
    return np.eye(len(found), dtype=found.dtype) if triangular else np.zeros_like(found)


def _evaluated(
    case: BlasCase, memory: Mapping[str, Array], meaning: Mapping[str, str], more: Mapping[str, Array] | None = None
) -> Mapping[str, Expected]:
    """Formulas over the operands of a call. more: further operands, or others in their place"""
    routine = case.routine
    if case.shared:
        memory = {**memory, case.sharing[1]: memory[case.sharing[0]]}
    operands = {}
    for name in routine.operands:
        operands[name] = _before(case, name, memory[name])
    operands |= more or {}
    scalars = {name: _scalar(case, name) for name in case.scalars}
    plain = {**case.flags, **case.sizes}
    small = {name: np.abs(a) for name, a in operands.items()}
    magnitudes = {name: abs(value) for name, value in scalars.items()}
    eps = np.finfo(np.float64 if routine.result == "double" else ELEMENT[case.dtype]).eps
    tiny = np.finfo(ELEMENT[case.dtype]).tiny
    terms = eval(routine.terms, {}, plain)
    factor = (terms + SLACK) * eps * (_OF_COMPLEX if case.dtype in COMPLEX else 1)
    results: dict[str, Expected] = {}
    with np.errstate(all="ignore"):
        for name, text in meaning.items():
            value = eval(text, {**VALUES}, {**plain, **scalars, **operands})
            size = eval(text, {**MAGNITUDES}, {**plain, **magnitudes, **small})
            bound = 0.0 if routine.result == "index" else factor * np.asarray(size, np.float64) + _TINIEST * tiny
            extreme = "norm" in text and bool(np.any(value > np.sqrt(np.finfo(ELEMENT[case.dtype]).max)))
            results[name] = Expected(np.asarray(value), np.asarray(bound), np.isinf(bound) | extreme)
    return results


def _scalar(case: BlasCase, name: str) -> Any:
    """A scalar as the library gets it, in the wider type."""
    value = case.scalars[name]
    if case.real(name):
        return WIDE[case.dtype](ELEMENT[case.dtype](complex(value).real)).real
    return WIDE[case.dtype](ELEMENT[case.dtype](value))
