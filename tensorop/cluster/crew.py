"""Runs trials on workers of a Dask cluster, which are started here or connected to a given scheduler.

Dask starts, watches and restarts processes, and sends trials to them; a trial of a lost worker goes to another one.
This module decides which workers get trials: those with the same fingerprint as this process.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
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
from tensorop.model.trial import Kind, Limit, Outcome, Stage, Trial, TrialResult
from tensorop.process import children, scratch, waiting
from tensorop.process.stopping import StopRequest
from tensorop.target import Target
from tensorop.trial import company

if TYPE_CHECKING:
    from distributed import Client, Future

MOST = 256
# Limits of waiting, in seconds
ANSWER_S = 10.0  # for an answer of the scheduler
PATIENCE_S = 60.0  # for a lost scheduler to return, for a first worker, and for others after the first
PAPERS_S = 900.0  # for a worker's fingerprint; the worker may have to download a compiler first
OVERDUE_S = 300.0  # in addition to twice the limit of a trial, until one of a batch ends
PROBE_S = 2.0  # for each probe of a server that is no scheduler
LOOK_S = 0.5  # between two polls of the workers
HINT = (
    "docs/how-to/distribute-trials.md shows how to start a scheduler and workers; "
    "run the same command again to resume, also "
    "without --workers"
)
# Dask preload of schedulers and workers: closes the port of Dask's HTTP server
_NO_PAGES = "def dask_setup(server): server.http_server.stop()"
log = logging.getLogger("tensorop")
_ADDRESS = re.compile(r"(tcp|tls)://[^\s/]+:\d+")


def check(job: Job, target: Target) -> None:
    """Raises UsageError if the job cannot use workers."""
    if _count(job.workers) >= 0 and not target.side_by_side:
        raise UsageError(
            f"--workers does not work with platform '{target.platform.name}': its kernels are timed on one machine, "
            "and timings from several machines are not comparable",
            hint="use --jobs to build in parallel, or choose a simulated platform",
        )


@contextlib.contextmanager
def crew(job: Job) -> Iterator[Workers]:
    """The workers of a job, until the block ends.

    Raises MissingTool without Dask, JobError if no scheduler answers.
    """
    try:
        import distributed
    except ImportError:
        raise MissingTool(
            "--workers needs Dask, which is not installed", hint="pip install distributed cryptography"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # errors are reported here
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
    """Checks that a scheduler answers, since a client without one would wait.

    Raises ConnectionError, which describes the server that answers instead.
    """
    from distributed.comm import connect
    from distributed.security import Security

    async def greet() -> None:
        async with asyncio.timeout(ANSWER_S):  # Dask's timeout does not cover the handshake
            await (await connect(address, timeout=ANSWER_S, **Security().get_connection_args("client"))).close()

    def call() -> None:
        # Dask resolves names on a thread, for which the process would wait at its end
        socket.getaddrinfo(*_host(address))
        asyncio.run(greet())

    try:
        waiting.within(2 * ANSWER_S, call)
    except Exception as error:  # also of TLS that is not configured
        instead = waiting.within(5 * PROBE_S, lambda: _instead(address))
        raise ConnectionError(instead or str(error) or f"no answer within {ANSWER_S:g} s") from error


def _host(address: str) -> tuple[str, int]:
    host, _, port = address.partition("://")[2].rpartition(":")
    return host.strip("[]"), int(port)


def _instead(address: str) -> str:
    """A description of the server at an address that is no scheduler; "" if unknown."""
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
    if reply and not reply.startswith(b"\x15\x03"):  # a TLS alert
        return f"another program answers there: {reply[:40]!r}"
    anybody = ssl.create_default_context()
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        with socket.create_connection(at, timeout=PROBE_S) as way, anybody.wrap_socket(way):
            return "" if tls else "the program there uses TLS, so the address must begin with tls://"
    except OSError:
        return f"the program there accepts the connection but does not answer within {PROBE_S:g} s"


def _count(wish: str) -> int:
    """Number of processes to start here; 0 for the address of a scheduler."""
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
    """Starts a scheduler and workers on this machine; TLS credentials of this process protect their connections."""
    import dask
    import distributed

    with contextlib.ExitStack() as until:
        folder = until.enter_context(scratch.folder("workers"))
        # without Dask's web pages other users of this machine cannot see what runs here, or reach other ports; all
        # files are in the folder, which is deleted; a restarted worker gets the same settings
        quiet = {
            "temporary-directory": str(folder),
            "distributed.scheduler.http.routes": [],
            "distributed.worker.http.routes": [],
            "distributed.scheduler.preload": [_NO_PAGES, *dask.config.get("distributed.scheduler.preload")],
            "distributed.worker.preload": [_NO_PAGES, *dask.config.get("distributed.worker.preload")],
        }
        # Ctrl-C at a terminal must reach this process only: new threads and processes inherit the blocked signal. The
        # resource tracker is started before, since its start unblocks the signal.
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

        until.callback(_at_last, end)  # ends the workers' child processes, which would continue otherwise
        yield connect


def _units(run: StageRun, trials: Sequence[Trial], threads: int) -> list[tuple[Sequence[Trial], bool]]:
    """The trials in their order, shipped micro-kernels in parts that share a program, and whether they are untrusted.

    threads: of all workers; 0: every trial alone
    """
    shared = threads > 0 and run.stage is Stage.MICRO
    size = min(company.MOST, -(-len(trials) // threads)) if shared else 1
    found: list[tuple[Sequence[Trial], bool]] = []
    for author, group in itertools.groupby(trials, key=lambda trial: trial.variant.template.author):
        several, untrusted = list(group), author not in offline.AUTHORS
        step = size if author == offline.AUTHOR else 1
        found += [(several[at : at + step], untrusted) for at in range(0, len(several), step)]
    return found


class Workers:
    """The workers of one scheduler."""

    def __init__(self, job: Job, connect: Callable[[], Client]) -> None:
        self._job, self._connect = job, connect
        self._mine = Fingerprint()
        self.batch = 0  # trials to ask for at once; set by `admit`
        self._executes = False  # programs on its target, which several kernels can share; set by `admit`
        self._reach(0.0)

    def admit(self, stop: StopRequest) -> Iterator[str]:
        """Waits for the fingerprints of all workers, and yields remarks about them; none after a stop request.

        After the first admitted worker it waits at most PATIENCE_S for the others.
        """
        self._mine, untrusted = worker.fingerprint(self._job), self._job.author != offline.AUTHOR
        self._executes = not worker.simulated(self._job)
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
        """The result of each trial, in the order of `trials`."""
        from distributed import KilledWorker

        sent: dict[str, tuple[Future, Collection[str]]] = {}  # by the key of a unit's first trial
        left = _units(run, trials, sum(self._there.values()) if self._executes else 0)
        largest = max(len(unit) for unit, _ in left)
        ended, since, most = 0, time.monotonic(), 2 * largest * limit.seconds + OVERDUE_S
        while left:
            unit, of_others = left[0]
            first = unit[0].key
            try:
                able = {untrusted: self._admitted(untrusted) for untrusted in {untrusted for _, untrusted in left}}
                for several, untrusted in left:
                    to, key = able[untrusted], several[0].key  # for Dask an empty list means any worker
                    if to and (key not in sent or to.isdisjoint(sent[key][1])):
                        sent[key] = self._submit(to, worker.trials, self._job, run, several, limit), to
                if first not in sent:
                    time.sleep(LOOK_S)
                    continue
                measured = sent[first][0].result(timeout=LOOK_S)
            except KilledWorker as error:
                if len(unit) > 1:  # one of them, and each is tried alone
                    del sent[first]
                    left = [*(([trial], of_others) for trial in unit), *left[1:]]
                    continue
                died = f"{error.allowed_failures + 1} workers ended during this trial; it is skipped"
                measured = [TrialResult(Outcome(Kind.CRASH, "search", died))]
            except TimeoutError:
                if ended != (ended := sum(future.done() for future, _ in sent.values())):
                    since = time.monotonic()
                elif time.monotonic() - since > most:
                    sent, since = self._without_the_hung(sent, most), time.monotonic()
                continue
            except (OSError, CancelledError):  # the scheduler was lost: its trials are sent again, each is counted once
                self._reach(PATIENCE_S)
                sent = {}
                continue
            left = left[1:]
            yield from measured

    def _without_the_hung(
        self, sent: dict[str, tuple[Future, Collection[str]]], seconds: float
    ) -> dict[str, tuple[Future, Collection[str]]]:
        """Cancels trials on workers that ended none for so long, and excludes these workers; returns the other trials.

        Raises JobError if no worker has a trial.
        """
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
        _at_last(lambda: self._client.close(timeout=LOOK_S))  # the client may not exist yet

    def _reach(self, patience: float) -> None:
        """Connects to the scheduler, with retries for `patience` seconds.

        Raises JobError if none answers, Cancelled after a stop request.
        """
        self.close()
        self._there: Mapping[str, int] = {}  # address -> threads
        self._asked: dict[str, tuple[Future, float]] = {}  # address -> request of the fingerprint, and its time
        self._shown: dict[str, tuple[str, str]] = {}  # address -> fault, fault for untrusted kernels
        end = time.monotonic() + patience
        while True:
            try:
                self._client = self._connect()
                break
            except Exception as error:  # also of TLS that is not configured
                if time.monotonic() > end:
                    message = (str(error) or type(error).__name__).splitlines()[0]
                    raise JobError(
                        f"--workers {self._job.workers}: no Dask scheduler answers: {message}", hint=HINT
                    ) from None
            waiting.pause(LOOK_S)
        self._met = time.monotonic()

    def _admitted(self, untrusted: bool) -> set[str]:
        """Addresses of the workers that may run trials. untrusted: trials of untrusted kernels

        New workers are asked for their fingerprint. Raises as `_reach`, and JobError if no worker can be admitted.
        """
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
        except Exception as error:  # the worker has another version of tensorop, or none
            message = error.message if isinstance(error, TensoropError) else f"{type(error).__name__}: {error}"
            return f"it cannot describe itself: {message}"[:300], ""

    def _submit(self, to: Collection[str], call: Callable[..., object], *args: object) -> Future:
        return self._client.submit(call, *args, workers=list(to), allow_other_workers=False, pure=False)


def _at_last(call: Callable[[], object]) -> None:
    """Makes a final call that may fail or hang."""
    with contextlib.suppress(Exception):
        waiting.within(ANSWER_S, call, heeding=False)
