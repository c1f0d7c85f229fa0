"""A model's templates through the whole path of a trial on this machine: built, run in the harness, judged.

The model is a real HTTP server that answers with what models answer with.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from tensorop import pipeline
from tensorop.backends import reach
from tensorop.cuda import author as families
from tensorop.events import Phase
from tensorop.job import authoring
from tensorop.model.job import Job
from tensorop.model.kernel import KernelTemplate
from tensorop.model.trial import Kind
from tensorop.model.verdict import Seed
from tensorop.specs import operators, platforms
from tensorop.store.journal import Journal
from tensorop.trial import evaluator

HEAD = """---
strategy: rank-1 updates in the order they come ({what})
reads: {{a: columns, b: scalars}}
needs: [zero, fma, mul, load, store]
tunables: {{mr_vectors: [2], nr: [3]}}
---
"""

GOOD = """
{% for j in range(n) %}{% for i in range(mr_vectors) %}
    {{ vector }} c{{ i }}_{{ j }} = {{ zero(vl(i)) }};
{% endfor %}{% endfor %}
    for (size_t p = 0; p < k; ++p) {
{% for i in range(mr_vectors) %}
        const {{ vector }} a{{ i }} = {{ a_vector(i, 0) }};
{% endfor %}
{% for j in range(n) %}{% for i in range(mr_vectors) %}
        c{{ i }}_{{ j }} = {{ fma("c%d_%d" % (i, j), "a%d" % i, "b[%s]" % b_at(0, j), vl(i)) }};
{% endfor %}{% endfor %}
        a += lda;
        b += rsb;
    }
{{ update_c() }}
"""

DOES_NOT_COMPILE = GOOD + "\n    const size_t x = k;\n    x = m;\n    (void)x;\n"
WRONG_IN_A_CORNER = GOOD.replace("    for (", "{% if n == 1 %}\n    if (k > 1) k = k - 1;\n{% endif %}\n    for (", 1)
LONG = "".join(f"    for (size_t w{i} = 0; w{i} < 64; ++w{i})\n" for i in range(6))
WITHOUT_END = GOOD.replace(
    "    for (",
    f"    {{{{ element }}}} waste = alpha;\n{LONG}        waste = waste * beta + alpha;\n    c[0] = waste;\n    for (",
    1,
)
OUT_OF_BOUNDS = GOOD + "\n    c[ldc * {{ n }} + 256] = 0;\n"
OTHER_ALPHA = GOOD.replace("    for (", "    alpha = alpha * beta;\n    for (", 1)
MALICIOUS = GOOD + "\n    execve(a, b, c);\n"


def text(what: str, body: str) -> str:
    return "```\n" + HEAD.format(what=what) + body + "```\n"


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch):
    """model(answers) plays them in turn; returns what it was asked."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "TENSOROP_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TENSOROP_LLM_MODEL", "m")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-0123456789")
    with HTTPServer(threaded=True) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url_for("/v1"))

        def serve(*answers: str) -> list[str]:
            asked: list[str] = []

            def handler(request: Request) -> Response:
                asked.append(json.loads(request.data)["messages"][-1]["content"])
                message = {"role": "assistant", "content": answers[len(asked) - 1]}
                body = {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
                return Response(json.dumps(body), 200, None, "application/json")

            server.expect_request("/v1/chat/completions").respond_with_handler(handler)
            return asked

        yield serve


@pytest.mark.extended
def test_every_way_to_fail_is_recorded_and_the_good_ones_compete(model, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(evaluator, "CALL_TIMEOUT_S", 1.0)
    asked = model(
        text("fails to compile", DOES_NOT_COMPILE), text("repaired", GOOD),
        text("wrong", WRONG_IN_A_CORNER), text("wild", OUT_OF_BOUNDS),
        text("endless", WITHOUT_END), text("another alpha", OTHER_ALPHA),
        text("evil", MALICIOUS), text("repaired too", "\n    /* tamed */" + GOOD),
    )  # fmt: skip
    operator, target = operators.load("gemm"), reach(platforms.load("generic"), None)
    job = Job(operator="gemm", platform="generic", dtypes=("f32",), author="llm")
    with Journal.open(tmp_path, {}) as journal:
        steps = authoring.JobAuthor(job, operator, target, Seed.draw(), tmp_path / "work").templates(journal)
        while True:
            try:
                next(steps)
            except StopIteration as end:
                templates: tuple[KernelTemplate, ...] = end.value
                break
        notes = [data for name, data in journal.history.notes if name == "author"]
    kinds = [(note["name"], note["repair"], note["kind"]) for note in notes]
    assert kinds == [
        ("llm-1", 0, Kind.COMPILE), ("llm-1", 1, Kind.OK),
        ("llm-2", 0, Kind.WRONG), ("llm-2", 1, Kind.REFUSED),
        ("llm-3", 0, Kind.TIMEOUT), ("llm-3", 1, Kind.WRONG),
        ("llm-4", 0, Kind.REFUSED), ("llm-4", 1, Kind.OK),
    ], notes  # fmt: skip
    assert [template.name for template in templates if template.author == "llm"] == ["llm-1", "llm-4"]
    assert any(template.author == "offline" for template in templates)
    assert "const-qualified" in asked[1]
    assert "wrong-result" in asked[3]
    assert "timeout" in asked[5]
    assert "execve" in asked[7]
    written = [file.read_text() for file in (tmp_path / "work" / "llm").iterdir()]
    assert len(written) >= len(asked)
    assert not any("sk-secret" in text for text in written)


def test_a_fresh_job_for_a_gpu_asks_again(model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also with the same --out; without --fresh it goes on with the answers that are there."""
    monkeypatch.setattr(families, "TEMPLATES", 1)
    asked = model(*[text("no family", GOOD)] * 4)  # refused for its head, so nothing is compiled
    for fresh in (False, False, True):
        job = Job(
            "gemm", "cuda-wmma", dtypes=("bf16",), shapes=((64, 64, 64),), author="llm", out=tmp_path, fresh=fresh
        )
        events = pipeline.run(job)
        for event in events:
            if isinstance(event, Phase) and event.name == "kernels":
                break
        events.close()
        assert len(asked) == 2 + 2 * fresh
