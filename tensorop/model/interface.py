"""The terms of an operator's generated parts: what operator.yaml and reference.py determine of its C functions.

The templates in native/operator/ and the generated call from Python use them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from tensorop.model.call import Access
from tensorop.model.contract import OF_KERNEL, Contract
from tensorop.model.expression import parse
from tensorop.model.shape import LARGEST

if TYPE_CHECKING:
    from tensorop.model.operator import Operator

_CALL = "call->"  # how generated C writes the struct of a call


@dataclass(frozen=True)
class CallMember:
    """A member of the struct that describes a call."""

    name: str
    c: str  # its type
    slot: str  # its place in the harness's call, as slots.h names it
    meaning: str


@dataclass(frozen=True)
class CallOperand:
    """An operand's pointer among the arguments."""

    name: str
    types: Mapping[str, str]  # dtype -> C type of an element
    written: bool
    shape: str  # for comments
    elements: str  # C: elements from its first to its last one
    step: str  # C: elements from one index of the divided dimension to the next; empty: all threads share the operand


@dataclass(frozen=True)
class CallFault:
    """A reason to refuse a call. Its status is its number in the list, from 1."""

    name: str  # of its status
    sentence: str
    holds: str  # C in brackets: the condition of legal calls; empty: the dispatch tests it


@dataclass(frozen=True)
class Interface:
    """The C functions of one operator."""

    operator: str
    description: str
    members: tuple[CallMember, ...]
    words: Mapping[str, int]  # constants for the values of flags
    operands: tuple[CallOperand, ...]
    faults: tuple[CallFault, ...]
    features: tuple[str, ...]  # arguments of `choose()`, in its order
    blocking: tuple[str, ...]  # blocking tunables whose values are numbers
    runtime: tuple[str, ...]  # those of them that each call of a candidate sets
    workspace: bool  # whether the driver needs a workspace
    elements: str  # of it, in C over uint64_t names; empty: the driver counts them
    counted: Mapping[str, str]  # name in `elements` -> where its value is: call, blocking or kernel
    divided: str  # the dimension that threads divide; empty: none
    work: str  # C: multiply-adds of a call

    @cached_property
    def names(self) -> Mapping[str, object]:
        """For templates."""
        return asdict(self)

    @staticmethod
    def of(operator: Operator) -> Interface:
        """Raises SpecError for an expression that has no equivalent in C."""
        contract, threads = operator.reference, operator.threads
        known = (*operator.shapes.names, *contract.flags)
        operands = []
        for name, operand in contract.operands.items():
            elements, step = _size(operand.shape, known), ""
            if name in contract.leading:
                number, length = operand.lines
                others = f"minus({_size(number, known)}, 1, &lost)"
                elements = f"plus({_c(length, known)}, times({others}, {_CALL}ld_{name}, &lost), &lost)"
            if threads is not None and operand.shape[:1] == (threads.dim,):
                step = _size(operand.shape[1:], known)
                if name in contract.leading:
                    step = f"times({_size(operand.shape[1:-1], known)}, {_CALL}ld_{name}, &lost)"
            types = {dtype: operand.number(dtype).c for dtype in operator.dtypes}
            shape = f"[{', '.join(operand.shape)}]".replace("//", "/")
            operands.append(CallOperand(name, types, operand.access is not Access.IN, shape, elements, step))
        names = (*known, *operator.blocking.values, *OF_KERNEL)
        count = parse(contract.elements, dict.fromkeys(names, int)) if contract.elements else None
        blocking = tuple(n for n, of in operator.blocking.values.items() if all(isinstance(one, int) for one in of))
        return Interface(
            operator.name,
            operator.description,
            tuple(_members(operator)),
            {f"{flag}_{word}".upper(): of for flag, words in _named(contract).items() for word, of in words.items()},
            tuple(operands),
            tuple(_faults(operator, known)),
            operator.seen,
            blocking,
            tuple(name for name in operator.runtime if name in blocking),
            _has_workspace(contract),
            count.in_c() if count else "",
            {name: _place(name, known) for name in sorted(count.names)} if count else {},
            threads.dim if threads else "",
            _c(threads.work, known) if threads else "0",
        )


