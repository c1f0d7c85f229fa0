"""What a call of a BLAS routine must leave, and how far from it a right library may be.

The oracle evaluates the routine's meaning in a wider type: that of level 3 for s and c in double precision, all others
in the processor's extended one. No product is left to a BLAS library, which may be the judged one. The bound of each
element is

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

_EXTENDED: Mapping[str, type[Any]] = {"s": np.longdouble, "d": np.longdouble, "c": np.clongdouble, "z": np.clongdouble}
_DOUBLE: Mapping[str, type[Any]] = {"s": np.float64, "c": np.complex128}
_BLOCK = 32  # unknowns of a system that are solved one by one
SLACK, _OF_COMPLEX = 4, 3
_TINIEST = 64  # smallest normal numbers of the type that a sum may lose by underflow


@dataclass(frozen=True)
class Expected:
    """A result of a call."""

    value: Array  # whole matrices and vectors, in the wider type; NaN: any number but a finite one
    bound: Array  # largest error of each element
    open: Array  # whether each element may also be NaN or infinite


class _Matrix(np.ndarray[Any, Any]):
    """A matrix or vector whose products are sums that NumPy makes itself."""

    def __matmul__(self, other: Any) -> Any:
        if self.dtype.kind == other.dtype.kind == "c" and self.dtype.itemsize == 16:
            real = self.real @ other.real - self.imag @ other.imag
            return real + 1j * (self.real @ other.imag + self.imag @ other.real)
        if self.dtype == other.dtype == np.float64:
            return np.einsum("ij,jk->ik" if other.ndim == 2 else "ij,j->i", self, other)
        return np.inner(np.ascontiguousarray(self), np.ascontiguousarray(other.T))


def wide(case: BlasCase) -> type[Any]:
    """The type that a call's oracle computes in."""
    return (_DOUBLE if case.routine.level == 3 and case.dtype in _DOUBLE else _EXTENDED)[case.dtype]


def _op(a: Array, flag: str) -> Array:
    return a if flag == "N" else a.T if flag == "T" else a.conj().T


def _solve(a: Array, b: Array) -> Array:
    """The solution of a triangular system, by substitution."""
    if np.any(np.tril(a, -1)):
        x = b.copy()
        for at in range(0, len(a), _BLOCK):
            end = min(at + _BLOCK, len(a))
            if at:
                x[at:end] -= a[at:end, :at] @ x[:at]
            for i in range(at, end):
                x[i] /= a[i, i]
                x[i + 1 : end] -= np.multiply.outer(a[i + 1 : end, i], x[i])
        return x
    return _solve(a[::-1, ::-1], b[::-1])[::-1] if np.any(np.triu(a, 1)) else (b.T / np.diagonal(a)).T


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
    kind = wide(case)(0).real.dtype if case.real(name) else wide(case)
    out: Array = np.zeros(where.mask.shape, kind).view(_Matrix)
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
    if not case.special_is_lost:
        return _evaluated(case, case.memory, case.routine.meaning)
    full = _values(case, case.memory, case.routine.meaning)
    one = _evaluated(case, _with(case, 1.0), case.routine.meaning)
    other = _values(case, _with(case, 2.0), case.routine.meaning)
    return {name: _merged(case, full[name], one[name], other[name]) for name in full}


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
    return np.eye(len(found), dtype=found.dtype).view(_Matrix) if triangular else np.zeros_like(found)


def _operands(
    case: BlasCase, memory: Mapping[str, Array], more: Mapping[str, Array] | None = None
) -> Mapping[str, Array]:
    if case.shared:
        memory = {**memory, case.sharing[1]: memory[case.sharing[0]]}
    return {**{name: _before(case, name, memory[name]) for name in case.routine.operands}, **(more or {})}


def _values(
    case: BlasCase, memory: Mapping[str, Array], meaning: Mapping[str, str], more: Mapping[str, Array] | None = None
) -> Mapping[str, Array]:
    """Formulas over the operands of a call. more: further operands, or others in their place"""
    scalars = {name: _scalar(case, name) for name in case.scalars}
    names = {**case.flags, **case.sizes, **scalars, **_operands(case, memory, more)}
    with np.errstate(all="ignore"):
        return {name: np.asarray(eval(text, {**VALUES}, names)) for name, text in meaning.items()}


def _evaluated(
    case: BlasCase, memory: Mapping[str, Array], meaning: Mapping[str, str], more: Mapping[str, Array] | None = None
) -> Mapping[str, Expected]:
    """The same with the bound of each element."""
    routine = case.routine
    # Squares in level 1 may be too large for double precision.
    coarse = np.longdouble if routine.level == 1 else np.float64
    sizes = {name: np.abs(a).astype(coarse) for name, a in _operands(case, memory, more).items()}
    scalars = {name: coarse(abs(_scalar(case, name))) for name in case.scalars}
    eps = np.finfo(np.float64 if routine.result == "double" else ELEMENT[case.dtype]).eps
    tiny = np.finfo(ELEMENT[case.dtype]).tiny
    terms = eval(routine.terms, {}, {**case.flags, **case.sizes})
    factor = (terms + SLACK) * eps * (_OF_COMPLEX if case.dtype in COMPLEX else 1)
    results: dict[str, Expected] = {}
    with np.errstate(all="ignore"):
        for name, value in _values(case, memory, meaning, more).items():
            size = eval(meaning[name], {**MAGNITUDES}, {**case.flags, **case.sizes, **scalars, **sizes})
            bound = 0.0 if routine.result == "index" else factor * np.asarray(size, np.float64) + _TINIEST * tiny
            extreme = "norm" in meaning[name] and bool(np.any(value > np.sqrt(np.finfo(ELEMENT[case.dtype]).max)))
            results[name] = Expected(value, np.asarray(bound), np.isinf(bound) | extreme)
    return results


def _scalar(case: BlasCase, name: str) -> Any:
    """A scalar as the library gets it, in the wider type."""
    value = case.scalars[name]
    if case.real(name):
        return wide(case)(ELEMENT[case.dtype](complex(value).real)).real
    return wide(case)(ELEMENT[case.dtype](value))
