"""Requests to any OpenAI-compatible endpoint through the `openai` client.

The client bounds each read, not the call, returns error bodies and web pages as answers, and lets JSON errors
through. So the body is read here, up to a number of bytes, under one deadline on the wall clock for the call with
all its retries, and held against what a chat completion must have.
"""

from __future__ import annotations

import json
import queue
import re
import threading
import time
from dataclasses import dataclass
from typing import Any

import openai

from tensorop.author.llm.messages import Failure, Reply, Request
from tensorop.errors import UsageError
from tensorop.model.trial import Kind, Outcome
from tensorop.settings import Settings

RETRIES = 2
BACKOFF = 0.5  # seconds, doubled at each retry
LONGEST_WAIT = 30.0  # a longer Retry-After is no wait but a refusal
MAX_BYTES = 4 << 20


@dataclass(frozen=True)
class Endpoint:
    """Where the model is. base_url None: the client's own default."""

    model: str
    api_key: str
    base_url: str | None = None


def endpoint(settings: Settings) -> Endpoint:
    """The endpoint the environment names; raises UsageError where it does not name one or must not be used."""
    if settings.offline:
        raise UsageError("the llm author needs a network, and --offline forbids it", hint="use --author offline")
    if not settings.llm_model:
        raise UsageError("no model is named for the llm author", hint="set TENSOROP_LLM_MODEL, or use --author offline")
    if not settings.llm_api_key and not settings.llm_base_url:
        raise UsageError(
            "the llm author has no endpoint", hint="set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own"
        )
    # a local server wants no key, the client wants one
    return Endpoint(settings.llm_model, settings.llm_api_key or "none", settings.llm_base_url)


class Http:
    """A transport over HTTP. Learns what the endpoint does not support and leaves it out from then on."""

    def __init__(self, where: Endpoint) -> None:
        self._where = where
        self._client = openai.OpenAI(api_key=where.api_key, base_url=where.base_url, max_retries=0)
        self._unsupported: set[str] = set()

    def complete(self, request: Request, seconds: float) -> Reply | Failure:
        began = time.monotonic()
        deadline = began + seconds
        retries = 0
        while True:
            answer = self._once(request, deadline)
            spent = time.monotonic() - began
            if isinstance(answer, Reply):
                text = _without(answer.text, self._where.api_key)
                return Reply(text, answer.model, answer.prompt_tokens, answer.completion_tokens, spent)
            if answer.learned:
                continue
            wait = answer.wait if answer.wait is not None else BACKOFF * 2**retries
            hopeless = answer.final or not answer.again or retries == RETRIES or wait > LONGEST_WAIT
            if hopeless or time.monotonic() + wait >= deadline:
                said = _without(answer.message, self._where.api_key)
                return Failure(Outcome(answer.kind, "author", said), answer.final, spent)
            time.sleep(wait)
            retries += 1

    def _once(self, request: Request, deadline: float) -> Reply | _Fault:
        """One attempt in a thread of its own, which is left behind when the deadline comes first."""
        answers: queue.Queue[Reply | _Fault | BaseException] = queue.Queue()

        def attempt() -> None:
            try:
                answers.put(self._attempt(request, deadline))
            except BaseException as error:  # raised again where it can be seen
                answers.put(error)

        threading.Thread(target=attempt, daemon=True).start()
        try:
            answer = answers.get(timeout=max(0.0, deadline - time.monotonic()) + 0.2)
        except queue.Empty:
            return _Fault(Kind.TIMEOUT, "no answer before the deadline")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def _attempt(self, request: Request, deadline: float) -> Reply | _Fault:
        left = deadline - time.monotonic()
        if left <= 0:
            return _Fault(Kind.TIMEOUT, "no answer before the deadline")
        options = self._options(request)
        try:
            with self._client.chat.completions.with_streaming_response.create(
                model=request.model,
                messages=[{"role": m.role, "content": m.text} for m in request.messages],  # type: ignore[misc]
                timeout=left,
                **options,
            ) as response:
                body = b""
                for chunk in response.iter_bytes():
                    body += chunk
                    if len(body) > MAX_BYTES:
                        return _Fault(Kind.REFUSED, f"the answer is longer than {MAX_BYTES >> 20} MiB")
                    if time.monotonic() > deadline:
                        return _Fault(Kind.TIMEOUT, "the answer was not whole before the deadline")
                kind = response.headers.get("content-type", "")
        except openai.APIStatusError as error:
            return self._refused(error, options)
        except openai.APITimeoutError:
            return _Fault(Kind.TIMEOUT, "no answer before the deadline")
        except openai.OpenAIError as error:
            return _Fault(Kind.LOST, f"the endpoint cannot be reached: {_cause(error)}", again=True)
        return read_body(body, kind)

    def _options(self, request: Request) -> dict[str, Any]:
        options: dict[str, Any] = {
            "temperature": request.temperature,
            "seed": request.seed,
            "max_tokens": request.max_tokens,
        }
        if "max_tokens" in self._unsupported and "max_completion_tokens" not in self._unsupported:
            options["max_completion_tokens"] = request.max_tokens
        return {name: value for name, value in options.items() if name not in self._unsupported}

    def _refused(self, error: openai.APIStatusError, options: dict[str, Any]) -> _Fault:
        status, said = error.status_code, _said(error)
        if error.code == "insufficient_quota":
            return _Fault(Kind.LOST, f"the endpoint says that the quota is spent: {said}", final=True)
        if status in (401, 403, 404):
            return _Fault(Kind.LOST, f"the endpoint answers {status}: {said}", final=True)
        if status == 400:
            for name in options:
                if error.param == name or re.search(rf"\b{name}\b", said):
                    self._unsupported.add(name)
                    return _Fault(Kind.LOST, said, learned=True)
            return _Fault(Kind.LOST, f"the endpoint answers 400: {said}")
        again = status in (408, 409, 429) or status >= 500
        return _Fault(Kind.LOST, f"the endpoint answers {status}: {said}", again=again, wait=_retry_after(error))


