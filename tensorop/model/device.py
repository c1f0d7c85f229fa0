"""What an operator's `device:` section says of a call on a GPU: its numbers, layouts, operands and types."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from functools import cached_property
from math import prod

from tensorop.errors import SpecError
from tensorop.model.expression import evaluate, parse
from tensorop.model.point import Value
from tensorop.model.problem import Problem
from tensorop.model.record import Count, record

Key = tuple[int, ...]  # of a layout: the values of its names


@record
class DeviceOperand:
    """An operand in memory, row by row. rows, cols: expressions over the call and its layout"""

    rows: str
    cols: str
    align: str = ""  # fact of kernels: bytes that its address and its rows must be multiples of
    copied: bool = False  # the library copies it to rows that are, at a cost; else it takes another kernel


@record
class DeviceInterface:
    """The terms of an operator's calls on a GPU, for choice, library, kit and results."""

    # numbers of a call: the operator's dimensions and attributes, then those that are 1 if none is given
    call: tuple[str, ...]
    operands: Mapping[str, DeviceOperand]  # in the order of the function's arguments, the result last
    types: tuple[str, ...]  # dtypes in the order of their numbers in C
    launch: tuple[str, ...] = ()  # tunables and facts that the library's C reads of each kernel
    absent: Mapping[str, int] = field(default_factory=dict)  # more of them, with their values for kernels without them
    layouts: Mapping[str, str] = field(default_factory=dict)  # 0 or 1, each: expressions over the operator's flags
    plans: tuple[str, ...] = ()  # entries of models that the library's C reads of each call, 0 where a model has none
    swap: Mapping[str, str] = field(default_factory=dict)  # what kernels whose tunable `swap` is 1 compute, by name
    distance: Mapping[str, Count] = field(default_factory=dict)  # divisors of squared distances between problems, or 1
    counts: tuple[str, ...] = ()  # those names of `call` that count equal problems, one behind the other in memory
    verify: tuple[tuple[int, ...], ...] = ()  # calls on which kits verify each variant, by their sizes
    probes: tuple[tuple[int, ...], ...] = ()  # calls that jobs and kits add to an operator's shapes
    faults: tuple[str, ...] = ()  # of the kit's plain kernel, beside those of every kit
    # defaults of attributes, the last of those names of `call`: the operator's `attributes`
    usual: Mapping[str, int | str] = field(default_factory=dict)
    serves: str = "1"  # whether a kernel serves a call: an expression over the call and the names in `launch`

    @property
    def names(self) -> tuple[str, ...]:
        """Names of a call in kernels' models."""
        return (*self.call, *self.layouts)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """All layouts."""
        return tuple(itertools.product((0, 1), repeat=len(self.layouts)))

    @cached_property
    def texts(self) -> dict[str, Key]:
        """Layouts by their names, a letter for each part, the last one first: T where it is transposed."""
        return {"".join("NT"[value] for value in reversed(key)): key for key in self.keys}

    def text(self, key: Key) -> str:
        return next(text for text, one in self.texts.items() if one == key)

    def named(self, key: Sequence[int]) -> dict[str, int]:
        return dict(zip(self.layouts, key, strict=True))

    def key(self, numbers: Mapping[str, Value]) -> Key:
        """The layout among a kernel's numbers, or a problem's options."""
        return tuple(int(numbers[name]) for name in self.layouts)

    def key_of(self, flags: Mapping[str, int]) -> Key:
        """The layout of a call of the operator."""
        return tuple(evaluate(text, flags) for text in self.layouts.values())

    def across(self, key: Key) -> Key:
        """The layout of what kernels with `swap` compute for problems of a layout."""
        return tuple(evaluate(self.swap.get(name, name), self.named(key)) for name in self.layouts)

    def numbers(self, sizes: Sequence[int]) -> dict[str, int]:
        """A call by its sizes; attributes that are not given have their defaults, counts are 1."""
        found = dict(zip(self.call, sizes, strict=False))
        for name in self.call[len(sizes) :]:
            usual = self.usual.get(name, 1)
            found[name] = found[usual] if isinstance(usual, str) else usual
        return found

    def sides(self, operand: DeviceOperand, numbers: Mapping[str, int]) -> tuple[int, int]:
        """Rows and columns of an operand in memory. numbers: a call with its layout"""
        return evaluate(operand.rows, numbers), evaluate(operand.cols, numbers)

    def faults_of(self, dims: Sequence[str], flags: Sequence[str]) -> Iterator[tuple[str, str]]:
        """Keys with what is wrong with them. dims: the operator's dimensions and attributes; flags: its flags"""
        if self.call[: len(dims)] != tuple(dims):
            yield "call", f"expected {', '.join(dims)}, then further numbers; got {', '.join(self.call)}"
        texts = {f"layouts.{name}": (text, tuple(flags)) for name, text in self.layouts.items()}
        for name, one in self.operands.items():
            texts |= {f"operands.{name}.{side}": (getattr(one, side), self.names) for side in ("rows", "cols")}
            if one.align and one.align not in (*self.launch, *self.absent):
                yield f"operands.{name}.align", f"expected one of the names in 'launch', got '{one.align}'"
        for name, text in self.swap.items():
            texts[f"swap.{name}"] = text, self.call if name in self.call else tuple(self.layouts)
            if name not in self.names:
                yield f"swap.{name}", f"expected some of {', '.join(self.names)}"
        texts["serves"] = self.serves, (*self.names, *self.launch)
        for key, (text, known) in texts.items():
            try:
                parse(text, dict.fromkeys(known, int))
            except SpecError as error:
                yield key, f"expected an expression over {', '.join(known) or 'no name'}: {error.message}"
        least = len(dims) - len(self.usual)
        for key, calls in (("verify", self.verify), ("probes", self.probes)):
            if wrong := [one for one in calls if not least <= len(one) <= len(self.call) or min(one) < 1]:
                yield key, f"expected lists of sizes above 0 of {', '.join(self.call)}; got {list(wrong[0])}"
        for name in (*self.distance, *self.counts):
            if name not in self.call:
                key = f"distance.{name}" if name in self.distance else "counts"
                yield key, f"expected some of {', '.join(self.call)}, got '{name}'"

    def repeats(self, numbers: Mapping[str, int]) -> int:
        """How many problems a call computes: the product of its counts."""
        return prod(numbers[name] for name in self.counts)

    def flags(self, key: Key, flags: Mapping[str, Mapping[str, int]], usual: Mapping[str, Value]) -> dict[str, Value]:
        """The options of a problem with this layout that differ least from `usual`. flags: those of the operator"""
        every = [dict(zip(flags, words, strict=True)) for words in itertools.product(*map(_words, flags.values()))]
        fits = [w for w in every if self.key_of({name: _number(flags[name], word) for name, word in w.items()}) == key]
        usual = {name: next(iter(values)) for name, values in flags.items()} | dict(usual)
        return min(fits, key=lambda words: sum(str(usual[name]) != str(word) for name, word in words.items()))


def _words(values: Mapping[str, int]) -> list[Value]:
    """The words of a flag; of a flag whose values are numbers, its default and the number above it."""
    default = next(iter(values))
    return [int(default), int(default) + 1] if default.lstrip("-").isdigit() else list(values)


def _number(values: Mapping[str, int], word: Value) -> int:
    return values[str(word)] if str(word) in values else int(word)


def device_problem(of: DeviceInterface, operator: str, dtype: str, sizes: Sequence[int], key: Key) -> Problem:
    """A problem of a device's library, row by row in memory without gaps."""
    return Problem.of(operator, dtype, of.numbers(sizes), of.named(key))
