"""Endpoints that trickle, flood, lie or listen: every call ends in time and in little memory, and keeps the key."""

from __future__ import annotations

import base64
import contextlib
import gzip
import json
import socket
import ssl
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tensorop.author.llm import reading, secret
from tensorop.author.llm import transport as transports
from tensorop.author.llm.messages import Failure, Message, ModelReply, Request
from tensorop.author.llm.transcript import AuthorLimits, LimitedTransport, RecordedTransport
from tensorop.author.llm.transport import Endpoint, Http, endpoint
from tensorop.errors import JobError, UsageError
from tensorop.model.trial import Kind
from tensorop.settings import Settings

KEY = "sk-proj/Q+7zz_0123456789=="
REQUEST = Request("tiny", (Message("user", "write"),))
Behaviour = Callable[[socket.socket, threading.Event], None]


@contextlib.contextmanager
def served(behaviour: Behaviour) -> Iterator[str]:
    """A server of plain sockets, for what no HTTP library would send; the address of an endpoint there."""
    listener = socket.create_server(("127.0.0.1", 0))
    over = threading.Event()

    def one(connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            data = b""
            while b"\r\n\r\n" not in data:
                data += connection.recv(65536)
            head, _, body = data.partition(b"\r\n\r\n")
            length = next(int(x.split(b":")[1]) for x in head.split(b"\r\n") if x.lower().startswith(b"content-length"))
            while len(body) < length:
                body += connection.recv(65536)
            behaviour(connection, over)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=one, args=(connection,), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    finally:
        over.set()
        listener.close()


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(transports, "BACKOFF", 0.01)


def ask(behaviour: Behaviour, seconds: float = 5.0) -> ModelReply | Failure:
    with served(behaviour) as url:
        return Http(Endpoint("tiny", KEY, url)).complete(REQUEST, seconds)


def head(status: str = "200 OK", *more: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", "Content-Type: application/json", *more, "", ""]).encode()


def whole(body: bytes, status: str = "200 OK", *more: str) -> Behaviour:
    return lambda c, _: c.sendall(head(status, f"Content-Length: {len(body)}", *more) + body)


def completion(text: object, **more: object) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], "model": "m", **more}).encode()


def endless(status: str, piece: bytes) -> Behaviour:
    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(head(status))
        while not over.is_set():
            connection.sendall(piece)

    return behave


def trickling(before: bytes, piece: bytes) -> Behaviour:
    def behave(connection: socket.socket, over: threading.Event) -> None:
        connection.sendall(before)
        while not over.wait(0.05):
            connection.sendall(piece)

    return behave


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    "behaviour",
    [
        trickling(head(), b" "),
        trickling(head("500 No"), b" "),
        trickling(head("429 No"), b" "),
        trickling(head("200 OK", "Transfer-Encoding: chunked"), b"1\r\n \r\n"),
        trickling(b"HTTP/1.1 200 OK\r\n", b"X-A: b\r\n"),
        trickling(b"H", b"T"),
        trickling(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        trickling(head("302 Found", "Location: /v1/chat/completions"), b" "),
        lambda c, over: over.wait(5),
    ],
    ids=["body", "error 500", "error 429", "chunks", "headers", "first line", "continue", "redirection", "nothing"],
)
def test_whatever_trickles_ends_at_the_deadline(behaviour: Behaviour) -> None:
    answer = ask(behaviour, 0.4)
    assert isinstance(answer, Failure)
    assert answer.outcome.kind in (Kind.TIMEOUT, Kind.LOST)
    assert answer.seconds < 3.0


@pytest.mark.parametrize("status", ["200 OK", "302 Found", "400 Bad Request", "401 No", "500 No", "503 No"])
def test_an_endless_body_takes_little_memory(status: str) -> None:
    tracemalloc.start()
    try:
        answer = ask(endless(status, b" " * (1 << 20)), 30)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert isinstance(answer, Failure)
    assert "longer than 8 MiB" in answer.outcome.message
    assert most < 100 << 20


