"""Judges a library: makes the calls of each function in rounds until the budget ends, and collects its faults."""

from __future__ import annotations

import itertools
import math
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import Lock

from tensorop.blas import binding, grid, oracle, ruling
from tensorop.blas.binding import BlasLibrary
from tensorop.blas.call import Array, BlasCase, call
from tensorop.blas.findings import BlasJudgement, FunctionRecord, judged
from tensorop.blas.routines import BlasRoutine
from tensorop.blas.ruling import BlasFault
from tensorop.errors import JobError, UsageError
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Check, Hello, TargetLibrary
from tensorop.runners.session import Guest
from tensorop.toolchain import harness

THREAD_VARIABLES = tuple(
    f"{name}_NUM_THREADS" for name in ("OPENBLAS", "OMP", "MKL", "BLIS", "GOTO", "VECLIB", "TENSOROP")
)
_CALL_S = 15.0
_MOST_DEATHS = 6  # of a function; each costs a new process
_TWICE = 3  # each so many calls are made twice in one process
_MANY = 128  # so often one call of each function is made in a process of its own
_AT_ONCE = 4  # so many calls of each batch are made again at once
_BATCH = 48  # calls of one process at most
_MOST_HANGS = 2  # of a batch; then its other calls are not made
_MOST_FORK_HANGS = 2  # then no call is made after fork; each costs _CALL_S
_MOST_SPARE = 0.1  # of the budget; a last batch may take so long
_SILENT = "the library reports wrong arguments neither by xerbla nor on stderr, so the numbers are not judged"
_SHORT = (
    "not all calls at corners and at edges of tiles were made: the calls that are made in any case took "
    "{least:.0f} s of --budget {budget:g}s; give a longer one"
)
_LEAST_ROUNDS = 2  # those that have all flags and large sizes: made in each set-up, whatever they take
_PLANNED_ROUNDS = 4  # these, corners and tile edges; all others are drawn


@dataclass(frozen=True)
class Judging:
    """What is judged, and how."""

    library: BlasLibrary
    functions: Sequence[tuple[BlasRoutine, str]]
    runner: Runner
    vlens: Sequence[int] = (0,)  # bits; 0: the target's own
    threads: int = 1
    budget_s: float = 180.0
    seed: int = 0
    jobs: int = 2
    variables: tuple[tuple[str, str], ...] = ()  # further environment of the library
    unsafe: bool = False  # also without a jail


@dataclass(frozen=True)
class _Batch:
    record: FunctionRecord
    cases: Sequence[BlasCase]
    guests: Sequence[Guest]  # set-ups that make the calls
    peers: Sequence[FunctionRecord]  # all functions of the library
    forked: bool = False  # the largest call is made again after fork
    times: int = 1  # so often each call is made, where that is more than usual

    @property
    def forks(self) -> bool:
        return self.forked and sum(BlasFault.FORK in one.failing for one in self.peers) < _MOST_FORK_HANGS


