"""Requests to any OpenAI-compatible endpoint through the `openai` client.

The client bounds each read, not the call, takes bodies of any length, returns error bodies and web pages as answers,
and lets JSON errors through. So every body, whatever its status, is read here up to a number of bytes, under one
deadline on the wall clock for the call with all its retries, and held against what a chat completion must have. What
an endpoint does is an answer or a Failure, and nothing it says carries the key on.
"""

from __future__ import annotations

import contextlib
import json
import queue
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import openai

from tensorop.author.llm import refusal, secret, surroundings
from tensorop.author.llm.dialect import Call, Dialect
from tensorop.author.llm.messages import Failure, Reply, Request
from tensorop.author.llm.refusal import Refusal
from tensorop.errors import UsageError
from tensorop.model.trial import Kind, Outcome
from tensorop.settings import Settings

RETRIES = 2
BACKOFF = 0.5  # seconds, doubled at each retry
LONGEST_WAIT = 30.0  # a longer Retry-After is no wait but a refusal
MAX_BODY = 8 << 20  # bytes
MAX_REPLY = 256 << 10  # characters of the answer itself
MAX_SAID = 300  # characters of what an endpoint says of an error, or of itself
_MOST_TOKENS = 10**9
_FINAL = frozenset({401, 403, 404, 407})  # no other request will do better
_PASSING = frozenset({408, 409, 425, 429})
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # a local server wants no key, the client wants one


@dataclass(frozen=True)
class Endpoint:
    """Where the model is. base_url None: OpenAI's; proxy: through which it is reached; secrets: besides the key."""

    model: str
    api_key: str
    base_url: str | None = None
    proxy: str | None = None
    secrets: tuple[str, ...] = ()


def endpoint(settings: Settings) -> Endpoint:
    """The endpoint the environment names; raises UsageError where it does not name one, must not be used, or holds what
    no call could be made with."""
    if settings.offline:
        raise UsageError("the llm author needs a network, and --offline forbids it", hint="use --author offline")
    if not settings.llm_model:
        raise UsageError("no model is named for the llm author", hint="set TENSOROP_LLM_MODEL, or use --author offline")
    if not settings.llm_model.isprintable() or settings.llm_model != settings.llm_model.strip():
        raise UsageError(
            f"TENSOROP_LLM_MODEL is {settings.llm_model[:80]!r}: a line end, a space at an end or what is no text",
            hint="set it to the model's name as the endpoint knows it",
        )
    if not settings.llm_api_key and not settings.llm_base_url:
        raise UsageError(
            "the llm author has no endpoint", hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        )
    if settings.llm_base_url:
        _require_address(settings.llm_base_url)
    if settings.llm_api_key:
        secret.require_key(settings.llm_api_key)
    address = settings.llm_base_url or _OPENAI
    surroundings.require(settings.client, address)
    found = Endpoint(
        settings.llm_model,
        settings.llm_api_key or _NO_KEY,
        settings.llm_base_url or None,
        surroundings.proxy(settings.client, address),
        surroundings.secrets(settings.client),
    )
    _require_client(found, settings)
    return found


def _require_address(address: str) -> None:
    """Not shown: it may hold a password."""
    try:
        parts = urlsplit(address)
        good = _ADDRESS.fullmatch(address) and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UsageError("OPENAI_BASE_URL is no address", hint="write it as http://localhost:8000/v1")


def _require_client(where: Endpoint, settings: Settings) -> None:
    """Raises UsageError where the client is not made of what the environment says, for whatever reason."""
    try:
        with _Client(0.0) as client:
            _caller(where, client)
    except Exception as error:
        said = f"{type(error).__name__}: {_scrubber(where)(str(error))[:MAX_SAID]}"
        names = ["OPENAI_BASE_URL"] * bool(settings.llm_base_url) + list(settings.client)
        raise UsageError(
            f"the client of the llm author cannot be made of what the environment says: {said}",
            hint=f"look at {', '.join(names) or 'OPENAI_API_KEY'}",
        ) from None


def _caller(where: Endpoint, client: _Client) -> openai.OpenAI:
    return openai.OpenAI(
        api_key=where.api_key,
        base_url=where.base_url or _OPENAI,
        max_retries=0,
        http_client=client,
        default_headers={"Accept-Encoding": "identity"},
    )


