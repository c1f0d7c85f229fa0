"""A transport for a chat window: writes each question to a file, and reads the answer from a second file."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from tensorop.author.llm.messages import Failure, Message, ModelReply, Request
from tensorop.errors import JobError, SpecError, of_system
from tensorop.model.trial import Kind, Outcome
from tensorop.specs import files
from tensorop.store import durable

SETTLED_S = 1.0  # an answer that was changed since may be incomplete


class ManualTransport:
    """Question N is `prompts/N.md`, its answer `replies/N.md`, N with four digits.

    A question that was written by an earlier process keeps its number.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        """The answer; a failure if there is none yet, or if its file is not text."""
        if not self.has_answer(request):
            return Failure(Outcome(Kind.LOST, "author", self.waiting(request)), final=True, pending=True)
        try:
            return ModelReply(files.text(self.reply(request), files.TEXT), request.model)
        except SpecError as error:
            return Failure(Outcome(Kind.REFUSED, "author", error.message))

    def has_answer(self, request: Request) -> bool:
        try:
            found = self.reply(request).stat()
        except OSError:
            return False
        return found.st_size > 0 and abs(time.time() - found.st_mtime) > SETTLED_S

    def waiting(self, request: Request) -> str:
        """What the user may do."""
        return f"{self.prompt(request)} waits for an answer: write it to {self.reply(request)}"

    def reply(self, request: Request) -> Path:
        """The file for the answer to a question, which is written. Raises JobError if it cannot be."""
        return self._folder / "replies" / self.prompt(request).name

    def prompt(self, request: Request) -> Path:
        """The file of a question. Raises JobError if it cannot be written."""
        text = as_text(request.messages)
        prompts = self._folder / "prompts"
        known = sorted(prompts.glob("[0-9][0-9][0-9][0-9].md"))
        path = next((path for path in known if path.read_bytes() == text.encode()), None)
        if path is not None:
            return path
        path = prompts / f"{len(known) + 1:04d}.md"
        durable.write(path, text)
        with of_system(JobError, f"{self._folder} cannot be written", "make the folder writable"):
            (self._folder / "replies").mkdir(exist_ok=True)
        return path


def as_text(messages: Sequence[Message]) -> str:
    """A conversation in one text, as `tensorop prompt` prints it."""
    return "\n".join(f"[{message.role}]\n{message.text}" for message in messages)
