"""A template that is honest and far too slow: it costs a limit of a trial, and the search goes on without it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tensorop import pipeline
from tensorop.author.parse import parse
from tensorop.backends import reach
from tensorop.model.job import Job
from tensorop.model.search_events import GivenUp, SearchEnded, TrialEnded
from tensorop.model.trial import Stage
from tensorop.model.verdict import Seed
from tensorop.search import arms as limits
from tensorop.search import stages
from tensorop.search.loop import conduct
from tensorop.search.task import JobContext
from tensorop.specs import platforms
from tensorop.store.journal import Journal
from tests.support import templates
from tests.support.commands import ROOT

WASTE = """\
    {{ element }} waste = alpha;
    for (size_t w0 = 0; w0 < 64; ++w0)
        for (size_t w1 = 0; w1 < 64; ++w1)
            for (size_t w2 = 0; w2 < 64; ++w2)
                for (size_t w3 = 0; w3 < 64; ++w3)
                    for (size_t w4 = 0; w4 < 64; ++w4)
                        waste = waste * beta + alpha;
    c[0] = waste;
"""


def test_an_honest_and_slow_template_does_not_hold_up_a_small_budget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TENSOROP_OBJECTS", raising=False)  # what is built already costs no budget
    monkeypatch.setattr(limits, "FACTOR", 2.0)
    monkeypatch.setattr(limits, "LEAST_S", 4.0)
    text = re.search(
        r"```jinja\n(.*?)```", (ROOT / "docs" / "how-to" / "write-a-kernel-template.md").read_text(), re.DOTALL
    )
    assert text is not None
    head, body = text[1].split("---\n{%", 1)
    slow = parse(f"{head}---\n{WASTE}{{%{body}", operator="gemm", name="wasteful", author="plug-in")
    job = Job("gemm", "native", ("f32",), shapes=((24, 17, 33),), suite="24x17x33", budget_s=1.0, jobs=1)
    with Journal.open(tmp_path, {}) as journal:
        passes, given = pipeline.passes(templates.operator), (templates.templates["outer"], slow)
        target = reach(platforms.load("native"), None)
        whole = JobContext(job, templates.operator, target, passes, given, journal, Seed.draw(1), tmp_path / "work")
        task = whole.task("f32")
        events = list(conduct(task, Stage.MICRO, stages.micro(task)))
    ended = [(e.finished.trial.variant.template.name, e.finished.outcome) for e in events if isinstance(e, TrialEnded)]
    # beyond the budget each has its first, outer with and without prefetching C
    assert [template for template, _ in ended] == ["outer", "wasteful", "outer"]
    assert ended[0][1].ok
    outcome = ended[1][1]
    assert (outcome.kind.value, outcome.where) == ("timeout", "verify"), outcome
    assert "the trial took longer than its limit of" in outcome.message
    assert not any(isinstance(e, GivenUp) for e in events)
    assert isinstance(events[-1], SearchEnded)
    assert events[-1].seconds < 60
