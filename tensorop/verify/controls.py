"""Negative controls: kernels with one known fault each, verified like any candidate; all must be refused.

A control is a C file in templates/<op>/controls/ whose first comment says, one `key: value` a line,

    fault   what is wrong with it
    expect  how it must end: kinds of outcome (see `Kind`), any of them; `ok` for an honest kernel
    needs   where it applies: names of primitive sets, `vlens` for targets with more than one; all of them
    dtypes  of which its fault shows; all where it is not given

Headers beside it can be included; TENSOROP_DTYPE_<dtype> is defined.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

from tensorop.errors import JobError, SpecError
from tensorop.model.call import Call, CallOutput, Placement
from tensorop.model.kernel import Artifact, Source
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.trial import Kind, Outcome
from tensorop.model.verdict import ControlResult, Seed
from tensorop.runners import session
from tensorop.runners.base import Runner
from tensorop.runners.protocol import Count, Entry, Time
from tensorop.specs import files
from tensorop.toolchain.compile import candidate_flags, compile_and_link
from tensorop.verify.answers import Answers
from tensorop.verify.grid import Grid, outcome, quick, verify
from tensorop.verify.subject import Subject

Same = tuple[Grid, dict[tuple[int, int], Call]]  # verification keeps cases and calls (Subject.made)

_TIMED = 4  # the controls' stream of the seed
TOGETHER = 16  # controls in one program: compilers and linkers take longer to start than to build one

_KEY = re.compile(r"^(?:/\*| \*) (\w+): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class Control:
    """A kernel with a known verdict."""

    name: str
    path: Path
    fault: str
    expected: tuple[Kind, ...]
    needs: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()

    @property
    def honest(self) -> bool:
        return self.expected == (Kind.OK,)

    def applies(self, platform: Platform, dtype: str) -> bool:
        """Whether the fault can show with this platform and dtype."""
        several, sets = len(platform.verify_vlens) > 1, {one.name for one in platform.primitives}
        if self.dtypes and dtype not in self.dtypes:
            return False
        return all(several if need == "vlens" else need in sets for need in self.needs)

    def source(self, operator: Operator) -> Source:
        """The control's C with the headers beside it, those of the operators it uses, and the generated slots.h."""
        folders = [self.path.parent, *(folder / "controls" for folder in operator.uses)]
        headers = {path.name: path for folder in reversed(folders) for path in sorted(folder.glob("*.h"))}
        paths = [self.path, *headers.values()]
        return Source((*((path.name, files.text(path, files.TEXT)) for path in paths), *operator.slots.files))


def controls(operator: Operator) -> tuple[Control, ...]:
    """The operator's controls, correct ones first. Raises SpecError for a file without a valid head."""
    found = [_read(path) for path in sorted((operator.folder / "controls").glob("*.c"))]
    return tuple(sorted(found, key=lambda c: not c.honest))


def together(operator: Operator, some: Sequence[Control]) -> Source:
    """The C of several controls; the entry of each has its number among them."""
    renamed = '#define tensorop_candidate_0 tensorop_candidate_{}\n#include "{}"\n#undef tensorop_candidate_0\n'
    main = "".join(renamed.format(number, control.path.name) for number, control in enumerate(some))
    return Source((("together.c", main), *dict.fromkeys(file for one in some for file in one.source(operator).files)))


def _read(path: Path) -> Control:
    head = files.text(path, files.TEXT).partition("*/")[0]
    values = dict(_KEY.findall(head))
    try:
        expected = tuple(Kind(word) for word in values["expect"].split())
        needs, dtypes = (tuple(values.get(key, "").split()) for key in ("needs", "dtypes"))
        return Control(path.stem, path, values["fault"], expected, needs, dtypes)
    except (KeyError, ValueError) as e:
        kinds = ", ".join(k.value for k in Kind)
        raise SpecError(
            f"{path}: expected 'fault:' and 'expect:' ({kinds}) in the first comment of a control: {e}"
        ) from e


