"""Recorded dialogues with a language model: what was accepted then passes the gate now, and the best is as fast."""

from __future__ import annotations

import io
import re
import tarfile
from functools import cache
from pathlib import Path

import pytest

from tensorop.author.llm import accounting, reading, transcript
from tensorop.author.llm.messages import ModelReply
from tensorop.backends import reach
from tensorop.model.kernel import KernelTemplate, Variant
from tensorop.model.operator import Operator
from tensorop.model.platform import Platform
from tensorop.model.point import Point
from tensorop.model.stage_run import StageRun
from tensorop.model.trial import Limit, Outcome, Stage, Trial
from tensorop.model.verdict import Seed
from tensorop.render import instantiate
from tensorop.render.render import RenderError
from tensorop.render.texts import Texts
from tensorop.specs import operators, platforms
from tensorop.trial import judging
from tensorop.trial.evaluator import Evaluator
from tensorop.trial.trial import FIRST_S, carry_out
from tests.support.commands import ROOT

DATA = ROOT / "tests" / "data" / "transcripts"
DIALOGUES = sorted(path.name.removesuffix(".tar.xz") for path in DATA.glob("*.tar.xz"))
# Accepted templates that the gate refuses for operands in place, and the reason
NOT_IN_PLACE = {
    **{("cortex-a53-feedback-2", f"llm-{number}"): "stands '|'" for number in (2, 3, 4, 5)},
    ("cortex-a53-feedback-greedy-5", "llm-2"): "lanes of a vector with 0 written lanes",
    ("spacemit-k1-feedback-2", "llm-3"): "rendered to more than",
}
BEST = ("cortex-a53-feedback-greedy-4", "llm-4", {"ku": 16, "mr_vectors": 3, "nr": 8, "pc": 0}, 156.0)


def opened(name: str, folder: Path) -> Path:
    with tarfile.open(fileobj=io.BytesIO((DATA / f"{name}.tar.xz").read_bytes())) as archive:
        archive.extractall(folder, filter="data")
    return folder


def templates(folder: Path) -> dict[str, KernelTemplate]:
    """The accepted templates, each made from the answer, or by its edits of the one that its question shows."""
    found: dict[str, KernelTemplate] = {}
    for call in transcript.calls(folder):
        if call.outcome is not None and call.outcome.ok and isinstance(call.answer, ModelReply):
            asked = call.request.messages[-1].text
            best = re.search(r"(Your best template so far|The (template|family) to change) is `[\w-]+`", asked)
            text = asked.partition("````\n")[2].partition("\n````")[0] if best else ""
            found[call.template] = reading.template(
                call.answer.text, operator="gemm", name=call.template, author="llm", current=f"{text}\n"
            )
    return found


def refusal(operator: Operator, platform: Platform, variant: Variant) -> str:
    """Why there is no text of a kernel; empty if there is one."""
    try:
        text = Texts().kernel(operator, platform, variant)
    except RenderError as error:
        return error.message
    return text.message if isinstance(text, Outcome) else ""


@cache
def table() -> dict[str, tuple[int, list[float]]]:
    """Calls and costs in the README, by dialogue."""
    rows = (
        line.split("|")
        for line in (DATA / "README.md").read_text().splitlines()
        if re.match(r"\| (cor|spa|cuda|rvv)", line)
    )
    return {
        row[1].strip(): (int(row[2].split(" of ")[1]), [float(cost) for cost in re.findall(r"[\d.]+", row[3])])
        for row in rows
    }


@pytest.mark.one_in(30)
@pytest.mark.parametrize("name", DIALOGUES)
def test_what_was_accepted_passes_the_gate(name: str, tmp_path: Path) -> None:
    folder = opened(name, tmp_path)
    account = accounting.account(folder)
    found = templates(folder)
    calls, costs = table()[name]
    assert len([call for call in account.calls if call.kind]) == calls
    assert len(costs) == account.accepted == len(found)
    operator, platform = operators.load("gemm"), platforms.load(re.sub(r"-(no-)?feedback.*", "", name))
    for label, template in found.items() if platform.device is None else ():
        (point,) = judging.chosen(template, instantiate.micro_space(platform, template, "f32"), 1)
        for packed in (1, 0):
            both = Point.of({**point, "pack_a": packed, "pack_b": packed})
            full = instantiate.defaults(operator, platform, "f32", both)
            refused = refusal(operator, platform, instantiate.variant(operator, template, "f32", full))
            why = "" if packed else NOT_IN_PLACE.get((name, label), "")
            assert why in refused if why else not refused, (label, packed, refused)


@pytest.mark.extended
def test_the_best_is_verified_and_costs_what_it_cost(tmp_path: Path) -> None:
    name, best, configuration, cost = BEST
    template = templates(opened(name, tmp_path / "llm"))[best]
    operator, target = operators.load("gemm"), reach(platforms.load("cortex-a53"))
    evaluator = Evaluator(operator, target, StageRun("f32", Stage.MICRO, (), Seed.draw()), tmp_path, Texts())
    variant = instantiate.variant(operator, template, "f32", Point.of(configuration))
    ended = carry_out(evaluator, Trial("best", 0, Stage.MICRO, variant), Limit(FIRST_S, "of a test"))
    assert ended.outcome.ok, ended.outcome
    assert ended.score.cost == pytest.approx(cost, rel=0.005)
    assert cost == min(cost for of, (_, costs) in table().items() if of.startswith("cortex-a53") for cost in costs)
