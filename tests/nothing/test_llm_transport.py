"""The transport against a real HTTP server that behaves as endpoints do on bad days."""

import dataclasses
import importlib.util
import json
import re
import socket
import threading
import time
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from tensorop.author.llm.messages import Failure, Message, ModelReply, Request
from tensorop.author.llm.transcript import AuthorLimits, LimitedTransport, RecordedTransport
from tensorop.author.llm.transport import Endpoint, Http, endpoint
from tensorop.errors import JobError, UsageError
from tensorop.model.trial import Kind
from tensorop.process import children
from tensorop.settings import Settings, read

KEY = "sk-secret-0123456789"
REQUEST = Request("tiny", (Message("system", "be brief"), Message("user", "write")), seed=4)


@pytest.fixture(scope="module")
def module_server():
    with HTTPServer(threaded=True) as server:  # one thread would queue retries behind a sleeping handler
        yield server


@pytest.fixture
def server(module_server, monkeypatch):
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "SSL_CERT_FILE", "OPENAI_CUSTOM_HEADERS"):
        monkeypatch.delenv(name, raising=False)
    module_server.clear()
    return module_server


def completion(text, finish="stop", **more):
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
    return {"id": "x", "object": "chat.completion", "created": 1, "model": "tiny-1", "choices": [choice],
            "usage": usage, **more}  # fmt: skip


def answers(server, *responses):
    """Serves the responses in turn, the last one for ever; returns the requests as they come."""
    seen = []

    def handler(request):
        seen.append(json.loads(request.data))
        response = responses[min(len(seen), len(responses)) - 1]
        if callable(response) and not isinstance(response, Response):
            response = response(request)
        return (
            response
            if isinstance(response, Response)
            else Response(json.dumps(response), 200, None, "application/json")
        )

    server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(handler)
    return seen


def error(status, message="no", headers=None, **more):
    return Response(json.dumps({"error": {"message": message, **more}}), status, headers, "application/json")


def http(server):
    return Http(Endpoint("tiny", KEY, server.url_for("/v1")))


def test_a_plain_answer(server):
    seen = answers(server, completion("hello"))
    answer = http(server).complete(REQUEST, 10)
    assert isinstance(answer, ModelReply)
    assert (answer.text, answer.model, answer.prompt_tokens, answer.completion_tokens) == ("hello", "tiny-1", 7, 5)
    assert seen == [{
        "model": "tiny", "temperature": 0.7, "seed": 4, "max_tokens": 8192,
        "messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "write"}],
    }]  # fmt: skip


@pytest.mark.parametrize(
    ("bad", "kind", "complaint"),
    [
        (error(500, "oops"), Kind.LOST, "answers 500: oops"),
        (error(502), Kind.LOST, "answers 502"),
        (error(429, "slow down", {"retry-after": "0"}), Kind.LOST, "answers 429: slow down"),
        (Response('{"id": "x", "choi', 200, None, "application/json"), Kind.REFUSED, "not JSON"),
        (Response("", 200, None, "application/json"), Kind.REFUSED, "not JSON"),
        (Response("<html>login</html>", 200, None, "text/html"), Kind.REFUSED, "a web page"),
        ({"error": {"message": "overloaded"}}, Kind.REFUSED, "no completion: .*overloaded"),
        ({"id": "x"}, Kind.REFUSED, "no completion: no choices"),
        ([1], Kind.REFUSED, "a list instead of a completion"),
        (completion("cut", finish=None), Kind.REFUSED, "no finish_reason"),
    ],
)
def test_a_passing_fault_is_tried_again(server, monkeypatch, bad, kind, complaint):
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)
    seen = answers(server, bad, bad, completion("at last"))
    assert http(server).complete(REQUEST, 10).text == "at last"
    assert len(seen) == 3
    server.clear()
    seen = answers(server, bad)
    answer = http(server).complete(REQUEST, 10)
    assert isinstance(answer, Failure)
    assert answer.outcome.kind is kind
    assert answer.outcome.where == "author"
    assert re.search(complaint, answer.outcome.message)
    assert not answer.final
    assert len(seen) == 3


