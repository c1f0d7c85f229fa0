"""`tuners bench`: recorded spaces are read as they were written or refused, and replayed by every tuner alike."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from tensorop.cli.main import cli
from tensorop.commands import replay
from tensorop.errors import JobError, SpecError, UsageError
from tensorop.model.kernel import Constraint
from tensorop.space import Space, recorded, strategy
from tensorop.space.recorded import RecordedSpace

SPACE = Space.of({"a": (1, 2, 4, 8), "b": (1, 2, 3), "w": ("x", "y")}, [Constraint("a * b <= room", "")], {"room": 12})

TUNER = """
from tensorop.model.point import Point
from tensorop.space import Space

DESCRIPTION = "{name}"


class Tuner:
    def __init__(self, space: Space, seed: int) -> None:
        self.space, self.trials = space, 0

    def ask(self, n: int = 1) -> list[Point]:
        self.trials += 1
        {ask}

    def tell(self, point: Point, cost: float | None) -> None: ...
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The point before the last is the best; the first trial fails."""
    costs = [100.0 - index for index in range(SPACE.size)]
    costs[-2] = 10.0
    path = tmp_path / f"tiny{recorded.SUFFIX}"
    recorded.write(path, RecordedSpace("tiny", SPACE, {"platform": "p"}, (None, *costs[1:]), (0.0,) * SPACE.size))
    return path


def plugin(folder: Path, name: str, ask: str) -> tuple[Path, ...]:
    (folder / "tuners").mkdir(exist_ok=True)
    (folder / "tuners" / f"{name}.py").write_text(TUNER.format(name=name, ask=ask))
    return (folder,)


def rewritten(path: Path, change) -> Path:
    lines = gzip.decompress(path.read_bytes()).decode().splitlines()
    path.write_bytes(gzip.compress("".join(line + "\n" for line in change(lines)).encode()))
    return path


def test_a_recorded_space_is_read_as_it_was_written(file):
    found = recorded.read(file)
    assert (found.name, found.space, found.best) == ("tiny", SPACE, 10.0)
    assert found.costs[0] is None
    assert found.cost(SPACE.at(3)) == 97.0
    before = file.read_bytes()
    recorded.write(file, found)
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda lines: [*lines[:4], lines[4].replace("97.0", "7.0"), *lines[5:]], "line 1: 'digest' is '"),
        (lambda lines: [lines[0].replace('"room": 12', '"room": 24'), *lines[1:]], "its lines give '"),
        (lambda lines: lines[:-1], "its lines give '"),
        (lambda lines: [lines[0].replace('"schema": 1', '"schema": 7'), *lines[1:]], "'schema' is 7; expected 1"),
        (lambda lines: ["[]"], r"'schema' is \[\]; expected 1"),
        (lambda lines: ["no json"], "expected gzip of JSON lines"),
    ],
)
def test_a_file_that_was_changed_is_refused(file, change, said):
    with pytest.raises(SpecError, match=said) as error:
        recorded.read(rewritten(file, change))
    assert str(file) in error.value.message


def test_a_file_that_was_changed_is_left_out_beside_others(file, tmp_path):
    said = []
    wrong = tmp_path / "wrong.jsonl.gz"
    wrong.write_bytes(file.read_bytes())
    rewritten(wrong, lambda lines: lines[:-1])
    found = replay.compare(["grid"], [wrong, file], seeds=2, tell=said.append)
    assert list(found.spaces) == ["tiny"]
    assert said[0].startswith(f"skipped: {wrong}, line 1: 'digest' is")
    with pytest.raises(SpecError, match="'digest' is"):
        replay.compare(["grid"], [wrong], seeds=2)


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    (tmp_path / "x").write_text("{}")
    with pytest.raises(SpecError, match=r"x: not a recorded space: .*; expected gzip of JSON lines"):
        recorded.read(tmp_path / "x")


def test_trials_are_counted_until_the_best_is_near(file):
    # the yardstick's own order: all but the best point are ten times as slow
    assert replay.trials("grid", file, (), 0) == (SPACE.size - 1, SPACE.size - 1)
    found = replay.compare(["grid"], [file], seeds=4)
    assert [row.tuner for row in found.rows] == ["random", "grid"]
    assert found.rows[1].trials["tiny"]["95%"].value == SPACE.size - 1
    assert found.spaces["tiny"]["near"] == {"95%": 1, "99%": 1}
    assert found.hard == {"95%": [], "99%": []}  # chance needs fewer than 30 trials of so few points
    assert found.rows[1].over == {"95%": None, "99%": None}


def test_a_batch_is_requested_before_its_costs_are_given(file, monkeypatch):
    events = []

    class InOrder:
        def ask(self, n):
            start = len(events) - events.count("ask")
            events.append("ask")
            return [SPACE.at(index) for index in range(start, min(start + n, SPACE.size))]

        def tell(self, point, cost):
            events.append(SPACE.index(point))

    made = strategy.Tuner("in-order", file, "", lambda space, seed: InOrder())
    monkeypatch.setattr(strategy, "load", lambda name, plugins: made)
    assert replay.trials("in-order", file, (), 0, 8) == (SPACE.size - 1, SPACE.size - 1)
    assert events[:19] == ["ask", *range(8), "ask", *range(8, 16), "ask"]


def test_the_mean_is_over_spaces_that_are_hard_by_chance(tmp_path):
    space = Space.of({"a": tuple(range(200))})
    path = tmp_path / f"long{recorded.SUFFIX}"
    recorded.write(path, RecordedSpace("long", space, {}, (*tuple(1000.0 - i for i in range(199)), 1.0), (0.0,) * 200))
    found = replay.compare(["grid"], [path], seeds=6)
    assert found.hard["95%"] == ["long"]
    chance, grid = found.rows[0].trials["long"]["95%"], found.rows[1].over["95%"]
    assert grid is not None
    assert grid.value == pytest.approx(chance.value / 200)
    assert grid.low < grid.value < grid.high


def test_seeds_alone_decide(file):
    one, other = (replay.compare(["bayes"], [file], seeds=3, jobs=jobs).to_json() for jobs in (1, 2))
    assert one == other


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        ("return [self.space.at(0)]", r"proposed .* a second time \(trial 2 in tiny, seed 0\)"),
        ("return [Point.of({'a': 3, 'b': 1, 'w': 'x'})]", r"which is not legal \(trial 1 in tiny"),
    ],
)
def test_a_tuner_that_breaks_its_contract_is_refused(file, tmp_path, ask, said):
    plugins = plugin(tmp_path, "mine", ask)
    with pytest.raises(JobError, match=said):
        replay.compare(["mine"], [file], seeds=2, plugins=plugins)


def test_a_tuner_that_gives_up_took_the_most_there_are(file, tmp_path):
    plugins = plugin(tmp_path, "mine", "return [self.space.at(1)] if self.trials == 1 else []")
    assert replay.trials("mine", file, plugins, 0) == (replay.MOST, replay.MOST)


def test_a_tuner_whose_library_is_missing_says_what_to_install(file, tmp_path):
    plugins = plugin(tmp_path, "mine", "")
    path = tmp_path / "tuners" / "mine.py"
    path.write_text(
        path.read_text().replace("self.space, self.trials =", "import no_such_library; self.space, self.trials =")
    )
    with pytest.raises(UsageError, match="the tuner mine cannot start: No module named 'no_such_library'"):
        replay.compare(["mine"], [file], seeds=2, plugins=plugins)


@pytest.mark.covers("command tuners bench")
def test_the_command_prints_a_table_and_json(file):
    said = ["tuners", "bench", "--tuner", "grid", "--seeds", "2", "--batch", "4", "--space", str(file)]
    table = CliRunner().invoke(cli, said, catch_exceptions=False)
    assert "trials to reach 95% of the best speed, batches of 4" in table.output
    assert "grid" in table.output
    record = json.loads(CliRunner().invoke(cli, [*said, "--format", "json"], catch_exceptions=False).stdout)
    assert [row["tuner"] for row in record["rows"]] == ["random", "grid"]
    assert record["batch"] == 4
    assert record["rows"][1]["ask_ms"] is None  # no space of a thousand points


@pytest.mark.parametrize("file", replay.shipped(), ids=lambda path: path.name)
def test_shipped_spaces_can_be_read(file):
    found = recorded.read(file)
    assert 1000 <= found.space.size <= 5000
    assert {"platform", "operator", "dtype", "template", "unit", "verified"} <= found.about.keys()
