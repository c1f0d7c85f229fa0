"""Checks a primitive set: compiles and runs every primitive on the target and compares it with its meaning."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tensorop import backends
from tensorop.commands import primitive_program
from tensorop.commands.exact_number import Exact, Group
from tensorop.commands.primitive_cases import Array, PrimitiveCase, PrimitiveEntry, cases, entries
from tensorop.errors import SpecError
from tensorop.model.kernel import Artifact
from tensorop.model.meaning import parse
from tensorop.model.number import NUMBERS
from tensorop.model.platform import Platform
from tensorop.model.primitive import Formats, Primitives, shape_of
from tensorop.model.trial import Outcome
from tensorop.runners import confined
from tensorop.runners.base import Launch
from tensorop.runners.process import Talk
from tensorop.specs import native, platforms, primitives
from tensorop.toolchain import compile
from tensorop.toolchain.compile import link_program

_TIMEOUT_S = 120.0

Objects = NDArray[np.object_]


@dataclass(frozen=True)
class PrimitiveResult:
    """The result of one run, or of one primitive that failed in it."""

    ok: bool
    set: str
    where: str  # dtype, settings, VLEN
    message: str
    primitive: str | None = None  # None: the result is for the whole run

    def __str__(self) -> str:
        return f"{'ok  ' if self.ok else 'FAIL'} {self.set} {self.where}: {self.message}"


@dataclass(frozen=True)
class PrimitiveRun:
    """Primitives executed at one VLEN."""

    primitives: Primitives
    vlen: int  # bits
    cases: tuple[PrimitiveCase, ...]
    answers: tuple[Array, ...]  # results in the order of the cases; fewer than cases if the run stopped early
    end: str | None = None  # why the run stopped early


def check(
    name: str,
    *,
    plugins: tuple[Path, ...] = (),
    platform: str | None = None,
    dtypes: Sequence[str] | None = None,
    vlens: Sequence[int] | None = None,
) -> Iterator[PrimitiveResult]:
    """Checks a set on a platform, by default `home`, at `vlens` or the platform's verification VLENs.

    Yields a result for every primitive that failed in a run, then one for the run. Raises UsageError for unknown
    names, SpecError for a broken file, MissingTool without compiler or emulator.
    """
    spec = primitives.load(name, plugins)
    where = platforms.load(platform, plugins) if platform else home(name, plugins)
    where = replace(where, primitives=(primitives.resolved(name, plugins),))
    if backends.load(where.runner, plugins).is_host and (missing := native.missing_flags(where)):
        yield PrimitiveResult(False, name, where.name, f"not run: this machine lacks {', '.join(missing)}")
        return
    if spec.collectives:
        yield PrimitiveResult(
            False, name, where.name, "not run here; on a GPU machine, run benchmarks/cuda/primitives.py"
        )
        return
    for dtype in dtypes or tuple(spec.types):
        for chosen in combinations(spec.settings):
            resolved = where.primitives_of(dtype, chosen)
            at = " ".join([dtype, *(f"{k}={v}" for k, v in chosen.items())])
            if lacking := [w for w in primitive_program.NEEDED if w not in resolved.by_name]:
                yield PrimitiveResult(
                    False, name, at, f"lacks {', '.join(lacking)}, which the check of the other primitives needs"
                )
                continue
            yield from _check_built(name, where, resolved, at, tuple(vlens or where.verify_vlens), plugins)


def home(name: str, plugins: tuple[Path, ...] = ()) -> Platform:
    """The most general platform that lists the set first; if none does, the most general one that lists it at all.

    Raises SpecError if no platform lists the set.
    """
    loaded = platforms.whole(plugins)
    users = [p for p in loaded if p.primitives[0].name == name]
    users = users or [p for p in loaded if name in (one.name for one in p.primitives)]
    if not users:
        raise SpecError(f"no platform file uses the primitive set '{name}', so there is no target to compile it for")
    return min(users, key=lambda p: (len(p.lineage), p.name))


def combinations(settings: Mapping[str, Sequence[int]]) -> list[dict[str, int]]:
    """Every combination of a set's settings."""
    return [dict(zip(settings, values, strict=True)) for values in itertools.product(*settings.values())]


