"""Measures the tunables of BLAS routines in libraries that differ in them, before the last one is built."""

from __future__ import annotations

import math
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from pathlib import Path

from tensorop.commands import libraries, routines
from tensorop.commands.contest import Contest
from tensorop.events import Event, Note, Phase
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.measure.samples import objective
from tensorop.model.operator import Operator
from tensorop.model.trial import Outcome
from tensorop.model.winner import Winners
from tensorop.package import publish
from tensorop.package.product import Product
from tensorop.process import scratch
from tensorop.render import adapting
from tensorop.runners.protocol import Entry
from tensorop.search.task import JobContext
from tensorop.space import problems
from tensorop.specs import products
from tensorop.specs.products import TunableSpec

NOTE = "tunables"  # journal note: the chosen values of each dtype
_ROUNDS = 3  # of measurements on a clock, of which the shortest counts
_BETTER = 0.98  # another value than the usual one takes at most this share of its time

_Made = Callable[[list[Winners]], Product]


def measured(whole: JobContext, found: list[Winners], made: _Made) -> Generator[Event, None, list[Winners]]:
    """The winners with values of the product's tunables; those of the journal, if it has them.

    made: builds the product of winners. Without a search, or after a stop request, the usual values stay.
    """
    specs = products.load(whole.operator).tunables
    if not specs or whole.job.no_search or whole.stop.asked:
        return found
    noted = [data for name, data in whole.journal.history.notes if name == NOTE]
    if not noted:
        yield Phase("tunables", f"{', '.join(specs)}: each value in a library of its own")
        noted = [_chosen(whole, found, specs, made)]
        whole.journal.note(NOTE, noted[0])
    for dtype, values in noted[-1].items():
        yield Note(f"{dtype}: {', '.join(f'{name} {value}' for name, value in values.items())}")
    return [replace(w, of_routines=dict(noted[-1].get(w.dtype, {}))) for w in found]


def _chosen(
    whole: JobContext, found: list[Winners], specs: Mapping[str, TunableSpec], made: _Made
) -> dict[str, dict[str, int]]:
    costs: dict[tuple[str, str, int], list[float]] = {}  # by dtype, tunable and value, of each round
    rounds = 1 if whole.target.deterministic else _ROUNDS
    with scratch.folder("tunables") as folder:
        placed: dict[int, Path] = {}  # the number of a value -> the library in which every tunable has that value
        for number in range(max(len(one.values) for one in specs.values())):
            numbers = {name: one.values[min(number, len(one.values) - 1)] for name, one in specs.items()}
            content = made([replace(w, of_routines=numbers) for w in found])
            placed[number] = publish.stage(content, folder / str(number)).library
        for _ in range(rounds):
            for name, one in specs.items():
                for w in found:
                    for number, value in enumerate(one.values):
                        cost = _cost(whole, placed[number], one, w.dtype)
                        costs.setdefault((w.dtype, name, value), []).append(cost)

    def best(dtype: str, name: str, one: TunableSpec) -> int:
        cost = {value: min(costs[dtype, name, value]) for value in one.values}
        usual, least = one.values[0], min(one.values, key=lambda value: cost[value])
        return least if cost[least] < _BETTER * cost[usual] else usual

    return {w.dtype: {name: best(w.dtype, name, one) for name, one in specs.items()} for w in found}


def _cost(whole: JobContext, library: Path, one: TunableSpec, dtype: str) -> float:
    """The geometric mean of the costs of a routine's calls; infinite if one was not measured."""
    operator: Operator = routines.as_operator(whole.operator, one.routine)
    target, program = whole.target, adapting.program(whole.target.platform, operator).path
    ours = libraries.ours(operator, library, 1)
    contest = Contest(operator, target, program, ours, (), 1, False, seed=whole.seed)
    logs = []
    for sizes in one.shapes:
        problem = problems.of(operator, dtype, tuple(sizes))
        request = MeasureRequest(program, [contest.call(problem)], [Entry(0)], Purpose.CHOICE)

        def at(vlen: int, request: MeasureRequest = request) -> MeasureRequest:
            return replace(request, vlen=vlen, guest=contest.guest((ours,), dtype, vlen))

        cost = target.measure_each(at)
        if isinstance(cost, Outcome):
            return math.inf
        logs += [math.log(objective(samples, vlen)) for vlen, samples in cost[0].items()]
    return math.exp(sum(logs) / len(logs))
