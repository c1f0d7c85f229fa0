"""Epilogues of gemm on this machine: in C, from Python, and before verification."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tensorop
from tensorop.commands import verify
from tensorop.model.architecture import host_arch
from tensorop.model.verdict import Seed
from tensorop.specs import epilogue
from tensorop.verify.controls import ControlRun, controls
from tests.support import epilogues, products
from tests.support.classes import extended
from tests.support.kernels import platform
from tests.support.operators import gemm, runner_of

pytestmark = pytest.mark.skipif(host_arch() != "x86_64", reason="the plain platform is one of x86-64")
oracle: Any = importlib.import_module(f"{type(gemm().reference).__module__.rpartition('.')[0]}.epilogue")
SETS = (
    (),
    ("bias",),
    ("residual",),
    ("scale_rows",),
    ("scale_columns", "bias"),
    ("bias", "residual", "scale_rows", "scale_columns"),
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return epilogues.accepted("generic", tmp_path_factory.mktemp("epilogue") / "gemm")


@pytest.fixture(scope="module")
def library(root: Path) -> Any:
    return tensorop.load(root)


@pytest.mark.parametrize("dtype", ["f32", *map(extended, ("f64", "bf16", "f16"))])
def test_every_wrong_epilogue_is_refused(dtype: str) -> None:
    here, operator = platform(host_arch()), epilogue.of(gemm())
    assert operator is not None
    results = ControlRun(operator, here, runner_of(here), Seed.draw()).run([dtype])
    assert [result.name for result in results] == [one.name for one in controls(operator)]


@pytest.mark.extended
def test_the_full_grid_passes(root: Path) -> None:
    found, target = products.reached(root)
    for verdict in verify.verify(found, target, Seed.draw()):
        assert verdict.ok, verdict.outcome.message


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_arrays_as_they_lie(library: Any, dtype: Any) -> None:
    kind, wide = np.finfo(dtype), np.longdouble if dtype is np.float64 else np.float64
    unit, tiny, least = float(kind.eps) / 2, float(kind.smallest_subnormal), 4 * float(kind.tiny)
    for number, (activation, names) in enumerate(itertools.product(("none", "relu", "gelu", "silu"), SETS)):
        rng = np.random.default_rng(number)
        m, n, k = ((1, 40, 9), (33, 1, 17), (150, 130, 20), (17, 1200, 5))[number // 2 % 4]
        a, b, c = (rng.standard_normal(shape).astype(dtype) for shape in ((m, k), (k, n), (m, n)))
        c = np.asarray(c, order="CF"[number % 2])
        shapes = {"scale_rows": (m,), "scale_columns": (n,), "bias": (n,), "residual": (m, n)}
        given = {name: rng.standard_normal(shapes[name]).astype(dtype) for name in names}
        sums = a.astype(wide) @ b.astype(wide) + c.astype(wide)
        bound = (k + 2) * unit * (np.abs(a) @ np.abs(b) + np.abs(c)).astype(np.float64)
        want, far = oracle.finished(sums, bound, oracle.Epilogue(**given, activation=activation), unit, tiny, least)
        assert library.gemm(a, b, c, beta=1, activation=activation, **given) is c
        assert (np.abs(c - want) <= far).all(), (number, m, n, k, activation, names)


@pytest.mark.extended
def test_epilogues_of_16_bits_change_the_float32_of_c(tmp_path: Path) -> None:
    ours = tensorop.load(epilogues.accepted("generic", tmp_path / "gemm", ("bf16", "f16"))).gemm
    a, b = np.eye(40, dtype=np.float16), np.linspace(-3, 3, 40 * 33).reshape(40, 33).astype(np.float16)
    bits = [(one.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16) for one in (a, b)]
    wide = (bits[1].astype(np.uint32) << 16).view(np.float32)
    bias = np.linspace(-1, 1, 33, dtype=np.float32)
    for x, y, exact in ((a, b, b.astype(np.float32)), (*bits, wide)):
        got = ours(x, y, bias=bias, residual=exact, activation="relu")
        np.testing.assert_allclose(got, np.maximum(2 * exact + bias, 0), rtol=1e-6, atol=1e-6)
    with pytest.raises(TypeError, match="bias is float16, it must be float32"):
        ours(a, b, bias=bias.astype(np.float16))


def test_c_may_be_its_own_residual(library: Any) -> None:
    a, b = np.eye(20, dtype=np.float32), np.full((20, 30), 2, np.float32)
    c = np.ones((20, 30), np.float32)
    library.gemm(a, b, c, residual=c)
    assert (c == 3).all()
    library.gemm(a, b, c, residual=c, beta=0.5, scale_rows=np.full(20, 2, np.float32))
    assert (c == 2 * (2 + 1.5) + 3).all()


def test_what_is_not_a_number_stays(library: Any) -> None:
    x = np.array([[np.nan, np.inf, -np.inf, 200, -200, 1e30]], np.float32)
    one, minus = np.ones((1, 1), np.float32), -np.inf
    for activation, of_minus in (("none", minus), ("relu", 0.0), ("gelu", np.nan), ("silu", np.nan)):
        found = library.gemm(one, x, activation=activation)[0]
        small = -200 if activation == "none" else 0
        large = np.float32(1e30)
        np.testing.assert_array_equal(found, np.array([np.nan, np.inf, of_minus, 200, small, large], np.float32))


def test_what_does_not_fit_is_refused_by_name(library: Any, tmp_path: Path) -> None:
    a = np.ones((8, 8), np.float32)
    without = tensorop.load(products.install("generic", tmp_path / "without"))
    for call, kind, says, given in (
        (library, ValueError, "activation must be one of none, relu, gelu, silu; got 'tanh'", {"activation": "tanh"}),
        (library, ValueError, "bias is 7, it must be 8", {"bias": a[0, :7]}),
        (library, TypeError, "bias is float64, it must be float32: convert it", {"bias": np.ones(8)}),
        (library, ValueError, "residual is 8, it must be 8 x 8", {"residual": a[0]}),
        (without, RuntimeError, "no epilogues of f32: make the library with --epilogue", {"activation": "relu"}),
    ):
        with pytest.raises(kind, match=says):
            call.gemm(a, a, **given)
    c = np.ones((8, 8), np.float32)
    with pytest.raises(ValueError, match="c overlaps a, b or an array of the epilogue"):
        library.gemm(a, a, c, bias=c[0])


def test_the_codes_of_c(library: Any) -> None:
    of = library.operators["gemm"]
    new, cast, lib = of.ffi.new, of.ffi.cast, of.lib
    call = new("struct tensorop_gemm_f32_call *", (101, 111, 111, 1, 0, 4, 6, 5, 5, 6, 6))
    a, b, c = (np.ones(shape, np.float32) for shape in ((4, 5), (5, 6), (4, 6)))
    at = [cast("void *", one.ctypes.data) for one in (a, b, c)]

    def status(**epilogue: Any) -> int:
        made = new("struct tensorop_gemm_f32_epilogue *")
        for name, one in epilogue.items():
            setattr(made, name, cast("void *", one.ctypes.data) if isinstance(one, np.ndarray) else one)
        return int(lib.tensorop_gemm_f32_epilogue(call, made, *at))

    bias = np.ones(6, np.float32)
    assert (status(activation=4), status(activation=-1)) == (16, 16)
    assert status(residual=b, ld_residual=5) == 17
    assert status(bias=c) == status(residual=c[1:], ld_residual=6) == -2
    assert (c == 1).all()
    assert status(activation=1, bias=bias) == 0 == lib.tensorop_gemm_f32_epilogue(call, of.ffi.NULL, *at)
    call.transa = 7
    assert status(bias=bias) == 2
