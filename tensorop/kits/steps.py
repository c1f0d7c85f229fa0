"""The steps of a CPU kit: controls, verifications, timings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from tensorop.dispatch import direct, probing
from tensorop.dispatch.choice import Candidates
from tensorop.dispatch.inside import Probe
from tensorop.dispatch.shapes import chosen_for
from tensorop.kits import plan
from tensorop.kits.plan import Planned, Step
from tensorop.kits.product import measured
from tensorop.kits.rows import BoardMachine
from tensorop.model.budget import CLOCK
from tensorop.model.call import Call, Placement
from tensorop.model.case import Case
from tensorop.model.contract import Contract
from tensorop.model.shape import Shape
from tensorop.model.verdict import Seed
from tensorop.model.winner import Winners
from tensorop.runners.protocol import Check, Entry, Time
from tensorop.space import problems
from tensorop.target import KitRequest
from tensorop.verify import controls, grid
from tensorop.verify.controls import Control

if TYPE_CHECKING:
    from tensorop.kits.processor import ProcessorProduct

ROUNDS, WARM_NS, MIN_NS, MAX_NS = 15, 2_000_000, 1_000_000, 1_000_000_000
HALVES = 1 << 16  # elements of an output; up to this size, timed calls alternate between two sets of operands
_ONE_VLEN = "vlens"  # the need of a control that fails only at some VLENs


def wanted_controls(held: ProcessorProduct) -> list[tuple[Control, str]]:
    """The controls of a product's kits, each with a dtype."""
    found = controls.controls(held.operator)
    return [
        (control, w.dtype)
        for w in held.winners
        for control in found
        if control.applies(held.platform, w.dtype) and _ONE_VLEN not in control.needs
    ]


def steps(held: ProcessorProduct, request: KitRequest, seed: Seed) -> list[Step]:
    """The steps in order: controls, verifications, timings."""
    found = [step for w in held.winners for step in _of_dtype(held, w, request, seed)]
    return sorted(found, key=lambda step: step.kind)


def _of_dtype(held: ProcessorProduct, w: Winners, request: KitRequest, seed: Seed) -> Iterator[Step]:
    reference, slot = held.operator.reference, held.operator.reference.variant_flag
    library = [of.dtype for of in held.winners].index(w.dtype)
    known_bad = _control_cases(held, w.dtype, seed)
    for number, (control, dtype) in enumerate(wanted_controls(held)):
        if dtype == w.dtype:
            of = {"dtype": dtype, "control": control.name}
            expects = [kind.value for kind in control.expected]
            yield Step(plan.CONTROL, of, known_bad, plan.FIRST_CONTROL + number, expects=expects)
    for number, variant in enumerate((None, *w.all)):
        tiles = _tiles(held, w.dtype, variant or w.all[0])
        order = list(tiles)
        cases: list[Planned] = []
        for at, vlen in enumerate(order):
            quick = reference.quick_grid(w.dtype, tiles[vlen], seed.stream(0, library, number))
            cases += _checked(reference, quick[at :: len(order)], seed, 1, library, number, at)
        yield Step(plan.VERIFY, {"dtype": w.dtype, "variant": number - 1}, cases, library, slot, number - 1)
    timed = timed_problems(held, w, request.shapes, request.probes)
    with ThreadPoolExecutor(max(request.jobs, 1)) as pool:
        yield from pool.map(partial(_time, held, w, library, seed), range(len(timed)), timed)


def _tiles(held: ProcessorProduct, dtype: str, variant: Any) -> dict[int, dict[str, int]]:
    platform, reference = held.platform, held.operator.reference
    return {
        vlen: reference.tile(variant.point, platform.lanes(dtype, variant.point, vlen), variant.template.reads)
        for vlen in platform.vlens
    }


