"""gemm, bench and verify on a board over ssh, and a job whose board dies."""

import json
import math
import threading
import time
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tensorop import pipeline
from tensorop.backends import reach
from tensorop.cli.main import cli
from tensorop.commands import bench, verify
from tensorop.errors import BoardError
from tensorop.events import Phase
from tensorop.job import deliver
from tensorop.measure import boards
from tensorop.model.job import Job
from tensorop.model.verdict import Seed
from tensorop.package import publish
from tensorop.search.task import JobContext
from tensorop.specs import platforms
from tensorop.store.journal import Journal
from tests.support import board as boards_here
from tests.support import products
from tests.support.operators import gemm

SHAPES = ((16, 16, 16), (33, 20, 17))


@pytest.fixture
def board(tmp_path, monkeypatch):
    with boards_here.board(tmp_path / "board") as running:
        monkeypatch.setenv("PATH", running.path)
        yield running


@pytest.fixture
def product(tmp_path):
    return products.install("spacemit-k1", tmp_path / "product", ("f32",))


@pytest.mark.extended
def test_a_library_beside_openblas_by_the_boards_clock(board, product):
    found = bench.bench(*products.reached(product, board.word), bench.BenchRequest(shapes=SHAPES, final=False))
    assert (found.unit, found.model) == ("GFLOP/s", None)
    assert found.machine["cpu"] == "Spacemit(R) X60"
    assert found.machine["host"] == "127.0.0.1"
    assert [set(row.ratios) for row in found.rows] == [{"openblas"}] * 2
    assert "zvl256b" in found.baselines["openblas"].config


@pytest.mark.extended
def test_a_library_is_right_there(board, product):
    verdicts = list(verify.verify(*products.reached(product, board.word), Seed.draw(), threads=(2,)))
    assert [verdict.ok for verdict in verdicts] == [True, True]
    assert verdicts[0].vlen == 256


@pytest.mark.extended
def test_a_job_meets_its_board_once(board, tmp_path, monkeypatch):
    """The product is verified and compared on the target that the search ran on."""
    meetings = []
    meet = boards.meet
    monkeypatch.setattr(boards, "meet", lambda *given: meetings.append(given) or meet(*given))
    operator, target = gemm(), reach(platforms.load("spacemit-k1"), board.word)
    job = Job("gemm", "spacemit-k1", ("f32",), SHAPES[:1], runner=board.word, out=tmp_path / "out")
    staged = publish.stage(products.product("spacemit-k1", ("f32",)), job.out)
    with Journal.open(tmp_path / "journal", {}) as journal:
        whole = JobContext(job, operator, target, (), (), journal, Seed.draw(), tmp_path)
        for part in (deliver._verify(whole, {}, staged, []), deliver._compare(whole, staged)):
            list(part)
    assert len(meetings) == 1


@pytest.mark.extended
def test_another_core_measures_nothing(board, product):
    board.is_a(vlen=512)
    for command in ("bench", "verify"):
        ended = CliRunner().invoke(cli, [command, str(product), "--runner", board.word])
        assert isinstance(ended.exception, BoardError)
        assert "VLEN 512, not 256" in str(ended.exception)


def _journal(out):
    path = out / "share" / "tensorop" / "journal.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.extended
def test_a_job_outlives_its_boards(board, tmp_path, monkeypatch):
    """Two of them: what the first to go had under way is tried on the other; without any the job ends and goes on."""
    monkeypatch.setattr("tensorop.runners.ssh._BACK_S", 0.2)
    monkeypatch.setattr("tensorop.backends.ssh.ALIKE", math.inf)  # two that share a busy machine are not alike
    out = tmp_path / "out"
    job = Job(
        "gemm",
        platform="spacemit-k1",
        dtypes=("f32",),
        shapes=SHAPES[:1],
        suite="asked",
        budget_s=None,
        trials=3,
        tuner="random",
        runner=board.word,
        out=out,
    )
    with boards_here.board(tmp_path / "other") as other:
        other.trust(board)

        def power() -> None:
            for number, each in enumerate((other, board), 1):
                while sum(entry["event"] == "finished" for entry in _journal(out)) < number:
                    time.sleep(0.05)
                each.stop()

        gone = threading.Thread(target=power)
        gone.start()
        with pytest.raises(BoardError):
            list(pipeline.run(replace(job, runner=f"{board.word},{other.word}")))
        gone.join()
    entries = _journal(out)
    lost = [entry for entry in entries if entry["event"] == "abandoned"]
    assert lost
    assert {entry["outcome"]["kind"] for entry in lost} == {"target-lost"}
    finished = [(e["key"], e["round"]) for e in entries if e["event"] == "finished"]
    assert len(finished) == len(set(finished)) >= 2
    assert {e["outcome"]["kind"] for e in entries if e["event"] == "finished"} <= {"ok", "refused"}
    assert not (out / "lib").exists()
    board.start()
    for event in pipeline.run(job):
        if isinstance(event, Phase) and event.name == "library":
            break
    stages = [entry["stage"] for entry in _journal(out) if entry["event"] == "started"]
    assert set(stages) == {"micro", "blocking", "smallest"}
