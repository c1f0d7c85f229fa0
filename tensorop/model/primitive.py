"""Primitives: the words a draft is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

# What an argument of a word is, by its name. A matrix is a pointer whose leading dimension (in elements) follows it.
ARGUMENTS: Mapping[str, str] = {
    "acc": "vector",
    "v": "vector",
    "w": "vector",
    "half": "half",
    "s": "element",
    "p": "pointer",
    "dst": "matrix",
    "ldd": "leading dimension",
    "src": "matrix",
    "lds": "leading dimension",
    "vl": "predicate",
    "count": "count",
    "rows": "count",
    "cols": "count",
    "lane": "constant",
}


@dataclass(frozen=True)
class Word:
    """One primitive of one set for one dtype.

    c: C text with `$name` for arguments and the set's own variables
    args: argument names in order, see ARGUMENTS; returns: vec | half | elem | pred | memory | none
    meaning: NumPy expression over the arguments, `vl` (active lanes), `lanes` and `np`; vectors have `lanes`
    elements, a half (64 of a vector's 128 bits, as a uint64_t) half as many. A result shorter than `lanes` leaves the
    others undefined. Of a `pred` word, the number of active lanes; of a `memory` word, the new contents of the first
    argument, everything beyond them untouched.
    """

    name: str
    c: str
    args: tuple[str, ...]
    returns: str
    meaning: str
    preconditions: tuple[str, ...] = ()
    exact: bool = True  # False: within the rounding errors of its operations; True: the meaning, rounded once
    cost: Mapping[str, float] | None = None


@dataclass(frozen=True)
class Vocabulary:
    """A platform's words for one dtype and one choice of the sets' settings (e.g. lmul)."""

    dtype: str
    element: str  # C type of an element
    vector: str  # C type of a vector
    predicate: str  # C type that selects the first lanes of a vector
    lanes: str  # C expression: elements in a vector
    headers: tuple[str, ...]
    support: str  # C text some words rely on
    words: Mapping[str, Word]
    settings: Mapping[str, int]
    masked: bool  # loads of a part of a vector cost no more than whole ones
    sources: Mapping[str, str]  # word -> primitive set it came from