def _check_built(
    name: str, platform: Platform, resolved: Primitives, at: str, vlens: Sequence[int], plugins: tuple[Path, ...]
) -> Iterator[PrimitiveResult]:
    table, program = build(platform, resolved, min(vlens))
    if isinstance(program, Outcome):
        yield PrimitiveResult(False, name, at, f"{program.message}\n{program.log}".rstrip())
        return
    for vlen in vlens:
        place = f"{at} VLEN {vlen}" if len(vlens) > 1 else at
        run = execute(platform, resolved, table, program, vlen, plugins)
        failed = list(complaints(run))
        for primitive, message in failed:
            yield PrimitiveResult(False, name, place, message, primitive)
        good = len(resolved.by_name) - len({word for word, _ in failed})
        yield PrimitiveResult(
            bool(run.answers) and not failed,
            name,
            place,
            f"{good} of {len(resolved.by_name)} primitives in {len(run.answers)} cases",
        )


def build(platform: Platform, resolved: Primitives, vlen: int) -> tuple[tuple[PrimitiveEntry, ...], Artifact | Outcome]:
    """The primitives' entries and the static check program. vlen: the smallest VLEN (bits) that the program runs at."""
    table = entries(resolved, platform.lanes(resolved.dtype, resolved.settings, vlen))
    made = compile.compile_source(primitive_program.source(resolved, table), compile.candidate_flags(platform))
    if isinstance(made, Outcome):
        return table, made
    return table, link_program(made, arch=platform.arch, name="primitives")


def execute(
    platform: Platform,
    resolved: Primitives,
    table: Sequence[PrimitiveEntry],
    program: Artifact,
    vlen: int,
    plugins: tuple[Path, ...] = (),
) -> PrimitiveRun:
    """Runs all cases at one VLEN (bits)."""
    lanes = platform.lanes(resolved.dtype, resolved.settings, vlen)
    todo = tuple(cases(table, resolved.formats, lanes))
    runner = backends.start(platform, None, plugins)
    kinds = [NUMBERS[resolved.formats.answer(case.entry.primitive)] for case in todo]
    sizes = [case.result_size() for case in todo]
    ended = confined.run(
        runner,
        Launch([runner.place(program.path)], vlen),
        timeout_s=_TIMEOUT_S,
        talk=Talk(
            (case.packed() for case in todo),
            stdout_cap=8 + sum(size * kind.size for size, kind in zip(sizes, kinds, strict=True)),
        ),
    )
    answers: list[Array] = []
    at = 8
    for size, kind in zip(sizes, kinds, strict=True):
        if at + size * kind.size > len(ended.stdout):
            break
        answers.append(np.frombuffer(ended.stdout, kind.storage, size, at))
        at += size * kind.size
    end = None
    if len(ended.stdout) >= 8 and (own := int.from_bytes(ended.stdout[:8], "little")) != lanes:
        return PrimitiveRun(resolved, vlen, todo, (), f"a vector has {own} elements; expected {lanes}")
    if ended.timed_out:
        end = f"did not end within {_TIMEOUT_S:g} s"
    elif ended.status < 0 or ended.status > 128:
        end = f"stopped by signal {-ended.status if ended.status < 0 else ended.status - 128}"
    elif ended.status or len(answers) < len(todo):
        end = f"ended with status {ended.status} {ended.stderr.strip()[:200]}".rstrip()
    return PrimitiveRun(resolved, vlen, todo, tuple(answers), end)


