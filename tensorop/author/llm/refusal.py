"""What an endpoint says where it refuses a request: its words, and what of the request they name.

Endpoints say it in the shape of OpenAI, of FastAPI and pydantic, as a text, or one of these inside another. A field
that echoes the request is passed over: it names every option that was sent.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorop.specs import jsontext

TOKENS = ("max_tokens", "max_completion_tokens")  # names of one option
OPTIONS = ("temperature", "seed", *TOKENS, "stream", "stream_options")  # of a request; an endpoint may do without each
LEAST_TOKENS = 256  # fewer hold no template
_MOST_READ = 16 << 10  # characters of the words that are searched
_PAGE = re.compile(r"<\s*(?:!doctype\s+html|html|head|body|title|center|h[1-6]|p)\b", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_UNSEEN_BUT_TITLES = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_DEPTH = 16
_NODES = 10_000
_TEXTS = 20

# Keys in small letters, without `_` and `-`.
_WORDS = frozenset([
    "message", "msg", "detail", "details", "error", "errors", "title", "description", "reason", "errormessage",
    "errormsg", "errordescription", "raw",
])  # fmt: skip
_PLACES = frozenset([
    "param", "parameter", "params", "parameters", "field", "fields", "argument", "arguments", "property", "loc",
    "location",
])  # fmt: skip
_ECHOES = frozenset(["input", "inputs", "ctx", "context", "request", "body", "url", "headers", "instance", "schema"])
_CODES = frozenset(["code", "type", "errortype", "status"])
_NOWHERE = frozenset(["body", "query", "request", "json", "root", "none", "null"])  # parts of a place that name nothing

_PLACE_IN_TEXT = re.compile(
    r"['\"]loc['\"]\s*:\s*[(\[]([^)\]]{0,300})[)\]]"
)  # pydantic's errors, written as Python does
_QUOTED = re.compile(r"['\"]messages['\"]\s*:")
_LIST = re.compile(  # of what an endpoint takes, after its head
    r"(\bone of\b|(?<!not )(?<!n't )(?<!currently )(?<!yet )"
    r"\b(?:supported|allowed|valid|accepted|available|permitted|known|recognized|expected)\b"
    r"(?: [\w()-]+){0,4}? ?(?::|\bare\b(?! not)|\binclude))[^.;\n]*",
    re.IGNORECASE,
)
_ADVICE = re.compile(r"\b(?:use|try|did you mean|replaced? (?:\w+ )?(?:by|with))\b[\s:'\"`*]*([\w.]+)", re.IGNORECASE)

_UNKNOWN = re.compile(
    r"unsupported|(?:not|n't) (?:\w+ )?(?:support|permit|allow|recogni[sz]e)|unknown|unrecogni[sz]ed|unexpected",
    re.IGNORECASE,
)
_SYSTEM = re.compile(
    r"system[\W_]{0,3}(?:role|message|prompt|instruction)|role\W{1,4}system\b|developer instruction"
    r"|roles? must alternate|only user and assistant|first message\b.{0,40}\buser",
    re.IGNORECASE,
)
_STREAM = re.compile(
    r"\bonly\b.{0,40}\bstream|\bstream(?:s|ing|ed)?\b.{0,30}(?:\bonly\b|\brequired\b|\bmust\b|mandatory)"
    r"|(?:\bmust\b|\benable\b|\brequires?\b|\buse\b).{0,30}\bstream|non.?stream|without stream|stream\W{0,4}false",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.\-/])(?:\d{1,3}(?:[,_]\d{3})+|\d{1,12})(?![\w\-/]|\.\d)")
_OF_TOKENS = re.compile(
    r"max(?:imum)?[ _-]?(?:\w{1,12}[ _-])?tokens|maxOutputTokens|n(?:um)?_predict|context"
    r"|(?:completion|output|new|generated|total|requested)[ _]tokens?\b",
    re.IGNORECASE,
)
_OF_VALUES = re.compile(
    r"too (?:large|big|high|long|many)|exceed|at most|\bmax(?:imum)?\b|(?:less|lower|smaller|greater|larger|more) than"
    r"|\brange\b|\blimit|context|<|≤|>|up to|\bbetween\b|out of",
    re.IGNORECASE,
)
_EXCLUSIVE = re.compile(r"\bexclusive\b|(?:less|lower|smaller) than \W{0,2}\d|<\s*\d{1,12}\b(?!>)", re.IGNORECASE)
_CONTEXT = re.compile(
    r"context[^.\d]{0,40}?(\d{1,12})|(?:<=|≤|less than or equal to|at most|no more than)[^.\d]{0,20}(\d{1,12})",
    re.IGNORECASE,
)
_PROMPT = re.compile(  # its tokens
    r"(\d{1,12})\W{0,3}(?:tokens?\W{1,3})?(?:in|from)\s+(?:\w+\s+)?(?:messages?|input|prompt)"
    r"|(\d{1,12})\W{1,3}(?:inputs?|prompt|messages?)\W{1,3}tokens?"
    r"|\b(?:inputs?|prompt|messages?|request)\b[^.\d]{0,30}?(\d{1,12})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Room:
    """How many tokens an answer may have. whole: whatever the prompt; else beside this one."""

    tokens: int
    whole: bool


@dataclass(frozen=True)
class Rejection:
    """named: words of the places that are named in fields of their own; codes: what kind of error it calls itself."""

    words: str
    named: frozenset[str] = frozenset()
    codes: frozenset[str] = frozenset()

    def options(self, sent: Collection[str]) -> tuple[str, ...]:
        """Those of the options that were sent which it refuses."""
        if self.named:
            return tuple(name for name in sent if name in self.named)
        text = _LIST.sub(r"\1 ", self.text)
        for passage in (_ADVICE.sub(" ", text), text):
            if found := tuple(name for name in sent if _is_named(name, passage)):
                return found
        return ()

    @property
    def text(self) -> str:
        """What is searched: no more than a page, and no request that is quoted in it."""
        words = self.words[:_MOST_READ]
        quoted = _QUOTED.search(words)
        return words[: max(0, words.rfind("{", 0, quoted.start()))] if quoted else words

    @property
    def status(self) -> int | None:
        """The status that it gives itself in the body."""
        return next((int(code) for code in sorted(self.codes) if re.fullmatch(r"[45]\d\d", code)), None)

    @property
    def of_what_is_sent(self) -> bool:
        """Whether it is the request's way that is refused, in a status that means a fault of the server's."""
        return self.of_the_system_role or self.wants_a_stream or bool(_UNKNOWN.search(self.text))

    @property
    def of_the_system_role(self) -> bool:
        return "role" in self.named or _SYSTEM.search(self.text) is not None

    @property
    def wants_a_stream(self) -> bool:
        return "stream" in self.named or _STREAM.search(self.text) is not None

    def advises(self, name: str) -> bool:
        """Whether it says to use that."""
        return any(advice[1] == name for advice in _ADVICE.finditer(self.text))

    def room(self, asked: int) -> Room | None:
        """What it says of an answer's tokens, where so many were asked for; None where that is nothing or too few."""
        text = self.text
        if not _OF_TOKENS.search(text) or not _OF_VALUES.search(text):
            return None
        text = re.sub(r"(?<=\d)[,_](?=\d{3}(?!\d))", "", text)
        numbers = [int(number[0]) for number in _NUMBER.finditer(text)]
        prompt = _first(_PROMPT, text)
        if prompt is not None and "context" not in text.lower() and prompt >= asked:
            prompt = None
        taken = prompt or 0
        context = _first(_CONTEXT, text) if prompt is not None else None
        beside = [n - taken for n in numbers if n not in (asked, asked + taken, taken)]
        if context is not None:
            beside = [context - taken]
        least = max((n for n in beside if n < asked), default=0) - bool(_EXCLUSIVE.search(text))
        return Room(least, prompt is None) if least >= LEAST_TOKENS else None


