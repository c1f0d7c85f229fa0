"""Trials beyond this process: on workers of a Dask cluster, started here or found at its scheduler.

Dask starts, watches and restarts processes, sends trials to them, and to another one where the first was lost. What is
decided here is who may have them: a worker that shows the papers which this process has.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import signal
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING

from tensorop.author import offline
from tensorop.errors import JobError, MissingTool, TensoropError, UsageError
from tensorop.job import worker
from tensorop.job.worker import Papers
from tensorop.model.conditions import Conditions
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Measured, Outcome, Trial
from tensorop.process import children, scratch
from tensorop.process.barrier import Limit
from tensorop.target import Target

if TYPE_CHECKING:
    from distributed import Client, Future

MOST = 256
ANSWER_S = 10.0  # for a scheduler to answer
PATIENCE_S = 60.0  # for a scheduler that went away to come back, and for a first worker
LOOK_S = 0.5  # between looks at who is there
HINT = (
    "docs/workers.md says how to start a scheduler and its workers; the same command goes on where it stopped, also "
    "without --workers"
)
_ADDRESS = re.compile(r"(tcp|tls)://[^\s/]+:\d+")


def check(job: Job, target: Target) -> None:
    """Raises UsageError where the job's wish for workers cannot be."""
    if job.workers and _count(job.workers) >= 0 and not target.side_by_side:
        raise UsageError(
            f"--workers {job.workers}: trials for {target.platform.name} stay on one machine, for the backend "
            f"'{target.name}' gives figures of that machine's clock, or none",
            hint="leave --workers out; --jobs builds side by side",
        )


@contextlib.contextmanager
def crew(job: Job) -> Iterator[Crew | None]:
    """The workers that a job wishes for, until the block ends; None where it wishes for none.

    Raises MissingTool without Dask, JobError where nobody answers.
    """
    if not job.workers:
        yield None
        return
    try:
        import distributed
    except ImportError:
        raise MissingTool(
            "--workers needs Dask, which is not installed", hint="pip install 'tensorop-tuner[cluster]'"
        ) from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what it comes to is said here
    with contextlib.ExitStack() as until:
        if count := _count(job.workers):
            connect = until.enter_context(_started(job, count))
        else:

            def connect() -> Client:
                with ThreadPoolExecutor(1) as apart:  # from a loop that may be running here
                    apart.submit(asyncio.run, _meet(job.workers)).result()
                return distributed.Client(job.workers, timeout=ANSWER_S, set_as_default=False)

        found = Crew(job, connect)
        until.callback(found.close)
        yield found


async def _meet(address: str) -> None:
    """Raises what Dask raises where no scheduler answers; a client that has met nobody would be waited for."""
    from distributed.comm import connect
    from distributed.security import Security

    await (await connect(address, timeout=ANSWER_S, **Security().get_connection_args("client"))).close()


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
            hint="leave it out to carry trials out in this process",
        )
    return int(wish)


@contextlib.contextmanager
def _started(job: Job, count: int) -> Iterator[Callable[[], Client]]:
    """Processes of this machine, to which nobody else can speak."""
    import distributed

    with contextlib.ExitStack() as until:
        folder = until.enter_context(scratch.folder("workers"))
        # Ctrl-C at a terminal reaches this process alone: threads and processes that it starts inherit what is blocked,
        # but one more, which is there first, for its start unblocks
        resource_tracker.ensure_running()
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
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
        until.enter_context(cluster)

        def connect() -> Client:
            return distributed.Client(cluster, timeout=ANSWER_S, set_as_default=False)

        def end() -> None:
            with contextlib.suppress(Exception), connect() as client:
                client.run(children.end, True)

        until.callback(end)  # else what they started would go on without them
        yield connect


