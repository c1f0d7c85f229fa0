"""Options of the command line and of `tensorop.tune`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """Describes the values of a parameter or field to users."""

    help: str = ""
    metavar: str = ""  # notation of a value, e.g. NAME,...
    example: str = ""  # a value, e.g. f32,f64
    group: str = ""  # the heading of its help
    kind: Any = None  # parser of a text (raises ValueError), or str; None: the type decides
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    must_be: str = ""  # for a path that must exist: file or folder
    multiple: bool = False  # may be given several times
    positional: bool = False
    name: str = ""  # on the command line, if it differs from the parameter's name
    shown: str = ""  # the default in words
    default: Any = None
    late: bool = False  # whether the default depends on operator or platform; `default` is None then

    def text(self, example: str, more: str = "") -> str:
        """The help with an example as typed and the default in words.

        more: text after the help
        """
        parts = (
            f"{self.help}{more}",
            f" Example: {example}." if self.example else "",
            f"  [default: {self.shown}]" if self.shown else "",
        )
        return "".join(parts)

    @property
    def range(self) -> str:
        """The legal values in words; "" if all values of the type are legal."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return f"an integer from {self.least or 0} to {self.most}" if self.most else ""
