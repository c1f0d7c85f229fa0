"""Calls in a harness: one process for many, a fresh one after each that died, an outcome for each call."""

from __future__ import annotations

import secrets
import signal as signals
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tensorop import errors
from tensorop.model.call import CallOutput, Reply
from tensorop.model.trial import Kind, Outcome
from tensorop.runners import confined, counts, process, protocol
from tensorop.runners.base import Launch, Need, Runner
from tensorop.runners.protocol import Fault, Hello, Parser, Raw, Request, Status, TargetLibrary, Time

_LOG = 4096
_DOUBTS = 3  # how often a timing is made again that the clock here does not bear out
_SLACK_NS, _BATCH_NS, _BYTE_NS = 5e6, 2e5, 10.0  # of a timing, of a batch, of a byte that it restores
_NEAR_NS, _FAR_NS = 5e7, 4e8  # of a word to and fro
_OURS = "tensorop"  # the calling interface of products, whose code opens no file
_PATH = 256  # characters of a library's path, or a multiple
_FAULTS = {
    Fault.BEFORE: "touched memory before the start of buffer",
    Fault.AFTER: "touched memory past the end of buffer",
    Fault.READ_ONLY: "wrote to the input buffer",
}


@dataclass(frozen=True)
class Guest:
    """How the harness is started, beyond the program: everything that may change a figure is here.

    vlen: bits; libraries: for the dynamic harness; environment: all the program finds;
    cpu: to stay on, -1 for any (its threads would stay there as well); threads: how many a call may use;
    plugin_args: an emulator's instrumentation.
    """

    vlen: int | None = None
    libraries: tuple[TargetLibrary, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    cpu: int = -1
    threads: int = 1
    plugin_args: tuple[str, ...] = ()

    @property
    def needs(self) -> Need:
        """What the jail leaves to the process: follows from what is in it, and nobody chooses it."""
        if any(library.api != _OURS for library in self.libraries):
            return Need.THREADS | Need.READS  # other libraries load parts and start threads when they like
        return Need.THREADS if self.threads > 1 else Need.NOTHING


def run(
    runner: Runner,
    program: Path,
    requests: Sequence[Request],
    *,
    timeout_s: float = 20.0,
    guest: Guest = Guest(),
    give_up_after: int = 3,
) -> list[Reply]:
    """A reply to each request, in order.

    timeout_s: for the start and for each single call. A call that ends its process says so in its reply, and those
    after it run in a fresh one, until `give_up_after` processes have died: the rest are then not run and share the last
    outcome's kind. Deadlines stretch with the target's `patience`.
    A timing that the clock here does not bear out is made again, three times together.
    A board that goes away is waited for; the calls it has not answered run again, and one that ends so twice while the
    board is there is to blame itself.
    Raises JobError when a library cannot be bound, MissingTool as the runner does, BoardError when a board stays away.
    """
    replies: list[Reply] = []
    deaths = doubts = 0
    given_up_at = -1
    timeout_s *= runner.patience
    while len(replies) < len(requests):
        left = requests[len(replies) :]
        try:
            parser, ended = _once(runner, program, left, timeout_s, guest)
        except errors.BoardError:
            if given_up_at == len(replies) or not runner.far or not runner.back():
                raise
            given_up_at = len(replies)
            continue
        made = [_reply(raw, request, runner) for raw, request in zip(parser.replies, left, strict=False)]
        doubtful = next((i for i, reply in enumerate(made) if reply.outcome.kind is Kind.NOISY), None)
        if doubtful is not None and doubts < _DOUBTS:
            doubts += 1
            replies += made[:doubtful]
            continue
        replies += made
        death, where = None, left[0].where
        if runner.far and len(parser.replies) < len(left):
            why = None if ended.timed_out else runner.lost(ended.status, ended.stderr)
            if why is not None:
                if not runner.back():
                    raise errors.BoardError(f"{why} during a call", hint="run the same command again; it goes on there")
                if given_up_at < len(replies):
                    given_up_at = len(replies)
                    continue
                # The board is there, and the same call ended twice: ssh cannot tell that from a lost connection.
                death = Outcome(Kind.CRASH, where, "ended twice without a word", ended.stderr[-_LOG:])
        if len(parser.replies) == len(left):
            break
        if parser.refused and not ended.timed_out:
            death = Outcome(Kind.GUARD, where, f"its process said what no harness says: {parser.refused}")
        if not parser.replies or parser.replies[-1].status is not Status.SIGNALLED:
            replies.append(Reply(death or _death(runner, ended, where, timeout_s)))
        deaths += 1
        last = replies[-1].outcome
        if last.kind is Kind.LOST or deaths >= give_up_after:
            rest = Outcome(last.kind, where, f"not run after: {last.message}", last.log)
            replies += [Reply(rest)] * (len(requests) - len(replies))
    return replies


def hello(runner: Runner, program: Path, *, guest: Guest = Guest()) -> Hello | None:
    """What a harness says of itself when nothing is asked of it; None when it does not start.

    A `Hello` without `jailed` means that candidates run behind limits and the gates alone.
    """
    parser, _ = _once(runner, program, (), 20.0, guest)
    return parser.hello


def weaknesses(runner: Runner, greeting: Hello | None) -> tuple[str, ...]:
    """What is missing between candidates and the target, for the user to read once; empty when nothing is."""
    if greeting is None:
        return (f"the harness does not start on {runner.name}",)
    if greeting.jailed:
        return ()
    return (f"the kernel behind {runner.name} filters no system calls (seccomp): limits and gates alone hold kernels",)


def _long(path: str) -> str:
    """The same file by a path of one length: the loader keeps it on the heap, where it moves modelled cycles."""
    return "/" * (-len(path) % _PATH) + path if path.startswith("/") else path


def _once(
    runner: Runner, program: Path, requests: Sequence[Request], timeout_s: float, guest: Guest
) -> tuple[Parser, process.Ended]:
    nonce = secrets.randbits(64)
    started: list[int] = []
    # Under an emulator and behind ssh the process here is not the one that is timed.
    here_too = runner.here and guest.needs is Need.NOTHING
    parser = Parser(nonce, requests, lambda: counts.clocks(started[0] if here_too else None))

    def stream() -> Iterator[bytes | memoryview]:
        libraries = [replace(library, path=_long(library.path)) for library in guest.libraries]
        yield protocol.pack_start(nonce, cpu=guest.cpu, needs=guest.needs, libraries=libraries, threads=guest.threads)
        for index, request in enumerate(requests):
            yield from protocol.pack(request, index)
            while isinstance(request, Time) and len(parser.replies) <= index and not parser.refused:
                yield parser.answers()

    def consume(data: bytes) -> bool:
        if parser.refused:
            return False
        try:
            return parser.feed(data)
        except (protocol.ProtocolError, ValueError) as e:
            parser.refused = str(e) or "bytes that are no reply of the harness"
            return False

    environment: Mapping[str, str] = dict(guest.environment)
    if any(library.api == _OURS for library in guest.libraries):
        # Untold, a product asks how many processors there are and starts as many threads.
        environment = {"TENSOROP_NUM_THREADS": str(guest.threads), **environment}
    here = program.absolute()
    placed = runner.place(program)
    # On this machine by its file's name alone: the length of a path moves the stack, and with it modelled cycles.
    placed = f"./{here.name}" if placed == str(here) else placed
    ended = confined.run(
        runner,
        Launch([placed], guest.vlen, bool(guest.libraries), environment, guest.plugin_args, guest.needs),
        calls=len(requests),
        talk=process.Talk(stream(), consume, started.append),
        timeout_s=timeout_s,
        cwd=here.parent,
    )
    if parser.hello is not None and parser.hello.error:
        raise errors.JobError(f"a library cannot be called on the target: {parser.hello.error}")
    if parser.hello is None and runner.lost(ended.status, ended.stderr) is None and not ended.timed_out:
        # No candidate's code runs before the hello, so this says nothing of any candidate.
        raise errors.JobError(
            f"the harness did not start ({runner.name}, status {ended.status}): {ended.stderr.strip()[-500:]}",
            hint="tensorop doctor tests compiler, emulator and harness one by one",
        )
    return parser, ended


def _lacks(raw: Raw, request: Time, runner: Runner) -> bool:
    """Whether a timing says much less than passed here, or than its process ran, beside what is between its batches:
    operands restored, results kept, caches flushed, words to and fro, and the wait for other threads."""
    samples = sum(map(len, raw.samples))
    moved = sum(request.call.buffers[slot].data.nbytes for slot in protocol.returned(request))
    batches = 3 * samples + 2 * raw.words
    beside = _SLACK_NS + batches * (_BATCH_NS + _BYTE_NS * moved) + samples * request.flush_bytes
    if raw.busy is not None:  # other programs do not count
        return 1e9 * raw.busy > 1.25 * (raw.timed + raw.reported_ns) + raw.apart + beside
    beside = 10 * beside + (_FAR_NS * runner.patience if runner.far else _NEAR_NS) * raw.words
    return 1e9 * raw.window > 3 * raw.spent + raw.rested + beside


def _reply(raw: Raw, request: Request, runner: Runner) -> Reply:
    where = request.where
    if raw.status is not Status.DONE:
        return Reply(_refusal(raw, request))
    buffers = request.call.buffers
    results: list[tuple[int, dict[str, NDArray[np.generic]]]] = []
    for slot, which, data in raw.outputs:
        name = buffers[slot].name
        if not results or name in results[-1][1]:  # the next result begins
            results.append((which, {}))
        whole = replace(buffers[slot], data=np.frombuffer(data, dtype=buffers[slot].data.dtype))
        results[-1][1][name] = whole.operands(bool(which % 2)).data
    if isinstance(request, Time):
        message = f"its calls say {raw.timed / 1e9:.3f} s in {raw.span / 1e9:.3f} s, here {raw.window:.3f} s passed"
        if not raw.timed / 1.01 - 1e6 <= raw.spent <= raw.span * 1.01 + 1e6 <= 1e9 * raw.window * 1.02 + 3e6:
            return Reply(Outcome(Kind.IMPOSSIBLE, where, message))
        if _lacks(raw, request, runner):
            return Reply(Outcome(Kind.NOISY, where, f"{message}: more than what lies between calls takes"))
    if not isinstance(request, Time):
        return Reply(Outcome(Kind.OK, where), results[0][1] if results else {})
    entries = range(len(request.entries)) if request.keep else ()
    left = tuple(tuple(CallOutput(o, bool(which % 2)) for which, o in results if which // 2 == i) for i in entries)
    return Reply(Outcome(Kind.OK, where), {}, raw.samples, left)


def _refusal(raw: Raw, request: Request) -> Outcome:
    where = request.where
    name = request.call.buffers[raw.buffer].name if 0 <= raw.buffer < len(request.call.buffers) else "?"
    side = request.call.placement.value
    if raw.status is Status.SLACK_WRITTEN:
        return Outcome(Kind.GUARD, where, f"wrote outside of buffer {name}, at byte {raw.offset} from its start")
    if raw.status is Status.NO_ENTRY:
        return Outcome(Kind.OBJECT, where, f"the program has no function for {protocol.entries_of(request)}")
    if raw.status is Status.NO_MEMORY:
        return Outcome(Kind.LOST, where, "the target has no memory for the operands of this call")
    if raw.status is Status.TAMPERED:
        return Outcome(Kind.GUARD, where, "changed how often the harness calls it")
    if raw.fault is Fault.HARNESS:
        return Outcome(Kind.GUARD, where, "wrote into the harness's own memory")
    if raw.fault is not Fault.ELSEWHERE:
        at = f"at byte {raw.offset} from its start (guarded at its {side})"
        return Outcome(Kind.GUARD, where, f"{_FAULTS[raw.fault]} {name}, {at}")
    if raw.signal == signals.SIGSYS:
        return Outcome(Kind.CRASH, where, f"asked for the forbidden system call {raw.offset}")
    return _by_signal(raw.signal, where, "")


def _by_signal(number: int, where: str, log: str) -> Outcome:
    try:
        name = signals.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number == signals.SIGILL:
        return Outcome(Kind.ILLEGAL, where, "the target does not know an instruction of it (SIGILL)", log)
    if number == signals.SIGSYS:
        return Outcome(Kind.CRASH, where, "asked for a forbidden system call", log)
    if number == signals.SIGXCPU:
        return Outcome(Kind.TIMEOUT, where, "used up its processor time", log)
    return Outcome(Kind.CRASH, where, f"ended by {name}", log)


def _death(runner: Runner, ended: process.Ended, where: str, timeout_s: float) -> Outcome:
    """Why a process ended without a reply to a call."""
    log = ended.stderr[-_LOG:]
    if ended.timed_out:
        return Outcome(Kind.TIMEOUT, where, f"did not return within {timeout_s:g} s", log)
    why = runner.lost(ended.status, log)
    if why is not None:
        return Outcome(Kind.LOST, where, why, log)
    if ended.status < 0:
        return _by_signal(-ended.status, where, log)
    if ended.status > 128:  # an emulator or a shell between us and the program
        return _by_signal(ended.status - 128, where, log)
    return Outcome(Kind.CRASH, where, f"the process ended with status {ended.status} before the call returned", log)
