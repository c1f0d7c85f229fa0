"""Plans: what a template keeps, moves and computes, in a small grammar of fixed statements, and a checker of them.

A plan stands in a template's head (`plan`). Its numbers are expressions over tunables and facts. The checker needs no
compiler: for one configuration it counts registers, sums, loads and multiply-adds in a step of the innermost loop, and
the fewest cycles that a modelled core takes for it; on devices also shared memory. It says which number is refuted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import prod

from tensorop.author.llm.machine import ModelledCore
from tensorop.errors import SpecError
from tensorop.model import expression
from tensorop.model.point import Value

MOST_LINES = 20
MOST_OF_A_THREAD = 255  # registers, on every NVIDIA GPU since 2012 (CUDA C++ Programming Guide, compute capabilities)
MOST_OVER = 4.0  # cycles of a step over those of its multiply-adds; products of a matrix by a vector are below
LEVELS = ("registers", "l1", "shared", "memory", "global")
_FAR = ("memory", "global")
_NAME, _REST = r"([A-Z]\w{0,15})", r"(.*)"
_FORMS = {
    "allocate": (rf"{_NAME} \((.+)\) in (\w+)", "allocate NAME (SIZES) in LEVEL"),
    "loop": (r"([a-z]\w{0,15})(?: by (.+))?", "loop NAME by N"),
    "copy": (rf"{_NAME} \((.+)\) from (\w+) to (\w+){_REST}", "copy NAME (SIZES) from LEVEL to LEVEL, OPTION VALUE"),
    "compute": (rf"{_NAME} (\+?=) (.+)", "compute NAME += NAME * NAME, or compute NAME = WORD NAME"),
    "reshape": (_NAME, "reshape NAME"),
    "wait": (_REST, "wait N"),
    "end": ("", "end"),
}
_OPTIONS = ("as", "parts", "ahead", "keeping")
_PRODUCT = re.compile(rf"{_NAME} \* {_NAME}(?: steps (.+))?")
_Number = Callable[[str], int]  # the value of an expression
_KINDS = {"vectors": "load", "scalars": "fp-load"}


@dataclass(frozen=True)
class PlanStatement:
    """One line. levels: where a copy begins and ends, or an allocation lies; of: names that a computation reads"""

    line: int
    word: str
    name: str = ""
    sizes: tuple[str, ...] = ()
    levels: tuple[str, ...] = ()
    of: tuple[str, ...] = ()
    adds: bool = False  # a product that is added to its result
    steps: str = "1"  # of k in one product
    options: Mapping[str, str] = field(default_factory=dict)
    inside: tuple[int, ...] = ()  # lines of the loops around it


@dataclass(frozen=True)
class Counted:
    """One configuration. A step is one turn of the innermost product's loop.

    registers: for vectors, on devices sums of a thread; copied: bytes into shared memory in a step; cycles: the fewest
    of a step on the core, None without a board model; alone: those of its multiply-adds; wrong: the number that refutes
    the plan
    """

    registers: int
    sums: int
    multiply_adds: int
    loads: Mapping[str, int]  # by kind, as in the core's table
    shared: int  # bytes
    copied: int
    cycles: float | None
    alone: float | None = None
    wrong: str = ""


def parse(text: str, origin: str) -> tuple[PlanStatement, ...]:
    """The statements of a plan. Raises SpecError with the line, its text and the form that was expected."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1) if line.strip()]
    if len(lines) > MOST_LINES:
        raise SpecError(f"{origin}: key 'plan': {len(lines)} lines; at most {MOST_LINES} are read")
    found: list[PlanStatement] = []
    loops: list[int] = []
    for number, line in lines:
        at = f"{origin}: key 'plan', line {number}"
        one = _statement(number, line, at, tuple(loops))
        if one.word == "end" and not loops:
            raise SpecError(f"{at}: 'end' without a loop")
        if one.word == "loop":
            loops.append(number)
        if one.word == "end":
            loops.pop()
        found.append(one)
    if loops:
        raise SpecError(f"{origin}: key 'plan', line {loops[-1]}: the loop has no 'end'")
    if found and not any(one.adds for one in found):
        raise SpecError(f"{origin}: key 'plan': no line computes a product; expected {_FORMS['compute'][1]}")
    return tuple(found)