def judge(of: Judging, show: Callable[[str], None]) -> BlasJudgement:
    """The judgement on all chosen functions that the library has, in the table's order.

    Raises UsageError if the library cannot be loaded or has none of the functions, JobError if the target is lost.
    """
    begin = time.monotonic()
    records = [FunctionRecord(routine, dtype) for routine, dtype in of.functions if of.library.layouts(routine, dtype)]
    if not records:
        raise UsageError(f"{of.library.path} has none of the chosen routines", hint="see --routines and --dtype")
    adapter = binding.adapter(of.library)
    program = harness.dynamic_program(of.library.arch, adapter, exports=True).path
    set_ups = dict.fromkeys([*((vlen, 1) for vlen in of.vlens), (of.vlens[0], of.threads)])
    guests = [_guest(of, vlen, threads) for vlen, threads in set_ups]
    for guest in guests:
        _load(of, partial(session.hello, of.runner, program, guest=guest))
    show(f"judging {len(records)} functions, {len(guests)} set-ups")
    turns = _Turns(of, records, guests)
    with ThreadPoolExecutor(max(1, of.jobs)) as pool:
        for number in range(_LEAST_ROUNDS):
            batches = [batch for record in turns.living for batch in turns.round(record, number)]
            [*pool.map(partial(_run, of, program), batches)]
            least_s = time.monotonic() - begin
            show(f"round {number + 1} of {_LEAST_ROUNDS} that are made in any case: {least_s:.0f} s")
        [*pool.map(lambda _: turns.spend(partial(_run, of, program), begin + of.budget_s), range(max(1, of.jobs)))]
    if all(record.useless for record in records):
        raise _unusable(of, next(iter(records[0].smallest.values())).detail)
    silent = not any(record.reported for record in records)
    remarks = [_SILENT] if silent and any(BlasFault.SILENT in record.failing for record in records) else []
    if not turns.planned:
        remarks.append(_SHORT.format(budget=of.budget_s, least=least_s))
    functions = tuple(judged(of.library, record, silent, of.variables) for record in records)
    return BlasJudgement(of.library, functions, of.seed, time.monotonic() - begin, tuple(remarks))


def _load(of: Judging, start: Callable[[], Hello | None]) -> None:
    try:
        greeting = start()
    except JobError as error:
        raise _unusable(of, error.message) from None
    if greeting is None:
        raise _unusable(of, "it did not end loading within 20 s")
    if not of.unsafe and (weak := session.weaknesses(of.runner, greeting)):
        raise UsageError(f"the library is not run: {weak[0]}", hint="add --unsafe if you trust the library")


def _unusable(of: Judging, why: str) -> UsageError:
    return UsageError(f"--blas {of.library.path} cannot be used: {why}", hint="check the library with ldd")


def _guest(of: Judging, vlen: int, threads: int) -> Guest:
    path = of.runner.place(of.library.path)
    variables = {name: str(threads) for name in THREAD_VARIABLES}
    variables["MKL_THREADING_LAYER"] = "SEQUENTIAL" if threads == 1 else "GNU"
    if not of.runner.far:  # some libraries load parts of themselves by their names
        variables["LD_LIBRARY_PATH"] = str(of.library.path.parent)
    made = tuple({**variables, **dict(of.variables)}.items())
    return Guest(vlen or None, (TargetLibrary(path, session.JUDGED, ""),), made, threads=threads)


class _Turns:
    """Which function's calls come next: first the planned rounds of all, and each time the one with the least time."""

    def __init__(self, of: Judging, records: Sequence[FunctionRecord], guests: Sequence[Guest]) -> None:
        self._of, self._records, self._guests = of, records, guests
        self._lock = Lock()
        self._left: dict[str, deque[_Batch]] = {record.function: deque() for record in records}
        self._rounds = dict.fromkeys(self._left, _LEAST_ROUNDS)  # begun, of each function
        self._spent_s = dict.fromkeys(self._left, 0.0)
        self._longest_s = 0.0  # of a batch

    @property
    def planned(self) -> bool:
        """Whether all planned calls were made."""
        return not any(map(self._unplanned, self.living))

    def _unplanned(self, record: FunctionRecord) -> bool:
        begun, left = self._rounds[record.function], self._left[record.function]
        return begun < _PLANNED_ROUNDS or (begun == _PLANNED_ROUNDS and bool(left))

    @property
    def living(self) -> list[FunctionRecord]:
        """The functions that are still called."""
        return [record for record in self._records if not record.hung and record.deaths < _MOST_DEATHS]

    def round(self, record: FunctionRecord, number: int) -> list[_Batch]:
        """The batches of a round: the first ones in all set-ups, further ones in one set-up after the other."""
        first = number < _LEAST_ROUNDS
        chosen = self._guests if first else self._guests[(number - _LEAST_ROUNDS) % len(self._guests) :][:1]
        # Elsewhere a child that hangs might outlive its judgement.
        forks = number == _LEAST_ROUNDS - 1 and self._of.runner.here
        layouts = self._of.library.layouts(record.routine, record.dtype)
        cases = [*grid.cases(record.routine, record.dtype, layouts, self._of.seed, number)]
        batches = [
            _Batch(record, cases[at : at + _BATCH], chosen, self._records, forks) for at in range(0, len(cases), _BATCH)
        ]
        if number == _LEAST_ROUNDS:
            plain = [one for one in cases if not one.wrong and 0 not in (*one.sizes.values(), *one.scalars.values())]
            batches.append(_Batch(record, plain[:1], chosen, self._records, times=_MANY))
        return batches

    def spend(self, run: Callable[[_Batch], float], end: float) -> None:
        """Runs batches until the end (time.monotonic). Several threads may."""
        # Batches that begin before the end should not take much longer than the budget.
        while time.monotonic() < end - min(self._longest_s, _MOST_SPARE * self._of.budget_s):
            with self._lock:
                batch = self._next()
            if batch is None:
                return
            taken_s = run(batch)
            with self._lock:
                self._longest_s = max(self._longest_s, taken_s)
                self._spent_s[batch.record.function] += taken_s

    def _next(self) -> _Batch | None:
        if not (living := self.living):
            return None
        record = min(living, key=lambda one: (not self._unplanned(one), self._spent_s[one.function]))
        left = self._left[record.function]
        while not left:
            left.extend(self.round(record, self._rounds[record.function]))
            self._rounds[record.function] += 1
        return left.popleft()