@pytest.mark.parametrize(
    ("bad", "complaint", "final"),
    [
        (error(401, f"Incorect key {KEY}"), r"answers 401: Incorect key \[key\]", True),
        (error(404, "no such model"), "answers 404: no such model", True),
        (error(429, "pay", code="insufficient_quota"), "quota is spent: pay", True),
        (error(400, "context too long"), "answers 400: context too long", False),
        (error(429, "tomorrow", {"retry-after": "300"}), "answers 429: tomorrow", False),
        (completion(None), "no text", False),
        (completion("  "), "no text", False),
        (completion("half", finish="length"), "cut at the limit of tokens", False),
        (completion("x" * (9 << 20)), "longer than 8 MiB", False),
    ],
)
def test_a_lasting_fault_is_asked_once(server, bad, complaint, final):
    seen = answers(server, bad)
    answer = http(server).complete(REQUEST, 10)
    assert isinstance(answer, Failure)
    assert re.search(complaint, answer.outcome.message), answer.outcome.message
    assert answer.final is final
    assert len(seen) == 1


def test_options_an_endpoint_does_not_know_are_learned(server):
    def picky(request):
        data = json.loads(request.data)
        for name in ("temperature", "seed"):
            if name in data:
                return error(400, f"Unsupported value: '{name}' is not there", param=name)
        if "max_tokens" in data:
            return error(400, "use 'max_completion_tokens' instead of max_tokens")
        return completion("fine")

    seen = answers(server, picky)
    transport = http(server)
    assert transport.complete(REQUEST, 10).text == "fine"
    assert len(seen) == 4
    assert transport.complete(REQUEST, 10).text == "fine"
    assert len(seen) == 5
    assert seen[-1].keys() == {"model", "messages", "max_completion_tokens"}


PYDANTIC = {"loc": ["body", "seed"], "type": "extra_forbidden", "msg": "Extra inputs are not permitted", "input": 4}
ECHO = {"loc": ["body", "user"], "type": "missing", "msg": "Field required", "input": {"temperature": 0.7, "seed": 4}}


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "Unsupported value", "type": "invalid_request_error", "param": "seed", "code": None}},
        {"detail": [PYDANTIC]},
        {"detail": [{**PYDANTIC, "loc": ["body", "function-wrap[log]()", 0, "seed"]}]},
        {"message": {"detail": [PYDANTIC]}},
        {"object": "error", "message": "1 validation error: extra fields not permitted", "loc": ["body", "seed"]},
        {"object": "error", "message": str([{**PYDANTIC, "loc": ("body", "seed")}]), "param": None, "code": 400},
        {"error": "Unrecognized request argument supplied: seed"},
        {"error": {"message": "Provider returned error", "metadata": {"raw": json.dumps({"detail": [PYDANTIC]})}}},
        [{"error": {"code": 400, "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'}}],
        {
            "type": "error",
            "error": {"type": "invalid_request_error", "message": "seed: Extra inputs are not permitted"},
        },
        {"errors": {"seed": ["Unknown field."]}},
        "Unrecognized request argument supplied: seed",
        "unsupported parameter(s): `seed`",
        "unknown field `seed`, expected one of `model`, `messages`, `temperature`, `max_tokens` at line 1 column 50",
        "Supported parameters for this model are temperature, max_tokens. Unsupported: seed",
        "Additional properties are not allowed ('seed' was unexpected)",
    ],
)
def test_the_option_that_is_refused_is_left_out(server, said):
    """In any of the usual shapes, and no other option with it."""

    def picky(request):
        if "seed" not in json.loads(request.data):
            return completion("fine")
        return Response(said if isinstance(said, str) else json.dumps(said), 422)

    seen = answers(server, picky)
    transport = http(server)
    assert transport.complete(REQUEST, 10).text == "fine"
    assert transport.complete(REQUEST, 10).text == "fine"
    assert [set(data) - {"model", "messages"} for data in seen] == [
        {"temperature", "seed", "max_tokens"}, {"temperature", "max_tokens"}, {"temperature", "max_tokens"},
    ]  # fmt: skip


@pytest.mark.parametrize(
    "said",
    [
        {"error": {"message": "Unsupported parameter: top_p", "param": "top_p"}},
        {"detail": [ECHO]},
        {"message": str([ECHO])},
        "Unknown parameter: 'max_completion_tokens'",
        "unknown field `user`, expected one of `model`, `temperature`, `seed`",
        'no route for b\'{"model": "m", "messages": [], "temperature": 0.7, "seed": 4, "max_tokens": 8192}\'',
        "<html>no</html>",
        "",
    ],
)
def test_an_option_that_was_not_sent_is_not_learned(server, said):
    seen = answers(server, Response(said if isinstance(said, str) else json.dumps(said), 422))
    answer = http(server).complete(REQUEST, 10)
    assert isinstance(answer, Failure)
    assert "answers 422: " in answer.outcome.message
    assert len(seen) == 1


@pytest.mark.parametrize(
    "said",
    ["max_tokens and max_completion_tokens, seed, temperature: no", "at most {} tokens, max_tokens is too large"],
)
def test_an_endpoint_that_refuses_everything_is_asked_a_few_times(server, said):
    def never(request):
        data = json.loads(request.data)
        tokens = data.get("max_tokens", data.get("max_completion_tokens", 0))
        return error(400, said.format(tokens - 1))

    seen = answers(server, never)
    assert isinstance(http(server).complete(REQUEST, 10), Failure)
    assert 2 < len(seen) < 8
    assert seen[-1].keys() == {"model", "messages"} or "at most" in said


@pytest.mark.parametrize(
    ("said", "tokens"),
    [
        ("max_tokens is too large: 8192. This model supports at most 4096 completion tokens.", 4096),
        ("`max_tokens` must be less than or equal to `4,096`", 4096),
        ("Invalid max_tokens value, the valid range of max_tokens is [1, 4096]", 4096),
        ("max_tokens: 8192 > 4096, which is the maximum allowed number of output tokens for m-20240307", 4096),
        ("it has a maxOutputTokens value of 8192 but the range is from 1 (inclusive) to 4097 (exclusive)", 4096),
        ("<400> InvalidParameter: Range of max_tokens should be [1, 2000]", 2000),
        ("This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (808 in the messages, "
         "8192 in the completion). Please reduce the length of the messages or completion.", 7384),
        ("'max_tokens' or 'max_completion_tokens' is too large: 8192. This model's maximum context length is 4096 "
         "tokens and your request has 808 input tokens (8192 > 4096 - 808).", 3288),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 808 `inputs` tokens and 8192 `max_new_tokens`",
         3288),
        ("Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of "
         "9000 tokens: 808 tokens from the input messages and 8192 tokens for the completion.", 3288),
    ],
)  # fmt: skip
def test_a_number_of_tokens_is_learned(server, said, tokens):
    def small(request):
        return completion("fine") if json.loads(request.data)["max_tokens"] <= tokens else error(400, said)

    seen = answers(server, small)
    assert http(server).complete(REQUEST, 10).text == "fine"
    assert [data["max_tokens"] for data in seen] == [8192, tokens]


