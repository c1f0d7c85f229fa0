"""Trials beyond this process: on workers of a Dask cluster, started here or found at its scheduler.

Dask starts, watches and restarts processes, sends trials to them, and to another one where the first was lost. What is
decided here is who may have them: a worker that shows this process's fingerprint.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
import signal
import socket
import ssl
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from tensorop.author import offline
from tensorop.cluster import worker
from tensorop.cluster.worker import Fingerprint
from tensorop.errors import JobError, MissingTool, TensoropError, UsageError
from tensorop.model.job import Job
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Kind, Outcome, Trial, TrialResult
from tensorop.process import children, scratch, waiting
from tensorop.process.stopping import StopRequest
from tensorop.target import Target
from tensorop.trial.trial import Limit

if TYPE_CHECKING:
    from distributed import Client, Future

MOST = 256
ANSWER_S = 10.0  # for a scheduler to answer
PATIENCE_S = 60.0  # for a scheduler that went away to come back, for a first worker, and for others once there is one
PAPERS_S = 900.0  # for a worker to show its papers, before which it may have a compiler to fetch
OVERDUE_S = 300.0  # beyond twice the limit of a trial, for one of a batch to end
PROBE_S = 2.0  # for a look at who answers in a scheduler's place
LOOK_S = 0.5  # between looks at who is there
HINT = (
    "docs/how-to/distribute-trials.md shows how to start a scheduler and workers; "
    "run the same command again to resume, also "
    "without --workers"
)
# for a scheduler or a worker, before its first task: Dask's HTTP server closes its port
_NO_PAGES = "def dask_setup(server): server.http_server.stop()"
log = logging.getLogger("tensorop")
_ADDRESS = re.compile(r"(tcp|tls)://[^\s/]+:\d+")


def check(job: Job, target: Target) -> None:
    """Raises UsageError where the job cannot have the workers that it asks for."""
    if _count(job.workers) >= 0 and not target.side_by_side:
        raise UsageError(
            f"--workers does not work with platform '{target.platform.name}': its kernels are timed on one machine, "
            "and timings from several machines are not comparable",
            hint="use --jobs to build in parallel, or choose a simulated platform",
        )


@contextlib.contextmanager
def crew(job: Job) -> Iterator[Workers]:
    """The workers that a job asks for, until the block ends.

    Raises MissingTool without Dask, JobError where nobody answers.
    """
    try:
        import distributed
    except ImportError:
        raise MissingTool(
            "--workers needs Dask, which is not installed", hint="pip install distributed cryptography"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it comes to is said here
    with contextlib.ExitStack() as until:
        if count := _count(job.workers):
            connect = until.enter_context(_started(job, count))
        else:

            def connect() -> Client:
                _meet(job.workers)
                return waiting.within(
                    2 * ANSWER_S, lambda: distributed.Client(job.workers, timeout=ANSWER_S, set_as_default=False)
                )

        found = Workers(job, connect)
        until.callback(found.close)
        yield found


def _meet(address: str) -> None:
    """Raises ConnectionError, which says who answers in a scheduler's place; a client that has met nobody would be
    waited for."""
    from distributed.comm import connect
    from distributed.security import Security

    async def greet() -> None:
        async with asyncio.timeout(ANSWER_S):  # Dask's own ends with the connection, before the greeting
            await (await connect(address, timeout=ANSWER_S, **Security().get_connection_args("client"))).close()

    def call() -> None:
        socket.getaddrinfo(*_host(address))  # Dask would ask on a thread that the end of the process waits for
        asyncio.run(greet())

    try:
        waiting.within(2 * ANSWER_S, call)
    except Exception as error:  # of TLS that is not configured, too
        instead = waiting.within(5 * PROBE_S, lambda: _instead(address))
        raise ConnectionError(instead or str(error) or f"no answer within {ANSWER_S:g} s") from error


def _host(address: str) -> tuple[str, int]:
    host, _, port = address.partition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _instead(address: str) -> str:
    """Who answers where no scheduler is met; "" where that is not known."""
    at, tls = _host(address), address.startswith("tls:")
    reply = b""
    try:
        with socket.create_connection(at, timeout=PROBE_S) as way, contextlib.suppress(OSError):
            way.settimeout(PROBE_S)
            way.sendall(b"GET / HTTP/1.0\r\n\r\n")
            reply = way.recv(256)
    except OSError as error:
        return error.strerror or str(error)
    if reply.startswith(b"HTTP/"):
        return "an HTTP server answers; a scheduler listens on port 8786 by default, and 8787 is its web page"
    if b"pickle-protocol" in reply:
        return "it does not use TLS, so its address must begin with tcp://" if tls else ""
    if reply and not reply.startswith(b"\x15\x03"):  # an alert of TLS
        return f"another program answers there: {reply[:40]!r}"
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(at, timeout=PROBE_S) as way, anybody.wrap_socket(way):
            return "" if tls else "the program there uses TLS, so the address must begin with tls://"
    except OSError:
        return f"the program there accepts the connection but does not answer within {PROBE_S:g} s"


def _count(wish: str) -> int:
    """How many processes are to be started here; 0 where there is a scheduler."""
    if _ADDRESS.fullmatch(wish):
        return 0
    if not wish.isdecimal():
        raise UsageError(
            f"--workers {wish}: expected a number of processes, or the address of a Dask scheduler",
            hint="e.g. --workers 4, --workers tcp://HOST:8786 or tls://HOST:8786",
        )
    if not 1 <= int(wish) <= MOST:
        raise UsageError(
            f"--workers {wish}: expected 1 to {MOST} processes",
            hint="remove --workers to run the trials in this process",
        )
    return int(wish)


@contextlib.contextmanager
def _started(job: Job, count: int) -> Iterator[Callable[[], Client]]:
    """Processes of this machine, to which nobody else can speak."""
    import dask
    import distributed

    with contextlib.ExitStack() as until:
        folder = until.enter_context(scratch.folder("workers"))
        # no page of Dask's tells another user of this machine what runs here, or is a way to other ports; what is
        # written goes with the folder, and a worker that is started again is told the same
        quiet = {
            "temporary-directory": str(folder),
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
            "distributed.scheduler.preload": [_NO_PAGES, *dask.config.get("distributed.scheduler.preload")],
            "distributed.worker.preload": [_NO_PAGES, *dask.config.get("distributed.worker.preload")],
        }
        # Ctrl-C at a terminal reaches this process alone: threads and processes that it starts inherit what is blocked,
        # but one more, which is there first, for its start unblocks
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            with dask.config.set(quiet):
                cluster = distributed.LocalCluster(
                    n_workers=count,
                    threads_per_worker=job.jobs,
                    memory_limit=0,
                    dashboard_address=None,
                    security=True,
                    silence_logs=logging.CRITICAL,
                    local_directory=str(folder),
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        until.callback(_at_last, cluster.close)

        def connect() -> Client:
            return distributed.Client(cluster, timeout=ANSWER_S, set_as_default=False)

        def end() -> None:
            with connect() as client:
                client.run(children.end, True)

        until.callback(_at_last, end)  # else what they started would go on without them
        yield connect


class Workers:
    """The workers of one scheduler. batch: trials to ask for at once; `admit` settles it."""

    def __init__(self, job: Job, connect: Callable[[], Client]) -> None:
        self._job, self._connect = job, connect
        self._mine = Fingerprint()
        self.batch = 0
        self._reach(0.0)

    def admit(self, stop: StopRequest) -> Iterator[str]:
        """What there is to say of the workers, once those that are there have shown their papers; nothing where the
        user wants an end before. Once one is admitted, others are waited for no longer than PATIENCE_S."""
        self._mine, untrusted = worker.fingerprint(self._job), self._job.author != offline.AUTHOR
        admitted: set[str] = set()
        until = math.inf
        while not admitted or (self._asked.keys() - self._shown.keys() and time.monotonic() < until):
            if stop.asked:
                return
            try:
                if admitted := self._admitted(untrusted):
                    until = min(until, time.monotonic() + PATIENCE_S)
            except (OSError, CancelledError):
                self._reach(PATIENCE_S)
                admitted = set()
            if not admitted or self._asked.keys() - self._shown.keys():
                time.sleep(LOOK_S)
        self.batch = self._job.batch or max(1, sum(self._there.get(address, 0) for address in admitted))
        for address, (why, _) in sorted(self._shown.items()):
            if why:
                yield f"worker {address} is rejected: {why}"
        for address in sorted(self._asked.keys() - self._shown.keys()):
            yield f"worker {address} has not described itself within {PATIENCE_S:g} s; the search starts without it"
        yield f"workers accepted: {len(admitted)}; candidates per round (--batch): {self.batch}"

    def __call__(self, run: StageRun, trials: Sequence[Trial], limit: Limit) -> Generator[TrialResult, None, None]:
        """What each trial comes to, in their order."""
        from distributed import KilledWorker

        sent: dict[str, tuple[Future, Collection[str]]] = {}
        ended, since, most = 0, time.monotonic(), 2 * limit.seconds + OVERDUE_S
        left = [(trial, trial.variant.template.author not in offline.AUTHORS) for trial in trials]
        while left:
            first = left[0][0].key
            try:
                able = {untrusted: self._admitted(untrusted) for untrusted in {untrusted for _, untrusted in left}}
                for trial, untrusted in left:
                    to = able[untrusted]  # Dask takes nobody for anybody
                    if to and (trial.key not in sent or to.isdisjoint(sent[trial.key][1])):
                        sent[trial.key] = self._submit(to, worker.trial, self._job, run, trial, limit), to
                if first not in sent:
                    time.sleep(LOOK_S)
                    continue
                measured = sent[first][0].result(timeout=LOOK_S)
            except KilledWorker as error:
                died = f"{error.allowed_failures + 1} workers ended during this trial; it is skipped"
                measured = TrialResult(Outcome(Kind.CRASH, "search", died))
            except TimeoutError:
                if ended != (ended := sum(future.done() for future, _ in sent.values())):
                    since = time.monotonic()
                elif time.monotonic() - since > most:
                    sent, since = self._without_the_hung(sent, most), time.monotonic()
                continue
            except (OSError, CancelledError):  # the scheduler went away: what it had is sent once more, counted once
                self._reach(PATIENCE_S)
                sent = {}
                continue
            left = left[1:]
            yield measured

    def _without_the_hung(
        self, sent: dict[str, tuple[Future, Collection[str]]], seconds: float
    ) -> dict[str, tuple[Future, Collection[str]]]:
        """What is sent but to the workers that have ended no trial for so long, which get no other. Raises JobError
        where no worker is at one."""
        hung = {future.key: future for future, _ in sent.values() if not future.done()}
        at_work = waiting.within(ANSWER_S, self._client.processing)
        found = [address for address, keys in at_work.items() if hung.keys() & set(keys)]
        why = f"it ended no trial within {seconds:.0f} s"
        for address in found:
            log.warning("worker %s gets no more trials: %s", address, why)
            self._shown[address] = why, why
        if not found:
            raise JobError(f"--workers {self._job.workers}: no trial came back within {seconds:.0f} s", hint=HINT)
        waiting.within(ANSWER_S, lambda: self._client.cancel(list(hung.values())))
        return {key: one for key, one in sent.items() if one[0].key not in hung}

    def close(self) -> None:
        _at_last(lambda: self._client.close(timeout=LOOK_S))  # also where there is none yet

    def _reach(self, patience: float) -> None:
        """The scheduler, which may come back for so many seconds. Raises JobError where it does not, Cancelled where
        the user wants an end."""
        self.close()
        self._there: Mapping[str, int] = {}  # threads by address
        self._asked: dict[str, tuple[Future, float]] = {}  # by address, for papers, and when
        self._shown: dict[str, tuple[str, str]] = {}  # what is wrong with them: for our kernels, for untrusted ones
        end = time.monotonic() + patience
        while True:
            try:
                self._client = self._connect()
                break
            except Exception as error:  # of TLS that is not configured, too
                if time.monotonic() > end:
                    message = (str(error) or type(error).__name__).splitlines()[0]
                    raise JobError(
                        f"--workers {self._job.workers}: no Dask scheduler answers: {message}", hint=HINT
                    ) from None
            waiting.pause(LOOK_S)
        self._met = time.monotonic()

    def _admitted(self, untrusted: bool) -> set[str]:
        """The addresses of those that may carry trials out, of untrusted kernels or of our own; who is new is asked
        for its papers. Raises as `_reach`, JobError where nobody can be admitted."""
        try:
            self._there = waiting.within(ANSWER_S, self._client.nthreads)
        except TimeoutError as error:
            raise ConnectionError("the scheduler does not answer") from error
        there = self._there.keys()
        for address in self._asked.keys() - there:
            del self._asked[address]
            self._shown.pop(address, None)
        for address in there - self._asked.keys():
            self._asked[address] = self._submit([address], worker.fingerprint, self._job), time.monotonic()
        for address in self._asked.keys() - self._shown.keys():
            future, since = self._asked[address]
            if future.done():
                self._shown[address] = self._read(future)
            elif time.monotonic() - since > PAPERS_S:
                self._shown[address] = f"it has not described itself within {PAPERS_S:g} s", ""
        able = {address for address in self._shown if not self._why(address, untrusted)}
        if able or there - self._shown.keys():
            self._met = time.monotonic()
        elif time.monotonic() - self._met > PATIENCE_S or (there and not self.batch):
            whys = [f"{address}: {self._why(address, untrusted)}" for address in sorted(there)]
            reason = "; ".join(whys) or f"none connected within {PATIENCE_S:g} s"
            jail = " for a model's kernels" if untrusted else ""
            raise JobError(f"--workers {self._job.workers}: no worker is usable{jail}: {reason}", hint=HINT)
        return able

    def _why(self, address: str, untrusted: bool) -> str:
        own, jail = self._shown[address]
        return own or (jail if untrusted and not self._job.unsafe else "")

    def _read(self, future: Future) -> tuple[str, str]:
        try:
            found: Fingerprint = waiting.within(ANSWER_S, future.result)
            return found.unlike(self._mine), "; ".join(found.lacks)
        except Exception as error:  # another version of tensorop, or none
            message = error.message if isinstance(error, TensoropError) else f"{type(error).__name__}: {error}"
            return f"it cannot describe itself: {message}"[:300], ""

    def _submit(self, to: Collection[str], call: Callable[..., object], *args: object) -> Future:
        return self._client.submit(call, *args, workers=list(to), allow_other_workers=False, pure=False)


def _at_last(call: Callable[[], object]) -> None:
    """Does what may fail at the end of all, or never end."""
    with contextlib.suppress(Exception):
        waiting.within(ANSWER_S, call, heeding=False)