def _run(of: Judging, program: Path, batch: _Batch) -> float:
    """Makes the calls of a batch in each of its set-ups: in one process, and a new one after each that dies.

    Returns how long it took (s).
    """
    begin = time.monotonic()
    record, known = batch.record, [*map(replace, batch.cases)]  # copies, whose memory goes with this batch
    wanted: dict[int, Mapping[str, oracle.Expected]] = {
        id(case): {} if case.wrong else oracle.expected(case) for case in known
    }
    made: list[tuple[tuple[BlasCase, ...], int]] = []  # calls, and how often they were made before
    for number, case in enumerate(known):
        twice = number % _TWICE == 0 and not case.wrong
        made += [((case,), again) for again in range(max(batch.times, 1 + twice))]
    right = [case for case in known if not case.wrong]
    several = sorted(right, key=lambda case: math.prod(case.sizes.values()))[-_AT_ONCE:]  # those that take longest
    if len(several) == _AT_ONCE:
        made.append((tuple(several), 0))
    fork_at = len(made) if several and batch.forks else -1
    if fork_at >= 0:
        made.append(((several[-1],), 0))
    requests = [Check(call(cases, number == fork_at)) for number, (cases, _) in enumerate(made)]
    parts = list(itertools.accumulate(not again for _, again in made))
    clean: dict[int, Mapping[str, Array]] = {}  # by call: what it left without a fault
    for at, guest in enumerate(batch.guests):
        if record.hung or (at and record.deaths >= _MOST_DEATHS):
            break
        replies = session.run(
            of.runner, program, requests, timeout_s=_CALL_S, guest=guest, parts=parts, most_hangs=_MOST_HANGS
        )
        first: BlasFault | None = None
        for place, ((cases, again), reply) in enumerate(zip(made, replies, strict=True)):
            for number, case in enumerate(cases if reply.made else ()):
                one = ruling.ruled(case, number, reply, wanted[id(case)], again, clean.get(id(case)))
                if one.fault is None:
                    clean.setdefault(id(case), ruling.left(case, number, reply))
                first = one.fault if not again else first
                if place == fork_at:
                    fault = BlasFault.FORK if one.fault is BlasFault.HANG else one.fault
                    one = replace(one, after_fork=True, fault=fault)
                repeats = 0 if first else again  # a fault of the first call is not one of those after it
                record.add(
                    replace(one, again=repeats, threads=guest.threads, vlen=guest.vlen or 0, together=len(cases))
                )
    return time.monotonic() - begin