BOMB = gzip.compress(b" " * (64 << 20))


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("behaviour", "kind", "says"),
    [
        (whole(b'{"choices": ' + b"[" * 200_000), Kind.REFUSED, "nested too deeply"),
        (whole(b"[" * 200_000 + b"]" * 200_000), Kind.REFUSED, "nested too deeply"),
        (whole(b'{"choices": ' + b"[" * 200_000, "500 No"), Kind.LOST, "answers 500"),
        (whole(b"9" * 100_000), Kind.REFUSED, "not JSON"),
        (whole(b"\xff\xfe\x00"), Kind.REFUSED, "not JSON"),
        (whole(b"data: " + b"[" * 200_000), Kind.REFUSED, "nested too deeply"),
        (whole(b"data: x\n" * 50_000), Kind.REFUSED, "not JSON"),
        (whole(b"<html>" + b"<b a='" * 50_000, "400 No"), Kind.LOST, "answers 400"),
        (whole(b"<p><!--" * 50_000, "500 No"), Kind.LOST, "answers 500"),
        (whole(b'{"error": [' + b'{"loc": ["seed", "a"]},' * 10_000 + b"1]}", "400 No"), Kind.LOST, "answers 400"),
        (whole(b"valid max tokens context 1 in " * 10_000, "400 No"), Kind.LOST, "answers 400"),
        (whole(BOMB, "200 OK", "Content-Encoding: gzip"), Kind.REFUSED, "a body in 'gzip'"),
        (whole(BOMB, "500 No", "Content-Encoding: gzip"), Kind.REFUSED, "a body in 'gzip'"),
        (whole(b"no gzip", "200 OK", "Content-Encoding: gzip"), Kind.REFUSED, "a body in 'gzip'"),
        (whole(b"x", "200 OK", "Content-Encoding: br, zstd"), Kind.REFUSED, "a body in 'br, zstd'"),
        (lambda c, _: c.sendall(head("200 OK", "Content-Length: 99") + b"{"), Kind.LOST, "cannot be"),
        (lambda c, _: c.sendall(head("200 OK", "Transfer-Encoding: chunked") + b"zz\r\n"), Kind.LOST, "cannot be"),
        (lambda c, _: c.sendall(b"\x00\x01\x02\r\n\r\n"), Kind.LOST, "cannot be reached"),
        (lambda c, _: c.sendall(head("200 OK", "X: " + "y" * (1 << 20))), Kind.LOST, "cannot be reached"),
        (lambda c, _: None, Kind.LOST, "cannot be reached"),
        (whole(b"", "302 Found", "Location: file:///etc/passwd"), Kind.LOST, "answers 302"),
        (whole(completion("x" * (257 << 10))), Kind.REFUSED, "at most 262144 are read"),
        (whole(completion(["x"])), Kind.REFUSED, "no text"),
        (whole(completion({"a": 1})), Kind.REFUSED, "no text"),
        (whole(b'{"choices": [[[]]]}'), Kind.REFUSED, "no completion"),
        (whole(b'{"choices": [{"finish_reason": [[[]]], "message": 3}]}'), Kind.REFUSED, "no text"),
        (whole(b'{"choices": [' + b"[[[]]]," * 1_000_000 + b"1]}"), Kind.REFUSED, "not JSON"),
        (whole(b'{"choices": [' + b"[]," * 2_500_000 + b"1]}", "400 No"), Kind.LOST, "answers 400"),
        (whole(b"data: [" + b"[]," * 2_500_000 + b"1]\n\n"), Kind.REFUSED, "not JSON"),
        (whole(b'{"error": ' + b"[" * 500 + b"]" * 500 + b"}"), Kind.REFUSED, "no completion"),
        (whole(b'{"error": {"message": ' + b"[" * 500 + b"]" * 500 + b"}}", "400 No"), Kind.LOST, "answers 400"),
    ],
)
def test_what_is_no_completion_is_an_outcome(behaviour: Behaviour, kind: Kind, says: str) -> None:
    answer = ask(behaviour, 30)  # large answers take their time on a busy machine
    assert isinstance(answer, Failure)
    assert answer.outcome.kind is kind, answer.outcome
    assert says in answer.outcome.message
    assert len(answer.outcome.message) < 600


def test_fields_of_any_size_and_kind() -> None:
    usage = b'{"prompt_tokens": 1' + b"0" * 4000 + b', "completion_tokens": -1}'
    body = completion("text\ud800", model="M" * 100_000, usage="@").replace(b'"@"', usage)
    answer = ask(whole(body))
    assert isinstance(answer, ModelReply)
    assert (answer.prompt_tokens, answer.completion_tokens) == (0, 0)
    assert len(answer.model) < 400


