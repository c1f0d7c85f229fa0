"""A language model's kernel families for a GPU: executed on this machine's processor, compiled by nvcc, in a product.

The model is a real HTTP server that answers with what models answer with.
"""

from __future__ import annotations

import json
import re
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tensorop import pipeline
from tensorop.author import offline, parse, plans
from tensorop.commands import opened, report
from tensorop.cuda import attached, author, counted
from tensorop.cuda import backend as cuda
from tensorop.cuda.choose import Candidate
from tensorop.cuda.device_numbers import device_numbers
from tensorop.cuda.executed import Execution
from tensorop.cuda.family import Family
from tensorop.errors import UsageError
from tensorop.events import Done, Event, Note
from tensorop.kits import device, here
from tensorop.model.job import Job
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tests.compiler.test_device_nvcc import _lacks_nvcc
from tests.compiler.test_llm_author import model
from tests.support.commands import Watched, tensorop
from tests.support.families import (
    GOOD,
    HEAD,
    HOST_CODE,
    MISALIGNED,
    NO_CUDA,
    OUT_OF_BOUNDS,
    WITHOUT_A_BARRIER,
    WITHOUT_A_WAIT,
    WITHOUT_BETA,
    answer,
)  # fmt: skip

pytestmark = [
    pytest.mark.nvcc,
    pytest.mark.skipif(_lacks_nvcc(), reason="no nvcc or g++: python -m tensorop.provision nvcc"),
]
__all__ = ["model"]  # the fixture
GEMM, WMMA = operators.load("gemm"), platforms.load("cuda-wmma")
SHAPES = ((64, 64, 4096),)


def job(out: Path, **more: object) -> Job:
    given = {"author": "llm", "dtypes": ("bf16",), "shapes": SHAPES, "trials": 8, "jobs": 4, "seed": 1, "secret": 5}
    return Job("gemm", "cuda-wmma", out=out, **{**given, **more})


def notes(events: list[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Note)]