def test_a_limit_without_a_number_leaves_the_option_out(server):
    def small(request):
        return (
            error(422, "max_tokens is out of range") if "max_tokens" in json.loads(request.data) else completion("fine")
        )

    seen = answers(server, small)
    assert http(server).complete(REQUEST, 10).text == "fine"
    assert len(seen) == 2


def test_a_hang_ends_at_the_deadline(server):
    seen = answers(server, lambda request: (time.sleep(3), completion("late"))[1])
    answer = http(server).complete(REQUEST, 0.4)
    assert isinstance(answer, Failure)
    assert answer.outcome.kind is Kind.TIMEOUT
    assert answer.seconds < 2.5
    assert len(seen) == 1


@pytest.mark.parametrize("response", ["hangs", "retries"])
def test_the_users_wish_for_an_end_ends_the_wait(server, response):
    asked, may_end = threading.Event(), threading.Event()

    def hangs(request):
        asked.set()
        may_end.wait(60)
        return completion("late")

    def refuses(request):
        asked.set()
        return error(429, headers={"Retry-After": "10"})

    answers(server, hangs if response == "hangs" else refuses)
    threading.Thread(target=lambda: (asked.wait(), children.end()), daemon=True).start()
    try:
        with pytest.raises(children.Cancelled):
            http(server).complete(REQUEST, 600.0)
    finally:
        children.allow()
        may_end.set()


def test_a_drip_ends_at_the_deadline(server):
    """Each read is well within any time limit a client sets for a read."""

    def drip(request):
        def bytes_():
            for _ in range(100):
                time.sleep(0.05)
                yield b" "

        return Response(bytes_(), 200, None, "application/json", direct_passthrough=True)

    answers(server, drip)
    answer = http(server).complete(REQUEST, 0.5)
    assert isinstance(answer, Failure)
    assert answer.outcome.kind is Kind.TIMEOUT
    assert answer.seconds < 3


