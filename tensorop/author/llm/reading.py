"""Finds and parses the template in an answer, in a process of its own: only a process can be stopped reliably."""

from __future__ import annotations

import json
import re
import sys
from bisect import bisect_right
from collections.abc import Mapping
from typing import Any

from tensorop import paths, settings
from tensorop.author.llm import edits
from tensorop.author.parse import parse
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.point import Point
from tensorop.runners import process
from tensorop.specs import jsontext, yamlfile, yamltext
from tensorop.store import records

SECONDS = 10.0
_LIMITS = process.Limits(memory=1 << 30, file=0, cpu_s=int(SECONDS))
_MAX_OUTPUT = 16 << 20  # bytes of an escaped template
_COMMAND = (sys.executable, "-m", "tensorop.author.llm.reading")
_OPENING = re.compile(r"(`{3,}+|~{3,}+)[^`]*+\Z")
_THOUGHT = re.compile(r"<(/?)(?:think|thinking|thought|reasoning|seed:think)>|\[(/?)THINK\]|◁(/?)think▷")
_FINAL = re.compile(r"<\|channel\|>final(?:[^<]{0,40})<\|message\|>")  # from models that write each part to a channel
_END = re.compile(r"<\|(?:return|end|call)\|>")


def template(
    answer: str, *, operator: str, name: str, author: str, current: str = "", seconds: float = SECONDS
) -> KernelTemplate:
    """The template in an answer. Raises SpecError if there is none, or if reading takes more than `seconds`.

    current: the text that edits in the answer are of; empty: an answer has no edits
    """
    given = {"answer": answer, "current": current, "operator": operator, "name": name, "author": author}
    return records.template_of(_apart(given, seconds))


def configurations(answer: str, current: str, *, operator: str, most: int) -> tuple[Point, ...]:
    """The list of configurations of the template `current` in an answer. Raises SpecError as `template`."""
    given = {"answer": answer, "current": current, "operator": operator, "name": "x", "author": "x", "most": most}
    return records.template_of(_apart(given, SECONDS)).seed_configurations


def _apart(given: Mapping[str, object], seconds: float) -> Any:
    """What a process of its own reads."""
    asked = json.dumps(given).encode()
    environment = {**settings.scrubbed_environment(), "PYTHONPATH": str(paths.native_dir().parent.parent)}
    talk = process.Talk([asked], stdout_cap=_MAX_OUTPUT)
    ended = process.run(_COMMAND, timeout_s=seconds, talk=talk, environment=environment, limits=_LIMITS)
    if ended.timed_out:
        raise SpecError(f"reading the model's answer took more than {seconds:g} s")
    if not ended.stdout.endswith(b"\n"):
        raise SpecError("the process that reads the model's answer crashed")
    kind, content = jsontext.loads(ended.stdout)
    if kind != "template":
        raise SpecError(str(content))
    return content


def main() -> None:
    """stdin: an answer as JSON. stdout: one line of JSON, the template or the reason for its absence."""
    with open(1, "wb") as answer:
        answer.write(json.dumps(_read(**json.loads(sys.stdin.buffer.read()))).encode() + b"\n")


def _read(answer: str, current: str, most: int = 0, **of: str) -> tuple[str, Any]:
    try:
        if most:
            return "template", records.template_record(parse(_with_points(answer, current, most), **of))
        text = edits.edited(_spoken(answer), current) if current else None
        return "template", records.template_record(parse(template_text(answer) if text is None else text, **of))
    except SpecError as error:
        return "refused", str(error)
    except Exception as error:  # untrusted text may trigger any error in its reader
        return "refused", f"it cannot be worked with: {type(error).__name__}: {error!s:.500}"


def _with_points(answer: str, current: str, most: int) -> str:
    """The template `current` with the configurations of an answer in place of its own."""
    blocks = _blocks(_spoken(answer).replace("\r\n", "\n"))
    text = blocks[-1] if blocks else _spoken(answer)
    origin = "the answer"
    found = yamltext.parse("points:\n" + "".join(f"  {line}\n" for line in text.splitlines()), origin, aliases=False)
    points = found["points"]
    if not isinstance(points, list) or not 0 < len(points) <= most:
        what = f"{len(points)} entries" if isinstance(points, list) else type(points).__name__
        raise SpecError(f"{origin}: expected a list of 1 to {most} configurations, got {what}")
    _, head, body = current.split("---\n", 2)
    return f"---\n{yamlfile.dump({**yamltext.parse(head, origin), 'seed_configurations': points})}---\n{body}"


def template_text(answer: str) -> str:
    """The last fenced block that starts with a head, else the only block, else the whole answer."""
    text = _spoken(answer).replace("\r\n", "\n")
    blocks = _blocks(text)
    headed = [block for block in blocks if block.lstrip().startswith("---")]
    if headed:
        return headed[-1]
    return blocks[0] if len(blocks) == 1 else text


def _spoken(answer: str) -> str:
    """The answer without the model's reasoning.

    A reasoning block without an end stays. A block without a begin starts with the answer: some servers' chat templates
    open it in the prompt.
    """
    if final := _FINAL.search(answer):
        answer = _END.split(answer[final.end() :], maxsplit=1)[0]
    kept: list[str] = []
    at, begun, last = 0, None, len(answer.rstrip())
    for mark in _THOUGHT.finditer(answer):
        if not any(mark.groups()):
            begun = mark.start() if begun is None else begun
        elif begun is not None:
            kept.append(answer[at:begun])
            at, begun = mark.end(), None
        elif mark.end() < last:
            kept, at = [], mark.end()
    return "".join([*kept, answer[at:]])


def _blocks(text: str) -> list[str]:
    """The text of each block: between a line that opens a fence and the next line with only the same fence."""
    lines = text.split("\n")
    closing: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        bare = line.rstrip(" \t")
        if len(bare) > 2 and bare[0] in "`~" and bare == bare[0] * len(bare):
            closing.setdefault(bare, []).append(number)
    blocks: list[str] = []
    number = 0
    while number < len(lines):
        opening = _OPENING.match(lines[number])
        ends = closing.get(opening[1], []) if opening else []
        place = bisect_right(ends, number)
        if place < len(ends):
            blocks.append("".join(f"{line}\n" for line in lines[number + 1 : ends[place]]))
            number = ends[place]
        number += 1
    return blocks


if __name__ == "__main__":
    main()