class Crew:
    """The workers of one scheduler. batch: trials to ask for at once; `introduced` settles it."""

    def __init__(self, job: Job, connect: Callable[[], Client]) -> None:
        self._job, self._connect = job, connect
        self._mine = Papers()
        self.batch = 0
        self._reach(0.0)

    def introduced(self) -> Iterator[str]:
        """What there is to say of the workers, once all that are there have shown their papers."""
        self._mine, stranger = worker.papers(self._job), self._job.author != offline.AUTHOR
        while not (admitted := self._admitted(stranger)) or self._asked.keys() - self._shown.keys():
            time.sleep(LOOK_S)
        threads = self._client.nthreads()
        self.batch = self._job.batch or max(1, sum(threads.get(address, 0) for address in admitted))
        for address, (why, _) in sorted(self._shown.items()):
            if why:
                yield f"the worker {address} is not admitted: {why}"
        yield f"workers admitted: {len(admitted)}; trials asked for at once (--batch): {self.batch}"

    def __call__(self, conditions: Conditions, trials: Sequence[Trial], limit: Limit) -> Iterator[Measured]:
        """What each trial comes to, in their order."""
        from distributed import CancelledError, KilledWorker

        sent: dict[str, tuple[Future, Collection[str]]] = {}
        waiting = [(trial, trial.variant.template.author not in offline.AUTHORS) for trial in trials]
        while waiting:
            first = waiting[0][0].key
            try:
                able = {stranger: self._admitted(stranger) for stranger in {stranger for _, stranger in waiting}}
                for trial, stranger in waiting:
                    to = able[stranger]  # Dask takes nobody for anybody
                    if to and (trial.key not in sent or to.isdisjoint(sent[trial.key][1])):
                        sent[trial.key] = self._submit(to, worker.trial, conditions, trial, limit), to
                if first not in sent:
                    time.sleep(LOOK_S)
                    continue
                measured = sent[first][0].result(timeout=LOOK_S)
            except KilledWorker as error:
                died = f"{error.allowed_failures + 1} workers ended during this trial; it is skipped"
                measured = Measured(Outcome(Kind.CRASH, "search", died))
            except TimeoutError:
                continue
            except (OSError, CancelledError):  # the scheduler went away: what it had is sent once more, counted once
                self._reach(PATIENCE_S)
                sent = {}
                continue
            waiting = waiting[1:]
            yield measured

    def close(self) -> None:
        with contextlib.suppress(Exception):  # also where there is none yet
            self._client.close(timeout=LOOK_S)

    def _reach(self, patience: float) -> None:
        """The scheduler, which may come back for so many seconds. Raises JobError where it does not, Cancelled where
        the user wants an end."""
        self.close()
        self._asked: dict[str, Future] = {}  # by address, for papers
        self._shown: dict[str, tuple[str, str]] = {}  # what is wrong with them: for our kernels, for a stranger's
        end = time.monotonic() + patience
        while True:
            try:
                self._client = self._connect()
                break
            except Exception as error:  # of TLS that is not configured, too
                if time.monotonic() > end:
                    said = (str(error) or type(error).__name__).splitlines()[0]
                    raise JobError(
                        f"--workers {self._job.workers}: no Dask scheduler answers: {said}", hint=HINT
                    ) from None
            _heed()
            time.sleep(LOOK_S)
        self._met = time.monotonic()

    def _admitted(self, stranger: bool) -> set[str]:
        """The addresses of those that may carry trials out, of a stranger's kernels or of our own; who is new is asked
        for its papers. Raises as `_reach`, JobError where nobody can be admitted."""
        _heed()
        there = self._client.nthreads().keys()
        for address in self._asked.keys() - there:
            del self._asked[address]
            self._shown.pop(address, None)
        for address in there - self._asked.keys():
            self._asked[address] = self._submit([address], worker.papers, self._job)
        for address in self._asked.keys() - self._shown.keys():
            if self._asked[address].done():
                self._shown[address] = self._read(self._asked[address])
        able = {address for address in self._shown if not self._why(address, stranger)}
        if able or there - self._shown.keys():
            self._met = time.monotonic()
        elif time.monotonic() - self._met > PATIENCE_S or (there and not self.batch):
            whys = [f"{address}: {self._why(address, stranger)}" for address in sorted(there)]
            said = "; ".join(whys) or f"none came within {PATIENCE_S:g} s"
            jail = " for a model's kernels" if stranger else ""
            raise JobError(f"--workers {self._job.workers}: no worker is admitted{jail}: {said}", hint=HINT)
        return able

    def _why(self, address: str, stranger: bool) -> str:
        own, jail = self._shown[address]
        return own or (jail if stranger and not self._job.unsafe else "")

    def _read(self, future: Future) -> tuple[str, str]:
        try:
            found: Papers = future.result()
            return found.unlike(self._mine), "; ".join(found.lacks)
        except Exception as error:  # another version of tensorop, or none
            said = error.message if isinstance(error, TensoropError) else f"{type(error).__name__}: {error}"
            return f"it cannot be asked: {said}"[:300], ""

    def _submit(self, to: Collection[str], call: Callable[..., object], *args: object) -> Future:
        return self._client.submit(call, *args, workers=list(to), allow_other_workers=False, pure=False)


def _heed() -> None:
    if children.ending():
        raise children.Cancelled