def test_nobody_listens(monkeypatch):
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: refused
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
        answer = Http(Endpoint("tiny", KEY, url)).complete(REQUEST, 5)
    assert isinstance(answer, Failure)
    assert "cannot be reached" in answer.outcome.message


def test_a_run_has_limits(server):
    answers(server, completion("hello"))
    for limits, calls in ((AuthorLimits(calls=2), 2), (AuthorLimits(tokens=20), 2), (AuthorLimits(seconds=1e-9), 1)):
        transport = LimitedTransport(http(server), limits)
        for _ in range(calls):
            transport.complete(REQUEST, 10)
        answer = transport.complete(REQUEST, 10)
        assert isinstance(answer, Failure)
        assert answer.final
        assert "limit of" in answer.outcome.message


def test_calls_are_written_down_and_answered_from_there(server, tmp_path):
    seen = answers(server, completion("one"), error(400), completion(f"two, and the key is {KEY}"))
    first = RecordedTransport(tmp_path, http(server))
    said = [first.complete(REQUEST, 10) for _ in range(3)]
    again = RecordedTransport(tmp_path, http(server))
    assert [again.complete(REQUEST, 10) for _ in range(2)] == [said[0], said[2]]
    assert len(seen) == 3
    replay = RecordedTransport(tmp_path, None)
    assert replay.complete(REQUEST, 10) == said[0]
    assert replay.complete(REQUEST, 10) == said[2]
    with pytest.raises(JobError, match="no recorded answer number 3 to the first question with seed 4 to model"):
        replay.complete(REQUEST, 10)
    with pytest.raises(JobError, match="no recorded answer number 1"):
        replay.complete(Request("tiny", ()), 10)
    files = sorted(tmp_path.iterdir())
    assert [f.name for f in files] == ["001.json", "002.json", "003.json"]
    assert not any(KEY in file.read_text() for file in files)


def test_a_reply_is_found_whatever_the_prompt_says_now(tmp_path):
    """Also in a recording of an earlier version, whose files have the digest of the whole request in their names."""
    asked = {"model": "tiny", "messages": [{"role": "user", "text": "words of then"}], "temperature": 0.7, "seed": 4}
    record = {"schema": 1, "digest": "5f0c", "request": {**asked, "max_tokens": 8192}, "failure": None}
    (tmp_path / "001-5f0c.json").write_text(json.dumps({**record, "reply": {"text": "of then"}}))
    now = Request("tiny", (Message("user", "words of now"),), seed=4)
    assert RecordedTransport(tmp_path, None).complete(now, 10).text == "of then"
    for other in (
        dataclasses.replace(now, seed=5),
        dataclasses.replace(now, trials=40),
        dataclasses.replace(now, model="other"),
        dataclasses.replace(now, messages=(*now.messages, Message("assistant", "no"), Message("user", "repair it"))),
    ):
        with pytest.raises(JobError, match=r"no recorded answer number 1 to .* after (0|40) trials"):
            RecordedTransport(tmp_path, None).complete(other, 10)


def test_a_broken_recording_is_named(tmp_path):
    (tmp_path / "001-abc.json").write_text('{"schema": 9}')
    with pytest.raises(JobError, match=r"001-abc\.json is not a valid recorded call: schema 9"):
        RecordedTransport(tmp_path, None)


def test_a_recording_that_cannot_be_written_is_said(server, tmp_path):
    answers(server, completion("one"))
    (tmp_path / "file").write_text("")
    with pytest.raises(JobError, match="cannot be written: Not a directory"):
        RecordedTransport(tmp_path / "file" / "llm", http(server)).complete(REQUEST, 10)


def message(**fields):
    choice = {"index": 0, "message": {"role": "assistant", **fields}, "finish_reason": fields.pop("finish", "stop")}
    return {"choices": [choice]}


def part(text, kind="text"):
    return {"type": kind, "text": text}


def streamed(*chunks, end="data: [DONE]\n\n", between="\n\n", kind="text/event-stream"):
    events = "".join(f"data: {json.dumps(chunk)}{between}" for chunk in chunks)
    return Response(f": ping\n\n{events}{end}", 200, None, kind)


def chunk(finish=None, **delta):
    return {"model": "tiny-1", "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


USAGE = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}