def _statement(number: int, line: str, at: str, inside: tuple[int, ...]) -> PlanStatement:
    word, _, rest = line.partition(" ")
    if word not in _FORMS:
        raise SpecError(f"{at}: expected one of {', '.join(_FORMS)}; got {line[:60]!r}")
    form, expected = _FORMS[word]
    if (found := re.fullmatch(form, rest.strip())) is None:
        raise SpecError(f"{at}: expected `{expected}`, got {line[:80]!r}")
    if word == "loop":
        return PlanStatement(number, word, found[1], (found[2] or "1",), inside=inside)
    if word == "wait":
        return PlanStatement(number, word, sizes=(found[1] or "0",), inside=inside)
    if word == "reshape":
        return PlanStatement(number, word, found[1], inside=inside)
    if word == "compute":
        return _computed(number, found, expected, at, inside)
    if word == "end":
        return PlanStatement(number, word, inside=inside)
    sizes, levels = _split(found[2]), (found[3], *([found[4]] if word == "copy" else []))
    if wrong := [level for level in levels if level not in LEVELS]:
        raise SpecError(f"{at}: expected a level {', '.join(LEVELS)}; got {wrong[0][:40]!r}")
    options = _options(found[5], at) if word == "copy" else {}
    return PlanStatement(number, word, found[1], sizes, levels, options=options, inside=inside)


def _computed(number: int, found: re.Match[str], expected: str, at: str, inside: tuple[int, ...]) -> PlanStatement:
    if found[2] == "=":
        words = found[3].split()
        return PlanStatement(
            number, "compute", found[1], of=tuple(one for one in words if one[0].isupper()), inside=inside
        )
    if (product := _PRODUCT.fullmatch(found[3])) is None:
        raise SpecError(f"{at}: expected `{expected}`, got {found[0][:80]!r}")
    of, steps = (product[1], product[2]), product[3] or "1"
    return PlanStatement(number, "compute", found[1], of=of, adds=True, steps=steps, inside=inside)


def _options(text: str, at: str) -> dict[str, str]:
    first, *rest = _split(text)
    found = {name: value.strip() for name, _, value in (one.partition(" ") for one in rest)}
    if wrong := [one for one in (first, *(name for name in found if name not in _OPTIONS)) if one]:
        raise SpecError(f"{at}: expected `, OPTION VALUE` with one of {', '.join(_OPTIONS)}; got {wrong[0][:60]!r}")
    if found.get("as", "vectors") not in _KINDS:
        raise SpecError(f"{at}: expected as {' or as '.join(_KINDS)}; got {found['as'][:40]!r}")
    return found


def _split(text: str) -> tuple[str, ...]:
    """Parts between commas that are outside of brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(part.strip() for part in parts)


def key(text: str) -> str:
    """What two plans have in common that are the same but for spaces."""
    return "\n".join(" ".join(line.split()) for line in text.splitlines() if line.strip())


def counted(plan: Sequence[PlanStatement], values: Mapping[str, Value], core: ModelledCore | None = None) -> Counted:
    """What a plan does at a configuration. values: its tunables and the facts. Raises SpecError for an expression."""

    def number(text: str) -> int:
        return expression.evaluate(text, values)

    def size(one: PlanStatement) -> int:
        return prod(map(number, one.sizes))

    threads, element = int(values.get("threads", 0)), int(values.get("size", 2))
    product = max((one for one in plan if one.adds), key=lambda one: len(one.inside))
    held = {one.name: one for one in plan if one.word == "allocate" and one.levels == ("registers",)}
    loaded = {one.name: one for one in plan if one.word == "copy" and one.levels[-1] == "registers"}
    result = held.get(product.name) or loaded.get(product.name)
    sums = size(result) if result else 0
    wide = int(values.get("lmul", 1))
    registers = sum(size(one) for one in held.values())
    if threads:
        registers = -(-registers // threads)
        shared = [one for one in plan if one.word == "allocate" and one.levels == ("shared",)]
        bytes_ = sum(size(one) for one in shared) * element
    else:
        registers, bytes_ = wide * registers * int(values["accumulator_size"]) // int(values["size"]), 0
        registers += sum(wide * _kept(one, size(one), number) for one in loaded.values())
    step = [one for one in plan if one.word == "copy" and one.inside == product.inside]
    loads: Counter[str] = Counter()
    for one in step:
        parts = number(one.options.get("parts", "1"))
        if one.levels[-1] == "registers":
            kind = _KINDS[one.options.get("as", "vectors")]
            kinds = (kind,) if parts == 1 else ("half-load", "int-load", "insert")
            loads.update({kind: size(one) for kind in kinds})
        elif one.levels[0] == "registers":
            loads["store"] += size(one)
    adds = sums * number(product.steps)
    copied = element * sum(size(one) for one in step if one.levels[1] == "shared")
    cycles = None if threads else _cycles(loads, adds, wide, core)
    alone = None if threads else _cycles({}, adds, wide, core)
    found = Counted(registers, sums, adds, loads, bytes_, copied, cycles, alone)
    return replace(found, wrong=_wrong(plan, found, values, core, product.name in held, number))


def _kept(one: PlanStatement, size: int, number: _Number) -> int:
    """Registers for vectors that a copy loads. Scalars have registers of their own, or lanes."""
    if one.options.get("as") == "scalars":
        return 0
    if "keeping" in one.options:
        return number(one.options["keeping"])
    return size * (1 + number(one.options.get("ahead", "0")))


def _cycles(loads: Mapping[str, int], adds: int, wide: int, core: ModelledCore | None) -> float | None:
    """The fewest cycles of a step: of the busiest unit, or of the issue slots. The loop's own instructions are free."""
    if core is None:
        return None
    units: dict[str, float] = {}
    slots = 0.0
    for name, count in {**loads, "fma": adds}.items():
        one = next(core.instructions[of] for of in (f"{name}{wide}", name, "load") if of in core.instructions)
        slots += count * one.slots
        for unit, share in one.shares.items():
            units[unit] = units.get(unit, 0.0) + count * share
    return max(*units.values(), slots / core.model.core.issue_width.value)