def _scrubber(where: Endpoint) -> secret.Scrubber:
    key = () if where.api_key == _NO_KEY else (where.api_key,)
    return secret.Scrubber(*key, *secret.of_url(where.base_url), *where.secrets)


class Http:
    """A transport over HTTP. Learns what the endpoint does not take and asks in its way from then on."""

    def __init__(self, where: Endpoint) -> None:
        self._where = where
        self._who = f"the endpoint, through the proxy {where.proxy}," if where.proxy else "the endpoint"
        self._dialect = Dialect()
        self._scrub = _scrubber(where)

    def complete(self, request: Request, seconds: float) -> Reply | Failure:
        began = time.monotonic()
        deadline = began + seconds
        retries = 0
        call = Call()
        while True:
            answer = self._once(request, call, deadline)
            spent = time.monotonic() - began
            if isinstance(answer, Reply):
                return Reply(answer.text, answer.model, answer.prompt_tokens, answer.completion_tokens, spent)
            if answer.learned:
                continue
            wait = answer.wait if answer.wait is not None else BACKOFF * 2**retries
            hopeless = answer.final or not answer.again or retries == RETRIES or wait > LONGEST_WAIT
            if hopeless or time.monotonic() + wait >= deadline:
                return Failure(Outcome(answer.kind, "author", self._scrub(answer.message)), answer.final, spent)
            time.sleep(wait)
            retries += 1

    def _once(self, request: Request, call: Call, deadline: float) -> Reply | _Fault:
        """One attempt in a thread of its own, which is left behind when the deadline comes first."""
        answers: queue.Queue[Reply | _Fault] = queue.Queue()
        try:
            client = _Client(deadline)
        except Exception as error:  # what it reads of the environment was sound when the job began
            said = self._scrub(f"{type(error).__name__}: {error}")[:MAX_SAID]
            return _Fault(Kind.LOST, f"the client can no longer be made: {said}", final=True)

        def attempt() -> None:
            try:
                answers.put(self._attempt(request, call, deadline, client))
            except Exception as error:  # whatever libraries make of what came
                said = self._scrub(f"{type(error).__name__}: {error}")[:MAX_SAID]
                answers.put(_Fault(Kind.LOST, f"the endpoint's answer cannot be read: {said}", again=True))

        threading.Thread(target=attempt, daemon=True).start()
        try:
            return answers.get(timeout=max(0.0, deadline - time.monotonic()) + 0.2)
        except queue.Empty:
            return _Fault(Kind.TIMEOUT, f"no answer of {self._who} before the deadline")
        finally:
            with contextlib.suppress(Exception):  # a thread that still reads from it finds it closed
                client.close()

    def _attempt(self, request: Request, call: Call, deadline: float, client: _Client) -> Reply | _Fault:
        left = deadline - time.monotonic()
        if left <= 0:
            return _Fault(Kind.TIMEOUT, f"no answer of {self._who} before the deadline")
        options = self._dialect.options(request, call)
        caller = _caller(self._where, client)
        try:
            with caller.chat.completions.with_streaming_response.create(
                model=request.model,
                messages=[{"role": m.role, "content": m.text} for m in request.messages],  # type: ignore[misc]
                timeout=left,
                **options,
            ) as response:
                return read_body(response.read(), response.headers.get("content-type", ""), self._scrub)
        except _Unreadable as error:
            return error.fault
        except openai.APIStatusError as error:
            body = error.response.content
            return self._refused(error, refusal.read(body, self._scrub), options, call)
        except openai.APITimeoutError:
            return _Fault(Kind.TIMEOUT, f"no answer of {self._who} before the deadline")
        except openai.OpenAIError as error:
            if isinstance(error.__cause__, _Unreadable):
                return error.__cause__.fault
            said = self._scrub(str(error.__cause__ or error))[:MAX_SAID]
            return _Fault(Kind.LOST, f"{self._who} cannot be reached: {said}", again=True)

    def _refused(self, error: openai.APIStatusError, said: Refusal, options: dict[str, Any], call: Call) -> _Fault:
        status, words = error.status_code, _text(said.words, str)
        if status == 402 or "insufficient_quota" in said.codes:
            return _Fault(Kind.LOST, f"the endpoint says that the quota is spent: {words}", final=True)
        if status in _FINAL:
            return _Fault(Kind.LOST, f"{self._who} answers {status}: {words}", final=True)
        again = status in _PASSING or status >= 500
        may_teach = said.of_something_unknown if status in (500, 501) else 400 <= status < 500 and not again
        if may_teach and self._dialect.learn(said, options, call):
            return _Fault(Kind.LOST, words, learned=True)
        return _Fault(Kind.LOST, f"{self._who} answers {status}: {words}", again=again, wait=_retry_after(error))


