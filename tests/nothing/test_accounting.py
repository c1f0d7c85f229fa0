"""Accounts of a transcript, of prices and of limits in money: by a real HTTP server that plays the language model."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner
from pytest_httpserver import HTTPServer
from werkzeug import Request as Asked
from werkzeug import Response

from tensorop.author.llm import accounting
from tensorop.author.llm.messages import Failure, Message, ModelReply, Request
from tensorop.author.llm.transcript import AuthorLimits, LimitedTransport, RecordedTransport, TranscriptHead
from tensorop.author.llm.transport import Endpoint, Http
from tensorop.cli.main import cli
from tensorop.commands import report
from tensorop.errors import UsageError
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome
from tensorop.specs import prices
from tests.nothing.test_report import RECORDED

PRICES = "schema: 1\ncurrency: EUR\nmodels:\n  m: {prompt: 2, completion: 10.0}\n"
ACCEPTED, WRONG = Outcome(Kind.OK, "author"), Outcome(Kind.WRONG, "verify", "case 3 is wrong")
NO_HEAD, RULE = Outcome(Kind.REFUSED, "author", "expected a head"), Outcome(Kind.REFUSED, "author", "at x: names: y")

Play = Callable[..., RecordedTransport]


def question(number: int, repair: int = 0, trials: int = 0) -> Request:
    told = [Message("user", "write"), *([Message("assistant", "x"), Message("user", "repair")] * repair)]
    return Request("m", tuple(told), seed=7 + number, trials=trials)


@pytest.fixture
def price(tmp_path: Path) -> prices.TokenPrice:
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES)
    return prices.price(path, "m")


@pytest.fixture
def play(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """play(finish, ...): a transport to a server whose n-th answer ends for the n-th reason; None: a status 400."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    with HTTPServer(threaded=True) as server:

        def made(*finishes: str | None, price: prices.TokenPrice | None = None) -> RecordedTransport:
            left = list(finishes)

            def handler(asked: Asked) -> Response:
                if (finish := left.pop(0)) is None:
                    return Response(json.dumps({"error": {"message": "no"}}), 400, None, "application/json")
                choice = {"index": 0, "message": {"role": "assistant", "content": "text"}, "finish_reason": finish}
                usage = {"prompt_tokens": 1000, "completion_tokens": 200}
                return Response(json.dumps({"choices": [choice], "usage": usage}), 200, None, "application/json")

            server.expect_request("/v1/chat/completions").respond_with_handler(handler)
            return RecordedTransport(
                tmp_path / "run/work/llm", Http(Endpoint("m", "none", server.url_for("/v1"))), price
            )

        yield made


def test_each_call_is_recorded_with_tokens_money_and_outcome(play: Play, price: prices.TokenPrice, tmp_path: Path):
    transport = play("stop", "stop", "length", "stop", "stop", None, "stop", price=price)
    transport.begin(TranscriptHead("m", 7))
    asked = [question(1), question(1, 1), question(2), question(3), question(4), question(5), question(6, trials=30)]
    ends = [("", NO_HEAD), ("llm-1", ACCEPTED), None, ("llm-3", RULE), ("llm-4", WRONG), None, ("llm-6", ACCEPTED)]
    for request, end in zip(asked, ends, strict=True):
        answer = transport.complete(request, 5.0)
        assert isinstance(answer, ModelReply) == (end is not None)
        template, outcome = end or ("", answer.outcome if isinstance(answer, Failure) else ACCEPTED)
        transport.settle(request, template, outcome)
    found = accounting.account(tmp_path / "run")
    assert [(call.question, call.repair, call.trials) for call in found.calls][-1] == (6, 0, 30)
    assert [call.failed_at for call in found.calls] == ["template", "", "answer", "gates", "verify", "answer", ""]
    assert [call.kind for call in found.calls if call.failed_at == "answer"] == ["refused", "target-lost"]
    paid = (1000 * 2 + 200 * 10) / 1e6
    assert [call.cost for call in found.calls] == pytest.approx([paid] * 5 + [0.0, paid])  # what was cut costs too
    assert (found.accepted, found.prompt_tokens, found.completion_tokens) == (2, 6000, 1200)
    assert found.cost == pytest.approx(6 * paid)
    assert found.cost_per_accepted == pytest.approx(3 * paid)
    assert found.tokens_per_accepted == 3600
    stages = {one.stage: (one.came, one.passed) for one in found.stages}
    assert stages["answer"] == (7, 5)
    assert stages["template"] == (5, 4)
    assert stages["gates"] == (4, 3)
    assert stages["verify"] == (3, 2)
    again = accounting.account(tmp_path / "run/work/llm")  # a copy of the transcript is enough
    assert again == found


