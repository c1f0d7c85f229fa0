"""The wire format without a harness, and the runners' words without a target."""

import shlex
import struct

import numpy as np
import pytest

from tensorop import errors
from tensorop.model.call import Access, Buffer, Call
from tensorop.model.point import Point
from tensorop.runners import protocol
from tensorop.runners.null import Null
from tensorop.runners.protocol import Check, Entry, Parser, ProtocolError, Time
from tensorop.runners.ssh import Ssh

NONCE = 0x1122334455667788
DATA = np.arange(3, dtype=np.float32)
CALL = Call((3,), buffers=(Buffer("x", Access.IN, DATA), Buffer("y", Access.OUT, DATA)))


def hello(nonce: int = NONCE) -> bytes:
    return struct.pack("<IIQII256s", int.from_bytes(b"TOPH", "little"), protocol.VERSION, nonce, 4096, 1, b"")


def reply(index: int = 0, *, nonce: int = NONCE, outputs: int = 1, status: int = 0, size: int = 12) -> bytes:
    head = (int.from_bytes(b"TOPA", "little"), index, nonce, status, 0, 0, -1, 0, outputs, 0, 0, 0)
    body = struct.pack("<IIQ", 1, 0, size) + DATA.tobytes() if outputs else b""
    return struct.pack("<IIQIiiiqIIIIQ", *head, 0) + body


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
    request = Time(CALL, (Entry(), Entry(1)), rounds=1, keep=True)

    def stream(*which: int, samples: tuple[float, ...] = (2.0, 10.0, 3.0, 18.0)) -> bytes:
        head = (int.from_bytes(b"TOPA", "little"), 0, NONCE, 0, 0, 0, -1, 0, len(which), 2, 1, 0, 40)
        left = [struct.pack("<IIQ", 1, w, 12) + (DATA + i).tobytes() for i, w in enumerate(which)]
        return hello() + struct.pack("<IIQIiiiqIIIIQ", *head) + b"".join(left) + struct.pack("<4d", *samples)

    parser = Parser(NONCE, [request])
    parser.feed(stream(0, 3, 1))
    (raw,) = parser.replies
    assert [(which, np.frombuffer(data, np.float32)[0]) for _, which, data in raw.outputs] == [(0, 0), (3, 1), (1, 2)]
    assert raw.samples == ((5.0,), (6.0,))
    assert raw.calls == ((2.0,), (3.0,))
    assert (raw.timed, raw.span) == (28, 40)
    for bad in (
        stream(0),
        stream(0, 4),
        stream(0, 2, samples=(0.0, 1.0, 1.0, 1.0)),
        stream(0, 2, samples=(2, -1, 1, 1)),
    ):
        with pytest.raises(ProtocolError):  # the outputs of one entry alone, or no times
            Parser(NONCE, [request]).feed(bad)


def test_another_hello_is_refused():
    with pytest.raises(ProtocolError):
        Parser(NONCE, []).feed(hello(NONCE + 1))


def test_a_request_carries_its_call_and_operands():
    pieces = list(protocol.pack(Check(CALL, Entry(1, (3, -1))), 7))
    packed = b"".join(bytes(p) for p in pieces)
    assert len(packed) == 360 + 24 + 2 * 16 + 2 * 12
    assert packed.endswith(DATA.tobytes() * 2)
    timed = b"".join(bytes(p) for p in protocol.pack(Time(CALL, (Entry(), Entry(1))), 0))
    assert len(timed) == len(packed) + 24
    with pytest.raises(ValueError, match="slots"):
        list(protocol.pack(Check(Call(tuple(range(9)))), 0))


def test_the_null_runner_answers_the_same_for_a_point_and_differs_between_points():
    runner = Null(failing=0.2)
    points = [Point.of(mr=i, order=word) for i in range(1, 30) for word in ("ijk", "ikj")]
    answers = [runner.pretend(p, "64x64x64 f32") for p in points]
    assert answers == [runner.pretend(p, "64x64x64 f32") for p in points]
    costs = {s.value for o, s in answers if s is not None}
    assert len(costs) > 20
    assert 0 < sum(not o.ok for o, _ in answers) < len(points)
    with pytest.raises(errors.JobError, match="starts no program"):
        runner.command(["x"])


def test_ssh_quotes_what_it_sends():
    argv = Ssh("board", ("-p", "2222")).command(["/home/me/a b"], environment={"A": "$(x)"})
    assert argv[-3:-1] == ["2222", "board"]
    words = shlex.split(argv[-1])
    assert words[:3] == ["exec", "sh", "-c"]
    assert words[4:] == ["env", "-i", "A=$(x)", "/home/me/a b"]