class _Unreadable(Exception):
    """A body that is not read to its end."""

    def __init__(self, fault: _Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _Client(openai.DefaultHttpxClient):
    """Gives responses whose bodies have been read, whatever their status, within bounds of bytes and time."""

    def __init__(self, deadline: float) -> None:
        super().__init__(follow_redirects=False)  # the body of a redirection is read without a bound
        self._deadline = deadline

    def send(self, request: Any, **how: Any) -> Any:
        response = super().send(request, **{**how, "stream": True})
        try:
            body = self._read(response)
        finally:
            response.close()
        dropped = ("content-encoding", "content-length", "transfer-encoding")
        headers = [(name, value) for name, value in response.headers.multi_items() if name.lower() not in dropped]
        return type(response)(response.status_code, headers=headers, content=body, request=request)

    def _read(self, response: Any) -> bytes:
        coding = response.headers.get("content-encoding", "identity").strip().lower()
        if coding not in ("", "identity"):
            said = f"the endpoint sent a body in {coding[:40]!r}, though asked for none"
            raise _Unreadable(_Fault(Kind.REFUSED, said, again=True))
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > MAX_BODY:
                what = "answer" if response.status_code < 400 else f"answer {response.status_code}"
                raise _Unreadable(_Fault(Kind.REFUSED, f"the {what} is longer than {MAX_BODY >> 20} MiB"))
            if time.monotonic() > self._deadline:
                raise _Unreadable(_Fault(Kind.TIMEOUT, "the answer was not whole before the deadline"))
        return bytes(body)


@dataclass(frozen=True)
class _Fault:
    """One attempt that gave no answer. again: worth another; learned: ask again at once, without an option."""

    kind: Kind
    message: str
    again: bool = False
    final: bool = False
    learned: bool = False
    wait: float | None = None


def read_body(body: bytes, content_type: str, scrub: Callable[[str], str] = str) -> Reply | _Fault:
    """The answer in a chat completion's body, or why there is none. scrub: takes secrets out, before any cut."""
    try:
        data = json.loads(body)
    except RecursionError:
        return _Fault(Kind.REFUSED, "the endpoint sent JSON that is nested too deeply", again=True)
    except ValueError:
        what = "a web page" if "html" in content_type else "text that is not JSON"
        shown = scrub(body.decode(errors="replace"))[:80]
        return _Fault(Kind.REFUSED, f"the endpoint sent {what}: {shown!r}", again=True)
    if not isinstance(data, dict):
        return _Fault(Kind.REFUSED, f"the endpoint sent a {type(data).__name__} instead of a completion", again=True)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = _text(data.get("error", "no choices"), scrub)
        return _Fault(Kind.REFUSED, f"the endpoint sent no completion: {said}", again=True)
    finish = None if choices[0].get("finish_reason") is None else _text(choices[0]["finish_reason"], scrub)
    message = choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else None
    if finish == "length":
        return _Fault(Kind.REFUSED, "the answer was cut at the limit of tokens")
    if finish is None:
        return _Fault(Kind.REFUSED, "the answer was cut: it has no finish_reason", again=True)
    if not isinstance(text, str) or not text.strip():
        return _Fault(Kind.REFUSED, f"the answer has no text (finish_reason '{finish}')")
    if len(text) > MAX_REPLY:
        return _Fault(Kind.REFUSED, f"the answer has {len(text)} characters; at most {MAX_REPLY} are read")
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    return Reply(
        scrub(text),
        _text(data.get("model") or "", scrub),
        _count(usage, "prompt_tokens"),
        _count(usage, "completion_tokens"),
    )


def _count(usage: Any, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and 0 <= value <= _MOST_TOKENS else 0


def _text(value: object, scrub: Callable[[str], str]) -> str:
    """A field that should be a word, as one of few characters."""
    if not isinstance(value, str):
        try:
            value = json.dumps(value)
        except (ValueError, RecursionError):  # an integer of many digits, a nest of lists
            value = type(value).__name__
    value = scrub(value)
    return value if len(value) <= MAX_SAID else f"{value[:MAX_SAID]}..."


def _retry_after(error: openai.APIStatusError) -> float | None:
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None
