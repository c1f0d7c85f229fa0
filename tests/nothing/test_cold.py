"""What benchmarks/cold.py says of finished runs."""

import json
from pathlib import Path

import pytest

from benchmarks import cold


def test_a_line_for_each_start_and_vlen():
    found = {"none": [{128: 1.0, 256: 2.0}, {128: 1.5, 256: 2.0}, {128: 1.2, 256: 4.0}], "auto": [{128: 2.0, 256: 1.0}]}
    assert cold.told("p", found) == [
        "p VLEN 128, none: 1.200 in median of 3 seeds, lowest 1.000; 60.0% of the best of all these runs",
        "p VLEN 128, auto: 2.000 in median of 1 seeds, lowest 2.000; 100.0% of the best of all these runs",
        "p VLEN 256, none: 2.000 in median of 3 seeds, lowest 2.000; 50.0% of the best of all these runs",
        "p VLEN 256, auto: 1.000 in median of 1 seeds, lowest 1.000; 25.0% of the best of all these runs",
    ]


def test_what_the_library_chose_and_what_the_search_found(tmp_path: Path) -> None:
    """A shape without a trial (the smallest are served by another kernel) counts as it was compared."""

    def row(shape: str, ours: float) -> dict[str, object]:
        sizes = {"m": 10, "n": 10, "k": 10, "shape": shape, "dtype": "f32", "layout": "row"}
        return {**sizes, "by_vlen": {"128": {"ours": ours, "ratio": {"openblas": 1.0}}}}

    def trial(kind: str, cycles: float) -> dict[str, object]:
        found = {"10x10x10 f32 layout=row": {"value": 1.0, "by_vlen": {"128": cycles}}}
        return {"event": "finished", "outcome": {"kind": kind}, "score": {"per_problem": found}}

    rows = [row("10x10x10", 2.0), row("2x2x2", 5.0)]  # 1000 cycles of ours for the first
    (tmp_path / "bench.json").write_text(json.dumps({"baselines": {"openblas": {}}, "results": rows}))
    lines = [trial("ok", 400.0), trial("ok", 250.0), trial("wrong-result", 1.0), {"event": "started"}]
    (tmp_path / "journal.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert cold.compared(tmp_path) == {128: pytest.approx(1.0)}
    assert cold.searched(tmp_path) == {128: pytest.approx(2.0)}
