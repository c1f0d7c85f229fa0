"""Primitives: the words a draft is written in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from tensorop.model.number import NUMBERS

# What an argument of a word is, by its name. A matrix is a pointer whose leading dimension (in elements) follows it.
# Elements are C's unless said otherwise: packed ones are A's and B's as kernels read them, stored ones as callers give
# them, and for most dtypes all three are the same.
ARGUMENTS: Mapping[str, str] = {
    "acc": "vector",
    "v": "vector",
    "w": "vector",
    "half": "half",
    "s": "element",
    "p": "pointer",
    "x": "packed vector",
    "y": "packed element",
    "q": "packed pointer",
    "r": "stored pointer",
    "raw": "stored vector",
    "dst": "packed matrix",
    "ldd": "leading dimension",
    "src": "stored matrix",
    "lds": "leading dimension",
    "vl": "predicate",
    "count": "count",
    "rows": "count",
    "cols": "count",
    "lane": "constant",
}


def shape_of(argument: str) -> str:
    """What an argument is, whatever its number format: vector, half, element, pointer, matrix, ..."""
    return ARGUMENTS[argument].removeprefix("packed ").removeprefix("stored ")


@dataclass(frozen=True)
class Word:
    """One primitive of one set for one dtype.

    c: C text with `$name` for arguments and the set's own variables
    args: argument names in order, see ARGUMENTS; returns: vec | packed | stored | half | elem | pred | memory | none
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


# Words that say the same as others where a number format is the same: a draft may always speak them.
_PACKED_ALIKE: Mapping[str, str] = {
    "load_packed": "load",
    "load_packed_tail": "load_tail",
    "store_packed": "store",
    "store_packed_tail": "store_tail",
    "mac": "fma",
}
_STORED_ALIKE: Mapping[str, str] = {"load_raw": "load_packed", "load_raw_tail": "load_packed_tail"}
_WIDEN = Word("widen", "$raw", ("raw", "vl"), "packed", "raw[:vl]")  # where there is nothing to widen
_ALL_ALIKE: Mapping[str, str] = {"load_stored": "load", "load_stored_tail": "load_tail"}


@dataclass(frozen=True)
class Formats:
    """Number formats (tensorop.model.number): of A and B as callers store them, as kernels read them, and of C.

    group: steps of k that a packed element holds, as so many integers side by side, the first lowest.
    """

    stored: str
    packed: str
    sums: str
    group: int = 1

    def of(self, argument: str) -> str:
        """The format of an argument's elements."""
        kind = ARGUMENTS[argument].partition(" ")[0]
        return {"packed": self.packed, "stored": self.stored}.get(kind, self.sums)

    def answer(self, word: Word) -> str:
        """The format of what a word gives; of one that writes memory, of its first array."""
        if word.returns in ("memory", "none"):
            return self.of(word.args[0])
        return self.packed if word.returns in ("packed", "stored") else self.sums  # stored ones are seen widened

    @property
    def widened(self) -> bool:
        """Whether packing changes the operands, so that it cannot be left out."""
        return self.stored != self.packed


@dataclass(frozen=True)
class Vocabulary:
    """A platform's words for one dtype and one choice of the sets' settings (e.g. lmul)."""

    dtype: str
    element: str  # C type of an element of C
    vector: str  # C type of a vector of such
    predicate: str  # C type that selects the first lanes of a vector
    lanes: str  # C expression: elements in a vector
    headers: tuple[str, ...]
    support: str  # C text some words rely on
    words: Mapping[str, Word]
    settings: Mapping[str, int]
    masked: bool  # loads of a part of a vector cost no more than whole ones
    sources: Mapping[str, str]  # word -> primitive set it came from
    formats: Formats
    packed_vector: str  # C type of a vector of packed elements
    stored_vector: str  # and of as many stored ones

    @property
    def stored(self) -> str:
        """C type of an element of A or B as callers store it."""
        return NUMBERS[self.formats.stored].c

    @property
    def packed(self) -> str:
        """C type of an element of A or B as kernels read it."""
        return NUMBERS[self.formats.packed].c

    @property
    def spoken(self) -> Mapping[str, Word]:
        """What a draft may say: the words, and other names of them where number formats coincide."""
        said = dict(self.words)
        alike = [_PACKED_ALIKE] if self.formats.packed == self.formats.sums else []
        alike += [] if self.formats.widened else [_STORED_ALIKE]
        alike += [_ALL_ALIKE] if len({self.formats.stored, self.formats.packed, self.formats.sums}) == 1 else []
        for names in alike:
            said |= {
                name: replace(said[of], name=name) for name, of in names.items() if of in said and name not in said
            }
        return said if self.formats.widened else {**said, "widen": _WIDEN}
