"""Sends requests to any OpenAI-compatible endpoint through the `openai` client.

The client limits the time of each read, but not of a call. It accepts bodies of any length, returns error bodies and
web pages as answers, and does not catch JSON errors. So this module reads every body itself, with a limit of bytes and
one deadline for a call and all its retries; `completion` and `refusal` interpret it. A call gives an answer or a
Failure, and the key is removed from all text.
"""

from __future__ import annotations

import contextlib
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urlsplit

import openai

from tensorop.author.llm import completion, refusal, secret, surroundings
from tensorop.author.llm.completion import shown
from tensorop.author.llm.dialect import CallState, Dialect
from tensorop.author.llm.messages import Failure, ModelReply, NoAnswer, Request
from tensorop.author.llm.refusal import Rejection
from tensorop.errors import UsageError
from tensorop.model.trial import Kind, Outcome
from tensorop.process import waiting
from tensorop.settings import Settings

RETRIES = 2
BACKOFF = 0.5  # seconds, doubled at each retry
LONGEST_PAUSE = 15.0  # seconds, if the endpoint does not give a time
MAX_BODY = 8 << 20  # bytes
_FINAL = frozenset({401, 403, 404, 407})  # every other request will fail too
_PASSING = frozenset({408, 409, 425, 429})
_BUSY = frozenset({503, 529})  # the model is loading, or overloaded
_LOGGER = logging.getLogger("tensorop")
_VERSION = re.compile(r"/v\d")
_CALL = re.compile(r"/(?:chat/completions|completions|responses|models|embeddings|chat)/*$")
_ADDRESS = re.compile(r"https?://[^\s/?#]+[^\s?#]*")
_OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"  # a local server needs no key, but the client does


@dataclass(frozen=True)
class Endpoint:
    """A model and the address of its server."""

    model: str
    api_key: str
    base_url: str | None = None  # None: OpenAI's
    proxy: str | None = None  # for messages
    secrets: tuple[str, ...] = ()  # besides the key