@pytest.mark.parametrize(
    "shape",
    [
        message(content=[part("hel"), {"type": "thinking", "thinking": [part("x")]}, part("lo", "output_text")]),
        message(content=None, reasoning_content="hello"),
        message(content="", reasoning="hello"),
        message(content="hello", reasoning_content="long thoughts"),
        message(content="hello", tool_calls=[{"id": "1"}]),
        {"choices": [{"index": 0, "text": "hello", "finish_reason": "stop"}]},
        streamed(chunk(content="hel"), chunk(content="lo"), chunk("stop"), USAGE),
        streamed(chunk(content="hel"), chunk("stop", content="lo"), kind="application/json"),
        streamed(chunk(content="hel"), chunk(content="lo")),
        streamed(chunk(content="hel"), chunk("stop", content="lo"), end="", between="\n"),
        streamed(chunk(reasoning_content="hel"), chunk("stop", reasoning_content="lo")),
        streamed(chunk(content=[part("hel")]), chunk("stop", content=[part("lo")]), between="\r\n\r\n"),
    ],
)
def test_answers_come_in_several_shapes(server, shape):
    seen = answers(server, shape)
    assert http(server).complete(REQUEST, 10).text == "hello"
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("shape", "said", "asked"),
    [
        (message(content=None, refusal="I must not"), "the answer is a refusal: I must not", 1),
        (message(content=[{"type": "refusal", "refusal": "I must not"}]), "the answer is a refusal: I must not", 1),
        (message(content=None, tool_calls=[{"id": "1"}]), "the answer calls a tool and has no text", 1),
        (completion("half", finish="content_filter"), "filter stopped the answer", 1),
        (completion("half", finish="SAFETY"), "filter stopped the answer", 1),
        (completion("half", finish="max_tokens"), "cut at the limit of tokens", 1),
        (completion("half", finish="error"), "ended in an error", 3),
        ({"choices": []}, "no completion: no choices", 3),
        ({"choices": None, "error": {"message": "broken", "code": 500}}, "answers 500: broken", 3),
        ({"error": {"message": "no such user", "code": 401}}, "answers 401: no such user", 1),
        ({"error": {"message": "pay", "code": "insufficient_quota"}}, "quota is spent: pay", 1),
        (streamed(chunk(content="hel"), end=""), "cut: it has no finish_reason", 3),
        (streamed(chunk(content="hel"), {"error": {"message": "out of memory"}}), "no completion: out of memory", 3),
        (streamed(chunk(content="hel"), end="data: {\n\n"), "text that is not JSON", 3),
        (streamed(), "no choices", 3),
        (Response("<html><head><title>502 Bad</title><style>p{}</style></head><h1>502 Bad</h1>try &amp; see",
                  502, None, "text/html"), "answers 502: 502 Bad try & see$", 3),
        (Response("<!DOCTYPE html><script>x()</script><p>log in", 200, None, "text/html"), "a web page: log in", 3),
        (Response("model\x1b[31m\nnot here\u202e", 404), r"answers 404: model\\x1b\[31m not here\\u202e$", 1),
        (Response("y" * 5000, 400), r"answers 400: y{300}\.\.\.$", 1),
        (Response("", 400), "answers 400: nothing", 1),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_said_in_its_words(server, monkeypatch, shape, said, asked):
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)
    seen = answers(server, shape)
    answer = http(server).complete(REQUEST, 10)
    assert isinstance(answer, Failure)
    assert re.search(said, answer.outcome.message), answer.outcome.message
    assert len(seen) == asked


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, {"error": {"message": "System role not supported"}}),
        (500, {"error": {"message": "Jinja Exception: Conversation roles must alternate user/assistant/user/..."}}),
        (400, {"error": {"message": "Unsupported value: does not support 'system'", "param": "messages[0].role"}}),
        (400, {"error": {"message": "Developer instruction is not enabled for models/tiny"}}),
        (422, {"detail": [{"loc": ["body", "messages", 0, "role"], "msg": "Input should be 'user' or 'assistant'"}]}),
        (400, 'messages: Unexpected role "system". The API accepts a top-level `system` parameter'),
    ],
)
def test_a_refused_system_role_moves_into_the_user_s_message(server, status, said):
    def picky(request):
        if json.loads(request.data)["messages"][0]["role"] == "system":
            return Response(said if isinstance(said, str) else json.dumps(said), status)
        return completion("fine")

    seen = answers(server, picky)
    transport = http(server)
    assert transport.complete(REQUEST, 10).text == "fine"
    assert transport.complete(REQUEST, 10).text == "fine"
    assert len(seen) == 3
    assert seen[-1]["messages"] == [{"role": "user", "content": "be brief\n\nwrite"}]
    assert seen[-1]["seed"] == 4


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "only streaming is supported"),
        (400, {"error": {"message": "stream must be true"}}),
        (422, {"detail": [{"loc": ["body", "stream"], "msg": "Input should be True"}]}),
        (400, {"error": {"message": "This model only support stream mode, please enable the stream parameter"}}),
        (400, {"error": {"message": "Requests with max_tokens > 4096 must have stream=true"}}),
        (500, {"error": "Non-streaming requests are not supported"}),
        (200, {"error": {"message": "stream=false is not supported"}}),
    ],
)
def test_an_endpoint_that_only_streams_is_asked_to(server, status, said):
    def streaming(request):
        data = json.loads(request.data)
        if "stream_options" in data:
            return error(400, "Unknown parameter: 'stream_options'", param="stream_options")
        if data.get("stream"):
            return streamed(chunk(content="fi"), chunk("stop", content="ne"), USAGE)
        return Response(said if isinstance(said, str) else json.dumps(said), status, None, "application/json")

    seen = answers(server, streaming)
    transport = http(server)
    answer = transport.complete(REQUEST, 10)
    assert (answer.text, answer.completion_tokens) == ("fine", 5)
    assert transport.complete(REQUEST, 10).text == "fine"
    assert len(seen) == 4
    assert seen[-1]["max_tokens"] == 8192


