"""The messages that docs/how-to/troubleshooting.md explains are those of today's code."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "how-to" / "troubleshooting.md").read_text(encoding="utf-8")
OF_PYTHON = {"No module named 'optuna'", "failed: ssh:", "no such option"}  # the ends of messages that come from below


def test_each_message_is_one_of_the_code() -> None:
    own = PAGE[PAGE.index("## Messages of tensorop") : PAGE.index("## Compilers")]
    cells = [row.split("|")[1] for row in re.findall(r"^\| .*", own, re.MULTILINE)[1:]]
    texts = [text for cell in cells for text in re.findall(r"`(.+?)`", cell)]
    pieces = {piece.strip() for text in texts for piece in text.split("...")}
    files = [path for folder in ("tensorop", "templates") for path in (ROOT / folder).rglob("*.py")]
    code = re.sub(r'"\s*\n\s*f?"', "", "\n".join(path.read_text(encoding="utf-8") for path in files))
    assert len(pieces) > 15
    assert sorted(piece for piece in pieces - OF_PYTHON if piece not in code) == []
