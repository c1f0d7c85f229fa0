"""Whole searches on the null runner, which needs no compiler: killed on the way and resumed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tensorop import pipeline
from tensorop.events import Done, Trying
from tensorop.model.job import Job
from tensorop.model.kernel import CONFINED
from tensorop.model.verdict import Seed
from tensorop.process.stopping import StopRequest
from tests.support.commands import JOURNAL, events, kill_group, refused, start, tensorop, wait_for

JOB = ("gemm", "--runner", "null", "--platform", "generic", "--dtype", "f32", "--shapes", "64x64x64", "--jobs", "1")
SEARCH = (*JOB, "--tuner", "bayes", "--trials", "60", "--seed", "3")


def path_of(folder: Path) -> list[Any]:
    """What was tried in which order, and what came of it."""
    return [(r["key"], r["outcome"]["kind"], r["score"]) for r in events(folder, "finished")]


def test_killed_and_resumed_equals_uninterrupted(tmp_path: Path) -> None:
    for least in (5, 30):
        child = start(*SEARCH, "--out", "killed", cwd=tmp_path)
        wait_for(lambda least=least: len(events(tmp_path / "killed", "finished")) >= least, child)  # type: ignore[misc]
        kill_group(child)
        child.communicate()
    for folder in ("killed", "whole"):
        ended = tensorop(*SEARCH, "--out", folder, "--format", "json", cwd=tmp_path)
        assert ended.status == 0, ended.stderr
        assert ended.json()["library"] is None
        assert "nothing is built" in ended.json()["notes"][0]
    assert len(path_of(tmp_path / "whole")) == 60
    assert path_of(tmp_path / "killed") == path_of(tmp_path / "whole")


def test_a_larger_budget_goes_on_from_a_smaller_one(tmp_path: Path) -> None:
    tried: list[list[Any]] = []
    for trials in ("10", "40"):
        ended = tensorop(*JOB, "--trials", trials, "--out", "out", cwd=tmp_path)
        assert ended.status == 0, ended.stderr
        tried.append(path_of(tmp_path / "out"))
    assert len(events(tmp_path / "out", "run")) == 1
    assert tried[1][: len(tried[0])] == tried[0]
    # what kernels are verified on was drawn once, before anything was tried
    notes = [note["data"] for note in events(tmp_path / "out", "note") if note["name"] == "seed"]
    assert len(notes) == 1
    assert str(Seed.parse(notes[0])) == notes[0]
    assert len({key for key, _, _ in tried[1]}) == len(tried[1]) > len(tried[0])


def test_the_trials_of_a_job_are_in_its_layout(tmp_path: Path) -> None:
    words = (*JOB[:-4], "--shapes", "64x64x64,512x512x512", "--trials", "30", "--out", "out")
    assert tensorop(*words, "--layout", "1", cwd=tmp_path).status == 0
    large = {text for text in _texts(events(tmp_path / "out", "finished")) if text.startswith("512x512x512 ")}
    assert large == {"512x512x512 f32 layout=row tb=1"}
    assert "layout was 1, is absent" in refused(*words, cwd=tmp_path)
    said = refused(*words[:-2], "--layout", "3", cwd=tmp_path)
    assert "--layout 3 does not exist: gemm has the layouts 0 to 2" in said
    assert "they are 0 (row), 1 (row,tb=1), 2 (row,ta=1)" in said


def _texts(found: object) -> Iterator[str]:
    """The keys of nested records."""
    if isinstance(found, list | dict):
        for one in found:
            yield from _texts(one if isinstance(found, list) else found[one])
            yield from [one] if isinstance(one, str) else []


def test_fresh_forgets(tmp_path: Path) -> None:
    for more in ((), ("--fresh", "--seed", "4")):
        ended = tensorop(*JOB, "--trials", "6", "--out", "out", *more, cwd=tmp_path)
        assert ended.status == 0, ended.stderr
    assert len(path_of(tmp_path / "out")) == 6
    assert events(tmp_path / "out", "run")[0]["facts"]["seed"] == 4


def test_fresh_asks_the_model_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with HTTPServer(threaded=True) as server:
        asked: list[Request] = []

        def answer(request: Request) -> Response:
            asked.append(request)
            body = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "none"}}]}
            return Response(json.dumps(body), 200, None, "application/json")

        server.expect_request("/v1/chat/completions").respond_with_handler(answer)
        settings = {"OPENAI_BASE_URL": server.url_for("/v1"), "TENSOROP_LLM_MODEL": "m", "OPENAI_API_KEY": "sk-0123"}
        for name, value in settings.items():
            monkeypatch.setenv(name, value)
        words = (*JOB, "--trials", "6", "--out", "out", "--author", "llm", "--author-calls", "1")
        counts = []
        for more in ((), (), ("--fresh",)):
            ended = tensorop(*words, *more, cwd=tmp_path)
            assert ended.status == 0, ended.stderr
            counts.append(len(asked))
    assert counts[0] == counts[1] < counts[2]


def test_a_job_takes_the_seed_that_one_printed(tmp_path: Path) -> None:
    def noted(*more: str) -> Any:
        ended = tensorop(*JOB, "--trials", "6", "--out", "out", *more, cwd=tmp_path)
        assert ended.status == 0, ended.stderr
        return [note["data"] for note in events(tmp_path / "out", "note") if note["name"] == "seed"]

    whole = str(Seed(4, 0xAB))
    assert noted("--seed", whole) == noted("--seed", "4") == noted("--seed", whole) == [whole]
    said = refused(*JOB, "--trials", "6", "--out", "out", "--seed", "4:cd", cwd=tmp_path)
    assert f"--seed differs from the run in out, which has the seed {whole}" in said


def test_a_run_is_of_the_flags_it_began_with(tmp_path: Path) -> None:
    words = (*JOB, "--trials", "6", "--out", "out")
    assert tensorop(*words, cwd=tmp_path).status == 0
    path = tmp_path / "out" / JOURNAL
    path.write_text(path.read_text().replace(CONFINED[0], "-ftrivial-auto-var-init=pattern"))
    assert "compiler flags was" in refused(*words, cwd=tmp_path)


def test_stopped_before_any_blocking_where_vlens_have_kernels_of_their_own(tmp_path: Path) -> None:
    stop = StopRequest()
    shapes = ((16, 16, 16),)
    job = Job("gemm", platform="rvv", runner="null", dtypes=("f32",), shapes=shapes, trials=30, out=tmp_path / "out")
    told = []
    for event in pipeline.run(job, stop):
        told.append(event)
        if isinstance(event, Trying):
            assert event.stage == "micro"
            stop.ask()
    assert isinstance(told[-1], Done)
    assert told[-1].early
