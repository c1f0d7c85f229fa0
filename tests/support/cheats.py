"""The cheats of tests/attacks/cheats: templates as a language model sends them, and C below the guards of templates.

The first comment of a file says which guard has to catch it, and what it tries:

    caught by PLACE KIND [WORD]: what

PLACE and KIND are those of its outcome. WORD is the guard of templates that refuses it, or a word of the message, or
`counted`: it is cheaper only where a board model counts one call.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from tensorop.model.trial import Kind

FOLDER = Path(__file__).resolve().parents[1] / "attacks" / "cheats"
_HEAD = re.compile(
    r"^(?:# |/\* |\{# )caught by (author|build|verify|measure) ([\w-]+)(?: (\S+))?: (.*?)(?: \*/| #\})?$", re.M
)


@dataclass(frozen=True)
class Cheat:
    """A file, and the guard that has to catch it."""

    name: str
    text: str
    place: str
    kind: Kind
    word: str


def read(path: Path) -> Cheat:
    text = path.read_text()
    found = _HEAD.search(text)
    assert found is not None, path
    place, kind, word, _ = found.groups()
    return Cheat(path.name, text, place, Kind(kind), word or "")


TEMPLATES = [read(path) for path in sorted(FOLDER.glob("*.c.j2"))]
OF_DEVICES = [read(path) for path in sorted(FOLDER.glob("*.cu.j2"))]  # bodies of a kernel family for GPUs
SOURCES = [read(path) for path in sorted(FOLDER.glob("*.c"))]
OF_OBJECTS = [cheat for cheat in SOURCES if cheat.place == "build"]
OF_COSTS = [cheat for cheat in SOURCES if cheat.place == "measure"]
OF_TIMES = [cheat for cheat in OF_COSTS if cheat.word != "counted"]