def test_a_job_has_a_limit_of_time_whatever_trickles() -> None:
    with served(trickling(head(), b" ")) as url:
        transport = LimitedTransport(Http(Endpoint("tiny", KEY, url)), AuthorLimits(seconds=0.9, call_seconds=0.5))
        answers = [transport.complete(REQUEST, 600) for _ in range(3)]
    assert sum(answer.seconds for answer in answers) < 3.0
    assert isinstance(answers[-1], Failure)
    assert "limit of 0.9 seconds" in answers[-1].outcome.message
    assert answers[-1].final


@pytest.mark.parametrize(
    "text",
    [
        "```\n" * 60_000,
        "~~~\n```x\n" * 25_000,
        "<think>" * 35_000,
        "<think></think" * 18_000,
        "</think>" * 32_000,
        "<|channel|>final" * 16_000,
        "`" * 250_000,
        "\n".join("`" * (3 + i % 700) for i in range(700)),
        "```\n---\n" + " \n" * 120_000,
        "---" * 80_000,
        "\r\n" * 120_000,
    ],
)
def test_a_reply_is_read_in_linear_time(text: str) -> None:
    """Each of these took minutes, or grew with the square of its length; the whole suite's limit is the deadline."""
    assert isinstance(reading.template_text(text), str)


def leaks() -> Iterator[tuple[str, str]]:
    yield "plain", KEY
    yield "small letters", KEY.lower()
    yield "capitals", KEY.upper()
    yield "reversed", KEY[::-1]
    yield "of an address", "sk-proj%2FQ%2B7zz_0123456789%3D%3D"
    yield "escaped", KEY.replace("/", "\\/")
    yield "hexadecimal", KEY.encode().hex()
    yield "decimal", " ".join(str(b) for b in KEY.encode())
    yield "broken over lines", KEY[:9] + "\n" + KEY[9:]
    yield "spaced", " ".join(KEY)
    yield "with marks of no width", "\u200b".join(KEY)
    yield "entities", "".join(f"&#{b};" for b in KEY.encode())
    for before in ("", "x", "xy", "Bearer "):
        yield f"base64 after {before!r}", base64.b64encode(f"{before}{KEY}".encode()).decode()


@pytest.mark.one_in(5)
@pytest.mark.parametrize(("name", "leak"), list(leaks()), ids=[name for name, _ in leaks()])
def test_the_key_is_not_carried_on(name: str, leak: str, tmp_path: Path) -> None:
    folder = tmp_path / "llm"
    fields = {"model": f"m {leak}", "finish": f"{leak}"}
    said = [
        whole(completion(f"answer {leak} end", model=fields["model"])),
        whole(json.dumps({"error": {"message": f"no {leak}", "code": leak, "param": leak}}).encode(), "401 No"),
        whole(json.dumps({"error": {"message": leak, "type": leak}}).encode(), "500 No"),
        whole(json.dumps({"error": leak}).encode()),
        whole(json.dumps({"choices": [{"finish_reason": leak, "message": {}}]}).encode()),
        whole(leak.encode()),
    ]
    for seed, behaviour in enumerate(said):
        with served(behaviour) as url:
            RecordedTransport(folder, Http(Endpoint("tiny", KEY, url))).complete(replace(REQUEST, seed=seed), 5)
    texts = [json.loads(file.read_text()) for file in sorted(folder.iterdir())]
    assert len(texts) == len(said)
    for record in texts:
        told = json.dumps([record["reply"], record["failure"]], ensure_ascii=False)
        assert leak not in told
        assert json.dumps(leak)[1:-1] not in told
        assert secret.SHOWN in told


def broken(random: Random) -> Behaviour:
    """A reply of which something is wrong, or now and then nothing: its bytes, its length, its status, its form."""
    text = random.choice(["```\n---\nstrategy: s\n---\nc[0] = 1;\n```", "", KEY, "\ud800", "<think>", "```" * 99, "{}"])
    bodies = [
        completion(text),
        completion([{"type": "text", "text": text}], usage={"prompt_tokens": text, "completion_tokens": -1}),
        json.dumps({"error": {"message": f"{text} max_tokens context 99 {KEY}", "code": text}}).encode(),
        b"data: " + completion(text) + b"\n\ndata: [DONE]\n\n",
        b"<html>" + text.encode(errors="replace"),
    ]
    body = bytearray(random.choice(bodies))
    for _ in range(random.choice([0, 0, 1, 3, 20])):
        body[random.randrange(len(body))] = random.randrange(256)
    if random.random() < 0.2:
        del body[random.randrange(len(body)) :]
    says = len(body) + random.choice([0, 0, 0, 0, 0, 0, 0, -1, 7])
    status = random.choice(["200 OK"] * 8 + ["400 No", "401 No", "404 No", "413 No", "429 No", "500 No", "302 Found"])
    more = random.choice([(), ("Content-Encoding: gzip",), ("Retry-After: 0",), ("Content-Type: text/html",)])
    data = head(status, f"Content-Length: {max(0, says)}", *more) + bytes(body)
    if random.random() < 0.05:
        data = data[: random.randrange(len(data))]
    return lambda connection, _: connection.sendall(data)


