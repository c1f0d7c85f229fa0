"""Tables of a comparison: each VLEN by itself, the lowest of everything, what is absent and why."""

import importlib.util
from pathlib import Path

from tensorop.model.bench import AtVlen, BaselineInfo, Bench, Ratio, Row

MODEL = {"name": "a-model", "version": 4, "calibrated": False, "interval": True}


def tables(bench):
    file = Path(__file__).parents[2] / "benchmarks" / "readme_tables.py"
    spec = importlib.util.spec_from_file_location("readme_tables", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.tables(bench.to_json())


def row(side, **ratios):
    """Ratios at VLENs as v128=1.5; None: the baseline is wrong there."""
    at = {
        int(v[1:]): AtVlen(4.0, {} if x is None else {"openblas": Ratio(x, 0.9 * x, 1.1 * x)}, verdicts={"ours": "ok"})
        for v, x in ratios.items()
    }
    return Row(
        "gemm", "f32", {"m": side, "n": side, "k": side}, "row", 4.0, {}, 0.1, by_vlen=at, verdicts={"ours": "ok"}
    )


def test_each_vlen_has_a_table_and_nothing_is_hidden():
    cores = {128: {"f32": "A", "f64": "A"}, 512: {"f32": "A", "f64": "B"}}
    told = {"openblas": BaselineInfo("0.3.34", "so", ("VLEN 512: no right kernel of this width",), cores)}
    rows = (row(16, v128=3.0, v512=0.9), row(100, v128=2.0, v512=None))
    absent = {"openblas 100x100x100 f32 VLEN 512": "wrong-result: C[0,0] is 1"}
    text = tables(Bench("rvv", 1, "flop/modelled-cycle", MODEL, told, absent, rows, {}))
    narrow, wide, remarks = text.split("\n\nrvv at VLEN 512")[0], text.split("rvv at VLEN 512")[1], text.splitlines()
    assert narrow.startswith(
        "rvv at VLEN 128: modelled cycles, board model a-model 4, not calibrated; against openblas"
    )
    assert narrow.splitlines()[0].endswith("against openblas 0.3.34 (core A)")
    assert wide.splitlines()[0].endswith("against openblas 0.3.34 (core A for f32, B for f64)")
    assert "| 16x16x16 | 4 | 3.00 (2.70 to 3.30) |" in narrow
    assert "| geomean | | **2.45** |" in narrow
    assert "| lowest | | **2.00** |" in narrow
    assert "| 16x16x16 | 4 | 0.90 (0.81 to 0.99) |" in wide
    assert "| 100x100x100 | 4 | absent |" in wide
    assert "| geomean of the lowest ends | | **0.81** |" in wide
    assert (
        "- openblas: the lowest of all 3 ratios measured at VLEN 128, 512 is 0.90, 16x16x16 f32 at VLEN 512" in remarks
    )
    assert "- openblas, VLEN 512: no right kernel of this width" in remarks
    assert "- absent: openblas 100x100x100 f32 VLEN 512: wrong-result: C[0,0] is 1" in remarks


def test_a_clock_has_one_table():
    ratios = {"openblas": Ratio(1.5, 1.4, 1.6), "mkl": Ratio(0.8, 0.7, 0.9)}
    told = {name: BaselineInfo("1", "core X") for name in ratios}
    of = Row("gemm", "f64", {"m": 8, "n": 8, "k": 8}, "row", 50.0, ratios, 0.1, noisy=True)
    text = tables(Bench("avx2", 2, "GFLOP/s", None, told, {}, (of,), {"cpu": "a core"}))
    assert text.startswith("avx2: 2 threads, a core; against openblas 1 (core X), mkl 1 (core X)")
    assert "| m x n x k | f64 GFLOP/s | f64 over openblas | f64 over mkl |" in text
    assert "| 8x8x8 | 50 | 1.50 (1.40 to 1.60) noisy | 0.80 (0.70 to 0.90) noisy |" in text
    assert "- mkl: the lowest of all 1 ratios measured is 0.80, 8x8x8 f64" in text
