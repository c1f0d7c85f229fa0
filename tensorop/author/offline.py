"""The author that needs nobody: the drafts shipped in the operator's folder."""

from __future__ import annotations

from pathlib import Path

from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import Draft

AUTHOR = "offline"
_SUFFIX = ".c.j2"


def texts(folder: Path) -> dict[str, str]:
    """The drafts of an operator's folder as they were written, by name."""
    files = sorted((folder / "drafts").glob(f"*{_SUFFIX}"))
    return {file.name.removesuffix(_SUFFIX): file.read_text(encoding="utf-8") for file in files}


def drafts(folder: Path, operator: str) -> list[Draft]:
    """Every draft of an operator's folder, by name. Raises SpecError on a broken one, or when there is none."""
    found = texts(folder)
    if not found:
        raise SpecError(f"{folder / 'drafts'} holds no draft; expected files *{_SUFFIX}")
    return [parse(text, operator=operator, name=name, author=AUTHOR) for name, text in found.items()]


def text(folder: Path, name: str) -> str:
    """A shipped draft as it was written, front matter and all: the example an author is shown."""
    return (folder / "drafts" / f"{name}{_SUFFIX}").read_text(encoding="utf-8")