def _wrong(
    plan: Sequence[PlanStatement],
    found: Counted,
    values: Mapping[str, Value],
    core: ModelledCore | None,
    carried: bool,
    number: _Number,
) -> str:
    if found.sums <= 0:
        return "registers: the result of the product is neither allocated in registers nor copied there"
    if "threads" in values:
        if found.registers > MOST_OF_A_THREAD:
            return f"registers: {found.registers} sums in each thread, of at most {MOST_OF_A_THREAD} registers"
        if "shared_most" in values and found.shared > int(values["shared_most"]):
            return f"shared memory: {found.shared} bytes, of at most {values['shared_most']}"
        return _unordered(plan, number)
    if found.registers > int(values["registers"]):
        return f"registers: {found.registers} for vectors, of {values['registers']}"
    if core is not None and carried and found.sums * int(values.get("lmul", 1)) < core.chains:
        return f"chains: {found.sums} sums in flight; {core.chains} hide the latency of a multiply-add"
    alone = found.alone
    if alone and found.cycles and found.cycles > MOST_OVER * alone:
        loads = sum(found.loads.values())
        return (
            f"loads: {loads} with {found.multiply_adds} multiply-adds take {found.cycles:.1f} cycles, not {alone:.1f}"
        )
    return ""


def _unordered(plan: Sequence[PlanStatement], number: _Number) -> str:
    """A missing wait between a copy into shared memory and its use, or a missing reshape between two products."""
    ahead: dict[str, int] = {}
    for one in plan:
        if one.word == "copy" and one.levels[0] in _FAR and one.levels[1] == "shared":
            ahead[one.name] = max(number(one.options.get("ahead", "0")), ahead.get(one.name, 0))
    waited: int | None = None
    begun: set[str] = set()  # copies for the same turn that no wait came after
    products: set[str] = set()  # results that no reshape made an operand
    for one in plan:
        if one.word == "wait":
            waited, begun = number(one.sizes[0]), set()
        elif one.word == "copy" and one.levels[1] == "shared":
            begun |= set() if ahead.get(one.name) else {one.name}
        elif one.word == "copy" and one.levels[0] == "shared" and one.name in ahead:
            if waited is None or one.name in begun:
                return f"line {one.line}: {one.name} is read from shared memory before a wait"
            if waited >= max(ahead[one.name], 1):
                early = ahead[one.name]
                return f"line {one.line}: the wait leaves {waited} copies, and {one.name} was copied {early} ahead"
        elif one.word == "reshape":
            products.discard(one.name)
        elif one.word == "compute":
            if one.adds and (wrong := products & {*one.of}):
                return f"line {one.line}: {min(wrong)} is the result of a product; a reshape must make it an operand"
            if one.adds or products & {*one.of}:
                products.add(one.name)
    return ""
