"""The llm author over a real HTTP server that plays the model, judged by the real gate."""

import dataclasses
import json
import re

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Response

from tensorop.author import gate, offline, parse
from tensorop.author.llm import prompt, reading
from tensorop.author.llm.prompt import Lessons
from tensorop.author.llm.rounds import live, replay
from tensorop.author.llm.transcript import AuthorLimits
from tensorop.backends import reach
from tensorop.commands import prompt as asking
from tensorop.errors import JobError, UsageError
from tensorop.job import authoring
from tensorop.model.job import Job
from tensorop.model.trial import Kind, Outcome
from tensorop.render import instantiate, render
from tensorop.render.texts import Texts
from tensorop.settings import Settings
from tensorop.specs import operators, platforms

KEY = "sk-secret-0123456789"
OPERATOR, PLATFORM = operators.load("gemm"), platforms.load("rvv")
NAME, FILE = next(iter(offline.files(OPERATOR.folder).items()))
EXAMPLE = re.sub(r"plan: \|\n(?:  .*\n)*", "", FILE.read_text())  # templates of one job have different plans


def variant(what):
    """A good template, different from the shipped one."""
    head, body = EXAMPLE.split("\n---\n", 1)
    return f"{head}\n---\n    /* {what} */\n{body}"


def with_body(line):
    return EXAMPLE.split("\n---\n", 1)[0] + f"\n---\n{line}\n"


@pytest.fixture(scope="module")
def brief():
    made = asking.brief(OPERATOR, PLATFORM, ("f32",), OPERATOR.suites["quick"])
    return dataclasses.replace(made, example=EXAMPLE)


def test_the_prompts_example_obeys_the_prompts_rules(brief):
    shown = offline.example(*OPERATOR.prompts)
    (told, asked) = prompt.opening(dataclasses.replace(brief, example=shown), Lessons())
    assert shown.rstrip() in asked.text
    template = parse.parse(shown, operator="gemm", name="example", author="llm")
    wanted = re.search(r"`reads: \{(.*?)\}`", told.text)
    assert wanted
    assert dict(template.reads) == dict(pair.split(": ") for pair in wanted[1].split(", "))
    assert gate.check_template(template, brief.primitives) is None


@pytest.fixture(scope="module")
def module_server():
    with HTTPServer(threaded=True) as server:
        yield server


