"""Calls of one tile of a micro-kernel with given arguments: what verification calls to have each path of its text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tensorop.model.case import Case
from tensorop.model.contract import STARTS
from tensorop.model.kernel_alone import KernelAlone
from tensorop.model.point import Value

from .grids import COEFFICIENTS, USUAL, _case

_NAME = re.compile(r".*_(tile|dot)_(\d+)x(\d+)(_tail)?")
_KINDS = ("normal", "exact", "integer")  # numbers in which any fault shows: a path's only call has no NaN


@dataclass(frozen=True)
class TileName:
    """A tile by the name of its function in kernel.c.j2 and direct_driver.c.j2."""

    vectors: int  # rows, where vectors run along k
    columns: int
    tail: bool  # its last vector may be a part of one
    along_k: bool  # of the direct kernel

    def is_largest(self, kernel: KernelAlone) -> bool:
        """Whether it is the kernel's largest tile."""
        tallest = 1 if kernel.reads.get("a") == "stream" else kernel.point["mr_vectors"]
        return (self.vectors, self.columns, self.tail) == (tallest, kernel.point["nr"], False)


def tile_of(function: str) -> TileName | None:
    found = _NAME.fullmatch(function)
    return found and TileName(int(found[2]), int(found[3]), bool(found[4]), found[1] == "dot")


def case_of(kernel: KernelAlone, tile: TileName, given: Mapping[str, int], rng: np.random.Generator) -> Case | None:
    """The call of a tile through entry 2 of candidate.c.j2; None if no product gives a tile these arguments."""
    how, direct = kernel.reads.get("a"), kernel.reads.get("a") == "direct"
    by_rows = how == "rows" or tile.along_k
    whole = tile.vectors * (1 if by_rows else kernel.lanes)
    m, n, k = given.get("m", _height(kernel, tile, whole, rng)), tile.columns, given.get("k", 1 + int(rng.integers(9)))
    largest = tile.vectors == kernel.point["mr_vectors"] and n == kernel.point["nr"]
    if tile.tail and m == whole and largest:
        return None  # the tile without a tail is called
    if how == "stream":
        whole = -(-m // kernel.lanes) * kernel.lanes
        if whole > int(kernel.point["mr_vectors"]) * kernel.lanes:
            return None  # more rows are called in parts
    if given.get("alpha") == 0:
        return None  # nothing is multiplied
    panels_of_a = not (by_rows or direct) and (bool(kernel.point.get("pack_a")) or not kernel.masked)
    panels_of_b = bool(kernel.point.get("pack_b")) and not by_rows and not direct
    lda = given.get("lda", k if by_rows else whole)
    if panels_of_a:
        if "lda" in given and (lda == 1) != (whole == 1):
            return None
        lda = max(whole, m)
    # B by rows has its columns one after the other; else its rows, unless a stride says otherwise
    along = by_rows or (not panels_of_b and (given.get("csb", 1) != 1 or (given.get("rsb", n) == 1 and n > 1)))
    least, ldb = (k, given.get("csb", k)) if along else (n, given.get("rsb", n))
    ldb = max(ldb, least)
    if panels_of_b and given.get("rsb", n) != n and 1 in (given["rsb"], n):
        return None
    values: dict[str, Value] = {"layout": "col", "m": m, "n": n, "k": k * (1 if direct else kernel.group)}
    values |= {"ta": int(by_rows), "tb": int(not along), "lda_pad": lda - (k if by_rows else m), "ldb_pad": ldb - least}
    values |= {"ldc_pad": max(given.get("ldc", m + int(rng.integers(2))) - m, 0)}
    for name in ("alpha", "beta"):
        known = {0: "0", 1: "1", 2: "other"}
        drawn = COEFFICIENTS[int(rng.integers(name == "alpha", len(COEFFICIENTS)))]
        values[name] = known[given[name]] if name in given else drawn
    values |= {"distribution": _KINDS[int(rng.integers(len(_KINDS)))], "placement": ("end", "start")[rng.integers(2)]}
    values |= {"start": STARTS[int(rng.integers(len(STARTS)))]}
    padded = {} if kernel.masked or direct else {"beyond": kernel.lanes}
    return _case(kernel.dtype, {**values, **padded}, rng, USUAL)


def _height(kernel: KernelAlone, tile: TileName, whole: int, rng: np.random.Generator) -> int:
    """Rows of a tile whose path does not depend on them."""
    if kernel.reads.get("a") == "stream":
        return int(rng.integers(1, 3 * kernel.lanes))
    return whole - int(rng.integers(1, kernel.lanes)) if tile.tail and kernel.lanes > 1 else whole