def test_an_endpoint_that_refuses_both_ways_is_asked_three_times(server):
    def never(request):
        return error(400, "only streaming is supported" if "stream" not in json.loads(request.data) else "no stream")

    seen = answers(server, never)
    assert isinstance(http(server).complete(REQUEST, 10), Failure)
    assert len(seen) == 3


@pytest.mark.parametrize("bad", [Response("404 page not found", 404), Response("<html>hello", 200, None, "text/html")])
def test_an_address_without_v1_is_said(server, monkeypatch, bad):
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)
    answers(server, error(400, "messages is empty"))
    server.expect_request("/chat/completions").respond_with_response(bad)
    answer = Http(Endpoint("tiny", KEY, server.url_for("/"))).complete(REQUEST, 10)
    assert answer.final
    assert "; OPENAI_BASE_URL seems to lack /v1, where an endpoint answers" in answer.outcome.message


def test_another_address_is_not_said_to_lack_v1(server):
    for path in ("/chat/completions", "/v1/chat/completions"):
        server.expect_request(path).respond_with_data("404 page not found", 404)
    for base in ("/", "/v1"):
        answer = Http(Endpoint("tiny", KEY, server.url_for(base))).complete(REQUEST, 10)
        assert "/v1" not in answer.outcome.message
        assert answer.final


def test_a_model_that_is_being_loaded_is_waited_for(server, monkeypatch, caplog):
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)
    caplog.set_level("INFO", "tensorop")
    loading = error(503, "Loading model")
    soon = error(503, "Loading model", {"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"})
    seen = answers(server, *[loading] * 5, soon, error(529, "Overloaded"), completion("at last"))
    assert http(server).complete(REQUEST, 20).text == "at last"
    assert len(seen) == 8
    assert [record.message for record in caplog.records if "asked again" in record.message] == [
        "the endpoint answers 503: Loading model; it is asked again for up to 20 s"
    ]
    server.clear()
    seen = answers(server, loading)
    answer = http(server).complete(REQUEST, 0.5)
    assert "answers 503: Loading model" in answer.outcome.message
    assert len(seen) > 3


@pytest.mark.parametrize("bad", [error(503, "Loading model", {"retry-after": "60"}), lambda _: time.sleep(3) or {}])
def test_ctrl_c_ends_the_wait(server, bad):
    answers(server, bad)
    wish = threading.Timer(0.3, children.end)
    wish.start()
    try:
        with pytest.raises(children.Cancelled):
            http(server).complete(REQUEST, 600)
    finally:
        wish.join()
        children.allow()