@pytest.fixture
def model(module_server, monkeypatch):
    """model(answer, ...) serves the answers in turn, the last one for ever, and returns the requests as they come."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("tensorop.author.llm.transport.BACKOFF", 0.01)

    def serve(*texts):
        module_server.clear()
        seen = []

        def handler(request):
            seen.append(json.loads(request.data))
            text = texts[min(len(seen), len(texts)) - 1]
            if isinstance(text, Response):
                return text
            choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            return Response(json.dumps({"choices": [choice], "model": "m"}), 200, None, "application/json")

        module_server.expect_request("/v1/chat/completions", method="POST").respond_with_handler(handler)
        return seen

    serve.settings = Settings(
        cache=None, plugins=(), offline=False, llm_api_key=KEY, llm_base_url=module_server.url_for("/v1"), llm_model="m"
    )
    return serve


def judge(template):
    """The gate, in front of every point as in a trial; here at the first."""
    try:
        point = instantiate.micro_space(PLATFORM, template, "f32").at(0)
        source = Texts().kernel(OPERATOR, PLATFORM, instantiate.variant(OPERATOR, template, "f32", point))
    except render.RenderError as error:
        return Outcome(Kind.RENDER, "render", error.message)
    return source if isinstance(source, Outcome) else Outcome(Kind.OK)


def kinds(rounds):
    return [(r.number, r.repair, r.outcome.kind) for r in rounds]


def test_good_templates_are_taken(brief, model, tmp_path):
    seen = model(f"Here it is:\n```yaml\n{variant('first')}```\nEnjoy.", variant("second"))
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(2, judge))
    assert kinds(rounds) == [(1, 0, Kind.OK), (2, 0, Kind.OK)]
    assert [r.template.name for r in rounds] == ["llm-1", "llm-2"]
    assert "first" in rounds[0].template.text
    assert "These strategies are taken" not in seen[0]["messages"][1]["content"]
    assert rounds[0].template.strategy in seen[1]["messages"][1]["content"]


@pytest.mark.one_in(5)
@pytest.mark.parametrize(
    ("bad", "kind", "complaint"),
    [
        ("Sorry, I cannot do that.", Kind.REFUSED, "expected a head"),
        (EXAMPLE.replace("tunables:", "knobs:"), Kind.REFUSED, "unknown key 'knobs'"),
        (with_body('#include "/etc/passwd"'), Kind.REFUSED, "'#'"),
        (with_body('__asm__("ecall");'), Kind.REFUSED, "'\"'"),
        (with_body('system("id");'), Kind.REFUSED, "'\"'"),
        (with_body("execve(a, b, c);"), Kind.REFUSED, "calls 'execve'"),
        (with_body("{% include 'operator.yaml' %}"), Kind.REFUSED, "'include' is not allowed"),
        (with_body("{{ ''.__class__ }}"), Kind.REFUSED, "'__class__'"),
        (with_body("x" * 70_000), Kind.REFUSED, "at most 65536"),
        (with_body("{{ 'c = a;' * 900000 }}"), Kind.RENDER, "rendered to"),
        (with_body("{{ gather('a') }}"), Kind.RENDER, "'gather' is undefined"),
    ],
)
def test_a_bad_template_is_recorded_and_repaired_once(brief, model, tmp_path, bad, kind, complaint):
    seen = model(bad, variant("repaired"))
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(1, judge))
    assert kinds(rounds) == [(1, 0, kind), (1, 1, Kind.OK)]
    assert complaint in rounds[0].outcome.message
    repair = seen[1]["messages"]
    assert [m["role"] for m in repair] == ["system", "user", "assistant", "user"]
    assert repair[2]["content"] == bad
    assert complaint in repair[3]["content"]
    assert len(list((tmp_path / "llm").glob("*.json"))) == len(seen) == 2


def test_what_an_endpoint_does_wrong_is_not_sent_back(brief, model, tmp_path):
    down = Response("{}", 500, None, "application/json")
    seen = model(down, down, down, variant("up again"))
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(2, judge))
    assert kinds(rounds) == [(1, 0, Kind.LOST), (2, 0, Kind.OK)]
    assert len(seen) == 4
    assert "Recent templates failed" not in seen[3]["messages"][1]["content"]


def test_asking_stops_where_it_is_useless(brief, model, tmp_path):
    seen = model(Response('{"error": {"message": "pay", "code": "insufficient_quota"}}', 429, None, "application/json"))
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(5, judge))
    assert kinds(rounds) == [(1, 0, Kind.LOST)]
    assert len(seen) == 1
    model(variant("a"), variant("b"), variant("c"))
    rounds = list(live(brief, model.settings, tmp_path / "b", limits=AuthorLimits(calls=2)).rounds(5, judge))
    assert kinds(rounds) == [(1, 0, Kind.OK), (2, 0, Kind.OK), (3, 0, Kind.LOST)]


def test_a_repair_that_fails_too_is_the_last(brief, model, tmp_path):
    model(with_body("a();"), with_body("b();"), variant("next"))
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(2, judge))
    assert kinds(rounds) == [(1, 0, Kind.REFUSED), (1, 1, Kind.REFUSED), (2, 0, Kind.OK)]


def test_the_same_template_again_is_no_new_one(brief, model, tmp_path):
    model(variant("same"))
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(2, judge))
    assert kinds(rounds) == [(1, 0, Kind.OK), (2, 0, Kind.REFUSED), (2, 1, Kind.REFUSED)]
    assert "answered before" in rounds[1].outcome.message


def test_the_failing_case_goes_back_without_what_the_process_printed(brief, model, tmp_path):
    seen = model(variant("wrong"), variant("right"))
    wrong = Outcome(Kind.WRONG, "verify", "33x7x5 f32 at [32, 6]: got 1, want 2", "noise " * 2000 + "the end")
    outcomes = iter([wrong, Outcome(Kind.OK)])
    rounds = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(1, lambda template: next(outcomes)))
    assert kinds(rounds) == [(1, 0, Kind.WRONG), (1, 1, Kind.OK)]
    told = seen[1]["messages"][-1]["content"]
    assert "33x7x5 f32 at [32, 6]: got 1, want 2" in told
    assert "the end" not in told
    assert len(told) < 5000


def test_a_killed_run_does_not_pay_twice_and_a_recording_replays(brief, model, tmp_path):
    seen = model(with_body("system(a);"), variant("repaired"), variant("second"))
    first = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(2, judge))
    assert len(seen) == 3
    again = list(live(brief, model.settings, tmp_path, AuthorLimits()).rounds(2, judge))
    assert len(seen) == 3
    assert again == first
    replayed = list(replay(brief, tmp_path / "llm", "m").rounds(2, judge))
    assert replayed == first
    with pytest.raises(JobError, match="no recorded answer"):
        list(replay(brief, tmp_path / "llm", "m", seed=9).rounds(1, judge))
    written = [file.read_text() for file in (tmp_path / "llm").iterdir()]
    assert len(written) >= 3
    assert not any(KEY in text for text in written)


def test_the_prompt_says_all_and_no_more(brief):
    told = Lessons(("one idea",), tuple(f"failure {i}" for i in range(9)))
    system, user = prompt.opening(brief, told)
    assert (system, user) == prompt.opening(brief, told)
    for primitive in brief.primitives.by_name.values():
        assert f"`{primitive.name}({', '.join(primitive.args)})`" in system.text
    for fact in brief.facts:
        assert fact in system.text
    assert "{{ b_at(0, j) }}" in system.text
    assert EXAMPLE.rstrip() in user.text
    assert "one idea" in user.text
    assert "failure 8" in user.text
    assert "failure 3" not in user.text


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        ("---\nx\n---\ny\n", "---\nx\n---\ny\n"),
        ("so:\n```c\n---\nx\n```\n", "---\nx\n"),
        ("```\nother\n```\nand\n````jinja\n---\nx\n```\n````\n", "---\nx\n```\n"),
        ("```\nonly\n```", "only\n"),
        ("```\na\n```\n```\nb\n```", "```\na\n```\n```\nb\n```"),
        ("<think>```\n---\nno\n```</think>~~~\n---\nyes\n~~~", "---\nyes\n"),
        ("I think\n```\n---\nno\n```\n</think>\n```\n---\nyes\n```", "---\nyes\n"),
        ("<think>a<think>b</think>```\n---\nno\n```</think>```\n---\nyes\n```", "---\nyes\n"),
        ("```\n---\nyes\n```\n</think>\n", "---\nyes\n"),
        ("[THINK]```\n---\nno\n```\n[/THINK]\n```\n---\nyes\n```", "---\nyes\n"),
        (
            "<|channel|>analysis<|message|>```\n---\nno\n```\n<|end|><|start|>assistant<|channel|>final<|message|>```\n---\n"
            "yes\n```\n<|return|>",
            "---\nyes\n",
        ),
        ("```\nnever closed", "```\nnever closed"),
    ],
)
def test_where_a_template_lies_in_an_answer(answer, found):
    assert reading.template_text(answer) == found


def test_recorded_replies_need_no_endpoint(monkeypatch):
    for name in ("TENSOROP_LLM_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    job = Job(operator="gemm", platform="rvv", author="replay", offline=True)
    target = reach(PLATFORM, "null")
    authoring.require_author(job, OPERATOR, target)
    with pytest.raises(UsageError, match="forbids"):
        authoring.require_author(dataclasses.replace(job, author="llm"), OPERATOR, target)
