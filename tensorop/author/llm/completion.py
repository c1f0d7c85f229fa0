"""Reads an endpoint's answer, whole or streamed, in the forms that endpoints use."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from tensorop.author.llm import refusal
from tensorop.author.llm.messages import ModelReply, NoAnswer
from tensorop.model.trial import Kind
from tensorop.specs.printable import printable

MAX_REPLY = 256 << 10  # characters of an answer's text
MAX_SHOWN = 300  # characters of an endpoint's error, or of another field, in messages
_MOST_TOKENS = 10**9
_THOUGHTS = ("reasoning_content", "reasoning", "thinking")  # some servers put the whole text in one of these
_CUT = frozenset({"length", "max_tokens", "max_output_tokens", "model_length"})
_FILTERED = frozenset({"content_filter", "safety", "recitation", "prohibited_content", "blocklist", "sensitive"})
_EVENTS = re.compile(r"(?:data|event|id|retry)?:")

Scrub = Callable[[str], str]


def read(body: bytes, content_type: str, scrub: Scrub = str) -> ModelReply | NoAnswer:
    """The answer in a chat completion's body, or the reason for its absence.

    scrub: removes secrets, before any text is cut.
    """
    text = body.decode(errors="replace").lstrip("\ufeff \t\r\n")
    try:
        data = _joined(text) if _EVENTS.match(text) else refusal.loads(text)
    except RecursionError:
        return NoAnswer(Kind.REFUSED, "the endpoint sent JSON that is nested too deeply", again=True)
    except ValueError:
        what = "a web page" if "html" in content_type or refusal.is_page(text) else "text that is not JSON"
        words = shown(refusal.read(body, scrub).words)
        return NoAnswer(Kind.REFUSED, f"the endpoint sent {what}: {words}", again=True, misplaced=True)
    if not isinstance(data, dict):
        return NoAnswer(Kind.REFUSED, f"the endpoint sent a {type(data).__name__} instead of a completion", again=True)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        rejection = refusal.of(data, scrub) if set(data) & {"error", "message", "detail"} else None
        words = shown(rejection.words) if rejection else "no choices"
        return NoAnswer(
            Kind.REFUSED, f"the endpoint sent no completion: {words}", again=True, misplaced=True, rejection=rejection
        )
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    asked, written = _count(usage, "prompt_tokens"), _count(usage, "completion_tokens")
    return replace(_answer(data, choices[0], scrub), prompt_tokens=asked, completion_tokens=written)


def _answer(data: dict[str, Any], choice: dict[str, Any], scrub: Scrub) -> ModelReply | NoAnswer:
    finish = None if choice.get("finish_reason") is None else shown(choice["finish_reason"], scrub)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {"content": choice.get("text")}
    text = next((text for name in ("content", *_THOUGHTS) if (text := _text(message.get(name))).strip()), "")
    kind = (finish or "").casefold()
    if kind in _CUT:
        return NoAnswer(Kind.REFUSED, "the answer was cut at the limit of tokens")
    if kind in _FILTERED:
        return NoAnswer(Kind.REFUSED, f"the endpoint's filter stopped the answer (finish_reason '{finish}')")
    if finish is None:
        return NoAnswer(Kind.REFUSED, "the answer was cut: it has no finish_reason", again=True)
    if kind == "error":
        words = refusal.of(choice.get("error") or "nothing", scrub).words
        return NoAnswer(Kind.REFUSED, f"the answer ended in an error: {shown(words)}", again=True)
    if not text:
        return NoAnswer(Kind.REFUSED, f"the answer {_without_text(message, scrub)} (finish_reason '{finish}')")
    if len(text) > MAX_REPLY:
        return NoAnswer(Kind.REFUSED, f"the answer has {len(text)} characters; at most {MAX_REPLY} are read")
    return ModelReply(scrub(text), shown(data.get("model") or "", scrub))


def _text(content: Any) -> str:
    """A content's text: the content itself, or the texts among its parts."""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else [content]
    texts = (
        part.get("text") for part in parts if isinstance(part, dict) and part.get("type") in ("text", "output_text")
    )
    return "".join(text for text in texts if isinstance(text, str))


def _without_text(message: dict[str, Any], scrub: Scrub) -> str:
    content = message.get("content")
    parts = content if isinstance(content, list) else []
    refused = [message.get("refusal"), *(part.get("refusal") for part in parts if isinstance(part, dict))]
    words = next((words for words in refused if isinstance(words, str) and words.strip()), None)
    if words is not None:
        return f"is a refusal: {shown(words, scrub)}"
    if message.get("tool_calls") or message.get("function_call"):
        return "calls a tool and has no text"
    return "has no text"


def _joined(text: str) -> dict[str, Any]:
    """A stream of events, joined to one completion, or the error among them. Raises ValueError."""
    texts: dict[str, list[str]] = {name: [] for name in ("content", *_THOUGHTS, "refusal")}
    found: dict[str, Any] = {"choices": []}
    message: dict[str, Any] = {}
    finish = None
    for event in _events(text):
        if event == "[DONE]":
            finish = finish or "stop"
            break
        chunk = refusal.loads(event)
        if not isinstance(chunk, dict):
            continue
        choices = chunk.get("choices")
        if chunk.get("error") or (choices is None and set(chunk) & {"message", "detail"}):
            return {**chunk, "choices": []}
        found |= {name: chunk[name] for name in ("model", "usage") if chunk.get(name)}
        choice = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
        delta: dict[str, Any] = next(
            (choice[name] for name in ("delta", "message") if isinstance(choice.get(name), dict)), {}
        )
        for name, of_name in texts.items():
            of_name.append(_text(delta.get(name)))
        message |= {name: delta[name] for name in ("tool_calls", "function_call") if delta.get(name)}
        finish = choice.get("finish_reason") or finish
        if choice:
            found["choices"] = [{"message": message}]
    if found["choices"]:
        message |= {name: "".join(of_name) for name, of_name in texts.items()}
        found["choices"][0]["finish_reason"] = finish
    return found


def _events(text: str) -> Iterator[str]:
    """The data of each event. If a server leaves out the empty lines between events, each line is an event."""
    lines: list[str] = []
    for line in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        name, _, value = line.partition(":")
        if name == "data":
            lines.append(value.strip())
        elif not line:
            yield from lines if all(one.endswith(("}", "[DONE]")) for one in lines) else ["\n".join(lines)]
            lines = []


def _count(usage: Any, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and 0 <= value <= _MOST_TOKENS else 0


def shown(value: object, scrub: Scrub = str) -> str:
    """A field, or an endpoint's text, as one short line of printable characters."""
    if not isinstance(value, str):
        try:
            value = json.dumps(value)
        except (ValueError, RecursionError):  # an integer with many digits, deeply nested lists
            value = type(value).__name__
    value = printable(" ".join(scrub(value).split()))
    return value if len(value) <= MAX_SHOWN else f"{value[:MAX_SHOWN]}..."
