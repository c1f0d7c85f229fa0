"""Primitives: the words a draft is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Word:
    """One primitive of one set for one dtype.

    c: C text with `$name` for arguments and the set's own variables
    args: argument names in order; returns: vec | elem | pred | count | memory | none
    meaning: NumPy expression over the arguments, `vl` (active lanes) and `np`; of a `memory` word, the new
    contents of the first argument
    """

    name: str
    c: str
    args: tuple[str, ...]
    returns: str
    meaning: str
    preconditions: tuple[str, ...] = ()
    exact: bool = True  # False: within one rounding of the meaning evaluated in higher precision
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
