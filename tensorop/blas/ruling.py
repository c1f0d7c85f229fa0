"""Judges what one call left: against the oracle, and against the memory that it must not read or write."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import numpy as np

from tensorop.blas import binding, oracle
from tensorop.blas.call import ELEMENT, Array, BlasCase
from tensorop.blas.oracle import Expected
from tensorop.blas.routines import COMPLEX, Structure
from tensorop.model.call import Reply
from tensorop.model.trial import Kind


class BlasFault(StrEnum):
    """The kinds of findings."""

    WRONG = "wrong result"
    NAN = "NaN from what must not be read"
    LOST = "NaN or infinity of an operand is lost"
    RESIDUAL = "the solution does not solve its system"
    WRITES = "wrote memory that is not its own"
    OUTSIDE = "accessed memory outside of its operands"
    CRASH = "crash"
    HANG = "did not return"
    FORK = "did not return after fork"
    REPORT = "wrong argument reported by another number"
    UNREFUSED = "operands changed in spite of a wrong argument"
    SILENT = "wrong argument not reported"


_MOST_FOR_EIGENVALUES, _FEW_EPS = 600, 1e-4
BY_ARGUMENT = "complex results: through a first argument"
_KINDS = {Kind.GUARD: BlasFault.OUTSIDE, Kind.TIMEOUT: BlasFault.HANG}


@dataclass(frozen=True)
class WorstElement:
    """The element of an output with the largest error."""

    output: str
    at: int  # place in memory
    got: complex
    wanted: complex
    bound: float


@dataclass(frozen=True)
class Ruled:
    """What a call showed."""

    case: BlasCase
    ratio: float = 0.0  # largest error over its bound
    fault: BlasFault | None = None
    detail: str = ""
    place: WorstElement | None = None
    again: int = 0  # equal calls before
    threads: int = 1
    vlen: int = 0  # bits; 0: the target's own
    together: int = 1  # calls at once, on threads with small stacks
    after_fork: bool = False  # of a process that made calls before
    differs: str = ""  # a behaviour in which right libraries differ


def ruled(
    case: BlasCase,
    number: int,
    reply: Reply,
    wanted: Mapping[str, Expected],
    again: int,
    before: Mapping[str, Array] | None = None,
) -> Ruled:
    """The verdict on one call.

    number: of the call among those at once; wanted: of `oracle.expected`; empty for a wrong argument; before: what the
    call left when it was made before, without a fault, so that equal bytes need no second verdict
    """
    if not reply.outcome.ok:
        fault = _KINDS.get(reply.outcome.kind, BlasFault.CRASH)
        printed = reply.outcome.log.strip().splitlines()[-1:]  # of the library, on stderr
        message = re.sub(r"(\w)@\d+", r"\1", reply.outcome.message)  # of a buffer's name the operand's part
        return Ruled(case, 0.0, fault, ": ".join([message, *printed]), again=again)
    found = left(case, number, reply)
    if before is not None and all(np.array_equal(_bits(array), _bits(before[name])) for name, array in found.items()):
        return Ruled(case, again=again)
    one = _judged(case, found, wanted, again)
    return replace(one, differs=BY_ARGUMENT) if found["report"][0] == binding.BY_ARGUMENT else one


def left(case: BlasCase, number: int, reply: Reply) -> Mapping[str, Array]:
    """What a call left: its outputs, the result and the number of a wrong argument."""
    operands = case.routine.operands
    found = {name: reply.outputs.get(f"{name}@{number}") for name in (*operands, "result", "report")}
    present = {name: array for name, array in found.items() if array is not None}
    return {name: case.own(name, array) if name in operands else array for name, array in present.items()}


def _judged(case: BlasCase, found: Mapping[str, Array], wanted: Mapping[str, Expected], again: int) -> Ruled:
    """The verdict on the memory that a call left."""
    outputs = {name: array for name, array in found.items() if name in case.routine.operands}
    for name, after in outputs.items():
        before, mine = case.memory[name], np.zeros(len(case.memory[name]), bool)
        where = case.places[name]
        if not case.wrong:
            mine[where.place[where.mask]] = True
        changed = np.flatnonzero((_bits(before) != _bits(after)).reshape(len(before), -1).any(1) & ~mine)
        if len(changed):
            fault = BlasFault.UNREFUSED if case.wrong else BlasFault.WRITES
            at = int(changed[0])
            old, new = _number(before[at]), _number(after[at])
            text = f"{name}[{at}] changed from {old} to {'another ' * (old == new)}{new}; {len(changed)} changed"
            place = WorstElement(name, at, complex(after[at]), complex(before[at]), 0.0)
            return Ruled(case, 0.0, fault, text, place, again)
    if case.wrong:
        return _refused(case, int(found["report"][0]), again)
    return _compared(case, outputs, found["result"], wanted, again)


def _bits(array: Array) -> Array:
    return np.ascontiguousarray(array).view(np.uint8)


def _refused(case: BlasCase, report: int, again: int) -> Ruled:
    """The number that a wrong argument was reported by. Libraries' CBLAS count with or without the layout."""
    number = case.routine.number(case.wrong)
    right = {"fortran": [number], "col": [number, number + 1]}.get(case.layout)
    if report == 0:
        return Ruled(
            case, 0.0, BlasFault.SILENT, f"{case.wrong} was not reported, netlib's number is {number}", again=again
        )
    if right is not None and report not in right:
        return Ruled(
            case, 0.0, BlasFault.REPORT, f"{case.wrong} was reported as {report}, netlib's is {number}", again=again
        )
    return Ruled(case, again=again)


