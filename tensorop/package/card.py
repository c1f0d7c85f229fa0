"""The provenance card: JSON inside a library, behind a marker line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NotRequired, TypedDict, cast

from tensorop.errors import JobError, UsageError, of_system
from tensorop.model.winner import DtypeRecord
from tensorop.package import loadable
from tensorop.specs import files, jsontext

# Split, so that a program that contains this module contains no card.
MARKER = "\x7fTENSOROP" + "-CARD-1\n"
CARD_SCHEMA = 1
_LINE = 96


class CardPlatform(TypedDict):
    name: str  # name of the platform file
    lineage: list[str]  # the platform and its parents
    arch: str  # architecture, as `uname -m` prints it
    requires: list[str]  # CPU features that the kernels need
    vlens: list[int]  # VLENs in bits that were measured
    fixed_vlen: int | None  # the only VLEN that the library runs at; null: any
    device: NotRequired[dict[str, int | str]]  # GPU libraries: what the device must have


class Card(TypedDict):
    """The provenance of one operator's library: JSON values."""

    schema: int  # version of this format
    tool: dict[str, str]  # name and version of tensorop
    license: str  # license of the library's C
    operator: str  # what it computes
    platform: CardPlatform  # what it was made for
    compiler: dict[str, str | list[str]]  # name, target and flags
    glibc: str | None  # oldest glibc that it works with; null: not built for glibc
    dtypes: dict[str, DtypeRecord]  # by element type
    routines: NotRequired[dict[str, str]]  # libraries of several BLAS routines: what of each is tuned
    facts: dict[str, object]  # how the variants were found: tuner, author, seed, unit, board model, warm start


def text(card: Card) -> str:
    """The JSON of a card, with sorted keys and in ASCII, so that equal facts give equal bytes."""
    return json.dumps(card, sort_keys=True, indent=1, ensure_ascii=True, allow_nan=False)


def literal(provenance: str) -> str:
    """A C string literal of marker and JSON, with 96 characters per source line."""
    whole = MARKER + provenance
    pieces = [whole[i : i + _LINE] for i in range(0, len(whole), _LINE)]
    return "\n".join(map(quoted, pieces))


def quoted(piece: str) -> str:
    """A C string literal of a text, on one line."""
    out = []
    for c in piece:
        if c == "\n":
            out.append("\\n")
        elif c in '"\\?':  # '?' for trigraphs
            out.append(f"\\{c}")
        elif " " <= c <= "~":
            out.append(c)
        else:
            out.append(f"\\{ord(c):03o}")
    return f'"{"".join(out)}"'


def read_card(library: Path) -> Card:
    """The card of a .so or .a, whatever its architecture.

    Raises UsageError if the file cannot be read or has no card, JobError if the card is damaged or of another version,
    or the file is truncated.
    """
    with of_system(UsageError, f"{library} cannot be read"):
        data = files.read(library, files.LIBRARY)
    at = data.find(MARKER.encode("latin-1"))
    if at < 0:
        loadable.require_uncut(library)
        raise UsageError(
            f"{library} contains no provenance card",
            hint="pass the library of an operator: lib/libtensorop_<operator>.so",
        )
    begin = at + len(MARKER)
    try:
        card = jsontext.loads(data[begin : data.index(b"\0", begin)])
    except ValueError as error:
        raise JobError(
            f"the provenance card of {library} is damaged: {error}", hint="build the library again"
        ) from None
    if not isinstance(card, dict):
        raise JobError(f"the provenance card of {library} is damaged: no JSON object", hint="build the library again")
    jsontext.require_schema(f"the provenance card of {library}", card, CARD_SCHEMA)
    return cast(Card, card)