def test_stats_shows_the_account(play: Play, price: prices.TokenPrice, tmp_path: Path):
    transport = play("stop", price=price)
    transport.begin(TranscriptHead("m", 7))
    transport.complete(question(1), 5.0)
    transport.settle(question(1), "llm-1", ACCEPTED)
    shown = CliRunner().invoke(cli, ["author", "stats", str(tmp_path / "run")], catch_exceptions=False)
    assert shown.exit_code == 0
    assert "llm-1 accepted" in shown.stdout
    assert "an accepted kernel cost 1200 tokens" in shown.stdout
    as_json = CliRunner().invoke(cli, ["author", "stats", str(tmp_path / "run"), "--format", "json"])
    assert json.loads(as_json.stdout)["cost_per_accepted"] == pytest.approx(0.004)


def test_without_a_price_or_a_settled_call_nothing_is_made_up(play: Play, tmp_path: Path):
    transport = play("stop")
    transport.complete(question(1), 5.0)
    found = accounting.account(tmp_path / "run")
    assert (found.cost, found.cost_per_accepted, found.tokens_per_accepted) == (None, None, None)
    assert found.calls[0].kind == found.calls[0].failed_at == ""
    assert found.stages[0].came == 0
    (tmp_path / "empty").mkdir()
    with pytest.raises(UsageError, match="has no recorded calls"):
        accounting.account(tmp_path / "empty")


def test_money_is_a_limit_that_earlier_processes_count_in(play: Play, price: prices.TokenPrice, tmp_path: Path):
    limits = AuthorLimits(cost=0.006, price=price)
    limited = LimitedTransport(play("stop", "length", "stop", price=price), limits)
    assert isinstance(limited.complete(question(1), 5.0), ModelReply)
    assert not limited.exhausted
    assert isinstance(limited.complete(question(2), 5.0), Failure)
    assert limited.exhausted == "0.006 EUR"
    refused = limited.complete(question(3), 5.0)
    assert isinstance(refused, Failure)
    assert refused.final
    assert "limit of 0.006 EUR" in refused.outcome.message
    later = LimitedTransport(RecordedTransport(tmp_path / "run/work/llm", limited), limits)
    assert later.cost == pytest.approx(0.008)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (PRICES.replace("  m:", "  other:"), "no price of the model 'm'; it has other"),
        ("schema: 1\nmodels: {m: {prompt: -1, completion: 1}}\n", "prompt"),
        ("schema: 1\nmodels: {m: {prompt: 1}}\n", "completion"),
        ("schema: 1\nmodels: {m: {prompt: .inf, completion: 1}}\n", "expected a finite number"),
        ("[", "prices.yaml"),
    ],
)
def test_a_price_that_is_not_known_is_a_usage_error(text: str, says: str, tmp_path: Path):
    path = tmp_path / "prices.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match=says):
        prices.price(path, "m")


def test_a_limit_in_money_needs_prices():
    with pytest.raises(UsageError, match="--author-cost needs the model's price"):
        Job("gemm", author="llm", author_cost=1.0)
    with pytest.raises(UsageError, match="--author-cost must be a positive amount; got -1"):
        Job("gemm", author="llm", author_cost=-1.0, author_prices=Path("x"))


def test_the_report_shows_the_rounds(play: Play, price: prices.TokenPrice, tmp_path: Path):
    transport = play("stop", "stop", price=price)
    transport.begin(TranscriptHead("m", 7))
    for number, (template, outcome) in enumerate([("", NO_HEAD), ("outer", ACCEPTED)], 1):
        transport.complete(question(number), 5.0)
        transport.settle(question(number), template, outcome)  # a template of the recorded run
    shutil.copytree(RECORDED, tmp_path / "run", dirs_exist_ok=True)
    found, page = report.report(tmp_path / "run")
    assert found.author is not None
    refused, accepted = found.author.rounds
    assert (refused.asked, refused.answered, refused.cost) == ("write", "text", {})
    (use,) = [use for use in found.templates if use.name == "outer"]
    assert accepted.cost == use.best
    assert all(gain <= 0 for gain in accepted.over_shipped.values())
    assert accepted.serves == sum(won.served for one in found.choices for won in one.won if won.template == "outer") > 0
    text = page.read_text()
    assert "Rounds with the language model m" in text
    assert "refused at template: expected a head" in text
    assert "outer accepted" in text