def settings(**more):
    given = {"offline": False, "llm_api_key": None, "llm_base_url": None, "llm_model": None, **more}
    return Settings(cache=Path("/nowhere"), plugins=(), **given)


def test_the_environment_names_the_endpoint():
    local = endpoint(settings(llm_model="m", llm_base_url="http://localhost:1/v1"))
    assert local == Endpoint("m", "none", "http://localhost:1/v1")
    assert endpoint(settings(llm_model="m", llm_api_key="k")) == Endpoint("m", "k", None)
    with pytest.raises(UsageError, match="needs a model"):
        endpoint(settings(llm_api_key="k"))
    with pytest.raises(UsageError, match="needs an endpoint"):
        endpoint(settings(llm_model="m"))
    with pytest.raises(UsageError, match="--offline forbids it"):
        endpoint(settings(llm_model="m", llm_api_key="k", offline=True))


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"llm_model": "m\n"}, "TENSOROP_LLM_MODEL is 'm.n'"),
        ({"llm_model": "m\udce9"}, "TENSOROP_LLM_MODEL is"),
        ({"llm_base_url": "localhost:8000/v1"}, "OPENAI_BASE_URL must be an address"),
        ({"llm_base_url": "http://h:99999/v1"}, "OPENAI_BASE_URL must be an address"),
        ({"llm_base_url": "http://me:hunter2@h:port/v1"}, "OPENAI_BASE_URL must be an address"),
        ({"llm_base_url": "http://[::1/v1"}, "OPENAI_BASE_URL must be an address"),
        ({"llm_base_url": "http://h/v1/chat/completions"}, "OPENAI_BASE_URL must not include /chat/completions"),
        ({"llm_base_url": "http://h/v1/models/"}, "OPENAI_BASE_URL must not include /models"),
        ({"llm_base_url": "http:///v1"}, "OPENAI_BASE_URL must be an address"),
        ({"llm_base_url": "http://:80/v1"}, "OPENAI_BASE_URL must be an address"),
        ({"llm_base_url": "http://\x7f/v1"}, "client for --author llm cannot be created.*OPENAI_BASE_URL"),
        ({"ALL_PROXY": "socks://me:hunter2@h:1"}, "ALL_PROXY names a proxy of the unsupported kind 'socks'"),
        ({"all_proxy": "socks4://h:1"}, "all_proxy names a proxy of the unsupported kind 'socks4'"),
        ({"HTTPS_PROXY": "ftp://h"}, "HTTPS_PROXY names a proxy of the unsupported kind 'ftp'"),
        ({"HTTP_PROXY": "http://me:hunter2@h:port"}, "HTTP_PROXY must be the address"),
        ({"HTTP_PROXY": "http://h:99999"}, "HTTP_PROXY must be the address"),
        ({"http_proxy": "http://"}, "http_proxy must be the address"),
        ({"http_proxy": "http://a b:1"}, "http_proxy must be the address"),
        ({"http_proxy": "://x"}, "http_proxy must be the address"),
        (
            {"HTTP_PROXY": "http://h:1", "NO_PROXY": "localhost 127.0.0.1"},
            "NO_PROXY: 'localhost 127.0.0.1' is not a host",
        ),
        ({"HTTP_PROXY": "http://h:1", "no_proxy": "a,http://[::1"}, "no_proxy: 'http://.::1' is not a host"),
        ({"SSL_CERT_FILE": "/nowhere/ca.pem"}, "SSL_CERT_FILE is /nowhere/ca.pem, which cannot be read: No such"),
        ({"SSL_CERT_FILE": "/"}, "SSL_CERT_FILE is /, which cannot be read: Is a directory"),
        ({"SSL_CERT_FILE": __file__}, "which holds no certificates that can be read"),
        ({"SSL_CERT_DIR": "/nowhere"}, "SSL_CERT_DIR is /nowhere, which is not a folder"),
        ({"SSL_CERT_DIR": "/dev", "llm_base_url": "https://h/v1"}, "has no certificate named by its hash"),
        ({"OPENAI_ORG_ID": "\u00e9"}, "OPENAI_ORG_ID is not a valid HTTP header value"),
        ({"OPENAI_PROJECT_ID": "p\n"}, "OPENAI_PROJECT_ID is not a valid HTTP header value"),
        (
            {"OPENAI_CUSTOM_HEADERS": "X-A: b\nX-Key hunter2"},
            "line 2 of OPENAI_CUSTOM_HEADERS is not a valid HTTP header",
        ),
        ({"OPENAI_CUSTOM_HEADERS": "X A: hunter2"}, "line 1 of OPENAI_CUSTOM_HEADERS is not a valid HTTP header"),
        ({"OPENAI_CUSTOM_HEADERS": "X-A: hunter2\u00e9"}, "line 1 of OPENAI_CUSTOM_HEADERS is not a valid HTTP header"),
        ({"OPENAI_CUSTOM_HEADERS": "accept-encoding: gzip"}, "sets accept-encoding, which tensorop sets itself"),
    ],
)
def test_what_configures_the_client_is_named_before_any_work(given, said):
    own = {name: value for name, value in given.items() if name.startswith("llm_")}
    client = {name: value for name, value in given.items() if name not in own}
    with pytest.raises(UsageError) as caught:
        endpoint(settings(**{"llm_model": "m", "llm_base_url": "http://localhost:1/v1", **own}, client=client))
    assert re.search(said, str(caught.value), re.DOTALL), str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert caught.value.hint


