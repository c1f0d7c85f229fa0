"""The findings about a library: each kind of fault of a function once, with the smallest call, and what calls share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from tensorop.blas import program
from tensorop.blas.binding import BlasLibrary
from tensorop.blas.call import BlasCase
from tensorop.blas.routines import BlasRoutine, Role
from tensorop.blas.ruling import BlasFault, Ruled

_DEADLY = (BlasFault.CRASH, BlasFault.HANG, BlasFault.OUTSIDE)
_CHANCE = 0.02  # that all failing calls share a property which does not matter
_PLAIN = {0: "0", 1: "1", -1: "-1"}


def traits(ruled: Ruled) -> dict[str, str]:
    """The properties of a call that failing calls may share, besides its sizes."""
    case = ruled.case
    found = {"interface": case.layout, **case.flags}
    for one in case.routine.of_role(Role.INCREMENT):
        step = case.steps.get(one.of, 1)
        found[one.name] = "negative" if step < 0 else "0" if step == 0 else "1" if step == 1 else "above 1"
    for one in case.routine.of_role(Role.LEADING):
        found[one.name] = "larger than needed" if case.padding.get(one.of) else "the least"
    found |= {name: _PLAIN.get(value, "other") for name, value in case.scalars.items()}  # type: ignore[call-overload]
    found["two inputs"] = "in the same memory" if case.shared else "apart"
    found["operands"] = "at half an element" if case.halved else "aligned to elements"
    found["call"] = (
        ("the first", "the second of two equal ones")[ruled.again] if ruled.again < 2 else "one of many equal ones"
    )
    found["callers"] = "one" if ruled.together == 1 else "several at once, with small stacks"
    found["process"] = "forked after calls" if ruled.after_fork else "the first"
    found["threads"], found["VLEN"] = str(ruled.threads), str(ruled.vlen)
    return found


@dataclass
class Spread:
    """How often each property and size had which value over some calls."""

    calls: int = 0
    values: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))
    sizes: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))

    def add(self, ruled: Ruled) -> None:
        self.calls += 1
        for name, value in traits(ruled).items():
            self.values[name][value] += 1
        for name, size in ruled.case.sizes.items():
            self.sizes[name][size] += 1


def _rank(case: BlasCase) -> tuple[float, ...]:
    """Smaller calls first, of equal ones the plainer one."""
    plain = sum(case.padding.values()) + sum(abs(step - 1) for step in case.steps.values())
    return sum(case.sizes.values()), plain, sum(value != 1 for value in case.scalars.values())


def _order(one: Ruled) -> tuple[object, ...]:
    """Calls that a program shows more surely first: of one caller, and repeated ones, which do not depend on others."""
    return one.together, one.after_fork, not one.again, _rank(one.case)


@dataclass
class FunctionRecord:
    """What the calls of a function showed so far."""

    routine: BlasRoutine
    dtype: str
    ratio: float = 0.0  # largest error over its bound, of right results
    all: Spread = field(default_factory=Spread)
    failing: dict[BlasFault, Spread] = field(default_factory=lambda: defaultdict(Spread))
    smallest: dict[BlasFault, Ruled] = field(default_factory=dict)
    differs: set[str] = field(default_factory=set)  # behaviours of right results, by Ruled.differs
    reported: int = 0  # wrong arguments that were reported by a number
    lock: Lock = field(default_factory=Lock, repr=False)  # batches of a function run side by side

    @property
    def function(self) -> str:
        return self.routine.function(self.dtype)

    @property
    def deaths(self) -> int:
        return sum(self.failing[fault].calls for fault in _DEADLY if fault in self.failing)

    @property
    def hung(self) -> bool:
        return BlasFault.HANG in self.failing

    @property
    def useless(self) -> bool:
        """Whether each call was a crash."""
        return BlasFault.CRASH in self.failing and self.failing[BlasFault.CRASH].calls == self.all.calls

    def add(self, one: Ruled) -> None:
        with self.lock:
            self._add(one)

    def _add(self, one: Ruled) -> None:
        self.all.add(one)
        self.reported += bool(one.case.wrong and one.fault in (None, BlasFault.REPORT))
        if one.fault is None:
            self.ratio = max(self.ratio, one.ratio)
            self.differs |= {one.differs} - {""}
            return
        self.failing[one.fault].add(one)
        known = self.smallest.get(one.fault)
        if known is None or _order(one) < _order(known):
            self.smallest[one.fault] = one

    def shared(self, fault: BlasFault) -> tuple[str, ...]:
        """The properties of all failing calls that so many calls would hardly share by chance."""
        failing, found = self.failing[fault], []

        def telling(others: int) -> bool:
            return (others / self.all.calls) ** failing.calls < _CHANCE

        for name, values in failing.values.items():
            if len(values) == 1 and telling(self.all.values[name][value := next(iter(values))]):
                found.append(f"{name} {value}")
        for name, sizes in failing.sizes.items():
            least = min(sizes)
            if telling(sum(count for size, count in self.all.sizes[name].items() if size >= least)):
                found.append(f"{name} >= {least}")
        return tuple(found)


@dataclass(frozen=True)
class BlasFinding:
    """One kind of fault of a function."""

    function: str
    fault: BlasFault
    calls: int  # that show it
    shared: tuple[str, ...]  # what they share, and other calls do not
    smallest: str  # the smallest call that shows it
    detail: str
    program: str  # C that makes this call again


@dataclass(frozen=True)
class JudgedFunction:
    """The judgement on one function."""

    function: str
    calls: int
    ratio: float  # largest error of right results, over its bound
    findings: tuple[BlasFinding, ...]
    differs: tuple[str, ...] = ()  # behaviours in which right libraries differ; no faults


@dataclass(frozen=True)
class BlasJudgement:
    """The judgement on a library."""

    library: BlasLibrary
    functions: tuple[JudgedFunction, ...]
    seed: int
    seconds: float
    remarks: tuple[str, ...] = ()

    @property
    def findings(self) -> tuple[BlasFinding, ...]:
        return tuple(finding for one in self.functions for finding in one.findings)

    @property
    def ok(self) -> bool:
        return not self.findings

    @property
    def differs(self) -> Mapping[str, tuple[str, ...]]:
        """The functions of each behaviour in which right libraries differ."""
        found: dict[str, tuple[str, ...]] = {}
        for one in self.functions:
            for how in one.differs:
                found[how] = (*found.get(how, ()), one.function)
        return dict(sorted(found.items()))

    def to_json(self) -> Mapping[str, Any]:
        return {
            "library": str(self.library.path),
            "arch": self.library.arch,
            "interfaces": [one.pattern for one in self.library.interfaces()],
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "ok": self.ok,
            "remarks": list(self.remarks),
            "functions": [
                {
                    "function": one.function,
                    "calls": one.calls,
                    "error_over_bound": round(one.ratio, 4),
                    "differs": list(one.differs),
                    "findings": [
                        {
                            "fault": finding.fault.value,
                            "calls": finding.calls,
                            "shared": list(finding.shared),
                            "smallest": finding.smallest,
                            "detail": finding.detail,
                            "program": finding.program,
                        }
                        for finding in one.findings
                    ],
                }
                for one in self.functions
            ],
        }  # fmt: skip


def judged(
    library: BlasLibrary, record: FunctionRecord, silent: bool, variables: Sequence[tuple[str, str]]
) -> JudgedFunction:
    """A function's judgement.

    silent: the library reports no wrong argument in a way that is read here; variables: further environment of it
    """
    faults = [one for one in record.smallest if not (silent and one is BlasFault.SILENT)]
    findings = tuple(_finding(library, record, fault, variables) for fault in faults)
    return JudgedFunction(record.function, record.all.calls, record.ratio, findings, tuple(sorted(record.differs)))


def _finding(
    library: BlasLibrary, record: FunctionRecord, fault: BlasFault, variables: Sequence[tuple[str, str]]
) -> BlasFinding:
    one = record.smallest[fault]
    return BlasFinding(
        record.function,
        fault,
        record.failing[fault].calls,
        record.shared(fault),
        described(one),
        one.detail,
        program.write(library, one, variables),
    )


def described(ruled: Ruled) -> str:
    """A call in one line."""
    case = ruled.case
    words: Sequence[str] = [
        case.layout,
        *(f"{name}={letter}" for name, letter in case.flags.items()),
        *(f"{name}={size}" for name, size in case.sizes.items()),
        *(f"{name}={_shown(value)}" for name, value in case.scalars.items()),
        *(f"ld{name}={case.leading(name)}" for name in case.padding),
        *(f"inc{name}={step}" for name, step in case.steps.items()),
        *(["both inputs in the same memory"] if case.shared else []),
        *(["operands at half an element"] if case.halved else []),
        *([f"wrong {case.wrong}"] if case.wrong else []),
        *([f"threads={ruled.threads}"] if ruled.threads > 1 else []),
        *([f"VLEN={ruled.vlen}"] if ruled.vlen else []),
        *([f"call {ruled.again + 1} of equal ones"] if ruled.again > 1 else ["second call"] if ruled.again else []),
        *(["after fork"] if ruled.after_fork else []),
        *([f"beside {ruled.together - 1} others at once"] if ruled.together > 1 else []),
    ]
    return " ".join(words)


def _shown(value: complex) -> str:
    return f"{value.real:g}" if complex(value).imag == 0 else f"{value:g}"
