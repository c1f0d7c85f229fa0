"""Warm starts: what a search begins with, from which journals and files of winners, and what is said of bad ones."""

from __future__ import annotations

import datetime
import importlib.util
import json
import re
from pathlib import Path
from typing import Any

import pytest

from tensorop import pipeline
from tensorop.author import offline
from tensorop.errors import JobError, UsageError
from tensorop.events import Note
from tensorop.model.job import Job
from tensorop.model.kernel import Kernel
from tensorop.model.point import Point
from tensorop.model.trial import Stage
from tensorop.model.winner import StartPoint, WarmStart
from tensorop.render import instantiate
from tensorop.report.gather import gather
from tensorop.space import seeds
from tensorop.specs import platforms
from tensorop.store import journal
from tensorop.warm import reading, start
from tests.support.commands import ROOT, events, tensorop
from tests.support.operators import gemm

OPERATOR = gemm()
TEMPLATES = offline.templates(OPERATOR.folder, OPERATOR.name)
HEAD = {"platform": "spacemit-k1", "tensorop": "0.1.0", "date": "2026-11-23", "made": "by a test"}
WINNER = StartPoint(
    "outer", Point.of(lmul=2, mr_vectors=1, nr=9, ku=1, ahead=0, late=0, lead=0, fetch=0, c_ahead=0, mc=64, kc=96)
)
JOURNAL = journal.journal_path(Path())


def begin(
    platform: str, tmp_path: Path, wish: str | Path = "auto", dtype: str = "f32", **more: Any
) -> tuple[WarmStart, list[str]]:
    """Where a dtype of gemm begins, and all that is said."""
    job = Job("gemm", platform, (dtype,), out=tmp_path / "out", warm_start=str(wish), **more)
    sources, odd = reading.read(job)
    found, used, unused = start.begin(sources, job, OPERATOR, platforms.load(platform), TEMPLATES)
    return found[dtype], [*odd, *unused, *used]


def a_file(path: Path, known: Any = None, **head: Any) -> Path:
    known = {("gemm", "f32"): [WINNER]} if known is None else known
    path.write_text("\n".join(reading.winner_lines({**HEAD, **head}, known)) + "\n")
    return path


def run(folder: Path, wish: str | Path = "none", **more: Any) -> list[str]:
    """A whole search on the null runner; its notes."""
    job = Job(
        "gemm", "spacemit-k1", ("f32",), ((24, 24, 24),), runner="null", jobs=1, out=folder, budget_s=None,
        warm_start=str(wish), **({"trials": 30} | more),
    )  # fmt: skip
    return [event.text for event in pipeline.run(job) if isinstance(event, Note)]


def first(folder: Path, stage: Stage = Stage.MICRO) -> list[dict[str, Any]]:
    return [record["configuration"] for record in events(folder, "started") if record["stage"] == stage]


def test_a_platform_begins_at_its_own_winners_and_else_at_its_ancestors(tmp_path: Path) -> None:
    own, said = begin("spacemit-k1", tmp_path)
    assert len(own.sure) == 12
    assert said == ["f32: the search starts with 12 configurations of the winners of spacemit-k1 of 2026-11-25"]
    inherited, said = begin("c908", tmp_path)
    assert inherited.sure == begin("rvv", tmp_path)[0].sure != ()
    assert "winners of rvv" in said[0]
    nobody, said = begin("avx2", tmp_path, dtype="bf16")
    assert nobody.sure == ()
    assert nobody.hints
    assert "no tuned configuration is known for this platform" in said[0]


@pytest.mark.parametrize("trials", [1, 4])
def test_the_best_known_winner_is_tried_first_and_whole_whatever_the_budget(tmp_path: Path, trials: int) -> None:
    sure = begin("spacemit-k1", tmp_path)[0].sure
    outer = [one for one in sure if one.template == "outer"]
    others = [one for one in sure if one.template != "outer"]
    for best in (outer[0], others[0]):  # of the first template, and of a later one
        path = a_file(tmp_path / f"{best.template}.jsonl", {("gemm", "f32"): [best, *sure]})
        folder = tmp_path / f"{best.template}-out"
        run(folder, path, trials=trials)
        assert first(folder)[0].items() <= best.point.items()
        whole = next(record for record in events(folder, "started") if record["stage"] == Stage.BLOCKING)
        assert {**whole["configuration"], **whole["blocking"]} == dict(best.point)