@dataclass(frozen=True)
class ControlRun:
    """Verifies an operator's controls on a platform, on the path of a candidate, at the VLENs of winners."""

    operator: Operator
    platform: Platform
    runner: Runner
    seed: Seed
    _same: dict[str, Same] = field(default_factory=dict, compare=False, repr=False)  # dtype -> cases for all controls

    def run(self, dtypes: Sequence[str] | None = None, jobs: int = 1) -> tuple[ControlResult, ...]:
        """Verifies every control that applies, for each dtype (by default the operator's), `jobs` at a time.

        Nothing may be timed meanwhile. Raises JobError if a control has another verdict than expected, SpecError if
        there are no controls.
        """
        known = controls(self.operator)
        wanted = dtypes or self.operator.dtypes
        todo = [(dtype, [one for one in known if one.applies(self.platform, dtype)]) for dtype in wanted]
        if not any(some for _, some in todo):
            folder = self.operator.folder / "controls"
            raise SpecError(
                f"{folder} has no controls; without known-wrong kernels verification itself cannot be tested",
                hint="add honest.c and known-wrong kernels, as the shipped operators have",
            )
        for dtype in wanted:
            self._grid(dtype)
        parts = [(dtype, some[i : i + TOGETHER]) for dtype, some in todo for i in range(0, len(some), TOGETHER)]
        results = []
        pool = ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="controls")
        try:
            programs = [(*part, pool.submit(self._built, part[1], part[0])) for part in parts]
            judged = [
                (c, pool.submit(self.judge, c, d, made, n)) for d, some, made in programs for n, c in enumerate(some)
            ]
            for control, future in judged:
                results.append(future.result())
                self.require_expected(control, results[-1])
        finally:
            pool.shutdown(cancel_futures=True)
        return tuple(results)

    def judge(
        self, control: Control, dtype: str, shared: Future[Artifact | Outcome] | None = None, number: int = 0
    ) -> ControlResult:
        """Verifies a control: entry `number` of a program of several if that could be built, else one of its own."""
        built = self._built([control], dtype) if shared is None else shared.result()
        if shared is not None and isinstance(built, Outcome):
            return self.judge(control, dtype)
        if isinstance(built, Outcome):
            found = built
        else:
            grid, made = self._grid(dtype)
            subject = Subject(self.runner, built.path, entry=Entry(number), made=made)
            found = outcome(verify(self.operator, subject, grid, self.platform.verify_vlens, self.seed))
            found = self._timed(dtype, subject) if found.ok else found
        return ControlResult(control.name, dtype, control.fault, control.expected, found)

    def _built(self, some: Sequence[Control], dtype: str) -> Artifact | Outcome:
        flags = (*candidate_flags(self.platform), f"-DTENSOROP_DTYPE_{dtype}=1")
        source = some[0].source(self.operator) if len(some) == 1 else together(self.operator, some)
        return compile_and_link(source, self.platform, flags)

    def _grid(self, dtype: str) -> Same:
        if dtype not in self._same:
            vlens, tile = self.platform.verify_vlens, self.operator.reference.CONTROL_TILE
            grid = quick(self.operator, dtype, dict.fromkeys(vlens, tile))
            cases = {vlen: grid(vlen, self.seed) for vlen in vlens}
            self._same[dtype] = lambda vlen, _: cases[vlen], {}
        return self._same[dtype]

    def _timed(self, dtype: str, subject: Subject) -> Outcome:
        """Outputs of timed (or counted) calls of a control; the costs are ignored."""
        reference, seed, shapes = self.operator.reference, self.seed, self.operator.shapes
        problem = reference.problem(dtype, shapes.named(shapes.of(reference.CONTROL_SHAPE)), self.operator.layouts[0])
        call = reference.call(problem, seed.stream(_TIMED), "normal", Placement.START)
        if self.runner.emulated:
            call = reference.counted(problem, call, seed.stream(_TIMED, 1))
            request: Time | Count = Count(call, (subject.entry,))
        else:
            call = reference.alternated(problem, call, seed.stream(_TIMED, 1))
            request = Time(call, (subject.entry,), rounds=5, warm_ns=0, min_ns=20_000, keep=True)
        guest = replace(subject.guest, vlen=self.platform.verify_vlens[0] or None)
        (reply,) = session.run(self.runner, subject.program, [request], timeout_s=subject.timeout_s, guest=guest)
        left = reply.left[0] if reply.left else (CallOutput(reply.outputs),)
        return Answers(reference).judge_all(problem, call, left) if reply.outcome.ok else reply.outcome

    def require_expected(self, control: Control, result: ControlResult) -> None:
        """Raises JobError if a control has another verdict than expected."""
        if result.as_expected:
            return
        found, name = result.outcome, f"control '{result.name}' ({result.dtype})"
        hint = (
            "results on this target cannot be trusted; run `tensorop doctor`, check "
            f"{control.path} and {self.operator.folder / 'reference.py'}, or report this as a bug"
        )
        if found.kind is Kind.LOST:
            raise JobError(f"{name} could not run: {found.message}", hint=hint)
        if found.ok:
            message = f"verification accepted the known-wrong {name} with seed {self.seed}; its fault: {result.fault}"
            raise JobError(f"self-test failed: {message}", hint=hint)
        wanted = " or ".join(k.value for k in result.expected)
        tail = f"\n{found.log}" if found.log else ""
        raise JobError(
            f"self-test failed: {name} must end as {wanted}, but ended as {found.kind.value}: {found.message}{tail}",
            hint=hint,
        )
