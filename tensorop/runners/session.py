"""Calls in a harness: one process for many calls, a new one after each crash, an outcome for each call."""

from __future__ import annotations

import bisect
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
_DOUBTS = 3  # most repeated timings that this machine's clock contradicts
_SLACK_NS, _BATCH_NS, _BYTE_NS = 5e6, 2e5, 10.0  # allowed per timing, batch, restored byte
_NEAR_NS, _FAR_NS = 5e7, 4e8  # allowed per report and answer
_OURS = "tensorop"  # API of tensorop's products, whose code opens no file
JUDGED = "blas"  # API of a library that `judge --blas` calls, also after fork
_PATH = 256  # a library's path is padded to a multiple of so many characters
_FAULTS = {
    Fault.BEFORE: "touched memory before the start of buffer",
    Fault.AFTER: "touched memory past the end of buffer",
    Fault.READ_ONLY: "wrote to the input buffer",
}


@dataclass(frozen=True)
class Guest:
    """How the harness starts: everything besides the program that may change a measurement."""

    vlen: int | None = None  # bits
    libraries: tuple[TargetLibrary, ...] = ()  # for the dynamic harness
    environment: tuple[tuple[str, str], ...] = ()  # the program's whole environment
    cpu: int = -1  # the processor to stay on, -1 for any; threads of the process stay there too
    threads: int = 1  # maximum number of threads of a call
    plugin_args: tuple[str, ...] = ()  # instrumentation of an emulator

    @property
    def needs(self) -> Need:
        """Permissions in the jail; they follow from the libraries and threads."""
        if any(library.api == JUDGED for library in self.libraries):
            return Need.THREADS | Need.READS | Need.FORKS
        if any(library.api != _OURS for library in self.libraries):
            return Need.THREADS | Need.READS  # other libraries load parts and start threads at any time
        return Need.THREADS if self.threads > 1 else Need.NOTHING


def run(
    runner: Runner,
    program: Path,
    requests: Sequence[Request],
    *,
    timeout_s: float = 20.0,
    guest: Guest = Guest(),
    give_up_after: int = 3,
    parts: Sequence[int] = (),
    most_hangs: int = 0,
) -> list[Reply]:
    """A reply to each request, in order.

    timeout_s: for the start and for each call; deadlines scale with the target's `patience`. If a call ends its
    process, its reply has that failure, and later calls run in a new process. After `give_up_after` such processes the
    remaining calls are not run: their replies have the last outcome's kind.
    parts: for each request the number of its part, in ascending order; then a part is given up after its first such
    process, and the other parts are run.
    most_hangs: with parts, after so many calls that do not return, none is made any more; 0: all parts are run.
    A timing that this machine's clock contradicts is repeated, at most three times in a run.
    If the connection to a board is lost, `run` waits for the board and repeats the unanswered calls. A call that ends
    so twice while the board answers counts as a crash.
    Raises JobError if a library cannot be bound, MissingTool as the runner does, BoardError if a board stays away.
    """
    replies: list[Reply] = []
    deaths = doubts = hangs = 0
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
                    raise errors.BoardError(f"{why} during a call", hint="run the same command again to resume")
                if given_up_at < len(replies):
                    given_up_at = len(replies)
                    continue
                # The board answers, and the same call ended twice: ssh cannot distinguish that from a lost connection.
                death = Outcome(Kind.CRASH, where, "ended twice without a word", ended.stderr[-_LOG:])
        if len(parser.replies) == len(left):
            break
        if parser.refused and not ended.timed_out:
            death = Outcome(Kind.GUARD, where, f"its process said what no harness says: {parser.refused}")
        if not parser.replies or parser.replies[-1].status is not Status.SIGNALLED:
            replies.append(Reply(death or _death(runner, ended, where, timeout_s)))
        deaths += 1
        last = replies[-1].outcome
        hangs += last.kind is Kind.TIMEOUT
        until = len(replies)
        if last.kind is Kind.LOST or (not parts and deaths >= give_up_after) or 0 < most_hangs == hangs:
            until = len(requests)
        elif parts:
            until = bisect.bisect_right(parts, parts[len(replies) - 1])
        rest = Outcome(last.kind, where, f"not run after: {last.message}", last.log)
        replies += [Reply(rest, made=False)] * (until - len(replies))
    return replies


