"""How a user gives a value: on the command line, and to `tensorop.tune`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Option:
    """What the value of a parameter or field is, for whoever gives it."""

    help: str = ""
    metavar: str = ""  # how a value is written, e.g. NAME,...
    example: str = ""  # a value, e.g. f32,f64
    group: str = ""  # the heading that its help is under
    kind: Any = None  # str, or what reads a text and raises ValueError, where the value's type does not say it
    least: int | None = None
    most: int | None = None
    choices: tuple[str, ...] = ()
    must_be: str = ""  # of a path that has to exist: file or folder
    multiple: bool = False  # given several times
    positional: bool = False
    name: str = ""  # on the command line, where it is not the parameter's own
    shown: str = ""  # the default in words
    default: Any = None
    late: bool = False  # whether the default depends on operator or platform; None stands for it then

    def text(self, example: str, more: str = "") -> str:
        """What it does, with an example as it is typed and the default where it is in words. more: goes on with the
        help."""
        parts = (
            f"{self.help}{more}",
            f" Example: {example}." if self.example else "",
            f"  [default: {self.shown}]" if self.shown else "",
        )
        return "".join(parts)

    @property
    def range(self) -> str:
        """What a value must be, in words; "" where its type says it."""
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        return f"an integer from {self.least or 0} to {self.most}" if self.most else ""