@dataclass(frozen=True)
class _Fault:
    """One attempt that gave no answer. again: worth another; learned: ask again at once, without an option."""

    kind: Kind
    message: str
    again: bool = False
    final: bool = False
    learned: bool = False
    wait: float | None = None


def read_body(body: bytes, content_type: str) -> Reply | _Fault:
    """The answer in a chat completion's body, or why there is none."""
    try:
        data = json.loads(body)
    except ValueError:
        what = "a web page" if "html" in content_type else "text that is not JSON"
        return _Fault(Kind.REFUSED, f"the endpoint sent {what}: {body[:80]!r}", again=True)
    if not isinstance(data, dict):
        return _Fault(Kind.REFUSED, f"the endpoint sent a {type(data).__name__} instead of a completion", again=True)
    choices = data.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        said = data.get("error", "no choices")
        return _Fault(Kind.REFUSED, f"the endpoint sent no completion: {str(said)[:300]}", again=True)
    finish = choices[0].get("finish_reason")
    message = choices[0].get("message")
    text = message.get("content") if isinstance(message, dict) else None
    if finish == "length":
        return _Fault(Kind.REFUSED, "the answer was cut at the limit of tokens")
    if finish is None:
        return _Fault(Kind.REFUSED, "the answer was cut: it has no finish_reason", again=True)
    if not isinstance(text, str) or not text.strip():
        return _Fault(Kind.REFUSED, f"the answer has no text (finish_reason '{finish}')")
    usage = data.get("usage") if isinstance(data.get("usage"), dict) else {}
    return Reply(text, str(data.get("model") or ""), _count(usage, "prompt_tokens"), _count(usage, "completion_tokens"))


def _count(usage: Any, name: str) -> int:
    value = usage.get(name)
    return value if isinstance(value, int) and value >= 0 else 0


def _said(error: openai.APIStatusError) -> str:
    body = error.body
    said = body.get("message") if isinstance(body, dict) else None
    return str(said or error.message)[:300]


def _cause(error: BaseException) -> str:
    return str(error.__cause__ or error)[:300]


def _retry_after(error: openai.APIStatusError) -> float | None:
    try:
        return max(0.0, float(error.response.headers.get("retry-after", "")))
    except ValueError:
        return None


def _without(text: str, secret: str) -> str:
    return text.replace(secret, "[key]") if len(secret) > 6 else text
