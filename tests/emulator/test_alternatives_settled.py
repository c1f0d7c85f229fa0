"""A board model's alternatives under the plug-in: beside the figures, and told apart by the micro-benchmarks."""

import pytest

from tensorop.backends import start
from tensorop.calibration import settle
from tensorop.commands import microbench
from tensorop.measure import modelled
from tensorop.measure.request import MeasureRequest, Purpose
from tensorop.runners.protocol import Entry
from tensorop.specs import board, platforms
from tensorop.specs.board_alternative import switched

FIGURES = ("demand_prefetch_l2", "walk_l2", "walk_vector_l2")


@pytest.mark.parametrize("name", ["spacemit-k1", "cortex-a53"])
@pytest.mark.extended
def test_a_verdict_flips_when_the_alternative_is_switched_on(name):
    platform = platforms.load(name)
    model = board.load(platform.board, name)
    runner, vlen = start(platform), platform.vlens[0]
    benches = microbench.prepare(platform, vlen, FIGURES)
    asked = microbench.questions(benches, runner, model, vlen)

    def verdicts(on):
        core = board.load(switched(platform.board, on, "this test"), name)
        cycles = {b.benchmark.name: c[0] for b, c in microbench.model(benches, runner, core, vlen, "best")}
        return settle.verdicts(asked, cycles)

    assert verdicts([]) == dict.fromkeys(model.alternatives, "refuted")
    for alternative, what in model.alternatives.items():
        found = verdicts([alternative])
        assert found[alternative] == "shown"
        # what is part of it shows too, and nothing else
        shown = {name for name, other in model.alternatives.items() if other.change.items() <= what.change.items()}
        assert {name for name, said in found.items() if said == "shown"} == shown


@pytest.mark.extended
def test_alternatives_stand_beside_the_interval_and_change_no_figure():
    platform = platforms.load("spacemit-k1")
    model = board.load(platform.board, "test")
    (bench,) = microbench.prepare(platform, 256, ["walk_vector_l2"])

    def count(alternatives):
        purpose = Purpose.FINAL if alternatives else Purpose.CHOICE
        request = MeasureRequest(bench.program, [bench.call], [Entry(1)], purpose, 256)
        (found,) = modelled.count(start(platform), model, request, "interval")
        return found.samples

    plain, beside = count(False), count(True)
    assert (beside.value, beside.low, beside.high) == (plain.value, plain.low, plain.high)
    under = beside.alternative_costs
    assert list(under) == list(model.alternatives)
    assert under["vectors prefetched"] < plain.low
    assert plain.alternative_costs == {}
    assert beside.counters == plain.counters