def _checked(reference: Contract, cases: Sequence[Case], seed: Seed, *path: int) -> list[Planned]:
    """The calls of a grid; some are repeated with one element of each input changed. path: of the seed's streams."""

    def made(place: int, of: Case) -> Call:
        return reference.call(of.problem, seed.stream(*path, place), of.distribution, of.placement, start=of.start)

    calls = [(place, made(place, case)) for place, case in enumerate(cases)]
    calls = grid.with_changed(cases, calls, reference, seed.stream(*path, len(cases)))
    return [Planned(cases[place].problem, Check(call), cases[place].label) for place, call in calls]


def _control_cases(held: ProcessorProduct, dtype: str, seed: Seed) -> list[Planned]:
    """The cases of every control of a dtype: a quick grid, then one timing."""
    operator, reference = held.operator, held.operator.reference
    cases = _checked(reference, reference.quick_grid(dtype, reference.CONTROL_TILE, seed.stream(2)), seed, 3)
    shape = operator.shapes.named(operator.shapes.of(reference.CONTROL_SHAPE))
    problem = reference.problem(dtype, shape, operator.layouts[0])
    call = reference.call(problem, seed.stream(4), "normal", Placement.START)
    call = reference.alternated(problem, call, seed.stream(5))
    request = Time(call, (Entry(),), rounds=5, warm_ns=0, min_ns=20_000, keep=True, draw=1)
    return [*cases, Planned(problem, request, f"{problem.label}, timed", drawn=int(seed.stream(6).integers(1 << 62)))]


def timed_problems(held: ProcessorProduct, w: Winners, shapes: Sequence[Shape], count: int) -> list[Probe]:
    """The shapes in the usual layout, and probes.

    Some probes are random; after a kit, others are problems at which the kits' results leave the choice open.
    """
    operator, platform = held.operator, held.platform
    own = [problems.of(operator, w.dtype, shape) for shape in shapes or operator.suites[operator.usual]]
    asked = [problem for problem in own if chosen_for(operator, problem)] or own
    if not count:
        return [Probe(problem) for problem in asked]
    kits = held.kept()
    known_at: dict[int, Any] = {}
    if kits:  # the next kit is for the board of the last one
        board = kits[-1].machine
        vlen = board.vlen if isinstance(board, BoardMachine) else 0
        same = [kit for kit in kits if held.board_of(kit.machine) == held.board_of(board)]
        known_at[vlen if vlen in platform.vlens else platform.vlens[0]] = measured(operator, w, same), ()
    telling = []
    if len(w.all) > 1:
        candidates = Candidates.of(operator, platform, w)
        telling = probing.telling(candidates, known_at, CLOCK.probe_flops, len(kits), count)
    random = probing.at_random(operator, w.dtype, CLOCK.random_probe_flops / 4, len(kits), count - len(telling))
    seen = {problem.label for problem in asked}
    return [*map(Probe, asked), *(probe for probe in (*random, *telling) if probe.problem.label not in seen)]


def _time(held: ProcessorProduct, w: Winners, library: int, seed: Seed, number: int, probe: Probe) -> Step:
    reference, problem = held.operator.reference, probe.problem
    small = w.direct is None or direct.served(held.operator, held.platform, problem)
    which = probe.variants or tuple(range(len(w.all) - (not small)))
    call = reference.call(problem, seed.stream(7, library, number), "normal", Placement.START)
    written = max(buffer.data.size for buffer in call.buffers if buffer.access.value in ("out", "inout"))
    if written <= HALVES:
        call = reference.alternated(problem, call, seed.stream(8, library, number))
    entries = tuple(Entry(library, (reference.variant_flag, variant)) for variant in which)
    request = Time(call, entries, ROUNDS, WARM_NS, MIN_NS, MAX_NS, keep=True, draw=1)
    of = {"dtype": w.dtype, "dims": problem.sizes, "options": dict(problem.options), "variants": list(which)}
    drawn = int(seed.stream(9, library, number).integers(1 << 62))
    return Step(plan.TIME, of, [Planned(problem, request, problem.label, drawn)])