def complaints(run: PrimitiveRun, meanings: Mapping[str, str] | None = None) -> Iterator[tuple[str, str]]:
    """(primitive, fault) for the first case of each primitive whose result differs from its meaning.

    meanings: replace the meanings of the named primitives, and only these are checked; tests pass wrong meanings
    """
    if run.end is not None and not run.answers:
        yield "lanes" if "elements" in run.end else run.cases[0].entry.primitive.name, run.end
        return
    settled: set[str] = set()
    for case, answer in zip(run.cases, run.answers, strict=False):
        primitive = case.entry.primitive
        if primitive.name in settled or (meanings is not None and primitive.name not in meanings):
            continue
        meaning = (meanings or {}).get(primitive.name, primitive.meaning)
        wrong = difference(case, answer, meaning, run.primitives.formats)
        if wrong:
            settled.add(primitive.name)
            yield primitive.name, f"{primitive.name} differs from its meaning {meaning}: {wrong} ({_shown(case)})"
    if run.end is not None and meanings is None:
        case = run.cases[len(run.answers)]
        yield case.entry.primitive.name, f"{case.entry.primitive.name} {run.end} ({_shown(case)})"


def difference(case: PrimitiveCase, answer: Array, meaning: str, formats: Formats) -> str | None:
    """The difference between a result and the meaning; None if they agree.

    Raises SpecError for a meaning that cannot be evaluated.
    """
    primitive = case.entry.primitive
    wanted = _evaluate(meaning, case, formats, absolute=False)
    if primitive.returns == "none" or wanted is None:
        untouched = next(iter(case.arrays.values()))[0].tobytes() == answer.tobytes() if case.arrays else True
        return (
            None
            if primitive.returns == "none" and wanted is None and untouched
            else "memory was changed, or should have been"
        )
    _require_kind(primitive.name, primitive.returns, wanted)
    if primitive.returns == "pred":
        active = (answer == 1).astype(int)
        count = int(active.sum())
        if (active[:count] != 1).any():
            return f"lanes {np.flatnonzero(active).tolist()} are active"
        return None if count == wanted else f"{count} lanes are active; expected {wanted}"
    expected = np.atleast_1d(np.asarray(wanted, dtype=object))
    if primitive.returns == "memory":
        return _memory(case, answer, expected, formats)
    if primitive.returns == "elem" and expected.size != 1:
        return f"expected one element; its meaning gives {expected.size}"
    if expected.size > answer.size:
        return f"its meaning gives {expected.size} lanes; a vector has {answer.size}"
    name = formats.answer(primitive)
    number, got = NUMBERS[name], NUMBERS[name].decoded(answer)
    exact = [Exact.of(want) for want in expected]
    wanted_lanes = [want.rounded(name) for want in exact]
    off = [i for i, want in enumerate(wanted_lanes) if not _same(float(got[i]), want, 0.0)]
    scales: list[float] = []
    if off and not primitive.exact:  # bounds are slow to compute, and most lanes equal the exact value rounded once
        bounds = np.atleast_1d(np.asarray(_evaluate(meaning, case, formats, absolute=True), dtype=object))
        scales = [Exact.of(bound).rounded(name) for bound in bounds]
    operations = case.numbers["lanes"] + 2
    for i in off:
        differs = f"lane {i} is {float(got[i])!r}; expected {wanted_lanes[i]!r}"
        if primitive.ulp is not None:
            if (distance := exact[i].distance(float(got[i]), name)) > primitive.ulp:
                return f"{differs}, which is {distance:.4g} ulp away; at most {primitive.ulp:g} ulp are stated"
            continue
        scale = scales[i] if scales else 0.0
        allowed = operations * (number.unit * scale + number.tiny) if scales and math.isfinite(scale) else 0.0
        # an intermediate result may overflow
        if not math.isinf(scale) and not _same(float(got[i]), wanted_lanes[i], allowed):
            return differs
    return None


def _require_kind(name: str, returns: str, wanted: object) -> None:
    """Raises SpecError if the meaning's value has another kind than the primitive's result."""
    if returns == "pred":
        right, what = isinstance(wanted, int | np.integer), "a number of active lanes"
    else:
        values = np.asarray(wanted, dtype=object)
        right = values.ndim <= 2 and all(isinstance(x, Exact | int | float | np.integer) for x in values.flat)
        what = "numbers"
    if not right:
        raise SpecError(f"primitive '{name}': its meaning must evaluate to {what}; got {wanted!r:.80}")


