"""The errors for users.

    TensoropError            a message and a hint for the next step
    |- UsageError            the request itself is wrong             exit status 2
    |  |- UnknownName        nothing has the given name              exit status 2
    |  `- SpecError          a YAML file breaks its schema           exit status 2
    `- JobError              the request is fine, the job failed     exit status 1
       |- Stopped            the user stopped it before any trial passed   exit status 130
       |- NoFigure           a call was too slow, or the clock too unsteady, to be measured
       |- MissingTool        a compiler, emulator or library is missing
       `- BoardError         a remote board is lost, or differs from its platform file

A failing candidate is no error but an `Outcome` of its trial (see `tensorop.model.trial`).
"""

from __future__ import annotations

import contextlib
import difflib
from collections.abc import Iterable, Iterator


class TensoropError(Exception):
    """A failure with a cause and a next step, printed as one or two sentences."""

    exit_status = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message if self.hint is None else f"{self.message}\n{self.hint}"

    @property
    def shown(self) -> str:
        """The error as commands print it: `error: ` and the message, then the hint."""
        return f"error: {self.message}" + (f"\n       {self.hint}" if self.hint else "")


class UsageError(TensoropError):
    """The command or the call asks for something that does not exist or is not possible."""

    exit_status = 2


class UnknownName(UsageError):
    """An unknown name. plugin: path of the plug-in that would define it, e.g. `templates/NAME`, or None"""

    def __init__(self, message: str, *, hint: str | None = None, plugin: str | None = None) -> None:
        super().__init__(message, hint=hint)
        self.plugin = plugin


class SpecError(UsageError):
    """A platform, primitive or operator file breaks its schema; the message has file, key and expected value."""


class JobError(TensoropError):
    """The request is valid, but the job failed."""


class Stopped(JobError):
    """The user stopped the job before there was anything to package."""

    exit_status = 130


class NoFigure(JobError):
    """A call was too slow or its clock too unsteady to be measured; the library may still be right."""


class MissingTool(JobError):
    """A tool that the job needs is not on this machine; `hint` has the command that installs it."""


class BoardError(JobError):
    """A board is lost, too slow, or not the core that its platform file declares."""


@contextlib.contextmanager
def of_system(kind: type[TensoropError], what: str, hint: str | None = None) -> Iterator[None]:
    """Turns an OSError in the block into an error of this kind. what: the failure, without its reason"""
    try:
        yield
    except OSError as error:
        raise kind(f"{what}: {error.strerror or error}", hint=hint) from error


def unknown_name(kind: str, name: str, known: Iterable[str], plugin: str | None = None) -> UnknownName:
    """The error for an unknown name; its hint has the nearest names, then all names. plugin: as in UnknownName"""
    names = sorted(known)
    by_case = {known.lower(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.lower(), by_case, n=3, cutoff=0.5)
    if len(name) > 1:  # a part of a name, such as a board's without its maker
        close += [known for known in by_case if name.lower() in known and known not in close]
    near = [by_case[found] for found in close[:3]]
    hint = f"did you mean {' or '.join(near)}? " if near else ""
    shown = name if name.isprintable() else ascii(name)[1:-1]
    hint += f"known: {', '.join(names) or 'none'}"
    return UnknownName(f"unknown {kind} '{shown}'", hint=hint, plugin=plugin)