def resident() -> int:
    """Bytes of this process in memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_a_thousand_replies_of_a_hostile_server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each call is a reply or a failure and is recorded, none shows the key, and nothing of them stays."""
    monkeypatch.setattr(transports, "BACKOFF", 0.0)
    monkeypatch.setattr(ssl.SSLContext, "load_verify_locations", lambda *given: None)  # takes most of a call's time
    random, replies = Random(0), 0

    def behave(connection: socket.socket, over: threading.Event) -> None:
        nonlocal replies
        replies += 1
        broken(random)(connection, over)

    answers: list[ModelReply | Failure] = []
    before = (0, 0, 0)
    with served(behave) as url:
        transport = RecordedTransport(tmp_path, Http(Endpoint("tiny", KEY, url)))
        while replies < 1000:
            if len(answers) == 50:  # what is loaded once is there
                before = threading.active_count(), len(list(Path("/proc/self/fd").iterdir())), resident()
            answers.append(transport.complete(replace(REQUEST, seed=len(answers)), 5.0))
        after = threading.active_count(), len(list(Path("/proc/self/fd").iterdir())), resident()
    assert {type(answer) for answer in answers} == {ModelReply, Failure}
    kinds = {answer.outcome.kind for answer in answers if isinstance(answer, Failure)}
    assert kinds == {Kind.LOST, Kind.REFUSED}
    recorded = [path.read_text() for path in tmp_path.iterdir()]
    assert len(recorded) == len(answers) > 400
    assert not [text for text in recorded if KEY in text]
    assert after[0] <= before[0] + 2
    assert after[1] <= before[1] + 4
    assert after[2] < before[2] + (48 << 20)


def test_a_password_in_the_address_is_a_key() -> None:
    with served(whole(b"no hunter2-hunter2", "500 No")) as url:
        where = url.replace("http://", "http://me:hunter2-hunter2@")
        answer = Http(Endpoint("tiny", "none", where)).complete(REQUEST, 5)
    assert isinstance(answer, Failure)
    assert "hunter2" not in answer.outcome.message


@pytest.mark.parametrize(
    "key", [KEY + "\n", "a b", "\tsecret-1234", "k\u00e9y-123456", "key\x00", "sk\r\nX: y", "x" * 2000]
)
def test_a_key_that_is_none_is_a_usage_error_without_it(key: str) -> None:
    settings = Settings(None, (), False, key, "http://localhost:1/v1", "m")
    with pytest.raises(UsageError) as caught:
        endpoint(settings)
    assert key not in str(caught.value)
    assert key.strip() not in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        '{"schema": 1, "reply": {"text": ' + "9" * 5000 + "}}",
        "\ud800",
        "[]",
        "1",
        '{"schema": 1}',
        '{"schema": 1, "digest": [], "reply": {"text": ""}}',
        '{"schema": 1, "digest": "x", "reply": {"text": 3}}',
        '{"schema": 1, "digest": "x", "reply": {"text": "", "seconds": "x"}}',
        '{"schema": true, "digest": "x", "reply": null}',
        '{"schema": 0, "digest": "x", "reply": null}',
    ],
)
def test_a_recording_that_is_none_names_its_file(text: str, tmp_path: Path) -> None:
    (tmp_path / "001-abc.json").write_bytes(text.encode(errors="surrogatepass"))
    with pytest.raises(JobError, match=r"001-abc\.json is not a valid recorded call"):
        RecordedTransport(tmp_path, None)


def test_a_file_beside_recordings_is_none_of_them(tmp_path: Path) -> None:
    for name in ("1abc.json", "1.json", f"{'9' * 100}-x.json"):
        (tmp_path / name).write_text('{"schema": 1, "digest": "x", "reply": null}')
    RecordedTransport(tmp_path, None)
