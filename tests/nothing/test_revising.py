"""The loop of questions during a search, with simulated costs: killed, resumed, replayed; what is asked, and when."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tensorop.commands import report
from tensorop.model.trial import Finished, Stage
from tensorop.store import journal
from tests.compiler.test_llm_author import GOOD, HEAD
from tests.support import commands

FIRST = HEAD.format(what="first") + GOOD
EDIT = """<<<<<<< SEARCH
  nr: [3]
=======
  nr: [6]
>>>>>>> REPLACE
"""
VAIN = EDIT.replace("nr: [3]", "nr: [33]")
WIDEST = HEAD.format(what="widest").replace("nr: [3]", "nr: [8]") + GOOD
ANSWERS = (f"```\n{FIRST}```\n", EDIT, VAIN, "Sorry.", f"```\n{WIDEST}```\n")
GROUP = (Stage.MICRO, "f32", 0)
COMMAND = "gemm --dtype f32 --shapes 24x24x24 --jobs 1"
NULL = ("--platform", "generic", "--runner", "null")
TRIALS = (*NULL, "--trials", "60")


class Model:
    """A server that plays its answers in turn, again and again."""

    def __init__(self, server: HTTPServer) -> None:
        self.asked: list[str] = []
        self.answers: tuple[str, ...] = ANSWERS
        self.before: Callable[[int], object] = lambda number: None  # called with the number of a question, from 1
        server.expect_request("/v1/chat/completions").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        self.asked.append(json.loads(request.data)["messages"][-1]["content"])
        self.before(len(self.asked))
        message = {"role": "assistant", "content": self.answers[(len(self.asked) - 1) % len(self.answers)]}
        body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
        return Response(json.dumps(body), 200, None, "application/json")


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[Model]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "TENSOROP_OFFLINE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENSOROP_LLM_MODEL", "m")
    with HTTPServer(threaded=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        yield Model(server)


def started(out: Path, *more: str) -> commands.Child:
    return commands.start(*COMMAND.split(), "--out", out, *more, cwd=out.parent)


def printed(run: commands.Child, timeout_s: float = 120) -> str:
    ended = commands.finish(run, timeout_s)
    return ended.stderr + ended.stdout


def tried(history: journal.History) -> list[tuple[str, str, float | None]]:
    ends = [end for end in history.replay() if isinstance(end, Finished)]
    return [(end.trial.stage.value, str(end.trial.variant), end.score.cost) for end in ends]


def noted(history: journal.History) -> list[tuple[str, int, str]]:
    return [(data["name"], data["repair"], data["kind"]) for name, data in history.notes if name == "author"]


WHOLE = [
    ("llm-1", 0, "ok"), ("llm-2", 0, "ok"), ("answer 3", 0, "refused"), ("answer 3", 1, "refused"), ("llm-4", 0, "ok"),
]  # fmt: skip
LLM = ("--author", "llm", "--author-calls", str(len(ANSWERS)))


@pytest.mark.extended
def test_asked_again_killed_resumed_and_replayed(model: Model, tmp_path: Path) -> None:
    out, replayed = tmp_path / "out", tmp_path / "replayed"
    run = started(out, *TRIALS, *LLM)
    model.before = lambda number: os.kill(run.pid, signal.SIGKILL) if number == 3 else None
    printed(run)
    assert run.returncode == -signal.SIGKILL
    first, better, lost = model.asked
    assert "Write a new template" in first
    assert "Your best template so far is `llm-1`" in better
    assert "| outer | tensorop |" in better
    assert "24x24x24" in better

    model.asked.pop()  # the third question got no answer
    model.before = lambda number: None
    text = printed(started(out, *TRIALS, *LLM))
    assert "a call was in flight when the last process ended: the first question with seed 3" in text
    assert model.asked[2] == lost
    assert len(model.asked) == len(ANSWERS)
    assert "is not in the template" in model.asked[3]
    assert "Recent answers failed" in model.asked[4]
    history = journal.read(out)
    assert noted(history) == WHOLE
    (second, after), (last, _) = history.joined(GROUP)
    assert (second.name, last.name) == ("llm-2", "llm-4")
    assert "nr: [6]" not in second.text
    assert second.tunables["nr"] == (6,)
    assert second.parent == next(one.digest for one in history.templates.values() if one.name == "llm-1")
    names = [end.trial.variant.template.name for end in history.ended(GROUP)]
    assert names[after] == "llm-2"
    record, _ = report.report(out)
    assert {one.name: one.parent for one in record.templates}["llm-2"] == "llm-1"

    shown = commands.tensorop("prompt", "gemm", "--platform", "generic", "--run", out, "--round", "2", cwd=tmp_path)
    assert better.strip() in shown.stdout
    words = ("prompt", "gemm", "--platform", "generic", "--run", out, "--round", "9")
    assert "has 5 rounds" in commands.refused(*words, cwd=tmp_path)

    (replayed / "work").mkdir(parents=True)
    shutil.copytree(out / "work" / "llm", replayed / "work" / "llm")
    text = printed(started(replayed, *TRIALS, "--author", "replay"))
    assert len(model.asked) == len(ANSWERS)
    assert noted(journal.read(replayed)) == WHOLE, text
    assert tried(journal.read(replayed)) == tried(history)


@pytest.mark.extended
def test_a_resumed_run_knows_what_failed_before_the_search(model: Model, tmp_path: Path) -> None:
    model.answers = (ANSWERS[0], "Sorry.", "Sorry.", EDIT, ANSWERS[-1], ANSWERS[-1])
    job = (*TRIALS, "--author", "llm", "--author-calls", "6")
    run = started(tmp_path, *job)
    model.before = lambda number: os.kill(run.pid, signal.SIGKILL) if number == 4 else None
    printed(run)
    assert "Your best template so far" in model.asked.pop()
    model.before = lambda number: None
    text = printed(started(tmp_path, *job))
    assert len(model.asked) == 6, text
    failures = model.asked[4].split("Recent answers failed")[1]
    assert failures.count("expected a head between two lines") == 2
    assert "llm-4: rejected: refused: this template was answered before" not in text
    assert "answered before, word for word" in text


@pytest.mark.extended
def test_each_dtype_is_asked_about_and_replayed(model: Model, tmp_path: Path) -> None:
    whole = (HEAD.format(what=f"{nr} columns").replace("nr: [3]", f"nr: [{nr}]") + GOOD for nr in (3, 4, 5, 6, 7))
    model.answers = tuple(f"```\n{text}```\n" for text in whole)
    job = (*TRIALS, "--dtype", "f32,f64")
    text = printed(started(tmp_path / "out", *job, *LLM), 240)
    assert ["for f64; less is better" in asked for asked in model.asked] == [False] * 3 + [True] * 2, text
    history = journal.read(tmp_path / "out")
    groups = GROUP, (Stage.MICRO, "f64", 0)
    assert [[template.name for template, _ in history.joined(group)] for group in groups] == [
        ["llm-2", "llm-3"], ["llm-4", "llm-5"],
    ]  # fmt: skip
    tried_f64 = {end.trial.variant.template.name for end in history.ended(groups[1])}
    assert {"llm-1", "llm-2", "llm-3", "llm-4", "llm-5"} <= tried_f64
    again = tmp_path / "again"
    text = printed(started(again, *job, "--author", "replay", "--transcript", str(tmp_path / "out")), 240)
    assert len(model.asked) == 5
    assert tried(journal.read(again)) == tried(history), text


@pytest.mark.extended
def test_the_search_waits_for_a_slow_model_and_does_not_pay_for_it(model: Model, tmp_path: Path) -> None:
    model.before = lambda number: time.sleep(2.0)
    began = time.monotonic()
    text = printed(started(tmp_path, *NULL, *LLM, "--budget", "2s"))
    assert time.monotonic() - began > 2.0 * len(ANSWERS)
    history = journal.read(tmp_path)
    assert noted(history) == WHOLE, text
    assert history.spent(GROUP) < 5.0


@pytest.mark.extended
def test_ctrl_c_does_not_wait_for_the_model(model: Model, tmp_path: Path) -> None:
    pressed = threading.Event()
    model.before = lambda number: pressed.wait(60 * (number == 2))
    run = started(tmp_path, *TRIALS, *LLM)
    while len(model.asked) < 2:
        assert run.poll() is None
        time.sleep(0.05)
    time.sleep(1.0)
    os.kill(run.pid, signal.SIGINT)
    text = printed(run, 30)
    pressed.set()
    assert "stopping the search" in text
    assert run.returncode == 130, text  # simulated costs make no library
    assert "Traceback" not in text
    model.asked.pop()
    model.before = lambda number: None
    text = printed(started(tmp_path, *TRIALS, *LLM))
    assert noted(journal.read(tmp_path))[:2] == WHOLE[:2], text


def answer(folder: Path, number: int, text: str) -> None:
    path = folder / "work" / "llm" / "replies" / f"{number:04d}.md"
    path.write_text(text)
    os.utime(path, (1e9, 1e9))  # it was written long ago


def test_answers_by_hand_and_their_replay(tmp_path: Path) -> None:
    by_hand = (*TRIALS, "--author", "manual", "--withhold", "lanes")
    out, prompts = tmp_path / "out", tmp_path / "out" / "work" / "llm" / "prompts"
    text = printed(started(out, *by_hand))
    assert f"{prompts / '0001.md'} waits for an answer" in text
    assert "and run the same command again" in text.splitlines()[-1]
    assert "Write a new template" in (prompts / "0001.md").read_text()
    before = tried(journal.read(out))
    assert before
    text = printed(started(out, *by_hand))
    assert [path.name for path in prompts.iterdir()] == ["0001.md"], text
    assert tried(journal.read(out)) == before

    answer(out, 1, ANSWERS[0])
    text = printed(started(out, *by_hand))
    assert "llm-1: accepted" in text
    assert "Your best template so far is `llm-1`" in (prompts / "0002.md").read_text()
    answer(out, 2, VAIN)
    text = printed(started(out, *by_hand))
    assert "is not in the template" in (prompts / "0003.md").read_text()
    printed(started(out, *by_hand))
    assert len([*prompts.iterdir()]) == 3
    answer(out, 3, EDIT)
    text = printed(started(out, *by_hand))
    history = journal.read(out)
    assert noted(history) == [("llm-1", 0, "ok"), ("answer 2", 0, "refused"), ("llm-2", 1, "ok")], text
    assert {"llm-1", "llm-2"} <= {end.trial.variant.template.name for end in history.ended(GROUP)}
    assert "lanes" not in {template.name for template in history.templates.values()}
    assert not any("| lanes |" in path.read_text() for path in prompts.iterdir())
    assert "| llm-2 | you | llm-1 |" in (prompts / "0004.md").read_text()  # it was tried before the next question

    answer(out, 4, VAIN)
    text = printed(started(out, *by_hand, "--author-calls", "4"))
    assert "and run the same command again" not in text  # the limit leaves no call for a repair
    assert len([*prompts.iterdir()]) == 4
    history = journal.read(out)

    replay = (*TRIALS, "--author", "replay", "--withhold", "lanes", "--transcript", str(out))
    text = printed(started(tmp_path / "replayed", *replay))
    again = journal.read(tmp_path / "replayed")
    assert noted(again) == noted(history), text
    assert [one.text for one, _ in again.joined(GROUP)] == [one.text for one, _ in history.joined(GROUP)]
    assert "differs from the recording's" not in text
    text = printed(started(tmp_path / "other", *replay, "--seed", "7"))
    assert "--seed 7 differs from the recording's, which is 0" in text


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--withhold", "lane"), "unknown template of gemm 'lane'"),
        (("--withhold", "dot,lanes,outer,stream"), "--withhold leaves no template"),
        (("--author", "replay", "--transcript", "."), "contains no transcript"),
        (("--transcript", "."), "--transcript has no effect without --author replay"),
        (("--leave-out", "hints"), "--leave-out has no effect without --author llm or manual"),
        (("--author-calls", "3"), "--author-calls has no effect without --author llm"),
        (("--author", "llm", "--author-time", "30h"), "--author-time must be a positive time of at most a day"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options: tuple[str, ...], sentence: str, tmp_path: Path) -> None:
    words = (*COMMAND.split(), *NULL, "--out", tmp_path / "out", *options)
    assert sentence in commands.refused(*words, cwd=tmp_path)