def _result(case: BlasCase, raw: Array) -> Any:
    """A function's value from the bytes of the result's buffer."""
    routine, data = case.routine, raw.tobytes()
    if routine.result == "index":
        wide = case.layout != "fortran"
        found = int(np.frombuffer(data, np.int64 if wide else np.int32, 1)[0])
        return found + 1 if wide and case.sizes["n"] > 0 else found
    kind = np.float64 if routine.result == "double" else ELEMENT[case.dtype]
    if routine.result == "real":
        kind = np.zeros(0, kind).real.dtype.type
    return np.frombuffer(data, kind, 1)[0]


def _compared(
    case: BlasCase, outputs: Mapping[str, Array], result: Array, wanted: Mapping[str, Expected], again: int
) -> Ruled:
    worst, at, differs = 0.0, None, ""
    for name, of in wanted.items():
        if name == "result":
            got, value, bound = np.asarray([_result(case, result)]), of.value.reshape(1), of.bound.reshape(1)
            place, may = np.zeros(1, np.int64), of.open.reshape(1)
            if case.routine.result == "index":
                if may[0] and 0 < got[0] <= case.sizes["n"]:
                    differs = _index_with_nan(case, int(got[0]))
                if differs or _as_large(case, int(got[0])):
                    continue
        else:
            where = case.places[name]
            own = where.mask if case.routine.operands[name].kind == "matrix" else where.mask[:, 0]
            place = where.place[where.mask]
            got, value, bound, may = outputs[name][place], of.value[own], of.bound[own], of.open[own]
            if case.routine.operands[name].structure is Structure.HERMITIAN and _keeps_diagonal(case):
                got = np.where(np.eye(len(own), dtype=bool)[own], got.real, got)
        if case.function in ("srotg", "drotg"):  # libraries differ on the sign of all four results
            sign = np.sign(outputs["a"][0] * wanted["a"].value[0]) or 1
            got = got * sign
            differs = f"signs: {'as' if sign > 0 else 'not as'} the reference's"
        with np.errstate(all="ignore"):
            error = np.abs(got.astype(oracle.wide(case)) - value).astype(np.float64)
            ratio = error / np.maximum(bound, np.finfo(np.float64).tiny)
        shown = ~np.isfinite(got)
        ratio[np.isnan(ratio)] = np.inf
        ratio[np.isnan(value) & shown | (may & shown) | (np.isinf(value) & ((got == value) | np.isinf(bound)))] = 0
        if may.any() and case.special:
            differs = _open_elements(case, shown[may])
        if _fills_halves(case) and (unknown := np.isinf(value) & np.isnan(got)).any():
            ratio[unknown] = 0
            differs = "an infinity in a symmetric matrix's product: NaN"
        if ratio.size and (found := float(ratio.max())) > worst:
            k = int(ratio.argmax())
            worst, at = found, WorstElement(name, int(place[k]), complex(got[k]), complex(value[k]), float(bound[k]))
    if worst <= 1 or at is None:
        return replace(_solved(case, outputs, worst, again), differs=differs)
    element = f"{at.output}[{at.at}]" if at.output != "result" else "the result"
    text = f"{element} is {_number(at.got)}, expected {_number(at.wanted)} within {at.bound:.2g}"
    text += _indefinite(case, outputs)
    lost = np.isfinite(at.got) and not np.isfinite(at.wanted)
    fault = BlasFault.NAN if np.isnan(at.got) else BlasFault.LOST if lost else BlasFault.WRONG
    return Ruled(case, worst, fault, text, at, again)


