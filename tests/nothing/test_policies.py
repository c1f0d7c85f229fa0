"""Regions, typed actions, and the policies that choose them; a whole search with simulated costs."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import random
import re
import shutil
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tensorop.author import offline, parse, policies, regions
from tensorop.author.llm import accounting, reading, transcript
from tensorop.author.state import Measured, excluded, legal
from tensorop.errors import SpecError
from tensorop.model.kernel import KernelTemplate
from tensorop.model.steering import (
    ACTIONS,
    CONFIGURE,
    PLACES,
    REGIONS,
    SECOND_COSTS,
    Choice,
    Parent,
    PastQuestion,
    State,
    after_as_many,
    cost_reward,
    drawn_parent,
)
from tensorop.model.trial import Outcome, Stage
from tensorop.specs import catalog, operators, platforms
from tensorop.store import journal
from tensorop.trial import judging
from tests.nothing.test_revising import FIRST, TRIALS, WIDEST, noted, printed, started, tried
from tests.support import commands

GEMM = operators.load("gemm")
SHIPPED = {one.name: one for one in offline.templates(GEMM.folder, "gemm")}
WMMA = {one.name: one for one in offline.templates(GEMM.folder, "gemm", suffix=".cu.j2")}["wmma"]
MARKED = [*SHIPPED.values(), WMMA]


def changed(template: KernelTemplate, old: str, new: str) -> KernelTemplate:
    text = parse.written(template)
    assert text.count(old) == 1, old
    return parse.parse(text.replace(old, new), operator="gemm", name="llm-1", author="llm")


@pytest.mark.parametrize("template", MARKED, ids=lambda one: one.name)
def test_marks_change_nothing_but_the_regions(template: KernelTemplate) -> None:
    assert template.regions
    assert "region:" not in template.text
    again = parse.parse(parse.written(template), operator="gemm", name=template.name, author=template.author)
    assert (again.text, again.regions, again.digest) == (template.text, template.regions, template.digest)
    assert "".join(text for _, text in regions.parts(template)) == template.text
    assert {action for action, _ in legal(template, {})} > {"tile", "fresh"}


def test_an_edit_outside_of_its_region_is_refused_by_name() -> None:
    outer = SHIPPED["outer"]
    inside = changed(outer, '        {{ order("b") }};\n{#- B advances', "{#- B advances")
    regions.require_only("loads-b", outer, inside)
    for region in ("loads-a", "head"):
        with pytest.raises(SpecError, match="the answer changes loads-b"):
            regions.require_only(region, outer, inside)
    head = changed(outer, "must: lead <= nr", "must: lead < nr")
    regions.require_only("head", outer, head)
    regions.require_only("loads-a", outer, head)
    both = changed(inside, "{{ update_c() }}", "{{ update_c() }}\n/* done */")
    with pytest.raises(SpecError, match="the region 'loads-b' and the head alone, and the answer changes update-c"):
        regions.require_only("loads-b", outer, both)
    regions.require_only("all", outer, both)
    unmarked = replace(outer, regions=())
    assert regions.names(unmarked) == ("body",)
    with pytest.raises(SpecError, match="loads-a"):
        regions.require_only("loads-b", outer, unmarked)
    regions.require_only("body", unmarked, both)


def test_a_mark_of_an_unknown_region_names_those_there_are() -> None:
    text = parse.written(SHIPPED["outer"]).replace("{# region: counters #}", "{# region: counter #}", 1)
    with pytest.raises(SpecError, match="the region 'counter'; expected prologue, loads-a"):
        parse.parse(text, operator="gemm", name="x", author="llm")


def test_lists_are_closed() -> None:
    assert {region for places in PLACES.values() for region in places} <= {*REGIONS, "head", "all"}
    assert PLACES.keys() == ACTIONS.keys()
    for template in SHIPPED.values():
        assert {idea.split()[0] for idea in template.ideas.values()} <= ACTIONS.keys()


RENAMED = {"in_order": 0.0, "dependent": 0.0, "misses": 0.0, "integer": 0.0, "issue_width": 1.0, "registers": 1.0}


def test_what_the_measured_state_excludes_is_masked_but_never_all() -> None:
    known = RENAMED | {"spills": 0.0}
    masked = {action for action in ACTIONS if excluded(action, known)}
    assert masked == {"prefetch", "tile", "pipeline", "reorder", "pair", "address"}
    assert not [action for action in ACTIONS if excluded(action, {})]
    left = {action for action, _ in legal(SHIPPED["outer"], known)}
    assert left
    assert not left & masked
    assert not excluded("tile", known | {"spills": 2.0})
    assert not excluded("reorder", known | {"in_order": 1.0})


def test_loads_in_parts_are_not_paired_again() -> None:
    for loads, in_parts in ((0.0, False), (80.0, False), (95.0, True)):
        of = Measured(100.0, None, {"instructions.vector_load": 100.0, "instructions.int_load": loads})
        assert of.in_parts is in_parts
    assert not Measured(100.0, None, {}).in_parts
    wanted = {region for action, region in legal(SHIPPED["lanes"], {}) if action == "pair"}
    left = {region for action, region in legal(SHIPPED["lanes"], {}, in_parts=True) if action == "pair"}
    assert wanted - left == {"loads-a", "loads-b"}
    assert legal(SHIPPED["outer"], {}, in_parts=True) == legal(SHIPPED["outer"], {})


@pytest.mark.parametrize(("cost", "parents_asked"), [(SECOND_COSTS, {"a", "b"}), (SECOND_COSTS + 0.01, {"a"})])
def test_a_second_parent_costs_little_more_than_the_best(cost: float, parents_asked: set[str]) -> None:
    (first,), (second,) = parents("a"), parents("b")
    state = [State((first, replace(second, cost=cost * first.cost)), 80.0, 9, seed) for seed in range(16)]
    assert {found.digest for one in state if (found := drawn_parent(one, [], random.Random(one.seed)))} == parents_asked


def parents(*names: str) -> tuple[Parent, ...]:
    pairs = (("tile", "head"), ("prefetch", "loads-a"), ("reorder", "multiply-adds"), ("fresh", "all"))
    return tuple(Parent(name, name, 100.0 + len(name), {"stall.compute": 0.5}, pairs) for name in names)


def asked(name: str, of: tuple[Parent, ...], seed: int = 0, most: int = 20) -> list[PastQuestion]:
    """A search in which every child of the first parent fails."""
    policy, history = policies.load(name), list[PastQuestion]()
    for number in range(most):
        choice = policy.choose(State(of, 80.0, most - number, seed + number), history)
        if choice is None:
            break
        history.append(PastQuestion(choice, reward=-0.8 if choice.parent == of[0].digest else 0.3))
    return history


@pytest.mark.parametrize("name", ["coverage", "prior", "learned"])
def test_each_action_is_asked_for_once_and_a_parent_that_failed_three_times_is_closed(name: str) -> None:
    history = asked(name, parents("first", "second"))
    choices = [(step.choice.parent, step.choice.action, step.choice.region) for step in history]
    assert len({*choices}) == len(choices)
    assert sum(parent == "first" for parent, _, _ in choices) == 3
    assert sum(parent == "second" for parent, _, _ in choices) == 4
    assert all(step.choice.reason for step in history)
    assert asked(name, parents("first", "second")) == history
    found = {step.choice.parent for seed in range(8) for step in asked(name, parents("first", "second"), seed, 1)}
    assert found == {"first", "second"}


@pytest.mark.parametrize("name", catalog.names("policies"))
def test_the_shipped_policies_pass_their_check(name: str) -> None:
    assert policies.check(policies.load(name))


FAULTY = {
    "word": ('return "tile"', "got 'tile', expected a Choice or None"),
    "unknown": ('return Choice("first", "melt", "head")', "got melt in head of first"),
    "region": ('return Choice("first", "tile", "loads-a")', "got tile in loads-a of first"),
    "raises": ('raise OSError("the endpoint is gone")', "OSError: the endpoint is gone"),
}
FILE = (
    'from tensorop.model.steering import Choice\nDESCRIPTION = "d"\nPARENTS = 2\n\n\ndef policy(state, history):\n    '
)


def plugin(folder: Path, name: str, body: str) -> Path:
    (folder / "policies").mkdir(parents=True, exist_ok=True)
    (folder / "policies" / f"{name}.py").write_text(f"{FILE}{body}\n")
    return folder


@pytest.mark.parametrize("fault", FAULTY)
def test_a_faulty_choice_is_replaced_and_says_what_was_wrong(fault: str, tmp_path: Path) -> None:
    body, says = FAULTY[fault]
    policy = policies.load(fault, (plugin(tmp_path, fault, body),))
    choice = policy.choose(State(parents("first"), None, 3, 1), [])
    assert choice is not None
    assert (choice.parent, choice.action, choice.region) == ("first", "tile", "head")
    assert f"the policy '{fault}' gave no legal choice ({says})" in choice.reason


def test_policies_are_listed_shown_and_checked(tmp_path: Path) -> None:
    folder = plugin(tmp_path, "mine", 'return Choice("first", "tile", "loads-a")')
    listed = commands.tensorop("policies", "list", "--plugins", folder, cwd=tmp_path).stdout
    names = [line.split()[0] for line in listed.splitlines()]
    assert names == sorted([*catalog.names("policies"), "mine"])
    assert "coverage: each action" in commands.tensorop("policies", "show", "coverage", cwd=tmp_path).stdout
    assert "question 1: " in commands.tensorop("policies", "check", "prior", cwd=tmp_path).stdout
    refused = commands.refused("policies", "check", "mine", "--plugins", folder, cwd=tmp_path)
    assert "got tile in loads-a of first; expected a legal choice or None" in refused


def test_the_reward_is_a_share_of_the_distance_to_the_bound() -> None:
    assert cost_reward(100.0, 100.0, 50.0) == 0
    assert cost_reward(100.0, 120.0, 50.0) == 0
    assert cost_reward(200.0, 100.0, 50.0) == pytest.approx(0.5)
    assert cost_reward(200.0, 40.0, 50.0) == 1


def test_parent_and_child_are_compared_after_as_many_trials() -> None:
    assert after_as_many([9.0, 8.0, 5.0], [math.inf, 7.0]) == (8.0, 7.0)
    assert after_as_many([9.0], [8.0, 1.0]) == (9.0, 8.0)
    for parent, child in (([], [1.0]), ([1.0], []), ([1.0], [math.inf, 1.0])):
        assert after_as_many(parent, child) is None


class Steered:
    """A server that answers a typed question with what it asks for, and one with more."""

    def __init__(self, server: HTTPServer) -> None:
        self.asked: list[str] = []
        self.chosen: list[dict[str, object]] = []  # questions of the policy `model`
        self.configurations = ""
        self.kill: tuple[int, int] = (0, 0)  # number of a question, process
        server.expect_request("/v1/chat/completions").respond_with_handler(self._answer)

    def _answer(self, request: Request) -> Response:
        sent = json.loads(request.data)
        if sent["model"] == "chooser":
            self.chosen.append(sent)
            names = sent["response_format"]["json_schema"]["schema"]["properties"]["choice"]["enum"]
            return self._said(json.dumps({"choice": names[-1]}))
        self.asked.append(sent["messages"][-1]["content"])
        if len(self.asked) == self.kill[0]:
            os.kill(self.kill[1], signal.SIGKILL)
        question = sent["messages"][-1]["content"]
        if "Which other configurations" in question:
            return self._said(self.configurations)
        if "Write a new template" in question:
            return self._said(f"```\n{FIRST if len(self.asked) == 1 else WIDEST}```\n")
        found = re.search(r"````\n(---\n.*?)\n````", question, re.DOTALL)
        if found is None:  # a repair
            found = re.search(r"````\n(---\n.*?)\n````", sent["messages"][1]["content"], re.DOTALL)
            number = len(self.asked) + 100
        else:
            number = len(self.asked)
        assert found is not None
        text = found[1].replace("tunables:\n", f"tunables:\n  more{number}: [1]\n", 1)
        outside = number == 3
        return self._said(f"````\n{text}{'/* more */' if outside else ''}\n````\n")

    @staticmethod
    def _said(text: str) -> Response:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return Response(json.dumps({"choices": [choice]}), 200, None, "application/json")


@pytest.fixture
def steered(monkeypatch: pytest.MonkeyPatch) -> Iterator[Steered]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "TENSOROP_OFFLINE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENSOROP_LLM_MODEL", "m")
    with HTTPServer(threaded=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))
        yield Steered(server)


def choices(folder: Path) -> list[Choice]:
    return [call.request.choice for call in transcript.calls(folder / "work" / "llm")]


def test_a_steered_job_is_killed_resumed_and_replayed_with_the_same_choices(steered: Steered, tmp_path: Path) -> None:
    out, replayed = tmp_path / "out", tmp_path / "replayed"
    words = (*TRIALS, "--author", "llm", "--author-calls", "6", "--policy", "prior")
    run = started(out, *words)
    steered.kill = 3, run.pid
    text = printed(run)
    assert run.returncode == -signal.SIGKILL
    lost = steered.asked.pop()
    steered.kill = 0, 0
    printed(started(out, *words))
    assert steered.asked[2] == lost
    typed = [choice for choice in choices(out) if choice.typed]
    assert len(typed) >= 3
    assert len({(one.parent, one.action, one.region) for one in typed}) >= 3
    assert "by one thing: **" in lost or "Do one thing: **" in lost
    assert f"question 3: {typed[0]}: {typed[0].reason}" in text
    history = journal.read(out)
    noted_ = [data for name, data in history.notes if name == "question" and "action" in data]
    assert [(data["action"], data["region"], data["reason"]) for data in noted_] == [
        (one.action, one.region, one.reason) for one in dict.fromkeys(typed)
    ]
    if typed[0].region not in ("all", "update-c", "body"):
        assert any("the answer changes" in data["message"] for name, data in history.notes if name == "author")
    account = accounting.account(out)
    assert {(one.action, one.region) for one in account.actions} >= {(one.action, one.region) for one in typed}
    assert "what was asked for" in commands.tensorop("author", "stats", out, cwd=tmp_path).stdout

    (replayed / "work").mkdir(parents=True)
    shutil.copytree(out / "work" / "llm", replayed / "work" / "llm")
    number = len(steered.asked)
    printed(started(replayed, *TRIALS, "--author", "replay"))
    assert len(steered.asked) == number
    assert choices(replayed) == choices(out)
    assert noted(journal.read(replayed)) == noted(history)
    assert tried(journal.read(replayed)) == tried(history)


def test_a_model_chooses_among_the_legal_actions_or_the_search_goes_on_without_it(
    steered: Steered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = (*TRIALS, "--author", "llm", "--author-calls", "3", "--policy", "model")
    printed(started(tmp_path / "out", *words, "--policy-model", "chooser"))
    typed = [choice for choice in choices(tmp_path / "out") if choice.typed]
    assert typed
    assert {one.reason for one in typed} == {"chosen by the model of --policy-model"}
    assert len(steered.chosen) >= 1
    text = printed(started(tmp_path / "alone", *words))
    typed = [choice for choice in choices(tmp_path / "alone") if choice.typed]
    assert "no --policy-model is named" in typed[0].reason
    assert "no --policy-model is named" in text


@pytest.mark.extended
def test_a_policy_that_stops_ends_the_questions(steered: Steered, tmp_path: Path) -> None:
    folder = plugin(tmp_path / "mine", "never", "return None")
    words = (*TRIALS, "--author", "llm", "--author-calls", "6", "--policy", "never", "--plugins", str(folder))
    printed(started(tmp_path / "out", *words))
    assert not any(choice.typed for choice in choices(tmp_path / "out"))
    assert len(steered.asked) == 2  # both before the search


SEEDED = ("--author", "llm", "--author-calls", "3", "--author-configurations", "15", "--withhold", "dot,lanes,stream")


@pytest.mark.extended
def test_configurations_of_a_model_are_tried_next_and_replayed(steered: Steered, tmp_path: Path) -> None:
    points = [{"mr_vectors": 1, "nr": nr} for nr in (6, 7, 8)] + [{"mr_vectors": 9, "nr": 1}]
    steered.configurations = f"First the narrow ones.\n```yaml\n{yaml.safe_dump(points)}```\n"
    out, replayed = tmp_path / "out", tmp_path / "replayed"
    run = started(out, *TRIALS, *SEEDED)
    steered.kill = 3, run.pid
    printed(run)
    assert "These configurations of it were measured" in steered.asked[1]
    assert "mr_vectors: [" in steered.asked[1]
    steered.kill = 0, 0
    text = printed(started(out, *TRIALS, *SEEDED))
    assert "configurations of outer: accepted" not in text
    assert sum("Which other configurations" in asked for asked in steered.asked) == 1
    history = journal.read(out)
    ((digest, joined, after),) = history.configured((Stage.MICRO, "f32", 0))
    assert digest == SHIPPED["outer"].digest
    assert [dict(point) for point in joined] == points
    ended = [end.trial.point for end in history.ended((Stage.MICRO, "f32", 0))]
    next_ = [{"mr_vectors": point["mr_vectors"], "nr": point["nr"]} for point in ended[after : after + 3]]
    assert next_ == points[:3]
    assert [call.template for call in accounting.account(out).calls if call.action == CONFIGURE] == [""]
    (replayed / "work").mkdir(parents=True)
    shutil.copytree(out / "work" / "llm", replayed / "work" / "llm")
    printed(started(replayed, *TRIALS, "--author", "replay", "--withhold", "dot,lanes,stream"))
    assert tried(journal.read(replayed)) == tried(history)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        ("- {mr_vectors: 9, nr: 1}", "none of the 1 configurations of outer is legal: of mr_vectors=9 nr=1, the space"),
        ("mr_vectors: 1", "expected a list of 1 to 15 configurations, got dict"),
        ("- {nr: [1, 2]}", "seed_configurations"),
        ("- {a: 1}\n" * 16, "expected a list of 1 to 15 configurations, got 16 entries"),
    ],
)
def test_configurations_that_cannot_be_used_are_refused(answer: str, says: str) -> None:
    outer = SHIPPED["outer"]
    try:
        points = reading.configurations(f"```\n{answer}\n```", parse.written(outer), operator="gemm", most=15)
        space = judging.legal(GEMM, platforms.load("generic"), outer, "f32")
        assert not isinstance(space, Outcome)
        found = judging.configured(replace(outer, seed_configurations=points), space).message
    except SpecError as error:
        found = str(error)
    assert says in found


ROOT = Path(__file__).resolve().parents[2]


def test_the_table_and_the_regression_are_made_from_the_recorded_pairs() -> None:
    spec = importlib.util.spec_from_file_location("steering_benchmark", ROOT / "benchmarks" / "steering.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    every = [*(row for of in module.rows().values() for row in of), *module.answers()]
    shipped = ROOT / "tensorop" / "policies"
    assert json.loads((shipped / "prior.json").read_text()) == {"pairs": len(every), "table": module.table(every)}
    learned = json.loads((shipped / "learned.json").read_text())
    for action, weights in module.softmax(every).items():
        assert learned[action] == pytest.approx(weights, abs=2e-3)