def hello(runner: Runner, program: Path, *, guest: Guest = Guest()) -> Hello | None:
    """The hello of a harness without requests; None if it does not start.

    If `Hello.jailed` is false, only limits and gates confine candidates.
    """
    parser, _ = _once(runner, program, (), 20.0, guest)
    return parser.hello


def weaknesses(runner: Runner, greeting: Hello | None) -> tuple[str, ...]:
    """Messages for the user about missing protection between candidates and the target."""
    if greeting is None:
        return (f"the harness does not start on {runner.name}",)
    if greeting.jailed:
        return ()
    return (f"the kernel behind {runner.name} filters no system calls (seccomp): limits and gates alone hold kernels",)


def _long(path: str) -> str:
    """The same file by a path of fixed length.

    The loader keeps the path on the heap, so its length changes modelled cycles.
    """
    return "/" * (-len(path) % _PATH) + path if path.startswith("/") else path


def _once(
    runner: Runner, program: Path, requests: Sequence[Request], timeout_s: float, guest: Guest
) -> tuple[Parser, process.Ended]:
    nonce = secrets.randbits(64)
    started: list[int] = []
    # With an emulator or ssh, the local process is not the timed one.
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
        # By default a product starts as many threads as there are processors.
        environment = {"TENSOROP_NUM_THREADS": str(guest.threads), **environment}
    here = program.absolute()
    placed = runner.place(program)
    # On this machine by the file's name alone: the length of a path moves the stack and changes modelled cycles.
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
        raise errors.JobError(f"the library cannot be loaded on the target: {parser.hello.error}")
    if parser.hello is None and runner.lost(ended.status, ended.stderr) is None and not ended.timed_out:
        # No candidate's code runs before the hello, so no candidate caused this.
        stderr = ended.stderr.strip()[-500:] or "it wrote nothing to stderr"
        raise errors.JobError(
            f"the harness did not start ({runner.name}, status {ended.status}): {stderr}",
            hint="run `tensorop doctor`; it tests compiler, emulator and harness one by one",
        )
    return parser, ended


def _lacks(raw: Raw, request: Time, runner: Runner) -> bool:
    """Whether a timing reports much less time than passed here, or than its process ran.

    The difference may include work between batches: restoring operands, keeping results, flushing caches, reports and
    answers, and waiting for other threads.
    """
    samples = sum(map(len, raw.samples))
    moved = sum(request.call.buffers[slot].data.nbytes for slot in protocol.returned(request))
    batches = 3 * samples + 2 * raw.words
    beside = _SLACK_NS + batches * (_BATCH_NS + _BYTE_NS * moved) + samples * request.flush_bytes
    if raw.busy is not None:  # processor time excludes other programs
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
        return Reply(Outcome(Kind.OK, where), results[0][1] if results else {}, path=raw.spent)
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
    """The outcome of a process that ended without a reply to a call."""
    log = ended.stderr[-_LOG:]
    if ended.timed_out:
        return Outcome(Kind.TIMEOUT, where, f"did not return within {timeout_s:g} s", log)
    why = runner.lost(ended.status, log)
    if why is not None:
        return Outcome(Kind.LOST, where, why, log)
    if ended.status < 0:
        return _by_signal(-ended.status, where, log)
    if ended.status > 128:  # from an emulator or a shell around the program
        return _by_signal(ended.status - 128, where, log)
    return Outcome(Kind.CRASH, where, f"the process ended with status {ended.status} before the call returned", log)
