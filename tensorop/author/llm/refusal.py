"""Reads an endpoint's refusal of a request: its text, and the parts of the request that it names.

Endpoints use the error format of OpenAI, that of FastAPI and pydantic, plain text, or one of these inside another.
Fields that echo the request are skipped: they name every option that was sent.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from tensorop.specs import jsontext

TOKENS = ("max_tokens", "max_completion_tokens")  # two names of one option
OPTIONS = ("temperature", "seed", *TOKENS, "stream", "stream_options")  # of a request; each can be left out
LEAST_TOKENS = 256  # a template needs more
_MOST_READ = 16 << 10  # characters of a refusal that are searched
_PAGE = re.compile(r"<\s*(?:!doctype\s+html|html|head|body|title|center|h[1-6]|p)\b", re.IGNORECASE)
_UNSEEN = re.compile(r"<(script|style|head)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_UNSEEN_BUT_TITLES = re.compile(r"<(script|style)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)", re.IGNORECASE | re.DOTALL)
_TAG = re.compile(r"<[^<>]*>")
_DEPTH = 16
_NODES = 10_000
_TEXTS = 20

# Keys in lower case, without `_` and `-`.
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
# Parts of a place that name no option.
_NOWHERE = frozenset(["body", "query", "request", "json", "root", "none", "null"])

_PLACE_IN_TEXT = re.compile(r"['\"]loc['\"]\s*:\s*[(\[]([^)\]]{0,300})[)\]]")  # a Python repr of pydantic's errors
_QUOTED = re.compile(r"['\"]messages['\"]\s*:")
_LIST = re.compile(  # a list of accepted options, after its introduction
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
_PROMPT = re.compile(  # the prompt's tokens
    r"(\d{1,12})\W{0,3}(?:tokens?\W{1,3})?(?:in|from)\s+(?:\w+\s+)?(?:messages?|input|prompt)"
    r"|(\d{1,12})\W{1,3}(?:inputs?|prompt|messages?)\W{1,3}tokens?"
    r"|\b(?:inputs?|prompt|messages?|request)\b[^.\d]{0,30}?(\d{1,12})",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Room:
    """The tokens that an answer may have."""

    tokens: int
    whole: bool  # for every prompt; otherwise only beside this one


@dataclass(frozen=True)
class Rejection:
    """An endpoint's refusal of a request."""

    words: str  # the text of the error
    named: frozenset[str] = frozenset()  # parts of the request, from fields such as `param` and `loc`
    codes: frozenset[str] = frozenset()  # from fields such as `code`, `type` and `status`

    def options(self, sent: Collection[str]) -> tuple[str, ...]:
        """The sent options that the endpoint refuses."""
        if self.named:
            return tuple(name for name in sent if name in self.named)
        text = _LIST.sub(r"\1 ", self.text)
        for passage in (_ADVICE.sub(" ", text), text):
            if found := tuple(name for name in sent if _is_named(name, passage)):
                return found
        return ()

    @property
    def text(self) -> str:
        """The text to search: its beginning, without a quoted request."""
        words = self.words[:_MOST_READ]
        quoted = _QUOTED.search(words)
        return words[: max(0, words.rfind("{", 0, quoted.start()))] if quoted else words

    @property
    def status(self) -> int | None:
        """The HTTP status in the body, if there is one."""
        return next((int(code) for code in sorted(self.codes) if re.fullmatch(r"[45]\d\d", code)), None)

    @property
    def of_what_is_sent(self) -> bool:
        """Whether the request's form is refused, despite a status that means a server error."""
        return self.of_the_system_role or self.wants_a_stream or bool(_UNKNOWN.search(self.text))

    @property
    def of_the_system_role(self) -> bool:
        return "role" in self.named or _SYSTEM.search(self.text) is not None

    @property
    def wants_a_stream(self) -> bool:
        return "stream" in self.named or _STREAM.search(self.text) is not None

    def advises(self, name: str) -> bool:
        """Whether the text recommends this option."""
        return any(advice[1] == name for advice in _ADVICE.finditer(self.text))

    def room(self, asked: int) -> Room | None:
        """The limit of an answer's tokens in the text, or None if it has none or one below LEAST_TOKENS.

        asked: the limit in the refused request.
        """
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
    """The refusal in an error's body, in any format. scrub: removes secrets from its text."""
    text = body.decode(errors="replace").strip()
    try:
        data = loads(text)
    except RecursionError:
        data = "JSON that is nested too deeply"
    except ValueError:
        data = _words_of_page(scrub(text)) if is_page(text) else text
    return of(data, scrub)


def of(data: Any, scrub: Callable[[str], str] = str) -> Rejection:
    """The refusal in parsed JSON, or in a text."""
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
    """Parses JSON, including NaN. Raises ValueError, also for too many values, and RecursionError."""
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
        """Collects the texts, places and codes of a part of a body.

        key: the part's key in its object; place: the part of the request that it is about.
        """
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
    """Parses JSON that a gateway forwards as a string; None for any other text."""
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
    """The words in `body.messages[0].role`, or in the same place as a list."""
    for part in value if isinstance(value, list) else [value]:
        if isinstance(part, str):
            words = re.findall(r"[A-Za-z_]\w*", part)
            yield from (word for word in words if word.strip("_").lower() not in _NOWHERE)


def _is_named(name: str, text: str) -> bool:
    return re.search(rf"(?<![A-Za-z0-9_]){name}(?![A-Za-z0-9_])", text, re.IGNORECASE) is not None


def _first(pattern: re.Pattern[str], text: str) -> int | None:
    found = pattern.search(text)
    return next((int(group) for group in found.groups() if group), None) if found else None