def _members(operator: Operator) -> list[CallMember]:
    shapes, contract = operator.shapes, operator.reference
    found = [CallMember(name, "int64_t", f"dim[DIM_{name}]", "1 or more") for name in shapes.dims]
    for name, usual in shapes.attributes.items():
        found.append(CallMember(name, "int64_t", f"dim[DIM_{name}]", f"0 or more, usually {usual}"))
    found += [
        CallMember(f"ld_{name}", "int64_t", f"ld[LD_{name}]", f"elements from one line of {name} to the next")
        for name in contract.leading
    ]
    found += [CallMember(name, "int", f"flag[FLAG_{name}]", _values(contract, name)) for name in contract.flags]
    for name, number in contract.parameters.items():
        usual = number if isinstance(number, str) else f"{number:g}"
        found.append(CallMember(name, "double", f"scalar[SCALAR_{name}]", f"usually {usual}"))
    return found


def _faults(operator: Operator, known: tuple[str, ...]) -> list[CallFault]:
    """All faults in the order of the tests. A test may rely on those before it."""
    shapes, contract = operator.shapes, operator.reference
    found = []
    for name in shapes.names:
        least = 1 if name in shapes.dims else 0
        holds = f"({_CALL}{name} >= {least} && {_CALL}{name} < {LARGEST})"
        found.append(CallFault(name.upper(), f"{name} must be from {least} to {LARGEST - 1}", holds))
    for flag in contract.flags:
        legal = _named(contract).get(flag, {"0": 0, "1": 1}).values()
        holds = " || ".join(f"{_CALL}{flag} == {value}" for value in legal)
        found.append(CallFault(flag.upper(), f"{flag} must be {_values(contract, flag)}", f"({holds})"))
    for number, rule in enumerate(shapes.rules, 1):
        found.append(CallFault(f"RULE_{number}", rule.reason, _c(rule.must, known)))
    for name in contract.leading:
        sentence = f"ld_{name} must be at least the length of a line of {name}, and below {LARGEST}"
        length = f"most(1, {_c(contract.operands[name].lines[1], known)})"
        holds = f"({_CALL}ld_{name} >= {length} && {_CALL}ld_{name} < {LARGEST})"
        found.append(CallFault(f"LD_{name.upper()}", sentence, holds))
    if _has_workspace(contract):
        found.append(CallFault("WORKSPACE", "the workspace is smaller than it must be", ""))
    found.append(CallFault("VARIANT", "there is no such variant", ""))
    sentence = "must be at most FLT_MAX in size, since it is computed with in float"
    return [*found, *(CallFault(name.upper(), f"{name} {sentence}", "") for name in contract.parameters)]


def _has_workspace(contract: Contract) -> bool:
    return bool(contract.elements) or type(contract).workspace is not Contract.workspace


def _place(name: str, of_call: tuple[str, ...]) -> str:
    """Where a name of the workspace's expression has its value."""
    return "call" if name in of_call else "kernel" if name in OF_KERNEL else "blocking"


def _named(contract: Contract) -> dict[str, Mapping[str, int]]:
    """Flags whose values have names."""
    return {flag: words for flag, words in contract.flags.items() if not any(word.isdigit() for word in words)}


def _values(contract: Contract, flag: str) -> str:
    """The values of a flag in words; those of a flag without names are 0 and 1."""
    words = _named(contract).get(flag)
    return " or ".join(f"{of} ({word})" for word, of in words.items()) if words else "0 or 1"


def _size(sides: tuple[str, ...], known: tuple[str, ...]) -> str:
    """C: the product of sides."""
    found = "1"
    for side in sides:
        found = _c(side, known) if found == "1" else f"times({found}, {_c(side, known)}, &lost)"
    return found


def _c(text: str, known: tuple[str, ...]) -> str:
    return parse(text, dict.fromkeys(known, int)).checked_c(_CALL)
