"""An operator's parts for GPUs: what `operators check` says of one that is missing or wrong, without a compiler."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tensorop.cuda import check, kernels
from tensorop.errors import SpecError, TensoropError
from tensorop.specs import operators, platforms
from tests.support.commands import ROOT

EXAMPLE = ROOT / "examples" / "device-operator"
SM90 = platforms.load("cuda-sm90")


def faults(plugins: Path) -> str:
    try:
        operator = operators.load("transpose", (plugins,))
        for _, look in check.parts(operator, SM90):
            look()
    except TensoropError as error:
        return str(error)
    return ""


@pytest.mark.covers("example device-operator")
def test_the_example_is_whole_and_small() -> None:
    assert faults(EXAMPLE) == ""
    files = [path for path in (EXAMPLE / "templates").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert sum(len(path.read_text().splitlines()) for path in files) <= 350


def test_gemm_is_whole() -> None:
    for platform in ("cuda-sm90", "cuda-wmma"):
        for _, look in check.parts(operators.load("gemm"), platforms.load(platform)):
            look()


@pytest.mark.parametrize(
    ("file", "old", "new", "message"),
    [
        ("operator.yaml", "call: [m, n, batch]", "call: [n, m]", "key 'device.call': expected m, n, then"),
        ("operator.yaml", "rows: m, cols: n}", "rows: l, cols: n}", "key 'device.operands.X.rows': expected an"),
        ("operator.yaml", "[[64, 48, 1]", "[[64]", "key 'device.verify': expected lists of sizes above 0"),
        ("operator.yaml", "launch: [tile_m, tile_n]", "launch: [tile_k]", "tiles.cu.j2: key 'facts': .* 'tile_k'"),
        ("operator.yaml", "device:", "gpu:", "gpu"),
        ("device/library.c.j2", "static bool serves", "static bool server", r"library.c.j2: expected 'serves'"),
        ("device/library.c.j2", None, "", r"device/library.c.j2: missing"),
        ("device/header.h.j2", "_problem {", "_call {", "header.h.j2: expected 'struct tensorop_transpose_problem'"),
        ("device/kit/oracle.c", "judge_oracle", "judge_all", "oracle.c: expected 'judge_oracle'"),
        ("device/kit/kernels.cu", "FAULT_IGNORES_ALPHA", "0", "kernels.cu: key 'device.faults' .* FAULT_IGNORES_ALPHA"),
        ("device/binding.py", "transpose_cuda_card", "card", "CARD: expected 'tensorop_transpose_cuda_card'"),
        ("device/block.cu.j2", "writes(y, n, ldy, m, 1)", "writes(y, n, ldy, m - 1, 1)", "tiles.cu.j2: "),
        ("kernels/tiles.cu.j2", "col0 + j < n", "col0 + j <= n", "tiles.cu.j2: "),
    ],
)  # fmt: skip
def test_a_wrong_part_is_named(tmp_path: Path, file: str, old: str | None, new: str, message: str) -> None:
    copy = shutil.copytree(EXAMPLE, tmp_path / "mine")
    path = copy / "templates" / "transpose" / file
    if old is None:
        path.unlink()
    else:
        assert old in path.read_text()
        path.write_text(path.read_text().replace(old, new))
    with pytest.raises(SpecError, match=message):
        raise SpecError(faults(copy))


def test_the_kernel_is_made_of_the_operators_parts() -> None:
    operator = operators.load("transpose", (EXAMPLE,))
    calls = ("gemm", "bf16"), ("attention", "f16"), ("gemm", "f32")
    found = [[*kernels.second(operators.load(name), [dtype])] for name, dtype in calls]
    assert found == [["COPY", "SUMS"], ["COMBINE"], ["COMBINE"]]
    assert kernels.second(operator, ["bf16"]) == {}