def test_a_socks_proxy_needs_its_package():
    if importlib.util.find_spec("socksio") is not None:
        pytest.skip("the package is here")
    with pytest.raises(UsageError, match=r"ALL_PROXY names a proxy of the kind 'socks5', which needs .* 'socksio'"):
        endpoint(settings(llm_model="m", llm_api_key="k", client={"ALL_PROXY": "socks5://h:1"}))


def test_the_environment_is_read_as_the_client_reads_it(monkeypatch):
    for name in (
        "HTTP_PROXY",
        "http_proxy",
        "ALL_PROXY",
        "all_proxy",
        "NO_PROXY",
        "no_proxy",
        "HTTPS_PROXY",
        "https_proxy",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTP_PROXY", "http://capitals:1")
    monkeypatch.setenv("http_proxy", "me:hunter2-hunter2@small:2")
    monkeypatch.setenv("HTTPS_PROXY", "http://other:1")
    monkeypatch.setenv("https_proxy", "")
    monkeypatch.setenv("NO_PROXY", "localhost, .example.com,::1")
    given = {"llm_model": "m", "client": read().client}
    found = endpoint(settings(**given, llm_base_url="http://host:1/v1"))
    assert found.proxy == "http://small:2 (http_proxy)"
    assert found.secrets == ("hunter2-hunter2",)
    for address in ("http://localhost:1", "http://a.example.com", "http://[::1]:8000", "https://host"):
        assert endpoint(settings(**given, llm_base_url=f"{address}/v1")).proxy is None, address


def test_a_proxy_is_named_where_the_endpoint_is_not_reached(monkeypatch):
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: refused
        where = f"127.0.0.1:{taken.getsockname()[1]}"
        for name in ("NO_PROXY", "no_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("http_proxy", f"http://me:hunter2-hunter2@{where}")
        found = endpoint(settings(llm_model="m", llm_base_url="http://host:1/v1", client=read().client))
        answer = Http(found).complete(REQUEST, 5)
    assert f"through the proxy http://{where} (http_proxy), cannot be reached" in answer.outcome.message
    assert "hunter2" not in answer.outcome.message


def test_a_certificate_that_goes_away_ends_the_calls(server, monkeypatch):
    answers(server, completion("fine"))
    transport = http(server)
    monkeypatch.setenv("SSL_CERT_FILE", "/nowhere/ca.pem")
    answer = transport.complete(REQUEST, 5)
    if isinstance(answer, ModelReply):
        pytest.skip("this client passes over a file that is not there")
    assert answer.final
    assert "the client can no longer be made: FileNotFoundError" in answer.outcome.message


def test_headers_of_the_environment_are_sent_and_their_secrets_kept(server, monkeypatch):
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: kernels\nX-Api-Key: hunter2-hunter2")
    server.expect_request("/v1/chat/completions").respond_with_handler(
        lambda request: error(401, f"{request.headers.get('X-Team')} {request.headers.get('X-Api-Key')}")
    )
    where = endpoint(settings(llm_model="m", llm_base_url=server.url_for("/v1"), client=read().client))
    message = Http(where).complete(REQUEST, 5).outcome.message
    if "None" in message:
        pytest.skip("this client has no headers of the environment")
    assert "answers 401: kernels [key]" in message
