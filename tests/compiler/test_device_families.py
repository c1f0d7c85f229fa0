"""A language model's kernel families for a GPU: executed on this machine's processor, compiled by nvcc, in a product.

The model is a real HTTP server that answers with what models answer with.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.commands import opened
from tensorop.cuda import author
from tensorop.events import Done, Event, Note
from tensorop.model.job import Job
from tensorop.model.trial import Kind
from tests.compiler.test_device_nvcc import _lacks_nvcc
from tests.compiler.test_llm_author import model
from tests.support.families import GOOD, NO_CUDA, OUT_OF_BOUNDS, WITHOUT_A_BARRIER, answer

pytestmark = pytest.mark.skipif(_lacks_nvcc(), reason="no nvcc or g++: python -m tensorop.provision nvcc")
__all__ = ["model"]  # the fixture
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
    assert "redefinition" in asked[1] or "already been declared" in asked[1]
    assert "wrong-result" in asked[3]
    assert "of 64 elements" in facts["answers"][2]["message"] or "elements wrong" in facts["answers"][2]["message"]
    assert facts["answers"][3]["message"].split(": ")[1] == "bounds"
    variants = [one for of in card["dtypes"].values() for one in of["variants"]]
    assert {one["author"] for one in variants} == {"offline", "llm"}
    assert all(one["counted"]["k_products"] > 0 for one in variants if one["author"] == "llm")
    # the same command asks nothing again, and makes the same product
    manifest = (events[-1].out / "share/tensorop/manifest.json").read_text()
    again = list(pipeline.run(job(tmp_path / "out")))
    assert len(asked) == 4
    assert json.loads(manifest) == json.loads((again[-1].out / "share/tensorop/manifest.json").read_text())