def read(body: bytes, scrub: Callable[[str], str] = str) -> Rejection:
    """An error's body, of whatever shape. scrub: takes secrets out of its words."""
    text = body.decode(errors="replace").strip()
    try:
        data = loads(text)
    except RecursionError:
        data = "JSON that is nested too deeply"
    except ValueError:
        data = _words_of_page(scrub(text)) if is_page(text) else text
    return of(data, scrub)


def of(data: Any, scrub: Callable[[str], str] = str) -> Rejection:
    """The same of what JSON was read as, or of a text."""
    found = _Found()
    if isinstance(data, str):
        words = data
    else:
        found.gather(data, "", (), 0)
        words = "; ".join(dict.fromkeys(found.texts)) or _dumped(data)
    for place in _PLACE_IN_TEXT.finditer(words[:_MOST_READ]):
        found.named |= set(_place(place[1]))
    return Rejection(scrub(words) or "nothing", frozenset(found.named), frozenset(found.codes))


def loads(text: str) -> Any:
    """JSON as endpoints write it, NaN too. Raises ValueError, also for too many values, RecursionError."""
    jsontext.require_few(text)
    return json.loads(text)


def is_page(text: str) -> bool:
    return _PAGE.search(text[:1000]) is not None


def _words_of_page(text: str) -> str:
    text = text[:_MOST_READ]
    for hidden in (_UNSEEN, _UNSEEN_BUT_TITLES):
        if words := html.unescape(_TAG.sub(" ", hidden.sub(" ", text))).strip():
            return words
    return "a web page without text"