def test_winners_of_another_platform_are_scaled(tmp_path: Path) -> None:
    """A platform of nobody's family begins at the winners of the most similar one that has its primitives."""
    (tmp_path / "platforms").mkdir()
    for name, vlen in (("short", 128), ("long", 1024)):
        text = (ROOT / "platforms" / "rvv.yaml").read_text().split("\nbaselines:")[0]
        text = text.replace("name: rvv\n", f"name: {name}\n").replace("vlens: [128, 256, 512]", f"vlens: [{vlen}]")
        text = text.replace("verify_vlens: [128, 256, 512, 1024]", f"verify_vlens: [{vlen}]")
        (tmp_path / "platforms" / f"{name}.yaml").write_text(text)
    job = Job("gemm", "long", ("f32",), out=tmp_path / "out", plugins=(tmp_path,))
    sources, _ = reading.read(job)
    platform = platforms.load("long", (tmp_path,))
    (near,) = start.nearest(sources, job, OPERATOR, platform, "f32")
    assert near.platform in ("rvv", "spacemit-k1")
    found, used, _ = start.begin(sources, job, OPERATOR, platform, TEMPLATES)
    sure = found["f32"].sure
    assert len(sure) >= 4
    assert re.fullmatch(
        rf"f32: the search starts with {len(sure)} configurations of the winners of .*, \d+ of them scaled to this "
        "platform",
        used[0],
    )
    by_name = {template.name: template for template in TEMPLATES}
    for known in sure:
        template = by_name[known.template]
        (point,) = seeds.named([known], template, instantiate.micro_space(platform, template, "f32"))
        kernel = Kernel(template, "f32", point)
        blocks = instantiate.blocking_space(OPERATOR, platform, kernel)
        assert {**point, **seeds.blockings([known], kernel, blocks)[0]} == dict(known.point)


def test_a_journal_of_another_platform_is_scaled(tmp_path: Path) -> None:
    foreign = [
        StartPoint(
            "outer",
            Point.of(lmul=4, mr_vectors=1, nr=6, ku=4, ahead=1, late=2, lead=4, fetch=0, c_ahead=1, mc=48, kc=99),
        )
    ]
    path = a_file(tmp_path / "rvv.jsonl", {("gemm", "f32"): foreign}, platform="rvv")
    found, said = begin("avx2", tmp_path, path)
    (known,) = found.sure
    assert said == [
        "f32: the search starts with 1 configurations of the winners of rvv of 2026-11-23, 1 of them scaled to this "
        "platform"
    ]
    assert (known.point["mr_vectors"], known.point["nr"], known.point["kc"]) == (1, 6, 96)
    assert "lmul" not in known.point
    own = a_file(
        tmp_path / "own.jsonl",
        {("gemm", "f32"): [StartPoint("outer", Point.of(mr_vectors=99, mc=64))]},
        platform="avx2",
    )
    found, said = begin("avx2", tmp_path, own)
    assert found.sure == ()
    assert said == [f"--warm-start has no effect: no configuration of gemm in {own} is legal on avx2"]


def test_a_winner_that_names_what_is_not_here_is_not_taken_in_part(tmp_path: Path) -> None:
    """Lists of several platforms' kernels have some with settings that this one lacks."""
    hints = begin("avx512", tmp_path)[0].hints
    assert hints
    own = [k for k in reading.read_winners(ROOT / "platforms/winners/generic.jsonl").known["gemm", "f32"] if k in hints]
    assert own
    assert not any("lmul" in known.point for known in hints)
    old = a_file(tmp_path / "old.jsonl", {("gemm", "f32"): [StartPoint("outer", Point.of(mv=2, nr=8, mc=64))]})
    assert begin("spacemit-k1", tmp_path, old)[0] == WarmStart()


def test_what_is_most_similar_comes_first(tmp_path: Path) -> None:
    job = Job("gemm", "c908", ("f32",), out=tmp_path / "out")
    sources, _ = reading.read(job)
    platform = platforms.load("c908")
    order = [(source.platform, of) for source, of in start._ranked(sources, [], job, platform, "f32")]
    assert order[:2] == [("rvv", "f32"), ("rvv", "f64")]  # an ancestor, the dtype before others
    assert order.index(("generic", "f32")) < order.index(("spacemit-k1", "f32")) < order.index(("neon", "f32"))