def _fills_halves(case: BlasCase) -> bool:
    """Whether libraries may multiply an infinity by the zeros with which they fill a half that is not stored."""
    stored = (Structure.SYMMETRIC, Structure.HERMITIAN, Structure.TRIANGULAR)
    read = (one.structure for one in case.routine.operands.values() if not one.written)
    return any(map(math.isinf, case.special.values())) and any(one in stored for one in read)


def _open_elements(case: BlasCase, shown: Array) -> str:
    if not case.special_is_lost:
        return f"a norm whose square is too large: {'infinite' if shown.all() else 'right'}"
    how = "multiplied" if shown.all() else "left out" if not shown.any() else "both"
    return f"products of zero with NaN or infinity: {how}"


def _index_with_nan(case: BlasCase, found: int) -> str:
    with np.errstate(all="ignore"):
        x = case.memory["x"][case.places["x"].place[:, 0]]
        size = np.abs(x.real) + np.abs(x.imag)
    if np.isnan(size[found - 1]):
        return "index with a NaN: of the NaN"
    return f"index with a NaN: {'of the largest number' if size[found - 1] == np.nanmax(size) else 'another'}"


def _solved(case: BlasCase, outputs: Mapping[str, Array], worst: float, again: int) -> Ruled:
    """The verdict on a result whose elements are right: a solution must also solve its system."""
    for name, left in oracle.residuals(case, outputs).items() if not case.special_is_lost else ():
        if not left.value.size:
            continue
        where, after = case.places[name], outputs[name]
        ratio = (np.abs(left.value) / np.maximum(left.bound, np.finfo(np.float64).tiny)).astype(np.float64)
        k = np.unravel_index(int(ratio.argmax()), ratio.shape)
        worst = max(worst, float(ratio[k]))
        if not ratio[k] <= 1:
            place = int(where.place[k if ratio.ndim == 2 else (k[0], 0)])
            off, bound = float(np.abs(left.value[k])), float(left.bound[k])
            text = f"the equation of {name}[{place}] is off by {off:.9g}, at most {bound:.2g} is right"
            right = complex(oracle.expected(case)[name].value[k])
            half = abs(complex(after[place]) - right) / 2  # so that a program with a right library finds no fault
            at = WorstElement(name, place, complex(after[place]), right, half)
            return Ruled(case, worst, BlasFault.RESIDUAL, text, at, again)
    return Ruled(case, worst, again=again)


def _indefinite(case: BlasCase, outputs: Mapping[str, Array]) -> str:
    """What users of A'A miss in a wrong one: that it is positive semi-definite."""
    squared = case.routine.name in ("herk", "syrk") and (case.routine.name == "herk" or case.dtype not in COMPLEX)
    factor = case.scalars.get("alpha", 0)
    if not squared or case.scalars["beta"] != 0 or complex(factor).real <= 0 or case.sizes["n"] > _MOST_FOR_EIGENVALUES:
        return ""
    whole = oracle.whole(case, "c", outputs["c"])
    if not np.isfinite(whole).all():
        return ""
    least = float(np.linalg.eigvalsh(whole.astype(complex if case.dtype in COMPLEX else float))[0])
    far = least < -_FEW_EPS * np.abs(whole).max()
    return f"; A'A has the eigenvalue {least:.3g}, a right one has none below 0" if far else ""


def _as_large(case: BlasCase, found: int) -> bool:
    """Whether a complex element is as large as the largest but for rounding, so that both are right."""
    x = case.memory["x"][case.places["x"].place[:, 0]]
    size = np.abs(x.real) + np.abs(x.imag)
    return case.dtype in COMPLEX and 0 < found <= len(x) and bool(size[found - 1] >= size.max() * (1 - 1e-6))


def _number(value: Any) -> str:
    value = complex(value)
    return f"{value.real:.9g}" if value.imag == 0 else f"({value.real:.9g}, {value.imag:.9g})"


def _keeps_diagonal(case: BlasCase) -> bool:
    """Whether the imaginary parts of a Hermitian result's diagonal may stay: the reference returns at once."""
    return case.scalars.get("alpha") == 0 or case.sizes.get("k", 1) == 0