@dataclass
class _Found:
    texts: list[str] = field(default_factory=list)
    named: set[str] = field(default_factory=set)
    codes: set[str] = field(default_factory=set)
    nodes: int = 0

    def gather(self, data: Any, key: str, place: tuple[str, ...], depth: int) -> None:
        """What a part of a body says. key: that it lies under; place: what of the request it is about."""
        self.nodes += 1
        if depth > _DEPTH or self.nodes > _NODES or len(self.texts) >= _TEXTS:
            return
        if isinstance(data, dict):
            plain = {str(name).lower().replace("_", "").replace("-", ""): name for name in data}
            place = tuple(part for name in plain if name in _PLACES for part in _place(data[plain[name]]))
            self.named |= set(place)
            self.codes |= {str(data[plain[name]]) for name in plain if name in _CODES}
            for name, original in plain.items():
                value = data[original]
                if original in OPTIONS and isinstance(value, str | list):  # {"seed": ["Unknown field."]}
                    self.named.add(original)
                    self.gather(value, "message", (original,), depth + 1)
                elif name in _WORDS or (isinstance(value, dict | list) and name not in _ECHOES | _PLACES):
                    self.gather(value, name, place, depth + 1)
        elif isinstance(data, list):
            for one in data:
                self.gather(one, key, place, depth + 1)
        elif isinstance(data, str) and key in _WORDS and data.strip():
            inner = _inner(data)
            if inner is not None:
                self.gather(inner, key, place, depth + 1)
            else:
                where = ".".join(place)
                self.texts.append(data if not where or place[-1] in data else f"{where}: {data}")


def _inner(text: str) -> Any:
    """JSON that a gateway hands on as a text."""
    if not text.lstrip().startswith(("{", "[")):
        return None
    try:
        return loads(text)
    except (ValueError, RecursionError):
        return None


def _dumped(data: Any) -> str:
    try:
        return json.dumps(data, ensure_ascii=False)
    except RecursionError:
        return "JSON that is nested too deeply"


def _place(value: Any) -> Iterator[str]:
    """`body.messages[0].role`, or the same as a list, in its words."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str):
            words = re.findall(r"[A-Za-z_]\w*", part)
            yield from (word for word in words if word.strip("_").lower() not in _NOWHERE)


def _is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", text, re.IGNORECASE) is not None


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return next((int(group) for group in found.groups() if group), None) if found else None