def endpoint(settings: Settings) -> Endpoint:
    """The environment's endpoint.

    Raises UsageError if none is named, if the network must not be used, or if a value would make every call fail.
    """
    if settings.offline:
        raise UsageError(
            "--author llm needs a network, and --offline forbids it", hint="remove --offline, or use --author offline"
        )
    if not settings.llm_model:
        raise UsageError(
            "--author llm needs a model, and TENSOROP_LLM_MODEL is not set",
            hint="set TENSOROP_LLM_MODEL, or use --author offline",
        )
    if not settings.llm_model.isprintable() or settings.llm_model != settings.llm_model.strip():
        raise UsageError(
            f"TENSOROP_LLM_MODEL is {settings.llm_model[:80]!r}: it has a line end, a space at an end or invalid text",
            hint="set it to the name of the model at the endpoint",
        )
    if not settings.llm_api_key and not settings.llm_base_url:
        raise UsageError(
            "--author llm needs an endpoint", hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of yours"
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
    """Errors do not show the address: it may contain a password."""
    try:
        parts = urlsplit(address)
        good = _ADDRESS.fullmatch(address) and parts.hostname and parts.port != 0
    except ValueError:
        good = False
    if not good:
        raise UsageError("OPENAI_BASE_URL must be an address", hint="e.g. http://localhost:8000/v1")
    if call := _CALL.search(parts.path):
        raise UsageError(
            f"OPENAI_BASE_URL must not include {call[0]}",
            hint="remove that part; the address usually ends in /v1",
        )


def _require_client(where: Endpoint, settings: Settings) -> None:
    """Raises UsageError if the client cannot be made with the environment's values, for any reason."""
    try:
        with _Client(0.0) as client:
            _caller(where, client)
    except Exception as error:
        message = shown(f"{type(error).__name__}: {error}", _scrubber(where))
        names = ["OPENAI_BASE_URL"] * bool(settings.llm_base_url) + list(settings.client)
        raise UsageError(
            f"the client for --author llm cannot be created from the environment: {message}",
            hint=f"check {', '.join(names) or 'OPENAI_API_KEY'}",
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
    """A transport over HTTP. It learns the options that the endpoint refuses, and leaves them out from then on."""

    def __init__(self, where: Endpoint) -> None:
        self._where = where
        self._who = f"the endpoint, through the proxy {where.proxy}," if where.proxy else "the endpoint"
        self._dialect = Dialect()
        self._scrub = _scrubber(where)

    def complete(self, request: Request, seconds: float) -> ModelReply | Failure:
        began = time.monotonic()
        deadline = began + seconds
        retries = 0
        call = CallState()
        tokens = [0, 0]  # of all attempts
        while True:
            answer = self._once(lambda client: self._attempt(request, call, deadline, client), deadline)
            spent = time.monotonic() - began
            tokens = [tokens[0] + answer.prompt_tokens, tokens[1] + answer.completion_tokens]
            if isinstance(answer, ModelReply):
                return replace(answer, prompt_tokens=tokens[0], completion_tokens=tokens[1], seconds=spent)
            if answer.learned:
                continue
            wait = answer.wait if answer.wait is not None else min(BACKOFF * 2**retries, LONGEST_PAUSE)
            hopeless = answer.final or not answer.again or (retries >= RETRIES and not answer.busy)
            if hopeless or time.monotonic() + wait >= deadline:
                failure = self._failure(answer, request, began, deadline)
                return replace(failure, prompt_tokens=tokens[0], completion_tokens=tokens[1])
            if answer.busy and retries == 0:
                _LOGGER.info("%s; it is asked again for up to %.0f s", self._scrub(answer.message), seconds - spent)
            waiting.pause(wait)
            retries += 1

    def _failure(self, answer: NoAnswer, request: Request, began: float, deadline: float) -> Failure:
        message, final = answer.message, answer.final
        if answer.misplaced and self._is_at_v1(request, deadline):
            message, final = f"{message}; OPENAI_BASE_URL seems to lack /v1, where an endpoint answers", True
        outcome = Outcome(answer.kind, "author", self._scrub(message))
        return Failure(outcome, final, seconds=time.monotonic() - began)

    def _is_at_v1(self, request: Request, deadline: float) -> bool:
        """Whether an endpoint, not a web page, answers at `/v1` of an address without a version."""
        where = self._where.base_url or _OPENAI
        if _VERSION.search(urlsplit(where).path):
            return False
        there = replace(self._where, base_url=f"{where.rstrip('/')}/v1")
        until = min(deadline, time.monotonic() + LONGEST_PAUSE)
        asked = replace(request, messages=())
        answer = self._once(lambda client: Http(there)._attempt(asked, CallState(), until, client), until)
        return isinstance(answer, ModelReply) or (
            answer.kind is not Kind.TIMEOUT and not (answer.again or answer.misplaced)
        )

    def _once(self, attempt: Callable[[_Client], ModelReply | NoAnswer], deadline: float) -> ModelReply | NoAnswer:
        """One attempt in a thread of its own; the thread is abandoned at the deadline or at a stop request."""
        try:
            client = _Client(deadline)
        except Exception as error:  # the environment was valid when the job began
            message = shown(f"{type(error).__name__}: {error}", self._scrub)
            return NoAnswer(Kind.LOST, f"the client can no longer be made: {message}", final=True)

        def made() -> ModelReply | NoAnswer:
            try:
                return attempt(client)
            except Exception as error:  # libraries may raise anything on such bytes
                message = shown(f"{type(error).__name__}: {error}", self._scrub)
                return NoAnswer(Kind.LOST, f"the endpoint's answer cannot be read: {message}", again=True)

        try:
            return waiting.within(max(0.0, deadline - time.monotonic()) + 0.2, made)
        except TimeoutError:
            return NoAnswer(Kind.TIMEOUT, f"no answer of {self._who} before the deadline")
        finally:
            with contextlib.suppress(Exception):  # the thread's next read fails
                client.close()

    def _attempt(self, request: Request, call: CallState, deadline: float, client: _Client) -> ModelReply | NoAnswer:
        left = deadline - time.monotonic()
        if left <= 0:
            return NoAnswer(Kind.TIMEOUT, f"no answer of {self._who} before the deadline")
        options = self._dialect.options(request, call)
        caller = _caller(self._where, client)
        try:
            with caller.chat.completions.with_streaming_response.create(
                model=request.model,
                messages=self._dialect.messages(request),  # type: ignore[arg-type]
                timeout=left,
                **options,
            ) as response:
                answer = completion.read(response.read(), response.headers.get("content-type", ""), self._scrub)
        except _Unreadable as error:
            return error.fault
        except openai.APIStatusError as error:
            rejection = refusal.read(error.response.content, self._scrub)
            fault = self._refused(error.status_code, rejection, request, options, call)
            return replace(fault, wait=_retry_after(error.response.headers))
        except openai.APITimeoutError:
            return NoAnswer(Kind.TIMEOUT, f"no answer of {self._who} before the deadline")
        except openai.OpenAIError as error:
            if isinstance(error.__cause__, _Unreadable):
                return error.__cause__.fault
            message = shown(str(error.__cause__ or error), self._scrub)
            return NoAnswer(Kind.LOST, f"{self._who} cannot be reached: {message}", again=True)
        if isinstance(answer, NoAnswer) and answer.rejection is not None:
            fault = self._refused(answer.rejection.status or 200, answer.rejection, request, options, call)
            return answer if answer.rejection.status is None and not (fault.learned or fault.final) else fault
        return answer

    def _refused(
        self, status: int, rejection: Rejection, request: Request, options: dict[str, Any], call: CallState
    ) -> NoAnswer:
        message = f"{self._who} answers {status}: {shown(rejection.words)}"
        if status == 402 or "insufficient_quota" in rejection.codes:
            return NoAnswer(
                Kind.LOST, f"the endpoint says that the quota is spent: {shown(rejection.words)}", final=True
            )
        if status in _FINAL:
            return NoAnswer(Kind.LOST, message, final=True, misplaced=status == 404)
        again = status in _PASSING or status >= 500
        may_teach = (
            rejection.of_what_is_sent if status in (500, 501) else not again and (status >= 400 or status == 200)
        )
        if may_teach and self._dialect.learn(rejection, request, options, call):
            return NoAnswer(Kind.LOST, message, learned=True)
        return NoAnswer(Kind.LOST, message, again=again, busy=status in _BUSY, misplaced=status == 405)


class _Unreadable(Exception):
    """A body that could not be read to its end."""

    def __init__(self, fault: NoAnswer) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _Client(openai.DefaultHttpxClient):
    """Returns responses with their whole body, for every status, within limits of bytes and time."""

    def __init__(self, deadline: float) -> None:
        super().__init__(follow_redirects=False)  # httpx would read a redirection's body without a limit
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
            message = f"the endpoint sent a body in {coding[:40]!r}, though asked for none"
            raise _Unreadable(NoAnswer(Kind.REFUSED, message, again=True))
        body = bytearray()
        for chunk in response.iter_raw():
            body += chunk
            if len(body) > MAX_BODY:
                what = "answer" if response.status_code < 400 else f"answer {response.status_code}"
                raise _Unreadable(NoAnswer(Kind.REFUSED, f"the {what} is longer than {MAX_BODY >> 20} MiB"))
            if time.monotonic() > self._deadline:
                raise _Unreadable(NoAnswer(Kind.TIMEOUT, "the answer was not whole before the deadline"))
        return bytes(body)


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """The seconds in a `retry-after` header, which holds seconds or a date; None without one."""
    value = headers.get("retry-after", "")
    with contextlib.suppress(ValueError):
        return max(0.0, float(value))
    with contextlib.suppress(ValueError, TypeError, IndexError, OverflowError):
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    return None
