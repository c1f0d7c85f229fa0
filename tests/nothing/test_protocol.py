"""The wire format without a harness, and the runners' words without a target."""

import shlex
import struct
from collections.abc import Callable

import numpy as np
import pytest

from tensorop import errors
from tensorop.backends.null import Backend, Nowhere
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.point import Point
from tensorop.runners import protocol
from tensorop.runners.base import Launch
from tensorop.runners.counts import BadReport, Counts
from tensorop.runners.protocol import Check, Entry, Parser, ProtocolError, Time
from tensorop.runners.ssh import Ssh
from tensorop.specs import platforms

NONCE = 0x1122334455667788
DATA = np.arange(3, dtype=np.float32)
CALL = Call((3,), buffers=(Buffer("x", Access.IN, DATA), Buffer("y", Access.OUT, DATA)))


def hello(nonce: int = NONCE) -> bytes:
    return struct.pack("<IIQII256s", int.from_bytes(b"TOPH", "little"), protocol.VERSION, nonce, 4096, 1, b"")


def reply(index: int = 0, *, nonce: int = NONCE, outputs: int = 1, status: int = 0, size: int = 12) -> bytes:
    head = (int.from_bytes(b"TOPA", "little"), index, nonce, status, 0, 0, -1, 0, outputs, 0, 0, 0, 0, 0)
    body = struct.pack("<IIQ", 1, 0, size) + DATA.tobytes() if outputs else b""
    return struct.pack("<IIQIiiiqIIIIQQQ", *head, 0) + body


def report(entry: int, calls: int = 0, ns: int = 0) -> bytes:
    return struct.pack("<IIQIIQQ", int.from_bytes(b"TOPC", "little"), 0, NONCE, entry, 0, calls, ns)


NO_STATUS = reply(status=9)


def test_replies_become_whole_piece_by_piece():
    parser = Parser(NONCE, [Check(CALL)] * 2)
    stream = hello() + reply(0) + reply(1)
    progress = [parser.feed(stream[i : i + 1]) for i in range(len(stream))]
    assert sum(progress) == 3
    assert parser.hello is not None
    assert parser.hello.jailed
    assert [np.frombuffer(r.outputs[0][2], np.float32).tolist() for r in parser.replies] == [[0, 1, 2]] * 2


@pytest.mark.parametrize(
    "bad",
    [
        reply(1),
        reply(nonce=NONCE + 1),
        reply(outputs=0),
        reply(outputs=2),
        reply(size=16),
        NO_STATUS,
        b"OK\n" * 40,
    ],
)
def test_bytes_that_are_no_reply_to_the_question_are_refused(bad):
    parser = Parser(NONCE, [Check(CALL)])
    parser.feed(hello())
    with pytest.raises(ValueError if bad == NO_STATUS else ProtocolError):
        parser.feed(bad + bytes(64))


def test_what_timed_calls_left_comes_entry_by_entry():
    request = Time(CALL, (Entry(), Entry(1)), rounds=1, keep=True, min_ns=2)

    def stream(*which: int, samples: tuple[float, ...] = (1.0, 5.0, 1.0, 6.0), told: int = 3) -> bytes:
        head = (int.from_bytes(b"TOPA", "little"), 0, NONCE, 0, 0, 0, -1, 0, len(which), 2, 1, 0, 40, 35, 1)
        left = [struct.pack("<IIQ", 1, w, 12) + (DATA + i).tobytes() for i, w in enumerate(which)]
        reports = b"".join(report(entry) for entry in range(told))
        return (
            hello() + reports + struct.pack("<IIQIiiiqIIIIQQQ", *head) + b"".join(left) + struct.pack("<4d", *samples)
        )

    parser = Parser(NONCE, [request])
    parser.feed(stream(0, 3, 1))
    (raw,) = parser.replies
    assert [(which, np.frombuffer(data, np.float32)[0]) for _, which, data in raw.outputs] == [(0, 0), (3, 1), (1, 2)]
    assert raw.samples == ((5.0,), (6.0,))
    assert raw.calls == ((1.0,), (1.0,))
    assert (raw.timed, raw.span, raw.spent, raw.apart, raw.words) == (11, 40, 35, 1, 3)
    assert parser.answers() == 2 * struct.pack("<IIQ", int.from_bytes(b"TOPN", "little"), 0, 1)
    assert parser.answers() == b""
    for bad in (
        stream(0),
        stream(0, 4),
        stream(0, 2, samples=(0.0, 1.0, 1.0, 1.0)),
        stream(0, 2, samples=(1, -1, 1, 5)),
        stream(0, 2, samples=(2, 5, 1, 6)),
        stream(0, 2, samples=(1, 1, 1, 6)),
        stream(0, 2, told=0),
        stream(0, 2, told=1),
        stream(0, 2, told=4),
    ):
        with pytest.raises(ProtocolError):  # the outputs of one entry alone, no times, other calls than were asked for
            Parser(NONCE, [request]).feed(bad)