def test_none_ignores_them(tmp_path: Path) -> None:
    assert begin("spacemit-k1", tmp_path, "none") == (WarmStart(), [])


def test_a_file_of_winners_and_no_other(tmp_path: Path) -> None:
    path = a_file(tmp_path / "mine.jsonl")
    for wish in (path, tmp_path):
        assert begin("spacemit-k1", tmp_path, wish)[0] == WarmStart((WINNER,))
    said = run(tmp_path / "out", path)
    assert "f32: the search starts with 1 configurations of the winners of spacemit-k1 of 2026-11-23" in said
    tried = [configuration for configuration in first(tmp_path / "out") if "c_ahead" in configuration]
    assert {name: tried[0][name] for name in ("lmul", "mr_vectors", "nr")} == {"lmul": 2, "mr_vectors": 1, "nr": 9}
    assert any(
        (r["blocking"].get("mc"), r["blocking"].get("kc")) == (64, 96) for r in events(tmp_path / "out", "started")
    )
    assert gather(tmp_path / "out").warm_start == [line for line in said if "the search starts with" in line]


def test_users_put_winners_beside_their_platforms(tmp_path: Path) -> None:
    (tmp_path / "platforms" / reading.FOLDER).mkdir(parents=True)
    a_file(tmp_path / "platforms" / reading.FOLDER / "any.jsonl")
    found, _ = begin("spacemit-k1", tmp_path, plugins=(tmp_path,))
    assert found.sure[0] == WINNER
    assert len(found.sure) == start.MOST


def test_a_journal_is_a_warm_start(tmp_path: Path) -> None:
    run(tmp_path / "first")
    history = journal.read(tmp_path / "first")
    known = reading.of_history(history)["gemm", "f32"]
    ended = [f for f in history.ended((Stage.BLOCKING, "f32", 0)) if f.outcome.ok]
    best = min(ended, key=lambda f: f.score.cost or 0.0).trial.variant
    assert StartPoint(best.template.name, best.point) in known
    for wish in (tmp_path / "first", tmp_path / "first" / JOURNAL, tmp_path):
        found, said = begin("spacemit-k1", tmp_path, wish)
        assert set(found.sure) <= set(known)
        assert len(found.sure) >= 4
        assert f"f32: the search starts with {len(found.sure)} configurations of spacemit-k1's journal" in said


def test_a_run_that_is_forgotten_says_where_the_next_begins(tmp_path: Path) -> None:
    run(tmp_path / "out")
    known = reading.of_history(journal.read(tmp_path / "out"))["gemm", "f32"]
    assert begin("spacemit-k1", tmp_path, fresh=True)[0].sure[0] == known[0]
    assert begin("spacemit-k1", tmp_path, "none", fresh=True)[0] == WarmStart()
    assert begin("spacemit-k1", tmp_path)[0].sure[0] != known[0]
    said = run(tmp_path / "out", "auto", fresh=True)
    assert any("of spacemit-k1's journal" in line for line in said)


def test_a_run_that_goes_on_begins_where_it_began(tmp_path: Path) -> None:
    path = a_file(tmp_path / "mine.jsonl")
    run(tmp_path / "out", path)
    before = events(tmp_path / "out", "started")
    a_file(path, {("gemm", "f32"): [StartPoint("dot", Point.of(mr_vectors=4, nr=2, mc=64))]})
    job = Job(
        "gemm", "spacemit-k1", ("f32",), ((24, 24, 24),), runner="null", trials=40, jobs=1, out=tmp_path / "out",
        budget_s=None, warm_start=str(path),
    )  # fmt: skip
    list(pipeline.run(job))
    after = events(tmp_path / "out", "started")
    assert after[: len(before)] == before
    assert len(after) > len(before)
    text = (tmp_path / "out" / JOURNAL).read_text()
    (tmp_path / "out" / JOURNAL).write_text(text.replace('"begins":{"f32"', '"begins":[],"f32":{"f32"'))
    with pytest.raises(JobError, match="its note 'warm start' is invalid"):
        list(pipeline.run(job))
    with pytest.raises(UsageError, match=r"other settings: warm start was .*, is none"):
        run(tmp_path / "out")