def test_a_right_family_is_in_the_library_and_the_others_are_refused_with_a_reason(
    model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(author, "POINTS", 1)
    monkeypatch.setattr(author, "TEMPLATES", 2)
    asked = model(answer("no CUDA", NO_CUDA), answer("good", GOOD), answer("a race", WITHOUT_A_BARRIER),
                  answer("out", OUT_OF_BOUNDS))  # fmt: skip
    events = list(pipeline.run(job(tmp_path / "out")))
    assert isinstance(events[-1], Done)
    (card,) = opened.cards(events[-1].out).values()
    facts = card["facts"]
    kinds = [(one["name"], one["repair"], one["kind"]) for one in facts["answers"]]
    assert kinds == [
        ("llm-1", 0, Kind.COMPILE), ("llm-1", 1, Kind.OK), ("llm-2", 0, Kind.WRONG), ("llm-2", 1, Kind.REFUSED),
    ], notes(events)  # fmt: skip
    assert "must be a modifiable lvalue" in asked[1] or "const" in asked[1]
    assert "wrong-result" in asked[3]
    assert "of 64 elements" in facts["answers"][2]["message"] or "elements wrong" in facts["answers"][2]["message"]
    assert facts["answers"][3]["message"].split(": ")[1] == "bounds"
    variants = [one for of in card["dtypes"].values() for one in of["variants"]]
    assert {one["author"] for one in variants} == {"offline", "llm"}
    assert all(one["counted"]["k_products"] > 0 for one in variants if one["author"] == "llm")
    assert "Predicted cycles by shape" not in asked[0]
    assert "| 64x64x4096 |" in asked[2]
    assert re.search(r"\| deep=4 tile_m=32 tile_n=32 \| [1-9]\d+ \|", asked[2]), asked[2]
    # a kit is made from the product alone
    kit = device.read(opened.open_product(events[-1].out))
    content = kit.target._content(kit.predicted)
    assert {one.candidate.template.author for one in content.variants} == {"offline", "llm"}
    assert "llm-1" in {one.candidate.template.name for one in content.variants}
    # the same command asks nothing again, and makes the same product
    manifest = (events[-1].out / "share/tensorop/manifest.json").read_text()
    monkeypatch.setattr(attached, "attached", lambda device: "a GPU")
    monkeypatch.setattr(Execution, "verdict", lambda *_: pytest.fail("executed again"))
    again = list(pipeline.run(job(tmp_path / "out")))
    assert any("a GPU is not used: nothing confines" in note for note in notes(again))
    with pytest.raises(UsageError, match="has kernels by llm"):
        here.verify(opened.open_product(again[-1].out))
    assert len(asked) == 4
    assert json.loads(manifest) == json.loads((again[-1].out / "share/tensorop/manifest.json").read_text())


@pytest.mark.extended
def test_a_replay_makes_the_same_library_and_the_report_shows_the_rounds(
    model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(author, "POINTS", 1)
    monkeypatch.setattr(author, "TEMPLATES", 2)
    asked = model(answer("good", GOOD), answer("out", OUT_OF_BOUNDS), answer("out again", OUT_OF_BOUNDS + "\n"))
    out, again = (tmp_path / name for name in ("out", "again"))
    list(pipeline.run(job(out)))
    events = list(pipeline.run(job(again, author="replay", transcript=out)))
    assert isinstance(events[-1], Done)
    assert len(asked) == 3
    manifests = [json.loads((folder / "share/tensorop/manifest.json").read_text()) for folder in (out, again)]
    assert manifests[0] == manifests[1]
    record, page = report.report(out)
    assert record.author is not None
    calls = [(one.call.question, one.call.template, one.call.failed_at) for one in record.author.rounds]
    assert calls == [(1, "llm-1", ""), (2, "llm-2", "gates"), (2, "llm-2", "gates")]
    assert set(record.absent) == {"bench"}
    assert "llm-1 accepted" in page.read_text()


@pytest.mark.extended
def test_ctrl_c_while_the_model_is_asked_leaves_no_library_and_the_same_command_goes_on(
    httpserver: HTTPServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pressed = threading.Event()
    message = {"role": "assistant", "content": answer("good", GOOD)}
    body = json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})

    def late(request: Request) -> Response:
        pressed.wait(60)
        return Response(body, 200, None, "application/json")

    httpserver.expect_request("/v1/chat/completions").respond_with_handler(late)
    monkeypatch.setenv("OPENAI_BASE_URL", httpserver.url_for("/v1"))
    monkeypatch.setenv("TENSOROP_LLM_MODEL", "m")
    words = ("gemm", "--platform", "cuda-wmma", "--dtype", "bf16", "--shapes", "64x64x4096", "--trials", "8")
    run = Watched(*words, "--author", "llm", "--author-calls", "1", "--out", "out", cwd=tmp_path)
    run.until("asking the language model")
    time.sleep(1.0)
    run.press()
    run.until(lambda: "there will be no library" in run.told or run.child.poll() is not None, 10)
    pressed.set()
    ended = run.finish(60)
    assert ended.status == 130, ended.stderr
    assert "Traceback" not in ended.stderr
    assert not (tmp_path / "out" / "lib").exists()
    again = tensorop(*words, "--author", "llm", "--author-calls", "1", "--out", "out", cwd=tmp_path)
    assert again.status == 0, again.stderr
    assert "llm-1: accepted" in again.stderr


def candidate(body: str, dtype: str = "f16") -> Candidate:
    """The largest configuration of a family, A along K and B along N."""
    template = parse.parse(HEAD.format(what="x") + body, operator="gemm", name="llm-1", author="llm")
    family = Family(GEMM.on_device, template, {**device_numbers(WMMA), "a_along_m": 0, "b_along_k": 0})
    return Candidate(family, family.size - 1)


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("body", "kind", "says"),
    [
        (WITHOUT_A_BARRIER, Kind.WRONG, "C["),
        (WITHOUT_A_WAIT, Kind.WRONG, "C["),
        (WITHOUT_BETA, Kind.WRONG, "beta="),
        (MISALIGNED, Kind.CRASH, "a primitive trapped"),
    ],
)
def test_the_execution_names_the_call_that_a_wrong_family_fails(body: str, kind: Kind, says: str) -> None:
    found = Execution(GEMM, WMMA, Seed.draw()).verdict(candidate(body), "f16")
    assert found.kind is kind, found
    assert says in found.message
    assert "(case " in found.message


@pytest.mark.parametrize("what", HOST_CODE)
def test_code_that_is_none_of_a_kernel_is_not_compiled(what: str) -> None:
    found = Execution(GEMM, WMMA, Seed.draw()).verdict(candidate(HOST_CODE[what]), "f16")
    assert found.kind is Kind.REFUSED, found


def test_counts_of_a_shipped_kernel_cost_what_its_own_model_predicts() -> None:
    """The terms of both models are the same, so neither family is favoured."""
    given = {**device_numbers(WMMA), "a_along_m": 1, "b_along_k": 0}
    own = Family(
        GEMM.on_device,
        next(one for one in offline.templates(GEMM.folder, "gemm", suffix=cuda.SUFFIX) if one.name == "wmma"),
        given,
    )
    template = replace(counted.modelled(own.template, GEMM), author="llm")
    families = counted.CountedFamilies([template])
    one = Candidate(Family(GEMM.on_device, template, given), 0)
    counts = Execution(GEMM, WMMA, Seed.draw()).counts(one, "f16")
    assert isinstance(counts, dict), counts
    families.add(one, counts)
    plan = plans.counted(plans.parse(own.template.plan, "wmma"), one.numbers)
    assert plan.wrong == ""
    turns = 1024 // int(one.numbers["tile_k"])
    assert turns * plan.multiply_adds == 16**3 * counts["k_products"]
    assert turns * plan.copied == counts["k_copied_bytes"]
    assert plan.shared == one.numbers["shared"]
    assert plan.registers == one.numbers["accumulators"]
    same = Family(GEMM.on_device, template, given, families.of(template, (1, 0)))
    for m, n, k in ((64, 64, 4096), (4096, 4096, 4096), (16, 4096, 1024)):
        call = {"m": m, "n": n, "k": k, "batch": 1}
        assert same.predicted(call)[0] == pytest.approx(own.predicted(call)[0], rel=0.02)