def _memory(case: PrimitiveCase, answer: Array, expected: Objects, formats: Formats) -> str | None:
    """Compares the first array after the call, including the elements that the primitive must not write."""
    name, (before, start) = next(iter(case.arrays.items()))
    number = formats.of(name)
    decoded, got = (NUMBERS[number].decoded(array) for array in (before, answer))
    after, ulp = [float(x) for x in decoded], case.entry.primitive.ulp
    written: dict[int, Exact] = {}
    row = case.numbers["ldd"] if shape_of(name) == "matrix" else 0
    for index, want in np.ndenumerate(expected):
        at = start + (index[0] * row + index[1] if len(index) == 2 else index[0])
        if at >= len(after):
            return f"its meaning writes element {index}, which is outside the array"
        written[at] = Exact.of(want)
        after[at] = written[at].rounded(number)
    for i, want in enumerate(after):
        if _same(float(got[i]), want, 0.0):
            continue
        if ulp is None or i not in written or written[i].distance(float(got[i]), number) > ulp:
            return f"element {i - start} of {name} is {float(got[i])!r}; expected {want!r}"
    return None


def _same(got: float, want: float, allowed: float) -> bool:
    if math.isnan(want) or math.isnan(got):
        return math.isnan(want) and math.isnan(got)
    if got == want:
        return allowed > 0 or math.copysign(1, got) == math.copysign(1, want)
    return abs(got - want) <= allowed if math.isfinite(got) and math.isfinite(want) else False


def _evaluate(meaning: str, case: PrimitiveCase, formats: Formats, *, absolute: bool) -> object:
    names: dict[str, object] = dict(case.numbers)
    written = next(iter(case.arrays), None) if case.entry.primitive.returns == "memory" else None
    for argument, (elements, start) in case.arrays.items():
        if argument == written:
            continue
        values = NUMBERS[formats.of(argument)].decoded(elements[start:])
        names[argument] = _argument(argument, values, case.numbers, absolute)
        if formats.group > 1 and argument in ("x", "y"):
            names[argument] = _grouped(elements[start:], formats, argument)
    try:
        with np.errstate(all="ignore"):
            return parse(meaning).value(names)
    except SpecError as error:
        raise SpecError(f"primitive '{case.entry.primitive.name}': {error.message}", hint=error.hint) from None


def _argument(name: str, elements: Array, numbers: Mapping[str, int], absolute: bool) -> object:
    exact = np.empty(elements.size, dtype=object)
    exact[:] = [abs(Exact.of(x)) if absolute else Exact.of(x) for x in elements]
    if shape_of(name) == "element":
        return exact[0]
    if shape_of(name) != "matrix":
        return exact
    lead, rows, cols = numbers["lds"], numbers["rows"], numbers["cols"]
    block = np.empty((rows, cols), dtype=object)
    for i in range(rows if cols else 0):
        block[i, :] = exact[i * lead : i * lead + cols]
    return block


def _grouped(elements: Array, formats: Formats, argument: str) -> object:
    size = NUMBERS[formats.compute].size
    exact = np.empty(elements.size, dtype=object)
    exact[:] = [Group.of_bits(int(x), size, formats.group) for x in elements]
    return exact[0] if shape_of(argument) == "element" else exact


def _shown(case: PrimitiveCase) -> str:
    """The call as text: numbers, the first elements of each array, and the preconditions."""
    named = [f"{a}={case.numbers[a]}" for a in case.entry.primitive.args if a in case.numbers]
    for argument, (elements, start) in case.arrays.items():
        more = ", ..." if elements.size - start > 4 else ""
        named.append(f"{argument}=[{', '.join(repr(float(x)) for x in elements[start : start + 4])}{more}]")
    rules = f"; requires {', '.join(case.entry.primitive.preconditions)}" if case.entry.primitive.preconditions else ""
    return ", ".join(named) + rules