BAD = {
    "another operator": ({("conv9d", "f32"): [WINNER]}, "has configurations of conv9d f32; expected gemm f32"),
    "another dtype": ({("gemm", "f64"): [WINNER]}, "has configurations of gemm f64; expected gemm f32"),
    "no legal point": (
        {("gemm", "f32"): [StartPoint("outer", Point.of(mr_vectors=99, mc=64)), StartPoint("nobody", Point.of(mc=64))]},
        "is legal on spacemit-k1",
    ),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", BAD)
def test_a_file_of_no_use_is_said_and_the_job_goes_on(name: str, tmp_path: Path) -> None:
    known, expected = BAD[name]
    path = a_file(tmp_path / "bad.jsonl", known)
    said = run(tmp_path / "out", path)
    assert any(str(path) in line and expected in line for line in said)
    run(tmp_path / "cold")
    assert first(tmp_path / "out") == first(tmp_path / "cold")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no complete line"),
        ("hello\n", "line 1: "),
        ("[]\n", "line 1: "),
        ("{}\n", "line 1: KeyError 'event'"),
        ('{"event": "winners", "schema": 7}\n', "schema 7; this version reads 1"),
        ('{"schema": 1, "event": "winners"}\n', "line 1: KeyError 'platform'"),
        ('{"event": "run", "schema": 2, "t": 0, "facts": {}}\n', "schema 2 in line 1"),
        ('{"event": "run", "schema": 5, "t": 0, "facts": {}}\n', "line 1: the facts of the run lack 'platform'"),
        ("\0" * 4000, "no complete line"),
        ('{"schema": 1, "event": "winners", "platform": "a", "tensorop": "", "date": "", "made": "", "lines": 1}\n3\n',
         "line 2"),
    ],
)  # fmt: skip
def test_a_file_that_is_no_journal(text: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    found, said = begin("spacemit-k1", tmp_path, path)
    assert found == WarmStart()
    (line,) = said
    assert line.startswith("a warm-start file is skipped: ")
    assert str(path) in line
    assert expected in line


def test_of_a_file_that_is_cut_off_the_whole_lines_are_used(tmp_path: Path) -> None:
    path = a_file(tmp_path / "cut.jsonl", {("gemm", "f32"): [WINNER, StartPoint("dot", Point.of(mr_vectors=4, mc=64))]})
    path.write_text(path.read_text()[:-20])
    found, said = begin("spacemit-k1", tmp_path, path)
    assert found.sure == (WINNER,)
    assert said[0] == f"{path} is cut off: 1 of its 2 lines were read"
    run(tmp_path / "first")
    cut = tmp_path / "first" / JOURNAL
    cut.write_text(cut.read_text()[:-20])
    assert begin("spacemit-k1", tmp_path, cut)[0].sure


def test_a_path_that_is_not_there_is_refused(tmp_path: Path) -> None:
    ended = tensorop("gemm", "--runner", "null", "--warm-start", "nowhere", "--trials", "3", cwd=tmp_path)
    assert ended.status == 2
    assert "--warm-start nowhere: the file does not exist" in ended.stderr
    assert not list(tmp_path.iterdir())


def test_a_folder_without_a_journal_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert begin("rvv", tmp_path, tmp_path / "empty")[1] == [
        f"--warm-start {tmp_path / 'empty'} has no effect: the folder has no journal (*.jsonl) or product"
    ]


def test_a_file_of_winners_is_made_of_finished_runs(tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("winners", ROOT / "benchmarks" / "winners.py")
    assert spec is not None
    assert spec.loader is not None
    command = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(command)
    run(tmp_path / "first")
    lines = command.lines([tmp_path / "first"], (), datetime.date(2026, 11, 23))
    path = tmp_path / "made.jsonl"
    path.write_text("\n".join(lines) + "\n")
    head = json.loads(lines[0])
    assert (head["platform"], head["date"], head["lines"]) == ("spacemit-k1", "2026-11-23", len(lines) - 1)
    assert reading.read_winners(path).known == reading.of_history(journal.read(tmp_path / "first"))