def settled(each: Callable[[int], float], **how: float) -> tuple[Counts, list[int]]:
    """The calls that are named until they fill a batch; each: ns a call, by how many there were before."""
    asked = {"warm_ns": 5e6, "min_ns": 2e6, **how}
    counts = Counts(1, 5, asked["warm_ns"], asked["min_ns"], False)
    named, made, done = [1], 1, False
    assert counts.answer(0, 0, 0) == (1, False)
    while not done:
        now = named[-1] - named[-1] // 9
        answer = counts.answer(0, now, int(sum(map(each, range(made, made + now)))))
        made += now
        assert answer is not None
        named.append(answer[0])
        done = answer[1]
    return counts, named


@pytest.mark.parametrize("ns", [3, 400, 90_000, 7e6])
def test_calls_are_as_many_as_fill_a_batch_with_warming_up(ns: float) -> None:
    counts, named = settled(lambda _: ns)
    assert named[-1] * ns >= 2e6
    assert named[-1] == 1 or named[-1] * ns <= 2.5e6
    assert len(named) < 14
    assert counts.reported_ns >= 5e6
    counts.check(0, named[-1], named[-1] * ns)


def test_calls_that_get_faster_are_waited_for_but_not_for_ever() -> None:
    counts, named = settled(lambda made: 50_000 if made < 60 else 500)
    assert named[-1] * 500 >= 2e6
    assert counts.answer(0, named[-1], 100 * named[-1]) == (int(2.2e6 / 100) + 1, True)
    counts, _ = settled(lambda made: 2.1e6 + 2e7 * 0.8**made)
    assert 5e6 < counts.reported_ns <= 8 * 5e6 + 2.21e7


@pytest.mark.parametrize(
    "words",
    [
        [(1, 0, 0), (0, 1, 5)],
        [(2, 0, 0)],
        [(0, 2, 5)],
        [(0, 1, 0), (0, 5, 5)],
        [(0, 10**n, 0) for n in range(13)],
        [(0, 1, 10**7)] * 100,
    ],
    ids=["after its last word", "an entry", "two calls", "five calls", "calls without time", "without end"],
)
def test_reports_that_no_honest_process_makes(words: list[tuple[int, int, int]]) -> None:
    counts = Counts(1, 5, 1e15, 2e6, False)
    counts.answer(0, 0, 0)
    with pytest.raises(BadReport):
        [counts.answer(*word) for word in words]


def test_another_hello_is_refused():
    with pytest.raises(ProtocolError):
        Parser(NONCE, []).feed(hello(NONCE + 1))


def test_a_request_carries_its_call_and_operands():
    pieces = list(protocol.pack(Check(CALL, Entry(1, (3, -1))), 7))
    packed = b"".join(bytes(p) for p in pieces)
    assert len(packed) == 96 + 24 + 4 * 8 * 8 + 2 * 32 + 2 * 12
    assert packed.count(DATA.tobytes()) == 2
    timed = b"".join(bytes(p) for p in protocol.pack(Time(CALL, (Entry(), Entry(1))), 0))
    assert len(timed) == len(packed) + 24
    many = b"".join(bytes(p) for p in protocol.pack(Check(Call(tuple(range(20)), scalars=(0.5,) * 9)), 0))
    assert len(many) == 96 + 24 + 8 * (20 + 8 + 9 + 8)


def test_the_null_runner_answers_the_same_for_a_point_and_differs_between_points():
    target = Backend(platforms.load("generic"), Nowhere(), failing=0.2)
    points = [Point.of(mr=i, order=word) for i in range(1, 30) for word in ("ijk", "ikj")]
    answers = [target.simulate(p, "64x64x64 f32") for p in points]
    assert answers == [target.simulate(p, "64x64x64 f32") for p in points]
    costs = {s.value for o, s in answers if s is not None}
    assert len(costs) > 20
    assert 0 < sum(not o.ok for o, _ in answers) < len(points)
    with pytest.raises(errors.JobError, match="executes no program"):
        target.runner.command(Launch(["x"]))


def test_ssh_quotes_what_it_sends():
    argv = Ssh("board", ("-p", "2222")).command(Launch(["/home/me/a b"], environment={"A": "$(x)"}))
    assert argv[-3:-1] == ["2222", "board"]
    words = shlex.split(argv[-1])
    assert words[:3] == ["exec", "sh", "-c"]
    assert words[4:] == ["env", "-i", "A=$(x)", "/home/me/a b"]
